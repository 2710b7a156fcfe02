//! The environment as an argument, and the lane that its variables make where there is no file.

use std::collections::{BTreeMap, HashMap};
use std::env;
use std::ffi::OsString;
use std::hash::BuildHasher;

use peaklane_core::config::{Config, Lane, Limits, MaxTokensField, Task};
use peaklane_core::lane::{Api, Kind};

use super::error::LoadError;

/// Variable with the address of the API.
pub(super) const URL_VARIABLE: &str = "LLM_BASE_URL";
/// Variable with the name of the model.
pub(super) const MODEL_VARIABLE: &str = "LLM_MODEL";
/// Variable with the key of a lane that the environment or the command line makes.
pub const KEY_VARIABLE: &str = "LLM_API_KEY";
/// Variable with the name of the API.
pub(super) const API_VARIABLE: &str = "LLM_API";

/// Where environment variables are looked up.
pub trait Environment {
    /// The value of a variable; `None` where it is not set.
    fn variable(&self, name: &str) -> Option<OsString>;
}

/// The environment of this process.
#[derive(Clone, Copy, Debug, Default)]
pub struct ProcessEnvironment;

impl Environment for ProcessEnvironment {
    fn variable(&self, name: &str) -> Option<OsString> {
        env::var_os(name)
    }
}

impl<S: BuildHasher> Environment for HashMap<String, String, S> {
    fn variable(&self, name: &str) -> Option<OsString> {
        self.get(name).map(OsString::from)
    }
}

impl Environment for BTreeMap<String, OsString> {
    fn variable(&self, name: &str) -> Option<OsString> {
        self.get(name).cloned()
    }
}

/// The value of a variable as text; blank counts as not set, as in `LLM_API= peaklane burst`.
fn text(env: &dyn Environment, name: &str) -> Result<Option<String>, LoadError> {
    let Some(value) = env.variable(name) else { return Ok(None) };
    let value = value.into_string().map_err(|_| LoadError::NotText { variable: name.to_owned() })?;
    let value = value.trim();
    Ok((!value.is_empty()).then(|| value.to_owned()))
}

/// The one lane that the environment makes: name `env`, kind `free-hosted`, task `inline-assist` with a floor of 25 s, and
/// no warm-up, so that a burst is eight requests and nothing else.
pub(super) fn lane(env: &dyn Environment) -> Result<Config, LoadError> {
    let (base_url, model) = match (text(env, URL_VARIABLE)?, text(env, MODEL_VARIABLE)?) {
        (Some(base_url), Some(model)) => (base_url, model),
        (Some(_), None) => return Err(LoadError::MissingVariable { missing: MODEL_VARIABLE }),
        (None, Some(_)) => return Err(LoadError::MissingVariable { missing: URL_VARIABLE }),
        (None, None) => return Err(LoadError::Nothing),
    };
    let api = match text(env, API_VARIABLE)? {
        Some(name) => name.parse::<Api>().map_err(|source| LoadError::UnknownApi { source })?,
        None => Api::default(),
    };
    // whether the key is a sound one is told where it is read; not set is right for a server that asks for none
    let has_key = env.variable(KEY_VARIABLE).is_some_and(|value| !value.is_empty());
    let lane = Lane {
        name: "env".to_owned(),
        kind: Kind::FreeHosted,
        base_url,
        model,
        api,
        key_env: has_key.then(|| KEY_VARIABLE.to_owned()),
        key_file: None,
        headers: BTreeMap::new(),
        price: None,
        rent_usd_per_hour: None,
        owner: None,
        patched: None,
        ops_hours_per_month: None,
        region: None,
        affiliation: None,
        terms_url: None,
        terms_checked: None,
        limits: Limits::default(),
        ca_file: None,
        proxy: None,
        send_temperature: true,
        send_seed: true,
        max_tokens_field: MaxTokensField::default(),
        extra_body: Default::default(),
    };
    let mut config = Config { lanes: vec![lane], tasks: vec![Task::inline_assist()], ..Config::default() };
    config.burst.warmup = 0;
    config.check().map_err(|source| LoadError::Environment { source })?;
    Ok(config)
}
