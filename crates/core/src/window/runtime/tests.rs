use super::*;

fn at(text: &str) -> Timestamp {
    format!("2026-06-01T{text}Z").parse().unwrap()
}

/// A reading with this wall clock, with so much time awake and asleep behind it.
fn reading(wall: &str, awake_s: u64, asleep_s: u64) -> Reading {
    let alive = Some(Duration::from_secs(awake_s + asleep_s));
    Reading { wall: at(wall), awake: Duration::from_secs(awake_s), alive }
}

fn runtime(start: &str, dues: &[&'static str]) -> Runtime<&'static str> {
    let mut runtime = Runtime::new(Policy::default(), at(start), []);
    runtime.add(dues.iter().map(|due| Slot { key: *due, at: at(due) }));
    runtime
}

fn missed(key: &'static str, reason: MissedReason) -> Decision<&'static str> {
    Decision::Settled { key, status: Status::Missed(reason) }
}

#[test]
fn the_last_moment_of_the_tolerance_still_runs_and_a_microsecond_more_does_not() {
    let mut in_time = runtime("06:00:00", &["14:00:00"]);
    assert_eq!(in_time.begin(&"14:00:00", at("14:10:00")), Some(Status::Late { started: at("14:10:00"), late_s: 600 }));
    let mut too_late = runtime("06:00:00", &["14:00:00"]);
    assert_eq!(too_late.begin(&"14:00:00", at("14:10:00.000001")), None);
    let decisions = too_late.tick(reading("14:10:00.000001", 0, 0)).decisions;
    assert_eq!(decisions, [missed("14:00:00", MissedReason::NotRunning)]);
}

#[test]
fn one_second_after_its_instant_a_burst_is_on_time_and_under_cron_one_minute_after_it() {
    let mut watched = runtime("06:00:00", &["14:00:00", "15:00:00"]);
    assert_eq!(watched.begin(&"14:00:00", at("14:00:01")), Some(Status::Run { started: at("14:00:01") }));
    let late = Status::Late { started: at("15:00:01.5"), late_s: 1 };
    assert_eq!(watched.begin(&"15:00:00", at("15:00:01.5")), Some(late));
    let policy = Policy { on_time_s: DUE_ON_TIME_S, ..Policy::default() };
    let mut cron = Runtime::new(policy, at("06:00:00"), []);
    cron.add([Slot { key: 0, at: at("14:00:00") }]);
    assert_eq!(cron.begin(&0, at("14:01:00")), Some(Status::Run { started: at("14:01:00") }));
}

#[test]
fn each_miss_has_the_reason_without_which_it_would_not_have_been_one() {
    let after = |second: Reading| {
        let mut runtime = runtime("06:00:00", &["14:00:00"]);
        assert_eq!(runtime.tick(reading("13:50:00", 0, 0)).decisions, []);
        runtime.tick(second).decisions
    };
    assert_eq!(after(reading("14:30:00", 1, 2_399)), [missed("14:00:00", MissedReason::Asleep)]);
    assert_eq!(after(reading("14:30:00", 1, 0)), [missed("14:00:00", MissedReason::Clock)]);
    assert_eq!(after(reading("14:30:00", 2_400, 0)), [missed("14:00:00", MissedReason::Stalled)]);
    // asleep for 15 of the 20 minutes to the deadline, the rest was stepped over
    assert_eq!(after(reading("14:30:00", 1, 900)), [missed("14:00:00", MissedReason::Clock)]);
    // without a clock that counts suspension a jump is taken for one
    let blind = Reading { wall: at("14:30:00"), awake: Duration::from_secs(1), alive: None };
    assert_eq!(after(blind), [missed("14:00:00", MissedReason::Asleep)]);
}

#[test]
fn a_window_that_other_bursts_left_no_time_for_is_missed_as_busy() {
    let mut runtime = runtime("06:00:00", &["14:00:00", "14:00:01"]);
    runtime.tick(reading("14:00:00", 0, 0));
    assert!(runtime.begin(&"14:00:00", at("14:00:00")).is_some());
    assert_eq!(runtime.tick(reading("14:00:01", 1, 0)).decisions, [Decision::Due { key: "14:00:01", late_s: 0 }]);
    let later = runtime.tick(reading("14:10:02", 602, 0)).decisions;
    assert_eq!(later, [missed("14:00:01", MissedReason::Busy)]);
}

#[test]
fn a_burst_does_not_survive_a_suspended_machine_but_a_stepped_clock_leaves_it_alone() {
    let mut runtime = runtime("06:00:00", &["14:00:00"]);
    runtime.tick(reading("14:00:00", 0, 0));
    runtime.begin(&"14:00:00", at("14:00:00"));
    assert_eq!(runtime.tick(reading("13:00:01", 1, 0)).decisions, []);
    assert_eq!(runtime.tick(reading("16:00:02", 2, 0)).decisions, []);
    let status = Status::Interrupted { started: at("14:00:00") };
    let woken = runtime.tick(reading("16:01:02", 2, 60)).decisions;
    assert_eq!(woken, [Decision::Settled { key: "14:00:00", status }]);
    assert_eq!(runtime.finish(&"14:00:00"), None);
    assert_eq!(runtime.tick(reading("14:00:00", 3, 60)), Step { decisions: vec![], next: Next::Done });
}

#[test]
fn a_burst_that_was_cut_off_by_a_crash_is_told_once_and_never_begun_again() {
    let past = [("14:00:00", Past::Abandoned { started: at("14:00:00") })];
    let mut runtime = Runtime::new(Policy::default(), at("06:00:00"), past);
    runtime.add([Slot { key: "14:00:00", at: at("14:00:00") }]);
    assert_eq!(runtime.begin(&"14:00:00", at("14:05:00")), None);
    let status = Status::Interrupted { started: at("14:00:00") };
    let first = runtime.tick(reading("14:05:00", 0, 0));
    assert_eq!(first.decisions, [Decision::Settled { key: "14:00:00", status }]);
    assert_eq!(runtime.tick(reading("14:05:01", 1, 0)), Step { decisions: vec![], next: Next::Done });
}

#[test]
fn what_another_watcher_claimed_is_left_to_it() {
    let mut runtime = runtime("06:00:00", &["14:00:00"]);
    runtime.tick(reading("14:00:00", 0, 0));
    runtime.begin(&"14:00:00", at("14:00:00"));
    runtime.learn(&"14:00:00", Past::Elsewhere);
    assert_eq!(runtime.tick(reading("14:00:01", 1, 0)), Step { decisions: vec![], next: Next::Done });
    runtime.learn(&"14:00:00", Past::Settled(Status::Run { started: at("14:00:00") }));
    assert!(runtime.statuses().all(|(_, status)| status.is_some_and(Status::ran)));
}

#[test]
fn a_burst_that_could_not_be_claimed_is_due_again_while_its_time_lasts() {
    let mut runtime = runtime("06:00:00", &["14:00:00"]);
    runtime.tick(reading("14:00:00", 0, 0));
    runtime.begin(&"14:00:00", at("14:00:00"));
    runtime.give_back(&"14:00:00");
    let due = Decision::Due { key: "14:00:00", late_s: 600 };
    assert_eq!(runtime.tick(reading("14:10:00", 600, 0)).decisions, [due]);
    let over = runtime.tick(reading("14:10:01", 601, 0)).decisions;
    assert_eq!(over, [missed("14:00:00", MissedReason::Stalled)]);
}

#[test]
fn a_campaign_that_begins_within_the_tolerance_of_a_window_runs_it_late() {
    let mut runtime = runtime("14:05:00", &["13:00:00", "14:00:00"]);
    let decisions = runtime.tick(reading("14:05:00", 0, 0)).decisions;
    let before = Decision::Settled { key: "13:00:00", status: Status::BeforeStart };
    assert_eq!(decisions, [before, Decision::Due { key: "14:00:00", late_s: 300 }]);
}

#[test]
fn a_wait_is_made_of_short_naps_that_end_at_the_instant() {
    let mut runtime = runtime("06:00:00", &["14:00:00"]);
    let until = Some(at("14:00:00"));
    assert_eq!(runtime.tick(reading("06:00:00", 0, 0)).next, Next::Wait { nap: MAX_NAP, until });
    let nap = Duration::from_millis(250);
    assert_eq!(runtime.tick(reading("13:59:59.75", 1, 0)).next, Next::Wait { nap, until });
}
