//! Simulated campaigns with a known truth, judged by the real rules.

use std::collections::HashMap;
use std::sync::LazyLock;

use peaklane_core::rules::certainty::settle;
use peaklane_core::rules::hours::DIFFERS_AT;
use peaklane_core::rules::{
    Action, CounterVerdict, DecisionVerdict, Evidence, HoursVerdict, Question, Thresholds, WindowBursts, WindowCount,
    counter_test, decide, judge_hours, judge_trigger,
};
use peaklane_core::stats::{PassRate, RetryRate};
use rand::{RngExt, SeedableRng};
use rand_chacha::ChaCha8Rng;

/// Campaigns for each truth.
pub(crate) const CAMPAIGNS: u32 = 4000;
/// Where the dice begin. Another seed moves the figures by a point or two.
pub(crate) const SEED: u64 = 20_261_201;
/// True pass rates of the busy window.
pub(crate) const RATES: [f64; 6] = [0.95, 0.90, 0.85, 0.75, 0.60, 0.50];
/// True pass rate of the three other windows.
pub(crate) const OTHERS: f64 = 0.98;
/// Correlation of two attempts of one burst, where they are correlated.
pub(crate) const CORRELATION: f64 = 0.3;
/// Attempts of a burst.
pub(crate) const ATTEMPTS: u32 = 8;
/// Days of a campaign.
pub(crate) const DAYS: u32 = 3;
/// Windows of the day and the busy one of them.
pub(crate) const WINDOWS: [&str; 4] = ["09:00", "12:30", "16:00", "21:00"];
pub(crate) const BUSY: usize = 2;
/// True pass rates at the peak for the trigger: false alarms first, then hits.
pub(crate) const TRIGGER_RATES: [f64; 5] = [0.95, 0.90, 0.85, 0.70, 0.50];
/// Working days that the trigger is watched.
pub(crate) const TRIGGER_DAYS: usize = 20;
/// True pass rates before and after a change.
pub(crate) const CHANGES: [(f64, f64); 7] =
    [(0.95, 0.95), (0.75, 0.75), (0.5, 0.5), (0.75, 0.95), (0.5, 0.75), (0.5, 0.95), (0.95, 0.6)];
/// The margin of the counter-test.
pub(crate) const MARGIN: f64 = 0.25;

/// In how many campaigns something was so.
#[derive(Clone, Copy, Default)]
pub(crate) struct Counted(u32);

impl Counted {
    fn add(&mut self, so: bool) {
        self.0 += u32::from(so);
    }

    /// Of all campaigns, 0 to 1.
    pub(crate) fn share(self) -> f64 {
        f64::from(self.0) / f64::from(CAMPAIGNS)
    }
}

/// What was decided on a lane whose busy window has one true rate.
#[derive(Clone, Copy, Default)]
pub(crate) struct Decisions {
    pub(crate) declared_out: Counted,
    pub(crate) declared_out_sure: Counted,
    pub(crate) worst_out: Counted,
    pub(crate) worst_out_sure: Counted,
    pub(crate) holds_sure: Counted,
    pub(crate) hard_constraint: Counted,
}

/// How often the trigger fired.
#[derive(Clone, Copy, Default)]
pub(crate) struct Fired {
    pub(crate) within_3_days: Counted,
    pub(crate) within_20_days: Counted,
}

/// How often windows were said to differ that do not.
#[derive(Clone, Copy, Default)]
pub(crate) struct Alike {
    /// By the rule.
    pub(crate) differ: Counted,
    /// By the exact test as if all attempts were independent.
    pub(crate) attempts_alone: Counted,
}

/// Everything; the first of each pair has independent attempts, the second correlated ones.
pub(crate) struct PowerTable {
    pub(crate) decisions: [Vec<Decisions>; 2],
    pub(crate) alike: [Alike; 2],
    pub(crate) triggers: [Vec<Fired>; 2],
    /// Improved, worse, no change, undecided.
    pub(crate) changes: [Vec<[Counted; 4]>; 2],
}

pub(crate) fn power_table() -> PowerTable {
    let mut judge = Judge { dice: ChaCha8Rng::seed_from_u64(SEED), hours: HashMap::new() };
    let mut both = |correlated| {
        let decisions = RATES.into_iter().map(|rate| judge.decisions(rate, correlated)).collect::<Vec<_>>();
        let alike = judge.alike(correlated);
        let triggers = TRIGGER_RATES.into_iter().map(|rate| judge.trigger(rate, correlated)).collect::<Vec<_>>();
        let changes = CHANGES.into_iter().map(|change| judge.changes(change, correlated)).collect::<Vec<_>>();
        (decisions, alike, triggers, changes)
    };
    let (independent, correlated) = (both(false), both(true));
    PowerTable {
        decisions: [independent.0, correlated.0],
        alike: [independent.1, correlated.1],
        triggers: [independent.2, correlated.2],
        changes: [independent.3, correlated.3],
    }
}

type Campaign = [[PassRate; DAYS as usize]; WINDOWS.len()];

struct Judge {
    dice: ChaCha8Rng,
    /// What was said of the hours, by the passes of the bursts: the same counts come again and again.
    hours: HashMap<[[u32; DAYS as usize]; WINDOWS.len()], HoursSeen>,
}

#[derive(Clone, Copy)]
struct HoursSeen {
    constraint: bool,
    differ: bool,
    attempts_alone: bool,
}

impl Judge {
    /// One burst. Correlated attempts are drawn from Pólya's urn: each pass makes the next one likelier, which gives a
    /// beta-binomial count with the wanted correlation and mean.
    fn burst(&mut self, rate: f64, correlated: bool) -> PassRate {
        let urn = if correlated { 1.0 / CORRELATION - 1.0 } else { f64::INFINITY };
        let mut passed = 0;
        for made in 0..ATTEMPTS {
            let next = if urn.is_finite() { (urn * rate + f64::from(passed)) / (urn + f64::from(made)) } else { rate };
            passed += u32::from(self.dice.random::<f64>() < next);
        }
        PassRate::new(passed, ATTEMPTS).unwrap()
    }

    fn campaign(&mut self, rates: [f64; WINDOWS.len()], correlated: bool) -> Campaign {
        rates.map(|rate| std::array::from_fn(|_| self.burst(rate, correlated)))
    }

    fn decisions(&mut self, rate: f64, correlated: bool) -> Decisions {
        let mut rates = [OTHERS; WINDOWS.len()];
        rates[BUSY] = rate;
        let mut seen = Decisions::default();
        for _ in 0..CAMPAIGNS {
            let campaign = self.campaign(rates, correlated);
            let declared = decision(&campaign, true);
            let worst = decision(&campaign, false);
            let out = |d: (DecisionVerdict, bool)| d.0 == DecisionVerdict::NotOk;
            seen.declared_out.add(out(declared));
            seen.declared_out_sure.add(out(declared) && declared.1);
            seen.worst_out.add(out(worst));
            seen.worst_out_sure.add(out(worst) && worst.1);
            seen.holds_sure.add((!out(declared) && declared.1) || (!out(worst) && worst.1));
            seen.hard_constraint.add(self.hours(&campaign).constraint);
        }
        seen
    }

    /// All four windows at 90 %.
    fn alike(&mut self, correlated: bool) -> Alike {
        let mut seen = Alike::default();
        for _ in 0..CAMPAIGNS {
            let campaign = self.campaign([0.9; WINDOWS.len()], correlated);
            let hours = self.hours(&campaign);
            seen.differ.add(hours.differ);
            seen.attempts_alone.add(hours.attempts_alone);
        }
        seen
    }

    fn hours(&mut self, campaign: &Campaign) -> HoursSeen {
        // which window and which day has which count changes names only
        let mut key = campaign.map(|bursts| {
            let mut passes = bursts.map(|b| b.passed());
            passes.sort_unstable();
            passes
        });
        key.sort_unstable();
        *self.hours.entry(key).or_insert_with(|| {
            let lane = WINDOWS.iter().zip(campaign);
            let lane = lane.map(|(w, b)| WindowBursts { window: (*w).into(), bursts: b.to_vec() }).collect();
            let hours = judge_hours(&[lane], &Thresholds::default()).unwrap().remove(0);
            HoursSeen {
                constraint: matches!(hours.verdict, HoursVerdict::HardConstraint { .. }),
                differ: hours.differ(),
                attempts_alone: hours.omnibus_p.is_some_and(|p| p <= DIFFERS_AT),
            }
        })
    }

    fn trigger(&mut self, rate: f64, correlated: bool) -> Fired {
        let mut seen = Fired::default();
        for _ in 0..CAMPAIGNS {
            let days: Vec<_> = (0..TRIGGER_DAYS).map(|_| Some(self.burst(rate, correlated))).collect();
            // judged every evening, on what is known by then
            let fires = |day: usize| {
                let quiet = RetryRate::new(0, ATTEMPTS * DAYS);
                judge_trigger(&days[..day], quiet, &Thresholds::default()).action == Action::Graduate
            };
            seen.within_3_days.add((1..=3).any(fires));
            seen.within_20_days.add((1..=TRIGGER_DAYS).any(fires));
        }
        seen
    }

    fn changes(&mut self, (before, after): (f64, f64), correlated: bool) -> [Counted; 4] {
        let mut seen = [Counted::default(); 4];
        for _ in 0..CAMPAIGNS {
            let mut side = |rate| (0..DAYS).map(|_| self.burst(rate, correlated).passed()).sum::<u32>();
            let counts = (side(before), side(after));
            let verdict = change(counts.0, counts.1);
            for (at, count) in seen.iter_mut().enumerate() {
                count.add(at == verdict);
            }
        }
        seen
    }
}

/// The verdict on a lane, and whether it is conclusive. Nothing is retried: the pass rate alone is asked.
fn decision(campaign: &Campaign, declared: bool) -> (DecisionVerdict, bool) {
    let sum = |bursts: &[PassRate]| PassRate::sum(bursts);
    let evidence = Evidence {
        windows: WINDOWS
            .iter()
            .zip(campaign)
            .map(|(w, bursts)| WindowCount { window: (*w).into(), rate: sum(bursts) })
            .collect(),
        declared_peak: declared.then(|| WINDOWS[BUSY].into()),
        complete_days: DAYS,
        missing: Vec::new(),
        retries: RetryRate::new(0, ATTEMPTS * DAYS * WINDOWS.len() as u32),
    };
    let thresholds = Thresholds::default();
    let got = decide(&evidence, &thresholds);
    let window = got.deciding_window.unwrap();
    let bursts = &campaign[WINDOWS.iter().position(|w| *w == window).unwrap()];
    let looks = if declared { 1 } else { WINDOWS.len() as u32 };
    let question = Question { bursts, burst_attempts: ATTEMPTS, percent: thresholds.pass_percent, looks };
    (got.verdict, settle(&question).unwrap().state.is_conclusive())
}

/// Which of the four verdicts a counter-test of three bursts a side comes to: improved, worse, no change, undecided.
pub(crate) fn change(before: u32, after: u32) -> usize {
    const COUNTS: u32 = ATTEMPTS * DAYS + 1;
    // Every verdict once: thousands of campaigns ask for the same few hundred.
    static VERDICTS: LazyLock<Vec<usize>> = LazyLock::new(|| {
        let rate = |passed| PassRate::new(passed, ATTEMPTS * DAYS).unwrap();
        (0..COUNTS * COUNTS)
            .map(|at| match counter_test(rate(at / COUNTS), rate(at % COUNTS), MARGIN).unwrap().verdict {
                CounterVerdict::Improved => 0,
                CounterVerdict::Worse => 1,
                CounterVerdict::NoChange => 2,
                CounterVerdict::Undecided => 3,
            })
            .collect()
    });
    VERDICTS[(before * COUNTS + after) as usize]
}
