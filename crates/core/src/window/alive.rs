//! Is a campaign being watched? From the last signs of life of its watchers, and from how it stands.

use jiff::Timestamp;
use serde::Serialize;

/// How old the last sign of life of a running watcher may be, seconds: it leaves one every 600 s, and two may be lost.
pub const SILENCE_S: i64 = 1_860;

/// What is known of the process that left a sign of life.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Process {
    /// It runs on this machine.
    Alive,
    /// It ran on this machine and is gone.
    Gone,
    /// It is of another machine.
    Unknown,
}

/// The last sign of life of a watcher.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Sign {
    /// When.
    pub at: Timestamp,
    /// Left by a run of `watch --due`, which ends at once: something starts it again and again.
    pub due: bool,
    /// It ended on purpose.
    pub ended: bool,
    /// What is known of its process.
    pub process: Process,
}

/// How a campaign stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Pulse {
    /// Somebody will run its next burst.
    Alive,
    /// All its bursts are over, and none is to follow.
    Finished,
    /// It was stopped for good.
    Stopped,
    /// Bursts are to come, and nobody is there to run them.
    Dead,
}

impl Pulse {
    /// How a campaign stands at `now`.
    ///
    /// * `late_tolerance_s`: how late a burst may begin; whatever starts `watch --due` must do so at least that often.
    /// * `over`: all bursts are over and none is to follow.
    pub fn of(now: Timestamp, signs: &[Sign], late_tolerance_s: u32, stopped: bool, over: bool) -> Self {
        if stopped {
            return Self::Stopped;
        }
        if over {
            return Self::Finished;
        }
        let fresh = |sign: &Sign, most_s: i64| now.duration_since(sign.at).as_secs() <= most_s;
        let lives = |sign: &Sign| match (sign.due, sign.process) {
            _ if sign.ended => false,
            (true, _) => fresh(sign, i64::from(late_tolerance_s).max(120) + 60),
            (false, Process::Alive) => true,
            (false, Process::Gone) => false,
            (false, Process::Unknown) => fresh(sign, SILENCE_S),
        };
        if signs.iter().any(lives) { Self::Alive } else { Self::Dead }
    }

    /// The stable spelling.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Alive => "alive",
            Self::Finished => "finished",
            Self::Stopped => "stopped",
            Self::Dead => "dead",
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(text: &str) -> Timestamp {
        format!("2026-12-01T{text}Z").parse().unwrap()
    }

    fn sign(time: &str, due: bool, process: Process) -> Sign {
        Sign { at: at(time), due, ended: false, process }
    }

    #[test]
    fn a_watcher_lives_by_its_process_or_by_its_last_sign() {
        let pulse = |signs: &[Sign]| Pulse::of(at("12:00:00"), signs, 600, false, false);
        assert_eq!(pulse(&[]), Pulse::Dead);
        assert_eq!(pulse(&[sign("03:00:00", false, Process::Alive)]), Pulse::Alive);
        assert_eq!(pulse(&[sign("11:59:59", false, Process::Gone)]), Pulse::Dead);
        assert_eq!(pulse(&[sign("11:29:00", false, Process::Unknown)]), Pulse::Alive);
        assert_eq!(pulse(&[sign("11:28:59", false, Process::Unknown)]), Pulse::Dead);
        assert_eq!(pulse(&[Sign { ended: true, ..sign("11:59:59", false, Process::Unknown) }]), Pulse::Dead);
    }

    #[test]
    fn a_timer_lives_while_it_runs_often_enough_to_be_in_time() {
        let pulse = |time: &str| Pulse::of(at("12:00:00"), &[sign(time, true, Process::Gone)], 600, false, false);
        assert_eq!((pulse("11:49:00"), pulse("11:48:59")), (Pulse::Alive, Pulse::Dead));
    }

    #[test]
    fn what_is_over_or_stopped_needs_nobody() {
        assert_eq!(Pulse::of(at("12:00:00"), &[], 600, false, true), Pulse::Finished);
        assert_eq!(Pulse::of(at("12:00:00"), &[], 600, true, false), Pulse::Stopped);
    }
}
