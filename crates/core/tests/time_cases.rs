//! The time cases (plans and runtimes) and the laws of planned windows.
//!
//! Zones come from the database inside the test, which is as current as the crate that carries it.

// clippy lets test functions unwrap, but not the helpers that they share
#![allow(clippy::unwrap_used)]

#[path = "time/laws.rs"]
mod laws;
#[path = "time/world.rs"]
mod world;

use std::collections::BTreeSet;

use jiff::Timestamp;
use jiff::civil::Date;
use jiff::tz::{Offset, TimeZone, TimeZoneDatabase};
use peaklane_core::window::plan::DEFAULT_WEEKEND;
use peaklane_core::window::runtime::{MissedReason, Policy, Slot, Status};
use peaklane_core::window::{Calendar, Flag, LocalTime, PlannedWindow, plan};
use peaklane_testkit::data::{cases, unread};
use serde_json::{Map, Value};

use world::{Event, World};

/// Keys that explain a case and demand nothing.
const COMMENTARY: [&str; 3] = ["note", "source", "alternative"];

#[test]
fn every_planned_window_of_every_time_case_falls_on_its_instant() {
    check_all("plan", |_, case| case["kind"] != "runtime", plan_problems);
}

#[test]
fn every_runtime_case_ends_with_the_stated_status_of_each_window() {
    check_all("runtime", |_, case| case["kind"] == "runtime", runtime_problems);
}

/// Runs the cases of one sort and tells all that is wrong at once.
fn check_all(sort: &str, wanted: impl Fn(&str, &Value) -> bool, problems: impl Fn(&Value) -> Result<(), String>) {
    let cases: Vec<(String, Value)> = cases("cases/time").into_iter().filter(|(id, case)| wanted(id, case)).collect();
    assert!(!cases.is_empty(), "no {sort} case");
    let wrong: Vec<String> =
        cases.iter().filter_map(|(id, case)| problems(case).err().map(|problem| format!("{id}: {problem}"))).collect();
    assert!(wrong.is_empty(), "{} of {} {sort} cases:\n{}", wrong.len(), cases.len(), wrong.join("\n"));
}

fn plan_problems(case: &Value) -> Result<(), String> {
    const KEYS: &[&str] = &[
        "id",
        "kind",
        "zone",
        "windows",
        "start_date",
        "days",
        "workdays_only",
        "weekend",
        "holidays",
        "expected",
        "advisory",
    ];
    only_keys(case, KEYS)?;
    let planned = plan_of(case)?;
    let expected = list(case, "expected")?;
    if planned.len() != expected.len() {
        return Err(format!("{} entries, expected {}", planned.len(), expected.len()));
    }
    for (got, want) in planned.iter().zip(expected) {
        entry_matches(got, want).map_err(|problem| format!("{} {}: {problem}", got.date, got.window))?;
    }
    Ok(())
}

fn entry_matches(got: &PlannedWindow, want: &Value) -> Result<(), String> {
    only_keys(want, &["date", "window", "utc", "offset", "flag"])?;
    same(want, "date", Value::from(got.date.to_string()))?;
    same(want, "window", Value::from(got.window.to_string()))?;
    same(want, "utc", got.utc.map_or(Value::Null, |utc| Value::from(utc.to_string())))?;
    same(want, "flag", got.flag.map_or(Value::Null, |flag: Flag| Value::from(flag.name())))?;
    // a date that does not exist has no offset to state
    match (want.get("offset"), got.offset) {
        (None, None) => Ok(()),
        (_, offset) => same(want, "offset", offset.map_or(Value::Null, |offset| Value::from(hours(offset)))),
    }
}

fn runtime_problems(case: &Value) -> Result<(), String> {
    const KEYS: &[&str] = &[
        "id",
        "kind",
        "zone",
        "windows",
        "start_date",
        "days",
        "workdays_only",
        "weekend",
        "holidays",
        "expected",
        "advisory",
        "late_tolerance_s",
        "timeline",
    ];
    only_keys(case, KEYS)?;
    let mut policy = Policy::default();
    if let Some(tolerance) = case.get("late_tolerance_s") {
        policy.late_tolerance_s = parsed(tolerance)?;
    }
    let events = list(case, "timeline")?.iter().map(event).collect::<Result<Vec<_>, _>>()?;
    let due: Vec<PlannedWindow> = plan_of(case)?.into_iter().filter(|p| p.utc.is_some()).collect();
    let slots = due.iter().filter_map(|p| p.utc.map(|at| Slot { key: (p.date, p.window), at })).collect();
    let statuses = World::new(policy, slots).play(events)?;

    let expected = list(case, "expected")?;
    if due.len() != expected.len() {
        return Err(format!("{} bursts, expected {}", due.len(), expected.len()));
    }
    for (window, want) in due.iter().zip(expected) {
        let status = statuses.get(&(window.date, window.window)).copied();
        status_matches(window, status, want)
            .map_err(|problem| format!("{} {}: {problem}", window.date, window.window))?;
    }
    Ok(())
}

fn status_matches(window: &PlannedWindow, status: Option<Status>, want: &Value) -> Result<(), String> {
    only_keys(want, &["date", "window", "status", "reason", "started", "late_s", "within_s"])?;
    let status = status.ok_or("no status at all")?;
    same(want, "window", Value::from(window.window.to_string()))?;
    same(want, "status", Value::from(status.name()))?;
    if want.get("date").is_some() {
        same(want, "date", Value::from(window.date.to_string()))?;
    }
    if want.get("reason").is_some() {
        same(want, "reason", status.reason().map_or(Value::Null, |r: MissedReason| Value::from(r.name())))?;
    }
    if want.get("late_s").is_some() {
        same(want, "late_s", status.late_s().map_or(Value::Null, Value::from))?;
    }
    match (want.get("started").filter(|started| !started.is_null()), status.started()) {
        (None, None) => Ok(()),
        // a case may leave out when an interrupted burst began
        (None, Some(_)) if want.get("started").is_none() => Ok(()),
        (Some(want_started), Some(started)) => {
            let from: Timestamp = parsed(want_started)?;
            let within: i64 = want.get("within_s").map_or(Ok(0), parsed)?;
            let late = started.duration_since(from).as_secs();
            if (0..=within).contains(&late) { Ok(()) } else { Err(format!("started {started}, expected {from}")) }
        }
        (want_started, started) => Err(format!("started {started:?}, expected {want_started:?}")),
    }
}

fn event(entry: &Value) -> Result<(Timestamp, Event), String> {
    let at = parsed(&entry["at"])?;
    let kind = entry["event"].as_str().ok_or("an event without a name")?;
    let (event, keys): (Event, &[&str]) = match kind {
        "start" => (Event::Start, &[]),
        "restart" => (Event::Restart, &[]),
        "kill" | "crash" | "stop" => (Event::Kill, &[]),
        "sleep" => (Event::Sleep { until: parsed(&entry["until"])? }, &["until"]),
        "clock_step" => (Event::ClockStep { by_s: parsed(&entry["by_s"])? }, &["by_s"]),
        other => return Err(format!("unknown event `{other}`")),
    };
    only_keys(entry, &[&["at", "event"], keys].concat())?;
    Ok((at, event))
}

fn plan_of(case: &Value) -> Result<Vec<PlannedWindow>, String> {
    let zone: TimeZone =
        TimeZoneDatabase::bundled().get(case["zone"].as_str().ok_or("no zone")?).map_err(|error| error.to_string())?;
    let windows = list(case, "windows")?.iter().map(parsed).collect::<Result<Vec<LocalTime>, _>>()?;
    let weekend = match case.get("weekend") {
        Some(days) => days.as_array().ok_or("weekend is no list")?.iter().map(parsed).collect::<Result<_, _>>()?,
        None => DEFAULT_WEEKEND.to_vec(),
    };
    let holidays = match case.get("holidays") {
        Some(days) => days.as_array().ok_or("holidays is no list")?.iter().map(parsed).collect::<Result<_, _>>()?,
        None => BTreeSet::<Date>::new(),
    };
    let calendar = Calendar {
        windows,
        start_date: parsed(&case["start_date"])?,
        days: parsed(&case["days"])?,
        workdays_only: case.get("workdays_only").map_or(Ok(false), parsed)?,
        weekend,
        holidays,
    };
    plan(&calendar, &zone).map_err(|error| error.to_string())
}

/// Texts, numbers and booleans of a case, by their own parsers.
fn parsed<T: std::str::FromStr>(value: &Value) -> Result<T, String> {
    let text = value.as_str().map_or_else(|| value.to_string(), str::to_owned);
    text.parse().map_err(|_| format!("cannot read {value}"))
}

fn list<'c>(case: &'c Value, key: &str) -> Result<&'c Vec<Value>, String> {
    case[key].as_array().filter(|list| !list.is_empty()).ok_or_else(|| format!("`{key}` is no list with entries"))
}

fn same(want: &Value, key: &str, got: Value) -> Result<(), String> {
    match want.get(key) {
        Some(value) if *value == got => Ok(()),
        Some(value) => Err(format!("{key} is {got}, expected {value}")),
        None => Err(format!("the case states no `{key}`, got {got}")),
    }
}

/// What a case states and nothing here reads would pass unchecked.
fn only_keys(entry: &Value, known: &[&str]) -> Result<(), String> {
    let keys: &Map<String, Value> = entry.as_object().ok_or("no object")?;
    match keys.keys().find(|key| !known.contains(&key.as_str()) && !COMMENTARY.contains(&key.as_str())) {
        Some(key) => unread(&format!("unknown key `{key}`")),
        None => Ok(()),
    }
}

/// `+05:30`; a case never has seconds in an offset.
fn hours(offset: Offset) -> String {
    let seconds = offset.seconds();
    let sign = if seconds < 0 { '-' } else { '+' };
    format!("{sign}{:02}:{:02}", seconds.abs() / 3600, seconds.abs() / 60 % 60)
}
