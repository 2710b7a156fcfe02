//! `[[lane]]`: one place where inference may run.

use std::collections::BTreeMap;

use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::{Deserialize, Deserializer, Serialize, de};
use serde_json::{Map, Value};

use super::calendar::Day;
use super::money::Usd;
use super::price::Price;
use crate::lane::{Api, Kind};

/// One lane: an endpoint and a model, where its key comes from, what it costs and what its terms say.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Lane {
    /// Name, unique: letters, digits, `-`, `_` and `.`, at most 64, a letter or digit first.
    pub name: String,
    /// Rung of the ladder: `free-hosted`, `free-server`, `paid-hosted` or `self-hosted`.
    #[schemars(schema_with = "kind_schema")]
    pub kind: Kind,
    /// Address of the API, `http` or `https`, without credentials. An empty path gets `/v1`; else it is used as given.
    pub base_url: String,
    /// Model to ask for, as the lane spells it.
    pub model: String,
    /// API that the lane speaks: `chat`, `completions`, `messages` or `responses`.
    #[serde(default)]
    #[schemars(schema_with = "api_schema")]
    pub api: Api,
    /// Name of the environment variable that holds the key. The key itself never stands in the file.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub key_env: Option<String>,
    /// File that holds the key and nothing else; relative to the configuration file.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub key_file: Option<String>,
    /// Further request headers, at most 32, none of them secret.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub headers: BTreeMap<String, String>,
    /// Price by token, and what it is at other hours.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub price: Option<Price>,
    /// Rent of the machine in US dollars an hour, for a lane that is paid by time and not by token.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rent_usd_per_hour: Option<Usd>,
    /// Who patches the machine: a free server holds only with a named owner.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub owner: Option<String>,
    /// Day of the last patch.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub patched: Option<Day>,
    /// Work that running the lane takes, hours a month, 0 to 10,000: operations load goes before price. Unknown is left out.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ops_hours_per_month: Option<f64>,
    /// Where the lane computes, in words of its operator, such as `eu-west`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub region: Option<String>,
    /// How whoever measures is tied to the lane (customer, employee, investor, sponsored credits): noted in the decision
    /// record.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub affiliation: Option<String>,
    /// Address of the terms of use.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub terms_url: Option<String>,
    /// Day on which the terms were last read: a free tier is a snapshot.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub terms_checked: Option<Day>,
    /// Limits that the lane's terms state.
    #[serde(default, skip_serializing_if = "Limits::is_empty")]
    pub limits: Limits,
    /// File with further certificate authorities (PEM), such as a company's; relative to the configuration file.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ca_file: Option<String>,
    /// HTTP proxy for this lane, without credentials. Without it the usual environment variables count.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub proxy: Option<String>,
    /// Send `temperature`. `false` for a model that refuses it.
    #[serde(default = "yes")]
    pub send_temperature: bool,
    /// Send `seed`. `false` for a lane that refuses it.
    #[serde(default = "yes")]
    pub send_seed: bool,
    /// Name under which the budget of the answer is sent in chat completions.
    #[serde(default)]
    pub max_tokens_field: MaxTokensField,
    /// Table merged into the body of each request, such as `reasoning = { effort = "low" }`. Not for what has a key of its
    /// own: model, prompt, stream, temperature, seed, budget.
    #[serde(default, skip_serializing_if = "Map::is_empty", deserialize_with = "json_table")]
    #[schemars(schema_with = "open_table_schema")]
    pub extra_body: Map<String, Value>,
}

/// What the lane's terms allow, as stated; 1 or more each. Unknown is left out.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct Limits {
    /// Requests a minute.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub requests_per_minute: Option<u64>,
    /// Requests a day.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub requests_per_day: Option<u64>,
    /// Tokens a minute.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tokens_per_minute: Option<u64>,
    /// Tokens a day.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tokens_per_day: Option<u64>,
    /// Requests in flight at once.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub concurrency: Option<u64>,
}

impl Limits {
    /// True when nothing is stated.
    pub fn is_empty(&self) -> bool {
        *self == Self::default()
    }
}

/// The two names that chat completions know for the budget of an answer.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
#[schemars(inline)]
pub enum MaxTokensField {
    /// `max_tokens`: what nearly every server takes.
    #[default]
    MaxTokens,
    /// `max_completion_tokens`: what OpenAI's reasoning models ask for.
    MaxCompletionTokens,
}

impl MaxTokensField {
    /// The name as it is sent.
    pub const fn name(self) -> &'static str {
        match self {
            Self::MaxTokens => "max_tokens",
            Self::MaxCompletionTokens => "max_completion_tokens",
        }
    }
}

const fn yes() -> bool {
    true
}

fn kind_schema(_: &mut SchemaGenerator) -> Schema {
    json_schema!({ "type": "string", "enum": Kind::ALL.map(Kind::name) })
}

fn api_schema(_: &mut SchemaGenerator) -> Schema {
    json_schema!({ "type": "string", "enum": Api::ALL.map(Api::name) })
}

fn open_table_schema(_: &mut SchemaGenerator) -> Schema {
    json_schema!({ "type": "object", "additionalProperties": true })
}

/// A TOML table as JSON. What JSON cannot say is an error here and not a silent `null` in a request.
fn json_table<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Map<String, Value>, D::Error> {
    let table = toml::Table::deserialize(deserializer)?;
    table.into_iter().map(|(key, value)| Ok((key, json(value)?))).collect()
}

fn json<E: de::Error>(value: toml::Value) -> Result<Value, E> {
    Ok(match value {
        toml::Value::String(text) => Value::String(text),
        toml::Value::Integer(number) => Value::from(number),
        toml::Value::Boolean(flag) => Value::Bool(flag),
        toml::Value::Float(number) => match serde_json::Number::from_f64(number) {
            Some(number) => Value::Number(number),
            None => return Err(E::custom("JSON has no number that is not finite")),
        },
        toml::Value::Datetime(_) => return Err(E::custom("JSON has no dates: write the date as text, with quotes")),
        toml::Value::Array(items) => Value::Array(items.into_iter().map(json).collect::<Result<_, E>>()?),
        toml::Value::Table(table) => {
            Value::Object(table.into_iter().map(|(key, value)| Ok((key, json(value)?))).collect::<Result<_, E>>()?)
        }
    })
}
