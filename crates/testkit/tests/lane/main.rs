//! The scripted lane and the recordings, tried from the other side. One binary, since each costs a link.

mod player;
mod raw;
mod recorded;
