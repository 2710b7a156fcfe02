//! Choices from bursts of known counts.

use jiff::Timestamp;
use jiff::tz::{Offset, TimeZone};

use super::*;
use crate::attempt::Verdict;
use crate::campaign::Locked;
use crate::config::{Config, parse};
use crate::rules::{Action, Standing, Why};
use crate::summary::sample_header;

const LANES: &str = "[[lane]]\nname = 'a'\nkind = 'free-hosted'\nbase_url = 'https://a.example/v1'\nmodel = 'm'\n\
                     [[lane]]\nname = 'c'\nkind = 'paid-hosted'\nbase_url = 'https://c.example/v1'\nmodel = 'm'\n";

fn config(extra: &str) -> Config {
    parse(&format!("{extra}\n{LANES}")).unwrap_or_else(|e| panic!("{e}"))
}

/// One burst of 8 of a lane, with so many that pass and so many of the others that were retried.
fn seen(lane: &str, date: &str, window: &str, passed: u32) -> Seen {
    let begin: Timestamp = format!("{date}T{window}:00Z").parse().unwrap();
    let mut header = sample_header(8);
    header.id = format!("{lane}-{date}-{window}");
    (header.lane, header.task) = (lane.into(), "t".into());
    header.kind = if lane == "c" { Kind::PaidHosted } else { Kind::FreeHosted };
    (header.date, header.window) = (Some(date.into()), Some(window.into()));
    header.started_unix_us = begin.as_microsecond();
    let figure = |at: u32| AttemptFigures {
        intended_unix_us: Some(begin.as_microsecond()),
        latency_us: 5_000_000,
        verdict: if at < passed { Verdict::Pass } else { Verdict::TooSlow },
        outcome: Outcome::Ok,
        retries: 0,
        ttft_us: None,
        first_answer_us: None,
        prompt_tokens: None,
        cached_tokens: None,
        completion_tokens: None,
    };
    Seen {
        header,
        state: BurstState::Complete,
        figures: (0..8).map(figure).collect(),
        warmups: Vec::new(),
        peak_in_flight: None,
        limit_headers: Vec::new(),
    }
}

/// Three days: 09:00 and 16:00 of both lanes.
fn three_days(a: [u32; 2], c: [u32; 2]) -> Vec<Seen> {
    let mut all = Vec::new();
    for date in ["2026-11-23", "2026-11-24", "2026-11-25"] {
        for (lane, passed) in [("a", a), ("c", c)] {
            all.push(seen(lane, date, "09:00", passed[0]));
            all.push(seen(lane, date, "16:00", passed[1]));
        }
    }
    all
}

fn inputs<'a>(bursts: &'a [Seen], as_of: &str) -> Inputs<'a> {
    Inputs {
        site: None,
        time_zone: Some("UTC"),
        campaign: None,
        config: None,
        peak: None,
        bursts,
        gaps: &[],
        recorded: &[],
        as_of: as_of.parse().unwrap(),
        whole_day: true,
        zones: &|_| Some(TimeZone::fixed(Offset::UTC)),
    }
}

fn only(inputs: &Inputs<'_>) -> Choice {
    let mut all = choices(inputs);
    assert_eq!(all.len(), 1);
    all.remove(0)
}

fn chosen(choice: &Choice) -> Option<&str> {
    choice.chosen().map(|l| l.lane.as_str())
}

#[test]
fn without_a_declared_peak_the_worst_window_of_each_lane_decides() {
    let bursts = three_days([8, 4], [7, 8]);
    let choice = only(&inputs(&bursts, "2026-11-25"));
    let windows: Vec<_> = choice.candidates.iter().map(|c| c.decision.deciding_window.clone().unwrap()).collect();
    assert_eq!(windows, ["16:00", "09:00"]);
    // 21 of 24 at 09:00 is 87.5 %: the paid lane is out too
    assert_eq!(chosen(&choice), None);
    assert_eq!(choice.least_bad.map(|at| choice.lanes[at].lane.as_str()), Some("c"));
    // At 09:00 the free lane holds, at 16:00 the paid one.
    let split = choice.split.as_ref().unwrap();
    assert_eq!(split.ranges.iter().map(|r| choice.lanes[r.lane].lane.as_str()).collect::<Vec<_>>(), ["a", "c"]);
    assert_eq!(split.cost, None);
}

#[test]
fn a_declared_peak_decides_alone_and_a_picked_window_pays_for_it() {
    let bursts = three_days([4, 8], [8, 8]);
    let with_peak = Inputs { peak: Some("16:00".into()), ..inputs(&bursts, "2026-11-25") };
    let declared = only(&with_peak);
    assert_eq!(chosen(&declared), Some("a"));
    let confidence = |choice: &Choice, at: usize| choice.lanes[at].pass_certainty.unwrap().confidence;
    assert!((confidence(&declared, 0) - 0.95).abs() < 1e-9);
    let picked = only(&inputs(&bursts, "2026-11-25"));
    assert!((confidence(&picked, 0) - 0.975).abs() < 1e-9);
}

#[test]
fn a_day_with_a_void_burst_stands_in_the_way_until_another_day_makes_up_the_number() {
    let mut bursts = three_days([8, 8], [8, 8]);
    let void = bursts.iter_mut().find(|b| b.header.id == "a-2026-11-24-16:00").unwrap();
    void.figures[0].verdict = Verdict::ConfigFinding;
    let peak = || Some("16:00".to_owned());
    let choice = only(&Inputs { peak: peak(), ..inputs(&bursts, "2026-11-25") });
    assert_eq!(choice.ladder.standings[0].0, Standing::Undecided);
    assert_eq!(choice.lanes[0].missing, [("2026-11-24".to_owned(), "void".to_owned())]);
    assert!(
        choice.lacks_data() && chosen(&choice).is_none(),
        "a lower rung that is not decided keeps the paid one waiting"
    );
    bursts.push(seen("a", "2026-11-26", "16:00", 8));
    let choice = only(&Inputs { peak: peak(), ..inputs(&bursts, "2026-11-26") });
    assert_eq!(chosen(&choice), Some("a"));
    assert_eq!(choice.lanes[0].missing.len(), 1, "it stays told");
}

#[test]
fn what_was_missed_or_due_before_the_begin_is_told_apart() {
    let config = config(
        "time_zone = 'UTC'\n[campaign]\nwindows = ['09:00', '16:00']\npeak = '16:00'\ndays = 4\n[[task]]\nname = 't'\nprompt = 'x'\n",
    );
    let locked = Locked::new(&config, &config.sites()[0], "2026-11-23".parse().unwrap());
    let bursts: Vec<Seen> = three_days([8, 8], [8, 8])
        .into_iter()
        .filter(|b| {
            b.header.lane != "a"
                || b.header.date.as_deref() == Some("2026-11-25")
                || b.header.window.as_deref() == Some("09:00")
        })
        .collect();
    let gap = |date: &str, state: &str, reason: Option<&str>| Gap {
        date: date.into(),
        window: "16:00".into(),
        lane: "a".into(),
        task: "t".into(),
        state: state.into(),
        reason: reason.map(str::to_owned),
    };
    let gaps = [gap("2026-11-23", "before_start", None), gap("2026-11-24", "missed", Some("asleep"))];
    let choice = only(&Inputs { campaign: Some(("id", &locked)), gaps: &gaps, ..inputs(&bursts, "2026-11-26") });
    let missing: Vec<_> = choice.lanes[0].missing.iter().map(|(date, why)| format!("{date} {why}")).collect();
    assert_eq!(missing, ["2026-11-24 asleep", "2026-11-26 not on record"]);
    assert_eq!(choice.lanes[0].deciding_window().unwrap().days, 1);
    // Today's burst is not due yet: no gap.
    let now =
        Inputs { campaign: Some(("id", &locked)), gaps: &gaps, whole_day: false, ..inputs(&bursts, "2026-11-26") };
    assert_eq!(only(&now).lanes[0].missing.len(), 1);
}

#[test]
fn what_comes_after_the_campaign_counts_for_the_pass_rate_and_not_for_its_retries() {
    let config = config(
        "time_zone = 'UTC'\n[campaign]\nwindows = ['09:00', '16:00']\npeak = '16:00'\n[[task]]\nname = 't'\nprompt = 'x'\n",
    );
    let locked = Locked::new(&config, &config.sites()[0], "2026-11-23".parse().unwrap());
    let mut bursts = three_days([8, 8], [8, 8]);
    let mut late = seen("a", "2026-11-26", "16:00", 8);
    late.figures.iter_mut().for_each(|f| f.retries = 1);
    bursts.push(late);
    let choice = only(&Inputs { campaign: Some(("id", &locked)), ..inputs(&bursts, "2026-11-26") });
    let lane = &choice.lanes[0];
    assert_eq!(lane.deciding_window().unwrap().rate, PassRate::new(32, 32));
    assert_eq!((lane.retries.attempts, lane.retries.retried), (48, 0));
    // The trigger looks at all bursts of the last three working days: 8 of 40 attempts were retried.
    let state = choice.trigger.state.as_ref().unwrap();
    assert_eq!((state.action, state.retries), (Action::Graduate, crate::stats::RetryRate::new(8, 40)));
    assert_eq!(choice.trigger.to.map(|at| choice.lanes[at].lane.as_str()), Some("c"));
}

#[test]
fn a_recorded_lane_is_watched_and_a_lower_one_that_held_may_be_gone_back_to_where_that_is_on() {
    let bursts = three_days([8, 8], [8, 8]);
    let record = Recorded {
        id: "d".into(),
        site: None,
        task: "t".into(),
        date: "2026-11-20".parse().unwrap(),
        lane: Some("c".into()),
        kind: Some(Kind::PaidHosted),
        expires: "2026-12-04".parse().unwrap(),
    };
    let recorded = [record];
    let off = only(&Inputs { recorded: &recorded, ..inputs(&bursts, "2026-11-25") });
    assert_eq!((off.trigger.lane.as_deref(), off.trigger.from_record, off.down), (Some("c"), true, None));
    assert!(!off.expired());
    let config = config("[rules]\nstep_down_days = 3\n");
    let on = only(&Inputs { recorded: &recorded, config: Some(&config), ..inputs(&bursts, "2026-11-25") });
    assert_eq!(on.down.map(|at| on.lanes[at].lane.as_str()), Some("a"));
    // On the day of its expiry it holds no longer; a record of another site is not ours.
    assert!(only(&Inputs { recorded: &recorded, ..inputs(&bursts, "2026-12-04") }).expired());
    assert!(
        only(&Inputs { recorded: &recorded, site: Some("pune"), ..inputs(&bursts, "2026-12-04") }).recorded.is_none()
    );
}

#[test]
fn a_batch_class_is_judged_by_the_bursts_that_reach_its_floor() {
    let mut bursts = three_days([8, 8], [8, 8]);
    for burst in &mut bursts {
        // 8 right answers in 5 s are 5,760 an hour
        burst.header.tasks_per_hour_floor = Some(if burst.header.lane == "a" { 5_761 } else { 5_760 });
        burst.header.floor_us = 0;
    }
    let choice = only(&Inputs { peak: Some("16:00".into()), ..inputs(&bursts, "2026-11-25") });
    let rates: Vec<_> = choice.candidates.iter().map(|c| c.decision.pass_rate).collect();
    assert_eq!(rates, [PassRate::new(0, 3), PassRate::new(3, 3)]);
    assert_eq!(chosen(&choice), Some("c"));
}

#[test]
fn a_choice_is_conclusive_when_the_lanes_below_are_too() {
    // 21 of 24 below the bar of 90 % says little; 4 of 24 says enough.
    let mut bursts = three_days([8, 7], [8, 8]);
    for day in 1..=9 {
        bursts.push(seen("c", &format!("2026-12-{day:02}"), "16:00", 8));
    }
    let peak = || Some("16:00".to_owned());
    let near = only(&Inputs { peak: peak(), ..inputs(&bursts, "2026-12-09") });
    assert_eq!((chosen(&near), near.lanes[1].is_conclusive(), near.is_conclusive()), (Some("c"), true, false));
    for burst in bursts.iter_mut().filter(|b| b.header.lane == "a" && b.header.window.as_deref() == Some("16:00")) {
        burst.figures[..6].iter_mut().for_each(|f| f.verdict = Verdict::TooSlow);
    }
    assert!(only(&Inputs { peak: peak(), ..inputs(&bursts, "2026-12-09") }).is_conclusive());
}

#[test]
fn cold_starts_and_limits_are_those_that_were_met() {
    let mut bursts = three_days([8, 8], [8, 8]);
    let cold = |outcome, latency_us| ColdTry { outcome, latency_us };
    bursts[0].warmups = vec![cold(Outcome::Ok, 9_000_000)];
    bursts[1].warmups = vec![cold(Outcome::Ok, 3_000_000), cold(Outcome::RateLimited, 10)];
    bursts[0].peak_in_flight = Some(8);
    bursts[0].limit_headers = vec![("x-ratelimit-limit-requests".into(), "20".into())];
    bursts[1].figures[0].outcome = Outcome::RateLimited;
    bursts[1].peak_in_flight = Some(80);
    let choice = only(&inputs(&bursts, "2026-11-25"));
    let lane = &choice.lanes[0];
    let want = ColdStart { attempts: 3, failed: 1, median_us: Some(3_000_000), slowest_us: Some(9_000_000) };
    assert_eq!(lane.cold, Some(want));
    assert_eq!((lane.observed.rate_limited, lane.observed.attempts, lane.observed.in_flight), (1, 48, Some(8)));
    assert_eq!(lane.observed.headers.len(), 1);
}

#[test]
fn another_model_is_another_series_and_the_newest_counts() {
    let mut bursts = three_days([2, 2], [8, 8]);
    for date in ["2026-11-26", "2026-11-27", "2026-11-30"] {
        let mut fresh = seen("a", date, "16:00", 8);
        fresh.header.model = "m2".into();
        bursts.push(fresh);
    }
    let choice = only(&Inputs { peak: Some("16:00".into()), ..inputs(&bursts, "2026-11-30") });
    assert_eq!((chosen(&choice), choice.lanes[0].other_series), (Some("a"), 1));
}

#[test]
fn a_need_that_nobody_below_promises_goes_to_the_paid_lane_and_leaves_no_split() {
    let bursts = three_days([8, 8], [8, 8]);
    let config = config("[needs]\nrequests_per_minute = 100\n");
    let choice = only(&Inputs { config: Some(&config), ..inputs(&bursts, "2026-11-25") });
    assert_eq!((chosen(&choice), choice.split.is_none()), (Some("c"), true));
    assert_eq!(choice.ladder.standings[0].1, [Why::NeedPromised { lane: "c".into() }]);
}

proptest::proptest! {
    #[test]
    fn a_choice_does_not_depend_on_the_order_of_the_bursts_and_never_goes_past_a_rung_that_holds(
        passed in proptest::collection::vec(0_u32..=8, 12), turn in 0_usize..12,
    ) {
        let mut bursts = three_days([8, 8], [8, 8]);
        for (burst, passed) in bursts.iter_mut().zip(&passed) {
            let missed = burst.figures.iter_mut().skip(*passed as usize);
            missed.for_each(|f| f.verdict = Verdict::TooSlow);
        }
        let before = only(&Inputs { peak: Some("16:00".into()), ..inputs(&bursts, "2026-11-25") });
        bursts.rotate_left(turn);
        bursts.reverse();
        let after = only(&Inputs { peak: Some("16:00".into()), ..inputs(&bursts, "2026-11-25") });
        proptest::prop_assert_eq!(&before.candidates, &after.candidates);
        proptest::prop_assert_eq!(&before.ladder, &after.ladder);
        proptest::prop_assert_eq!(&before.split, &after.split);
        proptest::prop_assert_eq!(&before.trigger, &after.trigger);
        let first = before.ladder.standings.iter().position(|(standing, _)| *standing == Standing::Holds);
        proptest::prop_assert_eq!(before.ladder.chosen, first);
        // A split uses a lane only at windows at which it reaches the bar.
        for range in before.split.iter().flat_map(|s| &s.ranges) {
            for window in &range.windows {
                let at = before.lanes[range.lane].windows.iter().find(|w| w.window == *window).unwrap();
                proptest::prop_assert!(at.rate.unwrap().reaches(90));
            }
        }
    }
}
