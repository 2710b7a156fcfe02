//! A whole counter-test in memory: registered, changed, measured, judged.

use super::*;
use crate::attempt::Verdict;
use crate::burst::{AttemptFigures, BurstHeader, BurstState, Connections, PromptMode};
use crate::config::{Config, parse};
use crate::outcome::Outcome;
use crate::rules::CounterVerdict;

const DAY: i64 = 86_400_000_000;

fn config() -> Config {
    let lane = |name: &str| {
        format!(
            "[[lane]]\nname = '{name}'\nkind = 'free-hosted'\nbase_url = 'https://{name}.example/v1'\nmodel = 'm'\n"
        )
    };
    let text = [lane("a"), lane("b"), lane("c")].concat() + "[[task]]\nname = 't'\nprompt = 'p'\nfloor = '25s'\n";
    parse(&text).unwrap()
}

/// As the front door takes it; the prompt stands for the hash.
fn snapshot(config: &Config, lane: &str) -> Option<Snapshot> {
    let (lane, task) = (config.lane(lane)?, config.task("t")?);
    Some(Snapshot::of(config, lane, task, task.prompt.clone().unwrap_or_default()))
}

fn now(registered: &Registered, config: &Config) -> Now {
    let of = |name: Option<&String>| name.and_then(|name| snapshot(config, name));
    Now {
        tested: snapshot(config, &registered.lane),
        target: of(registered.to.as_ref()),
        unchanged: of(registered.beside.as_ref()),
    }
}

fn registered(to: Option<&str>, beside: Option<&str>) -> Registered {
    let config = config();
    Registered {
        format: REGISTERED_FORMAT,
        id: "countertest-x".into(),
        change: "another model".into(),
        lane: "a".into(),
        to: to.map(str::to_owned),
        task: "t".into(),
        beside: beside.map(str::to_owned),
        site: None,
        zone: "Europe/Berlin".into(),
        windows: vec!["16:00".into()],
        campaign: None,
        margin_percent: 25,
        wait_days: 2,
        begun_unix_us: 0,
        in_retrospect: false,
        tested: snapshot(&config, "a").unwrap(),
        target: to.and_then(|lane| snapshot(&config, lane)),
        unchanged: beside.and_then(|lane| snapshot(&config, lane)),
        before: vec![Side { window: "16:00".into(), bursts: three(4) }],
        before_beside: vec![Side { window: "16:00".into(), bursts: three(8) }],
        not_before_unix_us: 0,
        looks: 0,
        seen: None,
        ended: None,
    }
}

/// 3 bursts of 8.
fn three(passed: u32) -> Vec<CountedBurst> {
    (0..3).map(|i| CountedBurst { id: format!("old-{i}"), date: None, passed, n: 8 }).collect()
}

fn header(config: &Config, lane: &str, window: &str, started_unix_us: i64) -> BurstHeader {
    let of = config.lane(lane).unwrap();
    BurstHeader {
        id: format!("{lane}-{window}-{started_unix_us}"),
        run: "r".into(),
        lane: lane.into(),
        kind: of.kind,
        api: of.api,
        model: of.model.clone(),
        base_url: of.base_url.clone(),
        task: "t".into(),
        floor_us: 25_000_000,
        attempts: 8,
        concurrency: None,
        spacing_us: 0,
        prompt_mode: PromptMode::Nonce,
        connections: Connections::Before,
        stream: true,
        max_retries: 2,
        total_timeout_us: 60_000_000,
        seed: 1,
        prompt_hash: config.tasks[0].prompt.clone().unwrap(),
        date: Some("2026-12-01".into()),
        window: Some(window.into()),
        zone: Some("Europe/Berlin".into()),
        started_unix_us,
        tool_version: "0.1.0".into(),
        simulated: false,
        tasks_per_hour_floor: None,
        stretch_us: None,
        campaign: None,
        site: None,
    }
}

fn figures(passed: usize) -> Vec<AttemptFigures> {
    let one = |i| AttemptFigures {
        intended_unix_us: Some(0),
        latency_us: 1_000,
        verdict: if i < passed { Verdict::Pass } else { Verdict::Failed },
        outcome: if i < passed { Outcome::Ok } else { Outcome::RateLimited },
        retries: 0,
        ttft_us: None,
        first_answer_us: None,
        prompt_tokens: None,
        cached_tokens: None,
        completion_tokens: None,
    };
    (0..8).map(one).collect()
}

fn data<'a>(bursts: &'a [(BurstHeader, Vec<AttemptFigures>)]) -> Vec<BurstData<'a>> {
    bursts.iter().map(|(header, figures)| BurstData { header, state: BurstState::Complete, figures }).collect()
}

#[test]
fn one_change_is_noted_when_it_is_first_seen_and_two_are_refused() {
    let mut test = registered(None, Some("b"));
    let mut config = config();
    assert_eq!(test.notice(&now(&test, &config), 5), (Notice::Nothing, false));
    config.lanes[0].model = "n".into();
    let (found, stale) = test.notice(&now(&test, &config), 7);
    assert!(matches!(&found, Notice::One(change) if change.thing == "model") && stale);
    assert_eq!(test.seen.as_ref().unwrap().unix_us, 7);
    assert!(!test.notice(&now(&test, &config), 9).1, "what is known is known");

    config.tasks[0].max_tokens = 64;
    let (found, _) = test.notice(&now(&test, &config), 11);
    let Notice::Refused(Refusal::Several(two)) = found else { panic!("{found:?}") };
    assert_eq!(two.iter().map(|c| c.thing.as_str()).collect::<Vec<_>>(), ["max_tokens", "model"]);
    assert_eq!((test.not_before_unix_us, &test.seen), (11, &None), "what ran with two changes is no evidence");
    config.tasks[0].max_tokens = 1024;
    test.notice(&now(&test, &config), 13);
    assert_eq!(test.seen.unwrap().unix_us, 13);
}

#[test]
fn the_lane_beside_and_what_both_sides_are_judged_by_must_stay() {
    let mut test = registered(None, Some("b"));
    let found = |test: &mut Registered, change: fn(&mut Config)| {
        let mut config = config();
        change(&mut config);
        test.notice(&now(test, &config), 1).0
    };
    let beside = found(&mut test, |c| {
        c.lanes[0].model = "n".into();
        c.lanes[1].model = "n".into();
    });
    assert!(matches!(beside, Notice::Refused(Refusal::Beside(_))), "its own model is not shared: {beside:?}");
    let floor = found(&mut test, |c| c.tasks[0].floor = Some("9s".parse().unwrap()));
    assert!(matches!(&floor, Notice::Refused(Refusal::Thawed(keys)) if keys[0].key == "floor"), "{floor:?}");
    let gone = found(&mut test, |c| drop(c.lanes.remove(0)));
    assert_eq!(gone, Notice::Refused(Refusal::Gone("a".into())));
    assert_eq!(test.not_before_unix_us, 1);
}

#[test]
fn a_prompt_is_shared_by_the_lane_beside_which_then_is_no_unchanged_lane() {
    let mut test = registered(None, Some("b"));
    let mut config = config();
    config.tasks[0].prompt = Some("q".into());
    assert!(matches!(test.notice(&now(&test, &config), 5).0, Notice::One(change) if change.thing == "prompt"));
    assert!(test.seen.as_ref().unwrap().beside_shares && !test.lane_changed());
    let bursts = [(header(&config, "a", "16:00", 6), figures(8)), (header(&config, "b", "16:00", 6), figures(8))];
    let (after, beside) = test.after(&data(&bursts), DAY);
    assert_eq!((after[0].bursts.len(), beside.len()), (1, 0));
    assert_eq!(test.judge(&after, &beside).unwrap().world_changed, None);
}

#[test]
fn only_bursts_of_the_changed_lane_in_the_frozen_windows_after_the_change_count() {
    let mut test = registered(None, Some("b"));
    let before = config();
    let mut after = config();
    after.lanes[0].model = "n".into();
    let mut bursts = vec![
        (header(&before, "a", "16:00", 2), figures(4)), // the old model, after the begin
        (header(&after, "a", "16:00", 3), figures(7)),  // the first that carries the change
        (header(&after, "a", "09:00", 4), figures(0)),  // another window
        (header(&after, "a", "16:00", 5), figures(7)),  // counts
        (header(&after, "a", "16:00", 2 * DAY), figures(0)), // after the moment of the look
        (header(&before, "b", "16:00", 1), figures(0)), // beside, but before the change
        (header(&before, "b", "16:00", 4), figures(8)), // beside
        (header(&after, "a", "16:00", 6), figures(7)),  // counts
    ];
    bursts[4].0.id = "late".into();
    assert_eq!(test.after(&data(&bursts), DAY), (vec![], vec![]), "nobody has seen a change yet");
    test.notice(&now(&test, &after), 10);
    assert_eq!(test.changed_unix_us(&data(&bursts)), Some(3), "the first burst that carries it dates it");
    let (side, beside) = test.after(&data(&bursts), DAY);
    let rate = side[0].rate().unwrap();
    assert_eq!((rate.passed(), rate.of()), (21, 24));
    assert_eq!(beside[0].bursts.len(), 1);
    let judged = test.judge(&side, &beside).unwrap();
    // counter-test-12of24-to-21of24
    assert_eq!((judged.verdict, judged.migration_off), (CounterVerdict::Improved, false));
}

#[test]
fn a_change_that_no_header_shows_counts_from_when_it_was_seen() {
    let mut test = registered(None, None);
    let mut config = config();
    config.lanes[0].region = Some("eu".into());
    test.notice(&now(&test, &config), 10);
    let bursts = [(header(&config, "a", "16:00", 9), figures(8)), (header(&config, "a", "16:00", 11), figures(8))];
    assert_eq!(test.changed_unix_us(&data(&bursts)), Some(10));
    assert_eq!(test.after(&data(&bursts), DAY).0[0].bursts.len(), 1);
}

#[test]
fn a_move_to_another_lane_is_the_change_itself_and_nothing_else_may_change() {
    let mut test = registered(Some("c"), Some("b"));
    let mut config = config();
    assert!(matches!(test.notice(&now(&test, &config), 5), (Notice::One(change), false) if change.thing == "lane"));
    assert!(test.lane_changed());
    config.lanes[0].model = "whatever".into();
    assert!(matches!(test.notice(&now(&test, &config), 5).0, Notice::One(_)), "the lane that is left may change");
    let bursts: Vec<_> = (1..4).map(|at| (header(&config, "c", "16:00", at), figures(4))).collect();
    let (after, beside) = test.after(&data(&bursts), DAY);
    assert_eq!(after[0].bursts.len(), 3);
    // 12/24 twice: Newcombe's interval is within +-28 points of 0, so that 25 points do not settle it
    assert_eq!(test.judge(&after, &beside).unwrap().verdict, CounterVerdict::Undecided);
    test.margin_percent = 30;
    assert!(test.judge(&after, &beside).unwrap().migration_off);

    config.lanes[2].model = "n".into();
    let found = test.notice(&now(&test, &config), 9).0;
    assert!(matches!(&found, Notice::Refused(Refusal::Several(two)) if two.len() == 2), "{found:?}");
    assert_eq!(test.changed_unix_us(&data(&bursts)), Some(9), "the wait begins again");
}

#[test]
fn a_change_of_the_rung_is_a_change_of_the_lane() {
    let mut test = registered(None, None);
    let mut config = config();
    config.lanes[0].kind = crate::lane::Kind::PaidHosted;
    config.lanes[0].key_env = Some("PAID_KEY".into());
    test.notice(&now(&test, &config), 5);
    assert!(test.lane_changed());
}

#[test]
fn what_is_stored_comes_back_as_it_was() {
    let mut test = registered(Some("c"), Some("b"));
    let side = test.before.clone();
    let judgement = test.judge(&side, &[]).unwrap();
    test.ended = Some(Ended {
        unix_us: 9,
        changed_unix_us: Some(1),
        judgement: Some(judgement),
        after: side,
        after_beside: Vec::new(),
    });
    let text = serde_json::to_string(&test).unwrap();
    assert_eq!(serde_json::from_str::<Registered>(&text).unwrap(), test);
}

#[test]
fn the_wait_is_counted_in_local_days_also_over_the_change_of_the_clocks() {
    let zone = TimeZone::get("Europe/Berlin").unwrap();
    let at = |text: &str| text.parse::<Timestamp>().unwrap().as_microsecond();
    let test = registered(None, None);
    // 16:00 on Tuesday is over at 16:00 on Thursday
    let ready = test.end_possible_unix_us(at("2026-12-01T15:00:00Z"), &zone);
    assert_eq!(ready, Some(at("2026-12-03T15:00:00Z")));
    // on 25 October 2026 the clocks go back: two local days are 49 hours
    assert_eq!(test.end_possible_unix_us(at("2026-10-24T14:00:00Z"), &zone), Some(at("2026-10-26T15:00:00Z")));
}

#[test]
fn the_newest_campaign_is_the_one_that_stands_before() {
    let config = config();
    let series = snapshot(&config, "a").unwrap().series;
    let mut bursts: Vec<_> = (1..5).map(|at| (header(&config, "a", "16:00", at), figures(8))).collect();
    for (at, campaign) in [(0, Some("old")), (1, Some("new")), (2, Some("new")), (3, None)] {
        bursts[at].0.campaign = campaign.map(str::to_owned);
    }
    let windows = ["16:00".to_owned()];
    let place = Place { site: None, windows: &windows, campaign: None };
    assert_eq!(newest_campaign(&data(&bursts), &series, &place, 9).as_deref(), Some("new"));
    assert_eq!(newest_campaign(&data(&bursts), &series, &place, 1).as_deref(), Some("old"));
    assert_eq!(newest_campaign(&data(&bursts), &series, &Place { site: Some("x"), ..place.clone() }, 9), None);
    let span = Span { from_unix_us: i64::MIN, to_unix_us: 9 };
    let place = Place { campaign: Some("new"), ..place };
    assert_eq!(side(&data(&bursts), &series, &place, span)[0].bursts.len(), 2);
}
