//! Several processes, threads and readers on one file.

use std::fs;
use std::thread;
use std::time::Duration;

use peaklane_store::csv::{CsvAppender, CsvError, read};
use peaklane_store::{BurstFilter, Store, StoreError, StoreReader};

use crate::support::{bare, child, end, full, given_path, header};

const CHILDREN: u32 = 3;

#[test]
#[ignore = "child of processes_that_start_at_once_share_one_store"]
fn write_some() {
    let store = Store::open(&given_path()).unwrap();
    let sink = store.sink();
    for burst in 0..5 {
        let id = format!("{}-{burst}", std::process::id());
        let key = sink.begin_burst_blocking(&header(&id)).unwrap();
        for index in 0..400 {
            sink.attempt_blocking(key, full(index)).unwrap();
        }
        sink.end_burst_blocking(key, &end()).unwrap();
    }
    store.close().unwrap();
}

#[test]
fn processes_that_start_at_once_share_one_store() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("s.db");
    let children: Vec<_> = (0..CHILDREN).map(|_| child("sharing::write_some", &path).spawn().unwrap()).collect();
    for running in children {
        let output = running.wait_with_output().unwrap();
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stdout));
    }
    let reader = StoreReader::open(&path).unwrap();
    let bursts = reader.bursts(&BurstFilter::default()).unwrap();
    assert_eq!(bursts.len(), 5 * CHILDREN as usize);
    for burst in bursts {
        assert_eq!(burst.end, Some(end()));
        assert_eq!(reader.attempts(&burst.header.id).unwrap(), (0..400).map(full).collect::<Vec<_>>());
    }
}

#[test]
fn a_reader_beside_a_busy_writer_sees_whole_attempts_and_never_fewer_than_before() {
    let dir = tempfile::tempdir().unwrap();
    let store = Store::open(&dir.path().join("s.db")).unwrap();
    let sink = store.sink();
    let key = sink.begin_burst_blocking(&header("b")).unwrap();
    let reader = StoreReader::open(store.path()).unwrap();
    let writing = thread::spawn(move || {
        for index in 0..6_000 {
            sink.attempt_blocking(key, full(index)).unwrap();
        }
        sink.end_burst_blocking(key, &end()).unwrap();
    });
    let mut before = 0;
    loop {
        // Asked first: once the burst is over, all of it has to be there.
        let over = reader.burst("b").unwrap().unwrap().end.is_some();
        let attempts = reader.attempts("b").unwrap();
        assert!(attempts.len() >= before);
        before = attempts.len();
        assert_eq!(attempts, (0..u32::try_from(before).unwrap()).map(full).collect::<Vec<_>>());
        if over {
            break;
        }
    }
    writing.join().unwrap();
    assert_eq!(before, 6_000);
}

#[test]
fn a_lock_that_another_process_holds_for_a_moment_is_waited_for() {
    let dir = tempfile::tempdir().unwrap();
    let store = Store::open(&dir.path().join("s.db")).unwrap();
    let other = rusqlite::Connection::open(store.path()).unwrap();
    other.execute_batch("BEGIN IMMEDIATE").unwrap();
    let sink = store.sink();
    let writing = thread::spawn(move || sink.begin_burst_blocking(&header("b")));
    thread::sleep(Duration::from_millis(300));
    // A reader does not wait for a writer.
    assert_eq!(store.reader().unwrap().bursts(&BurstFilter::default()).unwrap(), []);
    other.execute_batch("ROLLBACK").unwrap();
    writing.join().unwrap().unwrap();
}

#[test]
#[cfg(unix)]
fn a_store_in_a_folder_that_cannot_be_written_can_be_read() {
    use std::os::unix::fs::PermissionsExt;
    let dir = tempfile::tempdir().unwrap();
    let folder = dir.path().join("sealed");
    fs::create_dir(&folder).unwrap();
    let path = folder.join("s.db");
    let store = Store::open(&path).unwrap();
    let key = store.sink().begin_burst_blocking(&header("b")).unwrap();
    store.sink().attempt_blocking(key, full(0)).unwrap();
    store.close().unwrap();
    fs::set_permissions(&path, fs::Permissions::from_mode(0o444)).unwrap();
    fs::set_permissions(&folder, fs::Permissions::from_mode(0o555)).unwrap();
    let read = StoreReader::open(&path).and_then(|r| r.attempts("b"));
    fs::set_permissions(&folder, fs::Permissions::from_mode(0o755)).unwrap();
    assert_eq!(read.unwrap(), [full(0)]);
}

#[test]
#[cfg(unix)]
fn records_in_a_log_that_cannot_be_reached_are_never_left_out_in_silence() {
    use std::os::unix::fs::PermissionsExt;
    let dir = tempfile::tempdir().unwrap();
    let store = Store::open(&dir.path().join("s.db")).unwrap();
    store.sink().begin_burst_blocking(&header("b")).unwrap();
    // Copied while it is open, as a backup of a machine that died would be: file and log without the index.
    let sealed = dir.path().join("sealed");
    fs::create_dir(&sealed).unwrap();
    for name in ["s.db", "s.db-wal"] {
        fs::copy(dir.path().join(name), sealed.join(name)).unwrap();
    }
    fs::set_permissions(&sealed, fs::Permissions::from_mode(0o555)).unwrap();
    let read = StoreReader::open(&sealed.join("s.db")).and_then(|r| r.bursts(&BurstFilter::default()));
    fs::set_permissions(&sealed, fs::Permissions::from_mode(0o755)).unwrap();
    match read {
        // Root may write there all the same.
        Ok(bursts) => assert_eq!(bursts.len(), 1),
        Err(error) => {
            assert!(matches!(error, StoreError::WalOutOfReach { .. }), "{error:?}");
            assert!(error.hint().is_some_and(|h| h.contains("s.db-wal")), "{error:?}");
        }
    }
}

#[test]
#[ignore = "child of processes_that_append_at_once_write_one_header_and_whole_rows"]
fn append_some() {
    let id = std::process::id().to_string();
    let mut csv = CsvAppender::open(&given_path()).unwrap();
    for index in 0..500 {
        csv.append(&header(&id), &bare(index)).unwrap();
    }
}

#[test]
fn processes_that_append_at_once_write_one_header_and_whole_rows() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("lane.csv");
    fs::write(&path, "").unwrap();
    let children: Vec<_> = (0..CHILDREN).map(|_| child("sharing::append_some", &path).spawn().unwrap()).collect();
    for running in children {
        assert!(running.wait_with_output().unwrap().status.success());
    }
    let text = fs::read_to_string(&path).unwrap();
    assert_eq!(text.lines().filter(|l| l.starts_with("tool_version,")).count(), 1);
    assert!(text.starts_with("tool_version,"));
    assert_eq!(text.lines().count(), 1 + 500 * CHILDREN as usize);
    let found = read(&path).unwrap();
    assert_eq!(found.warnings, []);
    assert_eq!(found.bursts.iter().map(|b| b.figures.len()).collect::<Vec<_>>(), [500; CHILDREN as usize]);
}

#[test]
fn a_csv_file_that_another_program_locks_for_a_moment_is_waited_for() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("lane.csv");
    let mut csv = CsvAppender::open(&path).unwrap();
    let holder = fs::File::open(&path).unwrap();
    holder.lock().unwrap();
    let writing = thread::spawn(move || csv.append(&header("b"), &bare(0)));
    thread::sleep(Duration::from_millis(100));
    assert_eq!(read(&path).unwrap().bursts, []);
    holder.unlock().unwrap();
    writing.join().unwrap().unwrap();
    assert_eq!(read(&path).unwrap().bursts.len(), 1);
    assert!(matches!(CsvAppender::open(dir.path()), Err(CsvError::Folder { .. })));
}

#[cfg(unix)]
#[test]
fn rows_are_not_appended_to_a_device() {
    // `/dev/full` reads as zeros without an end and takes nothing; a pipe would wait for its other end.
    for path in ["/dev/full", "/dev/null"] {
        let error = CsvAppender::open(std::path::Path::new(path)).unwrap_err();
        assert!(matches!(&error, CsvError::NotRegular { .. }) && error.hint().is_some(), "{error}");
    }
}
