//! What stops the store, on which file, and what to do about it.

use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use rusqlite::ErrorCode;
use thiserror::Error;

/// Why a store could not be opened, read or written. Clones are cheap: every later caller hears of the first failure.
#[derive(Clone, Debug, Error)]
pub enum StoreError {
    /// There is no file, and reading makes none.
    #[error("there is no store at `{}`", path.display())]
    Missing {
        /// The store.
        path: PathBuf,
    },
    /// A folder, a pipe or a device stands where the file should be.
    #[error("`{}` is no regular file", path.display())]
    NoFile {
        /// The store.
        path: PathBuf,
    },
    /// The file is something else than SQLite, or empty where something should be read.
    #[error("`{}` is no store: {what}", path.display())]
    NoStore {
        /// The store.
        path: PathBuf,
        /// What it is instead.
        what: String,
    },
    /// Written by a newer peaklane.
    #[error("the store `{}` has format {found}, this version knows formats up to {ours}", path.display())]
    NewerFormat {
        /// The store.
        path: PathBuf,
        /// Its format number.
        found: i64,
        /// The newest format of this version.
        ours: i64,
    },
    /// An older format on a medium that cannot be written, so that it cannot be brought up to date.
    #[error("the store `{}` has format {found} and cannot be brought to format {ours} in place", path.display())]
    OlderFormat {
        /// The store.
        path: PathBuf,
        /// Its format number.
        found: i64,
        /// The format that is needed.
        ours: i64,
        /// Why it could not be written.
        #[source]
        source: Box<StoreError>,
    },
    /// Records that are still in the write-ahead log cannot be seen from here.
    #[error("the store `{}` holds records in `{}-wal` that a read-only folder keeps out of reach", path.display(), path.display())]
    WalOutOfReach {
        /// The store.
        path: PathBuf,
    },
    /// No room on the disk.
    #[error("cannot write to the store `{}`: the disk is full", path.display())]
    Full {
        /// The store.
        path: PathBuf,
        /// SQLite's words.
        #[source]
        source: Arc<rusqlite::Error>,
    },
    /// Another process held the lock for longer than [`crate::BUSY_LIMIT`].
    #[error("the store `{}` is locked by another process", path.display())]
    Busy {
        /// The store.
        path: PathBuf,
        /// SQLite's words.
        #[source]
        source: Arc<rusqlite::Error>,
    },
    /// File, folder or medium is write protected.
    #[error("the store `{}` cannot be written: it is read-only", path.display())]
    ReadOnly {
        /// The store.
        path: PathBuf,
        /// SQLite's words.
        #[source]
        source: Arc<rusqlite::Error>,
    },
    /// The file was removed or replaced while it was being written.
    #[error("the store `{}` was removed or replaced while it was in use", path.display())]
    Gone {
        /// The store.
        path: PathBuf,
    },
    /// The content contradicts itself.
    #[error("the store `{}` is damaged: {what}", path.display())]
    Damaged {
        /// The store.
        path: PathBuf,
        /// What does not fit.
        what: String,
    },
    /// A bug: the same attempt or burst was recorded twice, or belongs to nothing.
    #[error("bug: {what} (store `{}`)", path.display())]
    Bug {
        /// The store.
        path: PathBuf,
        /// What was recorded wrongly.
        what: String,
    },
    /// The store was closed before this record came.
    #[error("the store `{}` is closed", path.display())]
    Closed {
        /// The store.
        path: PathBuf,
    },
    /// The system refused something.
    #[error("cannot {doing} `{}`", path.display())]
    Io {
        /// The file.
        path: PathBuf,
        /// What was tried: "open", "read".
        doing: &'static str,
        /// The system's words.
        #[source]
        source: Arc<io::Error>,
    },
    /// Anything else that SQLite refused.
    #[error("cannot {doing} the store `{}`", path.display())]
    Sqlite {
        /// The store.
        path: PathBuf,
        /// What was tried: "open", "write", "read".
        doing: &'static str,
        /// SQLite's words.
        #[source]
        source: Arc<rusqlite::Error>,
    },
}

impl StoreError {
    /// Sorts an error of SQLite into the classes above.
    pub(crate) fn sqlite(path: &Path, doing: &'static str, error: rusqlite::Error) -> Self {
        let path = path.to_path_buf();
        let code = error.sqlite_error_code();
        let source = Arc::new(error);
        match code {
            Some(ErrorCode::DiskFull) => Self::Full { path, source },
            Some(ErrorCode::DatabaseBusy | ErrorCode::DatabaseLocked) => Self::Busy { path, source },
            Some(ErrorCode::ReadOnly) => Self::ReadOnly { path, source },
            Some(ErrorCode::NotADatabase) => Self::NoStore { path, what: "it is no SQLite database".to_owned() },
            Some(ErrorCode::DatabaseCorrupt) => Self::Damaged { path, what: source.to_string() },
            _ => Self::Sqlite { path, doing, source },
        }
    }

    pub(crate) fn io(path: &Path, doing: &'static str, error: io::Error) -> Self {
        Self::Io { path: path.to_path_buf(), doing, source: Arc::new(error) }
    }

    /// The next thing to try, if there is an obvious one.
    pub fn hint(&self) -> Option<String> {
        Some(match self {
            Self::Missing { .. } => {
                "run `peaklane burst` first, or name the store with `--store sqlite:PATH`".to_owned()
            }
            Self::NoFile { .. } | Self::NoStore { .. } => {
                "name another file with `--store sqlite:PATH`; this one was left as it is".to_owned()
            }
            Self::NewerFormat { found, .. } => format!(
                "use the peaklane that wrote it (format {found}) or a newer one, or start a new store with `--store sqlite:PATH`; this one was left as it is"
            ),
            Self::OlderFormat { .. } => "copy the store to a folder that can be written and open the copy".to_owned(),
            Self::WalOutOfReach { path } => format!(
                "copy `{}` and `{}-wal` together to a folder that can be written and open the copy",
                path.display(),
                path.display()
            ),
            Self::Full { .. } => {
                "free some space and run again; what was committed before is kept and can be read".to_owned()
            }
            Self::Busy { .. } => {
                "close the program that holds the store (an open transaction in `sqlite3`, a backup), then run again"
                    .to_owned()
            }
            Self::ReadOnly { path, .. } => {
                format!("make `{}` and its folder writable, or name another store", path.display())
            }
            Self::Gone { .. } => {
                "do not move or delete a store while peaklane runs; start again, a new store is made when none is there"
                    .to_owned()
            }
            Self::Damaged { path, .. } => format!(
                "keep a copy, then `sqlite3 {} .recover | sqlite3 recovered.db` saves what can be read",
                path.display()
            ),
            Self::Sqlite { path, source, .. } => match source.sqlite_error_code() {
                Some(ErrorCode::CannotOpen) => {
                    format!("check that the folder of `{}` exists and that you may write there", path.display())
                }
                Some(ErrorCode::SystemIoFailure) => {
                    "check the disk, its quota and the file-size limit (`ulimit -f`); what was committed before is kept"
                        .to_owned()
                }
                _ => return None,
            },
            Self::Io { .. } => "check that you may read the file and its folder".to_owned(),
            Self::Bug { .. } | Self::Closed { .. } => return None,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_full_disk_is_told_as_one() {
        let conn = rusqlite::Connection::open_in_memory().unwrap();
        conn.execute_batch("PRAGMA max_page_count=2; CREATE TABLE t (x)").unwrap();
        let refused = conn.execute("INSERT INTO t VALUES (zeroblob(100000))", []).unwrap_err();
        let error = StoreError::sqlite(Path::new("a.db"), "write", refused);
        assert_eq!(error.to_string(), "cannot write to the store `a.db`: the disk is full");
        assert!(error.hint().is_some_and(|h| h.contains("committed before is kept")));
    }
}
