//! A machine whose clocks do as they are told, in paused time, and a gun that records when it fired.

use std::collections::BTreeMap;
use std::future::Future;
use std::path::PathBuf;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use jiff::tz::TimeZoneDatabase;
use jiff::{SignedDuration, Timestamp};
use peaklane_core::budget::{Caps, Used};
use peaklane_core::burst::BurstState;
use peaklane_core::campaign::Locked;
use peaklane_core::config::{Config, LaneOrder, parse_checked};
use peaklane_core::watch::{Note, Shortly};
use peaklane_core::window::runtime::Reading;
use peaklane_run::burst::Stop;
use peaklane_run::watch::{Candidate, Ended, Gun, Keeper, Misfire, Order, Plan, Site, WallClock, watch};
use peaklane_store::{Ledger, SlotRow, SpentRow};
use tempfile::TempDir;
use tokio::time::Instant;

use crate::records::{Answers, record};

/// What befalls the machine after so long by the clock that never steps.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Fate {
    /// The wall clock is stepped by so many seconds.
    Step(i64),
    /// The machine is suspended for so many seconds.
    Sleep(u64),
}

/// Clocks of a machine. Waiting is paused time; fates fall due as it passes.
#[derive(Clone)]
pub(crate) struct FakeClock(Arc<Mutex<State>>);

struct State {
    begun: Instant,
    wall: Timestamp,
    stepped: SignedDuration,
    slept: Duration,
    /// Awake seconds after which they fall due, ascending.
    fates: Vec<(u64, Fate)>,
}

impl FakeClock {
    pub(crate) fn at(wall: &str, fates: &[(u64, Fate)]) -> Self {
        Self(Arc::new(Mutex::new(State {
            begun: Instant::now(),
            wall: wall.parse().unwrap(),
            stepped: SignedDuration::ZERO,
            slept: Duration::ZERO,
            fates: fates.to_vec(),
        })))
    }

    pub(crate) fn wall(&self) -> Timestamp {
        self.read().wall
    }
}

impl WallClock for FakeClock {
    fn read(&self) -> Reading {
        let mut state = self.0.lock().unwrap();
        let awake = state.begun.elapsed();
        while let Some((_, fate)) = state.fates.first().copied().filter(|(at, _)| awake.as_secs() >= *at) {
            match fate {
                Fate::Step(by_s) => state.stepped += SignedDuration::from_secs(by_s),
                Fate::Sleep(for_s) => state.slept += Duration::from_secs(for_s),
            }
            state.fates.remove(0);
        }
        let alive = awake + state.slept;
        let wall = state.wall + SignedDuration::try_from(alive).unwrap() + state.stepped;
        Reading { wall, awake, alive: Some(alive) }
    }

    fn nap(&self, length: Duration) -> impl Future<Output = ()> + Send {
        tokio::time::sleep(length)
    }
}

/// How the bursts at a window (`09:00`) go.
type OfWindow = fn(&str) -> Answers;

/// A gun whose bursts take a while and always pass; it keeps what it fired.
#[derive(Clone)]
pub(crate) struct FakeGun {
    pub(crate) takes: Duration,
    pub(crate) fired: Arc<Mutex<Vec<(Order, BurstState)>>>,
    /// Requests of a burst.
    pub(crate) requests: u64,
    /// The store into which bursts are recorded, and how those at a window (`09:00`) went. Without it none are.
    pub(crate) recorded: Option<(PathBuf, OfWindow)>,
}

impl FakeGun {
    pub(crate) fn new(takes: Duration) -> Self {
        Self { takes, fired: Arc::default(), requests: 9, recorded: None }
    }

    /// `lane date window` of each burst that ran to its end.
    pub(crate) fn ran(&self) -> Vec<String> {
        let fired = self.fired.lock().unwrap();
        let whole = fired.iter().filter(|(_, state)| *state == BurstState::Complete);
        whole.map(|(o, _)| format!("{} {} {}", o.key.lane, o.key.date, o.key.window)).collect()
    }

    /// No slot was fired twice, whole or not.
    #[track_caller]
    pub(crate) fn never_twice(&self) {
        let mut times: BTreeMap<_, u32> = BTreeMap::new();
        for (order, _) in self.fired.lock().unwrap().iter() {
            *times.entry(order.key.clone()).or_default() += 1;
        }
        assert!(times.values().all(|n| *n == 1), "{times:?}");
    }
}

impl Gun for FakeGun {
    async fn fire(&self, order: &Order, mut stop: Stop) -> Result<Shortly, Misfire> {
        let at = {
            let mut fired = self.fired.lock().unwrap();
            // What is cut off by the end of the test's process stays so.
            fired.push((order.clone(), BurstState::Running));
            fired.len() - 1
        };
        let state = tokio::select! {
            () = tokio::time::sleep(self.takes) => BurstState::Complete,
            () = stop.pulled() => BurstState::Interrupted,
        };
        if let (BurstState::Complete, Some((path, answers))) = (state, self.recorded.clone()) {
            let order = order.clone();
            let recorded = tokio::task::spawn_blocking(move || record(&path, &order, answers(&order.key.window)));
            recorded.await.unwrap();
        }
        self.fired.lock().unwrap()[at].1 = state;
        Ok(Shortly {
            burst: order.burst(),
            state,
            passed: 8,
            n: 8,
            retried: 0,
            p90_us: Some(1_000_000),
            p90_exceeds: false,
            miss: None,
            finding: None,
        })
    }

    fn need(&self, _: &str, _: &str, _: Timestamp) -> Used {
        Used { requests: self.requests, tokens: 0, micro_usd: 0 }
    }

    fn price(&self, _: &SpentRow) -> Option<u64> {
        None
    }
}

/// A store in a folder, and configurations that are watched with it.
pub(crate) struct World {
    folder: TempDir,
}

/// How a watcher ended, and what it told.
pub(crate) struct Watched {
    pub(crate) ended: Ended,
    pub(crate) notes: Vec<Note>,
}

impl Watched {
    /// The stable words of the notes, but for those of every day.
    pub(crate) fn events(&self) -> Vec<String> {
        let value = |note: &Note| serde_json::to_value(note).unwrap()["event"].as_str().unwrap().to_owned();
        let daily = ["burst_begun", "burst_ended", "next"];
        self.notes.iter().map(value).filter(|event| !daily.contains(&event.as_str())).collect()
    }
}

/// Two lanes, Berlin, one day with two windows, nothing after it.
pub(crate) const TOML: &str = "time_zone = 'Europe/Berlin'\n\
    [campaign]\ndays = 1\nwindows = ['09:00', '16:00']\nafter = 'stop'\n\
    [[lane]]\nname = 'a'\nkind = 'free-hosted'\nbase_url = 'https://a.example/v1'\nmodel = 'm'\n\
    [[lane]]\nname = 'b'\nkind = 'free-hosted'\nbase_url = 'https://b.example/v1'\nmodel = 'm'\n\
    [[task]]\nname = 't'\nprompt = 'p'\n";

impl World {
    pub(crate) fn new() -> Self {
        Self { folder: tempfile::tempdir().unwrap() }
    }

    pub(crate) fn path(&self) -> PathBuf {
        self.folder.path().join("s.db")
    }

    pub(crate) fn ledger(&self) -> Ledger {
        Ledger::open(&self.path()).unwrap()
    }

    /// Watches a configuration under the name of a process of its own; `due` as with `--due`.
    pub(crate) async fn watch(
        &self,
        text: &str,
        clock: &FakeClock,
        gun: &FakeGun,
        (name, due): (&str, bool),
    ) -> Watched {
        let (_pull, stop) = Stop::pair();
        self.watch_until(text, clock, gun, (name, due), stop).await
    }

    pub(crate) async fn watch_until(
        &self,
        text: &str,
        clock: &FakeClock,
        gun: &FakeGun,
        (name, due): (&str, bool),
        stop: Stop,
    ) -> Watched {
        let keeper = Keeper::named(self.path(), name);
        let mut notes = Vec::new();
        let plan = plan(&parse_checked(text).unwrap(), clock, due);
        let ended = watch(&plan, clock, gun, &keeper, stop, |note: &Note| notes.push(note.clone())).await.unwrap();
        Watched { ended, notes }
    }

    /// `lane date window state reason` of every slot of every campaign.
    pub(crate) fn slots(&self) -> Vec<String> {
        let ledger = self.ledger();
        let rows = ledger.campaigns().unwrap().into_iter().flat_map(|row| ledger.slots(&row.id).unwrap());
        let mut shown: Vec<String> = rows.map(|row| slot(&row)).collect();
        shown.sort();
        shown
    }
}

fn slot(row: &SlotRow) -> String {
    let reason = row.state.reason.as_ref().map(|reason| format!(" {reason}")).unwrap_or_default();
    format!("{} {} {} {}{reason}", row.key.lane, row.key.date, row.key.window, row.state.state)
}

fn plan(config: &Config, clock: &FakeClock, due: bool) -> Plan {
    let sites = config.sites().into_iter().map(|site| {
        let zone = TimeZoneDatabase::bundled().get(&site.time_zone).unwrap();
        let today = zone.to_datetime(clock.wall()).date().to_string().parse().unwrap();
        let mut locked = Locked::new(config, &site, site.campaign.start_date.unwrap_or(today));
        locked.burst.seed = Some(7);
        let day_is_given = site.campaign.start_date.is_some();
        Site { candidate: Candidate { locked, day_is_given, fresh: false, version: "0".into() }, zone }
    });
    let caps = config.campaign.as_ref().map(Caps::from).unwrap_or_default();
    Plan { sites: sites.collect(), due, order: LaneOrder::Random, caps }
}
