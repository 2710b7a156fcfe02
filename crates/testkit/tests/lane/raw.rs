//! A client written by hand: sends bytes, notes when which bytes came, decodes nothing it does not have to.

use std::io::{ErrorKind, Read, Write};
use std::time::Duration;

use peaklane_testkit::case::Framing;
use peaklane_testkit::io::ClientIo;
use sha2::{Digest, Sha256};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::time::Instant;

/// Silence after which a connection counts as still open, seconds.
const PATIENCE_S: u64 = 60;

/// How a connection stood when the client stopped reading; times are milliseconds after the request.
#[derive(Debug, PartialEq)]
pub(crate) enum End {
    StillOpen,
    Eof(f64),
    Error(ErrorKind, f64),
}

/// What came back for one request.
pub(crate) struct Exchange {
    pub(crate) pieces: Vec<(f64, Vec<u8>)>,
    pub(crate) end: End,
}

/// A POST request as text.
pub(crate) fn post(path: &str, body: &str) -> String {
    format!("POST {path} HTTP/1.1\r\nHost: h\r\nContent-Length: {}\r\n\r\n{body}", body.len())
}

/// Lower-case hex of a SHA-256.
pub(crate) fn hex_sha256(bytes: &[u8]) -> String {
    Sha256::digest(bytes).iter().map(|b| format!("{b:02x}")).collect()
}

impl Exchange {
    /// Sends a request in memory and reads until the connection ends or nothing comes for a minute.
    pub(crate) async fn run(io: &mut ClientIo, request: &str) -> Self {
        Self::run_patiently(io, request, PATIENCE_S).await
    }

    /// The same with another patience, seconds.
    pub(crate) async fn run_patiently(io: &mut ClientIo, request: &str, patience_s: u64) -> Self {
        io.write_all(request.as_bytes()).await.unwrap();
        let start = Instant::now();
        let at = || start.elapsed().as_secs_f64() * 1e3;
        let mut pieces = Vec::new();
        let mut buffer = vec![0; 4 << 20];
        let end = loop {
            match tokio::time::timeout(Duration::from_secs(patience_s), io.read(&mut buffer)).await {
                Err(_) => break End::StillOpen,
                Ok(Ok(0)) => break End::Eof(at()),
                Ok(Ok(n)) => pieces.push((at(), buffer[..n].to_vec())),
                Ok(Err(e)) => break End::Error(e.kind(), at()),
            }
        };
        Self { pieces, end }
    }

    /// Moments at which bytes came, each once.
    pub(crate) fn arrivals(&self) -> Vec<f64> {
        let mut at: Vec<f64> = self.pieces.iter().map(|p| p.0).collect();
        at.dedup();
        at
    }

    /// True when the framing of the answer says that nothing more will come.
    fn is_whole(&self) -> bool {
        let bytes = self.bytes();
        let Some(at) = bytes.windows(4).position(|w| w == b"\r\n\r\n") else { return false };
        let head = String::from_utf8_lossy(&bytes[..at]).to_ascii_lowercase();
        match head.split_once("content-length: ") {
            Some((_, rest)) => bytes.len() - at - 4 >= rest.lines().next().unwrap().parse().unwrap(),
            None => bytes[at + 4..].starts_with(b"0\r\n\r\n") || bytes.ends_with(b"\r\n0\r\n\r\n"),
        }
    }

    pub(crate) fn bytes(&self) -> Vec<u8> {
        self.pieces.iter().flat_map(|p| p.1.iter().copied()).collect()
    }

    /// The head as text and the body with its framing taken off.
    pub(crate) fn head_and_body(&self, framing: Framing) -> (String, Vec<u8>) {
        let bytes = self.bytes();
        let at = bytes.windows(4).position(|w| w == b"\r\n\r\n").expect("a head") + 4;
        let head = String::from_utf8_lossy(&bytes[..at]).into_owned();
        let body = &bytes[at..];
        (head, if framing == Framing::Chunked { dechunk(body) } else { body.to_vec() })
    }
}

/// Takes chunked coding off as far as it goes: a cut body is allowed.
fn dechunk(mut bytes: &[u8]) -> Vec<u8> {
    let mut body = Vec::new();
    while let Some(at) = bytes.windows(2).position(|w| w == b"\r\n") {
        let size = usize::from_str_radix(std::str::from_utf8(&bytes[..at]).unwrap(), 16).unwrap();
        if size == 0 {
            break;
        }
        body.extend_from_slice(&bytes[at + 2..at + 2 + size]);
        bytes = &bytes[at + 2 + size + 2..];
    }
    body
}

/// The same over a real socket: reads until the end, the last chunk, or as many bytes as the length says.
pub(crate) fn tcp_exchange(port: u16, request: &str) -> Exchange {
    let mut io = std::net::TcpStream::connect(("127.0.0.1", port)).unwrap();
    io.set_read_timeout(Some(Duration::from_secs(2))).unwrap();
    io.write_all(request.as_bytes()).unwrap();
    let start = std::time::Instant::now();
    let at = || start.elapsed().as_secs_f64() * 1e3;
    let mut pieces = Vec::new();
    let mut buffer = vec![0; 1 << 20];
    let end = loop {
        match io.read(&mut buffer) {
            Ok(0) => break End::Eof(at()),
            Ok(n) => {
                pieces.push((at(), buffer[..n].to_vec()));
                let so_far = Exchange { pieces: std::mem::take(&mut pieces), end: End::StillOpen };
                let whole = so_far.is_whole();
                pieces = so_far.pieces;
                if whole {
                    break End::StillOpen;
                }
            }
            Err(e) if matches!(e.kind(), ErrorKind::WouldBlock | ErrorKind::TimedOut) => break End::StillOpen,
            Err(e) => break End::Error(e.kind(), at()),
        }
    };
    Exchange { pieces, end }
}
