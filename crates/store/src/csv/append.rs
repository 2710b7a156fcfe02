//! Appending: any number of processes, one header, whole rows only.

use std::fs::{File, OpenOptions, TryLockError};
use std::io::{BufRead as _, BufReader, Read as _, Seek as _, SeekFrom, Write as _};
use std::path::{Path, PathBuf};
use std::thread;
use std::time::{Duration, Instant};

use peaklane_core::attempt::AttemptRecord;
use peaklane_core::burst::BurstHeader;

use super::columns::{check_exact, header_line, row};
use super::error::CsvError;
use super::line::{LINE_LIMIT_BYTES, Line};
use crate::format::FileId;

/// How long the lock of another program is waited for; ours hold it for some microseconds.
pub const LOCK_LIMIT: Duration = Duration::from_secs(10);

/// Between two looks at a foreign lock.
const LOCK_STEP: Duration = Duration::from_micros(200);

/// A CSV file opened for appending.
///
/// Rows are handed to the system with one call each, so that `kill -9` loses none that [`CsvAppender::append`] has
/// returned for. [`CsvAppender::sync`] makes them survive a power cut too.
#[derive(Debug)]
pub struct CsvAppender {
    path: PathBuf,
    file: File,
    id: Option<FileId>,
}

impl CsvAppender {
    /// Opens or makes the file and writes the header if it has none.
    ///
    /// # Errors
    /// [`CsvError::OtherColumns`] when the header is not exactly [`super::COLUMNS`]; otherwise what the system refused.
    pub fn open(path: &Path) -> Result<Self, CsvError> {
        if path.is_dir() {
            return Err(CsvError::Folder { path: path.to_path_buf() });
        }
        // Before it is opened: opening a pipe could wait for ever.
        if path.metadata().is_ok_and(|about| !about.is_file()) {
            return Err(CsvError::NotRegular { path: path.to_path_buf() });
        }
        let file = OpenOptions::new()
            .read(true)
            .append(true)
            .create(true)
            .open(path)
            .map_err(|e| CsvError::io(path, "open", e))?;
        let mut this = Self { path: path.to_path_buf(), file, id: FileId::of(path) };
        this.locked(|this| {
            let start = this.begin()?;
            this.put(&start)
        })?;
        Ok(this)
    }

    /// The file.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Appends one attempt as one line.
    ///
    /// A file that was removed or replaced meanwhile is opened (and made) again, so that the row lands where the path
    /// points.
    ///
    /// # Errors
    /// What the system refused; the file then ends where it ended before, with whole rows only.
    pub fn append(&mut self, header: &BurstHeader, attempt: &AttemptRecord) -> Result<(), CsvError> {
        if FileId::of(&self.path) != self.id || self.id.is_none() {
            *self = Self::open(&self.path)?;
        }
        let mut line = Line::default();
        row(&mut line, header, attempt);
        let line = line.finish();
        self.locked(|this| {
            // Looked at for every row: another process may have died in the middle of its own.
            let mut bytes = this.gap()?;
            bytes.push_str(&line);
            bytes.push('\n');
            this.put(&bytes)
        })
    }

    /// Waits until everything written is on the disk itself.
    ///
    /// # Errors
    /// What the system refused.
    pub fn sync(&self) -> Result<(), CsvError> {
        self.file.sync_data().map_err(|e| CsvError::io(&self.path, "write to", e))
    }

    /// Runs `work` with the file's advisory lock held.
    fn locked<T>(&mut self, work: impl FnOnce(&mut Self) -> Result<T, CsvError>) -> Result<T, CsvError> {
        let until = Instant::now() + LOCK_LIMIT;
        loop {
            match self.file.try_lock() {
                Ok(()) => break,
                Err(TryLockError::WouldBlock) if Instant::now() < until => thread::sleep(LOCK_STEP),
                Err(TryLockError::WouldBlock) => return Err(CsvError::Locked { path: self.path.clone() }),
                Err(TryLockError::Error(e)) => return Err(CsvError::io(&self.path, "lock", e)),
            }
        }
        let done = work(self);
        // Closing the file would unlock it too; an error here has lost nothing.
        let _ = self.file.unlock();
        done
    }

    /// What a file needs before its first row: the header when it is new. Refuses other columns.
    fn begin(&mut self) -> Result<String, CsvError> {
        let header = header_line();
        let mut first = Vec::new();
        let read = self.file.seek(SeekFrom::Start(0)).and_then(|_| {
            let mut lines = BufReader::new(&self.file).take(LINE_LIMIT_BYTES as u64);
            lines.read_until(b'\n', &mut first)
        });
        read.map_err(|e| CsvError::io(&self.path, "read", e))?;
        let text = String::from_utf8_lossy(&first);
        if !text.ends_with('\n') && text != header && header.starts_with(&*text) {
            // Nothing, or a header that was cut while it was written: there is no row yet.
            self.file.set_len(0).map_err(|e| CsvError::io(&self.path, "write to", e))?;
            return Ok(header + "\n");
        }
        check_exact(&self.path, &text)?;
        self.gap()
    }

    /// What has to stand before the next row: a line end after a line that was cut, the header in an emptied file.
    fn gap(&mut self) -> Result<String, CsvError> {
        let mut last = [0u8; 1];
        let read = self.file.seek(SeekFrom::End(0)).and_then(|length| {
            if length > 0 {
                self.file.seek(SeekFrom::Start(length - 1))?;
                self.file.read_exact(&mut last)?;
            }
            Ok(length)
        });
        Ok(match read.map_err(|e| CsvError::io(&self.path, "read", e))? {
            0 => header_line() + "\n",
            _ if last == *b"\n" => String::new(),
            _ => "\n".to_owned(),
        })
    }

    /// One call; when the system takes only a part of it and no more, the part is taken back.
    fn put(&mut self, text: &str) -> Result<(), CsvError> {
        if text.is_empty() {
            return Ok(());
        }
        let before = self.file.metadata().map_err(|e| CsvError::io(&self.path, "write to", e))?.len();
        self.file.write_all(text.as_bytes()).map_err(|e| {
            // Should this fail too, the next appender and every reader still see a cut line for what it is.
            let _ = self.file.set_len(before);
            CsvError::io(&self.path, "write to", e)
        })
    }
}
