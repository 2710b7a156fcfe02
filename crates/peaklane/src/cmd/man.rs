//! `peaklane man`: manual pages, for those who make packages.

use std::fs;
use std::path::PathBuf;

use clap::{Args, CommandFactory as _};

use crate::cli::Cli;
use crate::exit::Exit;
use crate::failure::Failure;
use crate::globals::Globals;
use crate::out;

const EXAMPLES: &str = "\
Examples:
  peaklane man | man -l -
  peaklane man --dir target/man";

/// Write the manual pages
#[derive(Args, Clone, Debug)]
#[command(after_help = EXAMPLES)]
pub struct ManArgs {
    /// Folder for one page per command; it is made when it is not there. Default: the main page alone, to standard output.
    /// Example: `--dir target/man`
    #[arg(long, value_name = "FOLDER")]
    pub dir: Option<PathBuf>,
}

/// Writes the pages.
///
/// # Errors
/// When the folder or standard output cannot be written.
pub fn run(args: &ManArgs, globals: &Globals) -> Result<Exit, Failure> {
    let Some(dir) = &args.dir else {
        let mut page = Vec::new();
        clap_mangen::Man::new(Cli::command()).render(&mut page).map_err(|error| Failure::of_output(&error))?;
        out::print(&String::from_utf8_lossy(&page))?;
        return Ok(Exit::Fine);
    };
    let written = fs::create_dir_all(dir).and_then(|()| clap_mangen::generate_to(Cli::command(), dir));
    written.map_err(|error| {
        Failure::usage(format!("cannot write manual pages to `{}`", dir.display()))
            .because(error.to_string())
            .with_hint("name a folder that you may write to with `--dir FOLDER`")
    })?;
    out::note(globals, &format!("wrote the manual pages to {}", dir.display()));
    Ok(Exit::Fine)
}
