//! What the commands of a counter-test share: configuration, store, bursts, moments, and how it is shown.

use std::path::PathBuf;

use jiff::Timestamp;
use jiff::civil::Time;
use jiff::tz::TimeZone;
use peaklane_core::burst::{AttemptFigures, BurstHeader, BurstState};
use peaklane_core::config::{Config, Day};
use peaklane_core::countertest::{DOCUMENT_KIND, Judgement, Notice, Now, Registered, Side, Snapshot};
use peaklane_core::summary::BurstData;
use peaklane_report::countertest::{self as view, CounterTestView, Moment};
use peaklane_run::clock::wall_us;
use peaklane_run::plan_hash::plan_hash;
use peaklane_store::{BurstFilter, DocumentRow, Ledger, StoreReader};

use crate::exit::Exit;
use crate::failure::Failure;
use crate::globals::{Format, Globals};
use crate::load::{ProcessEnvironment, load, time_zone};
use crate::out;

/// Bursts of one task class with what counts of them.
pub(super) struct Bursts(Vec<(BurstHeader, BurstState, Vec<AttemptFigures>)>);

impl Bursts {
    /// All bursts of a task class in the store.
    pub(super) fn of(globals: &Globals, task: &str) -> Result<Self, Failure> {
        let reader = StoreReader::open(globals.store.path())?;
        let filter = BurstFilter { task: Some(task.to_owned()), ..BurstFilter::default() };
        let mut all = Vec::new();
        for stored in reader.bursts(&filter)?.into_iter().filter(|stored| stored.header.window.is_some()) {
            let figures = reader.figures(&stored.header.id)?;
            all.push((stored.header.clone(), stored.state(), figures));
        }
        Ok(Self(all))
    }

    /// What the arithmetic takes.
    pub(super) fn data(&self) -> Vec<BurstData<'_>> {
        self.0.iter().map(|(header, state, figures)| BurstData { header, state: *state, figures }).collect()
    }
}

/// The configuration as the commands below see it.
pub(super) fn configuration(globals: &Globals) -> Result<Config, Failure> {
    Ok(load(globals.config.as_deref(), &ProcessEnvironment)?.config)
}

/// A lane and a task class as the configuration has them; `None` where it has them not.
pub(super) fn snapshot(config: &Config, lane: &str, task: &str) -> Option<Snapshot> {
    let (lane, task) = (config.lane(lane)?, config.task(task)?);
    Some(Snapshot::of(config, lane, task, plan_hash(task, true)))
}

/// The lanes of a counter-test as the configuration has them now.
pub(super) fn now_of(config: &Config, test: &Registered) -> Now {
    let of = |name: Option<&String>| name.and_then(|name| snapshot(config, name, &test.task));
    Now { tested: of(Some(&test.lane)), target: of(test.to.as_ref()), unchanged: of(test.beside.as_ref()) }
}

/// The moment that counts as now: the end of a local day, or the clock's.
pub(super) fn moment(as_of: Option<Day>, zone: &TimeZone) -> Result<i64, Failure> {
    let Some(day) = as_of else { return Ok(wall_us()) };
    let next = day.date().tomorrow().and_then(|date| zone.to_timestamp(date.to_datetime(Time::midnight())));
    let next = next.map_err(|e| Failure::of(Exit::Usage, &e, None))?;
    Ok(next.as_microsecond() - 1)
}

/// A zone by its name.
pub(super) fn zone(name: &str) -> Result<TimeZone, Failure> {
    time_zone(name).map_err(|e| Failure::of(Exit::Usage, &e, e.hint()))
}

/// All counter-tests of the store, oldest first.
pub(super) fn stored(ledger: &Ledger) -> Result<Vec<Registered>, Failure> {
    let read = |row: DocumentRow| {
        serde_json::from_str(&row.body).map_err(|e| {
            Failure::of(Exit::Unmeasured, &e, None).because(format!("the document `{}` cannot be read", row.id))
        })
    };
    ledger.documents(DOCUMENT_KIND)?.into_iter().map(read).collect()
}

/// Keeps a counter-test.
pub(super) fn store(ledger: &Ledger, test: &Registered, now_unix_us: i64) -> Result<(), Failure> {
    let body = serde_json::to_string(test).map_err(|e| Failure::of(Exit::Unmeasured, &e, None))?;
    let row =
        DocumentRow { id: test.id.clone(), kind: DOCUMENT_KIND.to_owned(), created_unix_us: test.begun_unix_us, body };
    Ok(ledger.put_document(&row, now_unix_us)?)
}

/// A counter-test with all that there is to say about it.
pub(super) struct Standing {
    pub(super) test: Registered,
    pub(super) found: Option<Notice>,
    pub(super) changed_unix_us: Option<i64>,
    pub(super) end_possible_unix_us: Option<i64>,
    pub(super) now_unix_us: i64,
    pub(super) after: Vec<Side>,
    pub(super) after_beside: Vec<Side>,
    pub(super) judgement: Option<Judgement>,
}

impl Standing {
    /// Looks at the bursts that there are up to a moment.
    pub(super) fn of(
        test: Registered,
        found: Option<Notice>,
        bursts: &Bursts,
        now_unix_us: i64,
    ) -> Result<Self, Failure> {
        let zone = zone(&test.zone)?;
        let (changed_unix_us, after, after_beside) = match &test.ended {
            Some(ended) => (ended.changed_unix_us, ended.after.clone(), ended.after_beside.clone()),
            None => {
                let data = bursts.data();
                let (after, beside) = test.after(&data, now_unix_us);
                (test.changed_unix_us(&data), after, beside)
            }
        };
        let end_possible_unix_us = changed_unix_us.and_then(|changed| test.end_possible_unix_us(changed, &zone));
        let judgement = test.ended.as_ref().and_then(|ended| ended.judgement.clone());
        Ok(Self { test, found, changed_unix_us, end_possible_unix_us, now_unix_us, after, after_beside, judgement })
    }

    /// The wait is over.
    pub(super) fn ripe(&self) -> bool {
        self.end_possible_unix_us.is_some_and(|ready| ready <= self.now_unix_us)
    }

    /// A moment in the zone of the windows.
    pub(super) fn local(&self, unix_us: i64) -> Option<Moment> {
        let instant = Timestamp::from_microsecond(unix_us).ok()?;
        let there = instant.to_zoned_datetime(zone(&self.test.zone).ok()?);
        let utc = instant.strftime("%Y-%m-%dT%H:%M:%SZ").to_string();
        Some(Moment { local: there.strftime("%Y-%m-%d %H:%M").to_string(), utc })
    }

    /// For people and programs.
    pub(super) fn view(&self) -> CounterTestView<'_> {
        let (windows, beside) = match &self.judgement {
            Some(judgement) => (judgement.windows.clone(), judgement.beside.clone()),
            None => self.test.counts(&self.after, &self.after_beside),
        };
        let ids = |sides: &[Side]| sides.iter().flat_map(|s| &s.bursts).map(|b| b.id.clone()).collect();
        CounterTestView {
            test: &self.test,
            found: self.found.clone(),
            begun: self
                .local(self.test.begun_unix_us)
                .unwrap_or_else(|| Moment { local: String::new(), utc: String::new() }),
            changed: self.changed_unix_us.and_then(|at| self.local(at)),
            end_possible: self.end_possible_unix_us.and_then(|at| self.local(at)),
            ripe: self.ripe(),
            ended: self.test.ended.as_ref().and_then(|ended| self.local(ended.unix_us)),
            windows,
            beside,
            judgement: self.judgement.as_ref(),
            after: ids(&self.after),
            after_beside: ids(&self.after_beside),
        }
    }
}

/// Prints them in the form that was asked for.
pub(super) fn print(standings: &[Standing], globals: &Globals) -> Result<(), Failure> {
    let views: Vec<CounterTestView<'_>> = standings.iter().map(Standing::view).collect();
    out::print(&match globals.format {
        Format::Table => view::render(&views, globals.width, globals.palette),
        Format::Md => view::markdown(&views),
        Format::Csv => view::table(&views).csv().map_err(|e| Failure::of(Exit::Unmeasured, &e, None))?,
        Format::Json => format!("{:#}\n", view::json(&views)),
    })
}

/// The store of these commands: it must be there.
pub(super) fn reading(globals: &Globals) -> Result<(Ledger, PathBuf), Failure> {
    let path = globals.store.path();
    Ok((Ledger::open_to_read(path)?, path.to_owned()))
}
