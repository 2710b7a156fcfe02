//! The measuring proxy: hands bytes on as they are, and tells what passed.
//!
//! A client's connection is one task ([`serve`]). It reads the head of a request ([`head`]), finds where it goes
//! ([`route`], [`upstream`]) and moves bytes in both directions ([`turn`]; [`exchange`] over HTTP/1.1, [`second`] over
//! HTTP/2) until the answer is over. What is measured on the way ([`meter`]) is told to a [`Tap`] that must not wait.

mod answer;
mod door;
mod exchange;
mod head;
mod meter;
mod policy;
mod route;
mod second;
mod serve;
mod strip;
mod tap;
mod turn;
mod upstream;
mod visitor;

pub use door::{DoorError, listen, open_doors};
pub use policy::{OnDisconnect, Policy};
pub use route::check_session;
pub use serve::{Pages, Proxy, ProxyError};
pub use tap::{Asked, Deaf, Ended, Held, MAX_REQUEST_BYTES, Passed, Room, Tap};
pub use upstream::Upstream;
pub use visitor::Guest;
