//! CSV: one row per attempt, for spreadsheets, scripts and `summary` without a store.
//!
//! * One header, one physical line per attempt (RFC 4180, UTF-8, `\n`): line breaks and other control characters
//!   inside a field are escaped, so that a file can be cut, joined and counted with line tools.
//! * A row is written with one call under an advisory lock of the file, so that any number of processes may append.
//! * The last column is the format. No beginning of a row ends with it, so that a row cut by `kill -9` or a full
//!   disk can be told from a whole one even when only its last byte is missing.

mod append;
mod columns;
mod error;
mod line;
mod read;

pub use append::{CsvAppender, LOCK_LIMIT};
pub use columns::{COLUMNS, CSV_FORMAT, OPTIONAL_COLUMNS};
pub use error::CsvError;
pub use line::LINE_LIMIT_BYTES;
pub use read::{CsvBurst, CsvRead, CsvWarning, read};
