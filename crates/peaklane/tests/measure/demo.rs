//! `demo`: the whole job on simulated lanes, and honest about it.

use std::collections::{BTreeMap, BTreeSet};

use peaklane_core::lane::Kind;
use peaklane_testkit::binary::Sandbox;
use serde_json::{Value, json};

use crate::support::BINARY;

/// What one seed has to give each time: counts and classes of every burst, and the decision.
fn told(object: &Value) -> (BTreeMap<String, Value>, Value) {
    let bursts = object["bursts"].as_array().unwrap();
    let one = |burst: &Value| {
        let place = format!("{} {} {}", burst["lane"], burst["date"], burst["window"]);
        let names = ["passed", "n", "misses", "attempts_with_retry", "retries"];
        (place, json!(names.map(|name| burst[name].clone())))
    };
    (bursts.iter().map(one).collect(), object["decision"].clone())
}

#[test]
fn the_demo_measures_48_bursts_of_eight_and_one_seed_gives_the_same_week_each_time() {
    let sandbox = Sandbox::new(BINARY);
    let run = |seed: &str| sandbox.run(["demo", "--format", "json", "--seed", seed]).expect_code(0).json();
    let first = run("1");
    let bursts = first["bursts"].as_array().unwrap();
    assert_eq!(bursts.len(), 48);
    let every = |name: &str| bursts.iter().map(|b| b[name].to_string()).collect::<BTreeSet<String>>();
    assert_eq!((every("lane").len(), every("window").len(), every("date").len()), (4, 4, 3));
    assert_eq!(every("kind"), Kind::ALL.iter().map(|kind| format!("\"{kind}\"")).collect());
    for burst in bursts {
        assert!(burst["n"] == 8 && burst["passed"].as_u64().is_some_and(|passed| passed <= 8), "{burst:#}");
        assert_eq!((&burst["simulated"], &burst["state"]), (&json!(true), &json!("complete")));
    }
    assert_eq!(first["simulated"], true);
    assert_eq!(first["findings"].as_array().unwrap().len(), 4, "one finding per lane");

    assert_eq!(told(&run("1")), told(&first), "the same seed");
    assert_ne!(told(&run("2")).0, told(&first).0, "another seed");
}

#[test]
fn the_demo_says_in_words_that_it_is_simulated_and_writes_a_page_that_needs_nothing_else() {
    let sandbox = Sandbox::new(BINARY);
    let shown = sandbox.run(["demo"]).expect_code(0).stdout;
    for kind in Kind::ALL {
        assert!(shown.contains(kind.name()), "no {kind} in\n{shown}");
    }
    assert!(shown.contains("simulated"), "{shown}");
    let page = sandbox.read("peaklane-demo.html");
    assert!(page.contains("<svg") && page.to_lowercase().contains("simulated"));
    // Nothing is loaded from anywhere: no script, no sheet, no picture by address. Name spaces of SVG are no resource.
    let lower = page.to_lowercase();
    for loaded in ["src=", "href=\"http", "href=\"//", "@import", "url(http", "url(//", "<script", "<link", "<iframe"] {
        assert!(!lower.contains(loaded), "the page loads something: {loaded}");
    }
    let elsewhere: Vec<&str> =
        lower.match_indices("://").map(|(at, _)| &lower[at.saturating_sub(5)..(at + 20).min(lower.len())]).collect();
    assert!(elsewhere.iter().all(|at| at.contains("www.w3.org")), "{elsewhere:?}");
    // The demo's records are no measurements: they do not get into the store.
    assert!(!sandbox.path().join("peaklane.db").exists());
}

#[test]
fn a_page_that_cannot_be_written_is_an_error_with_a_way_out() {
    let ran = Sandbox::new(BINARY).run(["demo", "--page", "nowhere/demo.html"]);
    assert!(matches!(ran.code, Some(2 | 3)), "{:?}", ran.code);
    assert!(ran.stderr.contains("error: ") && ran.stderr.contains("--no-page"), "{}", ran.stderr);
}
