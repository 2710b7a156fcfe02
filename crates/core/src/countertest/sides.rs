//! Which bursts stand before a change and which after it, counted window by window.

use serde::{Deserialize, Serialize};

use super::snapshot::Series;
use crate::stats::PassRate;
use crate::summary::{BurstData, summarise, worst_of};

/// One burst that counts.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct CountedBurst {
    /// Its id: the evidence.
    pub id: String,
    /// Local date, `YYYY-MM-DD`.
    pub date: Option<String>,
    /// Attempts that passed; for a batch class 1 where the burst reached its tasks per hour, else 0.
    pub passed: u32,
    /// Attempts made; for a batch class 1, since the burst as a whole is judged.
    pub n: u32,
}

/// One window of one lane on one side of the change.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Side {
    /// Local begin of the window.
    pub window: String,
    /// Its bursts, oldest first.
    pub bursts: Vec<CountedBurst>,
}

impl Side {
    /// Passes of all its attempts; `None` without a burst.
    pub fn rate(&self) -> Option<PassRate> {
        let rates: Vec<PassRate> = self.bursts.iter().filter_map(|b| PassRate::new(b.passed, b.n)).collect();
        PassRate::sum(&rates)
    }
}

/// A stretch of time: from a moment on, up to another, microseconds since the Unix epoch (UTC). Both belong to it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Span {
    /// First moment.
    pub from_unix_us: i64,
    /// Last moment.
    pub to_unix_us: i64,
}

impl Span {
    fn holds(self, unix_us: i64) -> bool {
        (self.from_unix_us..=self.to_unix_us).contains(&unix_us)
    }
}

/// Where the bursts of a side come from, beside lane and task class.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Place<'a> {
    /// Site of the campaign.
    pub site: Option<&'a str>,
    /// Begins of the windows that count.
    pub windows: &'a [String],
    /// The one campaign that counts; `None` for all bursts, those by hand included.
    pub campaign: Option<&'a str>,
}

/// The bursts of a series that begin within a span in these windows, window by window in the given order. Bursts that are
/// void, interrupted, under way or not whole count on neither side.
pub fn side(bursts: &[BurstData<'_>], series: &Series, place: &Place<'_>, span: Span) -> Vec<Side> {
    let of_window = |window: &String| {
        let mut found: Vec<(i64, CountedBurst)> = bursts
            .iter()
            .filter(|b| series.fits(b.header) && b.header.site.as_deref() == place.site)
            .filter(|b| place.campaign.is_none_or(|campaign| b.header.campaign.as_deref() == Some(campaign)))
            .filter(|b| b.header.window.as_ref() == Some(window) && span.holds(b.header.started_unix_us))
            .filter_map(|b| Some((b.header.started_unix_us, counted(b)?)))
            .collect();
        found.sort_by(|a, b| (a.0, &a.1.id).cmp(&(b.0, &b.1.id)));
        Side { window: window.clone(), bursts: found.into_iter().map(|(_, burst)| burst).collect() }
    };
    place.windows.iter().map(of_window).collect()
}

/// The campaign of the newest burst of a series in these windows up to a moment; `None` where none of them has one.
pub fn newest_campaign(
    bursts: &[BurstData<'_>],
    series: &Series,
    place: &Place<'_>,
    to_unix_us: i64,
) -> Option<String> {
    let fitting = bursts.iter().filter(|b| series.fits(b.header) && b.header.site.as_deref() == place.site);
    let within = fitting.filter(|b| b.header.window.as_ref().is_some_and(|window| place.windows.contains(window)));
    let with_campaign = within.filter(|b| b.header.started_unix_us <= to_unix_us && b.header.campaign.is_some());
    with_campaign.max_by_key(|b| b.header.started_unix_us)?.header.campaign.clone()
}

/// A burst as it counts; `None` for one that counts neither way.
fn counted(burst: &BurstData<'_>) -> Option<CountedBurst> {
    let summary = summarise(burst.header, burst.state, burst.figures);
    let rate = summary.pass_rate()?;
    let (passed, n) = match summary.header.tasks_per_hour_floor {
        Some(_) => (u32::from(summary.throughput_holds()?), 1),
        None => (rate.passed(), rate.of()),
    };
    Some(CountedBurst { id: burst.header.id.clone(), date: burst.header.date.clone(), passed, n })
}

/// The window with the lowest pass rate, the first on a tie.
pub fn worst(sides: &[Side]) -> Option<&Side> {
    sides.get(worst_of(sides.iter().map(Side::rate))?)
}
