//! What stands beside the bursts of a window: bursts that did not come about, what 1,000 requests cost there, and how the
//! control endpoint did.

use crate::notes::Note;
use crate::palette::Tone;
use crate::units::{duration, one_line};

/// What is known of one window of one lane beside its bursts.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct WindowExtra {
    /// Local begin, `16:00`.
    pub window: String,
    /// Planned bursts that did not come about, by date.
    pub missed: Vec<Missed>,
    /// Price of 1,000 requests at these hours, micro-dollars; `None` where tokens or prices are not known.
    pub micro_usd_per_1000: Option<u64>,
    /// Median time to the first byte of the control endpoint, microseconds.
    pub control_first_byte_us: Option<u64>,
    /// Bursts beside which the control endpoint was asked.
    pub control_asked: u32,
    /// Those of them in which it did not answer.
    pub control_failed: u32,
}

/// A planned burst that did not come about. Missing data: neither a pass nor a failure.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Missed {
    /// Local date.
    pub date: String,
    /// `missed`, `interrupted`, `before_start`.
    pub state: String,
    /// Why: `asleep`, `not_running`.
    pub reason: Option<String>,
}

impl Missed {
    fn words(&self) -> String {
        let date = one_line(&self.date);
        match (self.state.as_str(), self.reason.as_deref()) {
            ("before_start", _) => format!("{date} due before the start"),
            (state, Some(reason)) => format!("{date} {} ({})", one_line(state), reason_words(reason)),
            (state, None) => format!("{date} {}", one_line(state)),
        }
    }
}

/// A reason as the store spells it, in words.
pub(crate) fn reason_words(reason: &str) -> String {
    match reason {
        "not_running" => "no watcher was running".to_owned(),
        "asleep" => "the machine was asleep".to_owned(),
        "clock" => "the clock was put forward".to_owned(),
        "busy" => "other bursts were running".to_owned(),
        "stalled" => "the watcher was held up".to_owned(),
        other => one_line(other),
    }
}

/// `2026-11-24 missed (the machine was asleep)`, all of them; empty without any.
pub(crate) fn missed_words(missed: &[Missed]) -> String {
    missed.iter().map(Missed::words).collect::<Vec<_>>().join(", ")
}

/// From so many times the least window's time on the control endpoint is told to have been slow, if it is more than
/// [`SLOW_FROM_US`] too.
const SLOW_TIMES: u64 = 3;
const SLOW_FROM_US: u64 = 100_000;

/// What the control endpoint says: that one's own network was slow or gone, in which case the lane is not to be blamed; or
/// that it was well.
pub(crate) fn control_note(lanes: &[&[WindowExtra]]) -> Option<Note> {
    let all: Vec<&WindowExtra> = lanes.iter().flat_map(|lane| lane.iter()).filter(|w| w.control_asked > 0).collect();
    let least = all.iter().filter_map(|w| w.control_first_byte_us).min();
    let mut windows: Vec<&str> = Vec::new();
    for window in &all {
        let slow = window
            .control_first_byte_us
            .zip(least)
            .is_some_and(|(us, least)| us >= SLOW_FROM_US && us >= least.saturating_mul(SLOW_TIMES));
        if (slow || window.control_failed > 0) && !windows.contains(&window.window.as_str()) {
            windows.push(&window.window);
        }
    }
    let asked: u32 = all.iter().map(|w| w.control_asked).sum();
    if asked == 0 {
        return None;
    }
    let most = all.iter().filter_map(|w| w.control_first_byte_us).max();
    let range = match (least, most) {
        (Some(least), Some(most)) => format!("first byte after {} to {}", duration(least), duration(most)),
        _ => "no answer at all".to_owned(),
    };
    Some(if windows.is_empty() {
        Note::plain(
            "network",
            format!("the control endpoint was well in every window ({range}): what is slow is the lane"),
        )
    } else {
        let names = windows.iter().map(|w| one_line(w)).collect::<Vec<_>>().join(", ");
        let text = format!(
            "the control endpoint was slow or gone at {names} ({range}): part of what was measured there may be your own \
             network, not the lane"
        );
        Note { about: "network", text, tone: Tone::Warn }
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn window(name: &str, first_byte_us: Option<u64>, failed: u32) -> WindowExtra {
        WindowExtra {
            window: name.into(),
            control_first_byte_us: first_byte_us,
            control_asked: 3,
            control_failed: failed,
            ..WindowExtra::default()
        }
    }

    #[test]
    fn a_network_that_was_slow_at_one_hour_is_told_apart_from_the_lane() {
        let told = |windows: &[WindowExtra]| control_note(&[windows]).map(|note| (note.tone, note.text));
        assert_eq!(told(&[WindowExtra::default()]), None);
        let (tone, text) = told(&[window("09:00", Some(20_000), 0), window("16:00", Some(50_000), 0)]).unwrap();
        assert_eq!(tone, Tone::Dim);
        assert!(text.contains("well in every window (first byte after 20.0 ms to 50.0 ms)"), "{text}");
        for bad in [window("16:00", Some(400_000), 0), window("16:00", Some(20_000), 1), window("16:00", None, 3)] {
            let (tone, text) = told(&[window("09:00", Some(20_000), 0), bad]).unwrap();
            assert!(tone == Tone::Warn && text.contains("slow or gone at 16:00"), "{text}");
        }
    }

    #[test]
    fn what_did_not_come_about_is_told_with_its_reason() {
        let missed = |state: &str, reason: Option<&str>| Missed {
            date: "2026-11-24".into(),
            state: state.into(),
            reason: reason.map(str::to_owned),
        };
        let all = [missed("missed", Some("asleep")), missed("before_start", None), missed("interrupted", None)];
        insta::assert_snapshot!(
            missed_words(&all),
            @"2026-11-24 missed (the machine was asleep), 2026-11-24 due before the start, 2026-11-24 interrupted"
        );
    }
}
