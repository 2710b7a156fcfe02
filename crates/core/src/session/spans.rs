//! Where the time of a session went: the model's, the queue's, the harness's own.

use serde::Serialize;

use crate::call::CallRecord;

/// The time of a session, microseconds. The parts add up to the whole.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Split {
    /// From the first byte of the first request to the last byte of the last answer.
    pub wall_us: u64,
    /// A model was generating: from the first token of a call to its last byte.
    pub model_us: u64,
    /// A call waited for its first token: sending, queueing and prefill.
    pub waiting_us: u64,
    /// No call was under way: the harness worked, or its user thought.
    pub harness_us: u64,
}

/// Splits the time that calls span. Where several are under way at once, generating goes before waiting, and each moment
/// counts once.
pub fn split(calls: &[&CallRecord]) -> Split {
    // Edges of the two sorts of spans, in order of time: +1 at a begin, -1 at an end.
    let mut edges: Vec<(i64, i32, i32)> = Vec::with_capacity(4 * calls.len());
    for call in calls {
        let after = |us: u64| call.started_unix_us.saturating_add(i64::try_from(us).unwrap_or(i64::MAX));
        let end = after(call.total_us);
        let first = call.record.ttft_us.map_or(end, |us| after(call.sent_us.saturating_add(us)).min(end));
        edges.extend([(call.started_unix_us, 0, 1), (first, 0, -1), (first, 1, 0), (end, -1, 0)]);
    }
    edges.sort_unstable();
    let mut split = Split::default();
    let (mut generating, mut waiting) = (0, 0);
    let mut before = edges.first().map_or(0, |e| e.0);
    for (at, model, wait) in edges {
        let span = at.saturating_sub(before).unsigned_abs();
        split.wall_us += span;
        match (generating > 0, waiting > 0) {
            (true, _) => split.model_us += span,
            (false, true) => split.waiting_us += span,
            (false, false) => split.harness_us += span,
        }
        (generating, waiting, before) = (generating + model, waiting + wait, at);
    }
    split
}
