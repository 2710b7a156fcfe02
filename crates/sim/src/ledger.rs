//! Who is who within a burst: numbers requests by the bytes of their prompt.
//!
//! A real lane needs no special header, so a simulated one must not either. A new prompt is a new attempt and gets the
//! next slot; the prompt of an attempt that failed, sent again, is its retry. What a slot gets is fixed by the seed, so
//! the fates of a burst are the same whichever attempt arrives first. (With identical prompts, an attempt that starts
//! while another one's failure is unanswered counts as that one's retry: nobody could tell them apart.)

use std::collections::HashMap;

use crate::script::{Moment, Ticket};

/// A prompt's failures that wait for their retry: at most this many prompts are remembered, so that a lane that is
/// hammered for days does not grow. More than any burst has attempts.
const MOST_FAILURES: usize = 65_536;

/// The book of one lane.
#[derive(Debug, Default)]
pub(crate) struct Ledger {
    moment: Moment,
    generation: u64,
    next_slot: u32,
    warm: bool,
    failed: HashMap<u64, Vec<(u32, u32)>>,
}

/// A request that was let in, with what is needed to book its end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Admission {
    pub(crate) ticket: Ticket,
    prompt: u64,
    generation: u64,
}

impl Ledger {
    /// Begins a moment: slots count from 0 again, the model is cold. Requests still under way are forgotten.
    pub(crate) fn begin(&mut self, moment: Moment) {
        *self = Self { moment, generation: self.generation + 1, ..Self::default() };
    }

    /// Numbers a request by the fingerprint of its prompt.
    pub(crate) fn admit(&mut self, prompt: u64) -> Admission {
        let (slot, retry) = match self.take_failure(prompt) {
            Some((slot, retry)) => (slot, retry.saturating_add(1)),
            None => {
                let slot = self.next_slot;
                self.next_slot = slot.saturating_add(1);
                (slot, 0)
            }
        };
        let ticket = Ticket { moment: self.moment, slot, retry, warm: self.warm };
        Admission { ticket, prompt, generation: self.generation }
    }

    /// Books that a request got a whole answer, or not: then the same prompt coming again is its retry.
    pub(crate) fn ended(&mut self, admission: Admission, whole: bool) {
        if admission.generation != self.generation {
            return;
        }
        if whole {
            self.warm = true;
        } else if self.failed.len() < MOST_FAILURES {
            let Ticket { slot, retry, .. } = admission.ticket;
            self.failed.entry(admission.prompt).or_default().push((slot, retry));
        }
    }

    fn take_failure(&mut self, prompt: u64) -> Option<(u32, u32)> {
        let waiting = self.failed.get_mut(&prompt)?;
        // The lowest slot first: with identical prompts the order of the failures must not matter.
        let first = waiting.iter().enumerate().min_by_key(|(_, failure)| **failure).map(|(at, _)| at)?;
        let failure = waiting.swap_remove(first);
        if waiting.is_empty() {
            self.failed.remove(&prompt);
        }
        Some(failure)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn place(admission: Admission) -> (u32, u32) {
        (admission.ticket.slot, admission.ticket.retry)
    }

    #[test]
    fn the_same_prompt_after_a_failure_is_a_retry_of_the_same_attempt() {
        let mut book = Ledger::default();
        let a = book.admit(11);
        let b = book.admit(22);
        book.ended(b, false);
        book.ended(a, false);
        let b2 = book.admit(22);
        assert_eq!((place(a), place(b), place(b2)), ((0, 0), (1, 0), (1, 1)));
        book.ended(b2, false);
        assert_eq!(place(book.admit(22)), (1, 2));
        assert_eq!(place(book.admit(11)), (0, 1));
    }

    #[test]
    fn the_same_prompt_after_a_whole_answer_is_a_new_attempt_at_a_warm_lane() {
        let mut book = Ledger::default();
        let first = book.admit(11);
        assert!(!first.ticket.warm);
        book.ended(first, true);
        let second = book.admit(11);
        assert_eq!(place(second), (1, 0));
        assert!(second.ticket.warm);
    }

    #[test]
    fn a_request_of_an_earlier_moment_leaves_no_trace_in_the_next() {
        let mut book = Ledger::default();
        let old = book.admit(11);
        book.begin(Moment::new(0, 16, 0).unwrap());
        book.ended(old, false);
        let new = book.admit(11);
        assert_eq!(place(new), (0, 0));
        assert_eq!(new.ticket.moment, Moment::new(0, 16, 0).unwrap());
    }
}
