//! What a counter-test compares: everything about a lane and a task class that may make a difference, sorted into things
//! that may change, one at a time, and things that both sides are judged by.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use sha2::{Digest, Sha256};

use crate::burst::BurstHeader;
use crate::config::{Config, Lane, Task};
use crate::lane::{Api, Kind};

/// Keys of a thing with their values; a text that may be long or private stands as its SHA-256.
type Keys = BTreeMap<String, Value>;

/// A lane and a task class as the configuration had them at one moment.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Snapshot {
    /// What bursts of it have in their header.
    pub series: Series,
    /// What may change, by the name of the thing. Keys that cannot be changed apart are one thing.
    pub things: BTreeMap<String, Keys>,
    /// What must stay, since both sides are measured and judged by it.
    pub frozen: Keys,
}

/// What the header of a burst says about lane and task class.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Series {
    /// Name of the lane.
    pub lane: String,
    /// Name of the task class.
    pub task: String,
    /// Rung.
    pub kind: Kind,
    /// API.
    pub api: Api,
    /// Model asked for.
    pub model: String,
    /// Address without query.
    pub base_url: String,
    /// Hash of prompt, parameters, check and floor, as bursts carry it.
    pub prompt_hash: String,
}

impl Series {
    /// True for a burst of exactly this lane and task class.
    pub fn fits(&self, header: &BurstHeader) -> bool {
        let Self { lane, task, kind, api, model, base_url, prompt_hash } = self;
        (lane, task, model, base_url, prompt_hash)
            == (&header.lane, &header.task, &header.model, &header.base_url, &header.prompt_hash)
            && (*kind, *api) == (header.kind, header.api)
    }
}

/// One thing that differs.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Change {
    /// Name of the thing: `model`, `endpoint`, `prompt`, `lane`, or a parameter.
    pub thing: String,
    /// Its keys that differ.
    pub keys: Vec<KeyChange>,
}

/// One key that differs.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct KeyChange {
    /// Name as in the configuration.
    pub key: String,
    /// Value before; null where there was none.
    pub from: Value,
    /// Value now; null where there is none.
    pub to: Value,
}

impl Snapshot {
    /// Takes it.
    ///
    /// * `config`: with the texts of prompt files in `prompt`, as the front door loads it.
    /// * `prompt_hash`: the hash that bursts of this task class carry in their header.
    pub fn of(config: &Config, lane: &Lane, task: &Task, prompt_hash: String) -> Self {
        let base_url = lane.base_url.split(['?', '#']).next().unwrap_or_default().to_owned();
        let mut things: BTreeMap<String, Keys> = BTreeMap::new();
        let mut put = |thing: &str, key: &str, value: Value| {
            things.entry(thing.to_owned()).or_default().insert(key.to_owned(), value);
        };
        // Where the bill comes from is the rung itself: another account has other quotas.
        put("lane", "kind", json!(lane.kind));
        put("lane", "key_env", json!(lane.key_env));
        put("lane", "key_file", json!(lane.key_file));
        put("model", "model", json!(lane.model));
        put("api", "api", json!(lane.api));
        put("endpoint", "base_url", json!(base_url));
        put("endpoint", "region", json!(lane.region));
        put("proxy", "proxy", json!(lane.proxy.as_deref().map(digest)));
        put("prompt", "prompt", json!(digest(task.prompt.as_deref().unwrap_or_default())));
        put("system", "system", json!(task.system.as_deref().map(digest)));
        put("max_tokens", "max_tokens", json!(task.max_tokens));
        put("temperature", "temperature", json!(task.temperature));
        put("send_temperature", "send_temperature", json!(lane.send_temperature));
        put("send_seed", "send_seed", json!(lane.send_seed));
        put("max_tokens_field", "max_tokens_field", json!(lane.max_tokens_field));
        for (thing, settings) in [("retry", json!(config.retry)), ("timeouts", json!(config.timeouts))] {
            for (key, value) in settings.as_object().into_iter().flatten() {
                put(thing, &format!("{thing}.{key}"), value.clone());
            }
        }
        for (key, value) in &lane.extra_body {
            let key = format!("extra_body.{key}");
            put(&key, &key, value.clone());
        }
        for (name, value) in &lane.headers {
            let key = format!("headers.{name}");
            put(&key, &key, json!(digest(value)));
        }
        let burst = &config.burst;
        let frozen = [
            ("floor", json!(task.latency_floor())),
            ("tasks_per_hour", json!(task.tasks_per_hour)),
            ("check", json!(task.check)),
            ("accept_budget_stop", json!(task.accept_budget_stop)),
            ("stretch", json!(task.stretch)),
            ("task.concurrency", json!(task.concurrency)),
            ("attempts", json!(burst.attempts)),
            ("concurrency", json!(burst.concurrency)),
            ("spacing", json!(burst.spacing)),
            ("warmup", json!(burst.warmup)),
            ("prompt_mode", json!(burst.prompt_mode)),
            ("connections", json!(burst.connections)),
        ];
        let series = Series {
            lane: lane.name.clone(),
            task: task.name.clone(),
            kind: lane.kind,
            api: lane.api,
            model: lane.model.clone(),
            base_url,
            prompt_hash,
        };
        Self { series, things, frozen: frozen.map(|(key, value)| (key.to_owned(), value)).into() }
    }

    /// The things that differ from `self` in `now`, by name.
    pub fn changes(&self, now: &Self) -> Vec<Change> {
        let empty = Keys::new();
        let names: std::collections::BTreeSet<&String> = self.things.keys().chain(now.things.keys()).collect();
        let compare = |name: &String| {
            let keys = differences(self.things.get(name).unwrap_or(&empty), now.things.get(name).unwrap_or(&empty));
            (!keys.is_empty()).then(|| Change { thing: name.clone(), keys })
        };
        names.into_iter().filter_map(compare).collect()
    }

    /// The keys that must stay and differ.
    pub fn thawed(&self, now: &Self) -> Vec<KeyChange> {
        differences(&self.frozen, &now.frozen)
    }
}

fn differences(before: &Keys, now: &Keys) -> Vec<KeyChange> {
    let keys: std::collections::BTreeSet<&String> = before.keys().chain(now.keys()).collect();
    let value = |keys: &Keys, key: &String| keys.get(key).cloned().unwrap_or(Value::Null);
    let changes =
        keys.into_iter().map(|key| KeyChange { key: key.clone(), from: value(before, key), to: value(now, key) });
    changes.filter(|change| change.from != change.to).collect()
}

/// `sha256:` and 64 hexadecimal digits.
fn digest(text: &str) -> String {
    let digits: String = Sha256::digest(text).iter().map(|byte| format!("{byte:02x}")).collect();
    format!("sha256:{digits}")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::parse;

    fn taken(change: fn(&mut Config)) -> Snapshot {
        let text = "[[lane]]\nname = 'a'\nkind = 'free-hosted'\nbase_url = 'https://a.example/v1?key=secret'\nmodel = 'm'\n\
                    key_env = 'A_KEY'\n[lane.headers]\nx-team = 'blue'\n[[task]]\nname = 't'\nprompt = 'personal prompt'\n";
        let mut config = parse(text).unwrap();
        change(&mut config);
        Snapshot::of(&config, &config.lanes[0], &config.tasks[0], "h".into())
    }

    fn things(change: fn(&mut Config)) -> Vec<String> {
        taken(|_| ()).changes(&taken(change)).into_iter().map(|c| c.thing).collect()
    }

    #[test]
    fn each_thing_is_told_by_its_name() {
        assert!(things(|_| ()).is_empty());
        assert_eq!(things(|c| c.lanes[0].model = "n".into()), ["model"]);
        assert_eq!(things(|c| c.lanes[0].base_url = "https://b.example/v1".into()), ["endpoint"]);
        assert_eq!(things(|c| c.lanes[0].region = Some("eu".into())), ["endpoint"]);
        assert_eq!(things(|c| c.lanes[0].kind = Kind::PaidHosted), ["lane"]);
        assert_eq!(things(|c| c.lanes[0].key_env = Some("B_KEY".into())), ["lane"]);
        assert_eq!(things(|c| c.tasks[0].prompt = Some("q".into())), ["prompt"]);
        assert_eq!(things(|c| c.tasks[0].temperature = 0.5), ["temperature"]);
        assert_eq!(things(|c| drop(c.lanes[0].extra_body.insert("user".into(), json!(1)))), ["extra_body.user"]);
        assert_eq!(things(|c| c.lanes[0].headers.clear()), ["headers.x-team"]);
        let two = |c: &mut Config| {
            c.lanes[0].model = "n".into();
            c.tasks[0].max_tokens = 5;
        };
        assert_eq!(things(two), ["max_tokens", "model"]);
    }

    #[test]
    fn a_key_in_the_address_is_no_part_of_it_and_neither_are_texts() {
        assert!(things(|c| c.lanes[0].base_url = "https://a.example/v1?key=other".into()).is_empty());
        let text = serde_json::to_string(&taken(|_| ())).unwrap();
        assert!(!text.contains("secret") && !text.contains("personal") && !text.contains("blue"), "{text}");
        assert_eq!(serde_json::from_str::<Snapshot>(&text).unwrap(), taken(|_| ()));
    }

    #[test]
    fn what_both_sides_are_judged_by_must_stay() {
        let thawed = |change: fn(&mut Config)| -> Vec<String> {
            taken(|_| ()).thawed(&taken(change)).into_iter().map(|c| c.key).collect()
        };
        assert_eq!(thawed(|c| c.tasks[0].floor = Some("9s".parse().unwrap())), ["floor"]);
        assert_eq!(thawed(|c| c.burst.attempts = 9), ["attempts"]);
        assert!(thawed(|c| c.tasks[0].floor_author = Some("x".into())).is_empty());
        assert!(thawed(|c| c.lanes[0].model = "n".into()).is_empty());
    }
}
