//! What a configuration names outside of itself: the zone, prompts in files, certificates, key files.

use std::path::Path;

use peaklane_core::config::{Config, ConfigError, KeyPath, Problem, line_of};

use super::file::read_text;
use super::zone::time_zone;

/// The longest prompt, as in the configuration itself.
const MAX_PROMPT_BYTES: usize = 1024 * 1024;
/// A bundle of all public authorities is a quarter of this.
const MAX_CA_BYTES: usize = 1024 * 1024;

/// Looks everything up, reads the prompts, and makes paths relative to the current folder instead of the file's.
///
/// # Errors
/// All problems together, each with its line in `text`.
pub(super) fn resolve(config: &mut Config, base: &Path, text: &str) -> Result<(), ConfigError> {
    let mut problems = Vec::new();
    zones(config, &mut problems);
    prompts(config, base, &mut problems);
    lanes(config, base, &mut problems);
    let located = problems.into_iter().map(|problem: Problem| {
        let line = line_of(text, problem.path());
        problem.on_line(line)
    });
    ConfigError::unless_empty(located.collect())
}

/// Every zone that is named: the database's own spelling goes into the records.
fn zones(config: &mut Config, problems: &mut Vec<Problem>) {
    let mut look_up = |name: &mut String, path: KeyPath| match time_zone(name) {
        Ok(zone) => {
            if let Some(spelling) = zone.iana_name() {
                spelling.clone_into(name);
            }
        }
        Err(unknown) => {
            let problem = Problem::of_key(path, format!("unknown zone `{name}`"));
            problems.push(problem.next_step(unknown.hint().unwrap_or_default()));
        }
    };
    if let Some(name) = &mut config.time_zone {
        look_up(name, vec!["time_zone".into()]);
    }
    for (index, site) in config.sites.iter_mut().enumerate() {
        look_up(&mut site.time_zone, vec!["site".into(), index.into(), "time_zone".into()]);
    }
    for (index, lane) in config.lanes.iter_mut().enumerate() {
        let hours = lane.price.iter_mut().flat_map(|price| &mut price.hours);
        for (at, hours) in hours.enumerate() {
            let path = vec!["lane".into(), index.into(), "price".into(), "hours".into(), at.into(), "zone".into()];
            look_up(&mut hours.zone, path);
        }
    }
}

fn prompts(config: &mut Config, base: &Path, problems: &mut Vec<Problem>) {
    for (index, task) in config.tasks.iter_mut().enumerate() {
        let Some(file) = task.prompt_file.take() else { continue };
        let path = || vec!["task".into(), index.into(), "prompt_file".into()];
        match read_text(&base.join(&file), MAX_PROMPT_BYTES) {
            Ok(prompt) if prompt.trim().is_empty() => {
                problems.push(unusable(path(), "prompt_file", &file, "it is blank"))
            }
            Ok(prompt) => task.prompt = Some(prompt),
            Err(fault) => problems.push(unusable(path(), "prompt_file", &file, fault)),
        }
    }
}

fn lanes(config: &mut Config, base: &Path, problems: &mut Vec<Problem>) {
    for (index, lane) in config.lanes.iter_mut().enumerate() {
        let path = |key: &str| vec!["lane".into(), index.into(), key.into()];
        if let Some(file) = &lane.ca_file {
            match read_text(&base.join(file), MAX_CA_BYTES) {
                Ok(text) if !text.contains("-----BEGIN CERTIFICATE-----") => {
                    problems.push(unusable(path("ca_file"), "ca_file", file, "it holds no certificate in PEM form"));
                }
                Ok(_) => {}
                Err(fault) => problems.push(unusable(path("ca_file"), "ca_file", file, fault)),
            }
        }
        for (key, file) in [("ca_file", &mut lane.ca_file), ("key_file", &mut lane.key_file)] {
            let Some(given) = file.take() else { continue };
            match base.join(&given).into_os_string().into_string() {
                Ok(joined) => *file = Some(joined),
                Err(_) => problems.push(unusable(path(key), key, &given, "its folder has a name that is no UTF-8")),
            }
        }
    }
}

fn unusable(path: KeyPath, key: &str, file: &str, why: impl std::fmt::Display) -> Problem {
    Problem::of_key(path, format!("cannot use `{key}` \"{file}\"")).next_step(why.to_string())
}
