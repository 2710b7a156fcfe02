//! What a prompt shares with earlier ones of its session: how much of it a prefix cache could have served, and what
//! broke it.
//!
//! A request body becomes a [`Prompt`], its canonical text in the order in which a chat template lays it out ([`scan`],
//! [`prompt`]). Two of them are compared byte for byte ([`compare`]); where one ceases to repeat the other,
//! [`diverge`] says by what. [`Sessions`] does this for calls as they come, with bounded memory ([`chain`]); [`trace`]
//! for sessions that were recorded whole. [`blame`] holds the server's own count of cached tokens against it.

pub mod blame;
pub mod chain;
pub mod compare;
pub mod diverge;
mod excerpt;
mod number;
pub mod prompt;
mod scan;
pub mod sessions;
pub mod trace;

pub use blame::{Blame, blame};
pub use excerpt::redact_keys;
pub use prompt::{Asked, Prompt, PromptError};
pub use scan::ScanError;
pub use sessions::{Bounds, Placed, Sessions};
