//! The attempts of a burst: when each is let go, and what came of it.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::time::Duration;

use bytes::Bytes;
use peaklane_core::attempt::{AttemptRecord, Verdict};
use peaklane_core::burst::{Connections, FAILED_REST_US, PromptMode};
use peaklane_core::check::{AttemptEnd, judge_attempt};
use peaklane_core::outcome::Outcome;
use peaklane_core::record::TryRecord;
use peaklane_wire::client::Client;
use peaklane_wire::request::BodyTemplate;
use peaklane_wire::retry::{Attempted, attempt};
use rand::{RngExt, SeedableRng};
use rand_chacha::ChaCha8Rng;
use tokio::time::Instant;

use super::{BurstPlan, LaneTarget, join_all, rank};
use crate::clock::Anchor;
use crate::nonce;

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
/// What [`FAILED_REST_US`] says.
const FAILED_REST: Duration = Duration::from_micros(FAILED_REST_US);
/// The timer has a grain of 1 ms and rounds up. The last stretch before a release is waited out by yielding.
const FINE_STRETCH: Duration = Duration::from_millis(3);
/// Most yields of that stretch; on a paused clock (tests) yielding never gets anywhere, so the timer takes over.
const MAX_YIELDS: u32 = 20_000;

/// What all attempts of a burst share.
pub(super) struct Shared {
    client: Arc<Client>,
    lane: LaneTarget,
    plan: BurstPlan,
    bodies: Bodies,
    anchor: Anchor,
    in_flight: AtomicU32,
    pub(super) peak: AtomicU32,
    next: AtomicU32,
    pub(super) given_up: AtomicBool,
}

enum Bodies {
    Same(Bytes),
    Nonce(BodyTemplate),
}

impl Shared {
    pub(super) fn new(client: &Arc<Client>, lane: &LaneTarget, plan: &BurstPlan) -> Self {
        Self {
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
        }
    }

    /// Slots that make attempts side by side.
    fn workers(&self) -> u32 {
        let header = &self.plan.header;
        match header.stretch_us {
            Some(_) => header.concurrency.unwrap_or(1),
            None => header.concurrency.unwrap_or(u32::MAX).min(header.attempts),
        }
    }

    /// Opens the connections of the burst. A lane that takes none is found out by the attempts, with their class.
    pub(super) async fn open_connections(&self) -> Option<u64> {
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

    /// Starts the workers. The channel ends when all attempts are made: their number, or in a stretch those that were begun
    /// before its end.
    pub(super) fn release(self: &Arc<Self>) -> Running {
        let (sender, receiver) = tokio::sync::mpsc::channel(64);
        let opened = self.plan.header.connections == Connections::Before && self.workers() >= SETTLE_FROM;
        let zero = Instant::now() + if opened { SETTLE } else { LEAD };
        let spacing = Duration::from_micros(self.plan.header.spacing_us);
        let closed_loop = self.plan.header.concurrency.is_some() && spacing.is_zero();
        let ends = self.plan.header.stretch_us.map(|us| zero + Duration::from_micros(us));
        let last = if ends.is_some() { u32::MAX } else { self.plan.header.attempts };
        let mut tasks = tokio::task::JoinSet::new();
        for slot in 0..self.workers() {
            let shared = Arc::clone(self);
            let sender = sender.clone();
            tasks.spawn(async move {
                let mut freed = zero + if closed_loop { RAMP.saturating_mul(slot) } else { Duration::ZERO };
                loop {
                    if ends.is_some_and(|end| freed >= end) {
                        return;
                    }
                    let index = shared.next.fetch_add(1, Ordering::Relaxed);
                    if index >= last || shared.given_up.load(Ordering::Relaxed) {
                        return;
                    }
                    // In a closed loop an attempt is due when its slot became free; otherwise by the schedule, also
                    // when no slot was free then: the wait is part of what a user would feel.
                    let intended = if closed_loop { freed } else { zero + spacing.saturating_mul(index) };
                    let record = shared.attempt(index, false, Some(intended)).await;
                    let known = shared.client.keeps_connections(&shared.lane.target.endpoint).is_some();
                    let rest = if known { Duration::ZERO } else { pause(Duration::from_micros(record.latency_us)) };
                    freed = Instant::now() + rest;
                    if ends.is_some() && record.verdict == Verdict::Failed {
                        freed = freed.max(intended + FAILED_REST);
                    }
                    if sender.send(record).await.is_err() {
                        return;
                    }
                }
            });
        }
        Running { receiver, _tasks: tasks }
    }

    pub(super) async fn attempt(&self, index: u32, warmup: bool, intended: Option<Instant>) -> AttemptRecord {
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
pub(super) struct Running {
    receiver: tokio::sync::mpsc::Receiver<AttemptRecord>,
    _tasks: tokio::task::JoinSet<()>,
}

impl Running {
    pub(super) async fn recv(&mut self) -> Option<AttemptRecord> {
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
