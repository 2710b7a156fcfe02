//! The last test binary of the workspace: says which real parts were missing, so that no skip is silent. See
//! `peaklane_testkit::require`.

#![allow(clippy::print_stdout, reason = "to print is all that it is for")]

use std::process::ExitCode;

use peaklane_testkit::require::{Notes, VARIABLE};

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    if arguments.iter().any(|a| a == "--list") {
        return ExitCode::SUCCESS; // other runners ask for names; there are none
    }
    let notes = Notes::of_this_command();
    // with a filter some tests did not run and could not ask
    let filtered = arguments.iter().any(|a| !a.starts_with('-'));
    let never = if filtered { Vec::new() } else { notes.never_asked_for() };
    for line in notes.lines() {
        println!("{line}");
    }
    for part in &never {
        println!("{VARIABLE} asks for `{part}`, but no test knows that part");
    }
    notes.clear();
    if never.is_empty() { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}
