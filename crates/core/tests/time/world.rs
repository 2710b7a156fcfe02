//! A small world for the runtime: a machine with three clocks that sleeps, steps its clock, dies and comes back, and a
//! store that remembers. It plays the part of `watch`, second by second, and never looks inside the runtime.

use std::collections::{BTreeMap, VecDeque};
use std::time::Duration;

use jiff::civil::Date;
use jiff::{SignedDuration, Timestamp};
use peaklane_core::window::LocalTime;
use peaklane_core::window::runtime::{Decision, Next, Past, Policy, Reading, Runtime, Slot, Status};

/// Name of a burst in the world.
pub(crate) type Key = (Date, LocalTime);

/// How long a burst takes here, seconds awake: longer than eight attempts with a floor of 25 s and a retry each.
const BURST_S: u64 = 180;

/// What happens to the machine or to the process.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Event {
    /// The process starts, for the first time or again.
    Start,
    /// The process dies and starts again at once.
    Restart,
    /// The process dies.
    Kill,
    /// The machine is suspended until then (wall clock).
    Sleep { until: Timestamp },
    /// The wall clock is stepped.
    ClockStep { by_s: i64 },
}

/// What the store of the world has on record for a burst.
#[derive(Clone, Copy, Debug)]
enum Record {
    Begun { started: Timestamp, ends_awake: Duration },
    Settled(Status),
}

pub(crate) struct World {
    policy: Policy,
    slots: Vec<Slot<Key>>,
    wall: Timestamp,
    awake: Duration,
    alive: Duration,
    /// The process naps until then on the clock that stands still in suspension, as tokio's timers do.
    nap_ends: Duration,
    campaign_start: Option<Timestamp>,
    process: Option<Runtime<Key>>,
    store: BTreeMap<Key, Record>,
}

impl World {
    pub(crate) fn new(policy: Policy, slots: Vec<Slot<Key>>) -> Self {
        Self {
            policy,
            slots,
            wall: Timestamp::UNIX_EPOCH,
            // the two clocks begin anywhere
            awake: Duration::from_secs(1_000),
            alive: Duration::from_secs(50_000),
            nap_ends: Duration::ZERO,
            campaign_start: None,
            process: None,
            store: BTreeMap::new(),
        }
    }

    /// Plays the events at their wall-clock times and goes on until hours after the last burst.
    pub(crate) fn play(mut self, events: Vec<(Timestamp, Event)>) -> Result<BTreeMap<Key, Status>, String> {
        let mut events = VecDeque::from(events);
        self.wall = events.front().ok_or("nothing happens")?.0;
        let last = self.slots.iter().map(|slot| slot.at).max().ok_or("no bursts")?;
        let end = last + SignedDuration::from_secs(i64::from(self.policy.late_tolerance_s) + 7_200);
        while self.wall < end || !events.is_empty() {
            while let Some((_, event)) = events.pop_front_if(|(at, _)| *at <= self.wall) {
                self.happen(event);
            }
            if self.awake >= self.nap_ends {
                self.nap_ends = self.awake + self.look()?;
            }
            let nap = self.nap_ends - self.awake;
            let to_event = events.front().and_then(|(at, _)| Duration::try_from(at.duration_since(self.wall)).ok());
            self.pass(to_event.map_or(nap, |left| left.min(nap)));
        }
        if self.process.is_none() {
            // nobody came back in time: the next one who looks says how it ended
            self.happen(Event::Restart);
            self.look()?;
        }
        let settled = self.store.into_iter().filter_map(|(key, record)| match record {
            Record::Settled(status) => Some((key, status)),
            Record::Begun { .. } => None,
        });
        Ok(settled.collect())
    }

    fn happen(&mut self, event: Event) {
        match event {
            Event::Start | Event::Restart => {
                let begun = *self.campaign_start.get_or_insert(self.wall);
                let past = self.store.iter().map(|(key, record)| match record {
                    Record::Begun { started, .. } => (*key, Past::Abandoned { started: *started }),
                    Record::Settled(status) => (*key, Past::Settled(*status)),
                });
                let mut runtime = Runtime::new(self.policy, begun, past);
                runtime.add(self.slots.iter().copied());
                self.process = Some(runtime);
                self.nap_ends = self.awake;
            }
            Event::Kill => self.process = None,
            Event::Sleep { until } => {
                let asleep = Duration::try_from(until.duration_since(self.wall)).expect("a sleep ends after it begins");
                self.alive += asleep;
                self.wall = until;
            }
            Event::ClockStep { by_s } => self.wall += SignedDuration::from_secs(by_s),
        }
    }

    /// What the process does when its nap is over. Returns the next nap.
    fn look(&mut self) -> Result<Duration, String> {
        let Some(runtime) = &mut self.process else { return Ok(Duration::from_secs(60)) };
        let step = runtime.tick(Reading { wall: self.wall, awake: self.awake, alive: Some(self.alive) });
        for decision in step.decisions {
            match decision {
                Decision::Due { key, .. } => {
                    let status =
                        runtime.begin(&key, self.wall).ok_or_else(|| format!("{key:?} is due and may not begin"))?;
                    let started = status.started().ok_or("a burst began at no time")?;
                    let ends_awake = self.awake + Duration::from_secs(BURST_S);
                    if let Some(before) = self.store.insert(key, Record::Begun { started, ends_awake }) {
                        return Err(format!("{key:?} began twice, at {started} and before: {before:?}"));
                    }
                }
                Decision::Settled { key, status } => {
                    if let Some(Record::Settled(before)) = self.store.insert(key, Record::Settled(status)) {
                        return Err(format!("{key:?} was settled as {before:?} and then as {status:?}"));
                    }
                }
            }
        }
        for (key, record) in &mut self.store {
            match record {
                Record::Begun { ends_awake, .. } if *ends_awake <= self.awake => {
                    if let Some(status) = runtime.finish(key) {
                        *record = Record::Settled(status);
                    }
                }
                _ => {}
            }
        }
        match step.next {
            Next::Wait { nap, .. } if nap.is_zero() => Ok(Duration::from_secs(1)),
            Next::Wait { nap, .. } => Ok(nap),
            Next::Done => Ok(Duration::from_secs(60)),
        }
    }

    fn pass(&mut self, time: Duration) {
        self.awake += time;
        self.alive += time;
        self.wall += SignedDuration::try_from(time).expect("naps are short");
    }
}
