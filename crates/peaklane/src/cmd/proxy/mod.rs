//! `peaklane proxy`: stands between a harness and its endpoint, hands bytes on as they are, and measures.

pub mod env;
mod live;
#[cfg(feature = "otel")]
mod otlp;
mod serve;
mod upstreams;

use std::net::{SocketAddr, ToSocketAddrs as _};
use std::path::PathBuf;

use clap::{Args, Subcommand, ValueEnum};
use peaklane_core::config::Micros;

use crate::exit::Exit;
use crate::failure::Failure;
use crate::globals::Globals;

const EXAMPLES: &str = "\
Examples:
  peaklane proxy --upstream http://127.0.0.1:8000/v1
  eval \"$(peaklane proxy env --harness opencode --session run-1)\"   then start the harness
  peaklane proxy --upstream fast=http://10.0.0.5:8000/v1 --upstream slow=http://10.0.0.6:8000/v1
  peaklane proxy --lane lane-a --inject-keys --token-env PROXY_TOKEN
  peaklane summary sessions                                         what the sessions cost

A harness reaches session S at http://127.0.0.1:8787/s/S/v1, lane L at .../lane/L/v1, both at .../s/S/lane/L/v1. GET /metrics is
the proxy's own page for Prometheus; every other path is the upstream's.

Exit codes: 0 it was stopped by SIGTERM or Ctrl-C and all streams had ended. 2 wrong usage, a port that is taken. 3 the store could
not be opened, or streams were cut off at the end.";

/// Stand between an agent harness and its endpoint, change not one byte, and record what each call cost
///
/// Records per call times, tokens and how much of its prompt a prefix cache could have served; what broke the prefix, where, and
/// which side lost it. Prompts and answers are not kept.
#[derive(Args, Clone, Debug)]
#[command(after_help = EXAMPLES, args_conflicts_with_subcommands = true, subcommand_negates_reqs = true)]
pub struct ProxyArgs {
    #[command(subcommand)]
    action: Option<Action>,

    #[command(flatten)]
    serve: ServeArgs,
}

#[derive(Subcommand, Clone, Debug)]
enum Action {
    #[allow(missing_docs, reason = "the words of the struct are the help text")]
    Env(env::EnvArgs),
}

/// How to serve.
#[derive(Args, Clone, Debug)]
pub struct ServeArgs {
    /// Where to listen. Anything but this machine's own addresses needs `--token-env`. Default: `127.0.0.1:8787`; port 0 takes a
    /// free one. Example: `--listen 127.0.0.1:9000`
    #[arg(long, value_name = "ADDRESS", default_value = "127.0.0.1:8787", hide_default_value = true, value_parser = address)]
    pub listen: SocketAddr,

    /// Where calls go: a base URL with or without `/v1`, or NAME=URL where there are several; the first takes what names none.
    /// Default: the lanes of `--lane`. Example: `--upstream http://127.0.0.1:8000/v1`
    #[arg(long, value_name = "[NAME=]URL")]
    pub upstream: Vec<String>,

    /// Lanes of the configuration to stand before, with their addresses, headers and certificates. Default: none. Example:
    /// `--lane lane-a,lane-b`
    #[arg(long, value_name = "NAME", value_delimiter = ',')]
    pub lane: Vec<String>,

    /// Send the lanes' own keys, or that of `--key-env`, instead of what clients send. Needs `--token-env`. Default: off, the
    /// client's key passes. Example: `--inject-keys`
    #[arg(long, requires = "token_env")]
    pub inject_keys: bool,

    /// Variable with the key for all `--upstream`s, sent with `--inject-keys`. Default: none. Example: `--key-env TEAM_KEY`
    #[arg(long, value_name = "VARIABLE", requires = "inject_keys")]
    pub key_env: Option<String>,

    /// Variable with the proxy's own token; clients send it as their API key or as `X-Peaklane-Token`. Default: none, whoever
    /// reaches the port may call. Example: `--token-env PROXY_TOKEN`
    #[arg(long, value_name = "VARIABLE")]
    pub token_env: Option<String>,

    /// When a client leaves before the end of an answer: `close` the upstream at once, or `drain` the answer to its end, so that
    /// its figures are whole. Default: `close`. Example: `--on-disconnect drain`
    #[arg(
        long,
        value_enum,
        value_name = "WHAT",
        default_value_t,
        hide_default_value = true,
        hide_possible_values = true
    )]
    pub on_disconnect: Leaving,

    /// Ask for token counts where a client streams without them, and take the extra chunk out of the answer again. Default: off,
    /// bytes stay untouched and tokens are estimated. Example: `--inject-usage`
    #[arg(long)]
    pub inject_usage: bool,

    /// Neither read prompts nor compare them. Default: off. Example: `--no-prefix`
    #[arg(long)]
    pub no_prefix: bool,

    /// Record nothing on disk; calls are shown and counted only. Default: off, they go to the store. Example: `--no-store`
    #[arg(long)]
    pub no_store: bool,

    /// Keep the request bodies in this folder, one file per session that its owner alone can read, without keys, for `summary
    /// sessions FILE`. They hold prompts and code. Default: none are kept. Example: `--keep-bodies bodies`
    #[arg(long, value_name = "FOLDER")]
    pub keep_bodies: Option<PathBuf>,

    /// Record no pieces of prompts, words of servers, request ids or names that request bodies give. Default: `texts` of
    /// `[privacy]`, which keeps them. Example: `--no-texts`
    #[arg(long, conflicts_with = "keep_bodies")]
    pub no_texts: bool,

    /// Draw a table of the sessions that is renewed as calls come. Default: off, one line per call. Example: `--live`
    #[arg(long)]
    pub live: bool,

    /// Send each finished call as an OpenTelemetry span to this collector (OTLP over HTTP, JSON); headers come from
    /// OTEL_EXPORTER_OTLP_HEADERS. Default: none. Example: `--otlp http://127.0.0.1:4318`
    #[cfg(feature = "otel")]
    #[arg(long, value_name = "URL")]
    pub otlp: Option<String>,

    /// Path of the page for Prometheus, or `off`. Default: `/metrics`. Example: `--metrics /-/metrics`
    #[arg(long, value_name = "PATH", default_value = "/metrics", hide_default_value = true)]
    pub metrics: String,

    /// Memory for requests that wait to be read, and as much again for texts of newest prompts, MiB. Default: 256. Example:
    /// `--memory 64`
    #[arg(long, value_name = "MIB", default_value_t = 256, hide_default_value = true, value_parser = clap::value_parser!(u32).range(1..=65_536))]
    pub memory: u32,

    /// Connections of clients at once. Default: 10000, or what the system's limit of open files allows. Example:
    /// `--connections 500`
    #[arg(long, value_name = "N", default_value_t = 10_000, hide_default_value = true, value_parser = clap::value_parser!(u32).range(1..))]
    pub connections: u32,

    /// Longest wait for the first byte of an answer. Default: 15m. Example: `--first-byte-timeout 5m`
    #[arg(long, value_name = "TIME")]
    pub first_byte_timeout: Option<Micros>,

    /// Longest gap between two bytes of a stream, in either direction. Default: 15m. Example: `--idle-timeout 2m`
    #[arg(long, value_name = "TIME")]
    pub idle_timeout: Option<Micros>,

    /// How long streams may go on after a stop. Default: 30s. Example: `--drain-timeout 5m`
    #[arg(long, value_name = "TIME")]
    pub drain_timeout: Option<Micros>,

    /// File with further certificates to trust, PEM. Default: those of the system, Mozilla's and the lanes' own. Example:
    /// `--ca-file company.pem`
    #[arg(long, value_name = "FILE")]
    pub ca_file: Option<PathBuf>,
}

/// An address with its port: of numbers, or a name that stands for one (`localhost:8787`).
fn address(text: &str) -> Result<SocketAddr, String> {
    if let Ok(address) = text.parse() {
        return Ok(address);
    }
    let found = text.to_socket_addrs().map_err(|e| format!("{e}; write it like 127.0.0.1:8787"))?;
    // The old family first: most clients of `localhost` try it.
    let mut all: Vec<SocketAddr> = found.collect();
    all.sort_by_key(SocketAddr::is_ipv6);
    all.first().copied().ok_or_else(|| "the name has no address; write it like 127.0.0.1:8787".to_owned())
}

/// What happens when a client leaves.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub enum Leaving {
    /// The upstream is closed.
    #[default]
    Close,
    /// The answer is read to its end.
    Drain,
}

/// Serves until stopped, or prints what points a harness here.
///
/// # Errors
/// [`Failure`]: exit code 2 for usage, addresses and keys that cannot be used, 3 for a store that cannot be opened.
pub fn run(args: &ProxyArgs, globals: &Globals) -> Result<Exit, Failure> {
    match &args.action {
        Some(Action::Env(args)) => env::run(args, globals),
        None => serve::run(&args.serve, globals),
    }
}
