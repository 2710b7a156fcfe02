//! Reading: rows back to bursts, in any order of columns and rows, without trusting a line.

use std::collections::HashMap;
use std::fs::File;
use std::io::{BufRead, BufReader, Read as _};
use std::path::Path;
use std::str::FromStr;

use peaklane_core::attempt::Verdict;
use peaklane_core::burst::{AttemptFigures, BurstHeader, BurstState};

use super::columns::{COLUMNS, CSV_FORMAT, HEADER_COLUMNS, OPTIONAL_COLUMNS, describe, names, other, some_of};
use super::error::CsvError;
use super::line::{BadQuote, LINE_LIMIT_BYTES, split, unescape};
use crate::rows::{connections, prompt_mode, verdict};

/// What a file holds.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct CsvRead {
    /// Its bursts, in the order of their first rows.
    pub bursts: Vec<CsvBurst>,
    /// What was skipped or looks odd, by line.
    pub warnings: Vec<CsvWarning>,
}

/// One burst of a file.
#[derive(Clone, Debug, PartialEq)]
pub struct CsvBurst {
    /// What it was.
    pub header: BurstHeader,
    /// How it stands as far as rows tell: `Void` with a configuration finding, `Complete` when all attempts are there
    /// ([`BurstHeader::all_made`]), else `Running`.
    pub state: BurstState,
    /// Its attempts by number, warm-up excluded.
    pub figures: Vec<AttemptFigures>,
}

/// Something that did not stop the reading.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CsvWarning {
    /// Number of the line, from 1; the header is line 1.
    pub line: u64,
    /// What was found, and that it was skipped where it was.
    pub message: String,
}

/// Reads a file written by `burst --csv`.
///
/// Columns may stand in any order, unknown ones are ignored with a warning, those of [`OPTIONAL_COLUMNS`] may be
/// missing. A row that was cut (by `kill -9`, a full disk) and a row that is there twice are skipped with a warning.
///
/// # Errors
/// [`CsvError::OtherColumns`] when a needed column is missing, [`CsvError::Line`] for a line that cannot be true,
/// otherwise what the system refused.
pub fn read(path: &Path) -> Result<CsvRead, CsvError> {
    if path.is_dir() {
        return Err(CsvError::Folder { path: path.to_path_buf() });
    }
    let file = File::open(path).map_err(|e| CsvError::io(path, "open", e))?;
    read_from(path, BufReader::new(file))
}

fn read_from(path: &Path, mut input: impl BufRead) -> Result<CsvRead, CsvError> {
    let mut lines = Lines { path, input: &mut input, number: 0, ended: true };
    let mut done = CsvRead::default();
    let Some(first) = lines.next()? else { return Err(CsvError::Empty { path: path.to_path_buf() }) };
    if !lines.ended && first.len() < COLUMNS.join(",").len() && COLUMNS.join(",").starts_with(&first) {
        done.warn(1, "the header was cut while it was written; there is no row");
        return Ok(done);
    }
    let columns = Columns::new(path, &first, &mut done)?;
    let mut bursts = Bursts::default();
    while let Some(text) = lines.next()? {
        let line = lines.number;
        if text.is_empty() {
            continue;
        }
        if text == first {
            done.warn(line, "the header again, skipped");
            continue;
        }
        let fields = match columns.fields(&text) {
            Ok(fields) => fields,
            Err(Cut::Cut) => {
                done.warn(line, "this row was cut while it was written, skipped");
                continue;
            }
            Err(Cut::Wrong(problem)) => return Err(lines.wrong(problem)),
        };
        let row = Row { columns: &columns, fields: &fields };
        match bursts.add(&row, line).map_err(|problem| lines.wrong(problem))? {
            Added::New => {}
            Added::Again(former) => done.warn(line, &format!("the same attempt as on line {former}, skipped")),
        }
    }
    done.bursts = bursts.finish();
    Ok(done)
}

impl CsvRead {
    fn warn(&mut self, line: u64, message: &str) {
        self.warnings.push(CsvWarning { line, message: message.to_owned() });
    }
}

/// Physical lines with a bound.
struct Lines<'p, R> {
    path: &'p Path,
    input: R,
    number: u64,
    /// The last line had its line end.
    ended: bool,
}

impl<R: BufRead> Lines<'_, R> {
    fn wrong(&self, problem: String) -> CsvError {
        CsvError::Line { path: self.path.to_path_buf(), line: self.number, problem }
    }

    /// The next line without its line end.
    fn next(&mut self) -> Result<Option<String>, CsvError> {
        let mut bytes = Vec::new();
        let limit = LINE_LIMIT_BYTES as u64 + 1;
        let read = self.input.by_ref().take(limit).read_until(b'\n', &mut bytes);
        if read.map_err(|e| CsvError::io(self.path, "read", e))? == 0 {
            return Ok(None);
        }
        self.number += 1;
        self.ended = bytes.last() == Some(&b'\n');
        if !self.ended && bytes.len() > LINE_LIMIT_BYTES {
            return Err(self.wrong(format!("longer than {LINE_LIMIT_BYTES} bytes: this is no CSV file of ours")));
        }
        if self.number == 1 && (bytes.starts_with(&[0xff, 0xfe]) || bytes.starts_with(&[0xfe, 0xff])) {
            return Err(self.wrong("UTF-16 text; save the file as UTF-8".to_owned()));
        }
        if self.ended {
            bytes.pop();
            bytes.pop_if(|b| *b == b'\r');
        }
        match String::from_utf8(bytes) {
            Ok(text) if self.number == 1 => Ok(Some(text.trim_start_matches('\u{feff}').to_owned())),
            Ok(text) => Ok(Some(text)),
            // A row may be cut in the middle of a character.
            Err(e) if !self.ended => {
                let whole = e.utf8_error().valid_up_to();
                Ok(Some(String::from_utf8_lossy(&e.as_bytes()[..whole]).into_owned()))
            }
            Err(_) => Err(self.wrong("no UTF-8 text; save the file as UTF-8".to_owned())),
        }
    }
}

/// Why a line has no fields.
enum Cut {
    /// It ends before it should.
    Cut,
    /// It was whole and cannot be ours.
    Wrong(String),
}

/// Where each column stands in this file.
struct Columns {
    places: HashMap<&'static str, usize>,
    count: usize,
}

impl Columns {
    fn new(path: &Path, first: &str, done: &mut CsvRead) -> Result<Self, CsvError> {
        let names = names(first);
        let mut places = HashMap::new();
        for (place, name) in names.iter().enumerate() {
            if let Some(ours) = COLUMNS.into_iter().find(|c| c == name)
                && places.insert(ours, place).is_some()
            {
                return Err(other(path, first, format!("has `{ours}` twice")));
            }
        }
        let lacks: Vec<&str> =
            COLUMNS.into_iter().filter(|c| !places.contains_key(c) && !OPTIONAL_COLUMNS.contains(c)).collect();
        if !lacks.is_empty() {
            return Err(other(path, first, describe(&lacks, &names)));
        }
        let unknown: Vec<&str> = names.iter().map(String::as_str).filter(|n| !places.contains_key(n)).collect();
        if !unknown.is_empty() {
            done.warn(1, &format!("unknown columns, ignored: {}", some_of(&unknown)));
        }
        Ok(Self { places, count: names.len() })
    }

    fn fields(&self, text: &str) -> Result<Vec<String>, Cut> {
        let fields = split(text).map_err(|quote| match quote {
            BadQuote::Open => Cut::Cut,
            BadQuote::Stray => Cut::Wrong("a quote stands where none may".to_owned()),
        })?;
        if fields.len() > self.count {
            return Err(Cut::Wrong(format!("has {} fields, the header has {}", fields.len(), self.count)));
        }
        let format = fields.get(self.places["format"]).ok_or(Cut::Cut)?;
        let last = self.places["format"] + 1 == self.count;
        match format.as_str() {
            CSV_FORMAT if fields.len() == self.count => Ok(fields),
            // The beginning of the mark, at the end of the line.
            cut if last && CSV_FORMAT.starts_with(cut) => Err(Cut::Cut),
            _ if fields.len() < self.count => Err(Cut::Cut),
            found => Err(Cut::Wrong(format!("column `format` is `{found}`, this version knows `{CSV_FORMAT}`"))),
        }
    }
}

/// One row of a file.
struct Row<'a> {
    columns: &'a Columns,
    fields: &'a [String],
}

impl Row<'_> {
    /// The raw field, empty where the file lacks the column.
    fn raw(&self, column: &'static str) -> &str {
        self.columns.places.get(column).and_then(|place| self.fields.get(*place)).map_or("", String::as_str)
    }

    fn text(&self, column: &'static str) -> String {
        unescape(self.raw(column))
    }

    fn words(&self, column: &'static str) -> Option<String> {
        Some(self.text(column)).filter(|t| !t.is_empty())
    }

    fn number<T: FromStr>(&self, column: &'static str) -> Result<T, String> {
        let raw = self.raw(column);
        raw.parse().map_err(|_| format!("column `{column}` is `{raw}`, which is no whole number in range"))
    }

    fn maybe<T: FromStr>(&self, column: &'static str) -> Result<Option<T>, String> {
        if self.raw(column).is_empty() { Ok(None) } else { self.number(column).map(Some) }
    }

    fn word<T>(&self, column: &'static str, parse: impl Fn(&str) -> Option<T>) -> Result<T, String> {
        let raw = self.raw(column);
        parse(raw).ok_or_else(|| format!("column `{column}` is `{raw}`, which is no known word"))
    }

    /// Spreadsheets write TRUE.
    fn truth(&self, column: &'static str) -> Result<bool, String> {
        self.word(column, |raw| raw.to_ascii_lowercase().parse().ok())
    }

    fn header(&self) -> Result<BurstHeader, String> {
        Ok(BurstHeader {
            id: self.words("burst_id").ok_or("column `burst_id` is empty")?,
            run: self.text("run"),
            lane: self.text("lane"),
            kind: self.word("kind", |t| t.parse().ok())?,
            api: self.word("api", |t| t.parse().ok())?,
            model: self.text("model"),
            base_url: self.text("base_url"),
            task: self.text("task"),
            floor_us: self.number("floor_us")?,
            attempts: self.number("attempts")?,
            concurrency: self.maybe("concurrency")?,
            spacing_us: self.number("spacing_us")?,
            prompt_mode: self.word("prompt_mode", prompt_mode)?,
            connections: self.word("connections", connections)?,
            stream: self.truth("stream")?,
            max_retries: self.number("max_retries")?,
            total_timeout_us: self.number("total_timeout_us")?,
            seed: self.number("seed")?,
            prompt_hash: self.text("prompt_hash"),
            date: self.words("date"),
            window: self.words("window"),
            zone: self.words("zone"),
            started_unix_us: self.number("started_unix_us")?,
            tool_version: self.text("tool_version"),
            simulated: self.truth("simulated")?,
            tasks_per_hour_floor: self.maybe("tasks_per_hour_floor")?,
            stretch_us: self.maybe("stretch_us")?,
            campaign: self.words("campaign"),
            site: self.words("site"),
        })
    }

    fn figures(&self) -> Result<AttemptFigures, String> {
        Ok(AttemptFigures {
            intended_unix_us: self.maybe("intended_unix_us")?,
            latency_us: self.number("latency_us")?,
            verdict: self.word("verdict", verdict)?,
            outcome: self.word("outcome", |t| t.parse().ok())?,
            retries: self.number("retries")?,
            ttft_us: self.maybe("ttft_us")?,
            first_answer_us: self.maybe("first_answer_us")?,
            prompt_tokens: self.maybe("prompt_tokens")?,
            cached_tokens: self.maybe("cached_tokens")?,
            completion_tokens: self.maybe("completion_tokens")?,
        })
    }
}

enum Added {
    New,
    /// The same attempt stands on this line already.
    Again(u64),
}

/// Bursts as they are found.
#[derive(Default)]
struct Bursts {
    by_id: HashMap<String, usize>,
    all: Vec<Found>,
}

struct Found {
    header: BurstHeader,
    /// Its header fields as they stand in the file: the next rows are compared, not parsed.
    raw: Vec<String>,
    line: u64,
    /// Line and figures by (warm-up, number).
    attempts: HashMap<(bool, u32), (u64, AttemptFigures)>,
}

impl Bursts {
    fn add(&mut self, row: &Row<'_>, line: u64) -> Result<Added, String> {
        let at = match self.by_id.get(row.raw("burst_id")) {
            Some(at) => *at,
            None => {
                let raw = HEADER_COLUMNS.map(|c| row.raw(c).to_owned()).to_vec();
                self.all.push(Found { header: row.header()?, raw, line, attempts: HashMap::new() });
                self.by_id.insert(row.raw("burst_id").to_owned(), self.all.len() - 1);
                self.all.len() - 1
            }
        };
        let found = &mut self.all[at];
        if let Some((column, was)) = HEADER_COLUMNS.into_iter().zip(&found.raw).find(|(c, was)| row.raw(c) != *was) {
            let (id, now) = (&found.header.id, row.raw(column));
            return Err(format!("burst `{id}` has `{now}` in column `{column}`, but `{was}` on line {}", found.line));
        }
        let key = (row.truth("warmup")?, row.number("attempt")?);
        let figures = row.figures()?;
        match found.attempts.get(&key) {
            None => {
                found.attempts.insert(key, (line, figures));
                Ok(Added::New)
            }
            Some((former, same)) if *same == figures => Ok(Added::Again(*former)),
            Some((former, _)) => Err(format!(
                "attempt {} of burst `{}` is on line {former} already, with other figures",
                key.1, found.header.id
            )),
        }
    }

    fn finish(self) -> Vec<CsvBurst> {
        self.all.into_iter().map(Found::finish).collect()
    }
}

impl Found {
    fn finish(self) -> CsvBurst {
        let mut rows: Vec<(u32, AttemptFigures)> =
            self.attempts.into_iter().filter(|((warmup, _), _)| !warmup).map(|((_, n), (_, f))| (n, f)).collect();
        rows.sort_by_key(|(number, _)| *number);
        let figures: Vec<AttemptFigures> = rows.into_iter().map(|(_, figures)| figures).collect();
        let state = if figures.iter().any(|f| f.verdict == Verdict::ConfigFinding) {
            BurstState::Void
        } else if self.header.all_made(&figures) {
            BurstState::Complete
        } else {
            BurstState::Running
        };
        CsvBurst { header: self.header, state, figures }
    }
}
