//! Where scripted lanes are reached: a network in memory, and real sockets on loopback.

use std::collections::HashMap;
use std::io;
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::JoinHandle;

use peaklane_core::record::Handshake;
use peaklane_wire::io::{Dial, DialError, Dialled, Dialling};
use tokio::net::TcpListener;
use tokio::sync::oneshot;

use crate::case::{Case, stream_cases};
use crate::io::{ClientIo, pair};
use crate::log::Log;
use crate::player::{CasePlayer, Service};

/// The host that cases are served at; `{other}` in a case means the same server under the name `localhost`.
pub const CASE_HOST: &str = "127.0.0.1";

/// The port that cases are served at in memory: that of the reference server's documentation.
pub const CASE_PORT: u16 = 8099;

type Places = HashMap<(String, u16), Arc<dyn Service>>;

/// A network in memory: services by host and port. Connecting takes no time, and bytes arrive at the instant at which
/// they are written. Clones are the same network.
#[derive(Clone, Default)]
pub struct MemoryNet {
    places: Arc<Mutex<Places>>,
}

impl MemoryNet {
    /// A network with nothing on it.
    pub fn new() -> Self {
        Self::default()
    }

    /// A network on which `player` serves its cases at `127.0.0.1:8099` and, as another host, `localhost:8099`.
    pub fn with_cases(player: &CasePlayer) -> Self {
        let net = Self::new();
        net.serve("localhost", CASE_PORT, player.clone());
        net.serve(CASE_HOST, CASE_PORT, player.clone());
        net
    }

    /// Puts a service on the network; a former one at the same place is gone.
    pub fn serve(&self, host: &str, port: u16, service: impl Service) {
        service.located_at(host, port);
        self.places.lock().unwrap_or_else(PoisonError::into_inner).insert((host.to_owned(), port), Arc::new(service));
    }

    /// Opens a connection: the client's end; the server's end is served by a task of its own.
    ///
    /// # Errors
    /// `ConnectionRefused` where nothing listens; `NotFound` for a host on which nothing listens at all.
    ///
    /// # Panics
    /// Outside of a tokio runtime.
    pub fn connect(&self, host: &str, port: u16) -> io::Result<ClientIo> {
        let places = self.places.lock().unwrap_or_else(PoisonError::into_inner);
        let Some(service) = places.get(&(host.to_owned(), port)) else {
            let known = places.keys().any(|(h, _)| h == host);
            return Err(if known {
                io::Error::new(io::ErrorKind::ConnectionRefused, format!("nothing listens at {host}:{port}"))
            } else {
                io::Error::new(io::ErrorKind::NotFound, format!("no such host: {host}"))
            });
        };
        let (client, server) = pair();
        tokio::spawn(service.serve(Box::new(server)));
        Ok(client)
    }
}

impl Dial for MemoryNet {
    fn dial<'a>(&'a self, host: &'a str, port: u16, _tls: bool) -> Dialling<'a> {
        Box::pin(async move {
            let io = self
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

/// A service on a real socket of loopback, on a thread and a (running) clock of its own: usable from a plain test that
/// starts programs, and from within another runtime. Dropping it ends it.
pub struct TcpServer {
    port: u16,
    stop: Option<oneshot::Sender<()>>,
    thread: Option<JoinHandle<()>>,
}

impl TcpServer {
    /// Serves at `127.0.0.1`, on a free port.
    ///
    /// # Errors
    /// No socket can be bound, or no thread started.
    pub fn start(service: impl Service) -> io::Result<Self> {
        let listener = std::net::TcpListener::bind((CASE_HOST, 0))?;
        listener.set_nonblocking(true)?;
        let port = listener.local_addr()?.port();
        service.located_at(CASE_HOST, port);
        let (stop, stopped) = oneshot::channel();
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
        let thread = std::thread::Builder::new().name("scripted-lane".to_owned()).spawn(move || {
            runtime.block_on(async move {
                tokio::select! {
                    _ = stopped => {}
                    () = accept(listener, service) => {}
                }
            });
        })?;
        Ok(Self { port, stop: Some(stop), thread: Some(thread) })
    }

    /// The port.
    pub const fn port(&self) -> u16 {
        self.port
    }
}

async fn accept(listener: std::net::TcpListener, service: impl Service) {
    let Ok(listener) = TcpListener::from_std(listener) else { return };
    // an error here is a client that left before it was accepted, or no free descriptor: the next one may be fine
    loop {
        match listener.accept().await {
            Ok((stream, _)) => {
                let _ = stream.set_nodelay(true);
                tokio::spawn(service.serve(Box::new(stream)));
            }
            Err(_) => tokio::task::yield_now().await,
        }
    }
}

impl Drop for TcpServer {
    fn drop(&mut self) {
        if let Some(stop) = self.stop.take() {
            let _ = stop.send(());
        }
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

/// Cases over a real socket.
pub struct CaseServer {
    player: CasePlayer,
    server: TcpServer,
}

impl CaseServer {
    /// Serves all stream cases.
    ///
    /// # Errors
    /// No socket can be bound.
    ///
    /// # Panics
    /// When a case cannot be read.
    pub fn start() -> io::Result<Self> {
        Self::with(stream_cases())
    }

    /// Serves these cases.
    ///
    /// # Errors
    /// No socket can be bound.
    pub fn with(cases: Vec<Case>) -> io::Result<Self> {
        let player = CasePlayer::new(cases);
        let server = TcpServer::start(player.clone())?;
        Ok(Self { player, server })
    }

    /// The port.
    pub const fn port(&self) -> u16 {
        self.server.port()
    }

    /// Base URL of a case, `/v1` included. `key` is `<id>` or `<id>@<key>`.
    pub fn base_url(&self, key: &str) -> String {
        self.player.base_url(key)
    }

    /// Address of a case without `/v1`.
    pub fn root_url(&self, key: &str) -> String {
        self.player.root_url(key)
    }

    /// What was received.
    pub fn log(&self) -> &Log {
        self.player.log()
    }

    /// Connections opened so far.
    pub fn connections(&self) -> u64 {
        self.player.connections()
    }
}
