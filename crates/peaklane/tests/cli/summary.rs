//! `peaklane summary`: from the store, and from CSV files alone.

use std::fs;

use peaklane_testkit::binary::Sandbox;
use serde_json::json;

use crate::schema::assert_valid;
use crate::support::{End, burst, collapsing_lane, refused, sandbox, write_csv, write_store};

fn with_csv() -> Sandbox {
    let sandbox = sandbox();
    write_csv(&sandbox.path().join("lane-a.csv"), &collapsing_lane());
    sandbox
}

#[test]
fn csv_files_alone_are_enough() {
    let sandbox = with_csv();
    let shown = sandbox.run(["summary", "lane-a.csv"]).expect_code(0);
    assert_eq!(shown.stderr, "");
    for words in ["23/24", "22/24", "12/24   50 %", "24/24  100 %", "7 rate limited, 5 too slow", "16:00 v"] {
        assert!(shown.stdout.contains(words), "no `{words}` in\n{}", shown.stdout);
    }
    assert!(!sandbox.path().join("peaklane.db").exists(), "no store is made");
    assert_eq!(sandbox.run(["summary", "lanes", "lane-a.csv"]).expect_code(0).stdout, shown.stdout);
}

#[test]
fn store_and_csv_give_the_same_summary() {
    let sandbox = with_csv();
    write_store(&sandbox.path().join("peaklane.db"), &collapsing_lane());
    let of_csv = sandbox.run(["summary", "lane-a.csv"]).expect_code(0);
    let of_store = sandbox.run(["summary"]).expect_code(0);
    assert_eq!(of_store.stdout, of_csv.stdout);
}

#[test]
fn the_numbers_for_programs_are_the_counts_of_the_file() {
    let sandbox = with_csv();
    let object = sandbox.run(["summary", "lane-a.csv", "--format", "json"]).expect_code(0).json();
    assert_valid("summary", &object);
    let windows = object["lanes"][0]["windows"].as_array().unwrap();
    let counts: Vec<_> = windows.iter().map(|w| (w["window"].clone(), w["passed"].clone(), w["n"].clone())).collect();
    let want = [("09:00", 23), ("12:30", 22), ("16:00", 12), ("21:00", 24)];
    assert_eq!(counts, want.map(|(window, passed)| (json!(window), json!(passed), json!(24))));
    // 7 of the 24 attempts at 16:00 were rate limited, so that rank 22 (p90) never finished; the total limit is 60 s
    assert_eq!(windows[2]["p90"], json!({"value_ms": null, "exceeds_ms": 60_000}));
    // 7 of 24 attempts with a retry at 16:00, one at 12:30: 8 of 96
    assert_eq!(object["lanes"][0]["retry_rate"], json!(8.0 / 96.0));
    assert_eq!(object["sources"], json!(["lane-a.csv"]));
    let csv = sandbox.run(["summary", "lane-a.csv", "--format", "csv"]).expect_code(0).stdout;
    assert_eq!(csv.lines().count(), 5);
    let markdown = sandbox.run(["summary", "lane-a.csv", "--format", "md"]).expect_code(0).stdout;
    assert!(markdown.contains("| 12/24 | 50 % |"), "{markdown}");
}

#[test]
fn the_peak_is_the_one_that_was_declared() {
    let sandbox = with_csv();
    let marked = |ran: peaklane_testkit::binary::Ran| {
        let out = ran.expect_code(0).stdout;
        out.lines().find(|line| line.contains(" ^ ")).map(|line| line[..5].to_owned())
    };
    assert_eq!(marked(sandbox.run(["summary", "lane-a.csv"])), None);
    assert_eq!(marked(sandbox.run(["summary", "lane-a.csv", "--peak", "12:30"])).as_deref(), Some("12:30"));
    // the configuration that lies here declares 16:00
    sandbox.run(["init"]).expect_code(0);
    assert_eq!(marked(sandbox.run(["summary", "lane-a.csv"])).as_deref(), Some("16:00"));
}

#[test]
fn the_hours_that_are_usable_are_those_that_reach_the_configured_pass_rate() {
    let sandbox = with_csv();
    let usable = |sandbox: &Sandbox| {
        let out = sandbox.run(["summary", "lane-a.csv"]).expect_code(0).stdout;
        let from = out.find("usable at ").unwrap_or_else(|| panic!("no usable hours in\n{out}"));
        out[from..].split(';').next().unwrap_or_default().to_owned()
    };
    // 23 of 24 is 95.8 %, 22 of 24 is 91.7 %
    assert_eq!(usable(&sandbox), "usable at 09:00, 12:30, 21:00");
    sandbox.run(["init"]).expect_code(0);
    let preset = fs::read_to_string(sandbox.path().join("peaklane.toml")).unwrap();
    sandbox.file("peaklane.toml", &format!("{preset}\n[rules]\npass_percent = 95\n"));
    assert_eq!(usable(&sandbox), "usable at 09:00, 21:00");
}

#[test]
fn csv_files_are_summed_up_beside_a_configuration_that_is_broken() {
    let sandbox = with_csv();
    sandbox.file("peaklane.toml", "[[lane]\n");
    let ran = sandbox.run(["summary", "lane-a.csv"]).expect_code(0);
    assert!(ran.stdout.contains("12/24"));
    assert!(ran.stderr.contains("warning: ") && ran.stderr.contains("peaklane check"), "{}", ran.stderr);
    // one that was named is another matter
    refused(sandbox.run(["summary", "lane-a.csv", "--config", "peaklane.toml"]), 2, &["no valid TOML"]);
}

#[test]
fn filters_narrow_and_what_is_left_out_is_said_when_nothing_is_left() {
    let sandbox = sandbox();
    let mut bursts = collapsing_lane();
    bursts.push(burst("lane-b", "2026-11-25", Some("16:00"), &[End::Limited]));
    let run = bursts[0].header.run.clone();
    write_store(&sandbox.path().join("team.db"), &bursts);
    let passes = |more: &[&str]| {
        let words = [&["summary", "--store", "team.db", "--format", "json"], more].concat();
        let object = sandbox.run(words).expect_code(0).json();
        let lanes = object["lanes"].as_array().unwrap().iter();
        let windows = lanes.flat_map(|lane| lane["windows"].as_array().unwrap().clone());
        windows.map(|w| (w["passed"].as_u64().unwrap(), w["n"].as_u64().unwrap())).collect::<Vec<_>>()
    };
    assert_eq!(passes(&["--lane", "lane-b"]), [(7, 8)]);
    assert_eq!(passes(&["--lane", "lane-b,lane-a"]).len(), 5);
    assert_eq!(passes(&["--since", "2026-11-25", "--lane", "lane-a"]), [(8, 8), (7, 8), (4, 8), (8, 8)]);
    assert_eq!(passes(&["--run", &run]), [(7, 8)]);
    assert_eq!(passes(&["--task", "inline-assist"]).len(), 5);
    let none = ["summary", "--store", "team.db", "--lane", "lane-z"];
    refused(sandbox.run(none), 3, &["none of the bursts", "`lane-a`, `lane-b`", "`inline-assist`"]);
}

#[test]
fn a_torn_last_line_is_skipped_with_a_warning_and_its_burst_is_not_counted() {
    let sandbox = with_csv().env("COLUMNS", "200");
    let whole = fs::read(sandbox.path().join("lane-a.csv")).unwrap();
    fs::write(sandbox.path().join("torn.csv"), &whole[..whole.len() - 5]).unwrap();
    let ran = sandbox.run(["summary", "torn.csv"]).expect_code(0);
    // 1 header and 96 rows
    assert!(ran.stderr.starts_with("warning: torn.csv, line 97: this row was cut"), "{}", ran.stderr);
    // the last burst is the one of 21:00 on the third day: two are left
    assert!(ran.stdout.contains("16/16") && ran.stdout.contains("not counted"), "{}", ran.stdout);
    let object = sandbox.run(["summary", "torn.csv", "--format", "json", "-q"]).expect_code(0).json();
    assert_valid("summary", &object);
    assert_eq!((&object["warnings"][0]["line"], &object["warnings"][0]["file"]), (&json!(97), &json!("torn.csv")));
}

#[test]
fn what_is_no_csv_file_of_ours_is_told() {
    let sandbox = with_csv();
    sandbox.file("other.csv", "timestamp,latency\n1,2\n");
    sandbox.file("empty.csv", "");
    let text = sandbox.read("lane-a.csv");
    sandbox.file("semicolons.csv", &text.replace(',', ";"));
    sandbox.file("header.csv", text.lines().next().unwrap());
    refused(sandbox.run(["summary", "other.csv"]), 2, &["other.csv", "other columns"]);
    refused(sandbox.run(["summary", "empty.csv"]), 2, &["empty.csv", "empty"]);
    refused(sandbox.run(["summary", "semicolons.csv"]), 2, &["semicolons.csv", "commas"]);
    refused(sandbox.run(["summary", "home"]), 2, &["is a folder"]);
    refused(sandbox.run(["summary", "missing.csv"]), 2, &["missing.csv"]);
    refused(sandbox.run(["summary", "header.csv"]), 3, &["no burst"]);
    let broken = text.replacen(",8,", ",eight,", 1);
    sandbox.file("broken.csv", &broken);
    refused(sandbox.run(["summary", "broken.csv"]), 2, &["line 2", "eight"]);
}

#[test]
fn a_column_more_is_ignored_with_a_warning() {
    let sandbox = with_csv();
    let text = sandbox.read("lane-a.csv");
    let wider: String = (0..)
        .zip(text.lines())
        .map(|(i, line): (u32, _)| format!("{},{line}\n", if i == 0 { "remark".to_owned() } else { format!("r{i}") }))
        .collect();
    sandbox.file("wider.csv", &wider);
    let ran = sandbox.run(["summary", "wider.csv"]).expect_code(0);
    assert!(ran.stderr.contains("unknown columns, ignored: ") && ran.stderr.contains("remark"), "{}", ran.stderr);
    assert_eq!(ran.stdout, sandbox.run(["summary", "lane-a.csv"]).stdout);
}

#[test]
fn a_burst_that_stands_in_two_files_counts_once() {
    let sandbox = with_csv();
    let text = sandbox.read("lane-a.csv");
    // a copy that was made before the last two rows were there
    let lines: Vec<&str> = text.lines().collect();
    sandbox.file("copy.csv", &format!("{}\n", lines[..lines.len() - 2].join("\n")));
    let once = sandbox.run(["summary", "lane-a.csv"]).expect_code(0).stdout;
    for order in [["lane-a.csv", "copy.csv"], ["copy.csv", "lane-a.csv"], ["lane-a.csv", "lane-a.csv"]] {
        let ran = sandbox.run(["summary", order[0], order[1]]).expect_code(0);
        assert_eq!(ran.stdout, once);
        assert_eq!(ran.stderr.contains("it counts once"), order[0] != order[1], "{}", ran.stderr);
    }
    let told = sandbox.run(["summary", "lane-a.csv", "copy.csv"]).stderr;
    // 12 bursts stand twice; ten are told one by one
    assert!(told.contains("copy.csv: and 2 more of the kind"), "{told}");
    sandbox.file("changed.csv", &text.replace("2000000", "2000001"));
    refused(sandbox.run(["summary", "lane-a.csv", "changed.csv"]), 2, &["with other figures", "changed.csv"]);
}

#[test]
fn several_files_make_several_lanes() {
    let sandbox = with_csv();
    write_csv(&sandbox.path().join("lane-b.csv"), &[burst("lane-b", "2026-11-25", None, &[])]);
    let object = sandbox.run(["summary", "lane-b.csv", "lane-a.csv", "--format", "json"]).expect_code(0).json();
    assert_valid("summary", &object);
    let names: Vec<_> = object["lanes"].as_array().unwrap().iter().map(|lane| lane["lane"].clone()).collect();
    assert_eq!(names, [json!("lane-a"), json!("lane-b")]);
    assert_eq!(object["lanes"][1]["windows"][0]["window"], json!(null), "a burst by hand has no window");
}
