//! `peaklane data purge`: what is older goes, after it was counted.

use peaklane_store::{DocumentRow, Ledger};
use peaklane_testkit::binary::Sandbox;
use serde_json::json;

use crate::schema::assert_valid;
use crate::support::{burst, collapsing_lane, refused, sandbox, write_store};

/// Twelve bursts on the 23rd, 24th and 25th, and a decision of the 26th (12:00 UTC) that names the first of them.
fn filled() -> Sandbox {
    let sandbox = sandbox();
    let bursts = collapsing_lane();
    let path = sandbox.path().join("peaklane.db");
    write_store(&path, &bursts);
    let doc = DocumentRow {
        id: "decision-2026-11-26".into(),
        kind: "decision".into(),
        created_unix_us: 1_795_694_400_000_000,
        body: json!({"bursts": [bursts[0].header.id, bursts[11].header.id]}).to_string(),
    };
    let ledger = Ledger::open(&path).expect("a store");
    ledger.put_document(&doc, doc.created_unix_us).expect("a document");
    sandbox
}

fn counts(sandbox: &Sandbox, words: &[&str]) -> serde_json::Value {
    let object = sandbox.run([&["data", "purge", "--format", "json"], words].concat()).expect_code(0).json();
    assert_valid("data-purge", &object);
    object
}

fn bursts_left(sandbox: &Sandbox) -> usize {
    let object = sandbox.run(["summary", "--format", "json"]).expect_code(0).json();
    let windows = object["lanes"][0]["windows"].as_array().expect("windows").clone();
    windows.iter().map(|w| w["days"].as_array().expect("days").len()).sum()
}

#[test]
fn what_is_older_is_counted_and_then_removed_once() {
    let sandbox = filled();
    let counted = counts(&sandbox, &["--before", "2026-11-25", "--dry-run"]);
    assert_eq!(counted["removed"]["bursts"], 8, "two days of four windows");
    assert_eq!(counted["removed"]["attempts"], 64);
    assert_eq!((&counted["dry_run"], &counted["compacted"]), (&json!(true), &json!(null)));
    assert_eq!(
        counted["documents_losing_evidence"][0],
        json!({"kind": "decision", "id": "decision-2026-11-26", "bursts": 1})
    );
    assert_eq!(bursts_left(&sandbox), 12, "counting removes nothing");

    let removed = counts(&sandbox, &["--before", "2026-11-25", "--yes"]);
    assert_eq!((&removed["removed"], &removed["compacted"]), (&counted["removed"], &json!(true)));
    assert_eq!(bursts_left(&sandbox), 4);
    let again = sandbox.run(["data", "purge", "--before", "2026-11-25", "--yes"]).expect_code(0);
    assert_eq!(again.stdout, "nothing in peaklane.db is older than 2026-11-25\n");
}

#[test]
fn nobody_who_cannot_be_asked_loses_anything() {
    let sandbox = filled();
    refused(sandbox.run(["data", "purge", "--before", "2026-12-01"]), 2, &["no terminal", "--dry-run", "--yes"]);
    assert_eq!(bursts_left(&sandbox), 12);
}

#[test]
fn a_burst_of_the_day_itself_stays_whatever_its_hour() {
    let sandbox = sandbox();
    // 00:30 in Berlin is 23:30 of the day before in UTC: the local date is the one that counts
    write_store(&sandbox.path().join("peaklane.db"), &[burst("lane-a", "2026-11-25", Some("00:30"), &[])]);
    assert_eq!(counts(&sandbox, &["--before", "2026-11-25", "--yes"])["removed"]["bursts"], 0);
    assert_eq!(counts(&sandbox, &["--before", "2026-11-26", "--yes"])["removed"]["bursts"], 1);
}

#[test]
fn a_store_that_is_not_there_is_not_made_and_wrong_dates_are_refused() {
    let sandbox = sandbox();
    refused(sandbox.run(["data", "purge", "--before", "2026-11-25", "--yes"]), 2, &["there is no store"]);
    assert!(!sandbox.path().join("peaklane.db").exists());
    for words in [&["data", "purge"][..], &["data", "purge", "--before", "2026-02-30"], &["data"], &["data", "import"]]
    {
        sandbox.run(words).expect_code(2);
    }
}

#[test]
fn the_same_counts_come_as_csv_and_as_markdown() {
    let sandbox = filled();
    let shown = |form| {
        let words = ["data", "purge", "--before", "2026-11-24", "--dry-run", "--format", form];
        sandbox.run(words).expect_code(0).stdout
    };
    assert!(shown("csv").starts_with("records,removed\nbursts,4\nattempts,32\n"), "{}", shown("csv"));
    assert!(shown("md").contains("| attempts | 32 |"), "{}", shown("md"));
}
