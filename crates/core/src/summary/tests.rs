use proptest::prelude::*;

use super::*;
use crate::attempt::Verdict;
use crate::burst::{Connections, PromptMode};
use crate::lane::{Api, Kind};
use crate::outcome::Outcome;

pub(crate) fn header(attempts: u32) -> BurstHeader {
    BurstHeader {
        id: "20261130T160000.000000Z-lane-a-0001".into(),
        run: "run-1".into(),
        lane: "lane-a".into(),
        kind: Kind::FreeHosted,
        api: Api::Chat,
        model: "m".into(),
        base_url: "http://localhost/v1".into(),
        task: "inline-assist".into(),
        floor_us: 25_000_000,
        attempts,
        concurrency: None,
        spacing_us: 0,
        prompt_mode: PromptMode::Nonce,
        connections: Connections::Before,
        stream: true,
        max_retries: 2,
        total_timeout_us: 60_000_000,
        seed: 1,
        prompt_hash: "h".into(),
        date: Some("2026-11-30".into()),
        window: Some("16:00".into()),
        zone: Some("Europe/Berlin".into()),
        started_unix_us: 1_796_050_800_000_000,
        tool_version: "0.1.0".into(),
        simulated: false,
        tasks_per_hour_floor: None,
        stretch_us: None,
        campaign: None,
        site: None,
    }
}

fn attempt(verdict: Verdict, outcome: Outcome, latency_us: u64) -> AttemptFigures {
    let seen = verdict.finished().then_some(latency_us / 2);
    AttemptFigures {
        intended_unix_us: Some(0),
        latency_us,
        verdict,
        outcome,
        retries: 0,
        ttft_us: seen,
        first_answer_us: seen,
        prompt_tokens: None,
        cached_tokens: None,
        completion_tokens: None,
    }
}

fn pass(latency_us: u64) -> AttemptFigures {
    attempt(Verdict::Pass, Outcome::Ok, latency_us)
}

#[test]
fn a_failure_and_a_wrong_answer_both_rank_behind_every_finished_attempt() {
    let mut figures: Vec<AttemptFigures> = (1..=6).map(|s| pass(s * 1_000_000)).collect();
    figures.push(attempt(Verdict::Failed, Outcome::RateLimited, 200_000));
    figures.push(attempt(Verdict::WrongAnswer, Outcome::Ok, 300_000));
    let got = summarise(&header(8), BurstState::Complete, &figures);
    assert_eq!((got.passed, got.n, got.made), (6, 8, 8));
    assert_eq!(got.p50, Some(Quantile::Value(4_000_000)));
    assert_eq!(got.p90, Some(Quantile::Exceeds(60_000_000)));
    let classes: Vec<&str> = got.misses.iter().map(|m| m.class.as_str()).collect();
    assert_eq!(classes, ["rate_limited", "wrong_answer"]);
    // TTFT of neither miss was seen: six values of half the latency, then two that never came.
    assert_eq!(got.ttft_p50, Some(Quantile::Value(2_000_000)));
    assert_eq!(got.ttft_p90, Some(Quantile::Exceeds(60_000_000)));
}

#[test]
fn what_an_unfinished_latency_exceeds_is_never_below_a_finished_one() {
    let slow = attempt(Verdict::TooSlow, Outcome::Ok, 130_000_000);
    let lost = attempt(Verdict::Failed, Outcome::TimeoutTotal, 60_000_000);
    let got = summarise(&header(2), BurstState::Complete, &[slow, lost]);
    assert_eq!(got.p50, Some(Quantile::Value(130_000_000)));
    assert_eq!(got.p90, Some(Quantile::Exceeds(130_000_000)));
}

#[test]
fn an_interrupted_or_void_burst_has_counts_but_no_pass_rate() {
    let cut = summarise(&header(8), BurstState::Interrupted, &[pass(1), pass(2)]);
    assert_eq!((cut.passed, cut.made, cut.n), (2, 2, 8));
    assert_eq!((cut.pass_rate(), cut.pass_interval), (None, None));
    let short = summarise(&header(8), BurstState::Complete, &[pass(1)]);
    assert_eq!(short.pass_rate(), None);
    let refused = attempt(Verdict::ConfigFinding, Outcome::BadRequest, 5);
    let void = summarise(&header(2), BurstState::Complete, &[pass(7), refused]);
    assert_eq!((void.state, void.findings, void.pass_rate()), (BurstState::Void, 1, None));
    assert_eq!(void.p95, Some(Quantile::Value(7)));
    assert!(void.misses.is_empty());
}

#[test]
fn a_burst_without_attempts_has_blanks_and_no_zeroes() {
    let none = summarise(&header(8), BurstState::Interrupted, &[]);
    let json = serde_json::to_value(none.json()).unwrap();
    for key in ["pass_rate", "pass_low", "p50", "p90", "p95", "ttft_p50", "retry_rate", "mean_retries"] {
        assert!(json[key].is_null(), "{key}: {}", json[key]);
    }
    assert!(json["tokens"]["prompt"].is_null());
    assert_eq!(json["made"], 0);
}

#[test]
fn a_whole_answer_whose_ttft_nobody_took_leaves_the_ttft_blank() {
    let untimed = AttemptFigures { ttft_us: None, ..pass(10) };
    let got = summarise(&header(2), BurstState::Complete, &[untimed, pass(12)]);
    assert_eq!((got.ttft_p50, got.ttft_p90), (None, None));
    assert_eq!(got.first_answer_p50, Some(Quantile::Value(5)));
}

#[test]
fn the_json_view_of_a_burst_has_its_stable_keys_and_milliseconds() {
    let timed = AttemptFigures { retries: 2, prompt_tokens: Some(100), ..pass(12_345) };
    let lost = attempt(Verdict::Failed, Outcome::TimeoutTotal, 60_000_000);
    let json = serde_json::to_value(summarise(&header(2), BurstState::Complete, &[timed, lost]).json()).unwrap();
    assert_eq!(json["p50"], serde_json::json!({"value_ms": 12.345, "exceeds_ms": null}));
    assert_eq!(json["p90"], serde_json::json!({"value_ms": null, "exceeds_ms": 60000}));
    assert_eq!(json["kind"], "free-hosted");
    assert_eq!(json["floor_ms"], 25_000);
    assert_eq!(json["pass_rate"], 0.5);
    assert_eq!(
        (&json["attempts_with_retry"], &json["retry_rate"], &json["mean_retries"]),
        (&1.into(), &0.5.into(), &1.0.into())
    );
    assert_eq!(json["misses"], serde_json::json!([{"class": "timeout_total", "count": 1}]));
    assert_eq!(json["tokens"], serde_json::json!({"prompt": 100, "cached": null, "completion": null}));
    for key in [
        "lane",
        "kind",
        "task",
        "window",
        "date",
        "zone",
        "burst",
        "state",
        "passed",
        "n",
        "made",
        "pass_rate",
        "pass_low",
        "pass_high",
        "p95",
        "ttft_p50",
        "ttft_p90",
        "first_answer_p50",
        "findings",
        "prompt_mode",
        "connections",
        "model",
        "tool_version",
        "simulated",
        "started_unix_us",
    ] {
        assert!(!json[key].is_null(), "{key}");
    }
}

fn burst_at(window: &str, date: &str, passed: usize) -> (BurstHeader, Vec<AttemptFigures>) {
    let header = BurstHeader {
        window: Some(window.into()),
        date: Some(date.into()),
        id: format!("{date}-{window}"),
        ..header(8)
    };
    let mut figures = vec![pass(1_000_000); passed];
    figures.resize(8, attempt(Verdict::TooSlow, Outcome::Ok, 30_000_000));
    (header, figures)
}

fn data(bursts: &[(BurstHeader, Vec<AttemptFigures>)]) -> Vec<BurstData<'_>> {
    bursts.iter().map(|(header, figures)| BurstData { header, state: BurstState::Complete, figures }).collect()
}

#[test]
fn windows_stay_apart_and_the_worst_one_is_the_earliest_of_the_lowest() {
    let bursts = [
        burst_at("16:00", "2026-11-26", 4),
        burst_at("16:00", "2026-11-27", 4),
        burst_at("09:00", "2026-11-26", 8),
        burst_at("12:30", "2026-11-26", 4),
    ];
    let lanes = lane_summaries(&data(&bursts));
    let [lane] = &lanes[..] else { panic!("one lane, not {}", lanes.len()) };
    let rows: Vec<_> = lane.windows.iter().map(|w| (w.window.as_deref().unwrap(), w.passed, w.n, w.bursts)).collect();
    assert_eq!(rows, [("09:00", 8, 8, 1), ("12:30", 4, 8, 1), ("16:00", 8, 16, 2)]);
    assert_eq!(lane.worst_window().unwrap().window.as_deref(), Some("12:30"));
    let late = &lane.windows[2];
    assert_eq!(late.p90, Some(Quantile::Value(30_000_000)));
    assert_eq!(late.days.iter().map(|d| d.date.as_deref().unwrap()).collect::<Vec<_>>(), ["2026-11-26", "2026-11-27"]);
    // The worst of three was picked afterwards, so its interval is wider than its own.
    let (own, picked) = (lane.windows[1].pass_interval.unwrap(), lane.worst_interval().unwrap());
    assert!(picked.low < own.0 && picked.high > own.1);
}

#[test]
fn other_prompts_do_not_mix_and_incomplete_bursts_are_listed_without_counting() {
    let (first, figures) = burst_at("16:00", "2026-11-26", 8);
    let other = BurstHeader { prompt_hash: "other".into(), ..first.clone() };
    let cut = BurstHeader { id: "cut".into(), date: Some("2026-11-27".into()), ..first.clone() };
    let lanes = lane_summaries(&[
        BurstData { header: &first, state: BurstState::Complete, figures: &figures },
        BurstData { header: &other, state: BurstState::Complete, figures: &figures },
        BurstData { header: &cut, state: BurstState::Interrupted, figures: &figures[..3] },
    ]);
    assert_eq!(lanes.len(), 2);
    let window = &lanes.iter().find(|l| l.prompt_hash == "h").unwrap().windows[0];
    assert_eq!((window.passed, window.n, window.bursts, window.days.len()), (8, 8, 1, 2));
    assert_eq!((window.days[1].state, window.days[1].passed), (BurstState::Interrupted, 3));
}

fn any_attempt() -> impl Strategy<Value = AttemptFigures> {
    let verdict = prop::sample::select(vec![Verdict::Pass, Verdict::TooSlow, Verdict::WrongAnswer, Verdict::Failed]);
    (verdict, 0_usize..Outcome::ALL.len(), 0_u64..100_000_000, 0_u32..3, prop::option::of(0_u64..50)).prop_map(
        |(verdict, outcome, latency, retries, tokens)| AttemptFigures {
            intended_unix_us: Some(0),
            retries,
            completion_tokens: tokens,
            ..attempt(verdict, Outcome::ALL[outcome], latency)
        },
    )
}

proptest! {
    #[test]
    fn a_summary_does_not_depend_on_arrival_order_and_its_quantiles_ascend(
        figures in prop::collection::vec(any_attempt(), 1..40), turn in 0_usize..40,
    ) {
        let header = header(figures.len() as u32);
        let got = summarise(&header, BurstState::Complete, &figures);
        let mut turned = figures.clone();
        turned.rotate_left(turn % figures.len());
        turned.reverse();
        prop_assert_eq!(&got, &summarise(&header, BurstState::Complete, &turned));
        prop_assert!(got.p50 <= got.p90 && got.p90 <= got.p95);
        prop_assert!(got.ttft_p50 <= got.ttft_p90);
        let (low, high) = got.pass_interval.unwrap();
        let rate = got.pass_rate().unwrap().share();
        prop_assert!(low <= rate && rate <= high);
        let missed: u32 = got.misses.iter().map(|m| m.count).sum();
        prop_assert_eq!(got.passed + missed, got.made);
        prop_assert!(got.retried <= got.retries && got.retried <= got.made);
        // A p90 that is known means that nine in ten finished.
        let finished = figures.iter().filter(|f| f.verdict.finished()).count();
        prop_assert_eq!(matches!(got.p90, Some(Quantile::Value(_))), finished * 10 >= figures.len() * 9);
    }
}

#[test]
fn a_batch_class_is_judged_by_right_answers_an_hour_exactly() {
    // Six right answers, the last one ending 60 s after the first began: 360 an hour.
    let mut figures: Vec<AttemptFigures> =
        (0..6).map(|i| AttemptFigures { intended_unix_us: Some(i * 10_000_000), ..pass(10_000_000) }).collect();
    let mut header = BurstHeader { floor_us: 0, tasks_per_hour_floor: Some(360), ..header(6) };
    let at = summarise(&header, BurstState::Complete, &figures);
    assert_eq!((at.span_us, at.tasks_per_hour(), at.throughput_holds()), (Some(60_000_000), Some(360.0), Some(true)));
    header.tasks_per_hour_floor = Some(361);
    assert_eq!(summarise(&header, BurstState::Complete, &figures).throughput_holds(), Some(false));
    // A start that nobody knows leaves the throughput blank, and an unfinished burst has none.
    figures[3].intended_unix_us = None;
    assert_eq!(summarise(&header, BurstState::Complete, &figures).throughput_holds(), None);
    assert_eq!(summarise(&header, BurstState::Interrupted, &figures[..2]).tasks_per_hour(), None);
}

/// A stretch of 60 s with one right answer every `every_s` seconds from each of two slots.
fn stretch(every_s: u64, floor: u32) -> BurstSummary {
    let mut header = header(0);
    (header.stretch_us, header.concurrency) = (Some(60_000_000), Some(2));
    (header.floor_us, header.tasks_per_hour_floor) = (0, Some(floor));
    let of_slot = (0..).map(|i| i * every_s).take_while(|start| *start < 60);
    let figures: Vec<AttemptFigures> = of_slot
        .flat_map(|start| [start, start])
        .map(|start| AttemptFigures { intended_unix_us: Some(start as i64 * 1_000_000), ..pass(every_s * 1_000_000) })
        .collect();
    summarise(&header, BurstState::Complete, &figures)
}

#[test]
fn the_throughput_of_a_stretch_counts_what_came_within_it_over_its_length() {
    // Every 7 s: starts at 0, 7, ... 56; ends at 7, ... 56 within the stretch, 63 behind it. 2 x 8 of 2 x 9.
    let got = stretch(7, 960);
    assert_eq!((got.n, got.made, got.passed, got.right_in_stretch), (18, 18, 18, Some(16)));
    // 16 in a minute are 960 an hour, exactly the floor.
    assert_eq!((got.tasks_per_hour(), got.throughput_holds()), (Some(960.0), Some(true)));
    assert_eq!(stretch(7, 961).throughput_holds(), Some(false));
    // Every 10 s: the sixth of each slot is whole in the last microsecond of the stretch and belongs to it.
    assert_eq!(stretch(10, 1).right_in_stretch, Some(12));
    let (low, high) = got.throughput_interval().unwrap();
    assert!(low < 960.0 && 960.0 < high);
}

#[test]
fn a_stretch_that_was_stopped_has_no_throughput() {
    let mut got = stretch(7, 1);
    got.state = BurstState::Interrupted;
    assert_eq!((got.tasks_per_hour(), got.throughput_holds(), got.throughput_interval()), (None, None, None));
}
