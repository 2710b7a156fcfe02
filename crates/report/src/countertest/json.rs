//! Counter-tests for programs. Absent values are null.

use peaklane_core::countertest::{Change, KeyChange, Notice, Refusal, Side, WindowFigures};
use serde_json::{Value, json};

use super::words::{self, change_words, headline, refusal_words};
use super::{CounterTestView, Moment};

/// All of them: `{"countertests": [...]}`.
pub fn json(views: &[CounterTestView<'_>]) -> Value {
    json!({"countertests": views.iter().map(one).collect::<Vec<_>>()})
}

fn one(view: &CounterTestView<'_>) -> Value {
    let test = view.test;
    let utc = |moment: &Option<Moment>| moment.as_ref().map(|m| m.utc.clone());
    let to = test.to.as_ref().unwrap_or(&test.lane);
    let mut figures: Vec<Value> =
        view.windows.iter().enumerate().map(|(at, f)| window(f, to, "tested", at == 0)).collect();
    figures.extend(view.beside.iter().zip(&test.beside).map(|(f, lane)| window(f, lane, "beside", false)));
    json!({
        "id": test.id,
        "state": view.state(),
        "sentence": headline(view),
        "change": test.change,
        "lane": test.lane,
        "to": test.to,
        "task": test.task,
        "beside": test.beside,
        "site": test.site,
        "zone": test.zone,
        "windows": test.windows,
        "deciding_window": test.windows.first(),
        "campaign": test.campaign,
        "margin_percent": test.margin_percent,
        "wait_days": test.wait_days,
        "begun_utc": view.begun.utc,
        "in_retrospect": test.in_retrospect,
        "changed": test.seen.as_ref().map(|seen| change(&seen.change)),
        "changed_utc": utc(&view.changed),
        "beside_shares_change": test.seen.as_ref().map(|seen| seen.beside_shares),
        "refused": refused(view),
        "end_possible_utc": utc(&view.end_possible),
        "ended_utc": utc(&view.ended),
        "looks": test.looks,
        "verdict": view.judgement.map(|j| j.verdict.name()),
        "bursts_needed": view.judgement.and_then(|j| j.bursts_needed),
        "world_changed": view.judgement.and_then(|j| j.world_changed),
        "migration_off": view.judgement.map(|j| j.migration_off),
        "figures": figures,
        "evidence": {
            "before": ids(&test.before),
            "before_beside": ids(&test.before_beside),
            "after": view.after,
            "after_beside": view.after_beside,
        },
        "notes": crate::notes::json(&words::notes(view)),
    })
}

fn change(change: &Change) -> Value {
    json!({
        "thing": change.thing,
        "words": change_words(change),
        "keys": change.keys.iter().map(key).collect::<Vec<_>>(),
    })
}

/// Values of keys are of any sort in the configuration; here they are text, as JSON.
fn key(key: &KeyChange) -> Value {
    let text = |value: &Value| (!value.is_null()).then(|| value.to_string());
    json!({"key": key.key, "from_json": text(&key.from), "to_json": text(&key.to)})
}

fn refused(view: &CounterTestView<'_>) -> Value {
    let Some(Notice::Refused(refusal)) = &view.found else { return Value::Null };
    let why = match refusal {
        Refusal::Several(_) => "several",
        Refusal::Thawed(_) => "frozen",
        Refusal::Beside(_) => "beside",
        Refusal::Gone(_) => "gone",
    };
    let (sentence, hint) = refusal_words(refusal);
    json!({"why": why, "sentence": sentence, "hint": hint})
}

fn window(f: &WindowFigures, lane: &str, role: &str, deciding: bool) -> Value {
    let passed = |passed: u32, n: u32| (n > 0).then_some(passed);
    json!({
        "lane": lane,
        "role": role,
        "window": f.window,
        "deciding": deciding,
        "before_passed": passed(f.before_passed, f.before_n),
        "before_n": f.before_n,
        "before_bursts": f.before_bursts,
        "after_passed": passed(f.after_passed, f.after_n),
        "after_n": f.after_n,
        "after_bursts": f.after_bursts,
        "difference": f.difference,
        "difference_low": f.difference_interval.map(|i| i.0),
        "difference_high": f.difference_interval.map(|i| i.1),
        "barnard_two_sided_p": f.barnard_two_sided_p,
        "fisher_two_sided_p": f.fisher_two_sided_p,
        "verdict": f.verdict.map(|v| v.name()),
    })
}

fn ids(sides: &[Side]) -> Vec<&str> {
    sides.iter().flat_map(|side| &side.bursts).map(|burst| burst.id.as_str()).collect()
}
