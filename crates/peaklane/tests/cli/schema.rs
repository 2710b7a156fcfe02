//! The published schemas of `--format json`, and a validator that knows as much of JSON Schema as they use.
//!
//! Every object of them names all its keys and allows no other, so that a key that comes or goes makes them stale.

use std::fs;

use peaklane_core::attempt::Verdict;
use peaklane_core::burst::{BurstEnd, BurstState};
use peaklane_core::lane::Api;
use peaklane_core::outcome::Outcome;
use peaklane_core::record::TryRecord;
use peaklane_core::rules::Thresholds;
use peaklane_core::summary::summarise;
use peaklane_report::burst::{BurstView, json as burst_json};
use peaklane_report::try_json::TryJson;
use peaklane_report::try_view::{TrySeen, TryView};
use serde_json::{Value, json};

use crate::support::{End, burst, project_file};

/// The schemas that are published.
const SCHEMAS: [&str; 17] = [
    "burst",
    "calls",
    "check",
    "countertest",
    "data-purge",
    "decide",
    "demo",
    "history",
    "proxy-env",
    "sessions",
    "sessions-files",
    "summary",
    "summary-status",
    "try",
    "try-all",
    "watch",
    "watch-plan",
];

fn schema_of(name: &str) -> Value {
    let path = project_file(&format!("schema/output/{name}.schema.json"));
    let text = fs::read_to_string(&path).unwrap_or_else(|e| panic!("{}: {e}", path.display()));
    serde_json::from_str(&text).unwrap_or_else(|e| panic!("{}: {e}", path.display()))
}

/// Asserts that a real output is what its schema promises, key by key.
#[track_caller]
pub(crate) fn assert_valid(name: &str, output: &Value) {
    let schema = schema_of(name);
    let mut problems = Vec::new();
    validate(&schema, &schema, output, "", &mut problems);
    assert_eq!(problems, [""; 0], "schema/output/{name}.schema.json does not fit (is it stale?)\n{output:#}");
}

/// Keywords that the validator knows; `description` and the like decide nothing.
const KNOWN: [&str; 15] = [
    "$schema",
    "$id",
    "$defs",
    "$ref",
    "title",
    "description",
    "type",
    "enum",
    "const",
    "properties",
    "required",
    "additionalProperties",
    "items",
    "anyOf",
    "minimum",
];

fn validate(root: &Value, schema: &Value, value: &Value, at: &str, problems: &mut Vec<String>) {
    let Some(rules) = schema.as_object() else { return };
    for keyword in rules.keys().filter(|keyword| !KNOWN.contains(&keyword.as_str())) {
        problems.push(format!("{at}: the validator does not know `{keyword}`"));
    }
    if let Some(reference) = rules.get("$ref").and_then(Value::as_str) {
        let (file, place) = reference.split_once('#').unwrap_or((reference, ""));
        let other = file.strip_suffix(".schema.json").map(schema_of);
        let root = other.as_ref().unwrap_or(root);
        match root.pointer(place) {
            Some(target) => validate(root, target, value, at, problems),
            None => problems.push(format!("{at}: `{reference}` leads nowhere")),
        }
    }
    if let Some(types) = rules.get("type") {
        let named = |name: &Value| name.as_str().is_some_and(|name| is_a(value, name));
        if !types.as_array().map_or_else(|| named(types), |types| types.iter().any(named)) {
            problems.push(format!("{at}: {value} is no {types}"));
        }
    }
    if rules.get("enum").and_then(Value::as_array).is_some_and(|allowed| !allowed.contains(value)) {
        problems.push(format!("{at}: {value} is none of the words"));
    }
    if rules.get("const").is_some_and(|only| only != value) {
        problems.push(format!("{at}: {value} is not the only value"));
    }
    if let (Some(least), Some(number)) = (rules.get("minimum").and_then(Value::as_f64), value.as_f64())
        && number < least
    {
        problems.push(format!("{at}: {number} is less than {least}"));
    }
    if let Some(choices) = rules.get("anyOf").and_then(Value::as_array) {
        let fits = |choice: &Value| {
            let mut found = Vec::new();
            validate(root, choice, value, at, &mut found);
            found.is_empty()
        };
        if !choices.iter().any(fits) {
            problems.push(format!("{at}: {value} fits no choice"));
        }
    }
    if let (Some(items), Some(list)) = (rules.get("items"), value.as_array()) {
        (0..).zip(list).for_each(|(i, item): (u32, _)| validate(root, items, item, &format!("{at}/{i}"), problems));
    }
    if let Some(object) = value.as_object() {
        let known = rules.get("properties").and_then(Value::as_object);
        for key in rules.get("required").and_then(Value::as_array).into_iter().flatten().filter_map(Value::as_str) {
            if !object.contains_key(key) {
                problems.push(format!("{at}: `{key}` is missing"));
            }
        }
        for (key, inner) in object {
            match (known.and_then(|known| known.get(key)), rules.get("additionalProperties")) {
                (Some(schema), _) => validate(root, schema, inner, &format!("{at}/{key}"), problems),
                (None, Some(Value::Bool(false))) => problems.push(format!("{at}: `{key}` is in no schema")),
                _ => {}
            }
        }
    }
}

fn is_a(value: &Value, name: &str) -> bool {
    match name {
        "null" => value.is_null(),
        "boolean" => value.is_boolean(),
        "integer" => value.is_u64() || value.is_i64(),
        "number" => value.is_number(),
        "string" => value.is_string(),
        "array" => value.is_array(),
        "object" => value.is_object(),
        _ => false,
    }
}

/// Every schema inside a schema, with its place.
fn walk(schema: &Value, at: &str, visit: &mut impl FnMut(&Value, &str)) {
    visit(schema, at);
    for group in ["properties", "$defs"] {
        for (key, inner) in schema.get(group).and_then(Value::as_object).into_iter().flatten() {
            walk(inner, &format!("{at}/{key}"), visit);
        }
    }
    for inner in schema.get("anyOf").and_then(Value::as_array).into_iter().flatten().chain(schema.get("items")) {
        walk(inner, at, visit);
    }
}

#[test]
fn every_schema_names_all_keys_forbids_others_and_says_what_each_one_means() {
    for name in SCHEMAS {
        let schema = schema_of(name);
        let mut poor = Vec::new();
        walk(&schema, "", &mut |part, at| {
            let Some(properties) = part.get("properties").and_then(Value::as_object) else { return };
            if part["additionalProperties"] != json!(false) {
                poor.push(format!("{at} allows other keys"));
            }
            let required = part["required"].as_array().map(Vec::len);
            if required != Some(properties.len()) {
                poor.push(format!("{at}: {required:?} of {} keys are required", properties.len()));
            }
            for (key, property) in properties {
                if property.get("description").is_none() && property.get("$ref").is_none() {
                    poor.push(format!("{at}/{key} has no meaning"));
                }
            }
        });
        assert_eq!(poor, [""; 0], "{name}");
    }
}

#[test]
fn no_schema_lies_there_without_a_test() {
    let folder = project_file("schema/output");
    let mut found: Vec<String> = fs::read_dir(&folder)
        .unwrap()
        .map(|entry| entry.unwrap().file_name().to_string_lossy().trim_end_matches(".schema.json").to_owned())
        .collect();
    found.sort();
    assert!(SCHEMAS.iter().all(|name| found.iter().any(|one| one == name)), "{found:?}");
}

#[test]
fn the_validator_refuses_what_does_not_fit() {
    let schema = json!({
        "type": "object",
        "properties": {"n": {"type": ["integer", "null"], "minimum": 1}, "word": {"enum": ["a", "b"]}},
        "required": ["n"],
        "additionalProperties": false,
    });
    let refused = |value: Value| {
        let mut problems = Vec::new();
        validate(&schema, &schema, &value, "", &mut problems);
        problems.len()
    };
    assert_eq!(refused(json!({"n": 1, "word": "a"})), 0);
    assert_eq!(refused(json!({"n": null})), 0);
    for bad in [
        json!({}),
        json!({"n": 0}),
        json!({"n": 1.5}),
        json!({"n": 1, "word": "c"}),
        json!({"n": 1, "x": 1}),
        json!([]),
    ] {
        assert!(refused(bad.clone()) > 0, "{bad}");
    }
}

#[test]
fn a_burst_as_programs_get_it_is_what_its_schema_promises() {
    let burst = burst("lane-a", "2026-11-30", Some("16:00"), &[End::Limited, End::Slow(40_000)]);
    let figures: Vec<_> = burst.attempts.iter().map(Into::into).collect();
    let end = BurstEnd {
        state: BurstState::Complete,
        duration_us: 40_000_001,
        peak_in_flight: 8,
        max_skew_us: 120,
        own_lag_us: [10, 20, 30],
        body_bytes: 4_096,
        finding: Some("max_tokens was refused".to_owned()),
        control: None,
    };
    for (state, end, warmup) in [
        (BurstState::Complete, Some(&end), Some(&burst.attempts[7])),
        (BurstState::Interrupted, None, None),
        (BurstState::Void, Some(&end), Some(&burst.attempts[0])),
    ] {
        let made = if state == BurstState::Interrupted { &figures[..0] } else { &figures };
        let summary = summarise(&burst.header, state, made);
        let handshake_us = end.map(|_| 31_000);
        let view = BurstView { summary: &summary, end, warmup, handshake_us, findings: vec!["refused".to_owned()] };
        assert_valid("burst", &burst_json(&[view], &Thresholds::default()).unwrap());
    }
    assert!(figures.iter().any(|f: &peaklane_core::burst::AttemptFigures| f.verdict == Verdict::TooSlow));
}

#[test]
fn a_try_as_programs_get_it_is_what_its_schema_promises() {
    let mut answered = TryRecord::new(Outcome::Ok);
    answered.http_status = Some(200);
    answered.ttft_us = Some(120_500);
    answered.end_us = Some(900_000);
    answered.rate_limits = vec![("x-ratelimit-remaining".to_owned(), "7".to_owned())];
    answered.tool_calls = vec![peaklane_core::record::ToolCall { name: "grep".to_owned(), arguments: "{}".to_owned() }];
    let refused = TryRecord::new(Outcome::RateLimited);
    let view = |tries| TryView {
        lane: "lane-a",
        api: Api::Messages,
        url: "http://127.0.0.1:9/v1/messages",
        model: "m",
        stream: true,
        tool_version: "0.1.0",
        tries,
    };
    let seen = |record, offset_us| TrySeen { record, offset_us, waited_us: offset_us };
    for tries in [vec![], vec![seen(&refused, 0)], vec![seen(&refused, 0), seen(&answered, 2_000_000)]] {
        let one = serde_json::to_value(TryJson::from(&view(tries))).unwrap();
        assert_valid("try", &one);
        assert_valid("try-all", &json!({ "lanes": [one] }));
    }
}

#[test]
fn the_demo_as_programs_get_it_is_what_its_schema_promises() {
    let object = crate::support::sandbox().run(["demo", "--format", "json", "--no-page"]).expect_code(0).json();
    assert_valid("demo", &object);
    assert_eq!(object["bursts"].as_array().map(Vec::len), Some(48));
}
