//! The decision record: a dated page that says what was decided, on which figures, and until when it holds.

use peaklane_core::choice::{Choice, LaneFigures};

use super::lines::range_words;
use super::trade_off::{observed, stated};
use super::{headline, hints, hours_line, notes, table, trade_off, trigger_line};
use crate::table::escape_markdown;
use crate::units::{interval, limit};

/// The record as Markdown.
///
/// * `id`: of the record.
/// * `tool_version`: of peaklane.
pub fn markdown_record(choice: &Choice, id: &str, tool_version: &str) -> String {
    let e = escape_markdown;
    let mut out = format!("# {}\n\n", e(&headline(choice)));
    let mut fact = |name: &str, value: Option<String>| {
        if let Some(value) = value {
            out.push_str(&format!("- {name}: {}\n", e(&value)));
        }
    };
    fact("record", Some(id.to_owned()));
    fact("decided as of", Some(choice.as_of.to_string()));
    fact("expires", choice.expires.map(|d| format!("{d}: from that day on it holds no longer")));
    let sure = if choice.is_conclusive() { "conclusive" } else { "provisional" };
    fact("certainty", choice.chosen().map(|_| sure.to_owned()));
    fact("site", choice.site.clone());
    fact("time zone", choice.time_zone.clone());
    fact("campaign", choice.campaign.clone());
    fact("declared peak", choice.peak.clone());
    let floor = (choice.floor_us > 0).then(|| limit(choice.floor_us));
    let floor = floor.or_else(|| choice.tasks_per_hour_floor.map(|n| format!("{n} tasks an hour")));
    let words = choice.floor_words.join(", ");
    let words = if words.is_empty() { String::new() } else { format!(" ({words})") };
    fact("floor", floor.map(|floor| format!("{floor}{words}")));
    fact("made with", Some(format!("peaklane {tool_version}")));

    out.push_str(&format!("\n## Lanes\n\n{}\n{}", table(choice).markdown(), trade_off(choice).markdown()));
    out.push_str("\n## Reasons and remarks\n\n");
    let lines = hours_line(choice).into_iter().chain([trigger_line(choice)]).chain(hints(choice));
    for line in lines {
        out.push_str(&format!("- {}\n", e(&line)));
    }
    out.push_str(&crate::notes::markdown(&notes(choice)));
    out.push_str(&crate::notes::markdown(&super::assumptions(choice)));
    if let Some(split) = &choice.split {
        let ranges: Vec<String> = split.ranges.iter().map(|r| range_words(choice, r)).collect();
        out.push_str(&format!(
            "- the hours between two windows belong to the lane of the former window: {}\n",
            e(&ranges.join(", "))
        ));
    }
    out.push_str(&thresholds(choice));
    out.push_str("\n## Evidence\n\n");
    for lane in &choice.lanes {
        out.push_str(&evidence(lane, &[choice.thresholds.pass_percent]));
    }
    out
}

fn thresholds(choice: &Choice) -> String {
    let locked = if choice.locked { "as locked when the campaign began" } else { "as configured now" };
    let (t, rules) = (&choice.thresholds, &choice.rules);
    format!(
        "\n## Thresholds, {locked}\n\n\
         - pass rate of the deciding window: {} % or more\n\
         - retries of the campaign: below {} %\n\
         - complete days: {}\n\
         - trigger: below {} % on {} of the last {} working days, or retries above {} %\n\
         - expiry: {} days\n",
        t.pass_percent,
        t.retry_below_percent,
        t.days,
        t.trigger_pass_percent,
        t.trigger_bad_days,
        t.trigger_days,
        t.trigger_retry_percent,
        rules.expiry_days,
    )
}

fn evidence(lane: &LaneFigures, bars: &[u32]) -> String {
    let e = escape_markdown;
    let mut out = format!("### {}\n\n", e(&lane.lane));
    for w in &lane.windows {
        let rate = w.rate.map_or("nothing complete".to_owned(), |r| {
            format!("{}/{} = {} on {} days", r.passed(), r.of(), r.text(bars), w.days)
        });
        out.push_str(&format!("- {}: {}\n", e(&w.window), e(&rate)));
    }
    if let Some(certainty) = &lane.pass_certainty {
        let band = interval(Some(certainty.clustered.interval.pair()), bars);
        out.push_str(&format!("- interval of the deciding window at {:.1} %: {band}\n", certainty.confidence * 100.0));
    }
    for (date, why) in &lane.missing {
        out.push_str(&format!("- missing: {}, {}\n", e(date), e(why)));
    }
    let said = stated(lane);
    out.push_str(&format!("- limits stated: {}\n", if said.is_empty() { "unknown".to_owned() } else { said }));
    out.push_str(&format!("- limits observed: {}\n", e(&observed(lane))));
    if !lane.burst_ids.is_empty() {
        out.push_str(&format!("- bursts: {}\n", e(&lane.burst_ids.join(", "))));
    }
    out.push('\n');
    out
}
