//! Claims, campaigns, events and documents: each burst begins once, whoever asks and whoever dies.

use std::sync::Barrier;

use peaklane_store::{CampaignRow, Claim, DocumentRow, EventRow, Ledger, SlotKey, SlotState, StoreReader};

fn campaign(id: &str) -> CampaignRow {
    CampaignRow {
        id: id.into(),
        site: Some("berlin".into()),
        started_unix_us: 1_000,
        tool_version: "0.1.0".into(),
        locked: "{}".into(),
        stopped: None,
    }
}

fn key(nth: u32) -> SlotKey {
    SlotKey {
        campaign: "c".into(),
        date: "2026-12-01".into(),
        window: "16:00".into(),
        nth,
        lane: "lane-a".into(),
        task: "inline-assist".into(),
    }
}

fn state(state: &str) -> SlotState {
    SlotState { state: state.into(), reason: None, started_unix_us: None, late_s: None, burst: None }
}

#[test]
fn of_many_that_claim_one_slot_at_once_one_gets_it() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("s.db");
    Ledger::open(&path).unwrap().begin_campaign(&campaign("c")).unwrap();
    let ready = Barrier::new(6);
    let ours: usize = std::thread::scope(|scope| {
        let claim = |n: i32| {
            let (path, ready) = (&path, &ready);
            move || {
                let ledger = Ledger::open(path).unwrap();
                ready.wait();
                let claims = (0..10).map(|nth| ledger.claim(&key(nth), 5, 6, &format!("p{n}"), 100).unwrap());
                claims.filter(|claim| *claim == Claim::Ours).count()
            }
        };
        let all: Vec<_> = (0..6).map(|n| scope.spawn(claim(n))).collect();
        all.into_iter().map(|one| one.join().unwrap()).sum()
    });
    assert_eq!(ours, 10);
    assert_eq!(Ledger::open_to_read(&path).unwrap().slots("c").unwrap().len(), 10);
}

#[test]
fn a_slot_is_settled_by_its_holder_or_after_its_lease_and_only_once() {
    let dir = tempfile::tempdir().unwrap();
    let ledger = Ledger::open(&dir.path().join("s.db")).unwrap();
    ledger.begin_campaign(&campaign("c")).unwrap();
    assert_eq!(ledger.claim(&key(0), 5, 6, "one", 100).unwrap(), Claim::Ours);
    let Claim::Taken(row) = ledger.claim(&key(0), 5, 7, "two", 100).unwrap() else { panic!("claimed twice") };
    assert_eq!((row.holder.as_deref(), row.state.state.as_str()), (Some("one"), "running"));

    assert!(!ledger.settle(&key(0), 5, &state("interrupted"), "two", 50).unwrap(), "its lease holds");
    assert_eq!(ledger.renew("one", 200).unwrap(), 1);
    assert!(!ledger.settle(&key(0), 5, &state("interrupted"), "two", 150).unwrap(), "its lease was renewed");
    ledger.fired(&key(0), "burst-1").unwrap();
    assert!(ledger.settle(&key(0), 5, &state("interrupted"), "two", 201).unwrap());
    assert!(!ledger.settle(&key(0), 5, &state("run"), "one", 202).unwrap(), "what is settled stays settled");
    let row = ledger.slot(&key(0)).unwrap().unwrap();
    assert_eq!((row.state.state.as_str(), row.state.burst.as_deref()), ("interrupted", Some("burst-1")));
    assert_eq!((row.state.started_unix_us, row.lease_until_unix_us), (Some(6), None));

    let missed = SlotState { reason: Some("asleep".into()), ..state("missed") };
    assert!(ledger.settle(&key(1), 9, &missed, "one", 10).unwrap());
    assert!(
        matches!(ledger.claim(&key(1), 9, 11, "one", 100).unwrap(), Claim::Taken(_)),
        "a missed window stays missed"
    );
}

#[test]
fn a_claim_of_which_nothing_was_sent_is_taken_back_by_its_holder_alone() {
    let dir = tempfile::tempdir().unwrap();
    let ledger = Ledger::open(&dir.path().join("s.db")).unwrap();
    ledger.begin_campaign(&campaign("c")).unwrap();
    assert_eq!(ledger.claim(&key(0), 5, 6, "one", 100).unwrap(), Claim::Ours);
    assert!(!ledger.unclaim(&key(0), "two").unwrap());
    assert!(ledger.unclaim(&key(0), "one").unwrap());
    assert_eq!(ledger.claim(&key(0), 5, 7, "two", 100).unwrap(), Claim::Ours);
    assert!(ledger.settle(&key(0), 5, &state("run"), "two", 8).unwrap());
    assert!(!ledger.unclaim(&key(0), "two").unwrap(), "what is settled stays settled");
}

#[test]
fn a_campaign_begins_once_and_keeps_its_first_end() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("s.db");
    let ledger = Ledger::open(&path).unwrap();
    assert!(ledger.begin_campaign(&campaign("c")).unwrap().1);
    let again = CampaignRow { started_unix_us: 9_000, ..campaign("c") };
    let (row, new) = ledger.begin_campaign(&again).unwrap();
    assert_eq!((row, new), (campaign("c"), false));
    assert!(ledger.stop_campaign("c", 7, "budget").unwrap());
    assert!(!ledger.stop_campaign("c", 8, "by hand").unwrap());
    assert_eq!(ledger.campaign("c").unwrap().unwrap().stopped, Some((7, "budget".into())));
    assert_eq!(ledger.campaign("other").unwrap(), None);

    let event = EventRow {
        unix_us: 5,
        campaign: Some("c".into()),
        lane: Some("lane-a".into()),
        task: None,
        kind: "model_changed".into(),
        detail: r#"{"from":"a","to":"b"}"#.into(),
    };
    ledger.event(&event).unwrap();
    assert_eq!(ledger.events(5).unwrap(), [event]);
    assert_eq!(ledger.events(6).unwrap(), []);

    let doc = DocumentRow { id: "d-1".into(), kind: "decision".into(), created_unix_us: 3, body: "{}".into() };
    ledger.put_document(&doc, 3).unwrap();
    let later = DocumentRow { created_unix_us: 8, body: r#"{"a":1}"#.into(), ..doc.clone() };
    ledger.put_document(&later, 8).unwrap();
    assert_eq!(ledger.documents("decision").unwrap(), [DocumentRow { created_unix_us: 3, ..later }]);
    assert_eq!(ledger.documents("countertest").unwrap(), []);
    // A reader of measurements has the same file open beside it.
    assert!(StoreReader::open(&path).unwrap().latest_run().unwrap().is_none());
}
