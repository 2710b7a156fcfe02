//! Where the bursts of a summary come from: the store, or CSV files alone.

use std::collections::{BTreeSet, HashMap};
use std::path::{Path, PathBuf};

use peaklane_core::burst::{AttemptFigures, BurstHeader, BurstState, ControlFigures};
use peaklane_core::summary::BurstData;
use peaklane_store::{BurstFilter, StoreReader, csv};
use serde::Serialize;

use super::select::Wish;
use crate::failure::Failure;

/// Warnings of one file that are told one by one; of more there is only the number.
const TOLD_WARNINGS: usize = 10;

/// The bursts that were asked for, and what there was beside them.
#[derive(Debug, Default)]
pub(super) struct Gathered {
    /// The bursts that fit.
    pub(super) bursts: Vec<Burst>,
    /// Store or files, as they were named.
    pub(super) sources: Vec<String>,
    /// What was skipped or looked odd.
    pub(super) warnings: Vec<Warning>,
    /// Bursts in all, also those that nobody asked for.
    pub(super) seen: usize,
    /// Their lanes.
    pub(super) lanes: BTreeSet<String>,
    /// Their task classes.
    pub(super) tasks: BTreeSet<String>,
}

/// One burst with what a summary needs of its attempts.
#[derive(Debug)]
pub(super) struct Burst {
    header: BurstHeader,
    state: BurstState,
    figures: Vec<AttemptFigures>,
    /// What the control endpoint took beside it; only a store keeps that.
    control: Option<ControlFigures>,
}

impl Burst {
    pub(super) fn header(&self) -> &BurstHeader {
        &self.header
    }

    pub(super) fn control(&self) -> Option<&ControlFigures> {
        self.control.as_ref()
    }

    /// The attempts of a burst that counts; none of another.
    pub(super) fn counted(&self) -> &[AttemptFigures] {
        if self.state == BurstState::Complete { &self.figures } else { &[] }
    }
}

/// Something in a file that did not stop the reading.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub(super) struct Warning {
    /// The file.
    pub(super) file: String,
    /// The line, from 1; `None` for the file as a whole.
    pub(super) line: Option<u64>,
    /// What it was.
    pub(super) message: String,
}

impl Gathered {
    /// What the arithmetic takes.
    pub(super) fn data(&self) -> Vec<BurstData<'_>> {
        self.bursts
            .iter()
            .map(|Burst { header, state, figures, .. }| BurstData { header, state: *state, figures })
            .collect()
    }

    /// The warnings as lines, at most [`TOLD_WARNINGS`] of each file.
    pub(super) fn told_warnings(&self) -> Vec<String> {
        let mut lines = Vec::new();
        for source in &self.sources {
            let of_file: Vec<&Warning> = self.warnings.iter().filter(|w| w.file == *source).collect();
            lines.extend(of_file.iter().take(TOLD_WARNINGS).map(|w| match w.line {
                Some(line) => format!("{source}, line {line}: {}", w.message),
                None => format!("{source}: {}", w.message),
            }));
            if of_file.len() > TOLD_WARNINGS {
                lines.push(format!("{source}: and {} more of the kind", of_file.len() - TOLD_WARNINGS));
            }
        }
        lines
    }

    fn saw(&mut self, header: &BurstHeader) {
        self.seen += 1;
        self.lanes.insert(header.lane.clone());
        self.tasks.insert(header.task.clone());
    }
}

/// All bursts of the store that fit.
///
/// # Errors
/// As the store has them: none there, not ours, too new.
pub(super) fn from_store(path: &Path, wish: &Wish) -> Result<Gathered, Failure> {
    let reader = StoreReader::open(path)?;
    let mut gathered = Gathered { sources: vec![path.display().to_string()], ..Gathered::default() };
    for stored in reader.bursts(&BurstFilter::default())? {
        gathered.saw(&stored.header);
        if wish.fits(&stored.header) {
            let figures = reader.figures(&stored.header.id)?;
            let state = stored.state();
            let control = stored.end.and_then(|end| end.control);
            gathered.bursts.push(Burst { state, header: stored.header, figures, control });
        }
    }
    Ok(gathered)
}

/// All bursts of the files that fit. A burst that stands in two files counts once.
///
/// # Errors
/// As the files have them, and for two bursts that share an id and differ: files of that sort cannot be put together.
pub(super) fn from_files(files: &[PathBuf], wish: &Wish) -> Result<Gathered, Failure> {
    let mut gathered = Gathered::default();
    let mut places: HashMap<String, (usize, String)> = HashMap::new();
    for path in files {
        let file = path.display().to_string();
        if gathered.sources.contains(&file) {
            continue;
        }
        gathered.sources.push(file.clone());
        let read = csv::read(path)?;
        gathered.warnings.extend(read.warnings.into_iter().map(|warning| Warning {
            file: file.clone(),
            line: Some(warning.line),
            message: warning.message,
        }));
        for burst in read.bursts {
            gathered.saw(&burst.header);
            if !wish.fits(&burst.header) {
                continue;
            }
            let burst = Burst { header: burst.header, state: burst.state, figures: burst.figures, control: None };
            match places.get(&burst.header.id) {
                None => {
                    places.insert(burst.header.id.clone(), (gathered.bursts.len(), file.clone()));
                    gathered.bursts.push(burst);
                }
                Some((at, first)) => {
                    let message = put_together(&mut gathered.bursts[*at], burst, first, &file)?;
                    gathered.warnings.push(Warning { file: file.clone(), line: None, message });
                }
            }
        }
    }
    Ok(gathered)
}

/// Of two copies of a burst the one with more attempts counts: a copy may have been made while the burst ran.
fn put_together(one: &mut Burst, other: Burst, first: &str, second: &str) -> Result<String, Failure> {
    let id = &other.header.id;
    let (fewer, more) = if other.figures.len() > one.figures.len() { (&*one, &other) } else { (&other, &*one) };
    if one.header != other.header || !more.figures.starts_with(&fewer.figures) {
        return Err(Failure::usage(format!("burst `{id}` is in `{first}` and in `{second}`, with other figures"))
            .with_hint("one of the two files was changed: sum up the one that is right, alone"));
    }
    let message = format!("burst `{id}` is in `{first}` too; it counts once");
    if other.figures.len() > one.figures.len() {
        *one = other;
    }
    Ok(message)
}
