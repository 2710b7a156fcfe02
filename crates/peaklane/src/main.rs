//! The binary `peaklane`. Everything is in the library, so that tests reach it too.

use std::process::ExitCode;

fn main() -> ExitCode {
    peaklane::cli::run(std::env::args_os()).into()
}
