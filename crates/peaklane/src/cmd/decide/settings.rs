//! The configuration beside what a campaign locked.

use std::path::Path;

use peaklane_core::campaign::Locked;
use peaklane_core::config::{Config, RulesSettings};
use serde_json::Value;

use super::gather::Place;
use crate::failure::Failure;
use crate::globals::Globals;
use crate::load::{FILE_NAME, ProcessEnvironment, load};
use crate::out;

/// The configuration, where there is one. One that was named must be sound, and so must the one beside a store; files are
/// decided on without one that happens to lie here and cannot be read.
pub(super) fn configuration(globals: &Globals, from_files: bool) -> Result<Option<Config>, Failure> {
    let path = match &globals.config {
        Some(path) => path.as_path(),
        None if Path::new(FILE_NAME).symlink_metadata().is_ok() => Path::new(FILE_NAME),
        None => return Ok(None),
    };
    match load(Some(path), &ProcessEnvironment) {
        Ok(loaded) => Ok(Some(loaded.config)),
        Err(error) if globals.config.is_some() || !from_files => Err(error.into()),
        Err(error) => {
            out::warn(globals, &format!("{error}; decided without it; `peaklane check` tells why"));
            Ok(None)
        }
    }
}

/// What in the configuration is no longer as the campaign locked it: the locked values count.
pub(super) fn changed(place: &Place, config: Option<&Config>) -> Vec<String> {
    let (Some((id, locked)), Some(config)) = (&place.campaign, config) else { return Vec::new() };
    let mut told = rules_changed(&locked.rules, &config.rules);
    let site = config.sites().into_iter().find(|s| s.name == locked.site);
    let start = locked.campaign.start_date;
    if told.is_empty()
        && let (Some(site), Some(start)) = (site, start)
        && Locked::new(config, &site, start).plan_hash() != locked.plan_hash()
    {
        told.push(format!(
            "the configuration has changed since campaign {id} began: what was locked counts, and `watch` would begin a new series"
        ));
    }
    let unmeasured: Vec<&str> = config
        .sites()
        .iter()
        .filter(|s| s.name == locked.site)
        .flat_map(|s| config.lanes.iter().filter(|l| s.lanes.contains(&l.name)))
        .map(|l| l.name.as_str())
        .filter(|name| locked.lane(name).is_none() && place.bursts.iter().all(|b| b.header.lane != *name))
        .collect();
    told.extend(unmeasured.into_iter().map(|name| {
        format!("lane `{name}` is in the configuration and not in campaign {id}: it does not stand for choice")
    }));
    let gone = locked.lanes.iter().filter(|l| config.lane(&l.name).is_none());
    told.extend(gone.map(|l| {
        format!("lane `{}` of campaign {id} is no longer in the configuration: it does not stand for choice", l.name)
    }));
    told
}

fn rules_changed(locked: &RulesSettings, now: &RulesSettings) -> Vec<String> {
    let object = |rules: &RulesSettings| serde_json::to_value(rules).unwrap_or(Value::Null);
    let (before, after) = (object(locked), object(now));
    let Some(keys) = before.as_object() else { return Vec::new() };
    let differ = keys.iter().filter(|(key, value)| after.get(key.as_str()) != Some(value));
    let told = differ.map(|(key, value)| {
        let after = after.get(key.as_str()).cloned().unwrap_or_default();
        format!("`{key}` is {after} in the configuration and was {value} when the campaign began: {value} counts")
    });
    told.collect()
}
