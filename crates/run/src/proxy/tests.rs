use std::sync::Arc;
use std::sync::atomic::Ordering;

use peaklane_core::call::{Delivery, Gap, SessionBy};
use peaklane_core::lane::Api;
use peaklane_core::outcome::Outcome;
use peaklane_core::prefix::Bounds;
use peaklane_core::record::{TryRecord, Usage};
use peaklane_store::{CallFilter, StoreReader};
use peaklane_wire::proxy::{Asked, Ended, Passed, Room, Tap};

use super::book::Book;
use super::{Recorder, Settings};

fn asked(number: u64, session: Option<&str>, headers: &[(&str, &str)]) -> Asked {
    Asked {
        number,
        started_unix_us: 1_796_000_000_000_000 + number as i64 * 1_000,
        session: session.map(str::to_owned),
        lane: Some("lane-a".into()),
        path: "/v1/chat/completions".into(),
        api: Api::Chat,
        headers: headers.iter().map(|(n, v)| ((*n).to_owned(), (*v).to_owned())).collect(),
        body: Err(Gap::Busy),
        bytes: 1_000,
        usage_injected: false,
    }
}

fn ended(number: u64, usage: Usage) -> Ended {
    let mut record = TryRecord::new(Outcome::Ok);
    record.http_status = Some(200);
    record.usage = usage;
    record.content = "0123456789abcdef".into();
    record.ttft_us = Some(200_000);
    Ended { number, sent_us: 10, total_us: 1_000_000, record, delivery: Delivery::Whole }
}

fn book() -> Book {
    Book::new("p1", Bounds::default(), true, None)
}

#[test]
fn a_session_is_named_by_path_then_header_then_nothing() {
    let mut book = book();
    let mut name = |number, session: Option<&str>, headers: &[(&str, &str)]| {
        book.asked(asked(number, session, headers));
        let call = book.ended(ended(number, Usage::default()), 16).unwrap();
        (call.session, call.session_by)
    };
    assert_eq!(name(1, Some("run"), &[("x-session-id", "h")]), ("run".into(), SessionBy::Path));
    assert_eq!(
        name(2, None, &[("x-session-affinity", "b"), ("session-id", "a\u{7}")]),
        ("a".into(), SessionBy::Header)
    );
    assert_eq!(name(3, None, &[("user-agent", "pi/1")]), ("p1-unplaced".into(), SessionBy::New));
}

#[test]
fn tokens_are_estimated_only_where_the_server_said_nothing_and_marked_by_their_field() {
    let mut book = book();
    book.asked(asked(1, Some("s"), &[]));
    let told = book.ended(ended(1, Usage { completion: Some(5), ..Usage::default() }), 16).unwrap();
    assert_eq!((told.record.usage.completion, told.estimated_completion_tokens), (Some(5), None));
    book.asked(asked(2, Some("s"), &[]));
    let silent = book.ended(ended(2, Usage::default()), 16).unwrap();
    // 16 bytes at four bytes a token; the prompt was not measured, so nothing is said of it.
    assert_eq!((silent.estimated_completion_tokens, silent.estimated_prompt_tokens), (Some(4), None));
    let mut refused = ended(3, Usage::default());
    refused.record.http_status = Some(429);
    book.asked(asked(3, Some("s"), &[]));
    assert_eq!(book.ended(refused, 16).unwrap().estimated_completion_tokens, None);
}

#[test]
fn what_was_told_is_on_disk_when_the_recorder_has_ended_and_texts_are_not() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("s.db");
    let room = Room::new(1 << 20);
    let settings = Settings { prefix: "p1".into(), store: Some(&path), analyse: true, ..Settings::default() };
    let (recorder, recording) = Recorder::start(settings, &room).unwrap();
    for number in 1..=100 {
        recorder.asked(asked(number, Some("s"), &[]));
        recorder.ended(ended(number, Usage { prompt: Some(10), ..Usage::default() }));
    }
    recorder.ended(ended(999, Usage::default()));
    recorder.passed(Passed::Upgraded);
    drop(recorder);
    let (losses, metrics) = recording.finish();
    let mut ids = Vec::new();
    StoreReader::open(&path).unwrap().calls(&CallFilter::default(), |call| ids.push((call.id, call.seq))).unwrap();
    assert_eq!(ids.len(), 100);
    assert_eq!(ids[99], ("p1-00000100".into(), 100));
    assert_eq!((losses.calls(), losses.ended.load(Ordering::Relaxed)), (1, 1), "an end without a begin is a loss");
    let text = metrics.text();
    for line in [
        "peaklane_proxy_calls_total{lane=\"lane-a\",api=\"chat\",outcome=\"ok\",delivery=\"whole\"} 100",
        "peaklane_proxy_tokens_total{lane=\"lane-a\",kind=\"prompt\",source=\"reported\"} 1000",
        "peaklane_proxy_tokens_total{lane=\"lane-a\",kind=\"completion\",source=\"estimated\"} 400",
        "peaklane_proxy_ttft_seconds_bucket{lane=\"lane-a\",le=\"0.1\"} 0",
        "peaklane_proxy_ttft_seconds_bucket{lane=\"lane-a\",le=\"0.25\"} 100",
        "peaklane_proxy_ttft_seconds_count{lane=\"lane-a\"} 100",
        "peaklane_proxy_passed_total{kind=\"upgraded\"} 1",
        "peaklane_proxy_lost_total{what=\"end\"} 1",
    ] {
        assert!(text.lines().any(|l| l == line), "{line} is not in\n{text}");
    }
}

#[test]
fn a_store_that_is_locked_loses_nothing_while_there_is_room_and_says_why() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("s.db");
    let room = Room::new(1 << 20);
    let settings = Settings { prefix: "p1".into(), store: Some(&path), ..Settings::default() };
    let (recorder, recording) = Recorder::start(settings, &room).unwrap();
    let other = rusqlite::Connection::open(&path).unwrap();
    other.execute_batch("BEGIN IMMEDIATE").unwrap();
    for number in 1..=20 {
        recorder.asked(asked(number, Some("s"), &[]));
        recorder.ended(ended(number, Usage::default()));
    }
    // Until the writer has met the lock; it waits 5 s for it.
    while recording.losses.said().is_none() {
        std::thread::sleep(std::time::Duration::from_millis(20));
    }
    assert!(recording.losses.said().unwrap().contains("locked"));
    other.execute_batch("ROLLBACK").unwrap();
    drop(recorder);
    let (losses, _) = recording.finish();
    assert_eq!(losses.calls(), 0);
    let mut n = 0;
    StoreReader::open(&path).unwrap().calls(&CallFilter::default(), |_| n += 1).unwrap();
    assert_eq!(n, 20);
}

#[test]
fn a_store_that_cannot_be_opened_is_told_before_anything_passes() {
    let dir = tempfile::tempdir().unwrap();
    let room: Arc<Room> = Room::new(1);
    let settings = Settings { store: Some(dir.path()), ..Settings::default() };
    assert!(Recorder::start(settings, &room).is_err());
}

#[test]
fn a_call_that_the_store_refuses_is_counted_and_holds_up_no_other() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("s.db");
    let record = |numbers: std::ops::RangeInclusive<u64>| {
        let room = Room::new(1 << 20);
        let settings = Settings { prefix: "p1".into(), store: Some(&path), ..Settings::default() };
        let (recorder, recording) = Recorder::start(settings, &room).unwrap();
        for number in numbers {
            recorder.asked(asked(number, Some("s"), &[]));
            recorder.ended(ended(number, Usage::default()));
        }
        drop(recorder);
        recording.finish().0
    };
    assert_eq!(record(1..=3).calls(), 0);
    // Ids of another process that took the same name: what must not happen.
    let losses = record(2..=5);
    assert_eq!(losses.calls(), 2);
    assert!(losses.said().unwrap().contains("call p1-00000003"));
    let mut ids = Vec::new();
    StoreReader::open(&path).unwrap().calls(&CallFilter::default(), |call| ids.push(call.id)).unwrap();
    assert_eq!(ids, ["p1-00000001", "p1-00000002", "p1-00000003", "p1-00000004", "p1-00000005"]);
}
