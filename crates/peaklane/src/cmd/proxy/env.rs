//! `peaklane proxy env`: what points a harness at the proxy.

use clap::{Args, ValueEnum};
use peaklane_core::config::may_name_a_variable;
use peaklane_core::harness::{KNOWN, Place, named};
use peaklane_report::harness::{Shell, lines};
use peaklane_wire::proxy::check_session;
use serde_json::json;

use crate::exit::Exit;
use crate::failure::Failure;
use crate::globals::{Format, Globals};
use crate::out;

const EXAMPLES: &str = "\
Examples:
  eval \"$(peaklane proxy env --harness opencode --session run-1 --model qwen3-coder)\"
  peaklane proxy env --harness codex --session run-2 --key-env TEAM_KEY > env.sh
  peaklane proxy env --harness pi --session run-3 --shell fish | source

Known harnesses: opencode, codex, pi, qwen, cline, mini, aider, claude-code, gemini, and generic for any other that
reads OPENAI_BASE_URL or ANTHROPIC_BASE_URL.";

/// Print the variables that point a harness at the proxy, under a session of its own
///
/// Works with every harness, because the session stands in the address. No key is printed: the variable that holds it is named.
#[derive(Args, Clone, Debug)]
#[command(after_help = EXAMPLES)]
pub struct EnvArgs {
    /// The harness. Default: generic. Example: `--harness codex`
    #[arg(long, value_name = "NAME", default_value = "generic", hide_default_value = true)]
    pub harness: String,

    /// Name of the session: letters, digits and `-_.~`. Example: `--session fix-42`
    #[arg(long, value_name = "NAME")]
    pub session: String,

    /// Where the proxy is. Default: `http://127.0.0.1:8787`. Example: `--proxy http://127.0.0.1:9000`
    #[arg(long, value_name = "URL", default_value = "http://127.0.0.1:8787", hide_default_value = true)]
    pub proxy: String,

    /// Lane behind the proxy, where it has several. Default: its first. Example: `--to lane-b`
    #[arg(long, value_name = "LANE")]
    pub to: Option<String>,

    /// Model to ask for. Default: `LLM_MODEL`, else `default`. Example: `--model qwen3-coder`
    #[arg(
        long,
        value_name = "NAME",
        env = "LLM_MODEL",
        hide_env = true,
        default_value = "default",
        hide_default_value = true
    )]
    pub model: String,

    /// Variable that holds the key, or the proxy's token. Default: none, a word that stands for no key. Example:
    /// `--key-env TEAM_KEY`
    #[arg(long, value_name = "VARIABLE")]
    pub key_env: Option<String>,

    /// Whose lines: `sh`, `fish` or `powershell`. Default: `sh`. Example: `--shell fish`
    #[arg(
        long,
        value_enum,
        value_name = "SHELL",
        default_value_t,
        hide_default_value = true,
        hide_possible_values = true
    )]
    pub shell: ShellName,
}

/// Whose lines.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub enum ShellName {
    /// POSIX shells.
    #[default]
    Sh,
    /// fish.
    Fish,
    /// PowerShell.
    Powershell,
}

/// Prints.
///
/// # Errors
/// [`Failure`] with exit code 2 for an unknown harness and for names that cannot be used.
pub(super) fn run(args: &EnvArgs, globals: &Globals) -> Result<Exit, Failure> {
    let harness = named(&args.harness).ok_or_else(|| {
        let known: Vec<&str> = KNOWN.iter().map(|h| h.name).collect();
        Failure::usage(format!("no harness is known as `{}`", args.harness))
            .with_hint(format!("known are {}; generic fits most others", known.join(", ")))
    })?;
    check_session(&args.session).map_err(|why| Failure::usage(why).with_hint("for example `--session run-1`"))?;
    if let Some(name) = &args.key_env
        && !may_name_a_variable(name)
    {
        return Err(Failure::usage("`--key-env` names a variable, not the key itself")
            .with_hint("put the key into a variable and give its name: `--key-env TEAM_KEY`"));
    }
    let lane = args.to.as_ref().map_or_else(String::new, |lane| format!("/lane/{lane}"));
    let base = format!("{}/s/{}{lane}", args.proxy.trim_end_matches('/'), args.session);
    let place = Place { base: &base, session: &args.session, model: &args.model, key_env: args.key_env.as_deref() };
    let setup = harness.setup(&place);
    let shell = match args.shell {
        ShellName::Sh => Shell::Sh,
        ShellName::Fish => Shell::Fish,
        ShellName::Powershell => Shell::Powershell,
    };
    match globals.format {
        Format::Json => out::print_json(&json!({
            "harness": harness.name,
            "api": harness.api,
            "seen": harness.seen,
            "base_url": base,
            "exports": setup.exports.iter().map(|(name, value)| json!({ "name": name, "value": value })).collect::<Vec<_>>(),
            "files": setup.files.iter().map(|(path, content)| json!({ "path": path, "content": content })).collect::<Vec<_>>(),
            "run": setup.run,
        }))?,
        _ => out::print(&lines(&setup, harness.api, shell))?,
    }
    Ok(Exit::Fine)
}
