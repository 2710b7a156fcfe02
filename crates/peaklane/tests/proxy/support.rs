//! A proxy that runs, and a client that sees raw bytes.

use std::io::{Read, Write};
use std::net::TcpStream;
use std::time::Duration;

use peaklane_testkit::binary::{Ran, Running, Sandbox};
use serde_json::Value;

/// The binary under test.
pub(crate) const BINARY: &str = env!("CARGO_BIN_EXE_peaklane");

/// A sandbox for proxies and summaries of one store.
pub(crate) fn sandbox() -> Sandbox {
    Sandbox::new(BINARY).limit(Duration::from_secs(120))
}

/// A proxy that listens.
pub(crate) struct Proxy<'a> {
    pub(crate) running: Running<'a>,
    /// `127.0.0.1:PORT`.
    pub(crate) address: String,
}

impl<'a> Proxy<'a> {
    /// Starts one before an address, on a free port.
    pub(crate) fn start(sandbox: &'a Sandbox, upstream: &str, more: &[&str]) -> Self {
        let words = [&["proxy", "--listen", "127.0.0.1:0", "--upstream", upstream][..], more].concat();
        let mut running = sandbox.start(words);
        let address = running.wait_for_line("listening on http://");
        Self { running, address }
    }

    /// Stops it like an operator would, and waits for its end.
    pub(crate) fn stop(self) -> Ran {
        self.running.signal("TERM");
        self.running.wait()
    }

    /// Sends one request and reads to the end of the connection.
    pub(crate) fn talk(&self, request: &[u8]) -> Vec<u8> {
        let mut stream = TcpStream::connect(&self.address).expect("the proxy listens");
        stream.set_read_timeout(Some(Duration::from_secs(60))).expect("a limit can be set");
        stream.write_all(request).expect("the proxy takes the request");
        let mut answer = Vec::new();
        // A reset is an end too.
        let _ = stream.read_to_end(&mut answer);
        answer
    }
}

/// A POST of that body whose answer ends the connection.
pub(crate) fn post(path: &str, body: &str) -> Vec<u8> {
    format!(
        "POST {path} HTTP/1.1\r\nHost: p\r\nContent-Type: application/json\r\nConnection: close\r\nContent-Length: {}\r\n\r\n{body}",
        body.len()
    )
    .into_bytes()
}

/// The body of an answer, out of its frame, as far as it came; by plain reading.
pub(crate) fn body_of(answer: &[u8]) -> Vec<u8> {
    let Some(at) = answer.windows(4).position(|w| w == b"\r\n\r\n") else { return Vec::new() };
    let (head, mut left) = (String::from_utf8_lossy(&answer[..at]).to_ascii_lowercase(), &answer[at + 4..]);
    if !head.contains("transfer-encoding: chunked") {
        return left.to_vec();
    }
    let mut data = Vec::new();
    while let Some(at) = left.windows(2).position(|w| w == b"\r\n") {
        let line = String::from_utf8_lossy(&left[..at]).into_owned();
        let Ok(size) = usize::from_str_radix(line.split(';').next().unwrap_or_default().trim(), 16) else { break };
        left = &left[at + 2..];
        if size == 0 {
            break;
        }
        data.extend_from_slice(&left[..size.min(left.len())]);
        left = left.get(size + 2..).unwrap_or_default();
    }
    data
}

/// `summary WHAT --format json`.
pub(crate) fn summary(sandbox: &Sandbox, words: &[&str]) -> Vec<Value> {
    let words = [&["summary"][..], words, &["--format", "json"]].concat();
    sandbox.run(words).expect_code(0).json().as_array().expect("an array").clone()
}
