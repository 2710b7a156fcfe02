//! Reading small text files, with words for everything that can be the matter with one.

use std::fs::{self, File};
use std::io::{self, Read};
use std::path::Path;

/// What is the matter with a file. Holds nothing of what is in it, and no path: whoever reads knows it.
#[derive(Debug, thiserror::Error)]
pub enum FileFault {
    /// Nothing there.
    #[error("there is no such file")]
    Missing,
    /// A symbolic link whose target is not there.
    #[error("it is a link to something that is not there")]
    DanglingLink,
    /// A folder.
    #[error("it is a folder")]
    Folder,
    /// A pipe, a device, a socket: reading it could wait for ever.
    #[error("it is no regular file")]
    NotRegular,
    /// Longer than what is reasonable.
    #[error("it is {bytes} bytes long, more than {most}")]
    TooLarge {
        /// Its length.
        bytes: u64,
        /// The most that is read.
        most: usize,
    },
    /// Not UTF-8.
    #[error("it is no text in UTF-8")]
    NotText,
    /// The system refused.
    #[error("it cannot be read")]
    Unreadable(#[source] io::Error),
}

/// The text of a file of at most `most` bytes.
///
/// # Errors
/// [`FileFault`].
pub(crate) fn read_text(path: &Path, most: usize) -> Result<String, FileFault> {
    let about = fs::metadata(path).map_err(|error| match error.kind() {
        // `a/b` where `a` is a file
        io::ErrorKind::NotFound | io::ErrorKind::NotADirectory if path.symlink_metadata().is_err() => {
            FileFault::Missing
        }
        io::ErrorKind::NotFound => FileFault::DanglingLink,
        _ => FileFault::Unreadable(error),
    })?;
    if about.is_dir() {
        return Err(FileFault::Folder);
    }
    if !about.is_file() {
        return Err(FileFault::NotRegular);
    }
    let mut bytes = Vec::new();
    // one byte more than allowed shows a file that grew since it was looked at
    let bound = most as u64 + 1;
    File::open(path).and_then(|file| file.take(bound).read_to_end(&mut bytes)).map_err(FileFault::Unreadable)?;
    if bytes.len() > most {
        return Err(FileFault::TooLarge { bytes: about.len().max(bound), most });
    }
    String::from_utf8(bytes).map_err(|_| FileFault::NotText)
}
