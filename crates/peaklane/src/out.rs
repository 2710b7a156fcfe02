//! What a command prints: results to stdout, everything else to stderr.

use std::io::{self, Write as _};

use peaklane_report::palette::Tone;
use peaklane_report::units::one_line;
use serde_json::Value;

use crate::failure::Failure;
use crate::globals::Globals;

/// Prints a result to standard output, as it is.
///
/// # Errors
/// A silent [`Failure`] with exit code 0 when the reader has left, else what the system refused. Hand it on with `?`.
pub fn print(text: &str) -> Result<(), Failure> {
    let mut stdout = io::stdout().lock();
    stdout.write_all(text.as_bytes()).and_then(|()| stdout.flush()).map_err(|error| Failure::of_output(&error))
}

/// Prints one JSON value, indented, with a line break at its end.
///
/// # Errors
/// As [`print`].
pub fn print_json(value: &Value) -> Result<(), Failure> {
    print(&format!("{value:#}\n"))
}

/// Something worth a look, on standard error: `warning: ...`. Also with `--quiet`: it is about the result.
pub fn warn(globals: &Globals, text: &str) {
    say(&format!("{} {}\n", globals.stderr_palette.paint(Tone::Warn, "warning:"), one_line(text)));
}

/// A remark on standard error that `--quiet` leaves out. Several lines are fine.
pub fn note(globals: &Globals, text: &str) {
    if !globals.quiet {
        let paint = |line| format!("{}\n", globals.stderr_palette.paint(Tone::Dim, &one_line(line)));
        say(&text.lines().map(paint).collect::<String>());
    }
}

/// A detail on standard error that only `-v` shows.
pub fn detail(globals: &Globals, text: &str) {
    if globals.verbose > 0 {
        note(globals, text);
    }
}

/// Text to standard error. When nobody can read it, nothing can be done about it either.
pub fn say(text: &str) {
    let mut stderr = io::stderr().lock();
    let _ = stderr.write_all(text.as_bytes()).and_then(|()| stderr.flush());
}
