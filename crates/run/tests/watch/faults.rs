//! Machines that sleep, clocks that step, processes that die, stores that cannot be written, watchers that meet.

use std::time::Duration;

use peaklane_core::watch::Note;
use peaklane_run::burst::Stop;
use peaklane_run::watch::Ended;

use crate::world::{FakeClock, FakeGun, Fate, TOML, World};

const MORNING: &str = "2026-12-01T07:00:00Z";
const HOUR: u64 = 3_600;

fn gun() -> FakeGun {
    FakeGun::new(Duration::from_secs(20))
}

#[tokio::test(start_paused = true)]
async fn a_window_that_the_machine_slept_through_is_missed_and_never_made_up() {
    let (world, gun) = (World::new(), gun());
    // asleep from 08:50 to 09:50
    let clock = FakeClock::at(MORNING, &[(3_000, Fate::Sleep(HOUR))]);
    let watched = world.watch(TOML, &clock, &gun, ("one", false)).await;
    assert_eq!(watched.events(), ["campaign_begun", "slept", "window_missed", "window_missed", "finished"]);
    assert_eq!(world.slots()[0], "a 2026-12-01 09:00 missed asleep");
    assert_eq!(gun.ran().len(), 2);
    assert!(world.ledger().events(0).unwrap().iter().any(|event| event.kind == "slept"));
}

#[tokio::test(start_paused = true)]
async fn a_machine_that_falls_asleep_in_the_middle_of_a_burst_interrupts_it() {
    let (world, gun) = (World::new(), gun());
    // ten seconds into the first burst of 09:00, for two minutes
    let clock = FakeClock::at(MORNING, &[(HOUR + 10, Fate::Sleep(120))]);
    let watched = world.watch(TOML, &clock, &gun, ("one", false)).await;
    let interrupted =
        watched.notes.iter().filter(|n| matches!(n, Note::BurstInterrupted { reason, .. } if reason == "asleep"));
    assert_eq!(interrupted.count(), 1);
    let slots = world.slots();
    assert_eq!(slots.iter().filter(|s| s.contains("09:00 interrupted")).count(), 1, "{slots:?}");
    assert_eq!(slots.iter().filter(|s| s.contains("09:00 late")).count(), 1, "{slots:?}");
    gun.never_twice();
}

#[tokio::test(start_paused = true)]
async fn a_clock_that_is_put_forward_over_a_window_misses_it_and_put_back_brings_no_second_chance() {
    let (world, gun) = (World::new(), gun());
    // at 08:30 forward by 3 h, over 09:00; at 12:30 by that clock back again
    let clock = FakeClock::at(MORNING, &[(1_800, Fate::Step(3 * 3_600)), (5_400, Fate::Step(-3 * 3_600))]);
    let watched = world.watch(TOML, &clock, &gun, ("one", false)).await;
    assert_eq!(
        watched.events(),
        ["campaign_begun", "clock_stepped", "window_missed", "window_missed", "clock_stepped", "finished"]
    );
    assert_eq!(world.slots()[0], "a 2026-12-01 09:00 missed clock");
    assert_eq!(gun.ran().len(), 2, "{:?}", gun.ran());
    gun.never_twice();
}

#[tokio::test(start_paused = true)]
async fn a_clock_that_is_put_back_over_a_window_that_ran_runs_it_no_second_time() {
    let (world, gun) = (World::new(), gun());
    let clock = FakeClock::at(MORNING, &[(HOUR + 600, Fate::Step(-2 * 3_600))]);
    let watched = world.watch(TOML, &clock, &gun, ("one", false)).await;
    assert_eq!(watched.ended, Ended::Finished);
    assert_eq!(gun.ran().len(), 4);
    gun.never_twice();
}

#[tokio::test(start_paused = true)]
async fn what_a_dead_watcher_left_behind_is_interrupted_after_its_lease_and_never_begun_again() {
    let (world, gun) = (World::new(), gun());
    let clock = FakeClock::at(MORNING, &[]);
    {
        let (_pull, stop) = Stop::pair();
        let first = world.watch_until(TOML, &clock, &gun, ("machine one", false), stop);
        // dropped in the middle of the first burst, as a power cut would
        let cut = tokio::time::timeout(Duration::from_secs(HOUR + 10), first).await;
        assert!(cut.is_err());
    }
    let second = world.watch(TOML, &clock, &gun, ("machine two", false)).await;
    assert_eq!(second.events(), ["campaign_continued", "another_watcher", "burst_interrupted", "finished"]);
    let slots = world.slots();
    assert_eq!(slots.iter().filter(|s| s.contains("09:00 interrupted")).count(), 1, "{slots:?}");
    // the other lane of the window was still in time
    assert_eq!(slots.iter().filter(|s| s.contains("09:00 late")).count(), 1, "{slots:?}");
    assert_eq!(gun.ran().len(), 3);
    gun.never_twice();
}

#[tokio::test(start_paused = true)]
async fn two_watchers_on_one_store_run_each_burst_once_and_one_at_a_time() {
    let (world, gun) = (World::new(), gun());
    let clock = FakeClock::at(MORNING, &[]);
    let (one, two) =
        tokio::join!(world.watch(TOML, &clock, &gun, ("one", false)), world.watch(TOML, &clock, &gun, ("two", false)));
    assert_eq!((one.ended, two.ended), (Ended::Finished, Ended::Finished));
    assert_eq!(gun.ran().len(), 4);
    gun.never_twice();
    let mut spans: Vec<_> = gun.fired.lock().unwrap().iter().map(|(order, _)| order.started).collect();
    spans.sort();
    assert!(spans.windows(2).all(|w| w[1].duration_since(w[0]).as_secs() >= 20), "{spans:?}");
    assert_eq!(world.ledger().campaigns().unwrap().len(), 1, "both found one campaign");
}

#[tokio::test(start_paused = true)]
async fn a_store_that_is_locked_for_a_while_is_told_once_and_nothing_is_sent_meanwhile() {
    let (world, gun) = (World::new(), gun());
    world.watch(TOML, &FakeClock::at(MORNING, &[]), &gun, ("one", true)).await;
    let lock = rusqlite::Connection::open(world.path()).unwrap();
    let clock = FakeClock::at("2026-12-01T07:59:50Z", &[]);
    let (pull, stop) = Stop::pair();
    let watching = world.watch_until(TOML, &clock, &gun, ("one", false), stop);
    let (watched, ()) = tokio::join!(watching, async {
        // locked while the watcher tries to claim, which waits for the lock in real time
        tokio::time::sleep(Duration::from_millis(9_500)).await;
        lock.execute_batch("BEGIN IMMEDIATE").unwrap();
        tokio::time::sleep(Duration::from_secs(1)).await;
        assert!(gun.fired.lock().unwrap().is_empty(), "sent without a claim");
        lock.execute_batch("ROLLBACK").unwrap();
        tokio::time::sleep(Duration::from_secs(120)).await;
        pull.send_replace(true);
    });
    let events = watched.events();
    assert_eq!(events.iter().filter(|e| *e == "store_away").count(), 1, "{events:?}");
    assert_eq!(events.iter().filter(|e| *e == "store_back").count(), 1, "{events:?}");
    assert_eq!(gun.ran().len(), 2);
}
