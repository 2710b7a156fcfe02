//! Every statistics case, by kind. A kind or an expected key that this file does not know is a failure, so that no case
//! can pass by being overlooked.

use peaklane_core::attempt::Verdict;
use peaklane_core::burst::{AttemptFigures, BurstHeader, BurstState, Connections, PromptMode};
use peaklane_core::check::{AttemptEnd, Check, judge_attempt};
use peaklane_core::lane::{Api, Kind};
use peaklane_core::outcome::Outcome;
use peaklane_core::rules::{Evidence, Thresholds, WindowCount, counter_test, decide, judge_trigger};
use peaklane_core::stats::{
    Confidence, Interval, PassRate, Portion, RetryRate, RetryTally, StatsError, TrySpan, attempt_times,
    clopper_pearson, linear, nearest_rank_with_unfinished, quantile_interval, wilson,
};
use peaklane_core::summary::{Quantile, summarise};
use peaklane_testkit::data::{self, unread};
use serde_json::{Map, Value};

/// One case and what was found wrong with it.
struct Case<'a> {
    input: &'a Value,
    expected: &'a Map<String, Value>,
    file: &'a Value,
    wrong: Vec<String>,
}

impl Case<'_> {
    /// Compares a number with the case's tolerance: absolute, relative, for all keys or by key.
    fn number(&mut self, key: &str, got: f64, want: &Value) {
        let tolerance = |name: &str| {
            let given = &self.file[name];
            if given.is_object() { given[key].as_f64() } else { given.as_f64() }
        };
        let Some(want) = want.as_f64() else {
            return self.wrong.push(format!("{key}: {got} instead of {want}"));
        };
        let within = match (tolerance("tolerance"), tolerance("tolerance_relative")) {
            (None, None) => 1e-9,
            (absolute, relative) => absolute.unwrap_or(0.0).max(relative.unwrap_or(0.0) * want.abs()),
        };
        // Asked this way round, a NaN is wrong.
        let right = (got - want).abs() <= within;
        if !right {
            self.wrong.push(format!("{key}: {got} instead of {want}"));
        }
    }

    /// A number that is null in the case where there is nothing to compute it from.
    fn optional(&mut self, key: &str, got: Option<f64>, want: &Value) {
        match got {
            Some(got) => self.number(key, got, want),
            None => self.equal(key, &Value::Null, want),
        }
    }

    /// A time in seconds; "inf" in the case is an attempt that never finished, null is no attempt at all.
    fn seconds(&mut self, key: &str, got_us: Result<Option<f64>, StatsError>, want: &Value) {
        match got_us {
            Ok(Some(us)) => self.number(key, us / 1e6, want),
            Ok(None) => self.equal(key, &"inf".into(), want),
            Err(_) => self.equal(key, &Value::Null, want),
        }
    }

    fn equal(&mut self, key: &str, got: &Value, want: &Value) {
        if got != want {
            self.wrong.push(format!("{key}: {got} instead of {want}"));
        }
    }

    fn pair(&mut self, key: &str, got: Interval, want: &Value) {
        self.number(key, got.low, &want[0]);
        self.number(key, got.high, &want[1]);
    }

    fn unknown(&mut self, key: &str) {
        self.wrong.extend(unread(&format!("nobody checks the expected key `{key}`")).err());
    }

    fn input(&self, key: &str) -> &Value {
        &self.input[key]
    }
}

fn micros(seconds: &Value) -> u64 {
    (seconds.as_f64().expect("a time in seconds") * 1e6).round() as u64
}

fn count(value: &Value) -> u32 {
    value.as_u64().and_then(|n| n.try_into().ok()).unwrap_or_else(|| panic!("{value} is no count"))
}

fn rate(value: &Value) -> Option<PassRate> {
    value.is_object().then(|| PassRate::new(count(&value["passed"]), count(&value["n"]))).flatten()
}

fn retries(input: &Value) -> Option<RetryRate> {
    RetryRate::new(count(&input["attempts_with_retry"]), count(&input["attempts"]))
}

fn header(attempts: u32, floor_us: u64) -> BurstHeader {
    BurstHeader {
        id: "burst".into(),
        run: "run".into(),
        lane: "lane".into(),
        kind: Kind::FreeHosted,
        api: Api::Chat,
        model: "model".into(),
        base_url: "http://localhost/v1".into(),
        task: "task".into(),
        floor_us,
        attempts,
        concurrency: None,
        spacing_us: 0,
        prompt_mode: PromptMode::Nonce,
        connections: Connections::Before,
        stream: true,
        max_retries: 0,
        total_timeout_us: 60_000_000,
        seed: 0,
        prompt_hash: String::new(),
        date: None,
        window: None,
        zone: None,
        started_unix_us: 0,
        tool_version: "0".into(),
        simulated: false,
        tasks_per_hour_floor: None,
        stretch_us: None,
        campaign: None,
        site: None,
    }
}

/// Attempts as the product would record them; `null` is an attempt that failed.
fn figures(latencies: &[Value], floor_us: u64) -> Vec<AttemptFigures> {
    latencies
        .iter()
        .map(|latency| {
            let outcome = if latency.is_null() { Outcome::TimeoutTotal } else { Outcome::Ok };
            let latency_us = if latency.is_null() { 60_000_000 } else { micros(latency) };
            AttemptFigures {
                intended_unix_us: Some(0),
                latency_us,
                verdict: verdict(outcome, latency_us, floor_us),
                outcome,
                retries: 0,
                ttft_us: None,
                first_answer_us: None,
                prompt_tokens: None,
                cached_tokens: None,
                completion_tokens: None,
            }
        })
        .collect()
}

fn verdict(outcome: Outcome, latency_us: u64, floor_us: u64) -> Verdict {
    let end = AttemptEnd {
        outcome,
        latency_us,
        floor_us,
        finish_reason: Some("stop"),
        http_status: Some(200),
        message: None,
        answer: "an answer",
        tool_calls: &[],
        accept_budget_stop: false,
    };
    judge_attempt(&end, &Check::None).verdict
}

/// Finished latencies in ascending order, and how many never finished.
fn sorted(figures: &[AttemptFigures]) -> (Vec<u64>, u64) {
    let mut finished: Vec<u64> = figures.iter().filter(|f| f.verdict.finished()).map(|f| f.latency_us).collect();
    finished.sort_unstable();
    let unfinished = (figures.len() - finished.len()) as u64;
    (finished, unfinished)
}

fn ranked(sorted_us: &[u64], unfinished: u64, portion: Portion) -> Result<Option<f64>, StatsError> {
    Ok(nearest_rank_with_unfinished(sorted_us, unfinished, portion)?.map(|us| us as f64))
}

fn percentile(case: &mut Case<'_>) {
    if case.input("windows_latency_s").is_object() {
        return percentile_by_window(case);
    }
    let floor_us = micros(case.input("floor_s"));
    let latencies = case.input("latency_s").as_array().expect("latencies").clone();
    let figures = figures(&latencies, floor_us);
    let summary = summarise(&header(figures.len() as u32, floor_us), BurstState::Complete, &figures);
    let (finished, unfinished) = sorted(&figures);
    for (key, want) in case.expected {
        match key.as_str() {
            "n" => case.equal(key, &summary.n.into(), want),
            "passed" => case.equal(key, &summary.passed.into(), want),
            "pass_rate" => case.optional(key, summary.pass_rate().map(PassRate::share), want),
            "nearest_rank" => {
                for (share, want) in want.as_object().expect("one value per quantile") {
                    let portion = share.parse().expect("a quantile");
                    case.seconds(key, ranked(&finished, unfinished, portion), want);
                    let in_summary =
                        [(Portion::P50, summary.p50), (Portion::P90, summary.p90), (Portion::P95, summary.p95)];
                    // The summary of the burst must say the same as the bare rank.
                    for (_, quantile) in in_summary.iter().filter(|(p, _)| (p.share() - portion.share()).abs() < 1e-12)
                    {
                        let seen = quantile.ok_or(StatsError::NoSamples).map(|quantile| match quantile {
                            Quantile::Value(us) => Some(us as f64),
                            Quantile::Exceeds(us) => {
                                assert!(
                                    us >= finished.last().copied().unwrap_or(0).max(floor_us),
                                    "exceeds only {us} us"
                                );
                                None
                            }
                        });
                        case.seconds(key, seen, want);
                    }
                }
            }
            "linear" => {
                for (share, want) in want.as_object().expect("one value per quantile") {
                    let got = linear(&finished, unfinished, share.parse().expect("a quantile"));
                    case.seconds(key, got, want);
                }
            }
            // The trap has to be a trap: computed the wrong way, the case's wrong numbers come out.
            "wrong_if_failures_dropped" => {
                for (key, want) in want.as_object().expect("wrong figures") {
                    match key.as_str() {
                        "p90_nearest_rank" => case.seconds(key, ranked(&finished, 0, Portion::P90), want),
                        "pass_rate" => {
                            let wrong = PassRate::new(summary.passed, finished.len() as u32);
                            case.optional(key, wrong.map(PassRate::share), want);
                            assert_ne!(wrong, summary.pass_rate(), "dropping failures must make a difference");
                        }
                        _ => case.unknown(key),
                    }
                }
            }
            _ => case.unknown(key),
        }
    }
}

fn percentile_by_window(case: &mut Case<'_>) {
    let windows = case.input("windows_latency_s").as_object().expect("windows").clone();
    let p90 = |latencies: &[Value]| {
        let (finished, unfinished) = sorted(&figures(latencies, u64::MAX));
        ranked(&finished, unfinished, Portion::P90)
    };
    let per_window: Vec<_> = windows.iter().map(|(w, l)| (w, p90(l.as_array().expect("latencies")))).collect();
    let all: Vec<Value> = windows.values().flat_map(|l| l.as_array().expect("latencies").clone()).collect();
    for (key, want) in case.expected {
        match key.as_str() {
            "per_window_p90_nearest_rank" => {
                case.equal("windows", &per_window.len().into(), &want.as_object().map_or(0, Map::len).into());
                for (window, got) in &per_window {
                    case.seconds(window, got.clone(), &want[window.as_str()]);
                }
            }
            "pooled_p90_nearest_rank" => case.seconds(key, p90(&all), want),
            "wrong_mean_of_window_p90" => {
                let mean =
                    per_window.iter().filter_map(|(_, us)| us.clone().ok()?).sum::<f64>() / per_window.len() as f64;
                case.seconds(key, Ok(Some(mean)), want);
            }
            _ => case.unknown(key),
        }
    }
}

fn interval(case: &mut Case<'_>) {
    let rate = rate(case.input);
    let confidence = Confidence::new(case.input("confidence").as_f64().expect("a confidence")).expect("a confidence");
    for (key, want) in case.expected {
        match (key.as_str(), rate) {
            ("wilson", Some(rate)) => case.pair(key, wilson(rate, confidence), want),
            ("clopper_pearson", Some(rate)) => case.pair(key, clopper_pearson(rate, confidence), want),
            ("pass_rate", rate) => case.optional(key, rate.map(PassRate::share), want),
            ("wilson" | "clopper_pearson", None) => case.equal(key, &Value::Null, want),
            _ => case.unknown(key),
        }
    }
}

fn quantile(case: &mut Case<'_>) {
    let portion: Portion = case.input("quantile").to_string().parse().expect("a quantile");
    let confidence = Confidence::new(case.input("confidence").as_f64().expect("a confidence")).expect("a confidence");
    let got = quantile_interval(count(case.input("n")), portion, confidence);
    for (key, want) in case.expected {
        match key.as_str() {
            "lower_rank" => case.equal(key, &got.lower_rank.into(), want),
            "upper_rank" => case.equal(key, &got.upper_rank.into(), want),
            "coverage" => case.number(key, got.coverage, want),
            _ => case.unknown(key),
        }
    }
}

fn latency(case: &mut Case<'_>) {
    let requests = case.input("requests").as_array().expect("requests").clone();
    let spans: Vec<TrySpan> = requests
        .iter()
        .map(|r| TrySpan {
            begin_us: micros(&r["sent_s"]),
            first_answer_us: r.get("first_content_s").filter(|at| !at.is_null()).map(micros),
            end_us: micros(&r["ended_s"]),
        })
        .collect();
    // Where the case names no intended start, the first request left when it was meant to.
    let intended =
        ["intended_s", "intended_start_s", "scheduled_s"].into_iter().map(|k| case.input(k)).find(|v| !v.is_null());
    let times = attempt_times(intended.map_or(spans[0].begin_us, micros), &spans).expect("there is a request");
    let last = &requests.last().expect("a request")["outcome"];
    let outcome: Outcome = serde_json::from_value(last.clone()).expect("an outcome");
    let finished = outcome.is_ok();
    let seconds = |us: Option<u64>| us.map(|us| us as f64 / 1e6);
    for (key, want) in case.expected {
        match key.as_str() {
            "attempt_latency_s" if finished => case.number(key, times.latency_us as f64 / 1e6, want),
            // A failed attempt is infinite: "inf", or null where the case names no time.
            "attempt_latency_s" if want.is_null() => {}
            "attempt_latency_s" => case.equal(key, &"inf".into(), want),
            "retries" => case.equal(key, &times.retries.into(), want),
            "passed" => {
                let verdict = verdict(outcome, times.latency_us, micros(case.input("floor_s")));
                case.equal(key, &(verdict == Verdict::Pass).into(), want);
            }
            "attempt_first_answer_s" | "first_answer_of_last_request_s" => {
                let got = if key == "attempt_first_answer_s" {
                    times.first_answer_us
                } else {
                    times.first_answer_of_last_try_us
                };
                case.optional(key, seconds(got), want);
            }
            _ => case.unknown(key),
        }
    }
}

fn retry_rate(case: &mut Case<'_>) {
    let tally = RetryTally::of(case.input("retries_per_attempt").as_array().expect("retries").iter().map(count));
    let rate = tally.rate();
    for (key, want) in case.expected {
        match key.as_str() {
            "attempts" => case.equal(key, &tally.attempts.into(), want),
            "attempts_with_retry" => case.equal(key, &tally.retried.into(), want),
            "retry_rate" => case.optional(key, rate.map(RetryRate::share), want),
            "below_5_percent" => case.equal(key, &rate.is_some_and(|r| r.below(5)).into(), want),
            "above_10_percent" => case.equal(key, &rate.is_some_and(|r| r.exceeds(10)).into(), want),
            "other_definitions" => {
                for (key, want) in want.as_object().expect("definitions") {
                    match key.as_str() {
                        "retries_per_attempt" => case.optional(key, tally.mean_per_attempt(), want),
                        "retries_per_request" => case.optional(key, tally.share_of_requests(), want),
                        _ => case.unknown(key),
                    }
                }
            }
            _ => case.unknown(key),
        }
    }
}

fn decision(case: &mut Case<'_>) {
    let windows = case.input("windows").as_object().expect("windows");
    let text = |value: &Value| value.as_str().expect("a text").to_owned();
    let declared = ["peak", "declared_peak"].into_iter().map(|k| case.input(k)).find(|v| v.is_string());
    let evidence = Evidence {
        windows: windows.iter().map(|(w, counts)| WindowCount { window: w.clone(), rate: rate(counts) }).collect(),
        declared_peak: declared.map(text),
        complete_days: count(case.input("complete_days")),
        missing: case
            .input("missing")
            .as_array()
            .map(|all| all.iter().map(|m| (text(&m[0]), text(&m[1]))).collect())
            .unwrap_or_default(),
        retries: retries(case.input),
    };
    let thresholds = Thresholds::default();
    let got = decide(&evidence, &thresholds);
    for (key, want) in case.expected {
        match key.as_str() {
            "busiest_window" => case.equal(key, &got.deciding_window.clone().into(), want),
            "busiest_pass_rate" => {
                case.optional(key, got.pass_rate.map(PassRate::share), want);
                // What is shown must not cross the threshold that the exact ratio is held against.
                if let Some(rate) = got.pass_rate {
                    let text = rate.text(&[thresholds.pass_percent]);
                    let shown: f64 = text.trim_end_matches(" %").parse().expect("a number in percent");
                    let needed = f64::from(thresholds.pass_percent);
                    assert_eq!(shown >= needed, rate.reaches(thresholds.pass_percent), "{text}");
                }
            }
            "pooled_pass_rate" => case.optional(key, got.pooled.map(PassRate::share), want),
            "retry_rate" => case.optional(key, got.retries.map(RetryRate::share), want),
            "verdict" => case.equal(key, &got.verdict.name().into(), want),
            _ => case.unknown(key),
        }
    }
}

fn trigger(case: &mut Case<'_>) {
    let days: Vec<_> = case.input("busy_window_by_day").as_array().expect("days").iter().map(rate).collect();
    let got = judge_trigger(&days, retries(case.input), &Thresholds::default());
    for (key, want) in case.expected {
        match key.as_str() {
            "working_days_considered" => case.equal(key, &got.days_considered.into(), want),
            "days_below_80" => case.equal(key, &got.bad_days.into(), want),
            "retry_rate" => case.optional(key, got.retries.map(RetryRate::share), want),
            "action" => case.equal(key, &got.action.name().into(), want),
            _ => case.unknown(key),
        }
    }
}

fn counter(case: &mut Case<'_>) {
    let side = |key| rate(case.input(key)).expect("a rate");
    let margin = case.input("margin").as_f64().expect("a margin");
    let got = counter_test(side("before"), side("after"), margin).expect("small enough");
    for (key, want) in case.expected {
        match key.as_str() {
            "fisher_two_sided_p" => case.number(key, got.fisher_two_sided_p, want),
            "fisher_improved_p" => case.number(key, got.fisher_improved_p, want),
            "boschloo_improved_p" => case.number(key, got.boschloo_improved_p, want),
            "barnard_two_sided_p" => case.number(key, got.barnard_two_sided_p, want),
            "difference" => case.number(key, got.difference, want),
            "difference_low" => case.number(key, got.interval.low, want),
            "difference_high" => case.number(key, got.interval.high, want),
            "verdict" => case.equal(key, &got.verdict.name().into(), want),
            _ => case.unknown(key),
        }
    }
}

#[test]
fn every_statistics_case_comes_out_to_the_digit() {
    let mut wrong = Vec::new();
    for (name, file) in data::cases("cases/stats") {
        let expected = file["expected"].as_object().filter(|e| !e.is_empty()).expect("a case expects something");
        let mut case = Case { input: &file["input"], expected, file: &file, wrong: Vec::new() };
        match file["kind"].as_str() {
            Some("percentile") => percentile(&mut case),
            Some("interval") => interval(&mut case),
            Some("quantile-interval") => quantile(&mut case),
            Some("latency") => latency(&mut case),
            Some("retry-rate") => retry_rate(&mut case),
            Some("decision") => decision(&mut case),
            Some("trigger") => trigger(&mut case),
            Some("counter-test") => counter(&mut case),
            other => case.wrong.push(format!("nobody knows the kind {other:?}")),
        }
        wrong.extend(case.wrong.iter().map(|w| format!("{name}: {w}")));
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}
