//! Which campaign a watcher runs: the one that was begun with the same plan, or a new one.

use peaklane_core::campaign::Locked;
use peaklane_store::{CampaignRow, Ledger, StoreError};
use serde_json::Value;

/// What the configuration asks for at one site.
#[derive(Clone, Debug)]
pub struct Candidate {
    /// What would be locked if it began now; its seed is drawn.
    pub locked: Locked,
    /// The first day is written in the configuration; else it is that of the first start.
    pub day_is_given: bool,
    /// Begin another campaign even where one with the same plan is there.
    pub fresh: bool,
    /// Version of this program.
    pub version: String,
}

/// The campaign to run.
#[derive(Clone, Debug)]
pub struct Resolved {
    /// Its row; `stopped` where it was stopped before.
    pub row: CampaignRow,
    /// What it locked.
    pub locked: Locked,
    /// It begins now.
    pub new: bool,
    /// Campaigns of the site that end with it, and what changed since.
    pub replaced: Vec<(String, Vec<String>)>,
}

/// Finds the campaign with this plan, newest first, or begins one; others of the site that still go on are stopped.
///
/// A campaign that is over, or was stopped by its budget, is found too and not begun again: that would be a surprise in a
/// bill. [`Candidate::fresh`] begins another one.
///
/// # Errors
/// What the store says.
pub fn resolve(ledger: &Ledger, candidate: &Candidate, now_unix_us: i64) -> Result<Resolved, StoreError> {
    let site = &candidate.locked.site;
    let mut known: Vec<(CampaignRow, Option<Locked>)> = Vec::new();
    for row in ledger.campaigns()?.into_iter().rev().filter(|row| row.site == *site) {
        let locked = serde_json::from_str(&row.locked).ok();
        known.push((row, locked));
    }
    let hash = candidate.locked.plan_hash();
    let replaced_before = |row: &CampaignRow| row.stopped.as_ref().is_some_and(|(_, why)| why == "replaced");
    let same = known.iter().find_map(|(row, locked)| {
        let locked = locked.as_ref().filter(|_| !candidate.fresh && !replaced_before(row))?;
        let day = !candidate.day_is_given || locked.campaign.start_date == candidate.locked.campaign.start_date;
        (day && locked.plan_hash() == hash && changed_lanes(locked, &candidate.locked).is_empty())
            .then(|| (row.clone(), locked.clone()))
    });
    if let Some((row, locked)) = same {
        return Ok(Resolved { row, locked, new: false, replaced: Vec::new() });
    }
    let id = free_id(&candidate.locked.id(), &known);
    let row = CampaignRow {
        id,
        site: site.clone(),
        started_unix_us: now_unix_us,
        tool_version: candidate.version.clone(),
        locked: serde_json::to_string(&candidate.locked).unwrap_or_default(),
        stopped: None,
    };
    let (row, new) = ledger.begin_campaign(&row)?;
    // another watcher may have begun it at the same moment, with a seed of its own
    let locked = serde_json::from_str(&row.locked).unwrap_or_else(|_| candidate.locked.clone());
    let mut replaced = Vec::new();
    for (former, former_locked) in known.iter().filter(|(former, _)| former.stopped.is_none() && former.id != row.id) {
        if ledger.stop_campaign(&former.id, now_unix_us, "replaced")? {
            let changed = former_locked.as_ref().map(|former| changes(former, &locked)).unwrap_or_default();
            replaced.push((former.id.clone(), changed));
        }
    }
    Ok(Resolved { row, locked, new, replaced })
}

/// The id, with a number behind it where a campaign of the same plan began on the same day.
fn free_id(id: &str, known: &[(CampaignRow, Option<Locked>)]) -> String {
    let taken = |id: &str| known.iter().any(|(row, _)| row.id == id);
    let numbered = (2..).map(|number: u32| format!("{id}-{number}"));
    std::iter::once(id.to_owned()).chain(numbered).find(|id| !taken(id)).unwrap_or_else(|| id.to_owned())
}

/// Names of lanes that are in both and no longer the same: another model or address makes another series.
fn changed_lanes(former: &Locked, now: &Locked) -> Vec<String> {
    let changed = former.lanes.iter().filter(|lane| now.lane(&lane.name).is_some_and(|new| new != *lane));
    changed.map(|lane| format!("lane {}", lane.name)).collect()
}

/// What differs between two plans, in the words of the configuration.
pub fn changes(former: &Locked, now: &Locked) -> Vec<String> {
    const NO_PART: [&str; 6] = ["seed", "start_date", "budget_requests", "budget_tokens", "budget_usd", "after"];
    let (before, after) = (value(former), value(now));
    let mut changed = Vec::new();
    for part in ["time_zone", "campaign", "burst", "retry", "timeouts", "rules", "tasks"] {
        match (&before[part], &after[part]) {
            (Value::Object(before), Value::Object(after)) => {
                let keys = before.keys().chain(after.keys().filter(|key| !before.contains_key(*key)));
                let differ = keys.filter(|key| before.get(*key) != after.get(*key) && !NO_PART.contains(&key.as_str()));
                changed.extend(differ.map(|key| format!("{part}.{key}")));
            }
            (before, after) if before != after => changed.push(part.to_owned()),
            _ => {}
        }
    }
    changed.extend(changed_lanes(former, now));
    changed
}

fn value(locked: &Locked) -> Value {
    serde_json::to_value(locked).unwrap_or_default()
}
