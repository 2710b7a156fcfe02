//! Bursts that end before their end: `kill -9` and Ctrl-C. What was acknowledged is there, and the burst counts neither way.

#![cfg(unix)]

use peaklane_core::burst::BurstState;
use peaklane_sim::fake::FakeLane;
use peaklane_testkit::binary::Sandbox;
use rustix::process::{Pid, Signal, kill_process};

use crate::support::{rows, stored, wait_for_attempts, with_fake};

/// A burst that takes two minutes, one attempt after the other.
const LONG: [&str; 8] = ["burst", "-n", "2400", "--spacing", "50ms", "--concurrency", "8", "--csv=env.csv"];

/// The summary of store and file says how the burst stands and counts it as nothing.
#[track_caller]
fn counts_neither_way(sandbox: &Sandbox, state: &str) {
    for words in [&["summary"][..], &["summary", "env.csv"]] {
        let ran = sandbox.run(words);
        let said = format!("{}{}", ran.stdout, ran.stderr);
        assert!(!said.contains("/2400") && !said.contains("panic"), "{words:?}: {said}");
        assert!(
            said.contains("interrupted") || said.contains("not counted") || said.contains(state),
            "{words:?}: {said}"
        );
        let json = sandbox.run([words, &["--format", "json"]].concat());
        if json.code == Some(0) {
            let windows = json.json()["lanes"][0]["windows"].as_array().cloned().unwrap_or_default();
            assert!(windows.iter().all(|w| w["passed"] == 0 && w["n"] == 0), "{words:?}: {windows:?}");
        } else {
            assert_eq!(json.code, Some(3), "{}", json.stderr);
        }
    }
}

#[test]
fn a_burst_that_was_killed_keeps_what_was_recorded_and_counts_neither_as_pass_nor_as_failure() {
    let lane = FakeLane::start().unwrap();
    let sandbox = with_fake(&lane, "fake-ok");
    let running = sandbox.start(LONG);
    let acknowledged = wait_for_attempts(sandbox.path(), 5);
    assert_eq!(running.kill().code, None);
    let (burst, attempts) = stored(sandbox.path()).remove(0);
    assert!(attempts.len() >= acknowledged && attempts.len() < 2_400, "{} of {acknowledged}", attempts.len());
    assert_eq!(burst.state(), BurstState::Running);
    let mut numbers: Vec<u32> = attempts.iter().map(|attempt| attempt.index).collect();
    numbers.dedup();
    assert_eq!(numbers.len(), attempts.len(), "none is doubled");
    assert!(rows(&sandbox.read("env.csv")).len() >= acknowledged);
    counts_neither_way(&sandbox, "running");
}

#[test]
fn ctrl_c_ends_a_burst_with_code_3_and_what_was_made_is_recorded_and_shown() {
    ends_with_what_was_made(Signal::INT);
}

#[test]
fn sigterm_ends_a_burst_as_ctrl_c_does() {
    ends_with_what_was_made(Signal::TERM);
}

fn ends_with_what_was_made(signal: Signal) {
    let lane = FakeLane::start().unwrap();
    let sandbox = with_fake(&lane, "fake-ok");
    let running = sandbox.start([&LONG[..], &["--format", "json"]].concat());
    wait_for_attempts(sandbox.path(), 5);
    let id = Pid::from_raw(i32::try_from(running.id()).unwrap()).unwrap();
    kill_process(id, signal).unwrap();
    let ran = running.wait().expect_code(3);
    assert!(ran.stderr.contains("interrupted") && ran.stderr.contains("hint: "), "{}", ran.stderr);
    let one = ran.json()["bursts"][0].clone();
    let made = one["made"].as_u64().unwrap();
    assert!(one["state"] == "interrupted" && (5..2_400).contains(&made), "{one:#}");
    let (burst, attempts) = stored(sandbox.path()).remove(0);
    assert_eq!((burst.state(), attempts.len() as u64), (BurstState::Interrupted, made));
    assert_eq!(rows(&sandbox.read("env.csv")).len() as u64, made);
    counts_neither_way(&sandbox, "interrupted");
}
