//! How a scheduled campaign stands: what `summary status` shows.

use peaklane_core::watch::{NextBurst, Place};
use peaklane_core::window::alive::Pulse;
use serde::Serialize;

use super::words::{long, missed};
use crate::notes::{self, Note};
use crate::palette::{Palette, Tone};
use crate::table::{Cell, Column, Table};
use crate::units::counted;

/// Missed windows that are told one by one; of more there is only the number.
const TOLD: usize = 8;

/// One campaign.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct CampaignStatus {
    /// Id.
    pub campaign: String,
    /// Site, where the configuration has several.
    pub site: Option<String>,
    /// IANA zone of its local times.
    pub zone: String,
    /// First local date.
    pub first_date: String,
    /// Last local date of the campaign itself.
    pub last_date: String,
    /// How it stands.
    pub state: Pulse,
    /// Why it was stopped.
    pub stopped_why: Option<String>,
    /// Last sign of life of a running watcher, microseconds since the Unix epoch (UTC).
    pub watcher_seen_unix_us: Option<i64>,
    /// The same in seconds before now.
    pub watcher_seen_s: Option<i64>,
    /// That watcher ended on purpose.
    pub watcher_ended: bool,
    /// Last run of `watch --due`, microseconds since the Unix epoch (UTC).
    pub last_due_run_unix_us: Option<i64>,
    /// The same in seconds before now.
    pub last_due_run_s: Option<i64>,
    /// Bursts that run now.
    pub running: u64,
    /// Bursts whose time is over and of which nobody kept a record: no watcher was there.
    pub unattended: u64,
    /// By lane.
    pub lanes: Vec<LaneStatus>,
    /// Windows that were missed, the newest last.
    pub missed: Vec<MissedWindow>,
}

/// One lane of a campaign.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct LaneStatus {
    /// Name.
    pub lane: String,
    /// Bursts that ran, late ones included.
    pub ran: u64,
    /// Those of them that began late.
    pub late: u64,
    /// Missed windows: missing data.
    pub missed: u64,
    /// Bursts that were cut off.
    pub interrupted: u64,
    /// Bursts that were due before the begin of the campaign.
    pub before_start: u64,
    /// It is no longer in the configuration.
    pub gone: bool,
    /// Its next burst.
    pub next: Option<NextBurst>,
}

/// A window that was missed.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct MissedWindow {
    /// Which.
    #[serde(flatten)]
    pub place: Place,
    /// Why.
    pub reason: String,
}

/// The campaigns as text.
pub fn render(campaigns: &[CampaignStatus], width: usize, palette: Palette) -> String {
    let one = |status: &CampaignStatus| {
        let head = head(status);
        let (tone, sentence) = sentence(status);
        let notes = notes(status);
        format!(
            "{}\n{}\n\n{}\n{}",
            palette.paint(Tone::Strong, &head),
            palette.paint(tone, &sentence),
            lanes(status).render(width, palette),
            notes::render(&notes, width, palette)
        )
    };
    campaigns.iter().map(|status| format!("{}\n", one(status).trim_end())).collect::<Vec<_>>().join("\n")
}

/// The same as Markdown.
pub fn markdown(campaigns: &[CampaignStatus]) -> String {
    let one = |status: &CampaignStatus| {
        let (head, sentence) = (head(status), sentence(status).1);
        format!("**{head}**\n\n{sentence}\n\n{}\n{}", lanes(status).markdown(), notes::markdown(&notes(status)))
    };
    campaigns.iter().map(one).collect::<Vec<_>>().join("\n")
}

/// One line for each lane of each campaign.
///
/// # Errors
/// As [`Table::csv`].
pub fn csv(campaigns: &[CampaignStatus]) -> Result<String, csv::Error> {
    let mut all = Table::new(columns());
    campaigns.iter().flat_map(rows).for_each(|row| all.row(row));
    all.csv()
}

fn head(status: &CampaignStatus) -> String {
    let site = status.site.as_ref().map(|site| format!(" at {site}")).unwrap_or_default();
    format!("campaign {}{site} · {} to {} · {}", status.campaign, status.first_date, status.last_date, status.zone)
}

/// The sentence that matters.
fn sentence(status: &CampaignStatus) -> (Tone, String) {
    let ago = |s: i64| format!("{} ago", long(s.max(0).unsigned_abs()));
    match status.state {
        Pulse::Alive if status.running > 0 => {
            (Tone::Good, format!("alive: {} under way", counted(status.running, "burst")))
        }
        Pulse::Alive => {
            let seen = match (status.watcher_seen_s, status.last_due_run_s) {
                (watcher, Some(due)) if watcher.is_none_or(|s| s > due) => {
                    format!("`watch --due` ran last {}", ago(due))
                }
                (Some(s), _) => format!("a watcher is running, last seen {}", ago(s)),
                (None, _) => "a watcher is running".to_owned(),
            };
            (Tone::Good, format!("alive: {seen}"))
        }
        Pulse::Finished => (Tone::Plain, "finished: all its bursts are over".to_owned()),
        Pulse::Stopped => {
            let why = status.stopped_why.as_deref().unwrap_or("nobody knows why");
            (Tone::Warn, format!("stopped for good: {why}"))
        }
        Pulse::Dead => {
            let last = match (status.watcher_seen_s, status.last_due_run_s) {
                (Some(s), _) if status.watcher_ended => format!("the watcher was stopped {}", ago(s)),
                (Some(s), None) => format!("the watcher was last seen {}", ago(s)),
                (Some(s), Some(due)) if s < due => format!("the watcher was last seen {}", ago(s)),
                (_, Some(due)) => format!("`watch --due` ran last {}", ago(due)),
                (None, None) => "none was ever seen".to_owned(),
            };
            let passed = match status.unattended {
                0 => String::new(),
                n => format!("; the time of {} passed without anybody", counted(n, "burst")),
            };
            (Tone::Bad, format!("not alive: no watcher is running, {last}{passed}"))
        }
    }
}

fn columns() -> Vec<Column> {
    vec![
        Column::data("campaign"),
        Column::words("lane", "lane"),
        Column::figures("ran", "ran"),
        Column::figures("late", "late"),
        Column::figures("missed", "missed"),
        Column::figures("interrupted", "interrupted"),
        Column::figures("before_start", "before start"),
        Column::words("next_local", "next"),
        Column::data("next_unix_us"),
    ]
}

fn lanes(status: &CampaignStatus) -> Table {
    let mut table = Table::new(columns());
    rows(status).for_each(|row| table.row(row));
    table
}

fn rows(status: &CampaignStatus) -> impl Iterator<Item = Vec<Cell>> + '_ {
    let figure = |n: u64| Cell::new(n.to_string(), n);
    status.lanes.iter().map(move |lane| {
        let next = match &lane.next {
            Some(next) => Cell::new(format!("{}, in {}", next.local, long(next.in_s)), next.local.as_str()),
            None if lane.gone => Cell::new("no longer in the configuration", serde_json::Value::Null),
            None => Cell::absent(),
        };
        let missed = figure(lane.missed).tone(if lane.missed > 0 { Tone::Warn } else { Tone::Plain });
        vec![
            Cell::value(status.campaign.as_str()),
            Cell::text(&lane.lane),
            figure(lane.ran),
            figure(lane.late),
            missed,
            figure(lane.interrupted),
            figure(lane.before_start),
            next,
            lane.next.as_ref().map_or_else(Cell::absent, |next| Cell::value(next.due_unix_us)),
        ]
    })
}

fn notes(status: &CampaignStatus) -> Vec<Note> {
    let mut told: Vec<Note> = status
        .missed
        .iter()
        .rev()
        .take(TOLD)
        .map(|one| {
            let Place { date, window, lane, task, .. } = &one.place;
            Note::plain("missed", format!("{date} {window} {lane}, {task}: {}", missed(&one.reason)))
        })
        .collect();
    if status.missed.len() > TOLD {
        told.push(Note::plain("missed", format!("and {} earlier", status.missed.len() - TOLD)));
    }
    told
}

#[cfg(test)]
mod tests {
    use super::*;

    fn status(state: Pulse) -> CampaignStatus {
        let place = Place {
            campaign: "7f3a".into(),
            site: None,
            date: "2026-12-01".into(),
            window: "16:00".into(),
            nth: 0,
            lane: "lane-a".into(),
            task: "inline-assist".into(),
        };
        let next = NextBurst {
            site: None,
            lane: "lane-a".into(),
            local: "2026-12-01 21:00".into(),
            due_unix_us: 1_796_155_200_000_000,
            in_s: 17_940,
        };
        CampaignStatus {
            campaign: "7f3a".into(),
            site: None,
            zone: "Europe/Berlin".into(),
            first_date: "2026-12-01".into(),
            last_date: "2026-12-03".into(),
            state,
            stopped_why: None,
            watcher_seen_unix_us: Some(0),
            watcher_seen_s: Some(180),
            watcher_ended: false,
            last_due_run_unix_us: None,
            last_due_run_s: None,
            running: 0,
            unattended: if state == Pulse::Dead { 2 } else { 0 },
            lanes: vec![
                LaneStatus {
                    lane: "lane-a".into(),
                    ran: 5,
                    late: 1,
                    missed: 1,
                    next: Some(next),
                    ..LaneStatus::default()
                },
                LaneStatus { lane: "lane-b".into(), ran: 2, gone: true, ..LaneStatus::default() },
            ],
            missed: vec![MissedWindow { place, reason: "asleep".into() }],
        }
    }

    #[test]
    fn a_campaign_that_lives_says_what_ran_and_what_is_next() {
        insta::assert_snapshot!(render(&[status(Pulse::Alive)], 100, Palette::PLAIN), @r"
        campaign 7f3a · 2026-12-01 to 2026-12-03 · Europe/Berlin
        alive: a watcher is running, last seen 3 min ago

        lane    ran  late  missed  interrupted  before start  next
        lane-a    5     1       1            0             0  2026-12-01 21:00, in 4 h 59 min
        lane-b    2     0       0            0             0  no longer in the configuration

        missed       2026-12-01 16:00 lane-a, inline-assist: the machine was asleep
        ");
    }

    #[test]
    fn a_campaign_that_nobody_watches_says_so_first() {
        let text = render(&[status(Pulse::Dead)], 100, Palette::PLAIN);
        let second = text.lines().nth(1).unwrap();
        assert_eq!(
            second,
            "not alive: no watcher is running, the watcher was last seen 3 min ago; the time of 2 bursts passed without anybody"
        );
    }

    #[test]
    fn a_lane_is_a_line_for_programs() {
        let text = csv(&[status(Pulse::Alive)]).unwrap();
        assert_eq!(text.lines().nth(1), Some("7f3a,lane-a,5,1,1,0,0,2026-12-01 21:00,1796155200000000"), "{text}");
    }
}
