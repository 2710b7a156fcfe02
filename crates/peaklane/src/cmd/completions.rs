//! `peaklane completions`: the script that a shell completes our words with.

use clap::{Args, CommandFactory as _};
use clap_complete::Shell;

use crate::cli::Cli;
use crate::exit::Exit;
use crate::failure::Failure;
use crate::globals::Globals;
use crate::out;

const EXAMPLES: &str = "\
Examples:
  source <(peaklane completions bash)
  peaklane completions zsh > ~/.zfunc/_peaklane  (with ~/.zfunc in $fpath)
  peaklane completions fish > ~/.config/fish/completions/peaklane.fish";

/// Print the completion script of a shell
#[derive(Args, Clone, Debug)]
#[command(after_help = EXAMPLES)]
pub struct CompletionsArgs {
    /// The shell, such as `bash`
    #[arg(value_enum, value_name = "SHELL")]
    pub shell: Shell,
}

/// Prints the script to standard output.
///
/// # Errors
/// When standard output cannot be written.
pub fn run(args: &CompletionsArgs, _globals: &Globals) -> Result<Exit, Failure> {
    let mut script = Vec::new();
    clap_complete::generate(args.shell, &mut Cli::command(), "peaklane", &mut script);
    out::print(&String::from_utf8_lossy(&script))?;
    Ok(Exit::Fine)
}
