//! Telling somebody: a webhook, a command. What goes wrong here is said and changes no verdict.

use std::io::Write as _;
use std::process::{Command, Stdio};
use std::sync::Arc;
use std::time::{Duration, Instant};

use peaklane_core::choice::Choice;
use peaklane_core::config::Config;
use peaklane_core::lane::Api;
use peaklane_report::choice as view;
use peaklane_report::units::one_line;
use peaklane_wire::client::{Client, Limits, Target};
use peaklane_wire::endpoint::Endpoint;
use peaklane_wire::net::Network;
use peaklane_wire::proxy_env::Proxies;
use serde_json::{Value, json};

use crate::cmd::lanes::event_loop;
use crate::exit::Exit;
use crate::globals::Globals;
use crate::load::{Environment as _, ProcessEnvironment};
use crate::out;

/// How long a webhook and a command may take.
const LIMIT: Duration = Duration::from_secs(30);

/// How often a command is looked at.
const LOOK: Duration = Duration::from_millis(20);

/// Tells all that `[notify]` names.
pub(super) fn tell(choices: &[Choice], exit: Exit, config: Option<&Config>, globals: &Globals) {
    let Some(settings) = config.and_then(|c| c.notify.as_ref()) else {
        out::warn(globals, "nobody is told: the configuration has no [notify]");
        return;
    };
    let message = message(choices, exit).to_string();
    if let Some(variable) = &settings.webhook_env
        && let Err(why) = post(variable, &message)
    {
        // The address may be a secret: the variable is named instead.
        out::warn(globals, &format!("the webhook of `{variable}` was not told: {why}"));
    }
    if let [program, words @ ..] = settings.command.as_slice()
        && let Err(why) = run(program, words, &message)
    {
        out::warn(globals, &format!("`{}` was not told: {why}", one_line(program)));
    }
}

/// The message: `text` is what chat services show, the rest is for programs.
fn message(choices: &[Choice], exit: Exit) -> Value {
    let lines: Vec<String> = choices
        .iter()
        .flat_map(|c| [Some(view::headline(c)), Some(view::trigger_line(c)), view::record_line(c)])
        .flatten()
        .collect();
    let one = |c: &Choice| {
        json!({
            "site": c.site,
            "task": c.task,
            "as_of": c.as_of.to_string(),
            "sentence": view::headline(c),
            "chosen": c.chosen().map(|l| &l.lane),
            "trigger": view::trigger_line(c),
            "fired": c.fired(),
            "moves_to": c.trigger.to.map(|at| &c.lanes[at].lane),
            "expired": c.expired(),
            "expires": c.expires.map(|d| d.to_string()),
        })
    };
    json!({
        "text": lines.join("\n"),
        "exit_code": exit.code(),
        "tool_version": env!("CARGO_PKG_VERSION"),
        "decisions": choices.iter().map(one).collect::<Value>(),
    })
}

/// Posts the message. Redirects are not followed: whoever answers with one would get what was meant for another.
fn post(variable: &str, message: &str) -> Result<(), String> {
    let env = ProcessEnvironment;
    let text = |name: &str| env.variable(name).and_then(|value| value.into_string().ok());
    let url = text(variable).filter(|url| !url.trim().is_empty()).ok_or("the variable is not set")?;
    let endpoint = Endpoint::exactly(&url).map_err(|_| "its value is no http or https address")?;
    let proxies = Proxies::from_env(text).map_err(|e| e.to_string())?;
    let network = Network::new(proxies, &[], true).map_err(|e| e.to_string())?;
    let client = Client::new(Arc::new(network), || jiff::Timestamp::now().as_millisecond());
    let target = Target { endpoint, api: Api::Chat, key: None, headers: Vec::new() };
    let limits = Limits { first_byte: LIMIT, idle: LIMIT, total: LIMIT };
    let body = message.to_owned().into();
    let told = event_loop().map_err(|e| e.message)?.block_on(client.fetch("POST", &target, &body, &limits))?;
    if (200..300).contains(&told.status) { Ok(()) } else { Err(format!("it answered with HTTP {}", told.status)) }
}

/// Runs a command with the message on its standard input, without a shell; ends it after [`LIMIT`].
fn run(program: &str, words: &[String], message: &str) -> Result<(), String> {
    let mut command = Command::new(program);
    command.args(words).stdin(Stdio::piped()).stdout(Stdio::null());
    let mut child = command.spawn().map_err(|e| e.to_string())?;
    let input = child.stdin.take();
    let text = message.to_owned();
    // A command that reads nothing must not hold us up.
    let writer = std::thread::spawn(move || {
        if let Some(mut input) = input {
            // one that closes its input early has read what it wanted
            let _ = input.write_all(text.as_bytes()).and_then(|()| input.write_all(b"\n"));
        }
    });
    let due = Instant::now() + LIMIT;
    let ended = loop {
        match child.try_wait() {
            Ok(Some(status)) => break Ok(status),
            Ok(None) if Instant::now() >= due => {
                let _ = child.kill().and_then(|()| child.wait());
                break Err(format!("it did not end within {} s and was stopped", LIMIT.as_secs()));
            }
            Ok(None) => std::thread::sleep(LOOK),
            Err(e) => break Err(e.to_string()),
        }
    };
    let status = ended?;
    let _ = writer.join();
    if status.success() { Ok(()) } else { Err(format!("it ended with {status}")) }
}
