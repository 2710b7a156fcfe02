//! The client on a network in memory.

// Each test program takes what it needs.
#![allow(dead_code)]

use std::sync::Arc;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use bytes::Bytes;
use peaklane_core::lane::Api;
use peaklane_testkit::net::MemoryNet;
use peaklane_wire::client::{Client, Limits, Target};
use peaklane_wire::endpoint::Endpoint;
use peaklane_wire::request::Ask;

pub(crate) fn wall_ms() -> i64 {
    SystemTime::now().duration_since(UNIX_EPOCH).unwrap().as_millis() as i64
}

pub(crate) fn client_on(net: &MemoryNet) -> Client {
    Client::new(Arc::new(net.clone()), wall_ms)
}

pub(crate) fn target(base: &str, api: Api) -> Target {
    Target { endpoint: Endpoint::new(base, api).unwrap(), api, key: None, headers: Vec::new() }
}

pub(crate) fn body(api: Api, stream: bool) -> Bytes {
    let ask = Ask {
        model: "lane-model".into(),
        system: None,
        prompt: "Say something.".into(),
        max_tokens: 64,
        max_completion_tokens: false,
        temperature: Some(0.0),
        seed: None,
        stream,
        extra: serde_json::Map::new(),
    };
    ask.body(api)
}

/// Limits far beyond every case, for those that set none.
pub(crate) fn generous() -> Limits {
    let long = Duration::from_secs(100_000_000);
    Limits { first_byte: long, idle: long, total: long }
}
