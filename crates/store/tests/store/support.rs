//! Records to write, and this binary run again as a child.

use std::path::Path;
use std::process::{Command, Stdio};

use peaklane_core::attempt::{AttemptRecord, Verdict};
use peaklane_core::burst::{BurstEnd, BurstHeader, BurstState, Connections, ControlFigures, PromptMode};
use peaklane_core::lane::{Api, Kind};
use peaklane_core::outcome::Outcome;
use peaklane_core::record::{Handshake, ToolCall, TryRecord, Usage};

pub(crate) fn header(id: &str) -> BurstHeader {
    BurstHeader {
        id: id.to_owned(),
        run: "run-1".to_owned(),
        lane: "lane-a".to_owned(),
        kind: Kind::FreeHosted,
        api: Api::Messages,
        model: "a model".to_owned(),
        base_url: "http://127.0.0.1:8080/v1".to_owned(),
        task: "inline-assist".to_owned(),
        floor_us: 25_000_000,
        attempts: 8,
        concurrency: Some(4),
        spacing_us: 250,
        prompt_mode: PromptMode::Identical,
        connections: Connections::Inside,
        stream: true,
        max_retries: 2,
        total_timeout_us: 60_000_000,
        seed: u64::MAX,
        prompt_hash: "9f".repeat(32),
        date: Some("2026-11-30".to_owned()),
        window: Some("16:00".to_owned()),
        zone: Some("Europe/Berlin".to_owned()),
        started_unix_us: 1_796_050_800_000_000,
        tool_version: "0.1.0".to_owned(),
        simulated: false,
        tasks_per_hour_floor: None,
        stretch_us: None,
        campaign: Some("7f3a9c01b2d4-2026-11-30".to_owned()),
        site: Some("berlin".to_owned()),
    }
}

pub(crate) fn end() -> BurstEnd {
    BurstEnd {
        state: BurstState::Complete,
        duration_us: 12_345_678,
        peak_in_flight: 4,
        max_skew_us: 321,
        own_lag_us: [11, 222, 3_333],
        body_bytes: 987_654,
        finding: None,
        control: Some(ControlFigures {
            connect_us: Some(1_500),
            first_byte_us: None,
            status: None,
            error: Some("connection reset".to_owned()),
        }),
    }
}

/// An attempt in which every field has a value of its own.
pub(crate) fn full(index: u32) -> AttemptRecord {
    let one = TryRecord {
        outcome: Outcome::Ok,
        http_status: Some(200),
        http_version: Some("1.1".to_owned()),
        handshake: Handshake { reused: true, dns_us: Some(101), connect_us: Some(102), tls_us: Some(103) },
        sent_us: 104,
        first_byte_us: Some(105),
        ttft_us: Some(106),
        first_answer_us: Some(107),
        last_token_us: Some(108),
        end_us: Some(109),
        last_byte_us: Some(110),
        body_bytes: 111,
        output_chunks: 112,
        reasoning_chunks: 113,
        max_gap_us: Some(114),
        content: "an answer, \"quoted\"\nin two lines: é".to_owned(),
        reasoning: "thinking".to_owned(),
        tool_calls: vec![ToolCall { name: "grep".to_owned(), arguments: "{\"q\": \"x\"}".to_owned() }],
        finish_reason: Some("stop".to_owned()),
        usage: Usage {
            prompt: Some(115),
            completion: Some(116),
            cached: Some(117),
            cache_write: Some(118),
            reasoning: Some(119),
        },
        model: Some("a model, really".to_owned()),
        system_fingerprint: Some("fp".to_owned()),
        request_id: Some("req".to_owned()),
        streamed: Some(true),
        bursty: true,
        in_band: true,
        retry_after_ms: Some(120),
        redirects: 2,
        message: Some("slow\ndown".to_owned()),
        rate_limits: vec![("x-ratelimit-remaining".to_owned(), "3".to_owned())],
        clock_skew_ms: Some(-4),
        own_lag_us: 121,
    };
    AttemptRecord {
        index,
        warmup: false,
        intended_unix_us: 1_796_050_800_000_001,
        skew_us: 17,
        latency_us: 2_000_000 + u64::from(index),
        verdict: Verdict::Pass,
        outcome: Outcome::Ok,
        retries: 1,
        ttft_us: Some(1_000_001),
        first_answer_us: Some(1_000_002),
        finding: Some("a finding".to_owned()),
        check_note: Some("a note, with a comma".to_owned()),
        tries: vec![TryRecord::new(Outcome::RateLimited), one],
    }
}

/// An attempt in which nothing was seen.
pub(crate) fn bare(index: u32) -> AttemptRecord {
    AttemptRecord {
        intended_unix_us: 5,
        verdict: Verdict::Failed,
        outcome: Outcome::TimeoutFirstByte,
        retries: 0,
        ttft_us: None,
        first_answer_us: None,
        finding: None,
        check_note: None,
        tries: vec![TryRecord::new(Outcome::TimeoutFirstByte)],
        ..full(index)
    }
}

/// This test binary again, to run one ignored test as a process of its own on `path`.
pub(crate) fn child(test: &str, path: &Path) -> Command {
    let mut command = Command::new(std::env::current_exe().unwrap());
    command.args(["--exact", test, "--ignored", "--nocapture", "--test-threads=1"]);
    command.env("PEAKLANE_TEST_PATH", path).stdout(Stdio::piped()).stderr(Stdio::piped());
    command
}

/// Inside a child: the path that the parent gave.
pub(crate) fn given_path() -> std::path::PathBuf {
    std::env::var_os("PEAKLANE_TEST_PATH").expect("set by the parent test").into()
}

/// What a child said in lines `MARK value`. The test harness prints its own words between, even on the same line.
pub(crate) fn said(output: &str, mark: &str) -> Vec<String> {
    output.lines().filter_map(|l| l.split_once(mark).map(|(_, value)| value.trim().to_owned())).collect()
}
