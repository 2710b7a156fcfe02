//! Servers on real sockets of loopback, for what cannot be had in memory.

use std::future::Future;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use peaklane_testkit::io::{BoxIo, NoReset};
use peaklane_wire::client::Client;
use peaklane_wire::net::Network;
use peaklane_wire::proxy_env::Proxies;
use tokio::net::{TcpListener, TcpStream};
use tokio_rustls::TlsAcceptor;

use crate::lane::{request, say, streamed};
use crate::support;

/// A server; it lives as long as the runtime of its test.
pub(crate) struct Server {
    pub(crate) port: u16,
    accepted: Arc<AtomicUsize>,
}

impl Server {
    /// Serves each connection (with its number, from 0) by `serve`.
    pub(crate) async fn start<R: Future<Output = ()> + Send + 'static>(
        serve: impl Fn(TcpStream, usize) -> R + Send + 'static,
    ) -> Self {
        let listener = TcpListener::bind(("127.0.0.1", 0)).await.unwrap();
        let port = listener.local_addr().unwrap().port();
        let accepted = Arc::new(AtomicUsize::new(0));
        let count = Arc::clone(&accepted);
        tokio::spawn(async move {
            while let Ok((stream, _)) = listener.accept().await {
                let _ = stream.set_nodelay(true);
                tokio::spawn(serve(stream, count.fetch_add(1, Ordering::SeqCst)));
            }
        });
        Self { port, accepted }
    }

    /// Serves what comes out of TLS; a handshake that fails is dropped.
    pub(crate) async fn tls<R: Future<Output = ()> + Send + 'static>(
        config: Arc<rustls::ServerConfig>,
        serve: impl Fn(BoxIo, usize) -> R + Clone + Send + Sync + 'static,
    ) -> Self {
        Self::start(move |stream, n| {
            let (acceptor, serve) = (TlsAcceptor::from(Arc::clone(&config)), serve.clone());
            async move {
                if let Ok(io) = acceptor.accept(stream).await {
                    serve(Box::new(NoReset(io)), n).await;
                }
            }
        })
        .await
    }

    /// A lane that says "hello" over TLS.
    pub(crate) async fn hello(config: Arc<rustls::ServerConfig>) -> Self {
        Self::tls(config, |io, _| hello(io)).await
    }

    /// Connections accepted so far.
    pub(crate) fn accepted(&self) -> usize {
        self.accepted.load(Ordering::SeqCst)
    }
}

/// Says "hello" to every request.
pub(crate) async fn hello(mut io: BoxIo) {
    while request(&mut io).await.is_some() {
        say(&mut io, streamed("hello")).await;
    }
}

/// A client on the real network that trusts this authority too.
pub(crate) fn client(ca: Option<&Path>, proxies: Proxies) -> Client {
    let files: Vec<_> = ca.iter().map(|p| p.to_path_buf()).collect();
    Client::new(Arc::new(Network::new(proxies, &files, true).unwrap()), support::wall_ms)
}
