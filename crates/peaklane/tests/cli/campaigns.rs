//! `peaklane summary` over campaigns: series are never mixed, what is missing is in sight, and events have a history.

use peaklane_core::campaign::Locked;
use peaklane_core::config::parse_checked;
use peaklane_store::{CampaignRow, EventRow, Ledger, SlotKey, SlotState};
use peaklane_testkit::binary::Sandbox;
use serde_json::json;

use crate::schema::assert_valid;
use crate::support::{Burst, End, burst, configuration, refused, sandbox, write_store};

const PRICE: &str = "price = { input_usd_per_mtok = 1, output_usd_per_mtok = 4, hours = [{ from = \"16:00\", to = \"18:00\", \
                     zone = \"Europe/Berlin\", input_usd_per_mtok = 2, output_usd_per_mtok = 8 }] }";

fn file() -> String {
    format!(
        "time_zone = \"Europe/Berlin\"\n[campaign]\nstart_date = \"2026-11-23\"\nwindows = [\"09:00\", \"12:30\", \"16:00\"]\n\
         peak = \"16:00\"\n{}",
        configuration(PRICE)
    )
}

/// A store with a campaign of three days at 09:00 and 16:00 (12:30 was slept over), and an older one.
fn with_campaigns() -> (Sandbox, String) {
    let sandbox = sandbox();
    sandbox.file("peaklane.toml", &file());
    let config = parse_checked(&file()).expect("a configuration");
    let locked = Locked::new(&config, &config.sites()[0], "2026-11-23".parse().expect("a date"));
    let id = locked.id();
    let path = sandbox.path().join("peaklane.db");
    let of = |campaign: &str, mut burst: Burst| {
        burst.header.campaign = Some(campaign.to_owned());
        burst.header.id = format!("{}-{campaign}", burst.header.id);
        burst.header.simulated = false;
        burst
    };
    let mut bursts = vec![of("old-2026-11-16", burst("lane-a", "2026-11-16", Some("16:00"), &[End::Limited; 8]))];
    for date in ["2026-11-23", "2026-11-24", "2026-11-25"] {
        bursts.push(of(&id, burst("lane-a", date, Some("09:00"), &[])));
        bursts.push(of(&id, burst("lane-a", date, Some("16:00"), &[End::Limited; 5])));
    }
    write_store(&path, &bursts);
    let ledger = Ledger::open(&path).expect("a store");
    let row = CampaignRow {
        id: id.clone(),
        site: None,
        started_unix_us: 1_795_000_000_000_000,
        tool_version: "0.1.0".into(),
        locked: serde_json::to_string(&locked).expect("JSON"),
        stopped: None,
    };
    ledger.begin_campaign(&row).expect("a campaign");
    let key = SlotKey {
        campaign: id.clone(),
        date: "2026-11-24".into(),
        window: "12:30".into(),
        nth: 0,
        lane: "lane-a".into(),
        task: "inline-assist".into(),
    };
    let missed = SlotState {
        state: "missed".into(),
        reason: Some("asleep".into()),
        started_unix_us: None,
        late_s: None,
        burst: None,
    };
    assert!(ledger.settle(&key, 5, &missed, "test", 6).expect("a slot"));
    let event = EventRow {
        unix_us: 1_795_500_000_000_000,
        campaign: Some(id.clone()),
        lane: Some("lane-a".into()),
        task: None,
        kind: "model_changed".into(),
        detail: r#"{"from":"small-1","to":"small-2"}"#.into(),
    };
    ledger.event(&event).expect("an event");
    (sandbox, id)
}

#[test]
fn the_newest_campaign_is_shown_alone_with_what_is_missing_and_what_it_costs() {
    let (sandbox, id) = with_campaigns();
    let ran = sandbox.run(["summary"]).expect_code(0);
    let shown = ran.stdout.split_whitespace().collect::<Vec<_>>().join(" ");
    for words in ["peak 16:00", "9/24 38 % 3 3 3", "2026-11-24 missed (the machine was asleep)", "$/1,000"] {
        assert!(shown.contains(words), "no `{words}` in\n{}", ran.stdout);
    }
    assert!(ran.stderr.contains("old-2026-11-16 (1 burst)"), "{}", ran.stderr);

    let object = sandbox.run(["summary", "--format", "json"]).expect_code(0).json();
    assert_valid("summary", &object);
    let lane = &object["lanes"][0];
    assert_eq!(
        (&lane["campaign"], &lane["peak"], object["lanes"].as_array().unwrap().len()),
        (&json!(id), &json!("16:00"), 1)
    );
    let windows = lane["windows"].as_array().unwrap();
    let counts: Vec<_> = windows.iter().map(|w| (w["window"].clone(), w["passed"].clone(), w["n"].clone())).collect();
    let want = [("09:00", 24, 24), ("12:30", 0, 0), ("16:00", 9, 24)];
    assert_eq!(counts, want.map(|(window, passed, n)| (json!(window), json!(passed), json!(n))));
    assert_eq!(windows[1]["missed"], json!([{"date": "2026-11-24", "state": "missed", "reason": "asleep"}]));
    // 420 tokens in and 96 out: 420 x 1 + 96 x 4 = 804 micro-dollars each, and twice as much from 16:00 on
    assert_eq!(
        (&windows[0]["usd_per_1000_requests"], &windows[2]["usd_per_1000_requests"]),
        (&json!(0.804), &json!(1.608))
    );
    assert_eq!(windows[1]["usd_per_1000_requests"], json!(null));
    // 24 of 24 against 9 of 24, bursts that agree: one exact test, one lane
    assert_eq!(lane["hours"]["verdict"], "hard_constraint");
    assert!(lane["hours"]["adjusted_p"].as_f64().is_some_and(|p| p < 0.001), "{lane:#}");
}

#[test]
fn another_campaign_is_shown_when_it_is_named_and_none_is_ever_mixed() {
    let (sandbox, id) = with_campaigns();
    let of = |wanted: &str| sandbox.run(["summary", "--campaign", wanted, "--format", "json"]).expect_code(0).json();
    let old = of("old");
    assert_eq!(
        (&old["lanes"][0]["campaign"], &old["lanes"][0]["windows"][0]["passed"]),
        (&json!("old-2026-11-16"), &json!(0))
    );
    assert_eq!(of(&id[..6])["lanes"][0]["campaign"], json!(id));
    let all = of("all");
    assert_valid("summary", &all);
    assert_eq!(all["lanes"].as_array().unwrap().len(), 2, "two series of one lane");
    refused(
        sandbox.run(["summary", "--campaign", "nothing"]),
        3,
        &["no burst is of a campaign `nothing`", "old-2026-11-16"],
    );
}

#[test]
fn history_tells_what_happened_beside_the_measurements() {
    let (sandbox, id) = with_campaigns();
    let shown = sandbox.run(["summary", "history"]).expect_code(0).stdout;
    assert!(shown.contains("campaign begun") && shown.contains("from small-1, to small-2"), "{shown}");
    let object = sandbox.run(["summary", "history", "--format", "json"]).expect_code(0).json();
    assert_valid("history", &object);
    let kinds: Vec<_> = object["events"].as_array().unwrap().iter().map(|e| e["event"].clone()).collect();
    assert_eq!(kinds, [json!("campaign_begun"), json!("model_changed")]);
    assert_eq!(object["events"][1]["campaign"], json!(id));
    let none = sandbox.run(["summary", "history", "--since", "2030-01-01"]).expect_code(0).stdout;
    assert!(none.starts_with("nothing happened"), "{none}");
    refused(sandbox.run(["summary", "history", "lane-a.csv"]), 2, &["has no history"]);
}
