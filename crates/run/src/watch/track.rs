//! One campaign being watched: its plan, what became of each burst, and what goes on after its last day.

use std::collections::{BTreeMap, BTreeSet};

use jiff::Timestamp;
use jiff::civil::Date;
use jiff::tz::TimeZone;
use peaklane_core::campaign::Locked;
use peaklane_core::config::{AfterCampaign, TaskKind};
use peaklane_core::watch::{CampaignName, NextBurst, Place};
use peaklane_core::window::bursts::{PlannedBurst, bursts, bursts_after, slots};
use peaklane_core::window::runtime::{Past, Policy, Runtime, Slot};
use peaklane_core::window::{BurstsError, LocalTime};
use peaklane_store::{SlotKey, SlotRow};
use sha2::{Digest as _, Sha256};

use super::keep::status_of;
use crate::clock::compact_utc;
use crate::fleet;

/// Working days that are planned at a time after the campaign.
const AFTER_DAYS: u32 = 5;

/// What a gun needs to know to fire one planned burst.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Order {
    /// Campaign, date, window, number, lane and task class.
    pub key: SlotKey,
    /// Site of the campaign.
    pub site: Option<String>,
    /// Zone of date and window.
    pub zone: String,
    /// When it was due.
    pub due: Timestamp,
    /// When it was claimed.
    pub started: Timestamp,
    /// Seed of the campaign.
    pub seed: u64,
    /// Id of the run: the same for all lanes of this window, and so are their nonces.
    pub run: String,
    /// End of the id of the burst.
    pub mark: String,
}

impl Order {
    /// The id of the burst.
    pub fn burst(&self) -> String {
        format!("{}-{}-{}", compact_utc(self.started.as_microsecond()), self.key.lane, self.mark)
    }
}

/// A campaign being watched. Lanes that joined later are a track of their own, with a later begin.
#[derive(Debug)]
pub struct Track {
    /// Id and site.
    pub name: CampaignName,
    /// What was locked.
    pub locked: Locked,
    /// State machine of its bursts.
    pub runtime: Runtime<SlotKey>,
    /// Bursts in the hands of other processes.
    pub elsewhere: BTreeSet<SlotKey>,
    /// First and last local date of the campaign itself.
    pub dates: (Date, Date),
    /// It goes on with bursts at these windows, by lane and task class; `None` before its days are over.
    pub after: Option<BTreeMap<(String, String), LocalTime>>,
    /// It was said that it is over.
    pub finished: bool,
    zone: TimeZone,
    hash: String,
    lanes: Vec<String>,
    due: BTreeMap<SlotKey, Timestamp>,
    /// Last local date that is planned.
    planned_to: Date,
}

impl Track {
    /// A track with the plan of the campaign.
    ///
    /// * `lanes`: those to run, of the campaign's own or joined ones.
    /// * `begun`: when the campaign was begun for the first time, or when the lanes joined.
    /// * `past`: what the store says about its bursts.
    ///
    /// # Errors
    /// [`BurstsError`] for a plan that cannot be made.
    pub fn new(
        name: CampaignName,
        locked: Locked,
        zone: TimeZone,
        lanes: Vec<String>,
        (begun, policy): (Timestamp, Policy),
        past: &[SlotRow],
    ) -> Result<Self, BurstsError> {
        let hash = locked.plan_hash();
        let start = locked.campaign.start_date.map_or(Date::MIN, |day| day.date());
        let planned = bursts(&locked.campaign, &hash, start, &zone)?;
        let dates = (planned.first().map_or(start, |b| b.date), planned.last().map_or(start, |b| b.date));
        let mut elsewhere = BTreeSet::new();
        let past: Vec<(SlotKey, Past)> = past
            .iter()
            .map(|row| match status_of(row) {
                Some(status) => (row.key.clone(), Past::Settled(status)),
                None => {
                    elsewhere.insert(row.key.clone());
                    (row.key.clone(), Past::Elsewhere)
                }
            })
            .collect();
        let mut track = Self {
            name,
            runtime: Runtime::new(policy, begun, past),
            elsewhere,
            dates,
            after: None,
            finished: false,
            zone,
            hash,
            lanes,
            due: BTreeMap::new(),
            planned_to: dates.1,
            locked,
        };
        track.plan(&planned, |_, _| true);
        track.elsewhere.retain(|key| track.due.contains_key(key));
        Ok(track)
    }

    /// Plans further days at the peak windows, if the campaign asks for it; false when there is nothing to plan.
    ///
    /// * `worst`: the worst window observed, by lane and task class, where none was declared.
    ///
    /// # Errors
    /// [`BurstsError`] beyond the end of the calendar.
    pub fn extend(&mut self, worst: &BTreeMap<(String, String), String>) -> Result<bool, BurstsError> {
        if self.locked.campaign.after != AfterCampaign::Peak {
            return Ok(false);
        }
        let windows = self.after.clone().unwrap_or_else(|| self.peaks(worst));
        let mut distinct: Vec<LocalTime> = windows.values().copied().collect();
        distinct.sort();
        distinct.dedup();
        let last = self.planned_to;
        for window in distinct {
            let planned = bursts_after(&self.locked.campaign, &self.hash, last, AFTER_DAYS, window, &self.zone)?;
            self.planned_to = planned.last().map_or(self.planned_to, |b| b.date).max(self.planned_to);
            self.plan(&planned, |lane, task| windows.get(&(lane.to_owned(), task.to_owned())) == Some(&window));
        }
        self.after = Some(windows);
        Ok(true)
    }

    /// The peak of each lane and task class: declared, else its worst window observed, else the earliest window.
    fn peaks(&self, worst: &BTreeMap<(String, String), String>) -> BTreeMap<(String, String), LocalTime> {
        let declared = self.locked.campaign.declared_peak().map(|peak| LocalTime::from(peak.time()));
        let spans = self.locked.campaign.windows_in_order();
        let first = spans.first().map(|span| LocalTime::from(span.start.time()));
        let pairs = self
            .lanes
            .iter()
            .flat_map(|lane| self.locked.tasks.iter().map(move |task| (lane.clone(), task.name.clone())));
        pairs
            .filter_map(|pair| {
                let observed = || worst.get(&pair).and_then(|window| window.parse().ok());
                let window = declared.or_else(observed).or(first)?;
                Some((pair, window))
            })
            .collect()
    }

    fn plan(&mut self, planned: &[PlannedBurst], wanted: impl Fn(&str, &str) -> bool) {
        let order = self.locked.burst.order;
        let mut new = Vec::new();
        for slot in slots(planned, &self.lanes, &self.locked.tasks, order) {
            let Some(at) = slot.at.filter(|_| wanted(slot.lane, slot.task)) else { continue };
            let key = SlotKey {
                campaign: self.name.campaign.clone(),
                date: slot.burst.date.to_string(),
                window: slot.burst.window.to_string(),
                nth: slot.burst.nth,
                lane: slot.lane.to_owned(),
                task: slot.task.to_owned(),
            };
            self.due.insert(key.clone(), at);
            new.push(Slot { key, at });
        }
        self.runtime.add(new);
    }

    /// When a burst is due.
    pub fn due(&self, key: &SlotKey) -> Option<Timestamp> {
        self.due.get(key).copied()
    }

    /// Bursts that are planned.
    pub fn planned(&self) -> u64 {
        self.due.len() as u64
    }

    /// The lanes that are run.
    pub fn lanes(&self) -> &[String] {
        &self.lanes
    }

    /// A burst as notes name it.
    pub fn place(&self, key: &SlotKey) -> Place {
        let SlotKey { campaign, date, window, nth, lane, task } = key.clone();
        Place { campaign, site: self.name.site.clone(), date, window, nth, lane, task }
    }

    /// The order to fire a burst that was claimed at `started`.
    pub fn order(&self, key: &SlotKey, started: Timestamp) -> Option<Order> {
        let due = self.due(key)?;
        let mark = mark(key);
        Some(Order {
            key: key.clone(),
            site: self.name.site.clone(),
            zone: self.locked.time_zone.clone(),
            due,
            started,
            seed: self.locked.burst.seed.unwrap_or_default(),
            run: format!("{}-{mark}", compact_utc(due.as_microsecond())),
            mark,
        })
    }

    /// Where a burst that is due stands in the order of turns: by instant, latency classes first (they are short), then by
    /// task class and by the order in which lanes are drawn for its window.
    pub fn turn(&self, key: &SlotKey) -> (Timestamp, bool, u32, String, usize) {
        let due = self.due(key).unwrap_or(Timestamp::MAX);
        let batch = self.locked.tasks.iter().any(|t| t.name == key.task && t.judged_by() == TaskKind::Batch);
        let seed = self.locked.burst.seed.unwrap_or_default();
        let drawn = fleet::order(self.lanes.len(), seed, &mark(key));
        let lane = self.lanes.iter().position(|lane| *lane == key.lane).unwrap_or(usize::MAX);
        let turn = drawn.iter().position(|at| *at == lane).unwrap_or(usize::MAX);
        (due, batch, key.nth, key.task.clone(), turn)
    }

    /// The next burst of each lane.
    pub fn next(&self, now: Timestamp) -> Vec<NextBurst> {
        let mut seen = BTreeSet::new();
        let first = self.runtime.pending().filter(|slot| seen.insert(slot.key.lane.clone()));
        let next = first.map(|slot| {
            let local = self.zone.to_datetime(slot.at);
            NextBurst {
                site: self.name.site.clone(),
                lane: slot.key.lane.clone(),
                local: local.strftime("%Y-%m-%d %H:%M").to_string(),
                due_unix_us: slot.at.as_microsecond(),
                in_s: u64::try_from(slot.at.duration_since(now).as_secs()).unwrap_or(0),
            }
        });
        next.collect()
    }
}

/// Eight digits that all lanes of one window and task class share and no other window has.
fn mark(key: &SlotKey) -> String {
    let SlotKey { campaign, date, window, nth, task, .. } = key;
    let text = format!("{campaign}\0{date}\0{window}\0{nth}\0{task}");
    Sha256::digest(text).iter().take(4).map(|byte| format!("{byte:02x}")).collect()
}
