//! `watch` as a process among others: two at once, killed in the middle of a burst, stopped, looked at.

#![cfg(unix)]

use std::path::Path;
use std::time::{Duration, Instant};

use jiff::{SignedDuration, Timestamp};
use peaklane_core::burst::BurstState;
use peaklane_sim::fake::FakeLane;
use peaklane_store::{Ledger, SlotRow};
use peaklane_testkit::binary::Sandbox;
use rustix::process::{Pid, Signal, kill_process};
use serde_json::Value;

use crate::support::{BINARY, noon_zone, stored};

/// A campaign of one day whose windows began so many minutes ago; two lanes of one model.
pub(crate) fn sandbox(lane: &FakeLane, model: &str, minutes_ago: &[i64], more: &str) -> Sandbox {
    let now = Timestamp::now();
    let (behind, zone) = noon_zone(now);
    let at = |ago: i64| now.saturating_sub(SignedDuration::from_mins(ago + behind * 60)).unwrap().to_string();
    let windows: Vec<String> = minutes_ago.iter().map(|ago| format!("\"{}\"", &at(*ago)[11..16])).collect();
    let first = at(minutes_ago.iter().copied().max().unwrap());
    let lanes = ["a", "b"].map(|name| {
        format!(
            "[[lane]]\nname = \"{name}\"\nkind = \"free-hosted\"\nbase_url = \"{}\"\nmodel = \"{model}\"\n",
            lane.base_url()
        )
    });
    let sandbox = Sandbox::new(BINARY).limit(Duration::from_secs(120));
    sandbox.file(
        "peaklane.toml",
        &format!(
            "time_zone = \"{zone}\"\n[campaign]\nstart_date = \"{}\"\ndays = 1\nworkdays_only = false\nwindows = [{}]\n\
             after = \"stop\"\n{more}\n[burst]\nwarmup = 0\n{}[[task]]\nname = \"t\"\nprompt = \"Say hello.\"\n",
            &first[..10],
            windows.join(", "),
            lanes.concat()
        ),
    );
    sandbox
}

fn slots(folder: &Path) -> Vec<SlotRow> {
    let Ok(ledger) = Ledger::open_to_read(&folder.join("peaklane.db")) else { return Vec::new() };
    let campaigns = ledger.campaigns().unwrap_or_default();
    campaigns.iter().flat_map(|row| ledger.slots(&row.id).unwrap_or_default()).collect()
}

fn states(folder: &Path) -> Vec<String> {
    slots(folder).into_iter().map(|row| row.state.state).collect()
}

/// Waits until a burst is under way whose header is on disk.
fn wait_for_a_burst(folder: &Path) {
    let begun = Instant::now();
    let running = || states(folder).iter().any(|state| state == "running") && !stored(folder).is_empty();
    while !running() {
        assert!(begun.elapsed() < Duration::from_secs(60), "no burst within a minute");
        std::thread::sleep(Duration::from_millis(20));
    }
}

#[test]
fn two_that_run_what_is_due_at_once_fire_each_burst_once() {
    let lane = FakeLane::start().unwrap();
    let sandbox = sandbox(&lane, "fake-ok", &[0], "");
    let (one, two) = (sandbox.start(["watch", "--due"]), sandbox.start(["watch", "--due"]));
    one.wait().expect_code(0);
    two.wait().expect_code(0);
    // whichever left the rest to the other one: what is still due runs now, and never again
    for _ in 0..2 {
        sandbox.run(["watch", "--due"]).expect_code(0);
    }
    let bursts = stored(sandbox.path());
    assert_eq!(bursts.len(), 2, "{:?}", states(sandbox.path()));
    for (burst, attempts) in &bursts {
        assert_eq!((burst.state(), attempts.len()), (BurstState::Complete, 8));
        let header = &burst.header;
        assert!(
            header.campaign.is_some()
                && header.window.is_some()
                && header.zone.as_deref().is_some_and(|zone| zone.starts_with("Etc/"))
        );
        assert_eq!(header.run, bursts[0].0.header.run, "lanes of a window share their nonces");
    }
    assert_eq!(lane.seen().len(), 16);
    assert!(states(sandbox.path()).iter().all(|state| state == "run" || state == "late"));
}

#[test]
fn a_watcher_killed_in_the_middle_of_a_burst_leaves_an_interrupted_one_and_the_next_takes_up_the_rest() {
    let lane = FakeLane::start().unwrap();
    let sandbox = sandbox(&lane, "fake-delay-3000", &[0], "");
    let running = sandbox.start(["watch"]);
    wait_for_a_burst(sandbox.path());
    assert_eq!(running.kill().code, None);
    let ran = sandbox.run(["watch", "--due", "--format", "json"]).expect_code(0);
    let events: Vec<Value> = ran.stdout.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    let of = |event: &str| events.iter().filter(|e| e["event"] == event).count();
    assert_eq!((of("burst_interrupted"), of("burst_ended")), (1, 1), "{}", ran.stdout);
    let mut found = states(sandbox.path());
    found.sort();
    assert!(found[0] == "interrupted" && ["run", "late"].contains(&found[1].as_str()), "{found:?}");
    assert_eq!(stored(sandbox.path()).len(), 2, "none is begun a second time");
}

#[test]
fn ctrl_c_records_the_running_burst_as_interrupted_and_ends_with_code_0() {
    let lane = FakeLane::start().unwrap();
    let sandbox = sandbox(&lane, "fake-delay-30000", &[0], "");
    let running = sandbox.start(["watch"]);
    wait_for_a_burst(sandbox.path());
    kill_process(Pid::from_raw(i32::try_from(running.id()).unwrap()).unwrap(), Signal::INT).unwrap();
    let ran = running.wait().expect_code(0);
    assert!(ran.stderr.contains("interrupted: the watcher was stopped"), "{}", ran.stderr);
    assert!(ran.stderr.contains("the campaign goes on"), "{}", ran.stderr);
    assert_eq!(states(sandbox.path()), ["interrupted"]);
    assert_eq!(stored(sandbox.path())[0].0.state(), BurstState::Interrupted);
    // the other lane waits for a watcher, and there is none
    let status = sandbox.run(["summary", "status"]).expect_code(1);
    assert!(status.stdout.contains("not alive: no watcher is running, the watcher was stopped"), "{}", status.stdout);
}

#[test]
fn the_budget_stops_the_campaign_with_code_3_before_it_is_passed() {
    let lane = FakeLane::start().unwrap();
    // a burst of 8 may need 24 with its retries
    let sandbox = sandbox(&lane, "fake-ok", &[0], "budget_requests = 25");
    let ran = sandbox.run(["watch"]).expect_code(3);
    assert!(ran.stderr.contains("`budget_requests` allows 25 requests, 8 requests are used"), "{}", ran.stderr);
    assert!(ran.stderr.contains("\n\nhint: "), "{}", ran.stderr);
    assert_eq!((lane.seen().len(), stored(sandbox.path()).len()), (8, 1));
    sandbox.run(["watch"]).expect_code(3);
    assert_eq!(lane.seen().len(), 8);
    let status = sandbox.run(["summary", "status", "--format", "json"]).expect_code(1).json();
    assert_eq!(
        (&status["campaigns"][0]["state"], &status["campaigns"][0]["stopped_why"]),
        (&"stopped".into(), &"budget".into())
    );
}

#[test]
fn the_control_endpoint_is_timed_with_each_burst() {
    let (lane, control) = (FakeLane::start().unwrap(), FakeLane::start().unwrap());
    let sandbox = sandbox(&lane, "fake-ok", &[0], &format!("[control]\nurl = \"{}/up\"", control.base_url()));
    sandbox.run(["watch", "--due"]).expect_code(0);
    for (burst, _) in stored(sandbox.path()) {
        let figures = burst.end.unwrap().control.expect("figures of the control endpoint");
        assert!(
            figures.connect_us.is_some() && figures.first_byte_us.is_some() && figures.status.is_some(),
            "{figures:?}"
        );
    }
    let asked = control.seen();
    assert!(asked.len() == 2 && asked.iter().all(|seen| !seen.has_credential() && seen.method == "GET"), "{asked:?}");
}

#[test]
fn status_tells_a_campaign_that_is_over_and_a_store_without_any() {
    let lane = FakeLane::start().unwrap();
    let sandbox = sandbox(&lane, "fake-ok", &[2, 1], "");
    let none = sandbox.run(["summary", "status"]);
    assert!(none.code == Some(2) || none.code == Some(3), "{}", none.stderr);
    let ran = sandbox.run(["watch"]).expect_code(0);
    assert!(ran.stderr.contains(" is over"), "{}", ran.stderr);
    let status = sandbox.run(["summary", "status", "--format", "json"]).expect_code(0).json();
    let one = &status["campaigns"][0];
    assert_eq!(
        (&one["state"], &one["lanes"][0]["ran"], &one["unattended"]),
        (&"finished".into(), &2.into(), &0.into())
    );
    let quiet = sandbox.run(["watch", "-q"]).expect_code(0);
    assert_eq!((quiet.stdout.as_str(), quiet.stderr.as_str()), ("", ""));
    assert_eq!(lane.seen().len(), 32);
}
