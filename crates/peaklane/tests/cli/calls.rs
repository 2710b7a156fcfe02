//! `summary calls` and `summary sessions` over a store, and what a purge leaves of it.

use peaklane_core::call::{BreakKind, CallRecord, Divergence, PrefixFigures};
use peaklane_core::outcome::Outcome;
use peaklane_core::record::{ToolCall, TryRecord, Usage};
use peaklane_store::CallWriter;
use peaklane_testkit::binary::Sandbox;
use serde_json::{Value, json};

use crate::schema::assert_valid;
use crate::support::{configuration, refused, sandbox};

/// 2026-11-30, 09:00 UTC.
const NINE: i64 = 1_796_029_200;

/// A call of 1,000 prompt tokens, 600 of them cached, and 100 generated ones: it waits 1 s and generates 2 s.
fn call(session: &str, seq: u32, at_s: i64) -> CallRecord {
    let mut record = TryRecord::new(Outcome::Ok);
    (record.http_status, record.streamed) = (Some(200), Some(true));
    (record.first_byte_us, record.ttft_us, record.end_us) = (Some(900_000), Some(1_000_000), Some(3_000_000));
    record.usage = Usage { prompt: Some(1_000), completion: Some(100), cached: Some(600), ..Usage::default() };
    record.tool_calls = vec![ToolCall { name: "bash".into(), arguments: String::new() }];
    CallRecord {
        id: format!("p1-{session}-{seq:04}"),
        harness: Some("pi/0.73.1".into()),
        lane: Some("lane-a".into()),
        started_unix_us: (NINE + at_s) * 1_000_000,
        model: Some("m".into()),
        request_bytes: 4_200,
        tools: 4,
        total_us: 3_000_000,
        ..CallRecord::new(session, seq, record)
    }
}

/// A prompt of 4,000 bytes that repeats so many of a former one of 4,000.
fn shares(common: u64) -> PrefixFigures {
    PrefixFigures {
        prompt_bytes: 4_000,
        segments: 9,
        former_seq: Some(1),
        former_bytes: Some(4_000),
        common_bytes: Some(common),
        common_other_order_bytes: Some(common),
        exact: true,
        best_bytes: Some(common),
        best_seq: Some(1),
        divergence: (common < 4_000).then(|| Divergence {
            segment: "system".into(),
            path: "messages[0].content".into(),
            kind: BreakKind::Clock,
            before: "time is 09:00".into(),
            after: "time is 09:01".into(),
        }),
        ..PrefixFigures::default()
    }
}

/// `fix-1`: three calls, the second after a break of 3,600 of 4,000 bytes, the third refused. `fix-2`, an hour later, on
/// another lane: one call without reported tokens.
fn filled() -> Sandbox {
    let sandbox = sandbox();
    let price = "[lane.price]\ninput_usd_per_mtok = 1\ncached_input_usd_per_mtok = 0.1\noutput_usd_per_mtok = 4";
    sandbox.file("peaklane.toml", &format!("time_zone = \"UTC\"\n{}", configuration(price)));
    let first = CallRecord {
        prefix: Some(PrefixFigures { prompt_bytes: 4_000, ..PrefixFigures::default() }),
        ..call("fix-1", 1, 0)
    };
    let broken = CallRecord { prefix: Some(shares(400)), ..call("fix-1", 2, 10) };
    let mut limited = CallRecord { prefix: Some(shares(4_000)), retry: 1, ..call("fix-1", 3, 20) };
    limited.record = TryRecord::new(Outcome::RateLimited);
    (limited.record.http_status, limited.record.message) = (Some(429), Some("slow down".into()));
    let mut silent = CallRecord { lane: Some("lane-b".into()), ..call("fix-2", 1, 3_600) };
    silent.record.usage = Usage::default();
    (silent.estimated_prompt_tokens, silent.estimated_completion_tokens) = (Some(950), Some(90));
    let mut writer = CallWriter::open(&sandbox.path().join("peaklane.db")).expect("a store");
    writer.append(&[first, broken, limited, silent]).expect("room for four calls");
    sandbox
}

fn listed(sandbox: &Sandbox, words: &[&str]) -> Vec<Value> {
    let words = [&["summary"][..], words, &["--format", "json"]].concat();
    sandbox.run(words).expect_code(0).json().as_array().expect("an array").clone()
}

fn named(list: &[Value], key: &str) -> Vec<String> {
    list.iter().map(|one| one[key].as_str().expect("a text").to_owned()).collect()
}

#[test]
fn sessions_for_programs_are_what_their_schema_promises_and_what_was_recorded() {
    let sessions = listed(&filled(), &["sessions"]);
    assert_valid("sessions", &json!(sessions));
    assert_eq!(named(&sessions, "session"), ["fix-1", "fix-2"]);
    let [one, two] = sessions.as_slice() else { panic!("two sessions") };
    // Three calls of 3 s each, 7 s apart; the refused one only waited.
    let time = json!({"wall_ms": 23_000.0, "model_ms": 4_000.0, "waiting_ms": 5_000.0, "harness_ms": 14_000.0});
    assert_eq!(one["time"], time);
    assert_eq!((&one["calls"], &one["logical_calls"], &one["repeats"]), (&json!(3), &json!(2), &json!(1)));
    assert_eq!(one["failures"], json!([{"class": "rate_limited", "count": 1}]));
    assert_eq!((&one["tokens"]["prompt"], &one["tokens"]["cached"]), (&json!(2_000), &json!(1_200)));
    assert_eq!((&one["hit_rate"], &one["reuse_min"]), (&json!(0.6), &json!(0.1)));
    // Two answered calls: 400 fresh tokens at $1, 600 cached at $0.1 and 100 generated at $4 for a million, each.
    assert_eq!(one["cost_usd"], json!(0.00172));
    // 3,600 of 4,000 bytes, at 1,000 tokens for 4,000 bytes.
    assert_eq!(one["breaks"][0]["refilled_tokens_estimated"], 900);
    assert_eq!((&one["blame"]["harness"], &one["breaks"][0]["kind"]), (&json!(1), &json!("clock")));
    assert_eq!((&two["tokens"]["estimated_prompt"], &two["hit_rate"]), (&json!(950), &json!(null)));
    assert_eq!((&two["cost_usd"], &two["known_cost_usd"]), (&json!(null), &json!(null)), "nobody knows its price");
}

#[test]
fn sessions_for_people_begin_with_the_break_that_cost_most_and_mark_what_is_estimated() {
    let shown = filled().run(["summary", "sessions"]).expect_code(0).stdout;
    let first = shown.lines().next().unwrap_or_default();
    assert_eq!(first, "The prefix of fix-1 broke once at messages[0].content, by a clock: ~900 tokens prefilled again");
    for words in ["2026-11-30 09:00:00", "pi/0.73.1", "~950", "$0.0017", "1 rate limited", "`time is 09:00`"] {
        assert!(shown.contains(words), "no `{words}` in\n{shown}");
    }
}

#[test]
fn calls_for_programs_are_what_their_schema_promises_one_object_each_in_the_order_of_time() {
    let sandbox = filled();
    let calls = listed(&sandbox, &["calls"]);
    assert_valid("calls", &json!(calls));
    assert_eq!(named(&calls, "id"), ["p1-fix-1-0001", "p1-fix-1-0002", "p1-fix-1-0003", "p1-fix-2-0001"]);
    assert_eq!((&calls[1]["prefix"]["reuse"], &calls[1]["prefix"]["blame"]), (&json!(0.1), &json!("harness")));
    assert_eq!((&calls[2]["message"], &calls[2]["prompt_tokens"]), (&json!("slow down"), &json!(null)));
    assert_eq!((&calls[3]["estimated_prompt_tokens"], &calls[3]["prefix"]), (&json!(950), &json!(null)));
    // Printed in pieces, and as one value printed whole would be.
    let text = sandbox.run(["summary", "calls", "--format", "json"]).expect_code(0).stdout;
    assert_eq!(text, format!("{:#}\n", json!(calls)));
}

#[test]
fn calls_and_sessions_are_narrowed_by_session_lane_time_failure_and_number() {
    let sandbox = filled();
    for (words, calls, sessions) in [
        (&["--session", "fix-2"][..], &["p1-fix-2-0001"][..], &["fix-2"][..]),
        (&["--lane", "lane-b"], &["p1-fix-2-0001"], &["fix-2"]),
        (&["--since", "2026-11-30T09:30:00Z"], &["p1-fix-2-0001"], &["fix-2"]),
        (&["--failed"], &["p1-fix-1-0003"], &["fix-1"]),
        (&["--last", "1"], &["p1-fix-2-0001"], &["fix-2"]),
    ] {
        assert_eq!(named(&listed(&sandbox, &[&["calls"], words].concat()), "id"), calls, "{words:?}");
        let found = listed(&sandbox, &[&["sessions"], words].concat());
        assert_eq!(named(&found, "session"), sessions, "{words:?}");
    }
    // A session is summed up whole, whichever of its calls was asked for.
    assert_eq!(listed(&sandbox, &["sessions", "--failed"])[0]["calls"], 3);
    for what in ["calls", "sessions"] {
        let none = ["summary", what, "--session", "fix-9", "--format", "json"];
        refused(sandbox.run(none), 3, &["no call that was asked for"]);
    }
    refused(sandbox.run(["summary", "--session", "fix-1"]), 2, &["`--session` narrows calls and sessions"]);
}

#[test]
fn tables_for_other_programs_have_a_line_for_each_call_and_session() {
    let sandbox = filled();
    let csv = sandbox.run(["summary", "calls", "--format", "csv"]).expect_code(0).stdout;
    assert_eq!(csv.lines().count(), 5, "{csv}");
    assert!(csv.starts_with("started,session,seq,id,lane,outcome,"), "{csv}");
    let csv = sandbox.run(["summary", "sessions", "--format", "csv"]).expect_code(0).stdout;
    let second = csv.lines().nth(2).unwrap_or_default();
    assert_eq!(csv.lines().count(), 3, "{csv}");
    assert!(second.starts_with("fix-2,") && !second.contains('~'), "an estimate is no figure: {csv}");
    let md = sandbox.run(["summary", "sessions", "--format", "md"]).expect_code(0).stdout;
    assert!(md.starts_with("**The prefix of fix-1 broke once") && md.contains("| fix-2 |"), "{md}");
}

#[test]
fn sessions_of_files_and_exports_for_harnesses_are_what_their_schemas_promise() {
    let sandbox = sandbox();
    let file = crate::support::project_file("docs/examples/session.jsonl");
    let file = file.to_str().expect("a name in UTF-8");
    assert_valid("sessions-files", &json!(listed(&sandbox, &["sessions", file])));
    for harness in peaklane_core::harness::KNOWN {
        let words = ["proxy", "env", "--harness", harness.name, "--session", "run-1", "--format", "json"];
        assert_valid("proxy-env", &sandbox.run(words).expect_code(0).json());
    }
}

#[test]
fn a_session_is_purged_by_its_name_and_a_day_takes_the_calls_before_it() {
    let sandbox = filled();
    let purge = |words: &[&str]| {
        let object = sandbox.run([&["data", "purge", "--format", "json"], words].concat()).expect_code(0).json();
        assert_valid("data-purge", &object);
        object
    };
    let counted = purge(&["--session", "fix-1", "--dry-run"]);
    assert_eq!((&counted["removed"]["calls"], &counted["before"]), (&json!(3), &json!(null)));
    assert_eq!(listed(&sandbox, &["calls"]).len(), 4, "counting removes nothing");
    let removed = purge(&["--session", "fix-1", "--yes"]);
    assert_eq!((&removed["removed"]["calls"], &removed["session"]), (&json!(3), &json!("fix-1")));
    assert_eq!(named(&listed(&sandbox, &["sessions"]), "session"), ["fix-2"]);
    let none = sandbox.run(["data", "purge", "--session", "fix-1", "--yes"]).expect_code(0);
    assert_eq!(none.stdout, "nothing in peaklane.db is of a session `fix-1`\n");
    assert_eq!(purge(&["--before", "2026-12-01", "--yes"])["removed"]["calls"], 1);
    sandbox.run(["data", "purge", "--yes"]).expect_code(2);
    sandbox.run(["data", "purge", "--session", "a", "--before", "2026-12-01", "--yes"]).expect_code(2);
}
