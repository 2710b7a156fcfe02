//! `peaklane countertest`: one change from its registration to its verdict, with the real binary and a store filled by the
//! test.

use peaklane_core::config::parse;
use peaklane_run::plan_hash::plan_hash;
use peaklane_testkit::binary::Sandbox;
use serde_json::{Value, json};

use crate::schema::assert_valid;
use crate::support::{Burst, End, burst, refused, sandbox, write_store};

const DAYS: [&str; 3] = ["2026-11-23", "2026-11-24", "2026-11-25"];
const LATER: [&str; 3] = ["2026-11-26", "2026-11-27", "2026-11-30"];
const ID: &str = "countertest-2026-11-25-lane-a-inline-assist";

/// Three lanes, one task class, two windows with the peak at 16:00.
fn file(model: &str, prompt: &str, more: &str) -> String {
    let lane = |name: &str, model: &str| {
        format!(
            "[[lane]]\nname = \"{name}\"\nkind = \"free-hosted\"\nbase_url = \"http://127.0.0.1:8080/v1\"\nmodel = \"{model}\"\n"
        )
    };
    let lanes = lane("lane-a", model) + more + &lane("lane-b", "small-coder") + &lane("lane-c", "small-coder");
    format!(
        "time_zone = \"Europe/Berlin\"\n[campaign]\nwindows = [\"09:00\", \"16:00\"]\npeak = \"16:00\"\n{lanes}\
         [[task]]\nname = \"inline-assist\"\nfloor = \"25s\"\nprompt = \"{prompt}\"\n"
    )
}

/// A burst at 16:00 of which so many of 8 miss, as the configuration would have fired it.
fn at_peak(config: &str, lane: &str, date: &str, misses: usize) -> Burst {
    fired(config, lane, date, "16:00", misses)
}

fn fired(config: &str, lane: &str, date: &str, window: &str, misses: usize) -> Burst {
    let config = parse(config).expect("a configuration");
    let mut made = burst(lane, date, Some(window), &vec![End::Slow(40_000); misses]);
    made.header.model.clone_from(&config.lane(lane).expect("a lane").model);
    made.header.prompt_hash = plan_hash(&config.tasks[0], true);
    made.header.campaign = Some("7f3a9c01b2d4-2026-11-23".into());
    made
}

/// A folder in which lane-a passes 12 of 24 at 16:00 and 24 of 24 at 09:00, and lane-b 24 of 24.
fn measured() -> (Sandbox, String) {
    let (sandbox, config) = (sandbox(), file("small-coder", "Say it.", ""));
    sandbox.file("peaklane.toml", &config);
    let mut bursts = Vec::new();
    for date in DAYS {
        bursts.push(at_peak(&config, "lane-a", date, 4));
        bursts.push(fired(&config, "lane-a", date, "09:00", 0));
        bursts.push(at_peak(&config, "lane-b", date, 0));
    }
    add(&sandbox, &bursts);
    (sandbox, config)
}

fn add(sandbox: &Sandbox, bursts: &[Burst]) {
    write_store(&sandbox.path().join("peaklane.db"), bursts);
}

/// Three bursts of a lane at 16:00 on the later days with so many misses each.
fn later(config: &str, lane: &str, misses: usize) -> Vec<Burst> {
    LATER.into_iter().map(|date| at_peak(config, lane, date, misses)).collect()
}

fn begin(sandbox: &Sandbox, more: &[&str]) {
    let words = ["countertest", "begin", "--change", "the newer model", "--lane", "lane-a", "--as-of", "2026-11-25"];
    sandbox.run([&words[..], more].concat()).expect_code(0);
}

fn one(sandbox: &Sandbox, words: &[&str], code: i32) -> Value {
    let object = sandbox.run([&["countertest"], words, &["--format", "json"]].concat()).expect_code(code).json();
    assert_valid("countertest", &object);
    object["countertests"][0].clone()
}

#[test]
fn a_better_model_is_registered_changed_measured_and_judged() {
    let (sandbox, _) = measured();
    let begun =
        one(&sandbox, &["begin", "--change", "the newer model", "--lane", "lane-a", "--as-of", "2026-11-25"], 0);
    assert_eq!((&begun["id"], &begun["state"], &begun["beside"]), (&json!(ID), &json!("open"), &json!("lane-b")));
    assert_eq!((&begun["windows"], &begun["deciding_window"]), (&json!(["16:00", "09:00"]), &json!("16:00")));
    assert_eq!(begun["campaign"], "7f3a9c01b2d4-2026-11-23");
    assert_eq!((&begun["changed"], &begun["in_retrospect"]), (&json!(null), &json!(true)));
    assert_eq!(begun["evidence"]["before"].as_array().map(Vec::len), Some(6));
    refused(sandbox.run(["countertest", "end", "--as-of", "2026-11-30"]), 2, &["nothing has changed"]);

    let config = file("other-coder", "Say it.", "");
    sandbox.file("peaklane.toml", &config);
    let shown = one(&sandbox, &["show", "--as-of", "2026-11-26"], 0);
    assert_eq!(shown["changed"]["words"], "model \"small-coder\" -> \"other-coder\"");
    refused(
        sandbox.run(["countertest", "end", "--as-of", "2026-11-27"]),
        3,
        &["too early", "the wait of 2 days is over on 2026-11-28 23:59 (Europe/Berlin)"],
    );

    add(&sandbox, &[later(&config, "lane-a", 1), later(&config, "lane-b", 0)].concat());
    let shown = one(&sandbox, &["show", "--as-of", "2026-11-27"], 0);
    // the first burst that carries the new model dates the change: 16:00 in Berlin on the 26th
    assert_eq!(shown["changed_utc"], "2026-11-26T15:00:00Z");
    assert_eq!(shown["figures"][0]["after_n"], 16, "the third one is of the 30th");
    assert_eq!(shown["figures"][0]["barnard_two_sided_p"], json!(null), "nobody peeks before the end");

    let ended = one(&sandbox, &["end", "--as-of", "2026-11-30"], 0);
    let figures = &ended["figures"][0];
    let counts = ["before_passed", "before_n", "after_passed", "after_n"].map(|key| figures[key].as_u64());
    // counter-test-12of24-to-21of24: improved
    assert_eq!(counts, [12, 24, 21, 24].map(Some));
    assert_eq!(
        (&ended["verdict"], &ended["state"], &ended["bursts_needed"]),
        (&json!("improved"), &json!("ended"), &json!(0))
    );
    assert_eq!((&ended["world_changed"], &ended["migration_off"]), (&json!(false), &json!(false)));
    assert!(figures["barnard_two_sided_p"].as_f64().is_some_and(|p| p < 0.05));

    let again = sandbox.run(["countertest", "show", ID]).expect_code(0).stdout;
    assert!(again.starts_with("improved: 16:00 passes 12/24 = 50 % before and 21/24 = 88 % after\n"), "{again}");
    refused(sandbox.run(["countertest", "end", ID]), 2, &["is over"]);
    refused(sandbox.run(["countertest", "end"]), 2, &["no counter-test is open"]);
    assert_eq!(one(&sandbox, &["show", ID], 0), ended, "what is kept is what was said");
}

#[test]
fn a_worse_model_ends_with_1() {
    let (sandbox, _) = measured();
    begin(&sandbox, &["--window", "16:00"]);
    let config = file("other-coder", "Say it.", "");
    sandbox.file("peaklane.toml", &config);
    add(&sandbox, &later(&config, "lane-a", 8));
    let ended = one(&sandbox, &["end", "--as-of", "2026-11-30"], 1);
    assert_eq!((&ended["verdict"], &ended["figures"][0]["after_passed"]), (&json!("worse"), &json!(0)));
    // lane-b was not measured again: what the world did is not known
    assert_eq!((&ended["world_changed"], &ended["figures"][1]["after_passed"]), (&json!(null), &json!(null)));
}

#[test]
fn two_changes_at_once_are_refused_by_name_and_do_not_count() {
    let (sandbox, _) = measured();
    begin(&sandbox, &[]);
    let config = file("other-coder", "Say it.", "region = \"eu\"\n");
    sandbox.file("peaklane.toml", &config);
    let shown = one(&sandbox, &["show", "--as-of", "2026-11-26"], 0);
    assert_eq!((&shown["refused"]["why"], &shown["changed"]), (&json!("several"), &json!(null)));
    refused(
        sandbox.run(["countertest", "end", "--as-of", "2026-11-30"]),
        2,
        &["2 things have changed", "model \"small-coder\" -> \"other-coder\"", "region nothing -> \"eu\""],
    );
    let floor = file("small-coder", "Say it.", "").replace("25s", "20s");
    sandbox.file("peaklane.toml", &floor);
    refused(
        sandbox.run(["countertest", "end", "--as-of", "2026-11-30"]),
        2,
        &["what both sides are measured by", "floor"],
    );
}

#[test]
fn the_lane_itself_changed_and_nothing_moved_calls_the_migration_off() {
    let (sandbox, config) = measured();
    // lane-c is as good as lane-b: the class moves from lane-b to lane-c, lane-a stands beside
    let words = [
        "countertest",
        "begin",
        "--change",
        "pay for it",
        "--lane",
        "lane-b",
        "--to",
        "lane-c",
        "--as-of",
        "2026-11-25",
    ];
    sandbox.run([&words[..], &["--window", "16:00"]].concat()).expect_code(0);
    add(&sandbox, &[later(&config, "lane-c", 0), later(&config, "lane-a", 4)].concat());
    let ran = sandbox.run(["countertest", "end", "--as-of", "2026-11-30"]).expect_code(0).stdout;
    assert!(
        ran.starts_with("no change that matters: 16:00 passes 24/24 = 100 % before and 24/24 = 100 % after"),
        "{ran}"
    );
    let text = ran.split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(text.contains("the rung was not the problem, and the migration is off"), "{ran}");
    assert!(
        text.contains("lane-a, unchanged, shows no change of its own: 12/24 = 50 % before, 12/24 = 50 % after"),
        "{ran}"
    );
}

#[test]
fn an_undecided_test_stays_open_ends_with_3_and_says_what_would_decide() {
    let (sandbox, _) = measured();
    begin(&sandbox, &["--window", "16:00"]);
    let config = file("other-coder", "Say it.", "");
    sandbox.file("peaklane.toml", &config);
    add(&sandbox, &[at_peak(&config, "lane-a", LATER[0], 3)]);
    // seen only now: the burst of the 26th carries it, so that the wait was over on the 28th
    let undecided = one(&sandbox, &["end", "--as-of", "2026-11-30"], 3);
    assert_eq!(
        (&undecided["verdict"], &undecided["state"], &undecided["looks"]),
        (&json!("undecided"), &json!("open"), &json!(1))
    );
    assert!(undecided["bursts_needed"].as_u64().is_some_and(|n| n > 0), "{undecided:#}");
    let csv = sandbox.run(["countertest", "show", "--format", "csv"]).expect_code(0).stdout;
    assert_eq!(csv.lines().count(), 3, "the changed lane and the one beside: {csv}");
    let given_up = one(&sandbox, &["end", "--give-up"], 0);
    assert_eq!((&given_up["state"], &given_up["verdict"]), (&json!("given_up"), &json!(null)));
}

#[test]
fn what_cannot_be_registered_is_told_with_the_next_step() {
    let (sandbox, config) = measured();
    let begin = |more: &[&str]| {
        sandbox.run([&["countertest", "begin", "--change", "x", "--as-of", "2026-11-25"], more].concat())
    };
    refused(begin(&[]), 2, &["--lane` is needed", "lane-a, lane-b, lane-c"]);
    refused(begin(&["--lane", "lane-z"]), 2, &["`lane-z`"]);
    refused(begin(&["--lane", "lane-a", "--beside", "lane-a"]), 2, &["lane of the change itself"]);
    refused(begin(&["--lane", "lane-a", "--beside", "lane-c"]), 3, &["was not measured"]);
    refused(begin(&["--lane", "lane-a", "--window", "10:00"]), 2, &["10:00", "09:00, 16:00"]);
    refused(begin(&["--lane", "lane-c"]), 3, &["no burst of `lane-c`", "measure first"]);
    refused(sandbox.run(["countertest", "show"]), 3, &["there is no counter-test yet"]);
    // a file that was changed before the begin has no burst of its own
    sandbox.file("peaklane.toml", &config.replacen("small-coder", "other-coder", 1));
    refused(begin(&["--lane", "lane-a"]), 3, &["as the configuration has them now"]);
    sandbox.file("peaklane.toml", &config);
    begin(&["--lane", "lane-a"]).expect_code(0);
    refused(begin(&["--lane", "lane-a"]), 2, &["is open", "--give-up"]);
    refused(sandbox.run(["countertest", "show", "nobody"]), 2, &["nobody", ID]);
}

#[test]
fn a_prompt_is_that_of_the_lane_beside_too() {
    let (sandbox, _) = measured();
    begin(&sandbox, &[]);
    let config = file("small-coder", "Say it briefly.", "");
    sandbox.file("peaklane.toml", &config);
    add(&sandbox, &[later(&config, "lane-a", 4), later(&config, "lane-b", 0)].concat());
    let shown = one(&sandbox, &["show", "--as-of", "2026-11-30"], 0);
    assert_eq!((&shown["changed"]["thing"], &shown["beside_shares_change"]), (&json!("prompt"), &json!(true)));
    assert_eq!(shown["figures"][0]["after_n"], 24);
    assert_eq!(shown["figures"][2]["after_n"], 0, "lane-b is no unchanged lane");
    assert!(!shown.to_string().contains("briefly"), "the prompt itself is not told");
}

#[test]
fn a_burst_is_booked_under_a_window_only_while_that_is_open() {
    let sandbox = sandbox();
    let now = jiff::Timestamp::now().to_zoned_datetime(jiff::tz::TimeZone::UTC);
    // two hours ahead, for one minute: closed whatever the hour
    let ahead = now.time().wrapping_add(jiff::Span::new().hours(2)).strftime("%H:%M").to_string();
    let window = format!("windows = [{{ start = \"{ahead}\", length = \"1min\" }}]");
    let config = file("m", "Say it.", "").replace("Europe/Berlin", "UTC").replace("peak = \"16:00\"\n", "");
    sandbox.file("peaklane.toml", &config.replace("windows = [\"09:00\", \"16:00\"]", &window));
    refused(sandbox.run(["burst", "--window", &ahead]), 2, &["is closed now", "where it is"]);
    refused(sandbox.run(["burst", "--window", "03:03"]), 2, &["no window begins at 03:03", &ahead]);
    assert!(
        !sandbox.path().join("peaklane.db").exists() || sandbox.run(["summary"]).code == Some(3),
        "nothing was fired"
    );
}
