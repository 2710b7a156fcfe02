//! A choice as the configuration of a router.
//!
//! LiteLLM's router has no clock: a split by hours becomes one model group for each lane and an alias that names the group in
//! use, which has to be changed at the hours in the comments. Form of the file: LiteLLM's documentation of `config.yaml`
//! (`model_list`, `litellm_params`, `router_settings.model_group_alias`).

use peaklane_core::choice::{Choice, LaneFigures};
use peaklane_core::config::Config;
use peaklane_core::lane::Api;
use serde_json::{Value, json};

use super::headline;
use crate::units::one_line;

/// Why there is nothing to route.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum NoRouting {
    /// No lane is chosen, and no split holds.
    #[error("{0}, so that there is nothing to route")]
    NothingChosen(String),
    /// The configuration does not have the lane.
    #[error("the configuration has no lane `{0}`, so that its address is not known")]
    NoLane(String),
}

impl NoRouting {
    /// The next thing to try.
    pub fn hint(&self) -> Option<String> {
        Some(match self {
            Self::NothingChosen(_) => "look at `peaklane decide` without `--routing`".to_owned(),
            Self::NoLane(_) => "name the configuration of the campaign with `--config FILE`".to_owned(),
        })
    }
}

/// Hours and lane of each range: one that lasts all day where a lane is chosen and no split asked for.
fn ranges(choice: &Choice) -> Result<Vec<(String, String, &LaneFigures)>, NoRouting> {
    if let Some(split) = &choice.split {
        let all = split.ranges.iter().map(|r| (r.from.clone(), r.to.clone(), &choice.lanes[r.lane]));
        return Ok(all.collect());
    }
    let chosen = choice.chosen().ok_or_else(|| NoRouting::NothingChosen(headline(choice)))?;
    Ok(vec![("00:00".to_owned(), "00:00".to_owned(), chosen)])
}

/// The plain form: ranges in the zone of the site, each with its lane.
///
/// # Errors
/// [`NoRouting`] where no lane is chosen and no split holds.
pub fn routing_json(choices: &[Choice]) -> Result<Value, NoRouting> {
    let one = |choice: &Choice| {
        let ranges =
            ranges(choice)?.into_iter().map(|(from, to, lane)| json!({"from": from, "to": to, "lane": lane.lane}));
        Ok(json!({
            "site": choice.site,
            "task": choice.task,
            "time_zone": choice.time_zone,
            "expires": choice.expires.map(|d| d.to_string()),
            "ranges": ranges.collect::<Value>(),
        }))
    };
    Ok(json!({ "routes": choices.iter().map(one).collect::<Result<Vec<Value>, NoRouting>>()? }))
}

/// A `config.yaml` of LiteLLM. Keys stay in the environment: the file names their variables.
///
/// # Errors
/// [`NoRouting`] where no lane is chosen and no split holds, or the configuration does not have a lane.
pub fn litellm(choices: &[Choice], config: &Config) -> Result<String, NoRouting> {
    let mut list = String::from("model_list:\n");
    let mut aliases = String::new();
    let mut head = String::from("# Written by peaklane decide --routing litellm.\n");
    for choice in choices {
        let ranges = ranges(choice)?;
        let group = match &choice.site {
            Some(site) => format!("{site}-{}", choice.task),
            None => choice.task.clone(),
        };
        let zone = choice.time_zone.as_deref().map(|z| format!(" ({})", one_line(z))).unwrap_or_default();
        let expires = choice.expires.map(|d| format!(", expires {d}")).unwrap_or_default();
        head.push_str(&format!("# {}{expires}\n", headline(choice)));
        let mut done: Vec<&str> = Vec::new();
        if let [(_, _, only)] = ranges.as_slice() {
            list.push_str(&entry(&group, only, config)?);
            continue;
        }
        head.push_str(&format!(
            "# The router has no clock. By the hours of the day{zone} the alias `{}` is\n",
            one_line(&group)
        ));
        for (from, to, lane) in &ranges {
            let name = format!("{group}-{}", lane.lane);
            head.push_str(&format!("#   from {from} to {to}: {}\n", one_line(&name)));
            if !done.contains(&lane.lane.as_str()) {
                done.push(&lane.lane);
                list.push_str(&entry(&name, lane, config)?);
            }
        }
        if let Some((_, _, first)) = ranges.first() {
            aliases.push_str(&format!("    {}: {}\n", quoted(&group), quoted(&format!("{group}-{}", first.lane))));
        }
    }
    let settings =
        if aliases.is_empty() { String::new() } else { format!("router_settings:\n  model_group_alias:\n{aliases}") };
    Ok(format!("{head}{list}{settings}"))
}

fn entry(name: &str, figures: &LaneFigures, config: &Config) -> Result<String, NoRouting> {
    let lane = config.lane(&figures.lane).ok_or_else(|| NoRouting::NoLane(figures.lane.clone()))?;
    let provider = match lane.api {
        Api::Chat => "openai",
        Api::Responses => "openai/responses",
        Api::Completions => "text-completion-openai",
        Api::Messages => "anthropic",
    };
    let base = lane.base_url.split(['?', '#']).next().unwrap_or_default().trim_end_matches('/');
    // LiteLLM adds the version to the address of an Anthropic API itself.
    let base = if lane.api == Api::Messages { base.trim_end_matches("/v1") } else { base };
    let key = lane.key_env.as_deref().map_or_else(|| "none".to_owned(), |name| format!("os.environ/{name}"));
    let mut out = format!(
        "  - model_name: {}\n    litellm_params:\n      model: {}\n      api_base: {}\n      api_key: {}\n",
        quoted(name),
        quoted(&format!("{provider}/{}", lane.model)),
        quoted(base),
        quoted(&key),
    );
    if let Some(rpm) = lane.limits.requests_per_minute {
        out.push_str(&format!("      rpm: {rpm}\n"));
    }
    if let Some(tpm) = lane.limits.tokens_per_minute {
        out.push_str(&format!("      tpm: {tpm}\n"));
    }
    Ok(out)
}

/// A text as YAML takes it: a string of JSON is one of YAML.
fn quoted(text: &str) -> String {
    Value::from(text).to_string()
}
