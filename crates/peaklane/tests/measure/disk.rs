//! Files that cannot be written, files of others, and several writers at once: nothing that was recorded is lost.

use std::fs;

use peaklane_sim::fake::FakeLane;
use peaklane_testkit::binary::Sandbox;
use serde_json::json;

use crate::support::{BINARY, burst, refused, rows, stored, with_fake};

#[test]
fn a_store_or_a_csv_file_that_cannot_be_one_is_refused_before_anything_is_sent() {
    let lane = FakeLane::start().unwrap();
    let sandbox = with_fake(&lane, "fake-ok");
    fs::create_dir(sandbox.path().join("folder")).unwrap();
    sandbox.file("other.csv", "timestamp,latency\n1,2\n");
    sandbox.file("other.db", "this is no database, but a text of some length\n");
    for words in [
        ["--csv", "folder"],
        ["--csv", "/dev/null"],
        ["--csv", "nowhere/env.csv"],
        ["--csv", "other.csv"],
        ["--store", "sqlite:folder"],
        ["--store", "sqlite:nowhere/team.db"],
        ["--store", "sqlite:other.db"],
        ["--store", "sqlite:other.csv"],
    ] {
        refused(&sandbox.run([&["burst"][..], &words].concat()), &[2, 3]);
        assert_eq!(lane.seen().len(), 0, "{words:?}");
    }
    assert_eq!(sandbox.read("other.csv"), "timestamp,latency\n1,2\n");
    assert!(sandbox.read("other.db").starts_with("this is no database"));
}

#[cfg(target_os = "linux")]
#[test]
fn a_disk_that_is_full_for_the_store_is_told_and_what_was_recorded_before_is_kept() {
    let lane = FakeLane::start().unwrap();
    let shell = Sandbox::new("/bin/sh").env("LLM_BASE_URL", lane.base_url()).env("LLM_MODEL", "fake-ok");
    let run = |before: &str, words: &str| shell.run(["-c", &format!("{before} exec {BINARY} {words}")]);
    run("", "burst --csv env.csv --format json").expect_code(0);
    let csv = shell.read("env.csv");
    // The limit counts blocks of 512 bytes; its signal must not end the program without a word. With 16 KiB not even the store's
    // index of its log can be made; with 100 KiB a burst begins, and its log is full before its end.
    for (blocks, words) in [(32, "cannot open the store"), (200, "cannot write the store")] {
        let limit = format!("ulimit -f {blocks};");
        let full = run(&limit, "burst -n 400 --concurrency 40 --csv more.csv --format json");
        refused(&full, &[3]);
        assert!(full.stderr.contains(words) && full.stderr.contains("ulimit -f"), "{}", full.stderr);
    }
    assert_eq!(shell.read("env.csv"), csv, "what was there is there");
    // Rows that found their way into the file beside the store are whole.
    let beside = rows(&shell.read("more.csv")).len();
    assert!(beside < 400, "{beside} rows");

    let held = stored(shell.path());
    assert_eq!((held[0].1.len(), held[0].0.end.is_some()), (8, true));
    assert!(held[1..].iter().all(|(burst, attempts)| burst.end.is_none() && attempts.len() < 400));
    let summary = run("", "summary --format json").expect_code(0).json();
    let counted = &summary["lanes"][0]["windows"][0];
    assert_eq!((&counted["passed"], &counted["n"]), (&json!(8), &json!(8)), "a burst that was cut counts neither way");
    // And with room again everything goes on.
    run("", "burst --csv env.csv --format json").expect_code(0);
    let summary = run("", "summary --format json").expect_code(0).json();
    assert_eq!(summary["lanes"][0]["windows"][0]["passed"], 16);
}

#[test]
fn two_bursts_at_once_share_one_store_and_one_csv_file() {
    let lane = FakeLane::start().unwrap();
    let sandbox = with_fake(&lane, "fake-ok");
    let words = ["burst", "--csv", "env.csv", "--format", "json"];
    let both = [sandbox.start(words), sandbox.start(words)];
    for running in both {
        assert_eq!(running.wait().expect_code(0).json()["bursts"][0]["passed"], 8);
    }
    let csv = sandbox.read("env.csv");
    assert_eq!(rows(&csv).len(), 16);
    let held = stored(sandbox.path());
    assert_eq!(held.iter().map(|(_, attempts)| attempts.len()).collect::<Vec<_>>(), [8, 8]);
    assert_ne!(held[0].0.header.run, held[1].0.header.run);
    for words in [&["summary", "--format", "json"][..], &["summary", "env.csv", "--format", "json"]] {
        let summary = sandbox.run(words).expect_code(0).json();
        assert_eq!(summary["lanes"][0]["windows"][0]["n"], 16, "{words:?}");
    }
}

#[test]
fn a_row_that_was_torn_is_cut_off_by_the_next_burst_and_no_other_is_lost() {
    let lane = FakeLane::start().unwrap();
    let sandbox = with_fake(&lane, "fake-ok");
    burst(&sandbox, &["--csv", "env.csv", "--no-store"]);
    let whole = sandbox.read("env.csv");
    sandbox.file("env.csv", &format!("{whole}{}", &whole[whole.len() - 40..whole.len() - 10]));
    burst(&sandbox, &["--csv", "env.csv", "--no-store"]);
    let summary = sandbox.run(["summary", "env.csv", "--format", "json"]).expect_code(0).json();
    assert_eq!(summary["lanes"][0]["windows"][0]["n"], 16);
}
