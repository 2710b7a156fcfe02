//! The ledger, away from the event loop that measures: every call opens the store on a thread of its own, so that a store
//! that is slow, locked or was replaced holds up nothing but the call.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use jiff::Timestamp;
use peaklane_core::burst::BurstState;
use peaklane_core::summary::{BurstData, lane_summaries};
use peaklane_core::window::runtime::{MissedReason, Status};
use peaklane_store::{
    BurstFilter, Claim, DocumentRow, EventRow, Ledger, SlotKey, SlotRow, SlotState, SpentRow, StoreError, StoreReader,
};
use serde_json::json;

use super::holder::{self, Fate};

/// How long a claim holds without being renewed, seconds. Renewed every third of it; a process that is gone from another
/// machine is noticed after it.
pub const LEASE_S: i64 = 60;

/// How often a waiting watcher leaves a sign of life, seconds.
pub const SIGN_OF_LIFE_S: u64 = 600;

/// Kind of the documents in which watchers leave a sign of life.
pub const WATCHER_KIND: &str = "watcher";

/// The store of a watcher.
#[derive(Clone, Debug)]
pub struct Keeper {
    path: PathBuf,
    holder: String,
}

/// A slot that its holder left behind, and how it was settled.
#[derive(Clone, Debug)]
pub(super) struct Swept {
    /// Which.
    pub key: SlotKey,
    /// A whole burst was on record after all.
    pub whole: bool,
}

/// `model` or `system_fingerprint` of two bursts: former and present, where they differ.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Changes {
    /// Models.
    pub model: Option<(Vec<String>, Vec<String>)>,
    /// Fingerprints.
    pub fingerprint: Option<(Vec<String>, Vec<String>)>,
}

impl Keeper {
    /// A keeper of the store at `path`; nothing is opened yet.
    pub fn new(path: PathBuf) -> Self {
        Self { path, holder: holder::me() }
    }

    /// The same with another name for its claims: what tests use to be several machines.
    pub fn named(path: PathBuf, holder: impl Into<String>) -> Self {
        Self { path, holder: holder.into() }
    }

    /// The name under which claims are held.
    pub fn holder(&self) -> &str {
        &self.holder
    }

    /// Runs `work` on the ledger.
    ///
    /// # Errors
    /// What the store says.
    pub async fn with<T: Send + 'static>(
        &self,
        work: impl FnOnce(&Ledger) -> Result<T, StoreError> + Send + 'static,
    ) -> Result<T, StoreError> {
        let path = self.path.clone();
        let closed = StoreError::Closed { path: path.clone() };
        let done = tokio::task::spawn_blocking(move || work(&Ledger::open(&path)?)).await;
        done.unwrap_or(Err(closed))
    }

    /// Claims a slot and notes which burst it will be. On disk when it returns.
    pub(super) async fn claim(
        &self,
        key: SlotKey,
        due: Timestamp,
        started: Timestamp,
        burst: String,
    ) -> Result<Claim, StoreError> {
        let holder = self.holder.clone();
        self.with(move |ledger| {
            let now = started.as_microsecond();
            let claim = ledger.claim(&key, due.as_microsecond(), now, &holder, lease_until(now))?;
            if claim == Claim::Ours {
                ledger.fired(&key, &burst)?;
            }
            Ok(claim)
        })
        .await
    }

    /// Renews all claims of this process and leaves a sign of life.
    pub(super) async fn renew(
        &self,
        now: Timestamp,
        campaigns: Vec<String>,
        mode: &'static str,
    ) -> Result<(), StoreError> {
        let holder = self.holder.clone();
        self.with(move |ledger| {
            let now = now.as_microsecond();
            ledger.renew(&holder, lease_until(now))?;
            beat(ledger, &campaigns, &holder, mode, "watching", now)
        })
        .await
    }

    /// Leaves a sign of life, or says that the watcher ended on purpose (`stopped`, `finished`).
    pub(super) async fn beat(
        &self,
        now: Timestamp,
        campaigns: Vec<String>,
        mode: &'static str,
        state: &'static str,
    ) -> Result<(), StoreError> {
        let holder = self.holder.clone();
        self.with(move |ledger| beat(ledger, &campaigns, &holder, mode, state, now.as_microsecond())).await
    }

    /// Settles slots and records events; what was taken is what is on disk.
    pub(super) async fn write(
        &self,
        slots: Vec<(SlotKey, i64, SlotState)>,
        events: Vec<EventRow>,
        now: Timestamp,
    ) -> Result<(), StoreError> {
        let holder = self.holder.clone();
        self.with(move |ledger| {
            for (key, due, state) in &slots {
                ledger.settle(key, *due, state, &holder, now.as_microsecond())?;
            }
            events.iter().try_for_each(|event| ledger.event(event))
        })
        .await
    }

    /// The slots of a campaign as the store has them, those settled that somebody left behind.
    pub(super) async fn sweep(
        &self,
        campaign: String,
        now: Timestamp,
        on_time_s: u32,
    ) -> Result<(Vec<SlotRow>, Vec<Swept>), StoreError> {
        let holder = self.holder.clone();
        self.with(move |ledger| {
            let mut swept = Vec::new();
            for row in ledger.slots(&campaign)? {
                if row.state.state != "running" || !abandoned(&row, &holder, now.as_microsecond()) {
                    continue;
                }
                let burst = row.state.burst.as_deref();
                let state = burst.map(|burst| ledger.burst_state(burst)).transpose()?.flatten();
                let whole = [BurstState::Complete, BurstState::Void].iter().any(|s| state.as_deref() == Some(s.name()));
                let settled = if whole { whole_state(&row, on_time_s) } else { plain_state("interrupted") };
                // a holder that is known to be gone need not be waited for
                let after_lease = row.lease_until_unix_us.map_or(now.as_microsecond(), |until| until.saturating_add(1));
                let at = now.as_microsecond().max(after_lease);
                if ledger.settle(&row.key, row.due_unix_us, &settled, &holder, at)? {
                    swept.push(Swept { key: row.key, whole });
                }
            }
            Ok((ledger.slots(&campaign)?, swept))
        })
        .await
    }

    /// What all bursts of these campaigns used up.
    pub(super) async fn spent(&self, campaigns: Vec<String>) -> Result<Vec<SpentRow>, StoreError> {
        self.with(move |ledger| {
            let rows = campaigns.iter().map(|id| ledger.spent(id)).collect::<Result<Vec<_>, _>>()?;
            Ok(rows.concat())
        })
        .await
    }

    /// How the answers of a burst differ from those of the former whole burst of its lane and task class.
    pub(super) async fn changes(&self, key: SlotKey, burst: String) -> Result<Changes, StoreError> {
        self.with(move |ledger| {
            let former = ledger
                .slots(&key.campaign)?
                .into_iter()
                .filter(|row| row.key.lane == key.lane && row.key.task == key.task && row.key != key)
                .filter(|row| matches!(row.state.state.as_str(), "run" | "late"))
                .max_by_key(|row| row.state.started_unix_us)
                .and_then(|row| row.state.burst);
            let Some(former) = former else { return Ok(Changes::default()) };
            let (before, after) = (ledger.answered_by(&former)?, ledger.answered_by(&burst)?);
            let names = |rows: &[peaklane_store::AnsweredBy], fingerprint: bool| {
                let name = |row: &peaklane_store::AnsweredBy| {
                    if fingerprint { row.system_fingerprint.clone() } else { row.model.clone() }
                };
                let mut names: Vec<String> = rows.iter().filter_map(name).collect();
                names.sort();
                names.dedup();
                names
            };
            let differ = |fingerprint| {
                let (before, after) = (names(&before, fingerprint), names(&after, fingerprint));
                // where one side says nothing, nothing is known
                let new = !before.is_empty() && after.iter().any(|name| !before.contains(name));
                new.then_some((before, after))
            };
            Ok(Changes { model: differ(false), fingerprint: differ(true) })
        })
        .await
    }

    /// The worst window observed of each lane and task class of a campaign, up to a local date (inclusive).
    pub(super) async fn worst_windows(&self, campaign: String, last_date: String) -> Result<Windows, StoreError> {
        let path = self.path.clone();
        self.with(move |_| worst_windows(&path, &campaign, &last_date)).await
    }
}

/// Begin of a window, by lane and task class.
pub type Windows = BTreeMap<(String, String), String>;

/// The worst window observed of each lane and task class of a campaign, up to a local date (inclusive).
///
/// # Errors
/// What the store says.
pub fn worst_windows(path: &Path, campaign: &str, last_date: &str) -> Result<Windows, StoreError> {
    let reader = StoreReader::open(path)?;
    let mut bursts = reader.bursts(&BurstFilter::default())?;
    bursts.retain(|burst| {
        let header = &burst.header;
        header.campaign.as_deref() == Some(campaign) && header.date.as_deref().is_some_and(|d| d <= last_date)
    });
    let figures = bursts.iter().map(|burst| reader.figures(&burst.header.id)).collect::<Result<Vec<_>, _>>()?;
    let data: Vec<BurstData<'_>> = bursts
        .iter()
        .zip(&figures)
        .map(|(burst, figures)| BurstData { header: &burst.header, state: burst.state(), figures })
        .collect();
    let worst = |summary: peaklane_core::summary::LaneSummary| {
        let window = summary.worst_window()?.window.clone()?;
        Some(((summary.lane, summary.task), window))
    };
    Ok(lane_summaries(&data).into_iter().filter_map(worst).collect())
}

fn lease_until(now_unix_us: i64) -> i64 {
    now_unix_us.saturating_add(LEASE_S * 1_000_000)
}

fn beat(
    ledger: &Ledger,
    campaigns: &[String],
    holder: &str,
    mode: &str,
    state: &str,
    now: i64,
) -> Result<(), StoreError> {
    campaigns.iter().try_for_each(|campaign| {
        let body = json!({"campaign": campaign, "mode": mode, "state": state, "holder": holder, "beat_unix_us": now});
        let id = format!("{WATCHER_KIND}-{mode}-{campaign}");
        let kind = WATCHER_KIND.to_owned();
        ledger.put_document(&DocumentRow { id, kind, created_unix_us: now, body: body.to_string() }, now)
    })
}

/// Nobody will end what this row began. The lease is not looked at for a process of this machine: a clock that is put
/// forward by hours ends no burst.
fn abandoned(row: &SlotRow, me: &str, now_unix_us: i64) -> bool {
    let Some(holder) = row.holder.as_deref().filter(|holder| *holder != me) else { return false };
    match holder::fate(holder) {
        Fate::Alive => false,
        Fate::Gone => true,
        Fate::Unknown => row.lease_until_unix_us.is_none_or(|until| until < now_unix_us),
    }
}

fn plain_state(state: &str) -> SlotState {
    SlotState { state: state.to_owned(), reason: None, started_unix_us: None, late_s: None, burst: None }
}

fn whole_state(row: &SlotRow, on_time_s: u32) -> SlotState {
    let late_us = row.state.started_unix_us.map_or(0, |started| started.saturating_sub(row.due_unix_us).max(0));
    let late_s = u32::try_from(late_us / 1_000_000).unwrap_or(u32::MAX);
    if late_us <= i64::from(on_time_s) * 1_000_000 {
        plain_state("run")
    } else {
        SlotState { late_s: Some(late_s), ..plain_state("late") }
    }
}

/// A status as the store has it.
pub(super) fn state_of(status: Status, burst: Option<String>) -> SlotState {
    SlotState {
        state: status.name().to_owned(),
        reason: status.reason().map(|reason| reason.name().to_owned()),
        started_unix_us: status.started().map(Timestamp::as_microsecond),
        late_s: status.late_s(),
        burst,
    }
}

/// The status that the store has; `None` for a slot that is running.
pub fn status_of(row: &SlotRow) -> Option<Status> {
    let state = &row.state;
    let started = Timestamp::from_microsecond(state.started_unix_us.unwrap_or(row.due_unix_us)).unwrap_or_default();
    Some(match state.state.as_str() {
        "run" => Status::Run { started },
        "late" => Status::Late { started, late_s: state.late_s.unwrap_or(0) },
        "missed" => {
            let reason = state.reason.as_deref().and_then(MissedReason::from_name);
            Status::Missed(reason.unwrap_or(MissedReason::NotRunning))
        }
        "before_start" => Status::BeforeStart,
        "interrupted" => Status::Interrupted { started },
        _ => return None,
    })
}
