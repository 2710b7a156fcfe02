//! What the tests of the command line share: a sandbox, and records with known counts.

use std::path::{Path, PathBuf};

use peaklane_core::attempt::{AttemptRecord, Verdict};
use peaklane_core::burst::{BurstEnd, BurstHeader, BurstState, Connections, PromptMode};
use peaklane_core::lane::{Api, Kind};
use peaklane_core::outcome::Outcome;
use peaklane_core::record::{TryRecord, Usage};
use peaklane_store::Store;
use peaklane_store::csv::CsvAppender;
use peaklane_testkit::binary::{Ran, Sandbox};
use peaklane_testkit::data::project_root;

/// A key that must be found nowhere.
pub(crate) const KEY: &str = "sk-hush-hush-4711-never-shown";

/// A sandbox for the binary under test.
pub(crate) fn sandbox() -> Sandbox {
    Sandbox::new(env!("CARGO_BIN_EXE_peaklane"))
}

/// A file of the project.
pub(crate) fn project_file(name: &str) -> PathBuf {
    project_root().join(name)
}

/// True when generated files are to be written again instead of compared.
pub(crate) fn regenerate() -> bool {
    std::env::var_os("PEAKLANE_REGENERATE").is_some_and(|value| value == "1")
}

/// Asserts exit code, an `error:` and a `hint:` on standard error with these words, and nothing on standard output.
#[track_caller]
pub(crate) fn refused(ran: Ran, code: i32, words: &[&str]) {
    let ran = ran.expect_code(code);
    assert_eq!(ran.stdout, "", "an error leaves standard output empty");
    assert!(ran.stderr.starts_with("error: "), "{}", ran.stderr);
    assert!(ran.stderr.contains("\n\nhint: "), "no next step:\n{}", ran.stderr);
    for word in words {
        assert!(ran.stderr.contains(word), "no `{word}` in\n{}", ran.stderr);
    }
}

/// A complete configuration; `extra` goes into its only lane.
pub(crate) fn configuration(extra: &str) -> String {
    format!(
        "[[lane]]\nname = \"lane-a\"\nkind = \"free-hosted\"\nbase_url = \"http://127.0.0.1:9/v1\"\nmodel = \"m\"\n{extra}\n"
    )
}

/// One attempt of an example: its latency in milliseconds and how it ended.
#[derive(Clone, Copy)]
pub(crate) enum End {
    Pass(u64),
    Slow(u64),
    Limited,
}

/// One burst of an example.
#[derive(Clone)]
pub(crate) struct Burst {
    pub(crate) header: BurstHeader,
    pub(crate) attempts: Vec<AttemptRecord>,
}

/// A burst of 8 with these misses; the others pass after 2, 3, 4, ... seconds.
pub(crate) fn burst(lane: &str, date: &str, window: Option<&str>, misses: &[End]) -> Burst {
    let begin = format!("{}T{}00", date.replace('-', ""), window.unwrap_or("10:00").replace(':', ""));
    let started: jiff::civil::DateTime = begin.parse().expect("a date and a time");
    // Berlin in November is one hour ahead of UTC
    let started_unix_us = jiff::tz::Offset::constant(1).to_timestamp(started).expect("an instant").as_microsecond();
    let header = BurstHeader {
        id: format!("{begin}.000000Z-{lane}-3f9c"),
        run: format!("{begin}-3f9c"),
        lane: lane.into(),
        kind: Kind::FreeHosted,
        api: Api::Chat,
        model: "small-coder".into(),
        base_url: "http://127.0.0.1:8080/v1".into(),
        task: "inline-assist".into(),
        floor_us: 25_000_000,
        attempts: 8,
        concurrency: None,
        spacing_us: 0,
        prompt_mode: PromptMode::Nonce,
        connections: Connections::Before,
        stream: true,
        max_retries: 2,
        total_timeout_us: 60_000_000,
        seed: 7,
        prompt_hash: "7c".repeat(32),
        date: Some(date.into()),
        window: window.map(str::to_owned),
        zone: Some("Europe/Berlin".into()),
        started_unix_us,
        tool_version: "0.1.0".into(),
        simulated: true,
        tasks_per_hour_floor: None,
        stretch_us: None,
        campaign: None,
        site: None,
    };
    let passes = (2..).map(|seconds| End::Pass(seconds * 1000)).take(8 - misses.len());
    let ends = passes.chain(misses.iter().copied());
    let attempts = (0..).zip(ends).map(|(index, end)| attempt(index, started_unix_us, end)).collect();
    Burst { header, attempts }
}

fn attempt(index: u32, intended_unix_us: i64, end: End) -> AttemptRecord {
    let (latency_ms, verdict, outcome, retries) = match end {
        End::Pass(ms) => (ms, Verdict::Pass, Outcome::Ok, 0),
        End::Slow(ms) => (ms, Verdict::TooSlow, Outcome::Ok, 0),
        End::Limited => (1_500, Verdict::Failed, Outcome::RateLimited, 2),
    };
    let whole = outcome.is_ok();
    let mut last = TryRecord::new(outcome);
    last.http_status = Some(if whole { 200 } else { 429 });
    last.usage = Usage { prompt: whole.then_some(420), completion: whole.then_some(96), ..Usage::default() };
    AttemptRecord {
        index,
        warmup: false,
        intended_unix_us,
        skew_us: 120,
        latency_us: latency_ms * 1_000,
        verdict,
        outcome,
        retries,
        ttft_us: whole.then_some(latency_ms * 100),
        first_answer_us: whole.then_some(latency_ms * 120),
        finding: None,
        check_note: None,
        tries: vec![last],
    }
}

/// The free lane of the design: 23/24 at 09:00, 22/24 at 12:30, 12/24 at 16:00, 24/24 at 21:00, over three days.
pub(crate) fn collapsing_lane() -> Vec<Burst> {
    let (l, s) = (End::Limited, End::Slow(40_000));
    let days = ["2026-11-23", "2026-11-24", "2026-11-25"];
    let plan: [(&str, [&[End]; 3]); 4] = [
        ("09:00", [&[s], &[], &[]]),
        ("12:30", [&[s], &[], &[l]]),
        ("16:00", [&[l, l, l, s], &[l, l, s, s], &[l, l, s, s]]),
        ("21:00", [&[], &[], &[]]),
    ];
    let mut bursts = Vec::new();
    for (day, date) in days.into_iter().enumerate() {
        bursts.extend(plan.iter().map(|(window, misses)| burst("lane-a", date, Some(window), misses[day])));
    }
    bursts
}

/// A paid lane beside it that passes always, over the same three days.
pub(crate) fn steady_lane() -> Vec<Burst> {
    let days = ["2026-11-23", "2026-11-24", "2026-11-25"];
    let windows = ["09:00", "12:30", "16:00", "21:00"];
    let one = |date: &str, window: &str| {
        let mut one = burst("lane-c", date, Some(window), &[]);
        one.header.kind = Kind::PaidHosted;
        one
    };
    days.into_iter().flat_map(|date| windows.map(|window| one(date, window))).collect()
}

/// Appends bursts to a CSV file, as `burst --csv` does.
pub(crate) fn write_csv(path: &Path, bursts: &[Burst]) {
    let mut file = CsvAppender::open(path).expect("a CSV file");
    for burst in bursts {
        for attempt in &burst.attempts {
            file.append(&burst.header, attempt).expect("a row");
        }
    }
}

/// Records bursts in a store, as `burst` does.
pub(crate) fn write_store(path: &Path, bursts: &[Burst]) {
    let store = Store::open(path).expect("a store");
    let sink = store.sink();
    for burst in bursts {
        let key = sink.begin_burst_blocking(&burst.header).expect("a burst");
        for attempt in &burst.attempts {
            sink.attempt_blocking(key, attempt.clone()).expect("an attempt");
        }
        let end = BurstEnd {
            state: BurstState::Complete,
            duration_us: 40_000_000,
            peak_in_flight: 8,
            max_skew_us: 120,
            own_lag_us: [10, 20, 30],
            body_bytes: 4_096,
            finding: None,
            control: None,
        };
        sink.end_burst_blocking(key, &end).expect("an end");
    }
    store.close().expect("all of it on disk");
}
