//! What there is to say about a configuration: its lanes, task classes and problems. Sends nothing, shows no key.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use peaklane_core::check::CheckForm;
use peaklane_core::config::{self, Config, Lane, Task, TaskKind};
use peaklane_core::lane::{Api, Kind};
use peaklane_core::summary::Ms;
use peaklane_wire::endpoint::Endpoint;
use serde::Serialize;

use super::advice;
use super::extent::{self, Extent};
use crate::load::{Environment, KeyError, LoadError, Loaded, key_of, read_text, time_zone};

/// All that `check` found. Its JSON form is a stable contract: `schema/output/check.schema.json`.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct CheckReport {
    /// The configuration can be used.
    pub ok: bool,
    /// The file, or "the environment".
    pub source: String,
    /// What has to be put right first.
    pub problems: Vec<Fault>,
    /// What is worth a look.
    pub warnings: Vec<String>,
    /// IANA zone of all local times.
    pub time_zone: Option<String>,
    /// The lanes; empty where the configuration could not be read.
    pub lanes: Vec<LaneLook>,
    /// The task classes; empty where the configuration could not be read.
    pub tasks: Vec<TaskLook>,
    /// What would be measured; `None` where the configuration could not be read.
    pub extent: Option<Extent>,
}

/// One problem.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Fault {
    /// In words, with the place.
    pub text: String,
    /// Line of the file, from 1; `None` where it stands nowhere.
    pub line: Option<usize>,
    /// The next thing to try, where `text` does not say it.
    pub hint: Option<String>,
}

/// A lane as it would be measured.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct LaneLook {
    /// Its name.
    pub name: String,
    /// Its rung.
    pub kind: Kind,
    /// Its API.
    pub api: Api,
    /// Model to ask for.
    pub model: String,
    /// The address that requests would go to, without a query; `None` where it cannot be one.
    pub url: Option<String>,
    /// Variable or file that the key comes from.
    pub key_from: Option<String>,
    /// Whether it can be read.
    pub key: KeyState,
}

/// Whether a key can be read.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum KeyState {
    /// The lane asks for none.
    None,
    /// It is there.
    Ready,
    /// Its variable is not set here.
    NotSet,
    /// Its variable or file holds no key.
    Unusable,
}

/// A task class as it would be measured.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct TaskLook {
    /// Its name.
    pub name: String,
    /// By latency or by throughput.
    pub judged_by: TaskKind,
    /// Latency floor, milliseconds.
    pub floor_ms: Option<Ms>,
    /// Throughput floor.
    pub tasks_per_hour: Option<u32>,
    /// How an answer is checked: `none`, `contains`, `regex`, `json`, `json_keys` or `exact`.
    pub check: &'static str,
    /// Length of the prompt in bytes.
    pub prompt_bytes: usize,
    /// Budget of the answer in tokens.
    pub max_tokens: u32,
}

impl CheckReport {
    /// A configuration that could not be read.
    pub(super) fn refused(source: String, problems: Vec<Fault>) -> Self {
        Self {
            ok: false,
            source,
            problems,
            warnings: Vec::new(),
            time_zone: None,
            lanes: Vec::new(),
            tasks: Vec::new(),
            extent: None,
        }
    }
}

/// Looks at a configuration that could be loaded.
///
/// * `strict`: a key variable that is not set is a problem.
pub(super) fn look(loaded: &Loaded, strict: bool, environment: &dyn Environment) -> CheckReport {
    let config = &loaded.config;
    let mut problems = Vec::new();
    let mut warnings = Vec::new();
    let lanes: Vec<LaneLook> = config.lanes.iter().map(|lane| look_at_lane(lane, environment, &mut problems)).collect();
    for lane in lanes.iter().filter(|lane| lane.key == KeyState::NotSet) {
        let variable = lane.key_from.as_deref().unwrap_or_default();
        let text = format!("lane `{}`: the variable `{variable}` should hold its key and is not set", lane.name);
        if strict {
            let hint = Some(format!("export {variable}=..., or run `peaklane check` without `--strict`"));
            problems.push(Fault { text, line: None, hint });
        } else {
            warnings.push(text);
        }
    }
    let extent = match extent::extent(config) {
        Ok(extent) => Some(extent),
        Err(error) => {
            problems.push(Fault { text: error.to_string(), line: None, hint: error.hint() });
            None
        }
    };
    if let Some(extent) = &extent {
        warnings.extend(extent::odd_dates(extent));
        warnings.extend(extent::limits_passed(config, extent));
    }
    warnings.extend(advice::rules_at_odds(&config.rules));
    warnings.extend(advice::long_stretches(config));
    CheckReport {
        ok: problems.is_empty(),
        source: loaded.source.to_string(),
        problems,
        warnings,
        time_zone: config.time_zone.clone(),
        lanes,
        tasks: config.tasks.iter().map(look_at_task).collect(),
        extent,
    }
}

fn look_at_lane(lane: &Lane, environment: &dyn Environment, problems: &mut Vec<Fault>) -> LaneLook {
    let mut fault = |error: String, hint: Option<String>| {
        problems.push(Fault { text: format!("lane `{}`: {error}", lane.name), line: None, hint });
    };
    let url = match Endpoint::new(&lane.base_url, lane.api) {
        Ok(endpoint) => Some(endpoint.shown()),
        Err(error) => {
            fault(error.to_string(), error.hint());
            None
        }
    };
    let key = match key_of(lane, environment) {
        Ok(Some(_)) => KeyState::Ready,
        Ok(None) => KeyState::None,
        Err(KeyError::NotSet { .. }) => KeyState::NotSet,
        Err(error) => {
            fault(with_sources(&error), error.hint());
            KeyState::Unusable
        }
    };
    LaneLook {
        name: lane.name.clone(),
        kind: lane.kind,
        api: lane.api,
        model: lane.model.clone(),
        url,
        key_from: lane.key_env.clone().or_else(|| lane.key_file.clone()),
        key,
    }
}

fn look_at_task(task: &Task) -> TaskLook {
    let check = match CheckForm::from(task.check.clone()) {
        CheckForm::None => "none",
        CheckForm::Contains(_) => "contains",
        CheckForm::Regex(_) => "regex",
        CheckForm::Json(_) => "json",
        CheckForm::JsonKeys(_) => "json_keys",
        CheckForm::Exact(_) => "exact",
    };
    TaskLook {
        name: task.name.clone(),
        judged_by: task.judged_by(),
        floor_ms: task.latency_floor().map(|floor| Ms(floor.as_us())),
        tasks_per_hour: task.tasks_per_hour,
        check,
        prompt_bytes: task.prompt.as_ref().map_or(0, String::len),
        max_tokens: task.max_tokens,
    }
}

/// The problems of a configuration that could not be loaded, and its file where there is one.
pub(super) fn faults_of(error: &LoadError) -> (Option<PathBuf>, Vec<Fault>) {
    let one = |text: String| vec![Fault { text, line: None, hint: error.hint() }];
    match error {
        LoadError::Config { path, source } => {
            let faults = source.problems().iter().map(|problem| Fault {
                text: problem.to_string(),
                line: problem.line(),
                hint: None,
            });
            (Some(path.clone()), faults.collect())
        }
        LoadError::File { path, .. } => (Some(path.clone()), one(with_sources(error))),
        _ => (None, one(with_sources(error))),
    }
}

/// What else is wrong with a file that could be read but not used: its keys and its zone, which are only looked at once
/// the rest is sound.
pub(super) fn further_faults(path: &Path, known: &[Fault], environment: &dyn Environment) -> Vec<Fault> {
    // The same bounds as when it was loaded: what was refused as a device or as too long must not be read here after all.
    let text = read_text(path, config::MAX_TEXT_BYTES).ok();
    let Some(mut config) = text.and_then(|text| config::parse(&text).ok()) else {
        return Vec::new();
    };
    let mut faults = Vec::new();
    let base = path.parent().unwrap_or(Path::new(""));
    unknown_zone(&config, known, &mut faults);
    for lane in &mut config.lanes {
        lane.key_file = lane.key_file.take().map(|file| base.join(file).to_string_lossy().into_owned());
        // what is wrong with the address has been told by the rules of the configuration
        let mut found = Vec::new();
        if look_at_lane(lane, environment, &mut found).url.is_some() {
            faults.extend(found);
        }
    }
    faults
}

fn unknown_zone(config: &Config, known: &[Fault], faults: &mut Vec<Fault>) {
    let of_prices = config.lanes.iter().filter_map(|lane| lane.price.as_ref()).flat_map(|price| &price.hours);
    let names = config.time_zone.iter().chain(config.sites.iter().map(|site| &site.time_zone));
    let names: BTreeSet<&String> = names.chain(of_prices.map(|hours| &hours.zone)).collect();
    for name in names {
        if known.iter().any(|fault| fault.text.contains(name.as_str())) {
            continue;
        }
        if let Err(error) = time_zone(name) {
            faults.push(Fault { text: error.to_string(), line: None, hint: error.hint() });
        }
    }
}

/// An error and its causes in one line.
fn with_sources(error: &dyn std::error::Error) -> String {
    let mut text = error.to_string();
    let mut source = error.source();
    while let Some(cause) = source {
        text.push_str(&format!(": {cause}"));
        source = cause.source();
    }
    text
}
