//! A choice for programs: everything that people see, with its counts. Absent values are null.

use peaklane_core::choice::{Choice, LaneFigures};
use peaklane_core::rules::{Action, Certainty, CertaintyState, TriggerCause};
use peaklane_core::summary::Quantile;
use serde_json::{Value, json};

use super::trade_off::waiting_usd;
use super::{headline, hints, hours_line, lines, notes, trigger_line, usd, why};
use crate::units::ms;

/// All choices: the list `decisions` of `decide --format json`.
pub fn json(choices: &[Choice]) -> Value {
    choices.iter().map(choice_json).collect()
}

/// One choice.
pub fn choice_json(choice: &Choice) -> Value {
    let outcome = match choice.chosen() {
        Some(_) => "chosen",
        None if choice.lacks_data() => "too_little_data",
        None => "nothing_holds",
    };
    let sure = if choice.is_conclusive() { "conclusive" } else { "provisional" };
    let choice_itself = json!({
        "site": choice.site,
        "time_zone": choice.time_zone,
        "task": choice.task,
        "floor_ms": (choice.floor_us > 0).then(|| ms(choice.floor_us)),
        "tasks_per_hour_floor": choice.tasks_per_hour_floor,
        "floor_words": choice.floor_words,
        "campaign": choice.campaign,
        "as_of": choice.as_of.to_string(),
        "outcome": outcome,
        "chosen": choice.chosen().map(|l| &l.lane),
        "kind": choice.chosen().map(|l| l.kind.name()),
        "certainty": choice.chosen().map(|_| sure),
        "sentence": headline(choice),
        "expires": choice.expires.map(|d| d.to_string()),
        "peak": choice.peak,
        "rules": choice.rules,
        "rules_locked": choice.locked,
    });
    let behind = json!({
        "lanes": (0..choice.lanes.len()).map(|at| lane(choice, at)).collect::<Value>(),
        "least_bad": choice.least_bad.map(|at| json!({
            "lane": choice.lanes[at].lane,
            "would_hold_if": lines::what_would_have_to_change(choice, at),
        })),
        "split": split(choice),
        "trigger": trigger(choice),
        "step_down_to": choice.down.map(|at| &choice.lanes[at].lane),
        "record": choice.recorded.as_ref().map(|r| json!({
            "id": r.id,
            "date": r.date.to_string(),
            "lane": r.lane,
            "kind": r.kind.map(|k| k.name()),
            "expires": r.expires.to_string(),
            "expired": choice.expired(),
        })),
        "reasons": choice.reasons.iter().map(|(key, words)| json!({"key": key, "words": words})).collect::<Value>(),
        "wrong_tool": choice.wrong_tools.iter().map(|w| json!({
            "need": w.name(),
            "words": lines::wrong_tool_words(*w),
        })).collect::<Value>(),
        "notes": crate::notes::json(&notes(choice)),
        "hints": hints(choice),
    });
    together(choice_itself, behind)
}

fn lane(choice: &Choice, at: usize) -> Value {
    let (figures, candidate) = (&choice.lanes[at], &choice.candidates[at]);
    let decision = &candidate.decision;
    let stated = &figures.stated;
    let peak = figures.deciding_window();
    let measured = json!({
        "lane": figures.lane,
        "kind": figures.kind.name(),
        "model": figures.model,
        "region": stated.region,
        "simulated": figures.simulated,
        "standing": choice.ladder.standings[at].0.name(),
        "verdict": decision.verdict.name(),
        "why": why(choice, at),
        "deciding_window": decision.deciding_window,
        "declared": decision.declared,
        "passed": decision.pass_rate.map(|r| r.passed()),
        "n": decision.pass_rate.map(|r| r.of()),
        "worst_window": decision.worst_window,
        "complete_days": peak.map_or(0, |w| w.days),
        "missing": figures.missing.iter().map(|(date, why)| json!({"date": date, "why": why})).collect::<Value>(),
        "retried": figures.retries.rate().map(|r| r.retried()),
        "attempts": figures.retries.rate().map(|r| r.of()),
        "peak_retried": peak.and_then(|w| w.retries.rate()).map(|r| r.retried()),
        "peak_attempts": peak.and_then(|w| w.retries.rate()).map(|r| r.of()),
        "pass_certainty": figures.pass_certainty.as_ref().map(certainty),
        "retry_certainty": figures.retry_certainty.as_ref().map(certainty),
        "peak_p90": quantile(peak.and_then(|w| w.p90)),
        "peak_misses": peak.map(|w| json!(w.misses)),
        "cold_start": figures.cold.map(|cold| json!({
            "attempts": cold.attempts,
            "failed": cold.failed,
            "median_ms": cold.median_us.map(ms),
            "slowest_ms": cold.slowest_us.map(ms),
        })),
    });
    let terms = json!({
        "ops_hours_per_month": stated.ops_hours_per_month,
        "owner": stated.owner,
        "patched": stated.patched.map(|d| d.to_string()),
        "usd_per_1000_requests": figures.micro_usd_per_1000.map(usd),
        "rent_usd_per_hour": stated.rent_micro_usd_per_hour.map(usd),
        "waited_ms_per_request": figures.waited_us.map(ms),
        "waiting_hours_per_month": figures.waiting.map(|w| w.hours),
        "waiting_usd_per_month": waiting_usd(figures),
        "terms_url": stated.terms_url,
        "terms_checked": stated.terms_checked.map(|d| d.to_string()),
        "limits_stated": {
            "requests_per_minute": stated.limits.requests_per_minute,
            "requests_per_day": stated.limits.requests_per_day,
            "tokens_per_minute": stated.limits.tokens_per_minute,
            "tokens_per_day": stated.limits.tokens_per_day,
            "concurrency": stated.limits.concurrency,
        },
        "limits_observed": {
            "rate_limited": figures.observed.rate_limited,
            "attempts": figures.observed.attempts,
            "in_flight": figures.observed.in_flight,
            "headers": figures.observed.headers.iter()
                .map(|(name, value)| json!({"name": name, "value": value})).collect::<Value>(),
        },
        "needs": figures.needs.iter().map(|check| json!({
            "need": check.need.name(),
            "needed": check.needed,
            "stated": check.stated,
            "met": check.met(),
        })).collect::<Value>(),
        "affiliation": stated.affiliation,
        "windows": windows(figures),
        "bursts": figures.burst_ids,
    });
    together(measured, terms)
}

/// One object out of two.
fn together(one: Value, other: Value) -> Value {
    match (one, other) {
        (Value::Object(mut one), Value::Object(other)) => {
            one.extend(other);
            Value::Object(one)
        }
        (one, _) => one,
    }
}

fn windows(figures: &LaneFigures) -> Value {
    let one = |w: &peaklane_core::choice::WindowFigures| {
        json!({
            "window": w.window,
            "passed": w.rate.map(|r| r.passed()),
            "n": w.rate.map(|r| r.of()),
            "days": w.days,
            "retried": w.retries.rate().map(|r| r.retried()),
            "attempts": w.retries.rate().map(|r| r.of()),
            "p90": quantile(w.p90),
            "usd_per_1000_requests": w.micro_usd_per_1000.map(usd),
        })
    };
    figures.windows.iter().map(one).collect()
}

fn quantile(quantile: Option<Quantile>) -> Value {
    match quantile {
        Some(Quantile::Value(us)) => json!({"value_ms": ms(us), "exceeds_ms": null}),
        Some(Quantile::Exceeds(us)) => json!({"value_ms": null, "exceeds_ms": ms(us)}),
        None => Value::Null,
    }
}

fn certainty(found: &Certainty) -> Value {
    let (low, high) = found.clustered.interval.pair();
    let (state, bursts, assumed, probability) = match found.state {
        CertaintyState::Conclusive => ("conclusive", None, None, None),
        CertaintyState::Provisional { bursts_needed, assumed_rate, probability } => {
            ("provisional", bursts_needed, Some(assumed_rate), Some(probability))
        }
    };
    json!({
        "certainty": state,
        "reaches": found.reaches,
        "low": low,
        "high": high,
        "confidence": found.confidence,
        "bursts_needed": bursts,
        "assumed_rate": assumed,
        "probability": probability,
    })
}

fn split(choice: &Choice) -> Value {
    let Some(split) = &choice.split else { return Value::Null };
    let ranges = split
        .ranges
        .iter()
        .map(|r| json!({"from": r.from, "to": r.to, "lane": choice.lanes[r.lane].lane, "windows": r.windows}));
    json!({
        "ranges": ranges.collect::<Value>(),
        "sentence": hours_line(choice),
        "usd_per_1000_requests": split.cost.map(|c| usd(c.split_micro_usd)),
        "chosen_usd_per_1000_requests": split.cost.map(|c| usd(c.chosen_micro_usd)),
        "percent_less": split.cost.map(|c| c.percent_less()),
    })
}

fn trigger(choice: &Choice) -> Value {
    let trigger = &choice.trigger;
    let state = trigger.state.as_ref();
    let causes: Vec<&str> = state
        .map(|s| s.causes.as_slice())
        .unwrap_or_default()
        .iter()
        .map(|cause| match cause {
            TriggerCause::BadDays { .. } => "bad_days",
            TriggerCause::Retries { .. } => "retries",
        })
        .collect();
    let to = trigger.to.map(|at| &choice.lanes[at]);
    json!({
        "action": state.map_or(Action::NotEnoughData, |s| s.action).name(),
        "fired": choice.fired(),
        "lane": trigger.lane,
        "from_record": trigger.from_record,
        "window": trigger.window,
        "days": trigger.days.iter().map(|d| json!({
            "date": d.date,
            "passed": d.rate.map(|r| r.passed()),
            "n": d.rate.map(|r| r.of()),
            "bad": d.bad,
        })).collect::<Value>(),
        "bad_days": state.map(|s| s.bad_days),
        "retried": state.and_then(|s| s.retries).map(|r| r.retried()),
        "attempts": state.and_then(|s| s.retries).map(|r| r.of()),
        "causes": causes,
        "moves_to": to.map(|l| &l.lane),
        "moves_to_kind": to.map(|l| l.kind.name()),
        "sentence": trigger_line(choice),
    })
}
