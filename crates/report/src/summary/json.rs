//! The summary for programs: `schema/output/summary.schema.json`.

use peaklane_core::rules::{Hours, Thresholds};
use peaklane_core::stats::PassRate;
use serde_json::{Value, json};

use super::notes;
use crate::extra::Missed;
use crate::sentence::{LaneView, constraint, finding};
use crate::units::ms;

/// `{"lanes": [{lane, kind, ..., windows: [...], finding, constraint}], "notes": [...]}`. No rate of a lane, on purpose,
/// but for its retry rate, which spans the windows by definition.
///
/// # Errors
/// None in practice: every value has a JSON form.
pub fn json(views: &[LaneView<'_>], thresholds: &Thresholds) -> Result<Value, serde_json::Error> {
    let lanes = views.iter().map(|view| lane_json(view, thresholds)).collect::<Result<Vec<_>, _>>()?;
    Ok(json!({"lanes": lanes, "notes": crate::notes::json(&notes(views))}))
}

fn lane_json(view: &LaneView<'_>, thresholds: &Thresholds) -> Result<Value, serde_json::Error> {
    let s = view.summary;
    let (peak, worst) = (view.peak_index(), view.worst_index());
    let windows = s.windows.iter().enumerate().map(|(index, w)| {
        let tally = w.retry_tally();
        let extra = w.window.as_deref().and_then(|window| view.extra_of(window));
        let days = w.days.iter().map(|d| {
            Ok(json!({
                "date": d.date,
                "burst": d.burst,
                "state": d.state,
                "passed": d.passed,
                "n": d.n,
                "attempts_with_retry": d.retried,
                "p90": serde_json::to_value(d.p90)?,
            }))
        });
        Ok(json!({
            "window": w.window,
            "peak": peak == Some(index),
            "worst": worst == Some(index),
            "bursts": w.bursts,
            "passed": w.passed,
            "n": w.n,
            "pass_rate": w.pass_rate().map(PassRate::share),
            "pass_low": view.interval_of(index).map(|i| i.0),
            "pass_high": view.interval_of(index).map(|i| i.1),
            "pass_low_if_independent": w.plain_interval.map(|i| i.0),
            "pass_high_if_independent": w.plain_interval.map(|i| i.1),
            "design_effect": w.design_effect,
            "p50": serde_json::to_value(w.p50)?,
            "p90": serde_json::to_value(w.p90)?,
            "ttft_p50": serde_json::to_value(w.ttft_p50)?,
            "first_answer_p50": serde_json::to_value(w.first_answer_p50)?,
            "attempts_with_retry": w.retried,
            "retries": w.retries,
            "retry_rate": tally.rate().map(|r| r.share()),
            "mean_retries": tally.mean_per_attempt(),
            "misses": serde_json::to_value(&w.misses)?,
            "tasks_per_hour": w.throughput.map(|t| t.all.per_hour()),
            "tasks_per_hour_low": w.throughput.map(|t| t.interval.low),
            "tasks_per_hour_high": w.throughput.map(|t| t.interval.high),
            "usd_per_1000_requests": extra.and_then(|e| e.micro_usd_per_1000).map(|micro| micro as f64 / 1e6),
            "control_first_byte_ms": extra.and_then(|e| e.control_first_byte_us).map(ms),
            "control_asked": extra.map(|e| e.control_asked),
            "control_failed": extra.map(|e| e.control_failed),
            "missed": extra.map(|e| e.missed.iter().map(missed_json).collect::<Vec<_>>()).unwrap_or_default(),
            "days": days.collect::<Result<Vec<_>, serde_json::Error>>()?,
        }))
    });
    Ok(json!({
        "lane": s.lane,
        "site": s.site,
        "campaign": s.campaign,
        "kind": s.kind.name(),
        "task": s.task,
        "model": s.model,
        "floor_ms": (s.floor_us > 0).then(|| ms(s.floor_us)),
        "tasks_per_hour_floor": s.tasks_per_hour_floor,
        "prompt_hash": s.prompt_hash,
        "prompt_mode": s.prompt_mode.name(),
        "simulated": s.simulated,
        "peak": view.peak,
        "retry_rate": s.retry_tally().rate().map(|r| r.share()),
        "windows": windows.collect::<Result<Vec<_>, serde_json::Error>>()?,
        "finding": finding(view, thresholds),
        "constraint": constraint(view, thresholds),
        "hours": view.hours.map(hours_json),
    }))
}

fn missed_json(missed: &Missed) -> Value {
    json!({"date": missed.date, "state": missed.state, "reason": missed.reason})
}

/// Whether the hours differ beyond chance, with the figures that say so.
fn hours_json(hours: &Hours) -> Value {
    json!({
        "verdict": hours.verdict.name(),
        "omnibus_p": hours.omnibus_p,
        "design_effect": hours.design_effect,
        "clustered_p": hours.clustered_p,
        "adjusted_p": hours.adjusted_p,
    })
}
