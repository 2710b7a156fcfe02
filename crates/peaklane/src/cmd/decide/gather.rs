//! Where the evidence comes from: the newest campaign of each site in the store, or CSV files alone.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use jiff::Timestamp;
use jiff::tz::TimeZone;
use peaklane_core::campaign::Locked;
use peaklane_core::choice::{ColdTry, Gap, Recorded, Seen};
use peaklane_core::config::{Config, Day};
use peaklane_store::{BurstFilter, CampaignRow, DocumentRow, Ledger, StoreReader, csv};
use serde::Deserialize;

use crate::exit::Exit;
use crate::failure::Failure;
use crate::load::time_zone;

/// The date that stands where a clock tells none.
pub(super) const EPOCH_DAY: &str = "1970-01-01";

/// Kind of the documents that hold decisions.
pub(super) const DOCUMENT_KIND: &str = "decision";

/// Warnings of one file that are told one by one.
const TOLD_WARNINGS: usize = 10;

/// What there is to decide from.
#[derive(Debug, Default)]
pub(super) struct Gathered {
    /// One entry for each site.
    pub(super) places: Vec<Place>,
    /// Decisions on record, oldest first.
    pub(super) recorded: Vec<Recorded>,
    /// Store or files, as they were named.
    pub(super) sources: Vec<String>,
    /// What was odd.
    pub(super) warnings: Vec<String>,
}

/// One site with its bursts.
#[derive(Debug)]
pub(super) struct Place {
    pub(super) site: Option<String>,
    pub(super) zone: Option<String>,
    /// Id, and what was locked.
    pub(super) campaign: Option<(String, Locked)>,
    pub(super) bursts: Vec<Seen>,
    pub(super) gaps: Vec<Gap>,
}

/// The first instant that no longer counts: the end of the local day, else one behind now.
fn end(zone: Option<&str>, as_of: Option<Day>, now: Timestamp) -> i64 {
    let zone = zone.and_then(|name| time_zone(name).ok()).unwrap_or(TimeZone::UTC);
    let of_day = |day: Day| {
        let next = day.date().tomorrow().ok()?;
        Some(zone.to_timestamp(next.at(0, 0, 0, 0)).ok()?.as_microsecond())
    };
    as_of.map_or(now.as_microsecond().saturating_add(1), |day| of_day(day).unwrap_or(i64::MAX))
}

/// The newest campaign of each site, else all bursts of windows.
///
/// # Errors
/// As the store has them, and for a campaign whose locked plan cannot be read.
pub(super) fn from_store(
    path: &Path,
    config: Option<&Config>,
    as_of: Option<Day>,
    now: Timestamp,
) -> Result<Gathered, Failure> {
    let reader = StoreReader::open(path)?;
    let ledger = Ledger::open_to_read(path)?;
    let mut gathered = Gathered { sources: vec![path.display().to_string()], ..Gathered::default() };
    for document in ledger.documents(DOCUMENT_KIND)? {
        match recorded(&document) {
            Some(record) => gathered.recorded.push(record),
            None => gathered.warnings.push(format!("decision record `{}` cannot be read, passed over", document.id)),
        }
    }
    let mut newest: BTreeMap<Option<String>, (CampaignRow, Locked)> = BTreeMap::new();
    for row in ledger.campaigns()? {
        let locked = locked(&row)?;
        if row.started_unix_us < end(Some(&locked.time_zone), as_of, now) {
            newest.insert(row.site.clone(), (row, locked));
        }
    }
    let sites: Vec<Option<String>> =
        config.map(|c| c.sites().into_iter().map(|s| s.name).collect()).unwrap_or_default();
    if newest.keys().any(|site| sites.contains(site)) {
        newest.retain(|site, _| sites.contains(site));
    }
    let all = reader.bursts(&BurstFilter::default())?;
    for (site, (row, locked)) in newest {
        let until = end(Some(&locked.time_zone), as_of, now);
        let mut bursts = Vec::new();
        for stored in all.iter().filter(|b| b.header.campaign.as_deref() == Some(row.id.as_str())) {
            if stored.header.started_unix_us < until {
                bursts.push(seen(&reader, stored)?);
            }
        }
        let gaps = gaps(&ledger, &row.id, until)?;
        if let Some((_, why)) = row.stopped.as_ref().filter(|(at, _)| *at < until) {
            gathered.warnings.push(format!("campaign {} was stopped ({why}): nothing more is measured in it", row.id));
        }
        let zone = Some(locked.time_zone.clone());
        gathered.places.push(Place { site, zone, campaign: Some((row.id, locked)), bursts, gaps });
    }
    if gathered.places.is_empty() {
        let mut by_place: BTreeMap<(Option<String>, Option<String>), Vec<Seen>> = BTreeMap::new();
        for stored in all.iter().filter(|b| b.header.window.is_some() && b.header.campaign.is_none()) {
            let header = &stored.header;
            if header.started_unix_us < end(header.zone.as_deref(), as_of, now) {
                let place = (header.site.clone(), header.zone.clone());
                by_place.entry(place).or_default().push(seen(&reader, stored)?);
            }
        }
        gathered.places.extend(by_place.into_iter().map(without_campaign));
    }
    Ok(gathered)
}

fn without_campaign(((site, zone), bursts): ((Option<String>, Option<String>), Vec<Seen>)) -> Place {
    Place { site, zone, campaign: None, bursts, gaps: Vec::new() }
}

fn locked(row: &CampaignRow) -> Result<Locked, Failure> {
    serde_json::from_str(&row.locked).map_err(|e| {
        Failure::of(Exit::Usage, &e, Some("another version of peaklane may have begun it: use that one".to_owned()))
            .because(format!("what campaign {} locked cannot be read", row.id))
    })
}

fn seen(reader: &StoreReader, stored: &peaklane_store::StoredBurst) -> Result<Seen, Failure> {
    let attempts = reader.attempts(&stored.header.id)?;
    let limits = |name: &str| name.contains("limit") && !name.contains("remaining") && !name.contains("reset");
    let headers = attempts.iter().flat_map(|a| &a.tries).flat_map(|t| &t.rate_limits);
    let mut limit_headers: Vec<(String, String)> = headers.filter(|(name, _)| limits(name)).cloned().collect();
    limit_headers.sort();
    limit_headers.dedup();
    Ok(Seen {
        header: stored.header.clone(),
        state: stored.state(),
        figures: attempts.iter().filter(|a| !a.warmup).map(Into::into).collect(),
        warmups: attempts
            .iter()
            .filter(|a| a.warmup)
            .map(|a| ColdTry { outcome: a.outcome, latency_us: a.latency_us })
            .collect(),
        peak_in_flight: stored.end.as_ref().map(|end| end.peak_in_flight),
        limit_headers,
    })
}

fn gaps(ledger: &Ledger, campaign: &str, until: i64) -> Result<Vec<Gap>, Failure> {
    let open = ["missed", "before_start", "interrupted"];
    let rows = ledger.slots(campaign)?.into_iter();
    let rows = rows.filter(|r| r.due_unix_us < until && open.contains(&r.state.state.as_str()));
    let gap = |row: peaklane_store::SlotRow| Gap {
        date: row.key.date,
        window: row.key.window,
        lane: row.key.lane,
        task: row.key.task,
        state: row.state.state,
        reason: row.state.reason,
    };
    Ok(rows.map(gap).collect())
}

/// What of a record the triggers need; the rest is for people.
#[derive(Deserialize)]
struct RecordedBody {
    site: Option<String>,
    task: String,
    date: String,
    lane: Option<String>,
    kind: Option<peaklane_core::lane::Kind>,
    expires: String,
}

fn recorded(document: &DocumentRow) -> Option<Recorded> {
    let body: RecordedBody = serde_json::from_str(&document.body).ok()?;
    Some(Recorded {
        id: document.id.clone(),
        site: body.site,
        task: body.task,
        date: body.date.parse().ok()?,
        lane: body.lane,
        kind: body.kind,
        expires: body.expires.parse().ok()?,
    })
}

/// All bursts of windows in the files. A burst that stands in two files counts once, the copy with more attempts.
///
/// # Errors
/// As the files have them.
pub(super) fn from_files(files: &[PathBuf], as_of: Option<Day>) -> Result<Gathered, Failure> {
    let mut gathered = Gathered::default();
    let mut by_id: BTreeMap<String, Seen> = BTreeMap::new();
    for path in files {
        let file = path.display().to_string();
        let read = csv::read(path)?;
        let told = read.warnings.len();
        let lines = read.warnings.into_iter().take(TOLD_WARNINGS);
        gathered.warnings.extend(lines.map(|w| format!("{file}, line {}: {}", w.line, w.message)));
        if told > TOLD_WARNINGS {
            gathered.warnings.push(format!("{file}: and {} more of the kind", told - TOLD_WARNINGS));
        }
        gathered.sources.push(file);
        for burst in read.bursts.into_iter().filter(|b| b.header.window.is_some()) {
            if burst.header.started_unix_us >= end(burst.header.zone.as_deref(), as_of, Timestamp::MAX) {
                continue;
            }
            let seen = Seen {
                header: burst.header,
                state: burst.state,
                figures: burst.figures,
                warmups: Vec::new(),
                peak_in_flight: None,
                limit_headers: Vec::new(),
            };
            let longer = by_id.get(&seen.header.id).is_none_or(|known| known.figures.len() < seen.figures.len());
            if longer {
                by_id.insert(seen.header.id.clone(), seen);
            }
        }
    }
    let mut by_place: BTreeMap<(Option<String>, Option<String>), Vec<Seen>> = BTreeMap::new();
    for seen in by_id.into_values() {
        let place = (seen.header.site.clone(), seen.header.zone.clone());
        by_place.entry(place).or_default().push(seen);
    }
    gathered.places.extend(by_place.into_iter().map(without_campaign));
    Ok(gathered)
}
