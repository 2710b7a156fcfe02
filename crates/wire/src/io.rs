//! What the client asks of a network: a byte stream, and somebody who opens one.

use std::future::Future;
use std::io;
use std::pin::Pin;

use peaklane_core::record::Handshake;
use tokio::io::{AsyncRead, AsyncWrite};

/// A byte stream in both directions.
pub trait Io: AsyncRead + AsyncWrite + Send + Unpin {}
impl<T: AsyncRead + AsyncWrite + Send + Unpin> Io for T {}

/// A stream, what it took to open it, and what is spoken on it.
pub struct Dialled {
    /// The stream, TLS included.
    pub io: Box<dyn Io>,
    /// The figures of its opening.
    pub handshake: Handshake,
    /// HTTP/2 was agreed on (ALPN `h2`).
    pub http2: bool,
    /// Requests name the whole URL, because a forwarding proxy stands between (plain http through `HTTP_PROXY`).
    pub absolute_form: bool,
    /// `Proxy-Authorization` of that proxy.
    pub proxy_authorization: Option<String>,
}

impl std::fmt::Debug for Dialled {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Dialled")
            .field("handshake", &self.handshake)
            .field("http2", &self.http2)
            .finish_non_exhaustive()
    }
}

/// Why no stream could be opened. Nothing was sent.
#[derive(Debug, thiserror::Error)]
pub enum DialError {
    /// The name does not resolve.
    #[error("cannot resolve `{host}`")]
    Dns {
        /// The name.
        host: String,
        /// What the resolver said.
        #[source]
        source: io::Error,
    },
    /// No address of the host takes the connection.
    #[error("cannot connect to {address}")]
    Connect {
        /// Host and port.
        address: String,
        /// What the system said.
        #[source]
        source: io::Error,
    },
    /// TLS failed: certificate, protocol.
    #[error("no TLS with `{host}`")]
    Tls {
        /// The name.
        host: String,
        /// What TLS said.
        #[source]
        source: io::Error,
    },
    /// The proxy refused or answered nonsense.
    #[error("the proxy {proxy} does not connect to {address}: {reason}")]
    Proxy {
        /// Its address, without credentials.
        proxy: String,
        /// Where it should have connected.
        address: String,
        /// Its answer.
        reason: String,
    },
    /// Not open within the limit.
    #[error("no connection to {address} within {limit_ms} ms")]
    Timeout {
        /// Host and port.
        address: String,
        /// The limit, milliseconds.
        limit_ms: u64,
    },
}

/// The future of an opening stream.
pub type Dialling<'a> = Pin<Box<dyn Future<Output = Result<Dialled, DialError>> + Send + 'a>>;

/// Opens streams. The real network is [`crate::net::Network`]; tests bring their own.
pub trait Dial: Send + Sync {
    /// Opens a stream to `host`:`port`, with TLS where asked.
    fn dial<'a>(&'a self, host: &'a str, port: u16, tls: bool) -> Dialling<'a>;
}
