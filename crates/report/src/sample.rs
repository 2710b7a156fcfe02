//! Bursts for the tests of this crate, reduced by the real arithmetic.

use peaklane_core::attempt::Verdict;
use peaklane_core::burst::{AttemptFigures, BurstEnd, BurstHeader, BurstState, Connections, PromptMode};
use peaklane_core::lane::{Api, Kind};
use peaklane_core::outcome::Outcome;
use peaklane_core::summary::{BurstData, LaneSummary, lane_summaries};

/// A burst of 8 at a floor of 25 s, with a total limit of 60 s.
pub(crate) fn header(lane: &str, kind: Kind, date: &str, window: Option<&str>) -> BurstHeader {
    BurstHeader {
        id: format!("{}T{}00.000000Z-{lane}-3f9c", date.replace('-', ""), window.unwrap_or("10:00").replace(':', "")),
        run: "run-1".into(),
        lane: lane.into(),
        kind,
        api: Api::Chat,
        model: "m".into(),
        base_url: "https://a.example/v1".into(),
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
        prompt_hash: "abc".into(),
        date: Some(date.into()),
        window: window.map(str::to_owned),
        zone: Some("Europe/Berlin".into()),
        started_unix_us: 1_795_420_800_000_000,
        tool_version: "0.1.0".into(),
        simulated: false,
        tasks_per_hour_floor: None,
        stretch_us: None,
        campaign: None,
        site: None,
    }
}

/// An attempt with its verdict; TTFT is a tenth of the latency, the first answer a fifth.
pub(crate) fn attempt(latency_ms: u64, verdict: Verdict, outcome: Outcome, retries: u32) -> AttemptFigures {
    let seen = outcome.is_ok();
    AttemptFigures {
        intended_unix_us: Some(0),
        latency_us: latency_ms * 1000,
        verdict,
        outcome,
        retries,
        ttft_us: seen.then_some(latency_ms * 100),
        first_answer_us: seen.then_some(latency_ms * 200),
        prompt_tokens: None,
        cached_tokens: None,
        completion_tokens: None,
    }
}

/// A pass.
pub(crate) fn pass(latency_ms: u64) -> AttemptFigures {
    attempt(latency_ms, Verdict::Pass, Outcome::Ok, 0)
}

/// Passes of 2, 3, 4, ... s, then the misses; `of` attempts in all.
pub(crate) fn burst(of: u64, misses: &[AttemptFigures]) -> Vec<AttemptFigures> {
    let passes = of - misses.len() as u64;
    (0..passes).map(|i| pass(2_000 + 1_000 * i)).chain(misses.iter().copied()).collect()
}

/// A rate-limited miss after two retries, 1 s in.
pub(crate) fn limited() -> AttemptFigures {
    attempt(1_000, Verdict::Failed, Outcome::RateLimited, 2)
}

/// A whole answer at 40 s.
pub(crate) fn slow() -> AttemptFigures {
    attempt(40_000, Verdict::TooSlow, Outcome::Ok, 0)
}

/// How the bursts of these tests ended.
pub(crate) fn end(state: BurstState) -> BurstEnd {
    BurstEnd {
        state,
        duration_us: 9_000_000,
        peak_in_flight: 8,
        max_skew_us: 420,
        own_lag_us: [80, 210, 900],
        body_bytes: 40_960,
        finding: None,
        control: None,
    }
}

/// One lane over days, windows and misses: `plan` has for each window its bursts by day, each as its misses.
pub(crate) fn lane(name: &str, kind: Kind, plan: &[(Option<&str>, &[&[AttemptFigures]])]) -> LaneSummary {
    let days = ["2026-11-23", "2026-11-24", "2026-11-25"];
    let mut data = Vec::new();
    for (window, bursts) in plan {
        for (misses, date) in bursts.iter().zip(days) {
            data.push((header(name, kind, date, *window), burst(8, misses)));
        }
    }
    let bursts: Vec<BurstData<'_>> =
        data.iter().map(|(header, figures)| BurstData { header, state: BurstState::Complete, figures }).collect();
    lane_summaries(&bursts).remove(0)
}

/// The free lane of the design: fine but for 16:00, where 12 of 24 pass.
pub(crate) fn collapsing() -> LaneSummary {
    let (l, s) = (limited(), slow());
    lane(
        "lane-a",
        Kind::FreeHosted,
        &[
            (Some("09:00"), &[&[s], &[], &[]]),
            (Some("12:30"), &[&[s], &[], &[l]]),
            (Some("16:00"), &[&[l, l, l, s], &[l, l, s, s], &[l, l, s, s]]),
            (Some("21:00"), &[&[], &[], &[]]),
        ],
    )
}

/// A paid lane without a miss.
pub(crate) fn flat() -> LaneSummary {
    let none: &[&[AttemptFigures]] = &[&[], &[], &[]];
    lane(
        "lane-c",
        Kind::PaidHosted,
        &[(Some("09:00"), none), (Some("12:30"), none), (Some("16:00"), none), (Some("21:00"), none)],
    )
}
