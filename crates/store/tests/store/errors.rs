//! What is no store, and what happens when one goes bad under the writer's hands.

use std::fs;
use std::path::Path;
use std::process::Command;

use peaklane_store::{FORMAT, Store, StoreError, StoreReader};
use rusqlite::Connection;

use crate::support::{child, full, given_path, header, said};

/// Both ways in refuse with the same words, a next step, and without touching the file.
fn refused(path: &Path) -> StoreError {
    let before = fs::read(path).ok();
    let write = Store::open(path).map(|_| ()).unwrap_err();
    let read = StoreReader::open(path).map(|_| ()).unwrap_err();
    assert_eq!(write.to_string(), read.to_string());
    assert!(write.to_string().contains(&path.display().to_string()), "{write}");
    assert!(write.hint().is_some(), "{write}");
    assert_eq!(fs::read(path).ok(), before);
    write
}

#[test]
fn a_store_of_a_newer_format_is_refused_and_left_as_it_is() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("s.db");
    Store::open(&path).unwrap().close().unwrap();
    Connection::open(&path).unwrap().pragma_update(None, "user_version", FORMAT + 6).unwrap();
    let error = refused(&path);
    assert!(
        error.to_string().contains(&format!("has format {}, this version knows formats up to {FORMAT}", FORMAT + 6))
    );
}

#[test]
fn what_is_no_store_is_refused_and_left_as_it_is() {
    let dir = tempfile::tempdir().unwrap();
    let text = dir.path().join("notes.txt");
    fs::write(&text, "not a database, but longer than one header of SQLite\n").unwrap();
    assert!(matches!(refused(&text), StoreError::NoStore { .. }));
    let short = dir.path().join("short");
    fs::write(&short, "x").unwrap();
    assert!(matches!(refused(&short), StoreError::NoStore { .. }));
    assert!(matches!(refused(dir.path()), StoreError::NoFile { .. }));

    let other = dir.path().join("other.db");
    Connection::open(&other).unwrap().execute_batch("CREATE TABLE theirs (x)").unwrap();
    assert!(matches!(refused(&other), StoreError::NoStore { what, .. } if what.contains("another program")));
    let named = dir.path().join("named.db");
    Connection::open(&named).unwrap().pragma_update(None, "application_id", 0x1234).unwrap();
    assert!(matches!(refused(&named), StoreError::NoStore { what, .. } if what.contains("0x1234")));

    let torn = dir.path().join("torn.db");
    Store::open(&torn).unwrap().close().unwrap();
    let bytes = fs::read(&torn).unwrap();
    fs::write(&torn, [&bytes[..200], &vec![0xa5; bytes.len() - 200]].concat()).unwrap();
    assert!(matches!(refused(&torn), StoreError::Damaged { .. }));
}

#[test]
fn reading_makes_no_store() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("s.db");
    let error = StoreReader::open(&path).unwrap_err();
    assert!(matches!(error, StoreError::Missing { .. }));
    assert!(error.hint().is_some_and(|h| h.contains("--store")));
    assert_eq!(fs::read_dir(dir.path()).unwrap().count(), 0);
    fs::write(&path, "").unwrap();
    assert!(matches!(StoreReader::open(&path), Err(StoreError::NoStore { what, .. }) if what == "it is empty"));
    assert_eq!(fs::metadata(&path).unwrap().len(), 0);
    // Writing may use an empty file: `mktemp` makes such.
    Store::open(&path).unwrap().close().unwrap();
    StoreReader::open(&path).unwrap();
}

#[test]
fn a_folder_that_is_not_there_is_named_with_a_next_step() {
    let dir = tempfile::tempdir().unwrap();
    let error = Store::open(&dir.path().join("no/such/folder/s.db")).unwrap_err();
    assert!(error.to_string().contains("no/such/folder/s.db"), "{error}");
    assert!(error.hint().is_some_and(|h| h.contains("folder")), "{error:?}");
}

#[test]
fn a_store_that_is_removed_or_replaced_under_the_writer_is_noticed() {
    let dir = tempfile::tempdir().unwrap();
    for replace in [false, true] {
        let path = dir.path().join(format!("{replace}.db"));
        let store = Store::open(&path).unwrap();
        let key = store.sink().begin_burst_blocking(&header("b")).unwrap();
        fs::remove_file(&path).unwrap();
        if replace {
            fs::write(&path, "something else").unwrap();
        }
        store.sink().attempt_blocking(key, full(0)).unwrap();
        assert!(matches!(store.sink().flush_blocking(), Err(StoreError::Gone { .. })));
        assert!(matches!(store.sink().attempt_blocking(key, full(1)), Err(StoreError::Gone { .. })));
        assert!(matches!(store.close(), Err(StoreError::Gone { .. })));
    }
}

#[test]
fn words_that_no_version_writes_are_damage_and_never_guessed() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("s.db");
    let store = Store::open(&path).unwrap();
    let key = store.sink().begin_burst_blocking(&header("b")).unwrap();
    store.sink().attempt_blocking(key, full(0)).unwrap();
    store.close().unwrap();
    for change in ["verdict = 'maybe'", "verdict = 'pass', outcome = 'fine'", "outcome = 'ok', latency_us = -1"] {
        Connection::open(&path).unwrap().execute_batch(&format!("UPDATE attempts SET {change}")).unwrap();
        let error = StoreReader::open(&path).unwrap().figures("b").unwrap_err();
        assert!(matches!(error, StoreError::Damaged { .. }), "{change}: {error:?}");
    }
}

/// Writes until the file-size limit of the process stops it.
#[test]
#[ignore = "child of a_full_disk_is_an_error_and_keeps_what_was_committed"]
fn fill() {
    let store = Store::open(&given_path()).unwrap();
    let sink = store.sink();
    let key = sink.begin_burst_blocking(&header("b")).unwrap();
    for index in 0.. {
        let said = sink.attempt_blocking(key, full(index)).and_then(|()| sink.flush_blocking());
        match said {
            Ok(()) => println!("ACK {index}"),
            Err(error) => {
                println!("ERROR {error}");
                println!("HINT {}", error.hint().unwrap_or_default());
                assert!(sink.attempt_blocking(key, full(index + 1)).is_err());
                assert!(sink.flush_blocking().is_err());
                assert!(store.close().is_err());
                return;
            }
        }
    }
}

#[test]
#[cfg(unix)]
fn a_full_disk_is_an_error_and_keeps_what_was_committed() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("s.db");
    // The limit stands for a full disk: writing beyond it fails (XFSZ ignored) as it would there. In 512-byte blocks.
    let inner = child("errors::fill", &path);
    let mut limited = Command::new("sh");
    limited.args(["-c", "trap '' XFSZ; ulimit -f 800; exec \"$0\" \"$@\""]).arg(inner.get_program());
    limited.args(inner.get_args()).env("PEAKLANE_TEST_PATH", &path);
    let output = limited.output().unwrap();
    let text = String::from_utf8(output.stdout).unwrap();
    assert!(output.status.success(), "{text}{}", String::from_utf8_lossy(&output.stderr));
    let acked = said(&text, "ACK ").len();
    assert!(acked > 10, "{text}");
    let error = &said(&text, "ERROR ")[0];
    assert!(error.contains("s.db"), "{error}");
    assert!(said(&text, "HINT ")[0].contains("committed before is kept"), "{text}");
    let kept = StoreReader::open(&path).unwrap().attempts("b").unwrap();
    assert_eq!(kept, (0..u32::try_from(acked).unwrap()).map(full).collect::<Vec<_>>());
    // With room again the same file goes on.
    let store = Store::open(&path).unwrap();
    store.sink().begin_burst_blocking(&header("b-2")).unwrap();
    store.close().unwrap();
}
