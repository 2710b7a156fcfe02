//! Simulated lanes: a small scripted inference server on loopback, over real HTTP.
//!
//! Two halves that do not know each other: *what a request gets* ([`plan`], [`script`], [`character`]: pure functions
//! of a seed, in simulated time) and *how it is served* ([`server`], [`host`]: sockets and timers in real time). Between
//! them stands [`scale`]. On top: [`demo`], four lanes with honest characters, and [`fake`], a lane that misbehaves
//! on request by its model name.
//!
//! Everything that is served here says that it is simulated: header `x-peaklane-simulated: 1`, models named `sim-...`
//! or `fake-...`.

mod body;
pub mod character;
pub mod demo;
mod dialect;
mod draw;
mod events;
pub mod fake;
pub mod host;
mod ledger;
pub mod plan;
mod prefix;
mod respond;
pub mod scale;
pub mod script;
pub mod server;
