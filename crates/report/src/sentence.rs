//! One sentence of finding per lane, and the scheduling constraint below its table. Both read the same counts.
//!
//! Honest about few attempts: "clear" is said only where the interval lies below the bar as a whole; a rate below the bar
//! whose interval reaches it is told as open.

use peaklane_core::rules::{Hours, HoursVerdict, Thresholds};
use peaklane_core::summary::{LaneSummary, WindowSummary};

use crate::extra::WindowExtra;
use crate::units::{counted, interval, one_line, percent};
use crate::words::{article, list};

/// A window whose rate lies this much (percent points) below every other one is said to collapse.
const COLLAPSE_POINTS: u64 = 25;

/// One lane with the peak that was declared for it.
#[derive(Clone, Copy, Debug)]
pub struct LaneView<'a> {
    /// Its windows.
    pub summary: &'a LaneSummary,
    /// The window that was declared the peak beforehand, `16:00`.
    pub peak: Option<&'a str>,
    /// Whether its hours differ beyond chance; `None` where that was not asked.
    pub hours: Option<&'a Hours>,
    /// What is known of its windows beside their bursts.
    pub extra: &'a [WindowExtra],
}

impl<'a> LaneView<'a> {
    /// A lane of which nothing else is known.
    pub const fn new(summary: &'a LaneSummary, peak: Option<&'a str>) -> Self {
        Self { summary, peak, hours: None, extra: &[] }
    }

    /// What is known of a window beside its bursts.
    pub fn extra_of(&self, window: &str) -> Option<&'a WindowExtra> {
        self.extra.iter().find(|extra| extra.window == window)
    }

    /// Index of the declared peak among the windows.
    pub fn peak_index(&self) -> Option<usize> {
        let peak = self.peak?;
        self.summary.windows.iter().position(|w| w.window.as_deref() == Some(peak))
    }

    /// Index of the worst window, where windows differ at all: between equal ones there is no worst.
    pub fn worst_index(&self) -> Option<usize> {
        let worst = self.summary.worst_window()?.pass_rate()?;
        let rates = self.summary.windows.iter().filter_map(WindowSummary::pass_rate);
        rates.into_iter().any(|r| r.compare(worst).is_gt()).then_some(self.summary.worst).flatten()
    }

    /// The window that decides: the declared peak, else the worst one.
    pub fn deciding_index(&self) -> Option<usize> {
        self.peak_index().or(self.summary.worst)
    }

    /// The interval of a window's rate: shared between all windows looked at where it is the worst, picked afterwards.
    pub fn interval_of(&self, index: usize) -> Option<(f64, f64)> {
        let picked = Some(index) == self.worst_index() && self.peak_index() != Some(index);
        let shared = picked.then(|| self.summary.worst_interval().map(|i| i.pair())).flatten();
        shared.or(self.summary.windows.get(index)?.pass_interval)
    }
}

/// How the windows of a lane stand against the bar.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
struct Standing {
    /// At the bar or above.
    usable: Vec<usize>,
    /// Below it, and the interval as a whole too.
    out: Vec<usize>,
    /// Below it, but so few attempts that the interval reaches it.
    open: Vec<usize>,
}

fn standing(view: &LaneView<'_>, thresholds: &Thresholds) -> Standing {
    let mut standing = Standing::default();
    for (index, window) in view.summary.windows.iter().enumerate() {
        let Some(rate) = window.pass_rate() else { continue };
        let clear = view.interval_of(index).is_some_and(|(_, high)| high * 100.0 < f64::from(thresholds.pass_percent));
        match (rate.reaches(thresholds.pass_percent), clear) {
            (true, _) => standing.usable.push(index),
            (false, true) => standing.out.push(index),
            (false, false) => standing.open.push(index),
        }
    }
    standing
}

/// The line below a lane's table, if there is something to say: the hours at which it can be used.
///
/// Windows are never pooled into a figure of the lane; the only place where a pooled rate appears is the one that says
/// that it is none.
pub fn constraint(view: &LaneView<'_>, thresholds: &Thresholds) -> Option<String> {
    let windows = &view.summary.windows;
    let Standing { usable, out, open } = standing(view, thresholds);
    let names = |indices: &[usize]| indices.iter().map(|i| name(&windows[*i])).collect::<Vec<_>>().join(", ");
    let bar = thresholds.pass_percent;
    if windows.iter().all(|w| w.window.is_none()) {
        return None;
    }
    let open_text = match open.as_slice() {
        [] => String::new(),
        open => format!(" Open at {}: below {bar} %, but so few attempts may miss by chance.", names(open)),
    };
    match (usable.as_slice(), out.as_slice()) {
        ([], []) if open.is_empty() => None,
        ([], []) => Some(open_text.trim_start().to_owned()),
        (_, []) if open.is_empty() => None,
        (usable, out) if !usable.is_empty() && hard(view, out) => {
            let pooled = pooled_percent(view.summary)?;
            let not = format!("not {} {pooled} % lane", article(pooled));
            Some(format!("Hard scheduling constraint: usable at {}; {not}.{open_text}", names(usable)))
        }
        (usable, []) => Some(format!("Reaches {bar} % at {}.{open_text}", names(usable))),
        ([], out) => Some(format!("Not usable at {}.{open_text}", names(out))),
        (usable, out) => Some(format!(
            "Below {bar} % at {}, at or above it at {}, but the hours do not differ beyond chance.{open_text}",
            names(out),
            names(usable)
        )),
    }
}

/// Is it a constraint? Where all windows were tested together, that test says so; else a window whose whole interval lies
/// below the bar.
fn hard(view: &LaneView<'_>, out: &[usize]) -> bool {
    match view.hours.map(|hours| &hours.verdict) {
        Some(verdict) => matches!(verdict, HoursVerdict::HardConstraint { .. }),
        None => !out.is_empty(),
    }
}

/// The figure that a lane is *not*: all windows in one pot, whole percent. For the sentence that denies it.
fn pooled_percent(summary: &LaneSummary) -> Option<u64> {
    let (passed, n) =
        summary.windows.iter().fold((0_u64, 0_u64), |(p, n), w| (p + u64::from(w.passed), n + u64::from(w.n)));
    (n > 0).then(|| (passed * 200 + n) / (n * 2))
}

/// The finding of one lane in one sentence, its counts included.
pub fn finding(view: &LaneView<'_>, thresholds: &Thresholds) -> String {
    let summary = view.summary;
    let who = format!("{} ({})", one_line(&summary.lane), summary.kind);
    let said = if summary.windows.iter().all(|w| w.window.is_none()) {
        by_hand(view, thresholds)
    } else {
        by_window(view, thresholds)
    };
    format!("{who} {said}{}.", retries(view, thresholds))
}

fn by_hand(view: &LaneView<'_>, thresholds: &Thresholds) -> String {
    let Some(window) = view.summary.windows.iter().find(|w| w.n > 0) else {
        return "has no complete burst yet: nothing can be said of it".to_owned();
    };
    let interval = interval(window.pass_interval, &[thresholds.pass_percent]);
    let bursts = counted(window.bursts.into(), "burst");
    format!("passes {} of {} ({interval}) in {bursts} by hand; its windows were not measured", window.passed, window.n)
}

fn by_window(view: &LaneView<'_>, thresholds: &Thresholds) -> String {
    let windows = &view.summary.windows;
    let bar = thresholds.pass_percent;
    let told = |index: usize| {
        let w = &windows[index];
        format!("{} of {} pass ({})", w.passed, w.n, interval(view.interval_of(index), &[bar]))
    };
    let names = |indices: &[usize]| list(&indices.iter().map(|i| name(&windows[*i])).collect::<Vec<_>>());
    let Standing { usable, out, open } = standing(view, thresholds);
    let below: Vec<usize> = out.iter().chain(&open).copied().collect();
    let measured = usable.len() + below.len();
    let Some(worst) = view.summary.worst else {
        return "has no complete burst yet: nothing can be said of it".to_owned();
    };
    if below.is_empty() {
        let deciding = view.deciding_index().filter(|i| windows[*i].n > 0).unwrap_or(worst);
        let which = if view.peak_index() == Some(deciding) { "at the peak, " } else { "at worst, " };
        let scope = match measured {
            1 => format!("at {}", name(&windows[deciding])),
            2 => "in both windows".to_owned(),
            all => format!("in all {all} windows"),
        };
        let which = if measured == 1 { String::new() } else { format!("{which}{}, ", name(&windows[deciding])) };
        let low = view.interval_of(deciding).map_or(0.0, |i| i.0);
        let doubt = if low * 100.0 < f64::from(bar) {
            format!(", which does not rule out less than {bar} % yet")
        } else {
            String::new()
        };
        return format!("holds {scope}: {which}{}{doubt}", told(deciding));
    }
    if usable.is_empty() {
        let best =
            below.iter().copied().max_by(|a, b| compare(&windows[*a], &windows[*b]).then(b.cmp(a))).unwrap_or(worst);
        let doubt = if open.is_empty() { "" } else { ", though so few attempts may miss by chance" };
        return if measured == 1 {
            format!("misses {bar} % at {}: {}{doubt}", name(&windows[best]), told(best))
        } else {
            format!(
                "reaches {bar} % in none of its {measured} windows: at best, {}, {}{doubt}",
                name(&windows[best]),
                told(best)
            )
        };
    }
    let elsewhere = usable.iter().copied().min_by(|a, b| compare(&windows[*a], &windows[*b])).unwrap_or(worst);
    let against = format!(
        "against {}/{}{} elsewhere",
        windows[elsewhere].passed,
        windows[elsewhere].n,
        if usable.len() > 1 { " or better" } else { "" }
    );
    if out.is_empty() {
        let few = "but so few attempts may miss by chance";
        return format!("misses {bar} % at {}: {}, {against}; {few}", names(&open), told(worst));
    }
    let verb =
        if points_apart(&windows[worst], &windows[elsewhere]) >= COLLAPSE_POINTS { "collapses" } else { "falls short" };
    let others: Vec<usize> = below.iter().copied().filter(|i| *i != worst).collect();
    let also = if others.is_empty() { String::new() } else { format!(" (and misses {bar} % at {})", names(&others)) };
    format!("{verb} at {}: {}{also}, {against}; use it at {} only", name(&windows[worst]), told(worst), names(&usable))
}

/// Retries at or above the bar, and where they gather.
fn retries(view: &LaneView<'_>, thresholds: &Thresholds) -> String {
    let bar = thresholds.retry_below_percent;
    let Some(rate) = view.summary.retry_tally().rate().filter(|rate| !rate.below(bar)) else { return String::new() };
    let windows = view.summary.windows.iter().filter(|w| w.window.is_some());
    let most = windows.filter_map(|w| Some((w, w.retry_tally().rate()?))).max_by(|(_, a), (_, b)| {
        (u64::from(a.retried()) * u64::from(b.of())).cmp(&(u64::from(b.retried()) * u64::from(a.of())))
    });
    // A concentration: one window has more than half of all retried attempts.
    let most = most.filter(|(w, _)| view.summary.windows.len() > 1 && w.retried * 2 > rate.retried());
    let gathered = most.map_or_else(String::new, |(w, r)| format!(", {} at {}", r.text(&[bar]), name(w)));
    format!("; {} of attempts were retried (needs < {bar} %){gathered}", percent(rate.retried(), rate.of(), &[bar]))
}

fn compare(a: &WindowSummary, b: &WindowSummary) -> std::cmp::Ordering {
    match (a.pass_rate(), b.pass_rate()) {
        (Some(a), Some(b)) => a.compare(b),
        (a, b) => a.is_some().cmp(&b.is_some()),
    }
}

/// By how many percent points `better` is better, rounded down.
fn points_apart(worse: &WindowSummary, better: &WindowSummary) -> u64 {
    let (p, n) = (u64::from(worse.passed), u64::from(worse.n));
    let (q, m) = (u64::from(better.passed), u64::from(better.n));
    (q * n).saturating_sub(p * m) * 100 / (n * m).max(1)
}

/// How a window is called.
pub(crate) fn name(window: &WindowSummary) -> String {
    window.window.as_deref().map_or_else(|| "by hand".to_owned(), one_line)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sample::{collapsing, flat, lane, limited, slow};
    use peaklane_core::lane::Kind;

    fn both(summary: &LaneSummary, peak: Option<&str>) -> (String, Option<String>) {
        let view = LaneView::new(summary, peak);
        let thresholds = Thresholds::default();
        (finding(&view, &thresholds), constraint(&view, &thresholds))
    }

    #[test]
    fn a_lane_that_collapses_at_peak_is_told_with_the_hours_that_are_usable() {
        // 23 + 22 + 12 + 24 = 81 of 96 = 84 %. Retried: 1 at 12:30 and 7 at 16:00, 8 of 96 = 8 %, 7 of 24 = 29 %.
        let (finding, constraint) = both(&collapsing(), Some("16:00"));
        assert_eq!(
            finding,
            "lane-a (free-hosted) collapses at 16:00: 12 of 24 pass (31-69 %), against 22/24 or better elsewhere; use it at \
             09:00, 12:30 and 21:00 only; 8 % of attempts were retried (needs < 5 %), 29 % at 16:00."
        );
        assert_eq!(constraint.unwrap(), "Hard scheduling constraint: usable at 09:00, 12:30, 21:00; not an 84 % lane.");
    }

    #[test]
    fn a_lane_that_holds_says_what_its_counts_do_not_rule_out() {
        let (finding, constraint) = both(&flat(), Some("16:00"));
        assert_eq!(
            finding,
            "lane-c (paid-hosted) holds in all 4 windows: at the peak, 16:00, 24 of 24 pass (86-100 %), which does not rule \
             out less than 90 % yet."
        );
        assert_eq!(constraint, None);
    }

    #[test]
    fn a_rate_below_the_bar_with_few_attempts_is_open_and_no_constraint() {
        // 20 of 24 = 83 %; the interval reaches 90 %.
        let s = slow();
        let summary = lane(
            "lane-b",
            Kind::FreeServer,
            &[(Some("09:00"), &[&[s, s], &[s], &[s]]), (Some("16:00"), &[&[], &[], &[]])],
        );
        let (finding, constraint) = both(&summary, Some("16:00"));
        assert!(finding.starts_with("lane-b (free-server) misses 90 % at 09:00: 20 of 24 pass ("), "{finding}");
        assert!(finding.ends_with("against 24/24 elsewhere; but so few attempts may miss by chance."), "{finding}");
        assert_eq!(
            constraint.unwrap(),
            "Reaches 90 % at 16:00. Open at 09:00: below 90 %, but so few attempts may miss by chance."
        );
    }

    #[test]
    fn a_lane_that_never_holds_names_its_best_window() {
        let l = limited();
        let half: &[_] = &[l; 4];
        let summary = lane(
            "lane-d",
            Kind::SelfHosted,
            &[(Some("09:00"), &[half, half, half]), (Some("16:00"), &[&[l; 8], half, half])],
        );
        let (finding, constraint) = both(&summary, None);
        assert!(
            finding.starts_with(
                "lane-d (self-hosted) reaches 90 % in none of its 2 windows: at best, 09:00, 12 of 24 pass (31-69 %)"
            ),
            "{finding}"
        );
        assert_eq!(constraint.unwrap(), "Not usable at 09:00, 16:00.");
    }

    #[test]
    fn a_burst_by_hand_speaks_of_itself_only() {
        let summary = lane("env", Kind::FreeHosted, &[(None, &[&[slow()]])]);
        let (finding, constraint) = both(&summary, None);
        assert_eq!(
            finding,
            "env (free-hosted) passes 7 of 8 (53-98 %) in 1 burst by hand; its windows were not measured."
        );
        assert_eq!(constraint, None);
    }

    #[test]
    fn no_decision_case_below_90_is_said_to_hold() {
        let mut seen = 0;
        for (name, case) in peaklane_testkit::data::cases("cases/stats") {
            let Some(windows) = case["input"]["windows"].as_object() else { continue };
            let mut summary = flat();
            let blank = WindowSummary {
                days: Vec::new(),
                pass_interval: None,
                plain_interval: None,
                ..summary.windows[0].clone()
            };
            summary.windows = windows
                .iter()
                .map(|(window, counts)| WindowSummary {
                    window: Some(window.clone()),
                    passed: counts["passed"].as_u64().unwrap() as u32,
                    n: counts["n"].as_u64().unwrap() as u32,
                    ..blank.clone()
                })
                .collect();
            summary.worst =
                (0..summary.windows.len()).min_by(|a, b| compare(&summary.windows[*a], &summary.windows[*b]));
            let (finding, _) = both(&summary, None);
            let below = summary.windows.iter().filter_map(WindowSummary::pass_rate).any(|r| r.below(90));
            assert_eq!(!finding.contains(" holds "), below, "{name}: {finding}");
            seen += 1;
        }
        assert!(seen > 0, "no case has windows");
    }
}
