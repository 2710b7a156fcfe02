//! The loop: read the clocks, settle what is over, begin what is due, nap.

use std::collections::BTreeMap;
use std::future::Future;
use std::pin::Pin;
use std::time::Duration;

use jiff::Timestamp;
use peaklane_core::budget::{Exceeded, Used};
use peaklane_core::burst::BurstState;
use peaklane_core::config::LaneOrder;
use peaklane_core::watch::{Note, Shortly};
use peaklane_core::window::runtime::{
    DUE_ON_TIME_S, Decision, MAX_NAP, MissedReason, Next, ON_TIME_S, Past, Policy, Status,
};
use peaklane_store::{Claim, SlotKey};
use tokio::sync::watch;

use super::desk::{Desk, Largest};
use super::keep::{Keeper, LEASE_S, SIGN_OF_LIFE_S, state_of, status_of};
use super::track::{Order, Track};
use super::wall::WallClock;
use super::{Ended, Gun, Hear, Misfire, Plan, WatchError};
use crate::burst::{Stop, join_all};

mod begin;
mod open;
mod settle;

/// Tries to write what is left before the end, a nap apart.
const LAST_WRITES: u32 = 3;

type Volleys = Vec<(usize, Order, Result<Shortly, Misfire>)>;

/// Bursts under way: one, or all lanes of a window.
struct Volley<'g> {
    keys: Vec<(usize, SlotKey)>,
    pull: watch::Sender<bool>,
    why: &'static str,
    future: Pin<Box<dyn Future<Output = Volleys> + 'g>>,
    /// Ends with the volley.
    _lease: tokio::task::JoinSet<()>,
}

/// Watches until all campaigns are over, somebody asks to stop, or (with `due`) nothing more is due now.
///
/// A lane that fails is a recorded result. A store that cannot be written is told and waited for.
///
/// # Errors
/// [`WatchError`] when the store cannot be opened at the begin, or a plan cannot be made.
pub async fn watch<C, G>(
    plan: &Plan,
    clock: &C,
    gun: &G,
    keeper: &Keeper,
    stop: Stop,
    hear: impl Hear,
) -> Result<Ended, WatchError>
where
    C: WallClock + Clone + Send + Sync + 'static,
    G: Gun,
{
    let mut desk = Desk::new(keeper, hear);
    let on_time_s = if plan.due { DUE_ON_TIME_S } else { ON_TIME_S };
    let opened = open::open(plan, clock, &mut desk, on_time_s).await?;
    let tracks = match opened {
        open::Opened::Over(ended) => return Ok(ended),
        open::Opened::Tracks(tracks) => tracks,
    };
    let mut watcher = Watcher {
        plan,
        clock,
        gun,
        desk,
        tracks,
        on_time_s,
        mode: if plan.due { "due" } else { "stay" },
        beaten: None,
        another: None,
        told_next: false,
    };
    watcher.run(stop).await
}

struct Watcher<'a, C, G, H: Hear> {
    plan: &'a Plan,
    clock: &'a C,
    gun: &'a G,
    desk: Desk<'a, H>,
    tracks: Vec<Track>,
    on_time_s: u32,
    mode: &'static str,
    /// When the last sign of life was left, by the clock that never steps.
    beaten: Option<Duration>,
    /// The burst of another watcher that was told.
    another: Option<SlotKey>,
    told_next: bool,
}

impl<'a, C, G, H> Watcher<'a, C, G, H>
where
    C: WallClock + Clone + Send + Sync + 'static,
    G: Gun,
    H: Hear,
{
    async fn run(&mut self, mut stop: Stop) -> Result<Ended, WatchError> {
        let mut volley: Option<Volley<'a>> = None;
        let mut asked = stop.is_pulled();
        loop {
            let Looked { due, next, done } = self.look(volley.as_mut());
            if volley.is_none() {
                if asked {
                    return Ok(self.end(Ended::Stopped).await);
                }
                match self.between_bursts(due, &done).await? {
                    Began::Volley(begun) => volley = Some(begun),
                    Began::Again => continue,
                    Began::Nothing => {}
                    Began::Ended(ended) => return Ok(ended),
                }
            }
            // Something that is due and could not begin is tried again at the next reading.
            let nap = next.filter(|nap| !nap.is_zero()).unwrap_or(MAX_NAP);
            let burst = async {
                match &mut volley {
                    Some(volley) => volley.future.as_mut().await,
                    None => std::future::pending().await,
                }
            };
            let ended = tokio::select! {
                biased;
                volleys = burst => Some(volleys),
                () = stop.pulled(), if !asked => { asked = true; None }
                () = self.clock.nap(nap) => None,
            };
            if let Some(volleys) = ended {
                let why = volley.take().map_or("", |volley| volley.why);
                self.ended(volleys, why).await;
            } else if let Some(volley) = volley.as_mut().filter(|_| asked) {
                volley.pull("stopped");
            }
        }
    }

    /// Reads the clocks and asks every track what is due and what is over.
    fn look(&mut self, mut volley: Option<&mut Volley<'a>>) -> Looked {
        let reading = self.clock.read();
        self.desk.notice(reading);
        let mut looked = Looked { due: Vec::new(), next: None, done: Vec::new() };
        for at in 0..self.tracks.len() {
            let step = self.tracks[at].runtime.tick(reading);
            self.over(at, &step.decisions, reading.wall, volley.as_deref_mut());
            looked.due.extend(step.decisions.into_iter().filter_map(|decision| match decision {
                Decision::Due { key, .. } => Some((at, key)),
                Decision::Settled { .. } => None,
            }));
            match step.next {
                Next::Wait { nap, .. } => looked.next = Some(looked.next.map_or(nap, |next| next.min(nap))),
                Next::Done => looked.done.push(at),
            }
        }
        looked
    }

    /// Writes what waits, looks at what others do, and begins what is due.
    async fn between_bursts(&mut self, due: Vec<(usize, SlotKey)>, done: &[usize]) -> Result<Began<'a>, WatchError> {
        let reading = self.clock.read();
        let now = reading.wall;
        self.desk.flush(now).await;
        self.look_at_others(now).await;
        self.leave_a_sign(reading.awake, now).await;
        if !due.is_empty() {
            if let Some(ended) = self.stopped_by_others(now).await {
                return Ok(Began::Ended(ended));
            }
            if self.tracks.iter().all(|track| track.elsewhere.is_empty()) {
                match self.begin(due).await {
                    Began::Nothing => {}
                    began => return Ok(began),
                }
            }
        } else if self.go_on(done, now).await? {
            return Ok(Began::Again);
        } else if self.tracks.iter().all(|track| track.finished) {
            return Ok(Began::Ended(self.end(Ended::Finished).await));
        }
        if self.plan.due && !self.desk.has_unwritten() && !self.waits_for_the_store(now) {
            return Ok(Began::Ended(self.end(Ended::NothingDue).await));
        }
        self.tell_next(now);
        Ok(Began::Nothing)
    }

    /// True while something that is due waits, and not for another watcher, which will see to it.
    fn waits_for_the_store(&self, now: Timestamp) -> bool {
        let free = self.tracks.iter().all(|track| track.elsewhere.is_empty());
        free && self.tracks.iter().any(|track| track.runtime.pending().any(|slot| slot.at <= now))
    }

    /// Plans what goes on after campaigns whose bursts are over; true when there is something new to look at.
    async fn go_on(&mut self, done: &[usize], now: Timestamp) -> Result<bool, WatchError> {
        let mut planned = false;
        for at in done {
            let track = &mut self.tracks[*at];
            if track.finished || !track.elsewhere.is_empty() {
                continue;
            }
            let name = track.name.clone();
            let first = track.after.is_none();
            let worst = if first && track.locked.campaign.declared_peak().is_none() {
                let (campaign, last) = (name.campaign.clone(), track.dates.1.to_string());
                let found = self.desk.keeper.worst_windows(campaign, last).await;
                let Some(worst) = self.desk.read(found) else { continue };
                worst
            } else {
                BTreeMap::new()
            };
            let track = &mut self.tracks[*at];
            if track.extend(&worst)? {
                planned = true;
                self.told_next = false;
                if first {
                    let mut windows: Vec<String> =
                        track.after.iter().flat_map(BTreeMap::values).map(ToString::to_string).collect();
                    windows.sort();
                    windows.dedup();
                    self.desk.tell(now, &Note::AfterCampaign { name, windows });
                }
            } else {
                track.finished = true;
                // Lanes that joined are tracks of their own of the same campaign.
                if self.tracks.iter().all(|track| track.finished || track.name != name) {
                    self.desk.tell(now, &Note::Finished { name });
                }
            }
        }
        Ok(planned)
    }

    fn campaigns(&self) -> Vec<String> {
        let mut ids: Vec<String> = self.tracks.iter().map(|track| track.name.campaign.clone()).collect();
        ids.dedup();
        ids
    }

    /// Tells what is next, once after each change.
    fn tell_next(&mut self, now: Timestamp) {
        if !std::mem::replace(&mut self.told_next, true) {
            let next = self.tracks.iter().flat_map(|track| track.next(now)).collect();
            self.desk.tell(now, &Note::Next { next });
        }
    }

    /// The last words, and the last tries to write what is left.
    async fn end(&mut self, ended: Ended) -> Ended {
        let mut now = self.clock.read().wall;
        if ended == Ended::Stopped {
            self.desk.tell(now, &Note::Interrupted);
        }
        if matches!(ended, Ended::Stopped | Ended::NothingDue) {
            self.told_next = false;
            self.tell_next(now);
        }
        for _ in 0..LAST_WRITES {
            self.desk.flush(now).await;
            if !self.desk.has_unwritten() {
                break;
            }
            self.clock.nap(MAX_NAP).await;
            now = self.clock.read().wall;
        }
        let state = match ended {
            Ended::Finished => "finished",
            Ended::NothingDue => "watching",
            _ => "stopped",
        };
        let beaten = self.desk.keeper.beat(now, self.campaigns(), self.mode, state).await;
        self.desk.ok(beaten);
        ended
    }

    async fn leave_a_sign(&mut self, awake: Duration, now: Timestamp) {
        if self.beaten.is_none_or(|last| awake.saturating_sub(last) >= Duration::from_secs(SIGN_OF_LIFE_S)) {
            let beaten = self.desk.keeper.beat(now, self.campaigns(), self.mode, "watching").await;
            if self.desk.ok(beaten).is_some() {
                self.beaten = Some(awake);
            }
        }
    }
}

/// What one reading of the clocks brought.
struct Looked {
    due: Vec<(usize, SlotKey)>,
    /// Time to the next burst, at most one nap; `None` when none is left.
    next: Option<Duration>,
    /// Tracks of which all bursts are over.
    done: Vec<usize>,
}

/// What came of beginning.
enum Began<'g> {
    /// Bursts run.
    Volley(Volley<'g>),
    /// Something was learnt: look again at once.
    Again,
    /// Nothing is due, or it cannot begin now.
    Nothing,
    /// It is over.
    Ended(Ended),
}

impl Volley<'_> {
    /// Asks the bursts to stop; the first reason stands.
    fn pull(&mut self, why: &'static str) {
        if self.why.is_empty() {
            self.why = why;
            self.pull.send_replace(true);
        }
    }
}
