//! What is wrong with a CSV file, where, and what to do about it.

use std::io;
use std::path::{Path, PathBuf};

use thiserror::Error;

/// Why a CSV file could not be read or appended to.
#[derive(Debug, Error)]
pub enum CsvError {
    /// The system refused something.
    #[error("cannot {doing} `{}`", path.display())]
    Io {
        /// The file.
        path: PathBuf,
        /// What was tried: "open", "read", "write to", "lock".
        doing: &'static str,
        /// The system's words.
        #[source]
        source: io::Error,
    },
    /// A folder.
    #[error("`{}` is a folder, not a CSV file", path.display())]
    Folder {
        /// The path.
        path: PathBuf,
    },
    /// A pipe, a device, a socket: rows could not be looked at again, and a header could not be found.
    #[error("`{}` is no regular file", path.display())]
    NotRegular {
        /// The path.
        path: PathBuf,
    },
    /// Not one byte in it.
    #[error("`{}` is empty", path.display())]
    Empty {
        /// The file.
        path: PathBuf,
    },
    /// Its columns are not ours.
    #[error("`{}` has other columns: {difference}", path.display())]
    OtherColumns {
        /// The file.
        path: PathBuf,
        /// What is missing, unknown, or in another place.
        difference: String,
        /// The file separates fields by semicolons or tabs.
        separator: Option<char>,
    },
    /// One line cannot be true.
    #[error("line {line} of `{}`: {problem}", path.display())]
    Line {
        /// The file.
        path: PathBuf,
        /// Its number, from 1; the header is line 1.
        line: u64,
        /// What does not fit.
        problem: String,
    },
    /// Another program held the lock for longer than [`super::LOCK_LIMIT`].
    #[error("`{}` is locked by another program", path.display())]
    Locked {
        /// The file.
        path: PathBuf,
    },
}

impl CsvError {
    pub(super) fn io(path: &Path, doing: &'static str, source: io::Error) -> Self {
        Self::Io { path: path.to_path_buf(), doing, source }
    }

    /// The next thing to try, if there is an obvious one.
    pub fn hint(&self) -> Option<String> {
        Some(match self {
            Self::Io { source, path, .. } => match source.kind() {
                io::ErrorKind::NotFound => format!("check the name and that the folder of `{}` exists", path.display()),
                io::ErrorKind::PermissionDenied => {
                    "check that you may read and write the file and its folder".to_owned()
                }
                io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded | io::ErrorKind::FileTooLarge => {
                    "free some space and run again; the rows that were written before are kept whole".to_owned()
                }
                _ => return None,
            },
            Self::Folder { .. } => "name a file in it, for example `lane-a.csv`".to_owned(),
            Self::NotRegular { .. } => "name a file on a disk, for example `lane-a.csv`".to_owned(),
            Self::Empty { .. } => "a file written by `burst --csv` has a header; was another file meant?".to_owned(),
            Self::OtherColumns { separator: Some(_), .. } => {
                "export it with commas: fields are separated by `,`".to_owned()
            }
            Self::OtherColumns { .. } => {
                "use a file written by `burst --csv` of this version, or start a new one".to_owned()
            }
            Self::Line { .. } => "correct or delete that line; a spreadsheet may have changed it".to_owned(),
            Self::Locked { .. } => "close the program that holds the file, then run again".to_owned(),
        })
    }
}
