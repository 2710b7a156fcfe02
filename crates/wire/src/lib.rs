//! Bytes on the network, each with its time.
//!
//! [`client::Client`] makes one measured try of one request; [`retry`] makes an attempt out of tries. Timestamps are
//! taken in this crate only, where a read returns, before anything is parsed. [`reading::Reading`] turns decoded bytes
//! and their moments into a record and knows neither socket nor clock.

pub mod client;
mod connection;
pub mod control;
pub mod decode;
pub mod endpoint;
pub mod failure;
mod frame;
mod h1;
mod h2conn;
pub mod headers;
pub mod io;
pub mod lag;
pub mod net;
pub mod proxy;
pub mod proxy_env;
pub mod reading;
pub mod request;
pub mod retry;
pub mod retry_after;
pub mod sse;
