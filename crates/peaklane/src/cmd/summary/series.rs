//! Which campaigns are summed up, and what is known of their windows beside the bursts.

use std::collections::{BTreeMap, HashMap};
use std::path::Path;

use peaklane_core::campaign::Locked;
use peaklane_core::choice::price_of_1000;
use peaklane_core::config::Price;
use peaklane_core::summary::LaneSummary;
use peaklane_report::extra::{Missed, WindowExtra};
use peaklane_store::{Ledger, SlotRow, StoreError};

use super::gather::{Burst, Gathered};
use crate::load::time_zone;

/// The campaign that was asked for by `--campaign`.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) enum Series {
    /// The newest of each site, and bursts of no campaign.
    #[default]
    Newest,
    /// All of them, each apart.
    All,
    /// The one whose id begins so.
    One(String),
}

impl Series {
    pub(super) fn of(word: Option<&str>) -> Self {
        match word {
            None => Self::Newest,
            Some("all") => Self::All,
            Some(id) => Self::One(id.to_owned()),
        }
    }

    /// Takes out the bursts of other campaigns, and says how many there were of each.
    pub(super) fn narrow(&self, gathered: &mut Gathered) -> Vec<(String, usize)> {
        let newest = newest_of_sites(&gathered.bursts);
        let wanted = |burst: &Burst| match (self, burst.header().campaign.as_ref()) {
            (Self::All, _) | (Self::Newest, None) => true,
            (Self::Newest, Some(id)) => newest.values().any(|(_, newest)| newest == id),
            (Self::One(start), Some(id)) => id.starts_with(start.as_str()),
            (Self::One(_), None) => false,
        };
        let mut left: BTreeMap<String, usize> = BTreeMap::new();
        gathered.bursts.retain(|burst| {
            let keep = wanted(burst);
            if let (false, Some(id)) = (keep, &burst.header().campaign) {
                *left.entry(id.clone()).or_default() += 1;
            }
            keep
        });
        left.into_iter().collect()
    }
}

/// The campaign of each site whose last burst began last.
fn newest_of_sites(bursts: &[Burst]) -> HashMap<Option<String>, (i64, String)> {
    let mut newest: HashMap<Option<String>, (i64, String)> = HashMap::new();
    for header in bursts.iter().map(Burst::header) {
        let Some(id) = &header.campaign else { continue };
        let entry = newest.entry(header.site.clone()).or_insert_with(|| (header.started_unix_us, id.clone()));
        if header.started_unix_us > entry.0 {
            *entry = (header.started_unix_us, id.clone());
        }
    }
    newest
}

/// What the store knows of a campaign beside its bursts.
pub(super) struct Known {
    locked: Option<Locked>,
    slots: Vec<SlotRow>,
}

impl Known {
    /// Reads the campaigns of these lanes. A store of an older format has none.
    ///
    /// # Errors
    /// [`StoreError`] when the store cannot be read.
    pub(super) fn read(store: &Path, lanes: &[LaneSummary]) -> Result<HashMap<String, Self>, StoreError> {
        let mut known = HashMap::new();
        if lanes.iter().all(|lane| lane.campaign.is_none()) {
            return Ok(known);
        }
        let ledger = Ledger::open_to_read(store)?;
        for id in lanes.iter().filter_map(|lane| lane.campaign.as_ref()) {
            if !known.contains_key(id) {
                let row = ledger.campaign(id)?;
                // What another version locked in another form is shown without its plan rather than not at all.
                let locked = row.and_then(|row| serde_json::from_str(&row.locked).ok());
                known.insert(id.clone(), Self { locked, slots: ledger.slots(id)? });
            }
        }
        Ok(known)
    }

    /// The declared peak.
    pub(super) fn peak(&self) -> Option<String> {
        self.locked.as_ref()?.campaign.declared_peak().map(|peak| peak.to_string())
    }

    /// Adds the windows of the plan in which nothing was measured.
    pub(super) fn complete(&self, lane: &mut LaneSummary) {
        let Some(locked) = &self.locked else { return };
        let planned: Vec<String> = locked.campaign.windows_in_order().iter().map(|w| w.start.to_string()).collect();
        lane.add_windows(planned.iter().map(String::as_str));
    }

    /// The planned bursts of a lane that were not begun.
    fn missed(&self, lane: &LaneSummary, window: &str) -> Vec<Missed> {
        let of_lane = self.slots.iter().filter(|row| row.key.lane == lane.lane && row.key.task == lane.task);
        let gone = of_lane.filter(|row| row.key.window == window && row.state.burst.is_none());
        let gone = gone.filter(|row| matches!(row.state.state.as_str(), "missed" | "before_start" | "interrupted"));
        gone.map(|row| Missed {
            date: row.key.date.clone(),
            state: row.state.state.clone(),
            reason: row.state.reason.clone(),
        })
        .collect()
    }
}

/// What stands beside the bursts of each window of a lane.
///
/// * `price`: what the lane's tokens cost, where that is stated.
pub(super) fn extras(
    lane: &LaneSummary,
    gathered: &Gathered,
    known: Option<&Known>,
    price: Option<&Price>,
) -> Vec<WindowExtra> {
    let of_window = |window: &str| {
        let bursts: Vec<&Burst> = gathered.bursts.iter().filter(|burst| belongs(burst, lane, window)).collect();
        let control: Vec<_> = bursts.iter().filter_map(|burst| burst.control()).collect();
        let mut first_bytes: Vec<u64> = control.iter().filter_map(|c| c.first_byte_us).collect();
        first_bytes.sort_unstable();
        let count = |n: usize| u32::try_from(n).unwrap_or(u32::MAX);
        WindowExtra {
            window: window.to_owned(),
            missed: known.map(|known| known.missed(lane, window)).unwrap_or_default(),
            micro_usd_per_1000: price.and_then(|price| {
                let figures = bursts.iter().flat_map(|burst| burst.counted());
                price_of_1000(figures, price, &|zone| time_zone(zone).ok())
            }),
            // nearest rank, as everywhere
            control_first_byte_us: first_bytes.get(first_bytes.len().div_ceil(2).saturating_sub(1)).copied(),
            control_asked: count(control.len()),
            control_failed: count(control.iter().filter(|c| c.first_byte_us.is_none()).count()),
        }
    };
    lane.windows.iter().filter_map(|w| w.window.as_deref()).map(of_window).collect()
}

fn belongs(burst: &Burst, lane: &LaneSummary, window: &str) -> bool {
    let h = burst.header();
    h.lane == lane.lane
        && h.task == lane.task
        && h.campaign == lane.campaign
        && h.site == lane.site
        && h.model == lane.model
        && h.prompt_hash == lane.prompt_hash
        && h.prompt_mode == lane.prompt_mode
        && h.window.as_deref() == Some(window)
}
