//! A whole campaign against a real model server: two windows a minute ahead, the first beside other load, the second in
//! quiet, through to a decision record.
//!
//! Nothing is said of how fast the server is: what is asserted holds on any machine.

#![cfg(unix)]

use std::fs;
use std::time::Duration;

use jiff::{SignedDuration, Timestamp};
use peaklane_core::burst::BurstState;
use peaklane_testkit::binary::Sandbox;
use peaklane_testkit::real_server::RealServer;
use serde_json::json;

use crate::support::{BINARY, noon_zone, stored, wait_for_attempts};

/// The configuration, the local date, and the two windows: the next full minute but one, and the one after it.
fn campaign(url: &str) -> (String, String, [String; 2]) {
    let now = Timestamp::now();
    let (behind, zone) = noon_zone(now);
    let at = |minutes: i64| now.saturating_add(SignedDuration::from_mins(minutes - behind * 60)).unwrap().to_string();
    let windows = [1, 2].map(|minutes| at(minutes)[11..16].to_owned());
    let text = format!(
        "time_zone = \"{zone}\"\n\
         [campaign]\nstart_date = \"{date}\"\ndays = 1\nworkdays_only = false\nwindows = [\"{}\", \"{}\"]\npeak = \"{}\"\nafter = \"stop\"\n\
         [rules]\ndays = 1\n\
         [burst]\nattempts = 4\n\
         [[lane]]\nname = \"box\"\nkind = \"free-server\"\nbase_url = \"{url}\"\nmodel = \"smollm2-135m\"\nowner = \"ops\"\npatched = \"{date}\"\n\
         [[task]]\nname = \"inline-assist\"\nprompt = \"What is the capital of France? Answer with one word.\"\n\
         floor = \"110s\"\nmax_tokens = 32\naccept_budget_stop = true\n",
        windows[0],
        windows[1],
        windows[0],
        date = &at(1)[..10],
    );
    (text, at(1)[..10].to_owned(), windows)
}

#[test]
fn a_campaign_beside_load_and_in_quiet_ends_in_a_decision_record() {
    let Some(server) = RealServer::find() else { return };
    let sandbox = Sandbox::new(BINARY).limit(Duration::from_secs(500));
    let (text, date, windows) = campaign(server.url());
    sandbox.file("peaklane.toml", &text);

    // Other people's load, until the first window is measured.
    let others = Sandbox::new(BINARY).limit(Duration::from_secs(500));
    let load = ["burst", "--base-url", server.url(), "--model", "smollm2-135m", "--attempts", "10000"];
    let load =
        others.start([&load[..], &["--concurrency", "2", "--max-tokens", "64", "--prompt", "Count to 50."]].concat());
    let watcher = sandbox.start(["watch", "--format", "json"]);
    wait_for_attempts(sandbox.path(), 5); // the warm-up and the four attempts of the first window
    load.kill();
    let ran = watcher.wait().expect_code(0);
    assert!(ran.stdout.lines().all(|line| serde_json::from_str::<serde_json::Value>(line).is_ok()), "{}", ran.stdout);

    let bursts = stored(sandbox.path());
    let seen: Vec<_> = bursts.iter().map(|(b, a)| (b.header.window.clone().unwrap(), b.state(), a.len())).collect();
    let whole = |window: &String| (window.clone(), BurstState::Complete, 5);
    assert_eq!(seen, [whole(&windows[0]), whole(&windows[1])]);
    let answered = bursts.iter().flat_map(|(_, attempts)| attempts).filter(|a| a.outcome.is_ok());
    assert!(answered.clone().count() == 10 && answered.clone().all(|a| a.usage().completion.is_some()));

    let summary = sandbox.run(["summary", "--format", "json"]).expect_code(0).json();
    let measured = summary["lanes"][0]["windows"].as_array().unwrap();
    assert_eq!(measured.iter().map(|w| w["window"].clone()).collect::<Vec<_>>(), windows.each_ref().map(|w| json!(w)));
    assert!(measured.iter().all(|w| w["n"] == json!(4) && w["missed"] == json!([])), "{summary:#}");
    let status = sandbox.run(["summary", "status"]).expect_code(0).stdout;
    assert!(status.contains("box"), "{status}");

    let words = ["decide", "--as-of", &date, "--record", "decisions", "--format", "json"];
    let decided = sandbox.run(words).expect_code(0).json();
    let name = format!("decisions/decision-{date}-inline-assist");
    let record = sandbox.read(&format!("{name}.md"));
    let campaign = bursts[0].0.header.campaign.clone().unwrap();
    for part in ["-> box (free-server)", "provisional", &campaign, &bursts[0].0.header.id, &bursts[1].0.header.id] {
        assert!(record.contains(part), "no `{part}` in\n{record}\n{decided:#}");
    }
    assert!(fs::exists(sandbox.path().join(format!("{name}.json"))).unwrap());
}
