//! What a watcher says while it runs: a line for each thing that happens.

use peaklane_core::budget::Exceeded;
use peaklane_core::burst::BurstState;
use peaklane_core::watch::{CampaignName, NextBurst, Note, Place, Shortly};
use peaklane_core::window::runtime::MissedReason;

use crate::palette::{Palette, Tone};
use crate::table::{Cell, Column, Table};
use crate::units::{counted, duration, money, one_line};
use crate::words::miss;

/// The line or lines of a note; empty for what needs no words.
pub fn lines(note: &Note, palette: Palette) -> String {
    let (tone, text) = told(note);
    match note {
        Note::Next { next } => next_table(next, palette),
        _ if text.is_empty() => String::new(),
        _ => format!("{}\n", palette.paint(tone, &one_line(&text))),
    }
}

fn told(note: &Note) -> (Tone, String) {
    use Note as N;
    match note {
        N::CampaignBegun { name, first_date, last_date, bursts } => {
            (Tone::Strong, format!("{} begins: {}", named(name), span(first_date, last_date, *bursts)))
        }
        N::CampaignContinued { name, first_date, last_date, bursts, over } => (
            Tone::Strong,
            format!("{} goes on: {}, {over} of them over", named(name), span(first_date, last_date, *bursts)),
        ),
        N::CampaignReplaced { name, former, changed } => (
            Tone::Warn,
            format!(
                "{} is a new series: the configuration changed since campaign {former} ({}), which ends here",
                named(name),
                if changed.is_empty() { "another campaign was asked for".to_owned() } else { changed.join(", ") }
            ),
        ),
        N::LaneGone { name, lane } => (
            Tone::Warn,
            format!(
                "{lane} is no longer in the configuration: its bursts of {} are not run, and count as nothing",
                named(name)
            ),
        ),
        N::LaneJoined { name, lane } => (Tone::Plain, format!("{lane} joins {}: its series begins now", named(name))),
        N::BeforeStart { bursts, .. } => (
            Tone::Dim,
            format!("{} lie before the begin of the campaign: no misses, and not made up", counted(*bursts, "burst")),
        ),
        N::BurstBegun { .. } | N::Next { .. } => (Tone::Dim, String::new()),
        N::BurstEnded { place, shortly } => ended(place, shortly),
        N::BurstInterrupted { place, reason } => {
            (Tone::Warn, format!("{}  interrupted: {}; it counts neither way", at(place), interrupted(reason)))
        }
        N::WindowMissed { place, reason } => {
            (Tone::Warn, format!("{}  missed: {}; missing data, no failure", at(place), missed(reason)))
        }
        N::AnotherWatcher { place } => (Tone::Dim, format!("{}  is run by another watcher", at(place))),
        N::ModelChanged { place, before, after } => (
            Tone::Warn,
            format!("{}  answers as another model: {}, before {}", place.lane, after.join(", "), before.join(", ")),
        ),
        N::FingerprintChanged { place, before, after } => (
            Tone::Warn,
            format!(
                "{}  has another system fingerprint: {}, before {}",
                place.lane,
                after.join(", "),
                before.join(", ")
            ),
        ),
        N::ClockStepped { by_s } => (
            Tone::Warn,
            format!(
                "the clock was put {} by {}",
                if *by_s < 0 { "back" } else { "forward" },
                long(by_s.unsigned_abs())
            ),
        ),
        N::Slept { for_s } => (Tone::Warn, format!("the machine was asleep for {}", long(*for_s))),
        N::StoreAway { error } => {
            (Tone::Bad, format!("{error}: nothing is sent until it can be written; trying again"))
        }
        N::StoreBack => (Tone::Plain, "the store can be written again".to_owned()),
        N::BudgetStop { exceeded } => (Tone::Warn, budget(exceeded)),
        N::AfterCampaign { name, windows } => {
            (Tone::Strong, format!("{} is complete; bursts at {} go on", named(name), windows.join(", ")))
        }
        N::Finished { name } => {
            (Tone::Strong, format!("{} is over; `peaklane watch --fresh` begins another one", named(name)))
        }
        N::CampaignStopped { name, why } => (Tone::Warn, format!("{} was stopped: {why}", named(name))),
        N::Interrupted => {
            (Tone::Plain, "stopped; the campaign goes on when `peaklane watch` is started again".to_owned())
        }
    }
}

fn named(name: &CampaignName) -> String {
    match &name.site {
        Some(site) => format!("campaign {} at {site}", name.campaign),
        None => format!("campaign {}", name.campaign),
    }
}

fn span(first: &str, last: &str, bursts: u64) -> String {
    let days = if first == last { first.to_owned() } else { format!("{first} to {last}") };
    format!("{days}, {}", counted(bursts, "burst"))
}

/// `2026-12-01 16:00  lane-a  inline-assist`
fn at(place: &Place) -> String {
    let site = place.site.as_ref().map(|site| format!("{site}  ")).unwrap_or_default();
    let nth = if place.nth > 0 { format!(" (burst {})", place.nth + 1) } else { String::new() };
    format!("{site}{} {}{nth}  {}  {}", place.date, place.window, place.lane, place.task)
}

fn ended(place: &Place, shortly: &Shortly) -> (Tone, String) {
    if shortly.state == BurstState::Void {
        let finding = shortly.finding.as_deref().unwrap_or("the request itself was at fault");
        return (Tone::Warn, format!("{}  void: {finding}", at(place)));
    }
    let mut text = format!("{}  {}/{} passed", at(place), shortly.passed, shortly.n);
    if let Some(us) = shortly.p90_us {
        let (what, more) = (if shortly.n < 10 { "worst" } else { "p90" }, if shortly.p90_exceeds { "> " } else { "" });
        text.push_str(&format!(", {what} {more}{}", duration(us)));
    }
    if shortly.retried > 0 {
        text.push_str(&format!(", {} retried", shortly.retried));
    }
    if let Some(miss_class) = &shortly.miss {
        text.push_str(&format!(", mostly {}", miss(miss_class)));
    }
    (if shortly.passed == shortly.n { Tone::Good } else { Tone::Plain }, text)
}

/// Why a window was missed.
pub fn missed(reason: &str) -> &'static str {
    match MissedReason::from_name(reason) {
        Some(MissedReason::Asleep) => "the machine was asleep",
        Some(MissedReason::Clock) => "the clock was put forward over it",
        Some(MissedReason::NotRunning) => "no watcher was running",
        Some(MissedReason::Busy) => "other bursts left no time",
        Some(MissedReason::Stalled) => "the watcher or its store stood still",
        None => "nobody knows why",
    }
}

fn interrupted(reason: &str) -> &'static str {
    match reason {
        "asleep" => "the machine fell asleep",
        "stopped" => "the watcher was stopped",
        "abandoned" => "its watcher died",
        _ => "it could not be recorded",
    }
}

/// What the budget stopped, with what is missing.
pub fn budget(exceeded: &Exceeded) -> String {
    let Exceeded { what, cap, used, next } = *exceeded;
    let (key, figure): (&str, fn(u64) -> String) = match what {
        "tokens" => ("budget_tokens", |n| counted(n, "token")),
        "micro_usd" => ("budget_usd", money),
        _ => ("budget_requests", |n| counted(n, "request")),
    };
    let missing = used.saturating_add(next).saturating_sub(cap);
    format!(
        "the budget stops the campaign: `{key}` allows {}, {} are used and the next burst may need {}: {} are missing",
        figure(cap),
        figure(used),
        figure(next),
        figure(missing)
    )
}

fn next_table(next: &[NextBurst], palette: Palette) -> String {
    let mut table = Table::new(vec![
        Column::words("next", ""),
        Column::words("site", ""),
        Column::words("lane", ""),
        Column::words("local", ""),
        Column::words("in", ""),
    ]);
    for one in next {
        table.row(vec![
            Cell::text("next"),
            Cell::text(one.site.as_deref().unwrap_or_default()),
            Cell::text(&one.lane),
            Cell::text(&one.local),
            Cell::text(format!("in {}", long(one.in_s))),
        ]);
    }
    let text = table.render(200, Palette::PLAIN);
    // the head of the table says nothing that the lines do not
    let lines = text.lines().filter(|line| line.starts_with("next"));
    lines.map(|line| format!("{}\n", palette.paint(Tone::Dim, line.trim_end()))).collect()
}

/// A time that people wait for: `40 s`, `12 min`, `4 h 59 min`, `2 days 3 h`.
///
/// * `s`: seconds; rounded down to the unit shown last.
pub fn long(s: u64) -> String {
    match s {
        0..120 => format!("{s} s"),
        120..7_200 => format!("{} min", s / 60),
        7_200..172_800 => format!("{} h {} min", s / 3_600, s % 3_600 / 60),
        _ => format!("{} days {} h", s / 86_400, s % 86_400 / 3_600),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn place() -> Place {
        Place {
            campaign: "7f3a".into(),
            site: None,
            date: "2026-12-01".into(),
            window: "16:00".into(),
            nth: 0,
            lane: "lane-a".into(),
            task: "inline-assist".into(),
        }
    }

    fn shortly() -> Shortly {
        Shortly {
            burst: "b".into(),
            state: BurstState::Complete,
            passed: 5,
            n: 8,
            retried: 2,
            p90_us: Some(60_000_000),
            p90_exceeds: true,
            miss: Some("rate_limited".into()),
            finding: None,
        }
    }

    #[test]
    fn each_thing_that_happens_has_a_line() {
        let name = CampaignName { campaign: "7f3a".into(), site: Some("berlin".into()) };
        let next = |lane: &str, in_s| NextBurst {
            site: None,
            lane: lane.into(),
            local: "2026-12-01 21:00".into(),
            due_unix_us: 0,
            in_s,
        };
        let notes = [
            Note::CampaignBegun {
                name: name.clone(),
                first_date: "2026-12-01".into(),
                last_date: "2026-12-03".into(),
                bursts: 24,
            },
            Note::CampaignReplaced { name: name.clone(), former: "00aa".into(), changed: vec!["tasks".into()] },
            Note::BurstEnded { place: place(), shortly: shortly() },
            Note::BurstEnded {
                place: place(),
                shortly: Shortly { passed: 8, retried: 0, miss: None, p90_exceeds: false, ..shortly() },
            },
            Note::BurstInterrupted { place: place(), reason: "abandoned".into() },
            Note::WindowMissed { place: place(), reason: "asleep".into() },
            Note::ModelChanged { place: place(), before: vec!["m-1".into()], after: vec!["m-2".into()] },
            Note::ClockStepped { by_s: -7_260 },
            Note::Slept { for_s: 200_000 },
            Note::StoreAway { error: "the disk is full".into() },
            Note::BudgetStop { exceeded: Exceeded { what: "requests", cap: 20, used: 18, next: 9 } },
            Note::AfterCampaign { name: name.clone(), windows: vec!["16:00".into()] },
            Note::LaneGone { name, lane: "lane-b".into() },
            Note::Next { next: vec![next("lane-a", 17_940), next("lane-long", 90)] },
        ];
        let text: String = notes.iter().map(|note| lines(note, Palette::PLAIN)).collect();
        insta::assert_snapshot!(text, @r"
        campaign 7f3a at berlin begins: 2026-12-01 to 2026-12-03, 24 bursts
        campaign 7f3a at berlin is a new series: the configuration changed since campaign 00aa (tasks), which ends here
        2026-12-01 16:00  lane-a  inline-assist  5/8 passed, worst > 60.0 s, 2 retried, mostly rate limited
        2026-12-01 16:00  lane-a  inline-assist  8/8 passed, worst 60.0 s
        2026-12-01 16:00  lane-a  inline-assist  interrupted: its watcher died; it counts neither way
        2026-12-01 16:00  lane-a  inline-assist  missed: the machine was asleep; missing data, no failure
        lane-a  answers as another model: m-2, before m-1
        the clock was put back by 2 h 1 min
        the machine was asleep for 2 days 7 h
        the disk is full: nothing is sent until it can be written; trying again
        the budget stops the campaign: `budget_requests` allows 20 requests, 18 requests are used and the next burst may need 9 requests: 7 requests are missing
        campaign 7f3a at berlin is complete; bursts at 16:00 go on
        lane-b is no longer in the configuration: its bursts of campaign 7f3a at berlin are not run, and count as nothing
        next  lane-a     2026-12-01 21:00  in 4 h 59 min
        next  lane-long  2026-12-01 21:00  in 90 s
        ");
    }
}
