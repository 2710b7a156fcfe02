//! What a command that measures asks of the system: open files, an event loop that survives full disks, signals.

use peaklane_core::config::LaneOrder;
use tokio::sync::watch;

use crate::failure::Failure;

/// A lane must not be blamed for a limit of this machine: connections need file descriptors.
///
/// * `at_once`: attempts in flight at one lane.
/// * `lanes`: how many there are; those of interleaved order are fired at side by side.
///
/// # Errors
/// [`Failure`] with exit code 2 when the system allows too few open files.
pub(super) fn raise_file_limit(at_once: u32, order: LaneOrder, lanes: usize) -> Result<(), Failure> {
    use rustix::process::{Resource, getrlimit, setrlimit};
    let at_once = u64::from(at_once);
    let lanes = if order == LaneOrder::Interleaved { lanes as u64 } else { 1 };
    // Store, CSV, event queue, standard streams and the resolver's sockets.
    let needed = at_once * lanes + 64;
    let mut limit = getrlimit(Resource::Nofile);
    if limit.current.is_none_or(|current| current >= needed) {
        grow_file_table(needed);
        return Ok(());
    }
    limit.current = limit.maximum.map(|hard| needed.min(hard)).or(Some(needed));
    if limit.current.is_some_and(|current| current >= needed) && setrlimit(Resource::Nofile, limit).is_ok() {
        grow_file_table(needed);
        return Ok(());
    }
    Err(Failure::usage(format!(
        "{at_once} connections at once need {needed} open files, more than this process may have"
    ))
    .with_hint("lower `--concurrency`, or raise the limit: ulimit -n"))
}

/// How many connections this process can have with `files` open files each, up to `wished`: the limit is raised as far as
/// the system lets it.
pub(super) fn connections_within_the_file_limit(wished: u32, files: u64) -> u32 {
    use rustix::process::{Resource, getrlimit, setrlimit};
    let needed = u64::from(wished) * files + 64;
    let mut limit = getrlimit(Resource::Nofile);
    if limit.current.is_some_and(|current| current < needed) {
        let before = limit.current;
        limit.current = limit.maximum.map(|hard| needed.min(hard)).or(Some(needed));
        if setrlimit(Resource::Nofile, limit).is_err() {
            limit.current = before;
        }
    }
    let room = limit.current.map_or(u64::from(wished), |current| current.saturating_sub(64) / files);
    u32::try_from(room.max(1)).unwrap_or(u32::MAX).min(wished)
}

/// Makes Linux enlarge this process's table of open files now. It would do so at 256, 512, ... descriptors in the middle
/// of the burst, and with several threads the one that opens a connection stands still for milliseconds meanwhile.
fn grow_file_table(needed: u64) {
    let highest = i32::try_from(needed).unwrap_or(i32::MAX);
    // Only the growth is wanted; where it fails the burst is as it would have been.
    let _ = rustix::io::fcntl_dupfd_cloexec(std::io::stderr(), highest - 1);
}

/// Takes the signal of the file size limit (`ulimit -f`), which would end the process without a word: the write that meets
/// the limit then fails like one that meets a full disk, and is told like it.
pub(super) fn survive_the_file_size_limit(runtime: &tokio::runtime::Runtime) {
    #[cfg(unix)]
    {
        use rustix::process::Signal;
        use tokio::signal::unix::{SignalKind, signal};
        let _inside = runtime.enter();
        // Where it cannot be taken, the limit ends the process as it always did. Once taken it stays so.
        drop(signal(SignalKind::from_raw(Signal::XFSZ.as_raw())));
    }
    #[cfg(not(unix))]
    let _ = runtime;
}

/// The first Ctrl-C or SIGTERM asks the bursts to stop, the second one ends the program.
pub(super) fn stop_on_signal(pull: watch::Sender<bool>) {
    tokio::spawn(async move {
        #[cfg(unix)]
        let mut term = tokio::signal::unix::signal(tokio::signal::unix::SignalKind::terminate()).ok();
        // The code with which the program ends, should it be the second signal.
        let mut asked = async || {
            #[cfg(unix)]
            if let Some(term) = &mut term {
                return tokio::select! {
                    pressed = tokio::signal::ctrl_c() => pressed.ok().map(|()| 130),
                    _ = term.recv() => Some(143),
                };
            }
            tokio::signal::ctrl_c().await.ok().map(|()| 130)
        };
        if asked().await.is_some() {
            pull.send_replace(true);
            if let Some(code) = asked().await {
                std::process::exit(code);
            }
        } else {
            // Without signals nothing pulls; the handle must outlive the bursts all the same.
            std::future::pending::<()>().await;
        }
    });
}
