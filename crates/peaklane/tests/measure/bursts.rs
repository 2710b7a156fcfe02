//! A burst of the lane that three variables make: eight rows, a summary of the file alone, and other lanes by other values.

use std::fs;
use std::io::{Read, Write};
use std::net::TcpListener;
use std::time::Duration;

use peaklane_core::burst::BurstState;
use peaklane_sim::fake::FakeLane;
use peaklane_testkit::binary::Sandbox;
use serde_json::json;

use crate::support::{BINARY, KEY, burst, rows, stored, with_fake, with_lane};

#[test]
fn a_burst_appends_eight_rows_of_one_line_each_and_a_second_one_eight_more_under_the_same_header() {
    let lane = FakeLane::start().unwrap();
    let sandbox = with_fake(&lane, "fake-ok");
    for (times, count) in [(1, 8), (2, 16)] {
        let one = burst(&sandbox, &["--csv", "env.csv"]);
        let whole = (&one["lane"], &one["kind"], &one["passed"], &one["n"], &one["floor_ms"]);
        assert_eq!(whole, (&json!("env"), &json!("free-hosted"), &json!(8), &json!(8), &json!(25_000)));
        assert_eq!(rows(&sandbox.read("env.csv")).len(), count);
        assert_eq!(lane.seen().len(), count, "no warm-up and nothing sent twice");
        let held = stored(sandbox.path());
        assert_eq!(held.len(), times);
        assert!(held.iter().all(|(burst, attempts)| burst.state() == BurstState::Complete && attempts.len() == 8));
    }
    sandbox.assert_never_said(KEY, &[]);
}

#[test]
fn the_rows_alone_make_a_summary_in_an_empty_folder() {
    let lane = FakeLane::start().unwrap();
    let measured = with_fake(&lane, "fake-ok");
    burst(&measured, &["--csv", "env.csv"]);
    let from_store = measured.run(["summary", "--format", "json"]).expect_code(0).json();

    let empty = Sandbox::new(BINARY);
    empty.file("env.csv", &measured.read("env.csv"));
    let from_csv = empty.run(["summary", "env.csv", "--format", "json"]).expect_code(0).json();
    assert_eq!(from_csv["lanes"], from_store["lanes"]);
    let window = &from_csv["lanes"][0]["windows"][0];
    assert_eq!((&window["passed"], &window["n"]), (&json!(8), &json!(8)));
    assert!(empty.run(["summary", "env.csv"]).expect_code(0).stdout.contains("8/8"));
    assert!(!empty.path().join("peaklane.db").exists(), "a summary makes no store");
}

#[test]
fn switching_lanes_is_switching_variables_and_nothing_else() {
    let (first, second) = (FakeLane::start().unwrap(), FakeLane::start().unwrap());
    let folder = Sandbox::new(BINARY);
    let csv = folder.path().join("all.csv");
    let store = format!("sqlite:{}", folder.path().join("team.db").display());
    let words = ["--csv", csv.to_str().unwrap(), "--store", &store];
    for (lane, model, passed) in [(&first, "fake-ok", 8), (&second, "fake-delay-40", 8), (&second, "fake-empty", 0)] {
        let one = burst(&with_fake(lane, model), &[&words[..], &["--retries", "0"]].concat());
        assert_eq!((&one["model"], &one["passed"]), (&json!(model), &json!(passed)));
    }
    assert_eq!((first.seen().len(), second.seen().len()), (8, 16));
    assert_eq!(rows(&fs::read_to_string(&csv).unwrap()).len(), 24);
}

#[test]
fn other_apis_are_a_variable_too() {
    let lane = FakeLane::start().unwrap();
    for (api, path) in [
        ("chat", "/v1/chat/completions"),
        ("completions", "/v1/completions"),
        ("messages", "/v1/messages"),
        ("responses", "/v1/responses"),
    ] {
        let before = lane.seen().len();
        let one = burst(&with_fake(&lane, "fake-ok").env("LLM_API", api), &["-n", "2", "--no-store"]);
        assert_eq!((&one["passed"], &one["api"]), (&json!(2), &json!(api)));
        let targets: Vec<String> = lane.seen().split_off(before).into_iter().map(|seen| seen.target).collect();
        assert_eq!(targets, [path, path], "{api}");
    }
}

#[test]
fn a_lane_that_nobody_serves_is_a_recorded_result() {
    // bound and dropped: nothing listens there
    let port = std::net::TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
    let sandbox = with_lane(&format!("http://127.0.0.1:{port}/v1"), "m");
    let one = burst(&sandbox, &["--retries", "0", "--csv", "env.csv"]);
    assert_eq!(one["misses"], json!([{"class": "unreachable", "count": 8}]));
    assert_eq!(one["p90"], json!({"value_ms": null, "exceeds_ms": 120_000}));
    assert_eq!(rows(&sandbox.read("env.csv")).len(), 8);
    let tried = sandbox.run(["try", "--format", "json"]).expect_code(3).json();
    assert_eq!((&tried["outcome"], &tried["end_at_ms"].is_null()), (&json!("unreachable"), &false));
    sandbox.assert_never_said(KEY, &[]);
}

#[test]
fn a_closed_loop_keeps_its_number_in_flight_and_every_attempt_has_one_row() {
    let lane = FakeLane::start().unwrap();
    let sandbox = with_fake(&lane, "fake-ok");
    let one = burst(&sandbox, &["-n", "40", "--concurrency", "4", "--csv", "env.csv"]);
    assert_eq!((&one["passed"], &one["delivered"]["peak_in_flight"]), (&json!(40), &json!(4)));
    let csv = sandbox.read("env.csv");
    assert_eq!(rows(&csv).len(), 40);
    let (_, attempts) = stored(sandbox.path()).remove(0);
    assert_eq!(attempts.iter().map(|a| a.index).collect::<Vec<_>>(), (0..40).collect::<Vec<_>>());
}

/// A lane that leaves its connections open by what it says, and closes each right after its answer all the same.
fn hasty_lane() -> u16 {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    std::thread::spawn(move || {
        for mut stream in listener.incoming().flatten() {
            std::thread::spawn(move || {
                let mut request = [0; 16 << 10];
                if !stream.read(&mut request).is_ok_and(|n| n > 0) {
                    return;
                }
                std::thread::sleep(Duration::from_millis(100));
                let event =
                    "data: {\"choices\":[{\"index\":0,\"delta\":{\"content\":\"42\"},\"finish_reason\":\"stop\"}]}\n\n";
                let head = "HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nTransfer-Encoding: chunked\r\n\r\n";
                let done = "data: [DONE]\n\n";
                let chunk = |text: &str| format!("{:x}\r\n{text}\r\n", text.len());
                let answer = format!("{head}{}{}0\r\n\r\n", chunk(event), chunk(done));
                // the client may have left: nothing to tell anybody
                let _ = stream.write_all(answer.as_bytes());
            });
        }
    });
    port
}

#[test]
fn a_lane_that_closes_its_connections_without_a_word_is_not_blamed_with_retries() {
    let sandbox = with_lane(&format!("http://127.0.0.1:{}/v1", hasty_lane()), "m");
    let one = burst(&sandbox, &["-n", "16", "--concurrency", "2"]);
    assert_eq!((&one["passed"], &one["attempts_with_retry"]), (&json!(16), &json!(0)));
    let (_, attempts) = stored(sandbox.path()).remove(0);
    assert!(attempts.iter().all(|attempt| !attempt.handshake().reused), "each needed a connection of its own");
}
