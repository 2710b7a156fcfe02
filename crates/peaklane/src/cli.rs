//! The command line: its words, and the way from there to an exit code.

use std::ffi::OsString;

use clap::builder::styling::{AnsiColor, Styles};
use clap::error::ErrorKind;
use clap::{ColorChoice, CommandFactory as _, FromArgMatches as _, Parser, Subcommand};

use crate::cmd::{burst, check, completions, countertest, data, decide, demo, init, man, proxy, summary, try_, watch};
use crate::exit::{self, Exit};
use crate::failure::Failure;
use crate::globals::{Color, GlobalArgs, Globals, stderr_palette};
use crate::out;

/// The first look at the program.
const EXAMPLES: &str = "\
Examples:
  peaklane demo                    the whole job on simulated lanes, without a key
  peaklane init && peaklane check  write a commented peaklane.toml, look at it
  peaklane try --all               one request to each lane, and what it speaks
  peaklane burst                   one burst at each lane, now
  peaklane watch                   bursts when their windows come
  peaklane summary                 what was measured, window by window
  peaklane decide                  which lane holds, and why not the others

Without a file, three variables make a lane:
  export LLM_BASE_URL=https://lane.example/v1 LLM_MODEL=small-coder
  export LLM_API_KEY=...
  peaklane burst";

/// Where should a coding team's inference run? peaklane fires the same burst at each lane, at the hours when the team works,
/// and tells pass rate, p90 and retry rate.
#[derive(Debug, Parser)]
#[command(
    name = "peaklane",
    version,
    arg_required_else_help = true,
    styles = STYLES,
    after_help = format!("{EXAMPLES}\n\n{}", exit::HELP),
    max_term_width = 100,
)]
pub struct Cli {
    /// What holds for every command.
    #[command(flatten)]
    pub globals: GlobalArgs,
    /// What to do.
    #[command(subcommand)]
    pub command: Command,
}

/// What to do. The help text of each is in its own file.
#[derive(Debug, Subcommand)]
pub enum Command {
    #[allow(missing_docs, reason = "the words of the struct are the help text")]
    Demo(demo::DemoArgs),
    #[allow(missing_docs, reason = "the words of the struct are the help text")]
    Init(init::InitArgs),
    #[allow(missing_docs, reason = "the words of the struct are the help text")]
    Check(check::CheckArgs),
    #[allow(missing_docs, reason = "the words of the struct are the help text")]
    Try(try_::TryArgs),
    #[allow(missing_docs, reason = "the words of the struct are the help text")]
    Burst(burst::BurstArgs),
    #[allow(missing_docs, reason = "the words of the struct are the help text")]
    Watch(watch::WatchArgs),
    #[allow(missing_docs, reason = "the words of the struct are the help text")]
    Summary(summary::SummaryArgs),
    #[allow(missing_docs, reason = "the words of the struct are the help text")]
    Decide(decide::DecideArgs),
    #[allow(missing_docs, reason = "the words of the struct are the help text")]
    Countertest(countertest::CountertestArgs),
    #[allow(missing_docs, reason = "the words of the struct are the help text")]
    Proxy(proxy::ProxyArgs),
    #[allow(missing_docs, reason = "the words of the struct are the help text")]
    Data(data::DataArgs),
    #[allow(missing_docs, reason = "the words of the struct are the help text")]
    Completions(completions::CompletionsArgs),
    #[allow(missing_docs, reason = "the words of the struct are the help text")]
    #[command(hide = true)]
    Man(man::ManArgs),
}

const STYLES: Styles = Styles::styled()
    .header(AnsiColor::Yellow.on_default().bold())
    .usage(AnsiColor::Yellow.on_default().bold())
    .literal(AnsiColor::Green.on_default())
    .placeholder(AnsiColor::Cyan.on_default());

/// Runs the program with these words, the first being its name, and says how it ended. Prints everything itself.
pub fn run(words: impl IntoIterator<Item = OsString>) -> Exit {
    let words: Vec<OsString> = words.into_iter().collect();
    let color = wished_color(&words);
    let choice = match color {
        Color::Auto => ColorChoice::Auto,
        Color::Always => ColorChoice::Always,
        Color::Never => ColorChoice::Never,
    };
    let read = Cli::command().color(choice).try_get_matches_from(words);
    match read.and_then(|matches| Cli::from_arg_matches(&matches)) {
        Ok(cli) => end(dispatch(&cli), color),
        Err(error) => told_by_clap(&error),
    }
}

fn dispatch(cli: &Cli) -> Result<Exit, Failure> {
    let globals = Globals::new(&cli.globals)?;
    match &cli.command {
        Command::Demo(args) => demo::run(args, &globals),
        Command::Init(args) => init::run(args, &globals),
        Command::Check(args) => check::run(args, &globals),
        Command::Try(args) => try_::run(args, &globals),
        Command::Burst(args) => burst::run(args, &globals),
        Command::Watch(args) => watch::run(args, &globals),
        Command::Summary(args) => summary::run(args, &globals),
        Command::Decide(args) => decide::run(args, &globals),
        Command::Countertest(args) => countertest::run(args, &globals),
        Command::Proxy(args) => proxy::run(args, &globals),
        Command::Data(args) => data::run(args, &globals),
        Command::Completions(args) => completions::run(args, &globals),
        Command::Man(args) => man::run(args, &globals),
    }
}

fn end(done: Result<Exit, Failure>, color: Color) -> Exit {
    done.unwrap_or_else(|failure| {
        out::say(&failure.render(stderr_palette(color)));
        failure.exit
    })
}

/// Help and version go to stdout and are no error; everything else that clap has to say is wrong usage.
fn told_by_clap(error: &clap::Error) -> Exit {
    // a reader that has left needs no help
    let _ = error.print();
    match error.kind() {
        ErrorKind::DisplayHelp | ErrorKind::DisplayVersion => Exit::Fine,
        _ => Exit::Usage,
    }
}

/// `--color` out of the raw words: help and usage errors are printed before the options have been read.
fn wished_color(words: &[OsString]) -> Color {
    let mut words = words.iter().skip(1).filter_map(|word| word.to_str()).take_while(|word| *word != "--");
    let mut wished = Color::Auto;
    while let Some(word) = words.next() {
        let value = match word.strip_prefix("--color") {
            Some("") => words.next(),
            Some(rest) => rest.strip_prefix('='),
            None => None,
        };
        match value {
            Some("always") => wished = Color::Always,
            Some("never") => wished = Color::Never,
            _ => {}
        }
    }
    wished
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_command_line_contradicts_itself_nowhere() {
        Cli::command().debug_assert();
    }

    /// Every command with all those below it, the hidden ones included.
    fn all(command: &clap::Command, found: &mut Vec<clap::Command>) {
        found.push(command.clone());
        for sub in command.get_subcommands() {
            all(sub, found);
        }
    }

    #[test]
    fn every_command_has_examples_and_every_option_says_its_default_and_gives_one() {
        let mut commands = Vec::new();
        all(&Cli::command(), &mut commands);
        assert!(commands.len() > 8);
        let mut poor = Vec::new();
        for command in &commands {
            let name = command.get_name();
            let after = command.get_after_help().map(ToString::to_string).unwrap_or_default();
            if !after.contains("Examples:") || !after.contains("peaklane ") {
                poor.push(format!("{name}: no examples"));
            }
            for arg in command.get_arguments().filter(|arg| !["help", "version"].contains(&arg.get_id().as_str())) {
                let help = arg.get_long_help().or(arg.get_help()).map(ToString::to_string).unwrap_or_default();
                let lower = help.to_lowercase();
                if !lower.contains("default") && !arg.is_required_set() {
                    poor.push(format!("{name} {}: no default", arg.get_id()));
                }
                if !lower.contains("example") && !lower.contains("such as") {
                    poor.push(format!("{name} {}: no example", arg.get_id()));
                }
            }
        }
        assert_eq!(poor, [""; 0]);
    }

    #[test]
    fn a_wish_for_colour_is_seen_before_the_options_are_read() {
        let wished = |words: &[&str]| wished_color(&words.iter().map(OsString::from).collect::<Vec<_>>());
        assert_eq!(wished(&["peaklane", "--help"]), Color::Auto);
        assert_eq!(wished(&["peaklane", "--color=never", "--help"]), Color::Never);
        assert_eq!(wished(&["peaklane", "burst", "--color", "always"]), Color::Always);
        assert_eq!(wished(&["peaklane", "try", "--", "--color=always"]), Color::Auto);
        assert_eq!(wished(&["peaklane", "--colors=always"]), Color::Auto);
    }
}
