//! Campaigns that go as planned, that change, that end.

use std::time::Duration;

use peaklane_core::watch::Note;
use peaklane_run::burst::Stop;
use peaklane_run::watch::Ended;

use crate::records::Answers;
use crate::world::{FakeClock, FakeGun, TOML, World};

/// Tuesday 08:00 in Berlin.
const MORNING: &str = "2026-12-01T07:00:00Z";
const SHORT: Duration = Duration::from_secs(20);

#[tokio::test(start_paused = true)]
async fn every_burst_of_a_campaign_runs_once_at_its_window_and_then_it_is_over() {
    let (world, gun, clock) = (World::new(), FakeGun::new(SHORT), FakeClock::at(MORNING, &[]));
    let watched = world.watch(TOML, &clock, &gun, ("one", false)).await;
    assert_eq!(watched.ended, Ended::Finished);
    assert_eq!(watched.events(), ["campaign_begun", "finished"]);
    gun.never_twice();
    let mut ran = gun.ran();
    ran.sort();
    assert_eq!(ran, ["a 2026-12-01 09:00", "a 2026-12-01 16:00", "b 2026-12-01 09:00", "b 2026-12-01 16:00"]);
    let fired = gun.fired.lock().unwrap().clone();
    let at: Vec<String> = fired.iter().map(|(order, _)| order.started.to_string()).collect();
    // the first lane of each window on time, the second when the first is done
    assert!(at[0].starts_with("2026-12-01T08:00:00") && at[2].starts_with("2026-12-01T15:00:00"), "{at:?}");
    assert!(at[1].starts_with("2026-12-01T08:00:2") && at[3].starts_with("2026-12-01T15:00:2"), "{at:?}");
    // the lanes of a window share their nonces, the windows do not
    assert_eq!((&fired[0].0.run, fired[0].0.run == fired[2].0.run), (&fired[1].0.run, false));
    let states: Vec<String> = world.slots().iter().map(|s| s.rsplit(' ').next().unwrap().to_owned()).collect();
    assert_eq!(states.iter().filter(|s| *s == "run").count(), 2);
    assert_eq!(states.iter().filter(|s| *s == "late").count(), 2);
}

#[tokio::test(start_paused = true)]
async fn a_restart_goes_on_with_the_campaign_of_its_first_day() {
    let (world, gun) = (World::new(), FakeGun::new(SHORT));
    let two_days = TOML.replace("days = 1", "days = 2");
    let (pull, stop) = Stop::pair();
    let clock = FakeClock::at(MORNING, &[]);
    let stopped = tokio::join!(world.watch_until(&two_days, &clock, &gun, ("one", false), stop), async {
        tokio::time::sleep(Duration::from_secs(2 * 3600)).await;
        pull.send_replace(true);
    });
    assert_eq!((stopped.0.ended, gun.ran().len()), (Ended::Stopped, 2));
    assert!(matches!(stopped.0.notes.last(), Some(Note::Next { next }) if next.len() == 2));
    // the next day: the afternoon of the first was missed, the second day runs
    let clock = FakeClock::at("2026-12-02T07:00:00Z", &[]);
    let watched = world.watch(&two_days, &clock, &gun, ("two", false)).await;
    assert_eq!(watched.events(), ["campaign_continued", "window_missed", "window_missed", "finished"]);
    assert_eq!(gun.ran().len(), 6);
    let missed: Vec<String> = world.slots().into_iter().filter(|s| s.contains("missed")).collect();
    assert_eq!(missed, ["a 2026-12-01 16:00 missed not_running", "b 2026-12-01 16:00 missed not_running"]);
    assert_eq!(world.ledger().campaigns().unwrap().len(), 1);
    gun.never_twice();
}

#[tokio::test(start_paused = true)]
async fn another_prompt_is_another_campaign_and_says_what_changed() {
    let (world, gun) = (World::new(), FakeGun::new(SHORT));
    world.watch(TOML, &FakeClock::at(MORNING, &[]), &gun, ("one", true)).await;
    let changed =
        TOML.replace("prompt = 'p'", "prompt = 'q'").replace("model = 'm'\n    [[task", "model = 'n'\n[[task");
    let watched = world.watch(&changed, &FakeClock::at(MORNING, &[]), &gun, ("one", true)).await;
    assert_eq!(watched.events(), ["campaign_replaced", "campaign_begun"]);
    assert!(matches!(&watched.notes[0], Note::CampaignReplaced { changed, .. } if *changed == ["tasks"]));
    let campaigns = world.ledger().campaigns().unwrap();
    assert_eq!(
        campaigns
            .iter()
            .map(|row| row.stopped.as_ref().map(|s| s.1.as_str()))
            .filter(|s| *s == Some("replaced"))
            .count(),
        1
    );
    assert!(world.ledger().events(0).unwrap().iter().any(|event| event.kind == "campaign_replaced"));
}

#[tokio::test(start_paused = true)]
async fn another_model_of_a_lane_is_another_campaign_even_on_the_same_day() {
    let (world, gun) = (World::new(), FakeGun::new(SHORT));
    world.watch(TOML, &FakeClock::at(MORNING, &[]), &gun, ("one", true)).await;
    let changed = TOML.replacen("model = 'm'", "model = 'n'", 1);
    let watched = world.watch(&changed, &FakeClock::at(MORNING, &[]), &gun, ("one", true)).await;
    assert!(matches!(&watched.notes[0], Note::CampaignReplaced { changed, .. } if *changed == ["lane a"]));
    let ids: Vec<String> = world.ledger().campaigns().unwrap().into_iter().map(|row| row.id).collect();
    assert!(ids.len() == 2 && ids.iter().any(|id| id.ends_with("-2026-12-01-2")), "{ids:?}");
}

#[tokio::test(start_paused = true)]
async fn a_lane_that_left_the_file_is_told_once_in_the_history_and_is_neither_pass_nor_miss() {
    let (world, gun) = (World::new(), FakeGun::new(SHORT));
    world.watch(TOML, &FakeClock::at(MORNING, &[]), &gun, ("one", true)).await;
    let b = TOML.find("[[lane]]\nname = 'b'").unwrap()..TOML.find("[[task]]").unwrap();
    let mut without = TOML.to_owned();
    without.replace_range(b, "");
    for _ in 0..2 {
        let watched = world.watch(&without, &FakeClock::at(MORNING, &[]), &gun, ("one", true)).await;
        assert_eq!(watched.events(), ["campaign_continued", "lane_gone"]);
    }
    let watched = world.watch(&without, &FakeClock::at(MORNING, &[]), &gun, ("one", false)).await;
    assert_eq!(watched.ended, Ended::Finished);
    assert_eq!(world.slots(), ["a 2026-12-01 09:00 run", "a 2026-12-01 16:00 run"]);
    let events = world.ledger().events(0).unwrap();
    assert_eq!(events.iter().filter(|event| event.kind == "lane_gone").count(), 1);
    // it comes back
    let watched = world.watch(TOML, &FakeClock::at("2026-12-01T16:00:00Z", &[]), &gun, ("one", true)).await;
    assert!(watched.events().contains(&"window_missed".to_owned()), "{:?}", watched.events());
}

#[tokio::test(start_paused = true)]
async fn a_lane_that_joins_has_its_own_begin() {
    let (world, gun) = (World::new(), FakeGun::new(SHORT));
    let b = TOML.find("[[lane]]\nname = 'b'").unwrap()..TOML.find("[[task]]").unwrap();
    let mut without = TOML.to_owned();
    without.replace_range(b, "");
    world.watch(&without, &FakeClock::at(MORNING, &[]), &gun, ("one", true)).await;
    world.watch(&without, &FakeClock::at("2026-12-01T08:00:00Z", &[]), &gun, ("one", true)).await;
    let watched = world.watch(TOML, &FakeClock::at("2026-12-01T12:00:00Z", &[]), &gun, ("one", false)).await;
    assert_eq!(watched.events(), ["lane_joined", "campaign_continued", "before_start", "finished"]);
    let slots = world.slots();
    assert_eq!(
        slots[..2],
        ["a 2026-12-01 09:00 run", "a 2026-12-01 16:00 run"].map(|s| if gun.ran()[1].starts_with('a') {
            s.to_owned()
        } else {
            s.replace("16:00 run", "16:00 late")
        })
    );
    assert_eq!(slots[2], "b 2026-12-01 09:00 before_start");
    assert!(slots[3].starts_with("b 2026-12-01 16:00 "), "{slots:?}");
}

#[tokio::test(start_paused = true)]
async fn after_the_campaign_the_peak_goes_on_each_working_day_also_after_a_restart() {
    let (world, gun) = (World::new(), FakeGun::new(SHORT));
    let text = TOML.replace("after = 'stop'", "peak = '16:00'");
    // Friday; the campaign is one day long
    let clock = FakeClock::at("2026-12-04T07:00:00Z", &[]);
    let (pull, stop) = Stop::pair();
    let watched = tokio::join!(world.watch_until(&text, &clock, &gun, ("one", false), stop), async {
        tokio::time::sleep(Duration::from_secs(4 * 86_400)).await;
        pull.send_replace(true);
    });
    assert_eq!(watched.0.events(), ["campaign_begun", "after_campaign", "interrupted"]);
    let of_a =
        |from: usize| -> Vec<String> { gun.ran()[from..].iter().filter(|r| r.starts_with('a')).cloned().collect() };
    assert_eq!(of_a(0), ["a 2026-12-04 09:00", "a 2026-12-04 16:00", "a 2026-12-07 16:00"]);
    let clock = FakeClock::at("2026-12-08T07:00:00Z", &[]);
    let (pull, stop) = Stop::pair();
    let before = gun.ran().len();
    tokio::join!(world.watch_until(&text, &clock, &gun, ("one", false), stop), async {
        tokio::time::sleep(Duration::from_secs(2 * 86_400)).await;
        pull.send_replace(true);
    });
    assert_eq!(of_a(before), ["a 2026-12-08 16:00", "a 2026-12-09 16:00"]);
    gun.never_twice();
}

#[tokio::test(start_paused = true)]
async fn due_runs_what_is_due_now_once_and_ends() {
    let (world, gun) = (World::new(), FakeGun::new(SHORT));
    let early = world.watch(TOML, &FakeClock::at(MORNING, &[]), &gun, ("one", true)).await;
    assert_eq!((early.ended, gun.ran().len()), (Ended::NothingDue, 0));
    let due = world.watch(TOML, &FakeClock::at("2026-12-01T08:00:30Z", &[]), &gun, ("two", true)).await;
    assert_eq!((due.ended, gun.ran().len()), (Ended::NothingDue, 2));
    let again = world.watch(TOML, &FakeClock::at("2026-12-01T08:01:30Z", &[]), &gun, ("three", true)).await;
    assert_eq!((again.ended, gun.ran().len()), (Ended::NothingDue, 2));
    // 30 s after its instant a burst under cron is on time
    assert_eq!(world.slots(), ["a 2026-12-01 09:00 run", "b 2026-12-01 09:00 run"]);
}

#[tokio::test(start_paused = true)]
async fn a_burst_whose_requests_no_longer_fit_the_budget_is_not_begun_and_the_campaign_ends() {
    let (world, gun) = (World::new(), FakeGun::new(SHORT));
    let text = TOML.replace("after = 'stop'", "after = 'stop'\nbudget_requests = 8");
    let watched = world.watch(&text, &FakeClock::at(MORNING, &[]), &gun, ("one", false)).await;
    assert!(
        matches!(watched.ended, Ended::Budget(Some(e)) if (e.cap, e.used, e.next) == (8, 0, 9)),
        "{:?}",
        watched.ended
    );
    assert_eq!(watched.events(), ["campaign_begun", "budget_stop"]);
    assert!(gun.ran().is_empty());
    let again = world.watch(&text, &FakeClock::at(MORNING, &[]), &gun, ("one", false)).await;
    assert_eq!((again.ended, again.events()), (Ended::Budget(None), vec!["campaign_stopped".to_owned()]));
}

/// A gun that records into the store of a world.
fn recording(world: &World, answers: fn(&str) -> Answers) -> FakeGun {
    FakeGun { recorded: Some((world.path(), answers)), ..FakeGun::new(SHORT) }
}

#[tokio::test(start_paused = true)]
async fn an_answer_that_names_another_model_is_an_event_in_the_history() {
    let world = World::new();
    let gun = recording(&world, |window| Answers {
        by: (if window == "09:00" { "m-2026-11" } else { "m-2026-12" }, "fp-1"),
        passed: 8,
    });
    let watched = world.watch(TOML, &FakeClock::at(MORNING, &[]), &gun, ("one", false)).await;
    assert_eq!(watched.events(), ["campaign_begun", "model_changed", "model_changed", "finished"]);
    let events = world.ledger().events(0).unwrap();
    let changed: Vec<_> = events.iter().filter(|event| event.kind == "model_changed").collect();
    assert_eq!(changed.len(), 2, "one for each lane, and no fingerprint changed: {events:?}");
    let detail: serde_json::Value = serde_json::from_str(&changed[0].detail).unwrap();
    assert_eq!((&detail["before"][0], &detail["after"][0]), (&"m-2026-11".into(), &"m-2026-12".into()));
    assert_eq!((changed[0].task.as_deref(), detail["window"].as_str()), (Some("t"), Some("16:00")));
}

#[tokio::test(start_paused = true)]
async fn without_a_declared_peak_the_worst_window_goes_on() {
    let world = World::new();
    let gun = recording(&world, |window| Answers { by: ("m", "fp"), passed: if window == "09:00" { 3 } else { 8 } });
    let text = TOML.replace("after = 'stop'", "after = 'peak'");
    let (pull, stop) = Stop::pair();
    let clock = FakeClock::at(MORNING, &[]);
    let watched = tokio::join!(world.watch_until(&text, &clock, &gun, ("one", false), stop), async {
        tokio::time::sleep(Duration::from_secs(86_400 + 7_200)).await;
        pull.send_replace(true);
    });
    let after = watched.0.notes.iter().find_map(|note| match note {
        Note::AfterCampaign { windows, .. } => Some(windows.clone()),
        _ => None,
    });
    assert_eq!(after, Some(vec!["09:00".to_owned()]));
    assert_eq!(gun.ran().len(), 6, "{:?}", gun.ran());
    assert!(gun.ran()[4].ends_with("2026-12-02 09:00"));
}

#[tokio::test(start_paused = true)]
async fn tokens_are_counted_as_reported_and_the_next_burst_is_taken_to_need_as_many() {
    let world = World::new();
    let gun = recording(&world, |_| Answers { by: ("m", "fp"), passed: 8 });
    // 8 x 15 tokens a burst: two bursts of a lane fit, and the first of the other lane
    let text = TOML.replace("after = 'stop'", "after = 'stop'\nbudget_tokens = 400");
    let watched = world.watch(&text, &FakeClock::at(MORNING, &[]), &gun, ("one", false)).await;
    assert!(
        matches!(watched.ended, Ended::Budget(Some(e)) if (e.what, e.cap, e.used, e.next) == ("tokens", 400, 360, 120)),
        "{:?}",
        watched.ended
    );
    assert_eq!(gun.ran().len(), 3);
    let ledger = world.ledger();
    let spent = ledger.spent(&ledger.campaigns().unwrap()[0].id).unwrap();
    assert_eq!(spent.len(), 3);
    assert!(
        spent.iter().all(|row| (row.requests, row.input_tokens, row.output_tokens, row.unreported) == (8, 80, 40, 0))
    );
}

#[tokio::test(start_paused = true)]
async fn each_site_has_a_campaign_of_its_own_in_its_own_zone() {
    let (world, gun) = (World::new(), FakeGun::new(SHORT));
    let sites = "[[site]]\nname = 'berlin'\ntime_zone = 'Europe/Berlin'\nlanes = ['a']\n\
                 [[site]]\nname = 'seoul'\ntime_zone = 'Asia/Seoul'\nlanes = ['b']\n";
    let text = format!("{}{sites}", TOML.replace("time_zone = 'Europe/Berlin'\n", ""));
    // 08:00 in Berlin is 16:00 in Seoul
    let watched = world.watch(&text, &FakeClock::at(MORNING, &[]), &gun, ("one", false)).await;
    assert_eq!(watched.events(), ["campaign_begun", "campaign_begun", "before_start", "finished", "finished"]);
    assert_eq!(gun.ran(), ["b 2026-12-01 16:00", "a 2026-12-01 09:00", "a 2026-12-01 16:00"]);
    let sites: Vec<_> = world.ledger().campaigns().unwrap().into_iter().map(|row| row.site.unwrap()).collect();
    assert_eq!(sites.len(), 2, "{sites:?}");
}
