//! From the text of a configuration to its shape, with errors that name key, place, line and the next step.

use serde::Deserialize;
use toml::Spanned;
use toml::de::{DeTable, DeValue};

use super::error::{ConfigError, KeyPath, Problem, Step};
use super::task::Task;
use super::{Config, unknown};

/// The longest text that is read: 1 MiB, a hundred times any real configuration.
pub const MAX_TEXT_BYTES: usize = 1024 * 1024;

/// Reads a configuration. Unknown keys, wrong types, bad dates and the like are errors; the rules across keys are not
/// looked at (see [`Config::check`]). Without any `[[task]]` the class `inline-assist` is put in.
///
/// # Errors
/// All unknown keys together; else the first value that cannot be read.
pub fn parse(text: &str) -> Result<Config, ConfigError> {
    read(text).map(|(config, _)| config)
}

/// [`parse`] and [`Config::check`] in one, with the lines of the text in every problem.
///
/// # Errors
/// As [`parse`]; else all problems that the check finds.
pub fn parse_checked(text: &str) -> Result<Config, ConfigError> {
    let (config, table) = read(text)?;
    config.check().map_err(|error| with_lines(error, &table, text))?;
    Ok(config)
}

/// The line, from 1, on which a key or table stands; `None` where the text has none of it (or is no TOML).
pub fn line_of(text: &str, path: &[Step]) -> Option<usize> {
    let table = DeTable::parse(text).ok()?;
    offset_of(table.get_ref(), path).map(|at| line_at(text, at))
}

fn read(text: &str) -> Result<(Config, Spanned<DeTable<'_>>), ConfigError> {
    if text.len() > MAX_TEXT_BYTES {
        let what = format!("the text is {} bytes long, more than {MAX_TEXT_BYTES}", text.len());
        return Err(ConfigError::one(Problem::of_table(KeyPath::new(), what)));
    }
    // only the parser's own words are used, never its excerpt of the text: that could hold a key
    let table = DeTable::parse(text).map_err(|error| {
        let line = error.span().map(|span| line_at(text, span.start));
        ConfigError::one(Problem::of_table(KeyPath::new(), "no valid TOML").on_line(line).next_step(error.message()))
    })?;
    ConfigError::unless_empty(unknown::problems(table.get_ref())).map_err(|error| with_lines(error, &table, text))?;
    let mut config = deserialize(&table).map_err(|problem| with_lines(ConfigError::one(problem), &table, text))?;
    if config.tasks.is_empty() {
        config.tasks.push(Task::inline_assist());
    }
    Ok((config, table))
}

fn deserialize(table: &Spanned<DeTable<'_>>) -> Result<Config, Problem> {
    let mut track = serde_path_to_error::Track::new();
    let deserializer = toml::Deserializer::from(table.clone());
    Config::deserialize(serde_path_to_error::Deserializer::new(deserializer, &mut track)).map_err(|error| {
        let way = track.path();
        let path = way.iter().filter_map(|segment| match segment {
            serde_path_to_error::Segment::Seq { index } => Some(Step::Index(*index)),
            serde_path_to_error::Segment::Map { key } => Some(Step::Key(key.clone())),
            _ => None,
        });
        problem_of(path.collect(), error.message())
    })
}

/// A problem out of the words of the deserializer.
fn problem_of(path: KeyPath, message: &str) -> Problem {
    if let Some(key) = message.strip_prefix("missing field `").and_then(|rest| rest.strip_suffix('`')) {
        return Problem::of_table(path, format!("`{key}` is missing")).next_step(format!("add `{key} = ...`"));
    }
    let what = match path.last() {
        Some(Step::Key(key)) => format!("bad value of `{key}`"),
        Some(Step::Index(index)) => {
            let list = path.iter().rev().find_map(|step| match step {
                Step::Key(key) => Some(key.as_str()),
                Step::Index(_) => None,
            });
            format!("bad entry {} of `{}`", index + 1, list.unwrap_or("the list"))
        }
        None => "bad value".to_owned(),
    };
    let mut words = in_words(message);
    if message.contains("no regular expression") {
        words.push_str(" (in TOML, single quotes keep backslashes as they are: { regex = 'a\\.b' })");
    }
    Problem::of_key(path, what).next_step(words)
}

/// The deserializer's words in words of a person, without the text that was written: it may be a key in a wrong place.
fn in_words(message: &str) -> String {
    const WORDS: [(&str, &str); 9] = [
        ("wanted exactly 1 element, more than 1 element", "expected one key alone, as in { contains = \"...\" }"),
        ("expected u8", "expected a whole number of 0 or more"),
        ("expected u32", "expected a whole number of 0 or more"),
        ("expected u64", "expected a whole number of 0 or more"),
        ("expected f64", "expected a number"),
        ("expected a boolean", "expected true or false"),
        ("expected a string", "expected text in quotes"),
        ("expected a map", "expected a table"),
        ("expected a sequence", "expected a list in [ ]"),
    ];
    let mut words = message.to_owned();
    if let (Some(rest), Some(expected)) = (words.strip_prefix("invalid type: string "), words.rfind(", expected ")) {
        debug_assert!(rest.starts_with('"'));
        words = format!("this is text{}", &words[expected..]);
    }
    for (technical, plain) in WORDS {
        if let Some(head) = words.strip_suffix(technical) {
            words = format!("{head}{plain}");
            break;
        }
    }
    words.trim_start_matches("invalid type: ").trim_start_matches("invalid value: ").to_owned()
}

/// Puts the line of each problem's key into it.
fn with_lines(error: ConfigError, table: &Spanned<DeTable<'_>>, text: &str) -> ConfigError {
    let located = error.into_problems().into_iter().map(|problem| {
        let line = offset_of(table.get_ref(), problem.path()).map(|at| line_at(text, at));
        problem.on_line(line)
    });
    let located: Vec<Problem> = located.collect();
    match ConfigError::unless_empty(located) {
        Err(error) => error,
        Ok(()) => unreachable!("an error holds at least one problem"),
    }
}

/// Byte offset of a key; of the table that should hold it where the key is not there; `None` at the top.
fn offset_of(table: &DeTable<'_>, path: &[Step]) -> Option<usize> {
    let (Step::Key(name), rest) = path.split_first()? else { return None };
    let (key, value) = table.iter().find(|(key, _)| key.get_ref() == name.as_str())?;
    offset_in(value, rest).or_else(|| Some(key.span().start))
}

fn offset_in(value: &Spanned<DeValue<'_>>, path: &[Step]) -> Option<usize> {
    match (path.first()?, value.get_ref()) {
        (Step::Key(_), DeValue::Table(table)) => offset_of(table, path),
        (Step::Index(index), DeValue::Array(items)) => {
            let item = items.get(*index)?;
            offset_in(item, &path[1..]).or_else(|| Some(item.span().start))
        }
        _ => None,
    }
}

fn line_at(text: &str, offset: usize) -> usize {
    1 + text.bytes().take(offset).filter(|byte| *byte == b'\n').count()
}

#[cfg(test)]
#[path = "read_tests.rs"]
mod tests;
