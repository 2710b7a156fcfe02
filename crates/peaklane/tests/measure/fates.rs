//! Lanes that misbehave, through `burst`: each is a class in the record and exit code 0, and the key is never shown.

use std::io::{Read, Write};
use std::net::TcpListener;
use std::time::Duration;

use peaklane_sim::fake::FakeLane;
use serde_json::{Value, json};

use crate::support::{KEY, burst, rows, stored, with_fake, with_lane};

/// Model, class of all attempts, requests that one attempt makes with one retry allowed.
const FATES: [(&str, &str, usize); 16] = [
    ("fake-wrong", "wrong_answer", 1),
    ("fake-empty", "no_answer", 2),
    ("fake-429", "rate_limited", 2),
    ("fake-quota", "quota_exhausted", 1),
    ("fake-401", "auth", 1),
    ("fake-status-404", "not_found", 1),
    ("fake-status-500", "server_error", 2),
    ("fake-status-503", "overloaded", 2),
    ("fake-status-504", "gateway_timeout", 2),
    ("fake-html", "bad_body", 1),
    ("fake-garbage", "bad_body", 1),
    ("fake-in-band", "server_error", 2),
    ("fake-cut", "truncated", 2),
    ("fake-reset", "conn_reset", 2),
    ("fake-never", "timeout_first_byte", 2),
    ("fake-forever", "timeout_total", 2),
];

#[test]
fn each_way_to_fail_is_a_class_of_its_own_and_only_what_may_pass_is_tried_again() {
    for (model, class, requests) in FATES {
        let lane = FakeLane::start().unwrap();
        let sandbox = with_fake(&lane, model);
        let limits = ["--first-byte-timeout", "700ms", "--total-timeout", "1500ms"];
        let words = [&["-n", "4", "--retries", "1", "--expect", "42", "--csv", "env.csv"][..], &limits].concat();
        let one = burst(&sandbox, &words);
        assert_eq!(one["misses"], json!([{"class": class, "count": 4}]), "{model}");
        assert_eq!((&one["passed"], &one["n"], &one["state"]), (&json!(0), &json!(4), &json!("complete")), "{model}");
        assert_eq!(one["p90"]["value_ms"], Value::Null, "{model}: what did not finish has no latency");
        assert_eq!(lane.seen().len(), 4 * requests, "{model}: requests");
        let (_, attempts) = stored(sandbox.path()).remove(0);
        assert!(attempts.iter().all(|a| a.tries.len() == requests), "{model}: each request is a try on record");
        assert_eq!(rows(&sandbox.read("env.csv")).len(), 4, "{model}");
        assert!(lane.seen().iter().all(|seen| seen.carried(KEY)), "{model}: the key was sent");
        for format in ["table", "md", "csv"] {
            sandbox.run(["summary", "--format", format]);
        }
        sandbox.assert_never_said(KEY, &[]);
    }
}

#[test]
fn an_attempt_that_came_through_on_its_third_try_passes_and_counts_as_retried() {
    let lane = FakeLane::start().unwrap();
    let sandbox = with_fake(&lane, "fake-429-retry2");
    let one = burst(&sandbox, &[]);
    assert_eq!((&one["passed"], &one["misses"]), (&json!(8), &json!([])));
    assert_eq!((&one["attempts_with_retry"], &one["retry_rate"]), (&json!(8), &json!(1.0)));
    assert_eq!(one["mean_retries"], json!(2.0));
    assert_eq!(lane.seen().len(), 24);
    // The lane asks for 50 ms each time, and the waits are part of the latency.
    assert!(one["p50"]["value_ms"].as_f64().unwrap() >= 100.0, "{}", one["p50"]);
    let (_, attempts) = stored(sandbox.path()).remove(0);
    for attempt in attempts {
        let outcomes: Vec<&str> = attempt.tries.iter().map(|t| t.outcome.name()).collect();
        assert_eq!(outcomes, ["rate_limited", "rate_limited", "ok"]);
        assert_eq!(attempt.tries[0].retry_after_ms, Some(50));
    }
}

#[test]
fn a_budget_that_is_too_small_voids_the_burst_with_a_next_step() {
    let lane = FakeLane::start().unwrap();
    let sandbox = with_fake(&lane, "fake-budget");
    let one = burst(&sandbox, &["--csv", "env.csv"]);
    assert_eq!((&one["state"], &one["findings"]), (&json!("void"), &json!(8)));
    assert_eq!((&one["passed"], &one["misses"]), (&json!(0), &json!([])), "neither passes nor misses");
    assert_eq!(one["pass_rate"], Value::Null);
    let text = one["finding_texts"][0].as_str().unwrap();
    assert!(text.contains("budget") && text.contains("max_tokens"), "{text}");
    let shown = sandbox.run(["burst", "--no-store"]).expect_code(0).stdout;
    assert!(shown.contains("void") && shown.contains("max_tokens"), "{shown}");
    // A burst that counts neither way leaves nothing to sum up, from the store or from the file.
    for words in [&["summary"][..], &["summary", "env.csv"]] {
        let ran = sandbox.run(words);
        let said = format!("{}{}", ran.stdout, ran.stderr);
        assert!(!said.contains("0/8"), "a finding counted as a failure:\n{said}");
        assert!(said.contains("finding") || said.contains("void"), "nothing is said of it:\n{said}");
    }
    let accepted = burst(&sandbox, &["--accept-budget-stop"]);
    assert_eq!((&accepted["state"], &accepted["passed"]), (&json!("complete"), &json!(8)));
}

#[test]
fn a_refused_temperature_is_a_finding_and_plain_sampling_is_the_way_out() {
    let lane = FakeLane::start().unwrap();
    let sandbox = with_fake(&lane, "fake-refuse-temperature");
    let one = burst(&sandbox, &[]);
    assert_eq!((&one["state"], &one["passed"], &one["misses"]), (&json!("void"), &json!(0), &json!([])));
    let text = one["finding_texts"][0].as_str().unwrap();
    assert!(text.contains("temperature"), "{text}");
    let plain = burst(&sandbox, &["--plain-sampling"]);
    assert_eq!((&plain["state"], &plain["passed"]), (&json!("complete"), &json!(8)));
}

#[test]
fn an_answer_without_what_was_expected_is_a_miss_and_one_with_it_a_pass() {
    let lane = FakeLane::start().unwrap();
    let wrong = burst(&with_fake(&lane, "fake-wrong"), &["--expect", "42"]);
    assert_eq!(wrong["misses"], json!([{"class": "wrong_answer", "count": 8}]));
    let right = burst(&with_fake(&lane, "fake-ok"), &["--expect", "42"]);
    assert_eq!((&right["passed"], &right["misses"]), (&json!(8), &json!([])));
}

#[test]
fn thinking_is_a_first_token_and_no_first_answer() {
    let lane = FakeLane::start().unwrap();
    let one = burst(&with_fake(&lane, "fake-reasoning"), &[]);
    assert_eq!(one["passed"], 8);
    let ms = |name: &str| one[name]["value_ms"].as_f64().unwrap();
    // The lane thinks from 30 ms on and answers from 100 ms on, by its own clock: 70 ms apart less what a busy machine
    // may hold the first back.
    assert!(ms("ttft_p50") >= 30.0 && ms("first_answer_p50") >= 100.0, "{one:#}");
    assert!(ms("ttft_p50") < ms("first_answer_p50"));
}

/// A lane that sends content as fast as the socket takes it, for ever: one thread per connection, ends with its client.
fn flood() -> u16 {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    std::thread::spawn(move || {
        for stream in listener.incoming().flatten() {
            std::thread::spawn(move || {
                let mut stream = stream;
                let mut request = [0; 16 << 10];
                if !stream.read(&mut request).is_ok_and(|n| n > 0) {
                    return;
                }
                let head = "HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nTransfer-Encoding: chunked\r\n\r\n";
                let event =
                    "data: {\"choices\":[{\"index\":0,\"delta\":{\"content\":\"and so on \"}}]}\n\n".repeat(200);
                let chunk = format!("{:x}\r\n{event}\r\n", event.len());
                let mut going = stream.write_all(head.as_bytes());
                while going.is_ok() {
                    going = stream.write_all(chunk.as_bytes());
                }
            });
        }
    });
    port
}

#[cfg(target_os = "linux")]
#[test]
fn answers_that_never_end_take_a_bounded_memory_and_end_at_the_total_limit() {
    let sandbox = with_lane(&format!("http://127.0.0.1:{}/v1", flood()), "m");
    let words = ["burst", "-n", "8", "--retries", "0", "--total-timeout", "2s", "--format", "json"];
    let running = sandbox.start(words);
    let status = format!("/proc/{}/status", running.id());
    let peak_kib = std::thread::spawn(move || {
        let mut peak: u64 = 0;
        // VmHWM is the largest resident set so far; the file goes with the process.
        while let Ok(text) = std::fs::read_to_string(&status) {
            let Some(line) = text.lines().find(|line| line.starts_with("VmHWM:")) else { break };
            peak = peak.max(line.split_whitespace().nth(1).and_then(|kib| kib.parse().ok()).unwrap_or(0));
            std::thread::sleep(Duration::from_millis(20));
        }
        peak
    });
    let one = running.wait().expect_code(0).json()["bursts"][0].clone();
    let peak_kib = peak_kib.join().unwrap();
    assert_eq!(one["misses"], json!([{"class": "timeout_total", "count": 8}]));
    let received = one["delivered"]["body_bytes"].as_u64().unwrap();
    assert!(received > 1 << 20, "the lane sent {received} bytes only");
    assert!(peak_kib > 0 && peak_kib < 60 * 1024, "{peak_kib} KiB at most, for {received} bytes received");
}
