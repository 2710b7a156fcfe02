//! The real small model server (`scripts/real-server`): where it is, or how it is started for a test.

use std::net::TcpListener;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use crate::data::project_root;
use crate::require;

/// Its name in `PEAKLANE_REQUIRE`.
pub const NAME: &str = "real-server";

/// What to do to have it.
pub const HINT: &str = "set REAL_SERVER_URL or run scripts/real-server/start.sh";

/// A running model server. One that was started here is stopped on drop.
#[derive(Debug)]
pub struct RealServer {
    url: String,
    started: Option<Started>,
}

#[derive(Debug)]
struct Started {
    scripts: PathBuf,
    dir: PathBuf,
    port: u16,
}

impl RealServer {
    /// The server at `REAL_SERVER_URL`; without that, one started from `REAL_SERVER_DIR` on a free port (one thread of
    /// the embedded engine unless the environment says otherwise); without that, `None`, and the skip is on record.
    ///
    /// # Panics
    /// When `REAL_SERVER_DIR` is set and no server can be started from it, or when `PEAKLANE_REQUIRE` asks for the
    /// server and neither variable is set.
    pub fn find() -> Option<Self> {
        require::part(NAME, HINT, || {
            let variable = |name| std::env::var(name).ok().filter(|v| !v.is_empty());
            if let Some(url) = variable("REAL_SERVER_URL") {
                return Some(Self::at(&url));
            }
            let dir = variable("REAL_SERVER_DIR")?;
            let scripts = project_root().join("scripts/real-server");
            Some(Self::start(&scripts, Path::new(&dir)).unwrap_or_else(|e| panic!("no server from {dir}: {e}")))
        })
    }

    /// A server that runs already.
    pub fn at(url: &str) -> Self {
        Self { url: url.trim_end_matches('/').to_owned(), started: None }
    }

    /// Starts one with the scripts of that folder, installed in `dir`.
    ///
    /// # Errors
    /// The script fails or prints no address; its own words are in the message.
    pub fn start(scripts: &Path, dir: &Path) -> Result<Self, String> {
        // free now; another process may take it before the script does, which the script then says
        let port = TcpListener::bind(("127.0.0.1", 0))
            .and_then(|listener| listener.local_addr())
            .map_err(|e| format!("no free port: {e}"))?
            .port();
        let mut command = Command::new("bash");
        command.arg(scripts.join("start.sh")).arg(port.to_string()).env("REAL_SERVER_DIR", dir).stdin(Stdio::null());
        for (name, value) in [("REAL_SERVER_ENGINE", "embedded"), ("REAL_SERVER_THREADS", "1")] {
            if std::env::var_os(name).is_none() {
                command.env(name, value);
            }
        }
        let output = command.output().map_err(|e| format!("cannot run start.sh: {e}"))?;
        let stdout = String::from_utf8_lossy(&output.stdout);
        let last = stdout.lines().last().unwrap_or_default().trim();
        // from here on a failure stops what may be half started
        let mut server = Self::at(last);
        server.started = Some(Started { scripts: scripts.to_path_buf(), dir: dir.to_path_buf(), port });
        if !output.status.success() || !last.starts_with("http://") {
            return Err(format!("start.sh: {}: {}", output.status, String::from_utf8_lossy(&output.stderr).trim()));
        }
        Ok(server)
    }

    /// Base URL, `/v1` included.
    pub fn url(&self) -> &str {
        &self.url
    }
}

impl Drop for RealServer {
    fn drop(&mut self) {
        if let Some(Started { scripts, dir, port }) = &self.started {
            let _ = Command::new("bash")
                .arg(scripts.join("stop.sh"))
                .arg(port.to_string())
                .env("REAL_SERVER_DIR", dir)
                .stdin(Stdio::null())
                .output();
        }
    }
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::io::{Read, Write};
    use std::net::TcpStream;
    use std::time::Duration;

    use super::*;

    #[test]
    fn a_server_that_was_started_is_stopped_at_the_end_on_the_same_port() {
        let scripts = tempfile::tempdir().unwrap();
        let dir = tempfile::tempdir().unwrap();
        let start = "echo starting; echo $1 $REAL_SERVER_THREADS >$REAL_SERVER_DIR/up; echo http://127.0.0.1:$1/v1";
        fs::write(scripts.path().join("start.sh"), start).unwrap();
        fs::write(scripts.path().join("stop.sh"), "echo $1 >$REAL_SERVER_DIR/down").unwrap();
        let server = RealServer::start(scripts.path(), dir.path()).unwrap();
        let up = fs::read_to_string(dir.path().join("up")).unwrap();
        let (port, threads) = up.trim().split_once(' ').unwrap();
        assert_eq!(server.url(), format!("http://127.0.0.1:{port}/v1"));
        assert!(!threads.is_empty());
        assert!(!dir.path().join("down").exists());
        drop(server);
        assert_eq!(fs::read_to_string(dir.path().join("down")).unwrap().trim(), port);
    }

    #[test]
    fn a_script_that_fails_is_an_error_in_its_own_words() {
        let scripts = tempfile::tempdir().unwrap();
        let dir = tempfile::tempdir().unwrap();
        fs::write(scripts.path().join("start.sh"), "echo no model here >&2; exit 1").unwrap();
        fs::write(scripts.path().join("stop.sh"), "true").unwrap();
        let error = RealServer::start(scripts.path(), dir.path()).unwrap_err();
        assert!(error.contains("no model here"), "{error}");
    }

    #[test]
    fn the_real_server_lists_its_models_where_there_is_one() {
        let Some(server) = RealServer::find() else { return };
        let address = server.url().strip_prefix("http://").unwrap();
        let (host, path) = address.split_once('/').unwrap();
        let mut io = TcpStream::connect(host).unwrap();
        io.set_read_timeout(Some(Duration::from_secs(30))).unwrap();
        write!(io, "GET /{path}/models HTTP/1.1\r\nHost: {host}\r\nConnection: close\r\n\r\n").unwrap();
        let mut answer = String::new();
        io.read_to_string(&mut answer).unwrap();
        assert!(answer.starts_with("HTTP/1.1 200 ") && answer.contains("\"data\""), "{answer}");
    }
}
