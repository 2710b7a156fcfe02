//! Request bodies on disk, for those who ask for them: one file of lines per session, in the form that `summary sessions`
//! reads, readable by its owner alone, without keys.

use std::collections::HashMap;
use std::fs::{self, File, OpenOptions};
use std::io::Write;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use peaklane_core::lane::Api;
use peaklane_core::prefix::redact_keys;
use serde_json::value::RawValue;

/// Most files that are open at once; the oldest is closed and opened again when it is needed.
const MOST_FILES: usize = 64;

/// The folder cannot be used.
#[derive(Debug, thiserror::Error)]
#[error("cannot keep request bodies in `{}`", .folder.display())]
pub struct KeepError {
    /// The folder.
    pub folder: PathBuf,
    /// What the system said.
    #[source]
    pub source: std::io::Error,
}

/// Keeps bodies.
#[derive(Debug)]
pub struct Bodies {
    folder: PathBuf,
    files: HashMap<String, (File, u64)>,
    used: u64,
    /// First moment of each session.
    begins: HashMap<String, i64>,
    /// Bodies that could not be written.
    lost: Arc<AtomicU64>,
}

impl Bodies {
    /// In this folder, which is made where there is none.
    ///
    /// # Errors
    /// [`KeepError`] where it cannot be made or written to.
    pub fn in_folder(folder: &Path) -> Result<Self, KeepError> {
        let failed = |source| KeepError { folder: folder.to_path_buf(), source };
        fs::create_dir_all(folder).map_err(failed)?;
        let probe = folder.join(".peaklane-probe");
        private(&probe).and_then(|_| fs::remove_file(&probe)).map_err(failed)?;
        Ok(Self {
            folder: folder.to_path_buf(),
            files: HashMap::new(),
            used: 0,
            begins: HashMap::new(),
            lost: Arc::new(AtomicU64::new(0)),
        })
    }

    /// Bodies that could not be written, as they come.
    pub fn lost(&self) -> Arc<AtomicU64> {
        Arc::clone(&self.lost)
    }

    /// Keeps one body. What cannot be written is counted; the call goes on.
    pub fn keep(&mut self, session: &str, seq: u32, unix_us: i64, harness: Option<&str>, api: Api, body: &[u8]) {
        if self.write(session, seq, unix_us, harness, api, body).is_none() {
            self.lost.fetch_add(1, Ordering::Relaxed);
        }
    }

    fn write(
        &mut self,
        session: &str,
        seq: u32,
        unix_us: i64,
        harness: Option<&str>,
        api: Api,
        body: &[u8],
    ) -> Option<()> {
        let text = redact_keys(std::str::from_utf8(body).ok()?);
        // In one line, whatever line breaks the client put between its values.
        let body = RawValue::from_string(one_line(&text)).ok()?;
        let begin = *self.begins.entry(session.to_owned()).or_insert(unix_us);
        let (harness, version) = harness.map_or((None, None), |agent| {
            let (name, version) = agent.split_once('/').unwrap_or((agent, ""));
            (Some(name), version.split_whitespace().next().filter(|v| !v.is_empty()))
        });
        let line = serde_json::to_string(&Line {
            harness,
            version,
            session,
            seq,
            t_ms: (unix_us - begin) / 1_000,
            api: api.name(),
            body: &body,
        });
        let mut line = line.ok()?;
        line.push('\n');
        self.file(session).ok()?.write_all(line.as_bytes()).ok()
    }

    fn file(&mut self, session: &str) -> std::io::Result<&mut File> {
        self.used += 1;
        let used = self.used;
        if !self.files.contains_key(session) {
            if self.files.len() >= MOST_FILES
                && let Some(oldest) = self.files.iter().min_by_key(|(_, (_, used))| *used).map(|(name, _)| name.clone())
            {
                self.files.remove(&oldest);
            }
            let file = private(&self.folder.join(format!("{}.jsonl", safe(session))))?;
            self.files.insert(session.to_owned(), (file, used));
        }
        let (file, last) = self.files.get_mut(session).ok_or(std::io::ErrorKind::NotFound)?;
        *last = used;
        Ok(file)
    }
}

#[derive(serde::Serialize)]
struct Line<'a> {
    harness: Option<&'a str>,
    version: Option<&'a str>,
    session: &'a str,
    seq: u32,
    t_ms: i64,
    api: &'a str,
    body: &'a RawValue,
}

/// A file that only its owner can read, for appending.
fn private(path: &Path) -> std::io::Result<File> {
    let mut options = OpenOptions::new();
    options.create(true).append(true);
    #[cfg(unix)]
    {
        use std::os::unix::fs::OpenOptionsExt;
        options.mode(0o600);
    }
    options.open(path)
}

/// Line breaks between values of JSON are white space; within texts they are escaped, so none of those is touched.
fn one_line(json: &str) -> String {
    json.replace(['\n', '\r'], " ")
}

/// A session's name as that of a file.
fn safe(session: &str) -> String {
    let plain = |c: char| if c.is_ascii_alphanumeric() || "-_.".contains(c) { c } else { '_' };
    let name: String = session.chars().take(100).map(plain).collect();
    // Neither hidden nor a folder above, nor without a name.
    match name.trim_start_matches('.') {
        "" => "_".to_owned(),
        name => name.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bodies_are_lines_that_can_be_read_again_without_keys_and_by_their_owner_alone() {
        let dir = tempfile::tempdir().unwrap();
        let folder = dir.path().join("bodies");
        let mut bodies = Bodies::in_folder(&folder).unwrap();
        let body = b"{\n  \"messages\": [{\"role\": \"user\", \"content\": \"use sk-abcdefgh12345678\\nhere\"}]}";
        bodies.keep("../run 1", 1, 5_000_000, Some("pi/0.7 x"), Api::Chat, body);
        bodies.keep("../run 1", 2, 5_250_000, None, Api::Chat, body);
        bodies.keep("../run 1", 3, 5_250_000, None, Api::Chat, b"\xff");
        let path = folder.join("_run_1.jsonl");
        let text = fs::read_to_string(&path).unwrap();
        assert!(!text.contains("sk-abc"));
        let calls: Vec<_> =
            text.lines().map(|line| peaklane_core::prefix::trace::TraceCall::read(line).unwrap()).collect();
        assert_eq!((calls.len(), calls[1].session()), (2, "../run 1"));
        assert_eq!(bodies.lost().load(Ordering::Relaxed), 1);
        #[cfg(unix)]
        {
            use std::os::unix::fs::PermissionsExt;
            assert_eq!(fs::metadata(&path).unwrap().permissions().mode() & 0o777, 0o600);
        }
        assert!(Bodies::in_folder(&path).is_err());
    }
}
