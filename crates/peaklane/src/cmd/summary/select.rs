//! Which bursts are summed up.

use std::str::FromStr;

use jiff::Timestamp;
use jiff::tz::TimeZone;
use peaklane_core::burst::BurstHeader;
use peaklane_core::config::{Day, Micros};
use peaklane_store::EventRow;

use super::SummaryArgs;
use super::gather::Gathered;
use crate::failure::Failure;

/// From when on.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Since {
    /// From this local date of the burst on; where a burst has none, from this date in UTC on.
    Day(Day),
    /// From this instant on, microseconds since the Unix epoch (UTC).
    Instant(i64),
    /// So long before now.
    Ago(Micros),
}

/// A text that is no begin.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("write a date (2026-11-23), an instant (2026-11-23T15:00:00Z) or how long ago (3d, 36h)")]
pub struct BadSince;

impl FromStr for Since {
    type Err = BadSince;
    fn from_str(text: &str) -> Result<Self, Self::Err> {
        if let Ok(day) = text.parse() {
            return Ok(Self::Day(day));
        }
        if let Ok(instant) = text.parse::<Timestamp>() {
            return Ok(Self::Instant(instant.as_microsecond()));
        }
        text.parse().map(Self::Ago).map_err(|_| BadSince)
    }
}

/// All that was asked for.
#[derive(Clone, Debug)]
pub(super) struct Wish {
    lanes: Vec<String>,
    tasks: Vec<String>,
    run: Option<String>,
    since: Option<Since>,
    /// "Now" for [`Since::Ago`], microseconds since the Unix epoch (UTC).
    now_unix_us: i64,
}

impl Wish {
    pub(super) fn new(args: &SummaryArgs) -> Self {
        Self {
            lanes: args.lane.clone(),
            tasks: args.task.clone(),
            run: args.run.clone(),
            since: args.since.clone(),
            now_unix_us: Timestamp::now().as_microsecond(),
        }
    }

    /// True for a burst that was asked for.
    pub(super) fn fits(&self, header: &BurstHeader) -> bool {
        let among = |wanted: &[String], name: &str| wanted.is_empty() || wanted.iter().any(|one| one == name);
        among(&self.lanes, &header.lane)
            && among(&self.tasks, &header.task)
            && self.run.as_ref().is_none_or(|run| *run == header.run)
            && self.since.as_ref().is_none_or(|since| self.is_since(since, header))
    }

    fn is_since(&self, since: &Since, header: &BurstHeader) -> bool {
        match since {
            Since::Instant(instant) => header.started_unix_us >= *instant,
            Since::Ago(span) => {
                let span = i64::try_from(span.as_us()).unwrap_or(i64::MAX);
                header.started_unix_us >= self.now_unix_us.saturating_sub(span)
            }
            Since::Day(day) => {
                let own = header.date.as_ref().and_then(|date| date.parse::<Day>().ok());
                own.or_else(|| utc_day(header.started_unix_us)).is_some_and(|own| own >= *day)
            }
        }
    }

    /// The begin of what was asked for, microseconds since the Unix epoch (UTC); a date begins in that zone.
    pub(super) fn since_unix_us(&self, zone: &TimeZone) -> Option<i64> {
        Some(match self.since.as_ref()? {
            Since::Instant(instant) => *instant,
            Since::Ago(span) => self.now_unix_us.saturating_sub(i64::try_from(span.as_us()).unwrap_or(i64::MAX)),
            Since::Day(day) => {
                let midnight: jiff::civil::Date = day.to_string().parse().ok()?;
                zone.to_ambiguous_zoned_datetime(midnight.at(0, 0, 0, 0))
                    .compatible()
                    .ok()?
                    .timestamp()
                    .as_microsecond()
            }
        })
    }

    /// True for an event of a lane and task class that were asked for, since then; one that concerns no lane concerns all.
    pub(super) fn concerns(&self, event: &EventRow) -> bool {
        let among = |wanted: &[String], name: &Option<String>| {
            wanted.is_empty() || name.as_ref().is_none_or(|name| wanted.contains(name))
        };
        let since = match &self.since {
            None => true,
            Some(Since::Instant(instant)) => event.unix_us >= *instant,
            Some(Since::Ago(span)) => {
                let span = i64::try_from(span.as_us()).unwrap_or(i64::MAX);
                event.unix_us >= self.now_unix_us.saturating_sub(span)
            }
            Some(Since::Day(day)) => utc_day(event.unix_us).is_some_and(|own| own >= *day),
        };
        since && among(&self.lanes, &event.lane) && among(&self.tasks, &event.task)
    }

    /// What to say when no burst is left.
    pub(super) fn nothing(&self, gathered: &Gathered) -> Failure {
        let sources = gathered.sources.iter().map(|source| format!("`{source}`")).collect::<Vec<_>>().join(", ");
        if gathered.seen == 0 {
            return Failure::unmeasured(format!("there is no burst in {sources} yet"))
                .with_hint("run `peaklane burst` first");
        }
        let names = |known: &std::collections::BTreeSet<String>| {
            known.iter().map(|name| format!("`{name}`")).collect::<Vec<_>>().join(", ")
        };
        let failure = Failure::unmeasured(format!("none of the bursts in {sources} is one that was asked for"));
        failure.with_hint(format!(
            "there are lanes {} and task classes {}; leave out `--lane`, `--task`, `--run` or `--since` to see more",
            names(&gathered.lanes),
            names(&gathered.tasks)
        ))
    }
}

fn utc_day(unix_us: i64) -> Option<Day> {
    let instant = Timestamp::from_microsecond(unix_us).ok()?;
    instant.to_string().get(..10)?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;
    use peaklane_core::burst::{Connections, PromptMode};
    use peaklane_core::lane::{Api, Kind};

    /// Begun at 23:30 UTC on the 29th, which was 00:30 on the 30th in Berlin.
    fn header(date: Option<&str>) -> BurstHeader {
        BurstHeader {
            id: "x".into(),
            run: "r1".into(),
            lane: "lane-a".into(),
            kind: Kind::FreeHosted,
            api: Api::Chat,
            model: "m".into(),
            base_url: "http://h/v1".into(),
            task: "inline-assist".into(),
            floor_us: 25_000_000,
            attempts: 8,
            concurrency: None,
            spacing_us: 0,
            prompt_mode: PromptMode::Nonce,
            connections: Connections::Before,
            stream: true,
            max_retries: 2,
            total_timeout_us: 60_000_000,
            seed: 1,
            prompt_hash: "h".into(),
            date: date.map(str::to_owned),
            window: None,
            zone: None,
            started_unix_us: "2026-11-29T23:30:00Z".parse::<Timestamp>().unwrap().as_microsecond(),
            tool_version: "0.1.0".into(),
            simulated: false,
            tasks_per_hour_floor: None,
            stretch_us: None,
            campaign: None,
            site: None,
        }
    }

    fn wish(since: Option<&str>) -> Wish {
        Wish {
            lanes: Vec::new(),
            tasks: Vec::new(),
            run: None,
            since: since.map(|text| text.parse().unwrap()),
            now_unix_us: "2026-12-01T00:00:00Z".parse::<Timestamp>().unwrap().as_microsecond(),
        }
    }

    #[test]
    fn a_date_means_the_local_date_of_the_burst() {
        assert!(wish(Some("2026-11-30")).fits(&header(Some("2026-11-30"))));
        assert!(!wish(Some("2026-11-30")).fits(&header(None)));
        assert!(wish(Some("2026-11-29")).fits(&header(None)));
        assert!(!wish(Some("2026-12-01")).fits(&header(Some("2026-11-30"))));
    }

    #[test]
    fn an_instant_and_a_span_count_from_the_begin_of_the_burst() {
        assert!(wish(Some("2026-11-30T00:30:00+01:00")).fits(&header(None)));
        assert!(!wish(Some("2026-11-29T23:30:00.000001Z")).fits(&header(None)));
        // 24 h 30 min before "now"
        assert!(wish(Some("25h")).fits(&header(None)));
        assert!(!wish(Some("1d")).fits(&header(None)));
    }

    #[test]
    fn what_is_no_begin_is_refused() {
        for text in ["yesterday", "2026-13-01", "", "3 days ago", "-1d"] {
            assert!(text.parse::<Since>().is_err(), "{text}");
        }
    }

    #[test]
    fn several_lanes_may_be_asked_for_and_a_name_is_meant_exactly() {
        let mut wish = wish(None);
        wish.lanes = vec!["lane-b".into(), "lane-a".into()];
        assert!(wish.fits(&header(None)));
        wish.lanes = vec!["lane".into()];
        assert!(!wish.fits(&header(None)));
        wish.lanes.clear();
        wish.run = Some("r2".into());
        assert!(!wish.fits(&header(None)));
    }
}
