//! Lanes for the commands that measure: from flags, configuration and environment to something that can be fired at.

use std::ffi::OsString;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use clap::Args;
use peaklane_core::config::{Config, Lane, MaxTokensField, Micros, Task, parse_checked};
use peaklane_core::lane::{Api, Kind};
use peaklane_core::secret::Secret;
use peaklane_run::burst::LaneTarget;
use peaklane_run::clock::wall_ms;
use peaklane_wire::client::{Client, Limits, Target};
use peaklane_wire::endpoint::Endpoint;
use peaklane_wire::lag::LagProbe;
use peaklane_wire::net::Network;
use peaklane_wire::proxy_env::Proxies;
use peaklane_wire::request::Ask;

use crate::exit::Exit;
use crate::failure::Failure;
use crate::globals::Globals;
use crate::load::{Environment, KEY_VARIABLE, ProcessEnvironment, Source, key_from_variable, key_of, load};

/// A lane that the command line makes, for `try` and `burst`.
#[derive(Args, Clone, Debug, Default)]
#[command(next_help_heading = "A lane of the command line")]
pub struct AdHoc {
    /// Base URL of the API; an empty path gets `/v1`. Default: `LLM_BASE_URL`, else the lanes of the configuration. Example:
    /// `--base-url http://127.0.0.1:8080/v1`
    #[arg(long, value_name = "URL")]
    pub base_url: Option<String>,

    /// Model to ask for. Default: `LLM_MODEL`, else the lane's own. Example: `--model small-coder`
    #[arg(long, value_name = "NAME")]
    pub model: Option<String>,

    /// What the lane speaks: chat, completions, messages or responses. Default: `LLM_API`, else chat. Example: `--api messages`
    #[arg(long, value_name = "API")]
    pub api: Option<Api>,

    /// Variable that holds the key. Default: `LLM_API_KEY`, where it is set. Example: `--api-key-env TEAM_KEY`
    #[arg(long, value_name = "VARIABLE")]
    pub api_key_env: Option<String>,

    /// Text to send. Default: the task's own; for `try` one short sentence. Example: `--prompt "Reply with one word: ready"`
    #[arg(long, value_name = "TEXT")]
    pub prompt: Option<String>,

    /// System text to send. Default: the task's own, if any. Example: `--system "Answer briefly."`
    #[arg(long, value_name = "TEXT")]
    pub system: Option<String>,

    /// Budget of generated tokens. Default: the task's own; 1024 for `try`. Example: `--max-tokens 64`
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..))]
    pub max_tokens: Option<u32>,

    /// Ask for one whole answer instead of a stream. Default: off. Example: `--no-stream`
    #[arg(long)]
    pub no_stream: bool,

    /// Send neither temperature nor seed, for a lane that refuses them. Default: off, temperature 0 and a seed are sent.
    /// Example: `--plain-sampling`
    #[arg(long)]
    pub plain_sampling: bool,

    /// Longest wait for the first byte of an answer. Default: 60s, or the configuration's. Example: `--first-byte-timeout 600ms`
    #[arg(long, value_name = "TIME")]
    pub first_byte_timeout: Option<Micros>,

    /// Longest gap between two bytes of an answer. Default: 60s, or the configuration's. Example: `--idle-timeout 5s`
    #[arg(long, value_name = "TIME")]
    pub idle_timeout: Option<Micros>,

    /// Longest whole answer. Default: 120s, or the configuration's. Example: `--total-timeout 60s`
    #[arg(long, value_name = "TIME")]
    pub total_timeout: Option<Micros>,

    /// File with further certificates to trust, PEM. Default: none, those of the system and Mozilla's are trusted. Example:
    /// `--ca-file company.pem`
    #[arg(long, value_name = "FILE")]
    pub ca_file: Option<PathBuf>,
}

impl AdHoc {
    /// Does the command line make a lane of its own?
    pub fn makes_a_lane(&self) -> bool {
        self.base_url.is_some() || self.model.is_some()
    }

    /// Applies what was said about the request to a task.
    pub fn adjust(&self, task: &mut Task) {
        if let Some(prompt) = &self.prompt {
            task.prompt = Some(prompt.clone());
        }
        if let Some(system) = &self.system {
            task.system = Some(system.clone());
        }
        if let Some(max_tokens) = self.max_tokens {
            task.max_tokens = max_tokens;
        }
    }

    /// Applies what was said about limits to those of a configuration.
    pub fn limits(&self, config: &Config) -> Limits {
        let time = |given: Option<Micros>, own: Micros| given.unwrap_or(own).as_duration();
        let total = time(self.total_timeout, config.timeouts.total);
        let within = |limit: Duration| limit.min(total);
        Limits {
            first_byte: within(time(self.first_byte_timeout, config.timeouts.first_byte)),
            idle: within(time(self.idle_timeout, config.timeouts.idle)),
            total,
        }
    }
}

/// The limits of a configuration.
pub(super) fn limits(config: &Config) -> Limits {
    AdHoc::default().limits(config)
}

/// Lanes to measure and what goes with them.
#[derive(Debug)]
pub struct Chosen {
    /// The configuration, or defaults where there is none.
    pub config: Config,
    /// The lanes, in order.
    pub lanes: Vec<Lane>,
    /// The command line or the environment made the lane; no file was read.
    pub by_hand: bool,
}

/// Chooses lanes: those of flags or environment, else the named ones of the configuration, else all of it.
///
/// # Errors
/// [`Failure`] with exit code 2 for what cannot be loaded, and for names that no lane has.
pub fn choose(ad_hoc: &AdHoc, names: &[String], globals: &Globals) -> Result<Chosen, Failure> {
    let env = ProcessEnvironment;
    if ad_hoc.makes_a_lane() {
        if !names.is_empty() {
            return Err(Failure::usage(
                "`--lane` names a lane of the configuration, `--base-url` and `--model` make one",
            )
            .with_hint("use one or the other"));
        }
        let lane = from_flags(ad_hoc, &env)?;
        let mut config = Config { lanes: vec![lane.clone()], tasks: vec![Task::inline_assist()], ..Config::default() };
        config.burst.warmup = 0;
        config.check().map_err(|e| {
            Failure::of(Exit::Usage, &e, Some("check `--base-url` and `--model`".to_owned()))
                .because("the lane was made by the command line")
        })?;
        return Ok(Chosen { config, lanes: vec![lane], by_hand: true });
    }
    let loaded = load(globals.config.as_deref(), &env)?;
    let mut config = loaded.config;
    for lane in &mut config.lanes {
        lane.api = ad_hoc.api.unwrap_or(lane.api);
        if let Some(variable) = &ad_hoc.api_key_env {
            (lane.key_env, lane.key_file) = (Some(variable.clone()), None);
        }
        if ad_hoc.plain_sampling {
            (lane.send_temperature, lane.send_seed) = (false, false);
        }
        if let Some(file) = &ad_hoc.ca_file {
            lane.ca_file = Some(file.to_string_lossy().into_owned());
        }
    }
    let lanes = if names.is_empty() {
        config.lanes.clone()
    } else {
        names.iter().map(|name| named(&config, name)).collect::<Result<_, _>>()?
    };
    Ok(Chosen { by_hand: matches!(loaded.source, Source::Environment), config, lanes })
}

fn named(config: &Config, name: &str) -> Result<Lane, Failure> {
    config.lane(name).cloned().ok_or_else(|| {
        let known: Vec<&str> = config.lanes.iter().map(|l| l.name.as_str()).collect();
        Failure::usage(format!("no lane is called `{name}`")).with_hint(format!("the lanes are {}", known.join(", ")))
    })
}

fn from_flags(ad_hoc: &AdHoc, env: &dyn Environment) -> Result<Lane, Failure> {
    let text = |given: &Option<String>, variable: &str, flag: &str| {
        let from_env = || env.variable(variable).and_then(|v| v.into_string().ok()).filter(|v| !v.trim().is_empty());
        given.clone().or_else(from_env).ok_or_else(|| {
            Failure::usage(format!("the lane needs `{flag}` too"))
                .with_hint(format!("give `{flag}`, or set the variable {variable}"))
        })
    };
    let base_url = text(&ad_hoc.base_url, "LLM_BASE_URL", "--base-url")?;
    let model = text(&ad_hoc.model, "LLM_MODEL", "--model")?;
    let api = match (ad_hoc.api, env.variable("LLM_API").and_then(|v| v.into_string().ok())) {
        (Some(api), _) => api,
        (None, Some(name)) if !name.trim().is_empty() => name.trim().parse().map_err(|e| {
            Failure::usage(format!("LLM_API names no API: {e}")).with_hint("set it to chat, or unset it")
        })?,
        _ => Api::default(),
    };
    let has_key = env.variable(KEY_VARIABLE).is_some_and(|value| !value.is_empty());
    let key_env = ad_hoc.api_key_env.clone().or_else(|| has_key.then(|| KEY_VARIABLE.to_owned()));
    // The template is a checked lane of nothing: each field that is no flag keeps its default.
    let template = "[[lane]]\nname = \"cli\"\nkind = \"free-hosted\"\nbase_url = \"http://localhost\"\nmodel = \"m\"\n";
    let mut lane = parse_checked(template)?.lanes.remove(0);
    (lane.kind, lane.base_url, lane.model, lane.api, lane.key_env) = (Kind::FreeHosted, base_url, model, api, key_env);
    (lane.send_temperature, lane.send_seed) = (!ad_hoc.plain_sampling, !ad_hoc.plain_sampling);
    lane.ca_file = ad_hoc.ca_file.as_ref().map(|p| p.to_string_lossy().into_owned());
    Ok(lane)
}

/// A lane that can be fired at.
#[derive(Debug)]
pub struct Ready {
    /// Its client: lanes may differ in proxies and certificates.
    pub client: Arc<Client>,
    /// Where, and what is asked.
    pub lane: LaneTarget,
}

/// Makes a lane ready: reads its key and its certificates, nothing is sent.
///
/// # Errors
/// [`Failure`] with exit code 2 for an address, key, certificate file or proxy that cannot be used.
pub fn ready(lane: &Lane, task: &Task, stream: bool, seed: u64, lag: Option<&Arc<LagProbe>>) -> Result<Ready, Failure> {
    let env = ProcessEnvironment;
    let endpoint = Endpoint::new(&lane.base_url, lane.api)?;
    let key = key(lane, &env)?;
    let text = |value: OsString| value.into_string().ok();
    let proxies = match &lane.proxy {
        Some(url) => Proxies::from_env(|name| matches!(name, "http_proxy" | "https_proxy").then(|| url.clone())),
        None => Proxies::from_env(|name| env.variable(name).and_then(text)),
    };
    let proxies = proxies.map_err(|e| Failure::of(Exit::Usage, &e, e.hint()))?;
    let ca_files: Vec<PathBuf> = lane.ca_file.iter().map(PathBuf::from).collect();
    let network = Network::new(proxies, &ca_files, true).map_err(|e| Failure::of(Exit::Usage, &e, e.hint()))?;
    let mut client = Client::new(Arc::new(network), wall_ms);
    if let Some(lag) = lag {
        client = client.with_lag_probe(Arc::clone(lag));
    }
    let ask = Ask {
        model: lane.model.clone(),
        system: task.system.clone(),
        prompt: task.prompt.clone().unwrap_or_default(),
        max_tokens: u64::from(task.max_tokens),
        max_completion_tokens: lane.max_tokens_field == MaxTokensField::MaxCompletionTokens,
        temperature: lane.send_temperature.then_some(task.temperature),
        seed: lane.send_seed.then_some(seed),
        stream,
        extra: lane.extra_body.clone(),
    };
    let headers = lane.headers.iter().map(|(n, v)| (n.clone(), v.clone())).collect();
    Ok(Ready {
        client: Arc::new(client),
        lane: LaneTarget { target: Target { endpoint, api: lane.api, key, headers }, ask },
    })
}

fn key(lane: &Lane, env: &dyn Environment) -> Result<Option<Secret>, Failure> {
    // The variable of a lane without file or configuration may be one of ours; any other is the user's own.
    match &lane.key_env {
        Some(variable) if lane.key_file.is_none() => Ok(Some(key_from_variable(variable, env)?)),
        _ => Ok(key_of(lane, env)?),
    }
}

/// One event loop on this thread: what measures is never moved between cores in the middle of a read.
///
/// # Errors
/// When the system gives no event queue.
pub fn event_loop() -> Result<tokio::runtime::Runtime, Failure> {
    tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .map_err(|e| Failure::of(Exit::Unmeasured, &e, None).because("no event loop could be started"))
}
