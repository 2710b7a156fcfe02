//! The upstreams of a proxy: those of the command line, and lanes of the configuration.

use std::ffi::OsString;
use std::path::PathBuf;
use std::sync::Arc;

use peaklane_core::config::Config;
use peaklane_core::secret::Secret;
use peaklane_wire::net::Network;
use peaklane_wire::proxy::Upstream;
use peaklane_wire::proxy_env::Proxies;

use super::ServeArgs;
use crate::exit::Exit;
use crate::failure::Failure;
use crate::globals::Globals;
use crate::load::{Environment, ProcessEnvironment, key_from_variable, key_of, load};

/// Upstreams, and the network to reach them through.
pub(super) struct Behind {
    pub(super) upstreams: Vec<Upstream>,
    pub(super) network: Arc<Network>,
}

/// Makes them ready; nothing is sent.
///
/// # Errors
/// [`Failure`] with exit code 2: no upstream, an address, lane, key or certificate file that cannot be used.
pub(super) fn behind(args: &ServeArgs, globals: &Globals) -> Result<Behind, Failure> {
    let env = ProcessEnvironment;
    if args.upstream.is_empty() && args.lane.is_empty() {
        return Err(Failure::usage("the proxy has no upstream").with_hint(
            "name one: `--upstream http://127.0.0.1:8000/v1`, or lanes of the configuration: `--lane lane-a`",
        ));
    }
    let mut upstreams = Vec::new();
    let mut ca_files: Vec<PathBuf> = args.ca_file.iter().cloned().collect();
    let mut forward: Option<String> = None;
    let shared = args.key_env.as_deref().map(|name| key_from_variable(name, &env)).transpose()?;
    for given in &args.upstream {
        let (name, url) = named(given)?;
        upstreams.push(upstream(name, url, shared.clone(), Vec::new())?);
    }
    if !args.lane.is_empty() {
        let config = load(globals.config.as_deref(), &env)?.config;
        for name in &args.lane {
            let lane = config.lane(name).ok_or_else(|| no_lane(name, &config))?;
            let key = if args.inject_keys { key_of(lane, &env)? } else { None };
            let headers = lane.headers.iter().map(|(n, v)| (n.clone(), v.clone())).collect();
            upstreams.push(upstream(Some(lane.name.clone()), &lane.base_url, key, headers)?);
            ca_files.extend(lane.ca_file.iter().map(PathBuf::from));
            match (&forward, &lane.proxy) {
                (Some(one), Some(other)) if one != other => {
                    return Err(Failure::usage("two of the lanes go through different forward proxies")
                        .with_hint("run one `peaklane proxy` for each, on a port of its own"));
                }
                (None, Some(url)) => forward = Some(url.clone()),
                _ => {}
            }
        }
    }
    let text = |value: OsString| value.into_string().ok();
    let proxies = match forward {
        Some(url) => Proxies::from_env(|name| matches!(name, "http_proxy" | "https_proxy").then(|| url.clone())),
        None => Proxies::from_env(|name| env.variable(name).and_then(text)),
    };
    let proxies = proxies.map_err(|e| Failure::of(Exit::Usage, &e, e.hint()))?;
    let network = Network::new(proxies, &ca_files, true).map_err(|e| Failure::of(Exit::Usage, &e, e.hint()))?;
    Ok(Behind { upstreams, network: Arc::new(network) })
}

/// `NAME=URL`, or a URL alone.
fn named(given: &str) -> Result<(Option<String>, &str), Failure> {
    let Some((name, url)) = given.split_once('=') else { return Ok((None, given)) };
    // The sign may stand in a query.
    if name.contains(':') || name.contains('/') {
        return Ok((None, given));
    }
    let plain = |c: char| c.is_ascii_alphanumeric() || "-_.".contains(c);
    if name.is_empty() || !name.chars().all(plain) {
        return Err(Failure::usage("the name of an upstream has letters, digits and - _ . only")
            .with_hint("write `--upstream fast=http://127.0.0.1:8000/v1`"));
    }
    Ok((Some(name.to_owned()), url))
}

fn upstream(
    name: Option<String>,
    url: &str,
    key: Option<Secret>,
    headers: Vec<(String, String)>,
) -> Result<Upstream, Failure> {
    Upstream::new(name, url, key, headers).map_err(|e| Failure::of(Exit::Usage, &e, e.hint()))
}

fn no_lane(name: &str, config: &Config) -> Failure {
    let known: Vec<&str> = config.lanes.iter().map(|l| l.name.as_str()).collect();
    Failure::usage(format!("no lane is called `{name}`")).with_hint(format!("the lanes are {}", known.join(", ")))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_stands_before_the_first_equals_sign_and_not_in_an_address() {
        assert_eq!(named("http://h/v1?a=b").unwrap(), (None, "http://h/v1?a=b"));
        assert_eq!(named("fast=http://h/v1?a=b").unwrap(), (Some("fast".to_owned()), "http://h/v1?a=b"));
        assert!(named("=http://h").is_err());
        assert!(named("a b=http://h").is_err());
    }
}
