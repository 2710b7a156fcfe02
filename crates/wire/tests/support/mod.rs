//! The client on a network in memory.

use std::sync::Arc;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use bytes::Bytes;
use peaklane_core::lane::Api;
use peaklane_core::record::Handshake;
use peaklane_testkit::net::MemoryNet;
use peaklane_wire::client::{Client, Limits, Target};
use peaklane_wire::endpoint::Endpoint;
use peaklane_wire::io::{Dial, DialError, Dialled, Dialling};
use peaklane_wire::request::Ask;

struct MemoryDial(MemoryNet);

impl Dial for MemoryDial {
    fn dial<'a>(&'a self, host: &'a str, port: u16, _tls: bool) -> Dialling<'a> {
        Box::pin(async move {
            let io = self
                .0
                .connect(host, port)
                .map_err(|source| DialError::Connect { address: format!("{host}:{port}"), source })?;
            Ok(Dialled {
                io: Box::new(io),
                handshake: Handshake::default(),
                http2: false,
                absolute_form: false,
                proxy_authorization: None,
            })
        })
    }
}

pub(crate) fn wall_ms() -> i64 {
    SystemTime::now().duration_since(UNIX_EPOCH).unwrap().as_millis() as i64
}

pub(crate) fn client_on(net: &MemoryNet) -> Client {
    Client::new(Arc::new(MemoryDial(net.clone())), wall_ms)
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
