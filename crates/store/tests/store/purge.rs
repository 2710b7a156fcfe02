//! Removing what is older than a day: all of it, nothing else, and never a burst that runs.

use std::path::Path;

use peaklane_core::burst::BurstHeader;
use peaklane_store::{
    BurstFilter, CampaignRow, DocumentName, DocumentRow, EventRow, Ledger, LosesEvidence, PurgeBound, Purged, SlotKey,
    SlotState, Store, StoreReader,
};

use crate::support::{end, full, header};

const NOON: i64 = 1_796_000_000_000_000;
const DAY: i64 = 86_400_000_000;

/// Burst `id` of the campaign on a local date, so many days after the first.
fn burst(id: &str, date: Option<&str>, campaign: &str, days: i64) -> BurstHeader {
    BurstHeader {
        date: date.map(str::to_owned),
        campaign: Some(campaign.to_owned()),
        run: format!("run-{id}"),
        started_unix_us: NOON + days * DAY,
        ..header(id)
    }
}

/// Old ones: `old-1`, `old-2` (no date), `killed`; new ones: `new-1`, `new-2` (no date).
fn fill(path: &Path) -> Ledger {
    let store = Store::open(path).unwrap();
    let sink = store.sink();
    for (header, finished) in [
        (burst("old-1", Some("2026-11-29"), "c-old", 0), true),
        (burst("old-2", None, "c-both", 0), true),
        (burst("killed", Some("2026-11-29"), "c-killed", 0), false),
        (burst("new-1", Some("2026-11-30"), "c-both", 0), true),
        (burst("new-2", None, "c-new", 1), true),
    ] {
        let key = sink.begin_burst_blocking(&header).unwrap();
        sink.attempt_blocking(key, full(0)).unwrap();
        sink.attempt_blocking(key, full(1)).unwrap();
        sink.flush_blocking().unwrap();
        if finished {
            sink.end_burst_blocking(key, &end()).unwrap();
        }
    }
    store.close().unwrap();
    let ledger = Ledger::open(path).unwrap();
    for id in ["c-old", "c-both", "c-killed", "c-new", "c-empty"] {
        let row = CampaignRow {
            id: id.into(),
            site: None,
            started_unix_us: NOON,
            tool_version: "0.1.0".into(),
            locked: "{}".into(),
            stopped: None,
        };
        ledger.begin_campaign(&row).unwrap();
        let key = |date: &str, nth| SlotKey {
            campaign: id.into(),
            date: date.into(),
            window: "16:00".into(),
            nth,
            lane: "lane-a".into(),
            task: "t".into(),
        };
        let state = |burst: Option<&str>| SlotState {
            state: "run".into(),
            reason: None,
            started_unix_us: Some(NOON),
            late_s: None,
            burst: burst.map(str::to_owned),
        };
        match id {
            "c-old" => drop(ledger.settle(&key("2026-11-29", 0), 1, &state(Some("old-1")), "h", 1).unwrap()),
            "c-both" => {
                ledger.settle(&key("2026-11-29", 0), 1, &state(None), "h", 1).unwrap();
                ledger.settle(&key("2026-11-30", 0), 1, &state(Some("new-1")), "h", 1).unwrap();
                ledger.claim(&key("2026-11-29", 1), 1, 1, "h", 2).unwrap();
            }
            "c-killed" => drop(ledger.settle(&key("2026-11-29", 0), 1, &state(Some("killed")), "h", 1).unwrap()),
            _ => {}
        }
    }
    for (days, kind) in [(0, "a"), (1, "b")] {
        let event = EventRow {
            unix_us: NOON + days * DAY,
            campaign: None,
            lane: None,
            task: None,
            kind: kind.into(),
            detail: "{}".into(),
        };
        ledger.event(&event).unwrap();
        let doc = DocumentRow {
            id: format!("d-{kind}"),
            kind: "decision".into(),
            created_unix_us: NOON + days * DAY,
            body: r#"{"evidence":{"bursts":["old-1","old-2","new-1","old-1"]}}"#.into(),
        };
        ledger.put_document(&doc, NOON).unwrap();
    }
    ledger
}

fn bound() -> PurgeBound {
    PurgeBound { date: "2026-11-30".into(), unix_us: NOON + DAY / 2, killed_before_unix_us: None }
}

fn ids(path: &Path) -> Vec<String> {
    let bursts = StoreReader::open(path).unwrap().bursts(&BurstFilter::default()).unwrap();
    bursts.into_iter().map(|b| b.header.id).collect()
}

fn expected() -> Purged {
    Purged {
        bursts: 2,
        attempts: 4,
        tries: 8,
        slots: 2,
        campaigns: 1,
        events: 1,
        calls: 0,
        documents: vec![DocumentName { id: "d-a".into(), kind: "decision".into() }],
        unfinished_bursts_kept: 1,
        documents_losing_evidence: vec![LosesEvidence { id: "d-b".into(), kind: "decision".into(), bursts: 2 }],
    }
}

#[test]
fn what_is_older_goes_and_what_runs_or_is_of_the_day_itself_stays() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("s.db");
    let ledger = fill(&path);
    assert_eq!(ledger.would_purge(&bound()).unwrap(), expected());
    assert_eq!(ids(&path).len(), 5, "counting removes nothing");

    assert_eq!(ledger.purge(&bound()).unwrap(), expected());
    assert_eq!(ids(&path), ["killed", "new-1", "new-2"]);
    let reader = StoreReader::open(&path).unwrap();
    assert!(reader.attempts("old-1").unwrap().is_empty());
    assert_eq!(reader.attempts("killed").unwrap().len(), 2);
    let campaigns: Vec<String> = ledger.campaigns().unwrap().into_iter().map(|c| c.id).collect();
    assert_eq!(campaigns, ["c-both", "c-empty", "c-killed", "c-new"], "one that has not begun to run stays");
    assert_eq!(ledger.slots("c-both").unwrap().len(), 2, "a claimed slot stays, and that of the day");
    assert_eq!(ledger.slots("c-killed").unwrap().len(), 1);
    assert_eq!(ledger.events(0).unwrap().iter().map(|e| e.kind.as_str()).collect::<Vec<_>>(), ["b"]);
    assert_eq!(ledger.documents("decision").unwrap().len(), 1);

    let again = Purged { unfinished_bursts_kept: 1, ..Purged::default() };
    assert_eq!(ledger.purge(&bound()).unwrap(), again);
    assert!(again.is_empty() && !expected().is_empty());
}

#[test]
fn a_burst_without_an_end_goes_only_when_it_is_said_to_be_killed() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("s.db");
    let ledger = fill(&path);
    let killed = PurgeBound { killed_before_unix_us: Some(NOON + 1), ..bound() };
    let purged = ledger.purge(&killed).unwrap();
    assert_eq!((purged.bursts, purged.slots, purged.campaigns, purged.unfinished_bursts_kept), (3, 3, 2, 0));
    assert_eq!(ids(&path), ["new-1", "new-2"]);
    let later = PurgeBound { killed_before_unix_us: Some(NOON), ..bound() };
    assert_eq!(fill(&dir.path().join("t.db")).would_purge(&later).unwrap(), expected(), "it began at that moment");
}

#[test]
fn what_was_removed_is_in_no_byte_of_the_file_any_more() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("s.db");
    let ledger = fill(&path);
    let mut only = bound();
    only.date = "9999-12-31".into();
    only.unix_us = i64::MAX;
    only.killed_before_unix_us = Some(i64::MAX);
    ledger.purge(&only).unwrap();
    ledger.compact().unwrap();
    let wal = dir.path().join("s.db-wal");
    assert_eq!(std::fs::metadata(&wal).map_or(0, |m| m.len()), 0);
    let bytes = std::fs::read(&path).unwrap();
    let said = b"an answer, ";
    assert!(!bytes.windows(said.len()).any(|part| part == said));
}

#[test]
fn a_reader_beside_it_sees_what_is_left() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("s.db");
    let ledger = fill(&path);
    let reader = StoreReader::open(&path).unwrap();
    assert_eq!(ledger.purge(&bound()).unwrap(), expected());
    ledger.compact().unwrap();
    assert_eq!(reader.bursts(&BurstFilter::default()).unwrap().len(), 3);
}
