//! What is wrong with a configuration: every problem with its key, its place, its line and the next step.

use std::fmt;

/// One step on the way to a key: into a table by name, or into a list by position (from 0).
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Step {
    /// A key of a table.
    Key(String),
    /// A position in a list, from 0.
    Index(usize),
}

impl From<&str> for Step {
    fn from(key: &str) -> Self {
        Self::Key(key.to_owned())
    }
}

impl From<usize> for Step {
    fn from(index: usize) -> Self {
        Self::Index(index)
    }
}

/// The way to a key or a table: `lane`, 0, `price`.
pub type KeyPath = Vec<Step>;

/// One thing that is wrong. Holds no value that could be a key.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Problem {
    what: String,
    place: String,
    path: KeyPath,
    line: Option<usize>,
    next: Option<String>,
}

impl Problem {
    /// A problem of one key: `path` ends with that key, or with an entry of the list under that key.
    pub fn of_key(path: KeyPath, what: impl Into<String>) -> Self {
        let key = path.iter().rposition(|step| matches!(step, Step::Key(_))).unwrap_or(0);
        Self { what: what.into(), place: place(&path[..key]), path, line: None, next: None }
    }

    /// A problem of a whole table: `path` ends with that table; empty for the top level.
    pub fn of_table(path: KeyPath, what: impl Into<String>) -> Self {
        Self { what: what.into(), place: place(&path), path, line: None, next: None }
    }

    /// With what to do about it.
    #[must_use]
    pub fn next_step(mut self, next: impl Into<String>) -> Self {
        self.next = Some(next.into());
        self
    }

    /// With the line of the text on which it stands, from 1.
    #[must_use]
    pub fn on_line(mut self, line: Option<usize>) -> Self {
        self.line = line;
        self
    }

    /// The way to the key or table.
    pub fn path(&self) -> &[Step] {
        &self.path
    }

    /// Line of the text, from 1; `None` where it stands nowhere (a key that is missing, or no text at all).
    pub const fn line(&self) -> Option<usize> {
        self.line
    }
}

impl fmt::Display for Problem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {}", self.what, self.place)?;
        if let Some(line) = self.line {
            write!(f, " (line {line})")?;
        }
        match &self.next {
            Some(next) => write!(f, ": {next}"),
            None => Ok(()),
        }
    }
}

/// The place of a table in words: "at the top level", "in [campaign]", "in [[task]] 1".
fn place(table: &[Step]) -> String {
    let Some((Step::Key(section), rest)) = table.split_first() else {
        return "at the top level".to_owned();
    };
    let (mut words, rest) = match rest.split_first() {
        Some((Step::Index(index), rest)) => (format!("in [[{section}]] {}", index + 1), rest),
        _ => (format!("in [{section}]"), rest),
    };
    for step in rest {
        match step {
            Step::Key(key) => words.push_str(&format!(", `{key}`")),
            Step::Index(index) => words.push_str(&format!(" {}", index + 1)),
        }
    }
    words
}

/// A configuration that cannot be used: at least one problem, all of them where they can be told together.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ConfigError {
    problems: Vec<Problem>,
}

impl ConfigError {
    /// One problem alone.
    pub fn one(problem: Problem) -> Self {
        Self { problems: vec![problem] }
    }

    /// # Errors
    /// All the problems, if there are any.
    pub fn unless_empty(problems: Vec<Problem>) -> Result<(), Self> {
        if problems.is_empty() { Ok(()) } else { Err(Self { problems }) }
    }

    /// All problems, in the order of the text's sections. Never empty.
    pub fn problems(&self) -> &[Problem] {
        &self.problems
    }

    /// The problems, to add lines to them or to put them together with others.
    pub fn into_problems(self) -> Vec<Problem> {
        self.problems
    }

    /// The next thing to try.
    pub fn hint(&self) -> Option<String> {
        Some(
            "every key with its type and default is in docs/configuration.md; `peaklane check` tries the file again"
                .to_owned(),
        )
    }
}

impl fmt::Display for ConfigError {
    /// A single problem is one sentence; several stand one on each line.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let [only] = self.problems.as_slice() {
            return only.fmt(f);
        }
        write!(f, "{} problems in the configuration:", self.problems.len())?;
        for problem in &self.problems {
            write!(f, "\n  - {problem}")?;
        }
        Ok(())
    }
}

impl std::error::Error for ConfigError {}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_problem_says_what_where_and_what_to_do() {
        let path = || vec!["task".into(), 0.into(), "floot".into()];
        let problem =
            Problem::of_key(path(), "unknown key `floot`").on_line(Some(12)).next_step("did you mean `floor`?");
        assert_eq!(problem.to_string(), "unknown key `floot` in [[task]] 1 (line 12): did you mean `floor`?");
        let nested = vec!["lane".into(), 1.into(), "price".into()];
        assert_eq!(Problem::of_table(nested, "missing").to_string(), "missing in [[lane]] 2, `price`");
        assert_eq!(Problem::of_key(vec!["zone".into()], "unknown").to_string(), "unknown at the top level");
    }

    #[test]
    fn several_problems_are_all_told() {
        let problems = vec![Problem::of_table(vec![], "no lane"), Problem::of_table(vec![], "no zone")];
        let told = ConfigError::unless_empty(problems).unwrap_err().to_string();
        assert_eq!(
            told,
            "2 problems in the configuration:\n  - no lane at the top level\n  - no zone at the top level"
        );
        assert_eq!(ConfigError::unless_empty(Vec::new()), Ok(()));
    }
}
