//! Laws of plans (against a minute-by-minute reading of the zone, which knows nothing of gaps and folds) and of the
//! runtime (against random clocks, restarts and refusals). proptest prints the seed of a failure.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use jiff::civil::{Date, Time};
use jiff::tz::{TimeZone, TimeZoneDatabase};
use jiff::{SignedDuration, Timestamp};
use peaklane_core::window::runtime::{Decision, Past, Policy, Reading, Runtime, Slot, Status};
use peaklane_core::window::{Calendar, Flag, LocalTime, plan};
use proptest::prelude::*;
use proptest::sample::Index;

/// Any zone, and a date within a few days of one of its clock changes (or anywhere, in a zone without any).
fn zone_and_date() -> impl Strategy<Value = (String, TimeZone, Date)> {
    let names: Vec<String> = TimeZoneDatabase::bundled().available().map(|name| name.to_string()).collect();
    // from 1973 on all offsets are whole minutes; after 2037 a rule takes the place of the table
    let begin = "1973-01-01T00:00:00Z".parse::<Timestamp>().unwrap().as_second();
    let end = "2060-01-01T00:00:00Z".parse::<Timestamp>().unwrap().as_second();
    (any::<Index>(), begin..end, -3_i64..=0).prop_map(move |(index, second, days)| {
        let name = index.get(&names).clone();
        let zone = TimeZoneDatabase::bundled().get(&name).unwrap();
        let from = Timestamp::from_second(second).unwrap();
        let change = zone.following(from).next().map_or(from, |change| change.timestamp());
        let date = zone.to_datetime(change).date();
        let date = date.checked_add(SignedDuration::from_hours(24 * days)).unwrap();
        (name, zone, date)
    })
}

fn windows() -> impl Strategy<Value = Vec<LocalTime>> {
    // most clocks change in the small hours
    let minute = prop_oneof![0_u16..240, 0_u16..1_440];
    proptest::collection::btree_set(minute, 1..6).prop_map(|minutes| {
        let time = |m: u16| LocalTime::new((m / 60) as u8, (m % 60) as u8).unwrap();
        minutes.into_iter().map(time).collect()
    })
}

fn calendar(windows: &[LocalTime], start_date: Date, days: u32) -> Calendar {
    Calendar {
        windows: windows.to_vec(),
        start_date,
        days,
        workdays_only: false,
        weekend: vec![6, 7],
        holidays: BTreeSet::new(),
    }
}

/// Minutes from a day and a bit before a date to a day and a bit after it, with the local time at each.
fn minutes_around(zone: &TimeZone, date: Date) -> Vec<(Timestamp, jiff::civil::DateTime)> {
    let noon = TimeZone::UTC.to_timestamp(date.to_datetime(Time::constant(12, 0, 0, 0))).unwrap();
    (-39 * 60..39 * 60)
        .map(|minute| {
            let instant = noon + SignedDuration::from_mins(minute);
            (instant, zone.to_datetime(instant))
        })
        .collect()
}

proptest! {
    #[test]
    fn a_burst_is_planned_at_the_first_minute_that_reads_its_local_time_or_comes_after_it(
        (name, zone, date) in zone_and_date(), windows in windows(), days in 1_u32..=4,
    ) {
        let planned = plan(&calendar(&windows, date, days), &zone).unwrap();
        prop_assert_eq!(planned.len(), windows.len() * days as usize);
        let mut around = BTreeMap::new();
        for entry in &planned {
            let minutes = around.entry(entry.date).or_insert_with(|| minutes_around(&zone, entry.date));
            let wanted = entry.date.to_datetime(entry.window.time());
            let exact = minutes.iter().find(|(_, local)| *local == wanted).map(|(instant, _)| *instant);
            let after = minutes.windows(2).find(|w| w[0].1 < wanted && w[1].1 > wanted).map(|w| w[1].0);
            let date_exists = minutes.iter().any(|(_, local)| local.date() == entry.date);
            let told = format!("{name} {wanted} {entry:?}");
            match (entry.flag, entry.utc) {
                (None | Some(Flag::Fold), utc) => {
                    prop_assert_eq!(utc, exact, "{}", told);
                    let times = minutes.iter().filter(|(_, local)| *local == wanted).count();
                    prop_assert_eq!(times, if entry.flag.is_some() { 2 } else { 1 }, "{}", told);
                }
                (Some(Flag::Gap), utc) => {
                    prop_assert_eq!(exact, None, "{}", told);
                    prop_assert_eq!(utc, after, "{}", told);
                    prop_assert!(date_exists, "{}", told);
                }
                (Some(Flag::Merged), utc) => {
                    prop_assert_eq!((utc, exact), (None, None), "{}", told);
                    let other = planned.iter().find(|p| p.utc == after);
                    prop_assert!(other.is_some_and(|p| (p.date, p.window) > (entry.date, entry.window)), "{}", told);
                }
                (Some(Flag::NoSuchDate), utc) => {
                    prop_assert_eq!(utc, None, "{}", told);
                    prop_assert!(!date_exists, "{}", told);
                }
            }
            if let Some(utc) = entry.utc {
                prop_assert_eq!(entry.offset, Some(zone.to_offset(utc)), "{}", told);
            }
        }
    }

    #[test]
    fn no_instant_has_two_bursts_and_the_order_of_windows_changes_no_instant(
        (name, zone, date) in zone_and_date(), windows in windows(), days in 1_u32..=4,
    ) {
        let planned = plan(&calendar(&windows, date, days), &zone).unwrap();
        let instants: Vec<Timestamp> = planned.iter().filter_map(|p| p.utc).collect();
        let unique: BTreeSet<Timestamp> = instants.iter().copied().collect();
        prop_assert_eq!(instants.len(), unique.len(), "{}", name);
        let reversed: Vec<LocalTime> = windows.iter().rev().copied().collect();
        let mut again = plan(&calendar(&reversed, date, days), &zone).unwrap();
        again.sort_by_key(|p| (p.date, p.window));
        prop_assert_eq!(planned, again, "{}", name);
    }

    #[test]
    fn a_plan_has_as_many_days_as_asked_for_and_none_of_them_off(
        (_, zone, date) in zone_and_date(), days in 1_u32..=20, weekend in proptest::collection::vec(1_u8..=7, 0..4),
        off in proptest::collection::btree_set(0_i64..30, 0..8),
    ) {
        let day = |n: i64| date.checked_add(SignedDuration::from_hours(24 * n)).unwrap();
        let windows = ["16:00".parse().unwrap()];
        let holidays: BTreeSet<Date> = off.into_iter().map(day).collect();
        let calendar = Calendar { workdays_only: true, weekend, holidays, ..calendar(&windows, date, days) };
        let planned = plan(&calendar, &zone).unwrap();
        prop_assert_eq!(planned.len(), days as usize);
        let last = planned.last().unwrap().date;
        let planned: BTreeSet<Date> = planned.iter().map(|p| p.date).collect();
        prop_assert_eq!(planned.len(), days as usize);
        // and no workday between was left out
        for date in (0..).map(day).take_while(|date| *date <= last) {
            let iso = date.weekday().to_monday_one_offset() as u8;
            let off = calendar.weekend.contains(&iso) || calendar.holidays.contains(&date);
            prop_assert_eq!(planned.contains(&date), !off, "{}", date);
        }
    }
}

/// What may happen to a runtime, in any order.
#[derive(Clone, Debug)]
enum Turn {
    /// A reading at any wall-clock second of the day, with any time on the other clocks.
    Tick { second: i64, awake_s: u64, slept_s: u64 },
    /// Begin a burst, due or not.
    Begin { slot: usize, second: i64 },
    /// The burst ends.
    Finish { slot: usize },
    /// The claim fails, and nothing was sent.
    GiveBack { slot: usize },
    /// The process dies and another takes over from the store.
    Restart,
}

/// Instants lie a quarter of an hour apart; the tolerance is 600 s.
const SLOTS: usize = 4;

fn turn() -> impl Strategy<Value = Turn> {
    let second = || 0_i64..(SLOTS as i64 + 1) * 900;
    prop_oneof![
        6 => (second(), 0_u64..900, prop_oneof![Just(0_u64), 0_u64..900])
            .prop_map(|(second, awake_s, slept_s)| Turn::Tick { second, awake_s, slept_s }),
        4 => (0..SLOTS, second()).prop_map(|(slot, second)| Turn::Begin { slot, second }),
        2 => (0..SLOTS).prop_map(|slot| Turn::Finish { slot }),
        1 => (0..SLOTS).prop_map(|slot| Turn::GiveBack { slot }),
        1 => Just(Turn::Restart),
    ]
}

proptest! {
    #[test]
    fn whatever_the_clocks_do_a_burst_runs_at_most_once_and_only_in_its_time(
        turns in proptest::collection::vec(turn(), 1..60), boot_clock in any::<bool>(), start in 0_i64..1_800,
    ) {
        let zero: Timestamp = "2026-06-01T14:00:00Z".parse().unwrap();
        let wall = |second: i64| zero + SignedDuration::from_secs(second);
        let slots = || (0..SLOTS).map(|key| Slot { key, at: wall(450 + 900 * key as i64) });
        let policy = Policy::default();
        let fresh = |store: &BTreeMap<usize, Past>| {
            let mut runtime = Runtime::new(policy, wall(start), store.iter().map(|(key, past)| (*key, *past)));
            runtime.add(slots());
            // the same plan again changes nothing
            runtime.add(slots());
            runtime
        };
        let mut store: BTreeMap<usize, Past> = BTreeMap::new();
        let mut runtime = fresh(&store);
        let (mut awake, mut alive) = (Duration::ZERO, Duration::ZERO);
        for turn in turns {
            match turn {
                Turn::Tick { second, awake_s, slept_s } => {
                    awake += Duration::from_secs(awake_s);
                    alive += Duration::from_secs(awake_s + slept_s);
                    let reading = Reading { wall: wall(second), awake, alive: boot_clock.then_some(alive) };
                    let step = runtime.tick(reading);
                    for decision in &step.decisions {
                        match decision {
                            Decision::Due { key, late_s } => {
                                prop_assert!(!store.contains_key(key), "{} is due again", key);
                                prop_assert_eq!(i64::from(*late_s), second - (450 + 900 * *key as i64));
                                prop_assert!(*late_s <= policy.late_tolerance_s);
                            }
                            Decision::Settled { key, status } => {
                                prop_assert!(!status.ran());
                                let before = store.insert(*key, Past::Settled(*status));
                                prop_assert!(!matches!(before, Some(Past::Settled(_))), "{} was settled before", key);
                                let begun = matches!(before, Some(Past::Abandoned { .. }));
                                prop_assert_eq!(begun, matches!(status, Status::Interrupted { .. }));
                            }
                        }
                    }
                    // the same reading again brings nothing new
                    let again = runtime.tick(reading).decisions;
                    let repeats = |d| matches!(d, &Decision::Due { .. }) && step.decisions.contains(d);
                    prop_assert!(again.iter().all(repeats), "{:?}", again);
                }
                Turn::Begin { slot, second } => {
                    if let Some(status) = runtime.begin(&slot, wall(second)) {
                        let late = second - (450 + 900 * slot as i64);
                        prop_assert!((0..=600).contains(&late), "began {} s after its instant", late);
                        prop_assert_eq!(status.started(), Some(wall(second)));
                        prop_assert_eq!(status.late_s().is_some(), late > 1);
                        let before = store.insert(slot, Past::Abandoned { started: wall(second) });
                        prop_assert_eq!(before, None, "{} began twice", slot);
                    }
                }
                Turn::Finish { slot } => {
                    if let Some(status) = runtime.finish(&slot) {
                        let before = store.insert(slot, Past::Settled(status));
                        prop_assert!(matches!(before, Some(Past::Abandoned { .. })), "{} ended, not begun", slot);
                    }
                }
                Turn::GiveBack { slot } => {
                    if let Some(Past::Abandoned { .. }) = store.get(&slot) {
                        // only what runs can be given back: a burst that an earlier process left is settled already
                        let running = runtime.statuses().any(|(s, status)| s.key == slot && status.is_none());
                        runtime.give_back(&slot);
                        if running {
                            store.remove(&slot);
                        }
                    }
                }
                Turn::Restart => runtime = fresh(&store),
            }
        }
    }
}
