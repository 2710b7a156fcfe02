//! What has changed since the begin: nothing, the one thing, or too much.

use super::snapshot::{Change, KeyChange, Snapshot};
use super::{Registered, Seen};

/// Things that all lanes of a task class share.
const SHARED: [&str; 6] = ["prompt", "system", "max_tokens", "temperature", "retry", "timeouts"];

/// The lanes as the configuration has them now; `None` for one that it no longer has.
#[derive(Clone, Debug)]
pub struct Now {
    /// The lane that is changed.
    pub tested: Option<Snapshot>,
    /// The lane that the class moves to.
    pub target: Option<Snapshot>,
    /// The lane beside.
    pub unchanged: Option<Snapshot>,
}

/// What a look at the configuration found.
#[derive(Clone, Debug, PartialEq)]
pub enum Notice {
    /// Everything is as it was at the begin.
    Nothing,
    /// Exactly one thing has changed, as it should be. A move to another lane is always this.
    One(Change),
    /// No counter-test.
    Refused(Refusal),
}

/// Why what was found cannot be judged.
#[derive(Clone, Debug, PartialEq)]
pub enum Refusal {
    /// More than one thing.
    Several(Vec<Change>),
    /// Something that both sides are measured and judged by.
    Thawed(Vec<KeyChange>),
    /// The lane beside is no longer what it was.
    Beside(Vec<Change>),
    /// The configuration has lost a lane or the task class.
    Gone(String),
}

impl Registered {
    /// Compares the configuration with the begin. One change that was not seen before is noted with this moment; while there
    /// are several, nothing that runs counts. `true` when the registration changed and is to be stored.
    pub fn notice(&mut self, now: &Now, now_unix_us: i64) -> (Notice, bool) {
        let (notice, shares) = self.compare(now);
        let former = self.clone();
        match (&notice, &now.tested) {
            (Notice::One(change), Some(after)) if self.to.is_none() => {
                let known = self.seen.as_ref().is_some_and(|seen| seen.after == *after);
                if !known {
                    if self.seen.is_some() {
                        // Another value of the same thing is another change: what ran with the former one is no evidence.
                        self.not_before_unix_us = now_unix_us;
                    }
                    let change = change.clone();
                    self.seen =
                        Some(Seen { unix_us: now_unix_us, change, after: after.clone(), beside_shares: shares });
                }
            }
            // A lane that is not there may be the matter of another file.
            (Notice::Refused(Refusal::Gone(_)), _) => {}
            (Notice::Refused(_), _) => {
                self.not_before_unix_us = now_unix_us;
                self.seen = None;
            }
            (Notice::Nothing, _) if self.seen.is_some() => {
                // Taken back: what ran before does not count towards a later change.
                self.not_before_unix_us = now_unix_us;
                self.seen = None;
            }
            _ => {}
        }
        let stale = *self != former;
        (notice, stale)
    }

    /// What a look finds, and whether the lane beside shares the change.
    fn compare(&self, now: &Now) -> (Notice, bool) {
        let refused = |refusal| (Notice::Refused(refusal), false);
        let pairs = [
            (Some(&self.tested), &now.tested, &self.lane),
            (self.target.as_ref(), &now.target, self.to.as_ref().unwrap_or(&self.lane)),
            (self.unchanged.as_ref(), &now.unchanged, self.beside.as_ref().unwrap_or(&self.lane)),
        ];
        let mut changes: [Vec<Change>; 3] = Default::default();
        for ((before, after, name), changes) in pairs.into_iter().zip(&mut changes) {
            let Some(before) = before else { continue };
            match after {
                Some(after) => {
                    let thawed = before.thawed(after);
                    if !thawed.is_empty() {
                        return refused(Refusal::Thawed(thawed));
                    }
                    *changes = before.changes(after);
                }
                // The lane that is left may go, once the class has moved.
                None if self.to.is_some() && *name == self.lane => {}
                None => return refused(Refusal::Gone(name.clone())),
            }
        }
        let [tested, target, beside] = changes;
        if let Some(to) = &self.to {
            // What becomes of the lane that is left changes no figure any more.
            let others = [target, beside].concat();
            let moved = moved(&self.lane, to);
            return match others.is_empty() {
                true => (Notice::One(moved), false),
                false => refused(Refusal::Several([vec![moved], others].concat())),
            };
        }
        match (tested.as_slice(), beside.as_slice()) {
            ([], []) => (Notice::Nothing, false),
            ([], _) => refused(Refusal::Beside(beside)),
            ([one], []) => (Notice::One(one.clone()), false),
            // A prompt or a parameter of the task class is that of every lane.
            ([one], [same]) if one == same && SHARED.contains(&one.thing.as_str()) => (Notice::One(one.clone()), true),
            ([_], _) => refused(Refusal::Beside(beside)),
            _ => refused(Refusal::Several(tested)),
        }
    }
}

fn moved(from: &str, to: &str) -> Change {
    Change {
        thing: "lane".to_owned(),
        keys: vec![KeyChange { key: "lane".to_owned(), from: from.into(), to: to.into() }],
    }
}
