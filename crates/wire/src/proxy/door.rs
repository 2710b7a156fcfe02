//! The listening socket: lets clients in, one task each, and sees them out when the proxy stops.

use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use tokio::net::TcpListener;
use tokio::sync::{Semaphore, watch};
use tokio::task::JoinSet;
use tokio::time::{sleep, timeout};

use crate::proxy::serve::Proxy;

/// Pause after a failed accept (out of files, mostly), so that it is not tried again in a hot loop.
const ACCEPT_PAUSE: Duration = Duration::from_millis(20);
/// How often idle upstream connections are looked through.
const SWEEP_EVERY: Duration = Duration::from_secs(1);

/// Why a proxy cannot be reached where it should be.
#[derive(Debug, thiserror::Error)]
pub enum DoorError {
    /// The address is taken, or not ours.
    #[error("cannot listen on {address}")]
    Bind {
        /// The address.
        address: SocketAddr,
        /// What the system said.
        #[source]
        source: io::Error,
    },
}

impl DoorError {
    /// The next thing to try.
    pub fn hint(&self) -> Option<String> {
        let Self::Bind { address, source } = self;
        match source.kind() {
            io::ErrorKind::AddrInUse => Some(format!(
                "another program listens there, perhaps another proxy; stop it, or take a free port: --listen {}:0",
                address.ip()
            )),
            io::ErrorKind::AddrNotAvailable => Some("no interface of this machine has that address".into()),
            io::ErrorKind::PermissionDenied => Some("ports below 1024 are for root: take a higher one".into()),
            _ => None,
        }
    }
}

/// Serves on a listener until `stop` turns true, then waits up to `drain` for the requests at hand.
///
/// At most `clients` connections are open at once; more wait in the system's queue. Gives how many were cut off.
pub async fn open_doors(
    proxy: Arc<Proxy>,
    listener: TcpListener,
    clients: usize,
    mut stop: watch::Receiver<bool>,
    drain: Duration,
) -> usize {
    let room = Arc::new(Semaphore::new(clients));
    let told = stop.clone();
    let mut inside = JoinSet::new();
    let mut sweeps = tokio::time::interval(SWEEP_EVERY);
    loop {
        let accepted = async {
            let place = Arc::clone(&room).acquire_owned().await;
            (place, listener.accept().await)
        };
        tokio::select! {
            () = stopped(&mut stop) => break,
            Some(_) = inside.join_next() => {}
            _ = sweeps.tick() => proxy.sweep(),
            (place, accepted) = accepted => match accepted {
                Ok((stream, _)) => {
                    // Pieces are small and must leave at once. A socket that refuses the option is slow, not wrong.
                    let _ = stream.set_nodelay(true);
                    let (proxy, stop) = (Arc::clone(&proxy), told.clone());
                    inside.spawn(async move {
                        let _place = place;
                        proxy.serve(Box::new(stream), stop).await;
                    });
                }
                Err(_) => sleep(ACCEPT_PAUSE).await,
            }
        }
    }
    drop(listener);
    let leaving = async { while inside.join_next().await.is_some() {} };
    if timeout(drain, leaving).await.is_ok() {
        return 0;
    }
    let cut = inside.len();
    inside.shutdown().await;
    cut
}

/// Ready once the proxy is to stop, or nobody is left who could tell it to.
pub(crate) async fn stopped(stop: &mut watch::Receiver<bool>) {
    // An error is a sender that has gone, which is a stop too.
    let _ = stop.wait_for(|stop| *stop).await.map(drop);
}

/// Binds the address.
///
/// # Errors
/// [`DoorError::Bind`].
pub async fn listen(address: SocketAddr) -> Result<TcpListener, DoorError> {
    TcpListener::bind(address).await.map_err(|source| DoorError::Bind { address, source })
}
