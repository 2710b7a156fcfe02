//! A file of each format that was ever written, kept as that version wrote it.

use std::fs;
use std::path::Path;

use peaklane_core::attempt::Verdict;
use peaklane_core::burst::BurstState;
use peaklane_core::outcome::Outcome;
use peaklane_store::{BurstFilter, CallFilter, CallWriter, FORMAT, Store, StoreReader};

use crate::calls::full as full_call;
use crate::support::{bare, end, full, header};

fn kept(format: i64) -> std::path::PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join(format!("tests/kept/format-{format}.sqlite"))
}

#[test]
fn the_kept_store_of_each_format_is_still_read_and_continued() {
    for format in 1..=FORMAT {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("s.db");
        fs::copy(kept(format), &path).unwrap();
        let conn = rusqlite::Connection::open(&path).unwrap();
        let number: i64 = conn.query_row("PRAGMA user_version", [], |r| r.get(0)).unwrap();
        assert_eq!(number, format, "the kept file is of another format");
        drop(conn);

        let reader = StoreReader::open(&path).unwrap();
        let bursts = reader.bursts(&BurstFilter::default()).unwrap();
        assert_eq!(bursts.len(), 2);
        let ended = &bursts[0];
        assert_eq!((ended.header.id.as_str(), ended.header.lane.as_str()), ("kept-1", "lane-a"));
        assert_eq!((ended.header.floor_us, ended.header.seed), (25_000_000, u64::MAX));
        assert_eq!(ended.end.as_ref().map(|e| e.duration_us), Some(12_345_678));
        assert_eq!(bursts[1].state(), BurstState::Running);
        let figures = reader.figures("kept-1").unwrap();
        assert_eq!(figures.len(), 2);
        assert_eq!((figures[0].verdict, figures[0].latency_us), (Verdict::Pass, 2_000_000));
        assert_eq!((figures[1].outcome, figures[1].ttft_us), (Outcome::TimeoutFirstByte, None));
        assert_eq!(reader.attempts("kept-1").unwrap()[0].tries[1].content, "an answer, \"quoted\"\nin two lines: é");
        let mut calls = Vec::new();
        reader.calls(&CallFilter::default(), |call| calls.push(call)).unwrap();
        // Calls of harnesses came with format 4.
        let kept = if format >= 4 { vec![full_call("kept-3", "session-1", 1_796_000_000_000_000)] } else { Vec::new() };
        assert_eq!(calls, kept, "format {format}");
        drop(reader);

        let store = Store::open(&path).unwrap();
        store.sink().begin_burst_blocking(&header("new")).unwrap();
        assert_eq!(store.reader().unwrap().bursts(&BurstFilter::default()).unwrap().len(), 3);
        store.close().unwrap();
    }
}

/// Run once when the format number grows, and keep what it writes.
#[test]
#[ignore = "writes the kept file of the present format: cargo test -p peaklane-store keep_this -- --ignored"]
fn keep_this_format() {
    let path = kept(FORMAT);
    assert!(!path.exists(), "a kept file is never written again");
    let store = Store::open(&path).unwrap();
    let sink = store.sink();
    let one = sink.begin_burst_blocking(&header("kept-1")).unwrap();
    sink.attempt_blocking(one, full(0)).unwrap();
    sink.attempt_blocking(one, bare(1)).unwrap();
    sink.end_burst_blocking(one, &end()).unwrap();
    sink.begin_burst_blocking(&header("kept-2")).unwrap();
    store.close().unwrap();
    let call = full_call("kept-3", "session-1", 1_796_000_000_000_000);
    CallWriter::open(&path).unwrap().append(&[call]).unwrap();
    // Small pages make a small file; the page size can be changed outside the write-ahead mode only.
    let conn = rusqlite::Connection::open(&path).unwrap();
    conn.execute_batch("PRAGMA journal_mode=DELETE; PRAGMA page_size=512; VACUUM").unwrap();
}
