//! `peaklane data`: what is done with records as a whole.

mod purge;

use clap::{Args, Subcommand};

use crate::exit::Exit;
use crate::failure::Failure;
use crate::globals::Globals;

const EXAMPLES: &str = "\
Examples:
  peaklane data purge --before 2026-09-01 --dry-run
  peaklane data purge --before 2026-09-01";

/// Remove records that are older than a day
#[derive(Args, Clone, Debug)]
#[command(after_help = EXAMPLES, arg_required_else_help = true)]
pub struct DataArgs {
    /// What to do.
    #[command(subcommand)]
    pub what: DataCommand,
}

/// What to do with the records.
#[derive(Clone, Debug, Subcommand)]
pub enum DataCommand {
    #[allow(missing_docs, reason = "the words of the struct are the help text")]
    Purge(purge::PurgeArgs),
}

/// Does it.
///
/// # Errors
/// [`Failure`] as the command below has it.
pub fn run(args: &DataArgs, globals: &Globals) -> Result<Exit, Failure> {
    match &args.what {
        DataCommand::Purge(args) => purge::run(args, globals),
    }
}
