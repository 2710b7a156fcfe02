//! Fires one burst at one lane: warm-up apart, attempts released together, spaced, a given number at once, or one after
//! the other for a sustained stretch.

mod attempts;

use std::sync::Arc;
use std::sync::atomic::Ordering;

use peaklane_core::attempt::{AttemptRecord, Verdict};
use peaklane_core::burst::{AttemptFigures, BurstEnd, BurstHeader, BurstState};
use peaklane_core::check::Check;
use peaklane_core::summary::{BurstSummary, Reduction, summarise_reduction};
use peaklane_wire::client::{Client, Limits, Target};
use peaklane_wire::lag::LagProbe;
use peaklane_wire::request::Ask;
use peaklane_wire::retry::RetryPolicy;
use tokio::sync::watch;
use tokio::time::Instant;

use self::attempts::Shared;
use crate::recorder::{RecordError, Recorder};

/// Attempts that may be released together without a bound on concurrency: each one holds a connection.
pub const MAX_TOGETHER: u32 = 1_024;
/// Attempts whose figures are handed back one by one. Larger bursts are reduced as they go, so that memory stays flat.
pub const KEPT_FIGURES: u32 = 10_000;
/// A lane, ready to be fired at.
#[derive(Clone, Debug)]
pub struct LaneTarget {
    /// Where requests go, and the key.
    pub target: Target,
    /// What is asked, in the lane's dialect (refused parameters left out).
    pub ask: Ask,
}

/// How a burst is fired and judged. The header says the rest.
#[derive(Clone, Debug)]
pub struct BurstPlan {
    /// What the burst is; recorded as it stands.
    pub header: BurstHeader,
    /// Warm-up attempts, made one after the other before the burst.
    pub warmup: u32,
    /// Limits of each try.
    pub limits: Limits,
    /// When to try again.
    pub retry: RetryPolicy,
    /// What a right answer is.
    pub check: Check,
    /// An answer that stopped for lack of budget is judged like any other.
    pub accept_budget_stop: bool,
}

/// What happens during a burst, for progress.
#[derive(Clone, Copy, Debug)]
pub enum Event {
    /// The warm-up is over, with what the cold start took.
    Warm(AttemptFigures),
    /// The attempts are let go.
    Released,
    /// One attempt ended.
    Attempt(AttemptFigures),
}

/// A burst that was fired.
#[derive(Clone, Debug)]
pub struct Fired {
    /// What it was.
    pub header: BurstHeader,
    /// How it ended.
    pub end: BurstEnd,
    /// The numbers of the burst.
    pub summary: BurstSummary,
    /// Figures of the attempts, in order of their number; empty for a burst of more than [`KEPT_FIGURES`], whose attempts
    /// are on record.
    pub figures: Vec<AttemptFigures>,
    /// The warm-up attempts.
    pub warmup: Vec<AttemptRecord>,
    /// Median of DNS, connect and TLS together over the connections that were opened before, microseconds; `None` when
    /// they were opened inside.
    pub handshake_us: Option<u64>,
    /// Skews of the releases, microseconds: p50, p99, largest.
    pub skew_us: [u64; 3],
}

/// Asks a running burst to stop: no further attempt begins, those in flight are given up.
#[derive(Clone, Debug)]
pub struct Stop(watch::Receiver<bool>);

impl Stop {
    /// A stop and the handle that pulls it.
    pub fn pair() -> (watch::Sender<bool>, Self) {
        let (sender, receiver) = watch::channel(false);
        (sender, Self(receiver))
    }

    /// Was it pulled?
    pub fn is_pulled(&self) -> bool {
        *self.0.borrow()
    }

    /// Waits until it is pulled; for ever once nobody is left who could.
    pub async fn pulled(&mut self) {
        // A dropped handle can pull nothing any more.
        if self.0.wait_for(|stop| *stop).await.is_err() {
            std::future::pending::<()>().await;
        }
    }
}

/// Fires a burst and records it.
///
/// # Errors
/// [`RecordError`] when a record cannot be kept. What was kept before stays; the burst is marked interrupted where that
/// can still be written.
pub async fn fire(
    client: &Arc<Client>,
    lane: &LaneTarget,
    plan: &BurstPlan,
    recorder: &Recorder,
    lag: &LagProbe,
    mut stop: Stop,
    mut on: impl FnMut(Event),
) -> Result<Fired, RecordError> {
    let recording = recorder.begin(&plan.header).await?;
    let shared = Arc::new(Shared::new(client, lane, plan));
    let begun = Instant::now();
    let mut tally = Tally::of(&plan.header);
    let mut finding = None;

    for index in 0..plan.warmup {
        let record = tokio::select! {
            record = shared.attempt(index, true, None) => record,
            () = stop.pulled() => break,
        };
        let figures = AttemptFigures::from(&record);
        tally.bytes += bytes_of(&record);
        if record.verdict == Verdict::ConfigFinding {
            finding.clone_from(&record.finding);
        }
        recorder.attempt(recording, &plan.header, record.clone()).await?;
        tally.warmup.push(record);
        on(Event::Warm(figures));
    }

    // A request that the lane refuses as it is would be refused N times: nothing is learnt by sending it again.
    let mut handshake_us = None;
    let mut all_made = false;
    if finding.is_none() && !stop.is_pulled() {
        handshake_us = shared.open_connections().await;
        on(Event::Released);
        let mut running = shared.release();
        loop {
            let record = tokio::select! {
                record = running.recv() => match record {
                    Some(record) => record,
                    None => {
                        all_made = plan.header.stretch_us.is_some();
                        break;
                    }
                },
                () = stop.pulled() => break,
            };
            let figures = AttemptFigures::from(&record);
            tally.bytes += bytes_of(&record);
            tally.skews.push(u32::try_from(record.skew_us).unwrap_or(u32::MAX));
            tally.reduction.add(&figures);
            if record.verdict == Verdict::ConfigFinding && finding.is_none() {
                finding.clone_from(&record.finding);
            }
            tally.keep(record.index, figures);
            let kept = recorder.attempt(recording, &plan.header, record).await;
            if let Err(error) = kept {
                shared.given_up.store(true, Ordering::Relaxed);
                return Err(error);
            }
            on(Event::Attempt(figures));
            if finding.is_some() && plan.header.stretch_us.is_some() {
                break; // the same request would be refused for minutes
            }
        }
        shared.given_up.store(true, Ordering::Relaxed);
    }

    let mut kept = tally.figures.unwrap_or_default();
    kept.sort_unstable_by_key(|(index, _)| *index);
    tally.skews.sort_unstable();
    let state = if finding.is_some() {
        BurstState::Void
    } else if all_made || plan.header.stretch_us.is_none() && tally.reduction.made() == plan.header.attempts {
        BurstState::Complete
    } else {
        BurstState::Interrupted
    };
    let skew = |percent| rank(&tally.skews, percent).into();
    let skew_us: [u64; 3] = [skew(50), skew(99), skew(100)];
    let end = BurstEnd {
        state,
        duration_us: begun.elapsed().as_micros() as u64,
        peak_in_flight: shared.peak.load(Ordering::Relaxed),
        max_skew_us: skew_us[2],
        own_lag_us: lag.figures().unwrap_or_default(),
        body_bytes: tally.bytes,
        finding,
        control: None,
    };
    recorder.end(recording, &end).await?;
    Ok(Fired {
        header: plan.header.clone(),
        summary: summarise_reduction(&plan.header, end.state, tally.reduction),
        end,
        figures: kept.into_iter().map(|(_, f)| f).collect(),
        warmup: tally.warmup,
        handshake_us,
        skew_us,
    })
}

struct Tally {
    reduction: Reduction,
    /// `None` from the attempt on that is one too many to be kept.
    figures: Option<Vec<(u32, AttemptFigures)>>,
    warmup: Vec<AttemptRecord>,
    skews: Vec<u32>,
    bytes: u64,
}

impl Tally {
    fn of(header: &BurstHeader) -> Self {
        let figures = (header.attempts <= KEPT_FIGURES).then(Vec::new);
        Self { reduction: Reduction::of(header), figures, warmup: Vec::new(), skews: Vec::new(), bytes: 0 }
    }

    fn keep(&mut self, index: u32, figures: AttemptFigures) {
        self.figures = self.figures.take().filter(|kept| kept.len() < KEPT_FIGURES as usize);
        if let Some(kept) = &mut self.figures {
            kept.push((index, figures));
        }
    }
}

fn bytes_of(record: &AttemptRecord) -> u64 {
    record.tries.iter().map(|t| t.body_bytes).sum()
}

/// Nearest rank of ascending values; 0 without any.
fn rank<T: Copy + Default>(sorted: &[T], percent: usize) -> T {
    let at = (sorted.len() * percent).div_ceil(100).max(1) - 1;
    sorted.get(at).copied().unwrap_or_default()
}

/// Runs futures side by side and gives their results in order.
pub(crate) async fn join_all<F: Future>(futures: impl Iterator<Item = F>) -> Vec<F::Output> {
    let mut waiting: Vec<_> = futures.map(|f| (Box::pin(f), None)).collect();
    std::future::poll_fn(|cx| {
        let mut all = true;
        for (future, result) in &mut waiting {
            if result.is_none() {
                match future.as_mut().poll(cx) {
                    std::task::Poll::Ready(value) => *result = Some(value),
                    std::task::Poll::Pending => all = false,
                }
            }
        }
        if all { std::task::Poll::Ready(()) } else { std::task::Poll::Pending }
    })
    .await;
    waiting.into_iter().filter_map(|(_, result)| result).collect()
}
