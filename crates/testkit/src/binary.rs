//! Runs the real program in a folder of its own: scrubbed environment, captured output, a limit of time, and a search
//! of everything that it wrote for a secret.

use std::cell::RefCell;
use std::ffi::{OsStr, OsString};
use std::fs;
use std::io::{Read, Write};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD as BASE64;
use tempfile::TempDir;

/// How long a program may take unless the test says otherwise: generous, since the machine may be busy.
const DEFAULT_LIMIT: Duration = Duration::from_secs(60);

/// Grain of the waiting for a program's end.
const POLL: Duration = Duration::from_millis(2);

/// A temporary folder in which a program is run; it is the working directory, and `HOME` and `TMPDIR` lie in it, so
/// that whatever the program writes is found there. Removed on drop.
#[derive(Debug)]
pub struct Sandbox {
    program: PathBuf,
    dir: TempDir,
    env: Vec<(OsString, OsString)>,
    limit: Duration,
    said: RefCell<Vec<u8>>,
}

/// What a program did.
#[derive(Clone, Debug)]
pub struct Ran {
    /// Exit code; `None` when a signal ended it.
    pub code: Option<i32>,
    /// Standard output.
    pub stdout: String,
    /// Standard error.
    pub stderr: String,
    /// From start to end.
    pub elapsed: Duration,
}

impl Sandbox {
    /// A sandbox for this program: `Sandbox::new(env!("CARGO_BIN_EXE_peaklane"))`.
    ///
    /// # Panics
    /// When no folder can be made.
    pub fn new(program: impl Into<PathBuf>) -> Self {
        let dir = tempfile::Builder::new().prefix("peaklane-test-").tempdir().expect("a temporary folder");
        for sub in ["home", "tmp"] {
            fs::create_dir(dir.path().join(sub)).expect("a folder in the temporary folder");
        }
        Self { program: program.into(), dir, env: Vec::new(), limit: DEFAULT_LIMIT, said: RefCell::default() }
    }

    /// Sets a variable for all runs.
    #[must_use]
    pub fn env(mut self, name: impl Into<OsString>, value: impl Into<OsString>) -> Self {
        self.env.push((name.into(), value.into()));
        self
    }

    /// Sets the limit of time of a run (60 s by default).
    #[must_use]
    pub const fn limit(mut self, limit: Duration) -> Self {
        self.limit = limit;
        self
    }

    /// The folder.
    pub fn path(&self) -> &Path {
        self.dir.path()
    }

    /// Writes a file into the folder and says where it lies.
    ///
    /// # Panics
    /// When it cannot be written.
    pub fn file(&self, name: &str, text: &str) -> PathBuf {
        let path = self.path().join(name);
        fs::write(&path, text).unwrap_or_else(|e| panic!("cannot write {name}: {e}"));
        path
    }

    /// Reads a file of the folder as text.
    ///
    /// # Panics
    /// When it cannot be read.
    pub fn read(&self, name: &str) -> String {
        fs::read_to_string(self.path().join(name)).unwrap_or_else(|e| panic!("cannot read {name}: {e}"))
    }

    /// Runs the program to its end.
    ///
    /// # Panics
    /// When it cannot be started, or takes longer than the limit.
    pub fn run<A: AsRef<OsStr>>(&self, args: impl IntoIterator<Item = A>) -> Ran {
        self.start(args).wait()
    }

    /// Runs the program with text on its standard input.
    ///
    /// # Panics
    /// As [`Self::run`].
    pub fn run_with_input<A: AsRef<OsStr>>(&self, args: impl IntoIterator<Item = A>, input: &str) -> Ran {
        self.spawn(args, Some(input.as_bytes().to_vec())).wait()
    }

    /// Starts the program and lets it run, to be killed or waited for.
    ///
    /// # Panics
    /// When it cannot be started.
    pub fn start<A: AsRef<OsStr>>(&self, args: impl IntoIterator<Item = A>) -> Running<'_> {
        self.spawn(args, None)
    }

    fn spawn<A: AsRef<OsStr>>(&self, args: impl IntoIterator<Item = A>, input: Option<Vec<u8>>) -> Running<'_> {
        let mut command = Command::new(&self.program);
        command
            .args(args)
            .current_dir(self.path())
            .env_clear()
            // nothing of the caller's environment but where programs lie: no keys, proxies, lanes, colours
            .envs(std::env::var_os("PATH").map(|path| ("PATH", path)))
            .env("HOME", self.path().join("home"))
            .env("TMPDIR", self.path().join("tmp"))
            .env("TZ", "UTC")
            .env("LC_ALL", "C.UTF-8")
            .envs(self.env.iter().map(|(k, v)| (k, v)))
            .stdin(if input.is_some() { Stdio::piped() } else { Stdio::null() })
            .stdout(Stdio::piped())
            .stderr(Stdio::piped());
        let started = Instant::now();
        let mut child = command.spawn().unwrap_or_else(|e| panic!("cannot start {}: {e}", self.program.display()));
        if let (Some(mut stdin), Some(input)) = (child.stdin.take(), input) {
            // a program that reads nothing closes its end: no failure of the test
            std::thread::spawn(move || stdin.write_all(&input));
        }
        let stdout = collect(child.stdout.take());
        let stderr = collect(child.stderr.take());
        Running { sandbox: self, child, started, stdout: Some(stdout), stderr: Some(stderr) }
    }

    /// Asserts that a secret is in no output of any run so far and in no file or file name of the folder, neither as it
    /// is nor in base64. `except` names files (below the folder) that the test itself gave the secret to.
    ///
    /// # Panics
    /// When it is found; the message says where, and does not repeat it.
    pub fn assert_never_said(&self, secret: &str, except: &[&str]) {
        assert!(secret.len() >= 6, "a secret this short is found anywhere");
        let needles = [secret.as_bytes().to_vec(), BASE64.encode(secret).trim_end_matches('=').as_bytes().to_vec()];
        let holds = |bytes: &[u8]| needles.iter().any(|n| bytes.windows(n.len()).any(|w| w == n));
        assert!(!holds(&self.said.borrow()), "the secret is in what the program printed");
        let mut files = Vec::new();
        list(self.path(), &mut files);
        for file in files {
            let name = file.strip_prefix(self.path()).unwrap_or(&file).to_string_lossy().into_owned();
            assert!(!holds(name.as_bytes()), "the secret is in the name of a file");
            if !except.contains(&name.as_str()) {
                let bytes = fs::read(&file).unwrap_or_else(|e| panic!("cannot read {name}: {e}"));
                assert!(!holds(&bytes), "the secret is in the file {name}");
            }
        }
    }
}

/// A program that runs.
#[derive(Debug)]
pub struct Running<'a> {
    sandbox: &'a Sandbox,
    child: Child,
    started: Instant,
    stdout: Option<Said>,
    stderr: Option<Said>,
}

impl Running<'_> {
    /// Its process id.
    pub fn id(&self) -> u32 {
        self.child.id()
    }

    /// Waits until a line on its standard error begins with `begin`, and gives the rest of that line.
    ///
    /// # Panics
    /// When it ends, or the sandbox's limit is over, without such a line.
    pub fn wait_for_line(&mut self, begin: &str) -> String {
        loop {
            let ended = self.child.try_wait().expect("a child can be waited for").is_some();
            let said = self.stderr.as_ref().map_or_else(String::new, |said| {
                String::from_utf8_lossy(&said.bytes.lock().unwrap_or_else(PoisonError::into_inner)).into_owned()
            });
            // Whole lines only: the rest of one that is still being written would be cut.
            let whole = said.rfind('\n').map_or("", |at| &said[..at]);
            if let Some(rest) = whole.lines().find_map(|line| line.strip_prefix(begin)) {
                return rest.to_owned();
            }
            assert!(!ended && self.started.elapsed() < self.sandbox.limit, "no line `{begin}`; it said:\n{said}");
            std::thread::sleep(POLL);
        }
    }

    /// Sends it a signal, by the name that `kill` knows: `TERM`, `INT`.
    ///
    /// # Panics
    /// When the system refuses.
    pub fn signal(&self, name: &str) {
        let sent = Command::new("kill").args([format!("-{name}"), self.id().to_string()]).status();
        assert!(sent.is_ok_and(|status| status.success()), "cannot send SIG{name}");
    }

    /// Ends it like `kill -9`, and says what it had printed.
    ///
    /// # Panics
    /// When the system refuses.
    pub fn kill(mut self) -> Ran {
        self.child.kill().expect("a child can be killed");
        self.finish()
    }

    /// Waits for its end.
    ///
    /// # Panics
    /// When it takes longer than the sandbox's limit; it is killed then.
    pub fn wait(mut self) -> Ran {
        while self.child.try_wait().expect("a child can be waited for").is_none() {
            if self.started.elapsed() > self.sandbox.limit {
                self.child.kill().expect("a child can be killed");
                let ran = self.finish();
                panic!("not finished within {:?}; it said:\n{}\n{}", self.sandbox.limit, ran.stdout, ran.stderr);
            }
            std::thread::sleep(POLL);
        }
        self.finish()
    }

    fn finish(&mut self) -> Ran {
        let status = self.child.wait().expect("a child can be waited for");
        let elapsed = self.started.elapsed();
        let text = |said: Option<Said>| {
            let bytes = said.map_or_else(Vec::new, |said| {
                let _ = said.reader.join();
                std::mem::take(&mut *said.bytes.lock().unwrap_or_else(PoisonError::into_inner))
            });
            let mut said = self.sandbox.said.borrow_mut();
            said.extend_from_slice(&bytes);
            said.push(b'\n');
            String::from_utf8_lossy(&bytes).into_owned()
        };
        let (stdout, stderr) = (self.stdout.take(), self.stderr.take());
        Ran { code: status.code(), stdout: text(stdout), stderr: text(stderr), elapsed }
    }
}

impl Drop for Running<'_> {
    fn drop(&mut self) {
        // a test that failed must leave nothing running; one that waited has nothing left to end
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

impl Ran {
    /// Asserts the exit code and hands itself on.
    ///
    /// # Panics
    /// When it is another; the message has the whole output.
    #[track_caller]
    pub fn expect_code(self, code: i32) -> Self {
        let Self { stdout, stderr, .. } = &self;
        assert_eq!(self.code, Some(code), "exit code\n--- stdout\n{stdout}\n--- stderr\n{stderr}");
        self
    }

    /// Standard output as exactly one JSON value.
    ///
    /// # Panics
    /// When it is none, or more than one.
    #[track_caller]
    pub fn json(&self) -> serde_json::Value {
        serde_json::from_str(&self.stdout).unwrap_or_else(|e| {
            panic!("stdout is not one JSON value ({e}):\n{}\n--- stderr\n{}", self.stdout, self.stderr)
        })
    }
}

/// What a program says, as it says it.
#[derive(Debug)]
struct Said {
    bytes: Arc<Mutex<Vec<u8>>>,
    reader: JoinHandle<()>,
}

fn collect(pipe: Option<impl Read + Send + 'static>) -> Said {
    let bytes = Arc::new(Mutex::new(Vec::new()));
    let shared = Arc::clone(&bytes);
    let reader = std::thread::spawn(move || {
        let Some(mut pipe) = pipe else { return };
        let mut piece = [0; 8 << 10];
        while let Ok(n) = pipe.read(&mut piece) {
            if n == 0 {
                return;
            }
            shared.lock().unwrap_or_else(PoisonError::into_inner).extend_from_slice(&piece[..n]);
        }
    });
    Said { bytes, reader }
}

fn list(dir: &Path, files: &mut Vec<PathBuf>) {
    for entry in fs::read_dir(dir).into_iter().flatten().flatten() {
        match entry.file_type() {
            Ok(kind) if kind.is_dir() => list(&entry.path(), files),
            Ok(kind) if kind.is_file() => files.push(entry.path()),
            _ => {} // links lead out of the folder, or to what is listed anyway
        }
    }
}

#[cfg(all(test, unix))]
mod tests {
    use super::*;

    const SECRET: &str = "hush-hush-4711";

    fn shell() -> Sandbox {
        Sandbox::new("/bin/sh")
    }

    fn panics(check: impl FnOnce()) -> bool {
        std::panic::catch_unwind(std::panic::AssertUnwindSafe(check)).is_err()
    }

    #[test]
    fn a_run_has_its_code_its_output_and_only_the_environment_that_it_was_given() {
        let sandbox = shell().env("LANE", "a");
        let ran = sandbox.run(["-c", "pwd; echo $LANE ${CARGO_MANIFEST_DIR:-none}; echo oops >&2; exit 3"]);
        let lines: Vec<&str> = ran.stdout.lines().collect();
        assert_eq!(fs::canonicalize(lines[0]).unwrap(), fs::canonicalize(sandbox.path()).unwrap());
        assert_eq!((lines[1], ran.stderr.as_str(), ran.code), ("a none", "oops\n", Some(3)));
        assert!(panics(|| drop(ran.expect_code(0))));
        let echoed = sandbox.run_with_input(["-c", "cat"], "{\"a\": 1}").expect_code(0);
        assert_eq!(echoed.json()["a"], 1);
    }

    #[test]
    fn a_run_over_its_limit_is_ended_and_a_killed_one_has_no_code() {
        let sandbox = shell().limit(Duration::from_millis(50));
        let begun = Instant::now();
        assert!(panics(|| drop(sandbox.run(["-c", "exec sleep 30"]))));
        assert!(begun.elapsed() < Duration::from_secs(20));
        let running = shell();
        let killed = running.start(["-c", "exec sleep 30"]).kill();
        assert_eq!(killed.code, None);
    }

    #[test]
    fn a_secret_is_found_wherever_it_was_written() {
        let clean = shell();
        clean.file("given.toml", SECRET);
        clean.run(["-c", "echo nothing; echo nothing > home/log"]);
        clean.assert_never_said(SECRET, &["given.toml"]);
        assert!(panics(|| clean.assert_never_said(SECRET, &[])));
        let encoded = BASE64.encode(SECRET);
        for script in [
            format!("echo {SECRET}"),
            format!("echo {SECRET} >&2"),
            format!("mkdir -p home/deep/er; echo x{SECRET}x > home/deep/er/db"),
            format!("echo {encoded} > tmp/log"),
            format!("touch {SECRET}.txt"),
        ] {
            let sandbox = shell();
            sandbox.run(["-c", &script]).expect_code(0);
            assert!(panics(|| sandbox.assert_never_said(SECRET, &[])), "{script}");
        }
    }
}
