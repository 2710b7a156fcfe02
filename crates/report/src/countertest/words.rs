//! The sentences of a counter-test.

use peaklane_core::countertest::{Change, KeyChange, Notice, Refusal, WindowFigures};
use peaklane_core::rules::CounterVerdict;
use serde_json::Value;

use super::{CounterTestView, rate_words};
use crate::notes::Note;
use crate::units::{counted, shortened};
use crate::words::list;

/// Longest value that is repeated in a sentence, characters.
const LONGEST_VALUE: usize = 48;

/// The verdict as a person reads it.
pub(super) fn verdict(verdict: CounterVerdict) -> &'static str {
    match verdict {
        CounterVerdict::Improved => "improved",
        CounterVerdict::Worse => "worse",
        CounterVerdict::NoChange => "no change that matters",
        CounterVerdict::Undecided => "undecided",
    }
}

/// The same where there is little room.
pub(super) fn short_verdict(found: CounterVerdict) -> &'static str {
    match found {
        CounterVerdict::NoChange => "no change",
        other => verdict(other),
    }
}

/// A difference of shares with its interval in whole points of percent: `+38 (+11 to +58)`.
pub(super) fn points(difference: f64, (low, high): (f64, f64)) -> String {
    let signed = |share: f64| match (share * 100.0).round() as i64 {
        0 => "0".to_owned(),
        n => format!("{n:+}"),
    };
    format!("{} ({} to {})", signed(difference), signed(low), signed(high))
}

/// A p value that never crosses 0.05 by rounding: `0.004`, `0.0501`, `<0.001`.
pub(super) fn p_value(p: f64) -> String {
    if p < 0.001 {
        return "<0.001".to_owned();
    }
    let mut decimals = if p < 0.1 { 3 } else { 2 };
    loop {
        let text = format!("{p:.decimals$}");
        let read: f64 = text.parse().unwrap_or(p);
        if (read <= 0.05) == (p <= 0.05) || decimals > 12 {
            return text;
        }
        decimals += 1;
    }
}

/// The sentence that matters.
pub fn headline(view: &CounterTestView<'_>) -> String {
    let test = view.test;
    match (view.judgement, view.state()) {
        (Some(judgement), _) => {
            let deciding = judgement.windows.first();
            let sides = deciding.map(|w| {
                let before = rate_words(w.before_passed, w.before_n);
                format!("{} passes {before} before and {} after", w.window, rate_words(w.after_passed, w.after_n))
            });
            format!("{}: {}", verdict(judgement.verdict), sides.unwrap_or_default())
        }
        (None, "given_up") => format!("given up: {}", test.change),
        (None, _) => format!("open: {}", test.change),
    }
}

/// One change: `model "m" -> "n"`.
pub fn change_words(change: &Change) -> String {
    let keys: Vec<String> = change.keys.iter().map(key_words).collect();
    list(&keys)
}

fn key_words(key: &KeyChange) -> String {
    let value = |value: &Value| match value {
        Value::Null => "nothing".to_owned(),
        // A text that is not kept is told by the fact that it is another one.
        Value::String(text) if text.starts_with("sha256:") => text.chars().take("sha256:".len() + 8).collect(),
        other => shortened(&other.to_string(), LONGEST_VALUE),
    };
    format!("{} {} -> {}", key.key, value(&key.from), value(&key.to))
}

/// Why what has changed is no counter-test: the sentence, and what to do.
pub fn refusal_words(refusal: &Refusal) -> (String, String) {
    let things = |changes: &[Change]| list(&changes.iter().map(change_words).collect::<Vec<_>>());
    match refusal {
        Refusal::Several(changes) => (
            format!("{} things have changed, and a counter-test has one: {}", changes.len(), things(changes)),
            "take all but the registered one back; bursts made meanwhile do not count".to_owned(),
        ),
        Refusal::Thawed(keys) => (
            format!(
                "what both sides are measured by has changed: {}",
                list(&keys.iter().map(key_words).collect::<Vec<_>>())
            ),
            "put it back as it was at the begin".to_owned(),
        ),
        Refusal::Beside(changes) => (
            format!("the lane beside is to stay as it was, and has changed: {}", things(changes)),
            "take that back, or register anew with another `--beside`".to_owned(),
        ),
        Refusal::Gone(name) => (
            format!("`{name}`, or the task class, is no longer in the configuration"),
            "put it back, or name the right file with `--config`".to_owned(),
        ),
    }
}

/// The lines below the table.
pub(super) fn notes(view: &CounterTestView<'_>) -> Vec<Note> {
    let mut notes = vec![registered(view), changed(view)];
    if view.state() == "open" && view.judgement.is_none() {
        notes.extend(next(view));
    }
    if let Some(judgement) = view.judgement {
        notes.extend(meaning(view, judgement.verdict, judgement.bursts_needed));
    }
    notes.extend(world(view));
    if view.test.looks > 1 || (view.test.looks == 1 && view.state() == "ended") {
        let looks = view.test.looks + u32::from(view.state() == "ended");
        let text =
            format!("look {looks} at this test: each further one makes a false alarm likelier than the 5 % of one");
        notes.push(Note::warning("looks", text));
    }
    if view.test.in_retrospect {
        let text =
            "registered for a day in the past: the change may have been known, so that this is no pre-registration";
        notes.push(Note::warning("registered", text));
    }
    notes
}

fn registered(view: &CounterTestView<'_>) -> Note {
    let test = view.test;
    let (deciding, others) =
        test.windows.split_first().map_or(("", Default::default()), |(d, o)| (d.as_str(), o.to_vec()));
    let others = match others.as_slice() {
        [] => String::new(),
        others => format!(", {} beside it", list(others)),
    };
    let text = format!(
        "\"{}\" on {}, {}: {} at {}; {deciding} decides{others} ({})",
        test.change,
        view.begun.local,
        test.zone,
        test.task,
        test.lane,
        from(view)
    );
    Note::plain("registered", text)
}

fn from(view: &CounterTestView<'_>) -> String {
    let bursts = view.windows.first().map_or(0, |w| w.before_bursts);
    let bursts = counted(bursts.into(), "burst");
    match &view.test.campaign {
        Some(campaign) => format!("before: {bursts} of campaign {campaign}"),
        None => format!("before: {bursts}"),
    }
}

fn changed(view: &CounterTestView<'_>) -> Note {
    let since = view.changed.as_ref().map(|moment| format!(", since {}", moment.local)).unwrap_or_default();
    match (&view.found, &view.test.seen, &view.test.to) {
        (Some(Notice::Refused(refusal)), ..) => {
            let (what, next) = refusal_words(refusal);
            Note::warning("changed", format!("{what}: {next}"))
        }
        (_, _, Some(to)) => Note::plain("changed", format!("lane {} -> {to}{since}", view.test.lane)),
        (_, Some(seen), None) => Note::plain("changed", format!("{}{since}", change_words(&seen.change))),
        (_, None, None) => Note::plain("changed", "nothing yet"),
    }
}

fn next(view: &CounterTestView<'_>) -> Option<Note> {
    let ready = view.end_possible.as_ref()?;
    let text = match (view.ripe, view.windows.first().is_some_and(|w| w.after_n > 0)) {
        (true, true) => "now: `peaklane countertest end`".to_owned(),
        (true, false) => format!("from the first burst at {} on: the wait is over", view.test.windows.first()?),
        (false, _) => format!("possible from {} on", ready.local),
    };
    Some(Note::plain("end", text))
}

fn meaning(view: &CounterTestView<'_>, verdict: CounterVerdict, bursts_needed: Option<u32>) -> Vec<Note> {
    let margin = view.test.margin_percent;
    let moved = view.judgement.and_then(|j| j.world_changed) == Some(true);
    let note = match verdict {
        _ if moved && verdict != CounterVerdict::Undecided => {
            let text =
                "the lane beside moved too, so this cannot be put down to the change: register it again in calmer days";
            Note::warning("means", text)
        }
        CounterVerdict::Improved => Note::plain("means", "the change helped: keep it"),
        CounterVerdict::Worse => Note::warning("means", "the change did harm: take it back"),
        CounterVerdict::NoChange if view.test.lane_changed() => {
            let text = format!(
                "the lane was changed and nothing moved by more than {margin} points: the rung was not the problem, and the \
                 migration is off"
            );
            Note::warning("means", text)
        }
        CounterVerdict::NoChange => Note::plain(
            "means",
            format!(
                "this change moved nothing by more than {margin} points. It says nothing about the rung: only a change of the \
                 lane itself does"
            ),
        ),
        CounterVerdict::Undecided => {
            let text = match bursts_needed {
                Some(n) => format!(
                    "neither a change nor its absence is shown. {} on each side would decide with 80 % probability at \
                     these rates",
                    counted(n.into(), "further burst")
                ),
                None => "neither a change nor its absence is shown, and 50 further bursts on each side would not decide it at \
                         these rates"
                    .to_owned(),
            };
            Note::warning("means", text)
        }
    };
    let mut notes = vec![note];
    if verdict == CounterVerdict::Undecided && view.state() == "open" {
        notes.push(Note::plain("next", "it stays open: more bursts, then `peaklane countertest end` again"));
    }
    notes
}

fn world(view: &CounterTestView<'_>) -> Option<Note> {
    let shares = view.test.seen.as_ref().is_some_and(|seen| seen.beside_shares);
    match (&view.test.beside, view.judgement) {
        (None, _) => {
            let text = "no unchanged lane runs beside: what the world does cannot be told apart from the change";
            Some(Note::warning("world", text))
        }
        (Some(beside), _) if shares => {
            let text = format!("{beside} has the same task class and so the same change: it is no unchanged lane");
            Some(Note::warning("world", text))
        }
        (Some(_), None) => None,
        (Some(beside), Some(judgement)) => Some(match (&judgement.beside, judgement.world_changed) {
            (Some(figures), Some(true)) => {
                Note::warning("world", format!("{beside}, unchanged, moved too: {}. The world changed", sides(figures)))
            }
            (Some(figures), Some(false)) => {
                let standing = format!("{beside}, unchanged, shows no change of its own: {}", sides(figures));
                Note::plain("world", standing)
            }
            _ => Note::warning("world", format!("{beside} was not measured on both sides: the world is not known")),
        }),
    }
}

fn sides(f: &WindowFigures) -> String {
    let p = f.barnard_two_sided_p.map(|p| format!(" (p {})", p_value(p))).unwrap_or_default();
    format!("{} before, {} after{p}", rate_words(f.before_passed, f.before_n), rate_words(f.after_passed, f.after_n))
}
