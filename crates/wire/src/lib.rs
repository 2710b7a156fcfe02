//! (room prepared)
