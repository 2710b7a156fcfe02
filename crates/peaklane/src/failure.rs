//! What stopped a command: one message, its causes, the next step and the exit code.

use std::error::Error;
use std::io;

use peaklane_core::config::ConfigError;
use peaklane_core::config::presets::UnknownPreset;
use peaklane_report::palette::{Palette, Tone};
use peaklane_report::units::one_line;
use peaklane_store::StoreError;
use peaklane_store::csv::CsvError;
use peaklane_wire::endpoint::EndpointError;

use crate::exit::Exit;
use crate::load::{KeyError, LoadError};

/// Why a command stopped. `main` prints it to stderr and ends with its code.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Failure {
    /// The exit code.
    pub exit: Exit,
    /// What failed and on what, in lower case: it stands after "error:".
    pub message: String,
    /// Why, from the nearest cause to the last one. A cause of several lines is fine.
    pub causes: Vec<String>,
    /// The next thing to try.
    pub hint: Option<String>,
    /// Whoever read our output has left (`| head`): nothing to tell, and no failure.
    reader_left: bool,
}

impl Failure {
    /// A failure without causes.
    pub fn new(exit: Exit, message: impl Into<String>) -> Self {
        Self { exit, message: message.into(), causes: Vec::new(), hint: None, reader_left: false }
    }

    /// Wrong usage or configuration: exit code 2.
    pub fn usage(message: impl Into<String>) -> Self {
        Self::new(Exit::Usage, message)
    }

    /// Could not measure: exit code 3.
    pub fn unmeasured(message: impl Into<String>) -> Self {
        Self::new(Exit::Unmeasured, message)
    }

    /// An error with everything behind it.
    pub fn of(exit: Exit, error: &dyn Error, hint: Option<String>) -> Self {
        let mut failure = Self::new(exit, error.to_string());
        failure.hint = hint;
        let mut cause = error.source();
        while let Some(error) = cause {
            let text = error.to_string();
            // some libraries repeat the inner error in the outer one's words
            if !failure.causes.last().unwrap_or(&failure.message).contains(&text) {
                failure.causes.push(text);
            }
            cause = error.source();
        }
        failure
    }

    /// An error of writing to standard output. A reader that has left (`| head`) is none: the command ends quietly with
    /// [`Exit::Fine`].
    pub fn of_output(error: &io::Error) -> Self {
        let mut failure = Self::of(Exit::Unmeasured, error, None);
        failure.causes.insert(0, failure.message);
        failure.message = "cannot write to standard output".to_owned();
        if error.kind() == io::ErrorKind::BrokenPipe {
            failure.exit = Exit::Fine;
            failure.reader_left = true;
        }
        failure
    }

    /// With one more cause, behind those that are there.
    #[must_use]
    pub fn because(mut self, cause: impl Into<String>) -> Self {
        self.causes.push(cause.into());
        self
    }

    /// With what to do about it.
    #[must_use]
    pub fn with_hint(mut self, hint: impl Into<String>) -> Self {
        self.hint = Some(hint.into());
        self
    }

    /// True when there is nothing to print: whoever read our output has left.
    pub const fn is_silent(&self) -> bool {
        self.reader_left
    }

    /// The text for stderr; empty for a silent one. Control characters are taken out: messages may quote files and
    /// servers.
    pub fn render(&self, palette: Palette) -> String {
        if self.reader_left {
            return String::new();
        }
        let mut out = format!("{} {}\n", palette.paint(Tone::Bad, "error:"), indented(&self.message, ""));
        for cause in &self.causes {
            out.push_str(&format!("  {} {}\n", palette.paint(Tone::Dim, "caused by:"), indented(cause, "  ")));
        }
        if let Some(hint) = &self.hint {
            out.push_str(&format!("\n{} {}\n", palette.paint(Tone::Strong, "hint:"), indented(hint, "")));
        }
        out
    }
}

fn indented(text: &str, indent: &str) -> String {
    let lines: Vec<String> = text
        .lines()
        .map(|line| format!("{}{}", &line[..line.len() - line.trim_start().len()], one_line(line.trim())))
        .collect();
    lines.join(&format!("\n{indent}"))
}

impl From<LoadError> for Failure {
    fn from(error: LoadError) -> Self {
        Self::of(Exit::Usage, &error, error.hint())
    }
}

impl From<KeyError> for Failure {
    fn from(error: KeyError) -> Self {
        Self::of(Exit::Usage, &error, error.hint())
    }
}

impl From<ConfigError> for Failure {
    fn from(error: ConfigError) -> Self {
        Self::of(Exit::Usage, &error, error.hint())
    }
}

impl From<UnknownPreset> for Failure {
    fn from(error: UnknownPreset) -> Self {
        Self::of(Exit::Usage, &error, error.hint())
    }
}

impl From<EndpointError> for Failure {
    fn from(error: EndpointError) -> Self {
        Self::of(Exit::Usage, &error, error.hint())
    }
}

impl From<StoreError> for Failure {
    /// The wrong file is a matter of usage; a disk, a lock or a damaged file is not.
    fn from(error: StoreError) -> Self {
        use StoreError as E;
        let exit = match error {
            E::Missing { .. }
            | E::NoFile { .. }
            | E::NoStore { .. }
            | E::NewerFormat { .. }
            | E::OlderFormat { .. } => Exit::Usage,
            _ => Exit::Unmeasured,
        };
        Self::of(exit, &error, error.hint())
    }
}

impl From<CsvError> for Failure {
    fn from(error: CsvError) -> Self {
        let exit = match &error {
            CsvError::Io { source, .. } if source.kind() != io::ErrorKind::NotFound => Exit::Unmeasured,
            CsvError::Locked { .. } => Exit::Unmeasured,
            _ => Exit::Usage,
        };
        Self::of(exit, &error, error.hint())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[derive(Debug, thiserror::Error)]
    #[error("cannot read the list")]
    struct Outer(#[source] io::Error);

    #[test]
    fn a_failure_says_what_why_and_what_to_do() {
        let error = Outer(io::Error::other("the disk\u{1b}[31m is gone"));
        let failure = Failure::of(Exit::Unmeasured, &error, Some("try another disk".to_owned()));
        assert_eq!(
            failure.render(Palette::PLAIN),
            "error: cannot read the list\n  caused by: the disk [31m is gone\n\nhint: try another disk\n"
        );
        assert_eq!(Failure::usage("no").render(Palette::PLAIN), "error: no\n");
    }

    #[test]
    fn a_cause_of_several_lines_keeps_its_lines() {
        let failure = Failure::usage("cannot").because("2 problems:\n  - one\n  - two");
        assert_eq!(failure.render(Palette::PLAIN), "error: cannot\n  caused by: 2 problems:\n    - one\n    - two\n");
    }

    #[test]
    fn a_reader_that_has_left_is_no_failure_and_any_other_error_of_output_is_one() {
        let left = Failure::of_output(&io::ErrorKind::BrokenPipe.into());
        assert_eq!((left.exit, left.is_silent(), left.render(Palette::PLAIN)), (Exit::Fine, true, String::new()));
        let full = Failure::of_output(&io::ErrorKind::StorageFull.into());
        assert_eq!((full.exit, full.is_silent()), (Exit::Unmeasured, false));
        assert!(full.render(Palette::PLAIN).starts_with("error: cannot write to standard output\n  caused by: "));
    }

    #[test]
    fn colour_adds_nothing_to_a_failure_but_escape_sequences() {
        let failure = Failure::usage("no").with_hint("yes");
        let painted = failure.render(Palette::COLOUR);
        assert_ne!(painted, failure.render(Palette::PLAIN));
        assert_eq!(anstream::adapter::strip_str(&painted).to_string(), failure.render(Palette::PLAIN));
    }
}
