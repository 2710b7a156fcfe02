//! What goes in comes out.

use peaklane_core::attempt::AttemptRecord;
use peaklane_core::burst::{AttemptFigures, BurstState};
use peaklane_store::{BurstFilter, QUEUE_LIMIT, Store, StoreError, StoreReader, TEXT_LIMIT_BYTES};

use crate::support::{bare, end, full, header};

#[test]
fn every_field_of_a_burst_comes_back_as_it_was_given() {
    let dir = tempfile::tempdir().unwrap();
    let store = Store::open(&dir.path().join("s.db")).unwrap();
    let sink = store.sink();
    let mut second = header("b-2");
    (second.concurrency, second.date, second.window, second.zone) = (None, None, None, None);
    (second.simulated, second.stream, second.started_unix_us) = (true, false, header("b-1").started_unix_us + 1);
    let one = sink.begin_burst_blocking(&header("b-1")).unwrap();
    let two = sink.begin_burst_blocking(&second).unwrap();
    let warmup = AttemptRecord { warmup: true, ..full(0) };
    // Out of order and mixed, as they finish.
    for (key, attempt) in [(one, full(1)), (two, bare(0)), (one, warmup.clone()), (one, bare(0))] {
        sink.attempt_blocking(key, attempt).unwrap();
    }
    sink.end_burst_blocking(one, &end()).unwrap();
    let reader = store.reader().unwrap();
    let bursts = reader.bursts(&BurstFilter::default()).unwrap();
    assert_eq!(bursts.len(), 2);
    assert_eq!((&bursts[0].header, &bursts[0].end), (&header("b-1"), &Some(end())));
    assert_eq!((&bursts[1].header, &bursts[1].end), (&second, &None));
    assert_eq!((bursts[0].state(), bursts[1].state()), (BurstState::Complete, BurstState::Running));
    assert_eq!(reader.attempts("b-1").unwrap(), [bare(0), full(1), warmup]);
    // Running or killed: what is there can be read.
    assert_eq!(reader.attempts("b-2").unwrap(), [bare(0)]);
    assert_eq!(reader.figures("b-1").unwrap(), [AttemptFigures::from(&bare(0)), AttemptFigures::from(&full(1))]);
    assert_eq!(reader.burst("b-2").unwrap().unwrap().header, second);
    assert_eq!(reader.burst("b-3").unwrap(), None);
    assert_eq!(reader.figures("b-3").unwrap(), []);
    store.close().unwrap();
}

#[test]
fn bursts_are_found_by_lane_task_run_and_time() {
    let dir = tempfile::tempdir().unwrap();
    let store = Store::open(&dir.path().join("s.db")).unwrap();
    let sink = store.sink();
    assert_eq!(store.reader().unwrap().latest_run().unwrap(), None);
    for (n, lane, task, run) in [(0, "a", "t", "r-1"), (1, "b", "t", "r-1"), (2, "a", "u", "r-2")] {
        let mut h = header(&format!("b-{n}"));
        (h.lane, h.task, h.run) = (lane.into(), task.into(), run.into());
        h.started_unix_us += n;
        h.simulated = n == 1;
        sink.begin_burst_blocking(&h).unwrap();
    }
    let reader = store.reader().unwrap();
    let ids = |filter: BurstFilter| -> Vec<String> {
        reader.bursts(&filter).unwrap().into_iter().map(|b| b.header.id).collect()
    };
    let all = BurstFilter::default;
    assert_eq!(ids(BurstFilter { lane: Some("a".into()), ..all() }), ["b-0", "b-2"]);
    assert_eq!(ids(BurstFilter { task: Some("t".into()), ..all() }), ["b-0", "b-1"]);
    assert_eq!(ids(BurstFilter { run: Some("r-2".into()), ..all() }), ["b-2"]);
    assert_eq!(ids(BurstFilter { since_unix_us: Some(header("").started_unix_us + 1), ..all() }), ["b-1", "b-2"]);
    assert_eq!(ids(BurstFilter { simulated: Some(true), ..all() }), ["b-1"]);
    assert_eq!(ids(BurstFilter { lane: Some("a".into()), task: Some("t".into()), ..all() }), ["b-0"]);
    assert_eq!(ids(BurstFilter { lane: Some("' OR 1".into()), ..all() }), Vec::<String>::new());
    assert_eq!(reader.latest_run().unwrap().as_deref(), Some("r-2"));
}

#[test]
fn long_texts_are_cut_and_numbers_beyond_sqlite_are_kept_at_its_limit() {
    let dir = tempfile::tempdir().unwrap();
    let store = Store::open(&dir.path().join("s.db")).unwrap();
    let key = store.sink().begin_burst_blocking(&header("b")).unwrap();
    let mut attempt = full(0);
    attempt.tries[1].content = "é".repeat(TEXT_LIMIT_BYTES);
    attempt.tries[1].usage.prompt = Some(u64::MAX);
    store.sink().attempt_blocking(key, attempt).unwrap();
    store.sink().flush_blocking().unwrap();
    let back = store.reader().unwrap().attempts("b").unwrap();
    assert_eq!(back[0].tries[1].content, "é".repeat(TEXT_LIMIT_BYTES / 2));
    assert_eq!(back[0].usage().prompt, Some(i64::MAX as u64));
}

#[test]
fn a_burst_or_an_attempt_that_is_there_already_is_a_bug_and_never_doubled() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("s.db");
    let store = Store::open(&path).unwrap();
    let sink = store.sink();
    let key = sink.begin_burst_blocking(&header("b")).unwrap();
    let twice = sink.begin_burst_blocking(&header("b")).unwrap_err();
    assert!(matches!(&twice, StoreError::Bug { what, .. } if what.contains("`b`")), "{twice}");
    for index in [0, 1, 0] {
        sink.attempt_blocking(key, full(index)).unwrap();
    }
    let error = sink.flush_blocking().unwrap_err();
    assert!(matches!(&error, StoreError::Bug { what, .. } if what.contains("attempt 0 of burst 1")), "{error}");
    assert!(store.close().is_err());
    // What was right in that batch is kept.
    assert_eq!(StoreReader::open(&path).unwrap().attempts("b").unwrap(), [full(0), full(1)]);
}

#[test]
fn a_burst_ends_once() {
    let dir = tempfile::tempdir().unwrap();
    let store = Store::open(&dir.path().join("s.db")).unwrap();
    let key = store.sink().begin_burst_blocking(&header("b")).unwrap();
    store.sink().end_burst_blocking(key, &end()).unwrap();
    let mut other = end();
    other.duration_us = 1;
    assert!(matches!(store.sink().end_burst_blocking(key, &other), Err(StoreError::Bug { .. })));
    assert_eq!(store.reader().unwrap().burst("b").unwrap().unwrap().end, Some(end()));
}

#[test]
fn a_full_queue_makes_tasks_wait_without_holding_the_loop_and_loses_nothing() {
    let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
    let dir = tempfile::tempdir().unwrap();
    let store = Store::open(&dir.path().join("s.db")).unwrap();
    let sink = store.sink();
    let count = u32::try_from(QUEUE_LIMIT).unwrap() + 2_000;
    runtime.block_on(async {
        let key = sink.begin_burst(&header("b")).await.unwrap();
        // The lock keeps the writer from making room.
        let other = rusqlite::Connection::open(store.path()).unwrap();
        other.execute_batch("BEGIN IMMEDIATE").unwrap();
        let mut next = 0;
        while sink.try_attempt(key, bare(next)).unwrap().is_none() {
            next += 1;
        }
        // The writer may hold one batch in its hands besides.
        assert!((QUEUE_LIMIT..=2 * QUEUE_LIMIT).contains(&(next as usize)), "{next}");
        let rest = async {
            for index in next..next + count {
                sink.attempt(key, bare(index)).await.unwrap();
            }
        };
        let release = async {
            tokio::task::yield_now().await;
            other.execute_batch("ROLLBACK").unwrap();
        };
        // On one thread: `release` gets its turn only if `attempt` waits without holding it.
        tokio::join!(rest, release);
        sink.end_burst(key, &end()).await.unwrap();
        assert_eq!(sink.queued(), 0);
        let figures = store.reader().unwrap().figures("b").unwrap();
        assert_eq!(figures.len(), (next + count) as usize);
    });
}

#[test]
fn closing_writes_what_is_queued_and_later_records_are_refused() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("s.db");
    let store = Store::open(&path).unwrap();
    let sink = store.sink();
    let key = sink.begin_burst_blocking(&header("b")).unwrap();
    for index in 0..500 {
        sink.attempt_blocking(key, bare(index)).unwrap();
    }
    store.close().unwrap();
    assert!(matches!(sink.attempt_blocking(key, bare(500)), Err(StoreError::Closed { .. })));
    assert!(matches!(sink.flush_blocking(), Err(StoreError::Closed { .. })));
    assert_eq!(StoreReader::open(&path).unwrap().figures("b").unwrap().len(), 500);
    // Closed cleanly: one file, no log beside it, also after reading.
    assert_eq!(std::fs::read_dir(dir.path()).unwrap().count(), 1);
}

#[test]
fn the_view_for_people_counts_each_class_of_a_burst() {
    use peaklane_core::attempt::Verdict;
    let dir = tempfile::tempdir().unwrap();
    let store = Store::open(&dir.path().join("s.db")).unwrap();
    let key = store.sink().begin_burst_blocking(&header("b")).unwrap();
    let verdicts = [Verdict::Pass, Verdict::Pass, Verdict::TooSlow, Verdict::WrongAnswer, Verdict::Failed];
    for (index, verdict) in (0..).zip(verdicts) {
        store.sink().attempt_blocking(key, AttemptRecord { verdict, ..full(index) }).unwrap();
    }
    store.sink().attempt_blocking(key, AttemptRecord { warmup: true, ..full(0) }).unwrap();
    store.sink().flush_blocking().unwrap();
    let conn = rusqlite::Connection::open(store.path()).unwrap();
    let row = conn
        .query_row(
            "SELECT planned, made, passed, too_slow, wrong_answer, failed, retried, slowest_finished_ms, started_utc FROM burst_summary",
            [],
            |r| {
                let counts: Vec<i64> = (0..7).map(|i| r.get(i)).collect::<Result<_, _>>()?;
                Ok((counts, r.get::<_, f64>(7)?, r.get::<_, String>(8)?))
            },
        )
        .unwrap();
    // 1,796,050,800 s after 1970: `date -u -d @1796050800`.
    assert_eq!(row, (vec![8, 5, 2, 1, 1, 1, 5], 2_000.002, "2026-11-30 15:00:00".to_owned()));
}

#[test]
fn a_stretch_comes_back_as_one() {
    let dir = tempfile::tempdir().unwrap();
    let store = Store::open(&dir.path().join("s.db")).unwrap();
    let mut header = header("stretch");
    (header.stretch_us, header.attempts, header.concurrency) = (Some(600_000_000), 0, Some(8));
    store.sink().begin_burst_blocking(&header).unwrap();
    assert_eq!(store.reader().unwrap().burst("stretch").unwrap().unwrap().header, header);
}
