//! `[burst]`, `[retry]`, `[timeouts]` and `[control]`: how attempts are fired, tried again and given up.

use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::{Deserialize, Serialize};

use super::micros::Micros;
use crate::burst::{Connections, PromptMode};

/// How one burst is fired.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct BurstSettings {
    /// Attempts of a burst, 1 to 1,000,000; the warm-up is not among them.
    pub attempts: u32,
    /// Most attempts in flight at once, 1 to 10,000. Without it all are released together (or by `spacing`).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub concurrency: Option<u32>,
    /// Time between the intended starts of two attempts, at most 1 h; `0s` releases them together.
    pub spacing: Micros,
    /// Attempts made and recorded before the burst, kept apart from it: the cold start is a figure of its own. 0 to 10.
    pub warmup: u32,
    /// `nonce`: every attempt begins with its own nonce, so that no prefix cache answers for it. `identical`: all send the
    /// same bytes, which measures the cache too.
    #[schemars(schema_with = "prompt_mode_schema")]
    pub prompt_mode: PromptMode,
    /// `before`: connections are opened before the burst. `inside`: the handshake is part of the latency.
    #[schemars(schema_with = "connections_schema")]
    pub connections: Connections,
    /// Seed of the nonces, of the order of lanes and of the `seed` that is sent; 0 to 2^63 - 1. Without it every command
    /// draws one and records it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub seed: Option<u64>,
    /// Order of the lanes, so that none always goes first: `random` (one burst after the other in an order drawn from the
    /// seed) or `interleaved` (attempts of the lanes in turns).
    pub order: LaneOrder,
}

impl Default for BurstSettings {
    fn default() -> Self {
        Self {
            attempts: 8,
            concurrency: None,
            spacing: Micros::default(),
            warmup: 1,
            prompt_mode: PromptMode::Nonce,
            connections: Connections::Before,
            seed: None,
            order: LaneOrder::Random,
        }
    }
}

/// In which order the lanes of a burst have their turn.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
#[schemars(inline)]
pub enum LaneOrder {
    /// One lane after the other, in an order drawn from the seed.
    #[default]
    Random,
    /// Attempts of the lanes in turns.
    Interleaved,
}

impl LaneOrder {
    /// The stable spelling.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Random => "random",
            Self::Interleaved => "interleaved",
        }
    }
}

/// What happens when a try fails in a way that may pass: the only retry layer there is.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct RetrySettings {
    /// Retries of one attempt, 0 to 20. What cannot succeed (quota, key, bad request) is never tried again.
    pub max: u32,
    /// Wait before the first retry, doubled for each further one; at most `backoff_cap`. A time that the lane asks for
    /// (`Retry-After`) goes before.
    pub backoff_base: Micros,
    /// Longest computed wait, at most 1 h.
    pub backoff_cap: Micros,
    /// Spread the waits at random, so that attempts that failed together do not come back together.
    pub jitter: bool,
}

impl Default for RetrySettings {
    fn default() -> Self {
        Self { max: 2, backoff_base: Micros::from_millis(500), backoff_cap: Micros::from_secs(8), jitter: true }
    }
}

/// When one try is given up. More than nothing, at most 24 h each.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct Timeouts {
    /// From the last byte of the request sent to the first byte of the answer.
    pub first_byte: Micros,
    /// Longest gap between two bytes of the answer.
    pub idle: Micros,
    /// The whole try. At least the floor of every task, else no attempt could be seen to be too slow.
    pub total: Micros,
}

impl Default for Timeouts {
    fn default() -> Self {
        Self { first_byte: Micros::from_secs(60), idle: Micros::from_secs(60), total: Micros::from_secs(120) }
    }
}

/// An endpoint of no lane that is timed beside each burst of a campaign, so that one's own network is not taken for the
/// lane.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Control {
    /// Address, `http` or `https`, without credentials.
    pub url: String,
}

fn prompt_mode_schema(_: &mut SchemaGenerator) -> Schema {
    json_schema!({ "type": "string", "enum": [PromptMode::Nonce.name(), PromptMode::Identical.name()] })
}

fn connections_schema(_: &mut SchemaGenerator) -> Schema {
    json_schema!({ "type": "string", "enum": [Connections::Before.name(), Connections::Inside.name()] })
}
