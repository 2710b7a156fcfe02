//! What a prompt shares with earlier ones of its session.
