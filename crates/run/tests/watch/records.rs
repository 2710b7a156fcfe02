//! Bursts that the fake gun records, where a test needs something to count or to compare.

use std::path::Path;

use peaklane_core::attempt::{AttemptRecord, Verdict};
use peaklane_core::burst::{BurstEnd, BurstHeader, BurstState, Connections, PromptMode};
use peaklane_core::lane::{Api, Kind};
use peaklane_core::outcome::Outcome;
use peaklane_core::record::{TryRecord, Usage};
use peaklane_run::watch::Order;
use peaklane_store::Store;

/// How a recorded burst of eight went.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Answers {
    /// `model` and `system_fingerprint` of its answers.
    pub(crate) by: (&'static str, &'static str),
    /// Attempts that passed.
    pub(crate) passed: u32,
}

/// Records a burst of eight attempts with 10 prompt and 5 completion tokens each.
pub(crate) fn record(path: &Path, order: &Order, answers: Answers) {
    let store = Store::open(path).unwrap();
    let sink = store.sink();
    let started_unix_us = order.started.as_microsecond();
    let header = BurstHeader {
        id: order.burst(),
        run: order.run.clone(),
        lane: order.key.lane.clone(),
        kind: Kind::FreeHosted,
        api: Api::Chat,
        model: "m".into(),
        base_url: "https://a.example/v1".into(),
        task: order.key.task.clone(),
        floor_us: 25_000_000,
        tasks_per_hour_floor: None,
        attempts: 8,
        concurrency: None,
        spacing_us: 0,
        prompt_mode: PromptMode::Nonce,
        connections: Connections::Before,
        stream: true,
        max_retries: 2,
        total_timeout_us: 120_000_000,
        seed: order.seed,
        prompt_hash: "h".into(),
        date: Some(order.key.date.clone()),
        window: Some(order.key.window.clone()),
        zone: Some(order.zone.clone()),
        started_unix_us,
        tool_version: "0".into(),
        simulated: false,
        stretch_us: None,
        campaign: Some(order.key.campaign.clone()),
        site: order.site.clone(),
    };
    let burst = sink.begin_burst_blocking(&header).unwrap();
    for index in 0..8 {
        let one = TryRecord {
            model: Some(answers.by.0.into()),
            system_fingerprint: Some(answers.by.1.into()),
            usage: Usage { prompt: Some(10), completion: Some(5), ..Usage::default() },
            ..TryRecord::new(Outcome::Ok)
        };
        let attempt = AttemptRecord {
            index,
            warmup: false,
            intended_unix_us: started_unix_us,
            skew_us: 0,
            latency_us: 1_000_000,
            verdict: if index < answers.passed { Verdict::Pass } else { Verdict::WrongAnswer },
            outcome: Outcome::Ok,
            retries: 0,
            ttft_us: None,
            first_answer_us: None,
            finding: None,
            check_note: None,
            tries: vec![one],
        };
        sink.attempt_blocking(burst, attempt).unwrap();
    }
    let end = BurstEnd {
        state: BurstState::Complete,
        duration_us: 1_000_000,
        peak_in_flight: 8,
        max_skew_us: 0,
        own_lag_us: [0; 3],
        body_bytes: 0,
        finding: None,
        control: None,
    };
    sink.end_burst_blocking(burst, &end).unwrap();
    store.close().unwrap();
}
