//! `try` and `burst` against the fake lane: whatever it does is a recorded result with a class, and no key is ever shown.

use std::fs;
use std::time::Duration;

use peaklane_sim::fake::FakeLane;
use peaklane_testkit::binary::Sandbox;
use serde_json::{Value, json};

use crate::schema::assert_valid;
use crate::support::{KEY, configuration, refused, sandbox};

/// A lane made by the environment, as a new user would make one.
fn with_lane(lane: &FakeLane, model: &str) -> Sandbox {
    sandbox().env("LLM_BASE_URL", lane.base_url()).env("LLM_MODEL", model).env("LLM_API_KEY", KEY)
}

#[test]
fn eight_rows_of_a_burst_are_enough_for_a_summary_without_store_or_configuration() {
    let lane = FakeLane::start().unwrap();
    let sandbox = with_lane(&lane, "fake-ok");
    let fired = sandbox.run(["burst", "--csv", "env.csv", "--format", "json"]).expect_code(0).json();
    assert_valid("burst", &fired);
    assert_eq!((&fired["bursts"][0]["lane"], &fired["bursts"][0]["passed"]), (&json!("env"), &json!(8)));
    assert_eq!(sandbox.read("env.csv").lines().count(), 9, "a header and eight rows");
    assert_eq!(lane.seen().len(), 8, "eight requests and nothing else");
    assert!(lane.seen().iter().all(|seen| seen.carried(KEY)), "the key was sent");

    let from_store = sandbox.run(["summary", "--format", "json"]).expect_code(0).json();
    fs::remove_file(sandbox.path().join("peaklane.db")).unwrap();
    let from_csv = sandbox.run(["summary", "env.csv", "--format", "json"]).expect_code(0).json();
    assert_valid("summary", &from_csv);
    assert_eq!(from_csv["lanes"], from_store["lanes"]);
    assert_eq!(from_csv["lanes"][0]["windows"][0]["passed"], 8);
    sandbox.assert_never_said(KEY, &[]);
}

#[test]
fn a_lane_that_misbehaves_is_a_class_and_a_hint_and_never_shows_the_key() {
    let lane = FakeLane::start().unwrap();
    for (model, class) in [
        ("fake-html", "bad_body"),
        ("fake-garbage", "bad_body"),
        ("fake-401", "auth"),
        ("fake-quota", "quota_exhausted"),
        ("fake-429", "rate_limited"),
        ("fake-never", "timeout_first_byte"),
    ] {
        let sandbox = with_lane(&lane, model).limit(Duration::from_secs(30));
        let tried = ["try", "--format", "json", "--first-byte-timeout", "300ms"];
        let object = sandbox.run(tried).expect_code(3).json();
        assert_valid("try", &object);
        assert_eq!(object["outcome"], class, "{model}");
        let people = sandbox.run(["try", "--first-byte-timeout", "300ms"]).expect_code(3);
        assert!(people.stdout.contains("hint"), "{model} leaves the reader without a next step:\n{}", people.stdout);

        let burst = ["burst", "-n", "2", "--retries", "0", "--first-byte-timeout", "300ms", "--format", "json"];
        let object = sandbox.run(burst).expect_code(0).json();
        assert_valid("burst", &object);
        assert_eq!(object["bursts"][0]["misses"], json!([{"class": class, "count": 2}]), "{model}");
        sandbox.assert_never_said(KEY, &[]);
    }
}

#[test]
fn a_lane_that_answers_for_ever_is_ended_by_the_total_limit() {
    let lane = FakeLane::start().unwrap();
    let sandbox = with_lane(&lane, "fake-endless");
    let object = sandbox.run(["try", "--total-timeout", "400ms", "--format", "json"]).json();
    assert_valid("try", &object);
    assert_eq!(object["outcome"], "timeout_total");
    assert_ne!(object["ttft_at_ms"], Value::Null, "what arrived before is kept");
}

#[cfg(target_os = "linux")]
#[test]
fn a_full_disk_is_told_and_what_was_recorded_before_is_kept() {
    let lane = FakeLane::start().unwrap();
    let binary = env!("CARGO_BIN_EXE_peaklane");
    let shell = Sandbox::new("/bin/sh").env("LLM_BASE_URL", lane.base_url()).env("LLM_MODEL", "fake-ok");
    let burst = |before: &str| {
        let script = format!("{before} exec {binary} burst --no-store --csv env.csv --format json");
        shell.run(["-c", &script])
    };
    burst("").expect_code(0);
    let recorded = shell.read("env.csv");
    // room for half a row more; the limit counts blocks of 512 bytes, and its signal is left to the program's own error
    let limit = format!("trap '' XFSZ; ulimit -f {};", recorded.len() / 512 + 1);
    refused(burst(&limit), 3, &["env.csv", "free some space"]);
    assert!(shell.read("env.csv").starts_with(&recorded), "what was there is there");
    let sum = shell.run(["-c", &format!("{binary} summary env.csv --format json")]).expect_code(0).json();
    let counted = &sum["lanes"][0]["windows"][0];
    assert_eq!((&counted["passed"], &counted["n"]), (&json!(8), &json!(8)));

    let full = shell.run(["-c", &format!("{binary} init --stdout > /dev/full")]).expect_code(3);
    assert!(full.stderr.starts_with("error: cannot write to standard output\n  caused by: "), "{}", full.stderr);
}

#[test]
fn a_csv_file_with_other_columns_is_refused_before_anything_is_sent() {
    let lane = FakeLane::start().unwrap();
    let sandbox = with_lane(&lane, "fake-ok");
    sandbox.file("other.csv", "timestamp,latency\n1,2\n");
    refused(sandbox.run(["burst", "--csv", "other.csv"]), 2, &["other columns"]);
    assert_eq!(sandbox.read("other.csv"), "timestamp,latency\n1,2\n");
    assert_eq!(lane.seen().len(), 0);
}

#[test]
fn a_key_on_the_command_line_is_not_repeated() {
    let sandbox = sandbox();
    for words in [
        &["try", "--base-url", "http://127.0.0.1:9", "--model", "m", "--api-key-env", KEY][..],
        &["try", "--base-url", "http://127.0.0.1:9", "--model", "m", "--api-key=sk-hush-hush-4711-never-shown"],
        &["try", "--base-url", "http://user:sk-hush-hush-4711-never-shown@127.0.0.1:9", "--model", "m"],
    ] {
        let ran = sandbox.run(words).expect_code(2);
        assert_eq!(ran.stdout, "");
    }
    sandbox.assert_never_said(KEY, &[]);
}

#[test]
fn a_batch_class_works_for_its_stretch_and_is_judged_by_right_answers_an_hour() {
    let lane = FakeLane::start().unwrap();
    let sandbox = with_lane(&lane, "fake-ok");
    let file = format!(
        "[[lane]]\nname = 'lane-a'\nkind = 'free-hosted'\nbase_url = '{}'\nmodel = 'fake-ok'\n\
         [[task]]\nname = 'nightly'\nprompt = 'Say hi.'\ntasks_per_hour = 1\nconcurrency = 2\nstretch = '5m'\n",
        lane.base_url()
    );
    sandbox.file("peaklane.toml", &file);
    let words = ["burst", "--task", "nightly", "--stretch", "1s", "--csv", "n.csv", "--format", "json"];
    let ran = sandbox.run(words).expect_code(0);
    let burst = &serde_json::from_str::<Value>(&ran.stdout).unwrap()["bursts"][0];
    assert_eq!((burst["state"].as_str(), burst["stretch_ms"].as_u64()), (Some("complete"), Some(1000)));
    assert_eq!((burst["throughput_holds"].as_bool(), burst["floor_ms"].is_null()), (Some(true), true));
    assert_eq!((burst["n"].as_u64(), burst["passed"].as_u64()), (burst["made"].as_u64(), burst["made"].as_u64()));
    let right = burst["right_in_stretch"].as_f64().unwrap();
    assert_eq!(burst["tasks_per_hour"].as_f64(), Some(right * 3600.0));
    // the rows alone tell that the stretch is whole
    let read = peaklane_store::csv::read(&sandbox.path().join("n.csv")).unwrap();
    assert_eq!(read.bursts[0].state.name(), "complete");
}

#[test]
fn a_stretch_is_for_batch_classes_and_within_its_bounds() {
    let sandbox = sandbox();
    sandbox.file("peaklane.toml", &configuration(""));
    refused(sandbox.run(["burst", "--stretch", "30s"]), 2, &["`inline-assist` has a latency floor", "tasks_per_hour"]);
    refused(sandbox.run(["burst", "--stretch", "500ms"]), 2, &["`--stretch` is 500ms", "write 1s to 4h"]);
}
