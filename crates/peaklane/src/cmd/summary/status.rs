//! `summary status`: is the scheduled campaign alive, what ran, what was missed and why, what is next.

use std::collections::BTreeMap;
use std::path::Path;
use std::time::Duration;

use jiff::Timestamp;
use peaklane_core::campaign::Locked;
use peaklane_core::watch::CampaignName;
use peaklane_core::window::alive::{Process, Pulse, Sign};
use peaklane_core::window::runtime::{Decision, ON_TIME_S, Policy, Reading, Status};
use peaklane_report::watch::status::{self as view, CampaignStatus, LaneStatus, MissedWindow};
use peaklane_run::watch::holder::{Fate, fate};
use peaklane_run::watch::{Track, WATCHER_KIND, worst_windows};
use peaklane_store::{CampaignRow, EventRow, Ledger, SlotRow};
use serde_json::{Value, json};

use crate::exit::Exit;
use crate::failure::Failure;
use crate::globals::{Format, Globals};
use crate::load::time_zone;
use crate::out;

/// Times that further days are planned at most, until one lies in the future: years of them.
const MOST_EXTENSIONS: u32 = 1_000;

/// Looks at the newest campaign of each site in the store and prints how it stands.
///
/// # Errors
/// [`Failure`] when the store cannot be read, and with exit code 3 when there is no campaign in it.
pub(super) fn run(globals: &Globals) -> Result<Exit, Failure> {
    let path = globals.store.path();
    let ledger = Ledger::open_to_read(path)?;
    let mut newest: BTreeMap<Option<String>, CampaignRow> = BTreeMap::new();
    for row in ledger.campaigns()? {
        newest.insert(row.site.clone(), row);
    }
    if newest.is_empty() {
        return Err(Failure::unmeasured(format!("there is no campaign in `{}`", path.display()))
            .with_hint("`peaklane watch` begins one"));
    }
    let now = Timestamp::now();
    let statuses = newest.values().map(|row| status_of(&ledger, path, row, now)).collect::<Result<Vec<_>, _>>()?;
    out::print(&match globals.format {
        Format::Table => view::render(&statuses, globals.width, globals.palette),
        Format::Json => format!("{:#}\n", json!({ "campaigns": statuses })),
        Format::Csv => view::csv(&statuses).map_err(|error| Failure::of(Exit::Unmeasured, &error, None))?,
        Format::Md => view::markdown(&statuses),
    })?;
    let negative = statuses.iter().any(|status| matches!(status.state, Pulse::Dead | Pulse::Stopped));
    Ok(if negative { Exit::Negative } else { Exit::Fine })
}

fn status_of(ledger: &Ledger, path: &Path, row: &CampaignRow, now: Timestamp) -> Result<CampaignStatus, Failure> {
    let locked: Locked = serde_json::from_str(&row.locked).map_err(|error| {
        Failure::of(Exit::Unmeasured, &error, None).because(format!("campaign `{}` cannot be read", row.id))
    })?;
    let zone = time_zone(&locked.time_zone)?;
    let rows = ledger.slots(&row.id)?;
    let events: Vec<EventRow> =
        ledger.events(row.started_unix_us)?.into_iter().filter(|e| e.campaign.as_ref() == Some(&row.id)).collect();
    let tolerance_s = u32::try_from(locked.campaign.late_tolerance.as_us() / 1_000_000).unwrap_or(u32::MAX);
    let policy = Policy { late_tolerance_s: tolerance_s, on_time_s: ON_TIME_S };
    let name = CampaignName { campaign: row.id.clone(), site: row.site.clone() };
    let begun = Timestamp::from_microsecond(row.started_unix_us).unwrap_or(now);
    let of_plan = locked.lanes.iter().map(|lane| (lane.name.clone(), begun));
    let joined = events
        .iter()
        .filter(|event| event.kind == "lane_joined")
        .filter_map(|event| Some((event.lane.clone()?, Timestamp::from_microsecond(event.unix_us).ok()?)));
    let lanes: Vec<(String, Timestamp)> = of_plan.chain(joined).collect();
    let all: Vec<String> = locked.lanes.iter().map(|lane| lane.name.clone()).collect();

    let mut status = CampaignStatus {
        campaign: row.id.clone(),
        site: row.site.clone(),
        zone: locked.time_zone.clone(),
        first_date: String::new(),
        last_date: String::new(),
        state: Pulse::Dead,
        stopped_why: row.stopped.as_ref().map(|(_, why)| why.clone()),
        watcher_seen_unix_us: None,
        watcher_seen_s: None,
        watcher_ended: false,
        last_due_run_unix_us: None,
        last_due_run_s: None,
        running: rows.iter().filter(|row| row.state.state == "running").count() as u64,
        unattended: 0,
        lanes: Vec::new(),
        missed: Vec::new(),
    };
    // Lanes of the plan share one track, so that their turns are those of the watcher; joined ones have their own.
    let present: Vec<String> = all.iter().filter(|lane| !is_gone(lane, &events, &rows)).cloned().collect();
    let mut groups = vec![(present, begun)];
    groups.extend(lanes.iter().skip(all.len()).map(|(lane, since)| (vec![lane.clone()], *since)));
    let mut next = BTreeMap::new();
    let mut over = true;
    for (lanes, since) in groups {
        let mut track = Track::new(name.clone(), locked.clone(), zone.clone(), lanes, (since, policy), &rows)?;
        (status.first_date, status.last_date) = (track.dates.0.to_string(), track.dates.1.to_string());
        if row.stopped.is_some() {
            continue;
        }
        status.unattended += unattended(&mut track, now);
        for _ in 0..MOST_EXTENSIONS {
            let open = track.runtime.pending().next().is_some() || !track.elsewhere.is_empty();
            let worst = worst_windows(path, &row.id, &status.last_date)?;
            if open || track.lanes().is_empty() || !track.extend(&worst)? {
                break;
            }
            status.unattended += unattended(&mut track, now);
        }
        over &= track.runtime.pending().next().is_none() && track.elsewhere.is_empty();
        next.extend(track.next(now).into_iter().map(|one| (one.lane.clone(), one)));
    }
    status.lanes = lanes.iter().map(|(lane, _)| lane_status(lane, &rows, &events, next.remove(lane))).collect();
    status.missed = missed_of(&rows, &name);
    let signs = signs(ledger, &row.id, now, &mut status)?;
    status.state = Pulse::of(now, &signs, tolerance_s, row.stopped.is_some(), over && status.unattended == 0);
    Ok(status)
}

/// Bursts whose time is over and of which the store knows nothing; bursts before the begin apart.
fn unattended(track: &mut Track, now: Timestamp) -> u64 {
    let step = track.runtime.tick(Reading { wall: now, awake: Duration::ZERO, alive: None });
    let missed = |d: &&Decision<_>| matches!(d, Decision::Settled { status: Status::Missed(_), .. });
    step.decisions.iter().filter(missed).count() as u64
}

/// A lane that was told to be gone, and of which nothing was recorded since.
fn is_gone(lane: &str, events: &[EventRow], rows: &[SlotRow]) -> bool {
    let gone = events.iter().rev().find(|e| e.kind == "lane_gone" && e.lane.as_deref() == Some(lane));
    gone.is_some_and(|event| !rows.iter().any(|row| row.key.lane == lane && row.due_unix_us > event.unix_us))
}

fn lane_status(
    lane: &str,
    rows: &[SlotRow],
    events: &[EventRow],
    next: Option<peaklane_core::watch::NextBurst>,
) -> LaneStatus {
    let count = |state: &str| rows.iter().filter(|r| r.key.lane == lane && r.state.state == state).count() as u64;
    LaneStatus {
        lane: lane.to_owned(),
        ran: count("run") + count("late"),
        late: count("late"),
        missed: count("missed"),
        interrupted: count("interrupted"),
        before_start: count("before_start"),
        gone: is_gone(lane, events, rows),
        next,
    }
}

fn missed_of(rows: &[SlotRow], name: &CampaignName) -> Vec<MissedWindow> {
    let missed = rows.iter().filter(|row| row.state.state == "missed").map(|row| {
        let peaklane_store::SlotKey { campaign, date, window, nth, lane, task } = row.key.clone();
        let place = peaklane_core::watch::Place { campaign, site: name.site.clone(), date, window, nth, lane, task };
        MissedWindow { place, reason: row.state.reason.clone().unwrap_or_default() }
    });
    missed.collect()
}

/// The signs of life of a campaign's watchers; the last ones are noted in `status`.
fn signs(ledger: &Ledger, id: &str, now: Timestamp, status: &mut CampaignStatus) -> Result<Vec<Sign>, Failure> {
    let mut signs = Vec::new();
    for document in ledger.documents(WATCHER_KIND)? {
        let Ok(body) = serde_json::from_str::<Value>(&document.body) else { continue };
        let text = |key: &str| body[key].as_str().unwrap_or_default();
        let Some(at) = body["beat_unix_us"].as_i64().and_then(|us| Timestamp::from_microsecond(us).ok()) else {
            continue;
        };
        if text("campaign") != id {
            continue;
        }
        let (due, ended) = (text("mode") == "due", text("state") != "watching");
        let (seen, ago) = (Some(at.as_microsecond()), Some(now.duration_since(at).as_secs()));
        if due {
            (status.last_due_run_unix_us, status.last_due_run_s) = (seen, ago);
        } else {
            (status.watcher_seen_unix_us, status.watcher_seen_s, status.watcher_ended) = (seen, ago, ended);
        }
        let process = match fate(text("holder")) {
            Fate::Alive => Process::Alive,
            Fate::Gone => Process::Gone,
            Fate::Unknown => Process::Unknown,
        };
        signs.push(Sign { at, due, ended, process });
    }
    Ok(signs)
}
