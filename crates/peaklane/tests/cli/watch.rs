//! `watch`: its plan and its units, out of the configuration alone.

use peaklane_core::budget::Exceeded;
use peaklane_core::burst::BurstState;
use peaklane_core::watch::{CampaignName, NextBurst, Note, Place, Shortly};
use peaklane_testkit::binary::Sandbox;
use peaklane_testkit::data::cases;
use serde_json::{Value, json};

use crate::schema::assert_valid;
use crate::support::{KEY, configuration, refused, sandbox};

/// The plan of a configuration, read from the binary.
#[track_caller]
fn plan(sandbox: &Sandbox, text: &str) -> Value {
    sandbox.file("peaklane.toml", text);
    sandbox.run(["watch", "--dry-run", "--format", "json"]).expect_code(0).json()
}

/// A case as a configuration of one lane and the task class that is there by itself.
fn config_of(case: &Value) -> String {
    let list = |key: &str| case.get(key).map_or(String::new(), |value| format!("{key} = {value}\n"));
    let task = "[[task]]\nname = \"t\"\nprompt = \"p\"\n";
    format!(
        "time_zone = {}\n[campaign]\nwindows = {}\nstart_date = {}\ndays = {}\nworkdays_only = {}\n{}{}{}{task}",
        case["zone"],
        case["windows"],
        case["start_date"],
        case["days"],
        case.get("workdays_only").unwrap_or(&json!(false)),
        list("weekend"),
        list("holidays"),
        configuration(""),
    )
}

#[test]
fn the_plan_of_every_time_case_is_what_the_program_prints() {
    let sandbox = sandbox();
    let mut wrong = Vec::new();
    let mut seen = 0;
    for (id, case) in cases("cases/time").into_iter().filter(|(_, case)| case["kind"] != "runtime") {
        seen += 1;
        let got = plan(&sandbox, &config_of(&case));
        let expected: Vec<Value> = case["expected"]
            .as_array()
            .expect("a list")
            .iter()
            .map(|e| json!({"date": e["date"], "window": e["window"], "utc": e["utc"], "flag": e["flag"], "lane": "lane-a", "task": "t"}))
            .collect();
        if got != json!({"bursts": expected}) {
            wrong.push(format!("{id}: {got}"));
        }
    }
    assert!(seen > 0, "no case");
    assert_eq!(wrong, [""; 0]);
}

const CAMPAIGN: &str =
    "time_zone = \"Europe/Berlin\"\n[campaign]\nstart_date = \"2026-12-01\"\ndays = 1\nwindows = [\"16:00\"]\n";

fn with_task(campaign: &str, lane: &str) -> String {
    format!("{campaign}{}[[task]]\nname = \"t\"\nprompt = \"p\"\n", configuration(lane))
}

#[test]
fn a_dry_run_needs_no_key_and_touches_no_store() {
    let sandbox = sandbox();
    let got = plan(&sandbox, &with_task(CAMPAIGN, "key_env = \"LANE_A_KEY\""));
    assert_eq!(
        got,
        json!({"bursts": [{"date": "2026-12-01", "window": "16:00", "utc": "2026-12-01T15:00:00Z", "flag": null, "lane": "lane-a",
            "task": "t"}]})
    );
    assert!(!sandbox.path().join("peaklane.db").exists());
    assert_valid("watch-plan", &got);
    let csv = sandbox.run(["watch", "--dry-run", "--format", "csv"]).expect_code(0).stdout;
    assert_eq!(csv, "date,window,utc,flag,lane,task\n2026-12-01,16:00,2026-12-01T15:00:00Z,,lane-a,t\n");
}

#[test]
fn sites_are_planned_in_their_own_zones_and_named() {
    let sites = "[campaign]\nstart_date = \"2026-12-01\"\ndays = 1\nwindows = [\"16:00\"]\n\
                 [[site]]\nname = \"berlin\"\ntime_zone = \"Europe/Berlin\"\n\
                 [[site]]\nname = \"seoul\"\ntime_zone = \"Asia/Seoul\"\nwindows = [\"10:00\"]\n";
    let got = plan(&sandbox(), &with_task(sites, ""));
    assert_valid("watch-plan", &got);
    let shown: Vec<(&str, &str)> = got["bursts"]
        .as_array()
        .expect("a list")
        .iter()
        .map(|b| (b["site"].as_str().expect("a site"), b["utc"].as_str().expect("an instant")))
        .collect();
    assert_eq!(shown, [("berlin", "2026-12-01T15:00:00Z"), ("seoul", "2026-12-01T01:00:00Z")]);
}

#[test]
fn a_zone_folder_that_is_not_there_is_no_obstacle_and_verbose_says_which_zones_count() {
    let sandbox = sandbox().env("TZDIR", "/nowhere");
    sandbox.file("peaklane.toml", &with_task(CAMPAIGN, ""));
    let ran = sandbox.run(["watch", "--dry-run", "-v"]).expect_code(0);
    assert!(ran.stdout.contains("2026-12-01T15:00:00Z"), "{}", ran.stdout);
    assert!(ran.stderr.contains("tz database 20"), "{}", ran.stderr);
}

#[test]
fn units_name_absolute_paths_and_variables_and_never_a_key() {
    let sandbox = sandbox().env("LANE_A_KEY", KEY);
    sandbox.file("peaklane.toml", &with_task(CAMPAIGN, "key_env = \"LANE_A_KEY\""));
    for form in ["systemd", "cron", "k8s"] {
        let text = sandbox.run(["watch", "--print", form, "--store", "data/p.db"]).expect_code(0).stdout;
        assert!(text.contains("LANE_A_KEY"), "{text}");
        assert_eq!(text.contains("--due"), form != "systemd", "{text}");
        if form != "k8s" {
            let folder = sandbox.path().canonicalize().expect("a folder");
            assert!(text.contains(&format!("{}/peaklane.toml", folder.display())), "{text}");
            assert!(text.contains(&format!("sqlite:{}/data/p.db", folder.display())), "{text}");
        }
    }
    sandbox.assert_never_said(KEY, &[]);
    assert!(!sandbox.path().join("data").exists());
}

#[test]
fn a_configuration_without_a_campaign_and_one_with_a_bad_holiday_are_refused() {
    let sandbox = sandbox();
    sandbox.file("peaklane.toml", &with_task("", ""));
    refused(sandbox.run(["watch", "--dry-run"]), 2, &["no [campaign]"]);
    sandbox
        .file("peaklane.toml", &with_task(&CAMPAIGN.replace("days = 1", "days = 1\nholidays = [\"2026-02-30\"]"), ""));
    let ran = sandbox.run(["watch"]).expect_code(2);
    assert!(ran.stderr.contains("2026-02-30"), "{}", ran.stderr);
    assert!(!sandbox.path().join("peaklane.db").exists());
}

/// One of each thing that a watcher tells.
fn notes() -> Vec<Note> {
    let name = || CampaignName { campaign: "c".into(), site: None };
    let place = || Place {
        campaign: "c".into(),
        site: Some("berlin".into()),
        date: "2026-12-01".into(),
        window: "16:00".into(),
        nth: 0,
        lane: "lane-a".into(),
        task: "t".into(),
    };
    let (first_date, last_date) = ("2026-12-01".to_owned(), "2026-12-03".to_owned());
    let (before, after) = (vec!["m-1".to_owned()], vec!["m-2".to_owned()]);
    let shortly = Shortly {
        burst: "b".into(),
        state: BurstState::Complete,
        passed: 7,
        n: 8,
        retried: 0,
        p90_us: None,
        p90_exceeds: false,
        miss: Some("too_slow".into()),
        finding: None,
    };
    let next = NextBurst { site: None, lane: "a".into(), local: "2026-12-01 16:00".into(), due_unix_us: 1, in_s: 2 };
    vec![
        Note::CampaignBegun { name: name(), first_date: first_date.clone(), last_date: last_date.clone(), bursts: 2 },
        Note::CampaignContinued { name: name(), first_date, last_date, bursts: 2, over: 1 },
        Note::CampaignReplaced { name: name(), former: "d".into(), changed: vec!["tasks".into()] },
        Note::LaneGone { name: name(), lane: "a".into() },
        Note::LaneJoined { name: name(), lane: "a".into() },
        Note::BeforeStart { name: name(), bursts: 1 },
        Note::BurstBegun { place: place(), burst: "b".into(), late_s: 0 },
        Note::BurstEnded { place: place(), shortly },
        Note::BurstInterrupted { place: place(), reason: "asleep".into() },
        Note::WindowMissed { place: place(), reason: "busy".into() },
        Note::AnotherWatcher { place: place() },
        Note::ModelChanged { place: place(), before: before.clone(), after: after.clone() },
        Note::FingerprintChanged { place: place(), before, after },
        Note::ClockStepped { by_s: -1 },
        Note::Slept { for_s: 1 },
        Note::StoreAway { error: "e".into() },
        Note::StoreBack,
        Note::BudgetStop { exceeded: Exceeded { what: "requests", cap: 1, used: 1, next: 1 } },
        Note::AfterCampaign { name: name(), windows: vec!["16:00".into()] },
        Note::Next { next: vec![next] },
        Note::Finished { name: name() },
        Note::CampaignStopped { name: name(), why: "budget".into() },
        Note::Interrupted,
    ]
}

#[test]
fn everything_that_a_watcher_tells_is_as_its_schema_says() {
    for note in notes() {
        assert_valid("watch", &serde_json::to_value(&note).expect("JSON"));
    }
}

#[test]
fn what_a_run_under_a_timer_tells_and_how_the_campaign_then_stands_are_as_their_schemas_say() {
    let sandbox = sandbox();
    sandbox.file("peaklane.toml", &with_task(&CAMPAIGN.replace("2026-12-01", "2099-12-01"), ""));
    let ran = sandbox.run(["watch", "--due", "--format", "json"]).expect_code(0);
    let events: Vec<Value> = ran.stdout.lines().map(|line| serde_json::from_str(line).expect("JSON")).collect();
    let told: Vec<&str> = events.iter().filter_map(|event| event["event"].as_str()).collect();
    assert_eq!(told, ["campaign_begun", "forecast", "next"]);
    events.iter().for_each(|event| assert_valid("watch", event));
    let status = sandbox.run(["summary", "status", "--format", "json"]).expect_code(0).json();
    assert_valid("summary-status", &status);
    let one = &status["campaigns"][0];
    assert_eq!((&one["state"], &one["lanes"][0]["next"]["local"]), (&json!("alive"), &json!("2099-12-01 16:00")));
}
