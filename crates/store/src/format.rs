//! The file and its format: whose it is, which number it has, and how it is brought up to date.
//!
//! The format number is SQLite's `user_version`, the owner its `application_id`; both lie in the header, so that
//! `file peaklane.db` shows them. To add a format, append one SQL file to [`MIGRATIONS`], keep a file of the former
//! format under `tests/kept/`, and add it to the test that opens them.

use std::fs::{self, File};
use std::io::{ErrorKind, Read};
use std::path::{Path, PathBuf};
use std::thread;
use std::time::Duration;

use rusqlite::{Connection, ErrorCode, OpenFlags};

use crate::error::StoreError;

/// `PKLN` in ASCII: SQLite's `application_id` of every store of ours.
pub const APPLICATION_ID: i64 = 0x504B_4C4E;

/// One step per format: `MIGRATIONS[0]` makes format 1 out of nothing, the next makes 2 out of 1, and so on.
pub(crate) const MIGRATIONS: &[&str] = &[
    include_str!("schema/001.sql"),
    include_str!("schema/002.sql"),
    include_str!("schema/003.sql"),
    include_str!("schema/004.sql"),
];

/// The format that this version writes.
pub const FORMAT: i64 = MIGRATIONS.len() as i64;

/// How long a lock of another process is waited for, ours being held for milliseconds. Longer than a checkpoint of a
/// slow disk, shorter than a person's patience with a tool that says nothing.
pub const BUSY_LIMIT: Duration = Duration::from_secs(20);

/// Between two looks at a foreign lock. SQLite's own back-off grows to 100 ms and would starve beside a busy writer,
/// which leaves a gap of 2 ms between its transactions.
const BUSY_STEP: Duration = Duration::from_millis(1);

/// Whose file it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Identity {
    /// Nothing in it yet.
    Empty,
    /// Ours, with this format.
    Ours(i64),
    /// Another program's database.
    Foreign(i64),
}

/// Sleeps one step and says whether there is patience for more, after `times` steps so far.
fn wait_a_step(times: i32, patience: Duration) -> bool {
    thread::sleep(BUSY_STEP);
    BUSY_STEP.saturating_mul(times.unsigned_abs()) < patience
}

fn identify(conn: &Connection, path: &Path) -> Result<Identity, StoreError> {
    let one = |sql: &str| {
        conn.query_row(sql, [], |row| row.get::<_, i64>(0)).map_err(|e| StoreError::sqlite(path, "open", e))
    };
    let application = one("PRAGMA application_id")?;
    let format = one("PRAGMA user_version")?;
    let things = one("SELECT count(*) FROM sqlite_schema")?;
    Ok(match (application, format, things) {
        (APPLICATION_ID, 1.., _) => Identity::Ours(format),
        (0, 0, 0) => Identity::Empty,
        _ => Identity::Foreign(application),
    })
}

fn foreign(path: &Path, application: i64) -> StoreError {
    let what = format!("it is a database of another program (application id {application:#x})");
    StoreError::NoStore { path: path.to_path_buf(), what }
}

fn newer(path: &Path, found: i64, ours: i64) -> StoreError {
    StoreError::NewerFormat { path: path.to_path_buf(), found, ours }
}

/// The path as SQLite should see it: absolute, so that `:memory:` and an empty name are files like others.
pub(crate) fn full_path(path: &Path) -> Result<PathBuf, StoreError> {
    std::path::absolute(path).map_err(|e| StoreError::io(path, "open", e))
}

/// Looks at the file before SQLite does. `Ok(false)`: no such file.
fn looks_like_sqlite(path: &Path) -> Result<bool, StoreError> {
    let meta = match fs::metadata(path) {
        Ok(meta) => meta,
        Err(e) if e.kind() == ErrorKind::NotFound => return Ok(false),
        Err(e) => return Err(StoreError::io(path, "open", e)),
    };
    if !meta.is_file() {
        return Err(StoreError::NoFile { path: path.to_path_buf() });
    }
    if meta.len() > 0 {
        let mut magic = [0u8; 16];
        let read = File::open(path).and_then(|mut f| f.read_exact(&mut magic));
        match read {
            Ok(()) if &magic == b"SQLite format 3\0" => {}
            Err(e) if e.kind() != ErrorKind::UnexpectedEof => return Err(StoreError::io(path, "read", e)),
            _ => {
                let what = "it is no SQLite database".to_owned();
                return Err(StoreError::NoStore { path: path.to_path_buf(), what });
            }
        }
    }
    Ok(true)
}

/// Opens for writing, makes the file when there is none, and brings it to the newest format.
///
/// `synchronous=FULL`: the log is synced at every commit, so that a committed record survives not only `kill -9`
/// (for which `NORMAL` would do) but a power cut too. Group commit pays for it once per batch.
pub(crate) fn open_to_write(path: &Path, steps: &[&str], patience: Duration) -> Result<Connection, StoreError> {
    looks_like_sqlite(path)?;
    let failed = |e| StoreError::sqlite(path, "open", e);
    let flags = OpenFlags::SQLITE_OPEN_READ_WRITE | OpenFlags::SQLITE_OPEN_CREATE | OpenFlags::SQLITE_OPEN_NO_MUTEX;
    let mut conn = Connection::open_with_flags(path, flags).map_err(failed)?;
    conn.busy_handler(Some(move |times| wait_a_step(times, patience))).map_err(failed)?;
    let ours = steps.len() as i64;
    match identify(&conn, path)? {
        Identity::Foreign(application) => return Err(foreign(path, application)),
        Identity::Ours(found) if found > ours => return Err(newer(path, found, ours)),
        Identity::Ours(_) | Identity::Empty => {}
    }
    write_ahead(&conn, patience).map_err(failed)?;
    conn.execute_batch("PRAGMA synchronous=FULL; PRAGMA journal_size_limit=67108864").map_err(failed)?;
    migrate(&conn, path, steps)?;
    Ok(conn)
}

/// Turns the write-ahead log on. SQLite does not call the busy handler for this one, so two that start at once retry.
fn write_ahead(conn: &Connection, patience: Duration) -> rusqlite::Result<()> {
    let mut times = 0;
    loop {
        let mode = conn.query_row("PRAGMA journal_mode=WAL", [], |row| row.get::<_, String>(0));
        match mode {
            Ok(_) => return Ok(()),
            Err(e) if e.sqlite_error_code() == Some(ErrorCode::DatabaseBusy) && wait_a_step(times, patience) => {
                times += 1
            }
            Err(e) => return Err(e),
        }
    }
}

/// Runs the steps that the file lacks, all in one transaction: it has the old format or the new one, nothing between.
fn migrate(conn: &Connection, path: &Path, steps: &[&str]) -> Result<(), StoreError> {
    let failed = |e| StoreError::sqlite(path, "bring up to date", e);
    let ours = steps.len() as i64;
    if identify(conn, path)? == Identity::Ours(ours) {
        return Ok(());
    }
    // Foreign keys are off while tables are rebuilt (https://www.sqlite.org/lang_altertable.html, section 7).
    conn.execute_batch("PRAGMA foreign_keys=OFF; BEGIN IMMEDIATE").map_err(failed)?;
    let done = (|| {
        // Looked at again under the lock: another process may have been first.
        let from = match identify(conn, path)? {
            Identity::Empty => 0,
            Identity::Ours(found) if found <= ours => found,
            Identity::Ours(found) => return Err(newer(path, found, ours)),
            Identity::Foreign(application) => return Err(foreign(path, application)),
        };
        for step in steps.iter().skip(usize::try_from(from).unwrap_or(0)) {
            conn.execute_batch(step).map_err(failed)?;
        }
        conn.pragma_update(None, "application_id", APPLICATION_ID).map_err(failed)?;
        conn.pragma_update(None, "user_version", ours).map_err(failed)?;
        conn.execute_batch("COMMIT").map_err(failed)
    })();
    if done.is_err() {
        // The first error is the one to tell; SQLite may have rolled back by itself already.
        let _ = conn.execute_batch("ROLLBACK");
    }
    conn.execute_batch("PRAGMA foreign_keys=ON").map_err(failed)?;
    done
}

/// Opens for reading. Makes no file; waits for no writer; works on read-only media.
pub(crate) fn open_to_read(path: &Path, steps: &[&str]) -> Result<Connection, StoreError> {
    if !looks_like_sqlite(path)? {
        return Err(StoreError::Missing { path: path.to_path_buf() });
    }
    let ours = steps.len() as i64;
    let (conn, identity) = match connect_to_read(path, false) {
        Err(e) if out_of_reach(&e) => {
            // In a folder that cannot be written SQLite cannot make the index of the log. Without a log the file
            // alone is the whole truth and may be read as it is.
            if fs::metadata(wal_of(path)).is_ok_and(|m| m.len() > 0) {
                return Err(StoreError::WalOutOfReach { path: path.to_path_buf() });
            }
            connect_to_read(path, true)?
        }
        other => other?,
    };
    match identity {
        Identity::Ours(found) if found == ours => Ok(conn),
        Identity::Ours(found) if found > ours => Err(newer(path, found, ours)),
        Identity::Ours(found) => {
            drop(conn);
            open_to_write(path, steps, BUSY_LIMIT).map_err(|e| StoreError::OlderFormat {
                path: path.to_path_buf(),
                found,
                ours,
                source: Box::new(e),
            })?;
            open_to_read(path, steps)
        }
        Identity::Empty => Err(StoreError::NoStore { path: path.to_path_buf(), what: "it is empty".to_owned() }),
        Identity::Foreign(application) => Err(foreign(path, application)),
    }
}

fn connect_to_read(path: &Path, immutable: bool) -> Result<(Connection, Identity), StoreError> {
    let failed = |e| StoreError::sqlite(path, "open", e);
    // Not READ_ONLY where it can be helped: such a connection leaves its `-wal` and `-shm` files behind. SQLite falls
    // back by itself when the file is write protected, and `query_only` keeps this connection from changing anything.
    let flags = OpenFlags::SQLITE_OPEN_READ_WRITE | OpenFlags::SQLITE_OPEN_NO_MUTEX;
    let mut conn = if immutable {
        let flags = OpenFlags::SQLITE_OPEN_READ_ONLY | OpenFlags::SQLITE_OPEN_NO_MUTEX | OpenFlags::SQLITE_OPEN_URI;
        Connection::open_with_flags(format!("file:{}?immutable=1", percent(path)), flags).map_err(failed)?
    } else {
        Connection::open_with_flags(path, flags).map_err(failed)?
    };
    conn.busy_handler(Some(|times| wait_a_step(times, BUSY_LIMIT))).map_err(failed)?;
    let identity = identify(&conn, path)?;
    conn.execute_batch("PRAGMA query_only=ON").map_err(failed)?;
    Ok((conn, identity))
}

fn out_of_reach(error: &StoreError) -> bool {
    match error {
        StoreError::ReadOnly { .. } => true,
        StoreError::Sqlite { source, .. } => source.sqlite_error_code() == Some(ErrorCode::CannotOpen),
        _ => false,
    }
}

/// Where SQLite keeps the log of a file.
pub(crate) fn wal_of(path: &Path) -> PathBuf {
    let mut name = path.as_os_str().to_owned();
    name.push("-wal");
    PathBuf::from(name)
}

/// A path inside a `file:` address (https://www.sqlite.org/uri.html, section 3.1).
fn percent(path: &Path) -> String {
    let mut out = String::new();
    for byte in path.as_os_str().as_encoded_bytes() {
        match byte {
            b'/' | b'.' | b'-' | b'_' | b'~' | b'0'..=b'9' | b'a'..=b'z' | b'A'..=b'Z' => out.push(char::from(*byte)),
            other => out.push_str(&format!("%{other:02X}")),
        }
    }
    out
}

/// Which file a path names, so that a removed or replaced one is noticed: SQLite would go on writing into the void.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct FileId(u64, u64);

impl FileId {
    /// `None` when nothing is there.
    #[cfg(unix)]
    pub(crate) fn of(path: &Path) -> Option<Self> {
        use std::os::unix::fs::MetadataExt;
        fs::metadata(path).ok().map(|m| Self(m.dev(), m.ino()))
    }

    /// `None` when nothing is there. Other systems keep an open file from being removed, so being there is enough.
    #[cfg(not(unix))]
    pub(crate) fn of(path: &Path) -> Option<Self> {
        fs::metadata(path).ok().map(|_| Self(0, 0))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const STEPS: [&str; 2] = ["CREATE TABLE a (x INTEGER)", "ALTER TABLE a ADD COLUMN y INTEGER; CREATE TABLE b (z)"];

    fn version(path: &Path) -> i64 {
        let conn = Connection::open(path).unwrap();
        conn.query_row("PRAGMA user_version", [], |r| r.get(0)).unwrap()
    }

    #[test]
    fn an_older_store_keeps_its_rows_and_gets_the_steps_that_it_lacks() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("s.db");
        open_to_write(&path, &STEPS[..1], BUSY_LIMIT).unwrap().execute_batch("INSERT INTO a VALUES (7)").unwrap();
        assert_eq!(version(&path), 1);
        // Opening for reading brings it up to date too: a reader needs the columns of its own version.
        let conn = open_to_read(&path, &STEPS).unwrap();
        let row: (i64, Option<i64>) = conn.query_row("SELECT x, y FROM a", [], |r| Ok((r.get(0)?, r.get(1)?))).unwrap();
        assert_eq!(row, (7, None));
        assert_eq!(version(&path), 2);
    }

    #[test]
    fn a_step_that_fails_leaves_the_older_store_as_it_was() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("s.db");
        open_to_write(&path, &STEPS[..1], BUSY_LIMIT).unwrap().execute_batch("INSERT INTO a VALUES (7)").unwrap();
        let broken = [STEPS[0], "CREATE TABLE b (z); CREATE TABLE a (x)"];
        assert!(open_to_write(&path, &broken, BUSY_LIMIT).is_err());
        assert_eq!(version(&path), 1);
        let conn = open_to_read(&path, &STEPS[..1]).unwrap();
        assert_eq!(conn.query_row("SELECT count(*) FROM sqlite_schema WHERE name = 'b'", [], |r| r.get(0)), Ok(0));
        assert_eq!(conn.query_row("SELECT x FROM a", [], |r| r.get(0)), Ok(7));
    }

    #[test]
    fn a_reader_changes_nothing() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("with ?# and %41.db");
        drop(open_to_write(&path, &STEPS, BUSY_LIMIT).unwrap());
        let conn = open_to_read(&path, &STEPS).unwrap();
        assert!(conn.execute("INSERT INTO a VALUES (1, 2)", []).is_err());
        // The way for read-only folders reaches the same file, whatever its name.
        let (conn, identity) = connect_to_read(&path, true).unwrap();
        assert_eq!(identity, Identity::Ours(2));
        assert!(conn.execute("INSERT INTO a VALUES (1, 2)", []).is_err());
    }
}
