//! From a campaign that `watch` ran to a decision record: the whole path, over real sockets.

#![cfg(unix)]

use peaklane_sim::fake::FakeLane;
use serde_json::{Value, json};

use crate::watch::sandbox;

#[test]
fn what_watch_measured_is_decided_on_and_recorded() {
    let lane = FakeLane::start().unwrap();
    let sandbox = sandbox(&lane, "fake-ok", &[2, 1], "[rules]\ndays = 1");
    sandbox.run(["watch"]).expect_code(0);
    let ran = sandbox.run(["decide", "--format", "json", "--record", "decisions"]).expect_code(0);
    let object = ran.json();
    let one = &object["decisions"][0];
    // Both lanes are the same one: nothing tells them apart but their order in the file.
    assert_eq!((&one["chosen"], &one["rules_locked"]), (&json!("a"), &json!(true)), "{object:#}");
    assert_eq!((&one["lanes"][0]["passed"], &one["lanes"][0]["n"]), (&json!(8), &json!(8)));
    assert_eq!(one["lanes"][0]["bursts"].as_array().map(Vec::len), Some(2));
    assert_eq!(one["lanes"][0]["missing"], json!([]));
    let name = one["record"]["id"].as_str().unwrap().to_owned();
    let record: Value = serde_json::from_str(&sandbox.read(&format!("decisions/{name}.json"))).unwrap();
    assert_eq!((&record["lane"], &record["decision"]["campaign"]), (&json!("a"), &one["campaign"]));
    assert!(sandbox.read(&format!("decisions/{name}.md")).contains("as locked when the campaign began"));
}

#[test]
fn a_lane_that_answers_nothing_is_out_and_that_nothing_holds_is_an_answer() {
    let lane = FakeLane::start().unwrap();
    let sandbox = sandbox(&lane, "fake-429", &[1], "[rules]\ndays = 1\n[retry]\nmax = 0");
    sandbox.run(["watch"]).expect_code(0);
    let object = sandbox.run(["decide", "--format", "json"]).expect_code(0).json();
    let one = &object["decisions"][0];
    assert_eq!((&one["outcome"], &one["lanes"][0]["passed"]), (&json!("nothing_holds"), &json!(0)), "{object:#}");
    assert_eq!(one["lanes"][0]["limits_observed"]["rate_limited"], json!(8));
}
