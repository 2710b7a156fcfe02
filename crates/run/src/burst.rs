//! Fires one burst at one lane: warm-up apart, attempts released together, spaced or a given number at once.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::time::Duration;

use bytes::Bytes;
use peaklane_core::attempt::{AttemptRecord, Verdict};
use peaklane_core::burst::{AttemptFigures, BurstEnd, BurstHeader, BurstState, Connections, PromptMode};
use peaklane_core::check::{AttemptEnd, Check, judge_attempt};
use peaklane_core::outcome::Outcome;
use peaklane_core::record::TryRecord;
use peaklane_core::summary::{BurstSummary, Reduction, summarise_reduction};
use peaklane_wire::client::{Client, Limits, Target};
use peaklane_wire::lag::LagProbe;
use peaklane_wire::request::{Ask, BodyTemplate};
use peaklane_wire::retry::{Attempted, RetryPolicy, attempt};
use rand::{RngExt, SeedableRng};
use rand_chacha::ChaCha8Rng;
use tokio::sync::watch;
use tokio::time::Instant;

use crate::clock::Anchor;
use crate::nonce;
use crate::recorder::{RecordError, Recorder};

/// Attempts that may be released together without a bound on concurrency: each one holds a connection.
pub const MAX_TOGETHER: u32 = 1_024;
/// Attempts whose figures are handed back one by one. Larger bursts are reduced as they go, so that memory stays flat.
pub const KEPT_FIGURES: u32 = 10_000;
/// From "everything is prepared" to the intended release: time for the last task to reach its mark.
const LEAD: Duration = Duration::from_millis(20);
/// The same after many connections were opened at once: the accepting side needs time to come to rest, and a request sent
/// before that would measure its backlog of handshakes.
const SETTLE: Duration = Duration::from_millis(100);
/// From how many connections on.
const SETTLE_FROM: u32 = 64;
/// Between the first attempts of the slots of a closed loop. Let go at one instant they would stay a wave that arrives all at
/// once, again and again; a burst that is meant to arrive at once has no `concurrency`.
const RAMP: Duration = Duration::from_micros(50);
/// Longest pause of a slot of a closed loop between two attempts, until it is known whether the lane keeps its connections.
/// Some servers close them after each answer and do not say so beforehand; a request that is sent at that very moment is
/// lost, and the lane would be blamed for a retry.
const PAUSE: Duration = Duration::from_millis(20);
/// What part of the last attempt's latency the pause is at most, so that it hardly changes the load ...
const PAUSE_PART: u32 = 4;
/// ... and below what there is none: lanes that answer this fast are not language models, and the loop is to run flat out.
const PAUSE_FROM: Duration = Duration::from_millis(2);
/// The timer has a grain of 1 ms and rounds up. The last stretch before a release is waited out by yielding.
const FINE_STRETCH: Duration = Duration::from_millis(3);
/// Most yields of that stretch; on a paused clock (tests) yielding never gets anywhere, so the timer takes over.
const MAX_YIELDS: u32 = 20_000;

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

    async fn pulled(&mut self) {
        // A dropped handle can pull nothing any more.
        if self.0.wait_for(|stop| *stop).await.is_err() {
            std::future::pending::<()>().await;
        }
    }
}

struct Shared {
    client: Arc<Client>,
    lane: LaneTarget,
    plan: BurstPlan,
    bodies: Bodies,
    anchor: Anchor,
    in_flight: AtomicU32,
    peak: AtomicU32,
    next: AtomicU32,
    given_up: AtomicBool,
}

enum Bodies {
    Same(Bytes),
    Nonce(BodyTemplate),
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
    let shared = Arc::new(Shared {
        client: Arc::clone(client),
        lane: lane.clone(),
        bodies: match plan.header.prompt_mode {
            PromptMode::Identical => Bodies::Same(lane.ask.body(plan.header.api)),
            PromptMode::Nonce => Bodies::Nonce(lane.ask.template(plan.header.api)),
        },
        plan: plan.clone(),
        anchor: Anchor::now(),
        in_flight: AtomicU32::new(0),
        peak: AtomicU32::new(0),
        next: AtomicU32::new(0),
        given_up: AtomicBool::new(false),
    });
    let begun = Instant::now();
    let mut tally = Tally::default();
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
    if finding.is_none() && !stop.is_pulled() {
        handshake_us = shared.open_connections().await;
        on(Event::Released);
        let mut running = shared.release();
        loop {
            let record = tokio::select! {
                record = running.recv() => match record {
                    Some(record) => record,
                    None => break,
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
            if plan.header.attempts <= KEPT_FIGURES {
                tally.figures.push((record.index, figures));
            }
            let kept = recorder.attempt(recording, &plan.header, record).await;
            if let Err(error) = kept {
                shared.given_up.store(true, Ordering::Relaxed);
                return Err(error);
            }
            on(Event::Attempt(figures));
        }
        shared.given_up.store(true, Ordering::Relaxed);
    }

    tally.figures.sort_unstable_by_key(|(index, _)| *index);
    tally.skews.sort_unstable();
    let state = if finding.is_some() {
        BurstState::Void
    } else if tally.reduction.made() == plan.header.attempts {
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
        figures: tally.figures.into_iter().map(|(_, f)| f).collect(),
        warmup: tally.warmup,
        handshake_us,
        skew_us,
    })
}

#[derive(Default)]
struct Tally {
    reduction: Reduction,
    figures: Vec<(u32, AttemptFigures)>,
    warmup: Vec<AttemptRecord>,
    skews: Vec<u32>,
    bytes: u64,
}

fn bytes_of(record: &AttemptRecord) -> u64 {
    record.tries.iter().map(|t| t.body_bytes).sum()
}

/// Nearest rank of ascending values; 0 without any.
fn rank<T: Copy + Default>(sorted: &[T], percent: usize) -> T {
    let at = (sorted.len() * percent).div_ceil(100).max(1) - 1;
    sorted.get(at).copied().unwrap_or_default()
}

impl Shared {
    fn workers(&self) -> u32 {
        self.plan.header.concurrency.unwrap_or(u32::MAX).min(self.plan.header.attempts)
    }

    /// Opens the connections of the burst. A lane that takes none is found out by the attempts, with their class.
    async fn open_connections(&self) -> Option<u64> {
        if self.plan.header.connections != Connections::Before {
            return None;
        }
        let limit = self.plan.limits.total;
        let mut took: Vec<u64> = Vec::new();
        let mut opened = self.client.idle_connections(&self.lane.target.endpoint);
        while opened < self.workers() as usize {
            // A few at a time: a backlog of a thousand SYNs would be refused by many servers.
            let batch = (self.workers() as usize - opened).min(32);
            let opening = (0..batch).map(|_| self.client.open(&self.lane.target.endpoint, limit));
            let mut failed = false;
            for result in join_all(opening).await {
                match result {
                    Ok(handshake) => {
                        opened += 1;
                        took.push(
                            [handshake.dns_us, handshake.connect_us, handshake.tls_us].into_iter().flatten().sum(),
                        );
                    }
                    Err(_) => failed = true,
                }
            }
            if failed {
                break;
            }
        }
        took.sort_unstable();
        (!took.is_empty()).then(|| rank(&took, 50))
    }

    /// Starts the workers. The channel ends when all attempts are made.
    fn release(self: &Arc<Self>) -> Running {
        let (sender, receiver) = tokio::sync::mpsc::channel(64);
        let opened = self.plan.header.connections == Connections::Before && self.workers() >= SETTLE_FROM;
        let zero = Instant::now() + if opened { SETTLE } else { LEAD };
        let spacing = Duration::from_micros(self.plan.header.spacing_us);
        let closed_loop = self.plan.header.concurrency.is_some() && spacing.is_zero();
        let mut tasks = tokio::task::JoinSet::new();
        for slot in 0..self.workers() {
            let shared = Arc::clone(self);
            let sender = sender.clone();
            tasks.spawn(async move {
                let mut freed = zero + if closed_loop { RAMP.saturating_mul(slot) } else { Duration::ZERO };
                loop {
                    let index = shared.next.fetch_add(1, Ordering::Relaxed);
                    if index >= shared.plan.header.attempts || shared.given_up.load(Ordering::Relaxed) {
                        return;
                    }
                    // In a closed loop an attempt is due when its slot became free; otherwise by the schedule, also
                    // when no slot was free then: the wait is part of what a user would feel.
                    let intended = if closed_loop { freed } else { zero + spacing.saturating_mul(index) };
                    let record = shared.attempt(index, false, Some(intended)).await;
                    let known = shared.client.keeps_connections(&shared.lane.target.endpoint).is_some();
                    let rest = if known { Duration::ZERO } else { pause(Duration::from_micros(record.latency_us)) };
                    freed = Instant::now() + rest;
                    if sender.send(record).await.is_err() {
                        return;
                    }
                }
            });
        }
        Running { receiver, _tasks: tasks }
    }

    async fn attempt(&self, index: u32, warmup: bool, intended: Option<Instant>) -> AttemptRecord {
        let header = &self.plan.header;
        let number = if warmup { u64::MAX - u64::from(index) } else { u64::from(index) };
        let body = match &self.bodies {
            Bodies::Same(body) => body.clone(),
            Bodies::Nonce(template) => template.with(&nonce::text(header.seed, &header.run, number)),
        };
        let id = format!("{}-{}{index}", header.id, if warmup { "w" } else { "" });
        let mut dice = ChaCha8Rng::seed_from_u64(nonce::number(header.seed, &header.id, number));
        let intended = match intended {
            Some(at) => {
                wait_until(at).await;
                at
            }
            None => Instant::now(),
        };
        let now_flying = self.in_flight.fetch_add(1, Ordering::Relaxed) + 1;
        self.peak.fetch_max(now_flying, Ordering::Relaxed);
        let attempted =
            attempt(&self.client, &self.lane.target, &body, Some(&id), &self.plan.limits, &self.plan.retry, || {
                dice.random::<f64>()
            })
            .await;
        self.in_flight.fetch_sub(1, Ordering::Relaxed);
        self.record(index, warmup, intended, attempted)
    }

    fn record(&self, index: u32, warmup: bool, intended: Instant, attempted: Attempted) -> AttemptRecord {
        let micros = |at: Instant| at.saturating_duration_since(intended).as_micros() as u64;
        let latency_us = micros(attempted.ended());
        let skew_us = attempted.tries.first().map_or(0, |t| micros(t.began));
        let token = |pick: fn(&TryRecord) -> Option<u64>| {
            let last = attempted.tries.last()?;
            Some(micros(last.zero) + pick(&last.record)?)
        };
        let (ttft_us, first_answer_us) = (token(|t| t.ttft_us), token(|t| t.first_answer_us));
        let tries: Vec<TryRecord> = attempted.tries.into_iter().map(|t| t.record).collect();
        let retries = tries.len().saturating_sub(1) as u32;
        let last = tries.last().cloned().unwrap_or_else(|| TryRecord::new(Outcome::Unreachable));
        let judged = judge_attempt(
            &AttemptEnd {
                outcome: last.outcome,
                latency_us,
                floor_us: self.plan.header.floor_us,
                finish_reason: last.finish_reason.as_deref(),
                http_status: last.http_status,
                message: last.message.as_deref(),
                answer: &last.content,
                tool_calls: &last.tool_calls,
                accept_budget_stop: self.plan.accept_budget_stop,
            },
            &self.plan.check,
        );
        AttemptRecord {
            index,
            warmup,
            intended_unix_us: self.anchor.unix_us(intended),
            skew_us,
            latency_us,
            verdict: judged.verdict,
            outcome: last.outcome,
            retries,
            ttft_us,
            first_answer_us,
            finding: judged.finding.map(|f| f.to_string()),
            check_note: judged.check_note,
            tries,
        }
    }
}

/// Attempts in flight; dropping it gives them up.
struct Running {
    receiver: tokio::sync::mpsc::Receiver<AttemptRecord>,
    _tasks: tokio::task::JoinSet<()>,
}

impl Running {
    async fn recv(&mut self) -> Option<AttemptRecord> {
        self.receiver.recv().await
    }
}

/// How long a slot of a closed loop rests after an attempt of that latency. It is in no attempt's latency.
fn pause(latency: Duration) -> Duration {
    let part = (latency / PAUSE_PART).min(PAUSE);
    if part < PAUSE_FROM { Duration::ZERO } else { part }
}

/// Waits until a moment, finer than the timer's grain.
async fn wait_until(at: Instant) {
    if let Some(early) = at.checked_sub(FINE_STRETCH) {
        tokio::time::sleep_until(early).await;
    }
    for _ in 0..MAX_YIELDS {
        if Instant::now() >= at {
            return;
        }
        tokio::task::yield_now().await;
    }
    tokio::time::sleep_until(at).await;
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
