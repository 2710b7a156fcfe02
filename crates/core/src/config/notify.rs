//! `[notify]`: who is told when a trigger fires or a decision expires.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Who is told when a trigger fires or a decision expires: a webhook, a command, or both.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct Notify {
    /// Name of the environment variable that holds the address of a webhook. The address itself never stands in the file: it
    /// often holds a secret.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub webhook_env: Option<String>,
    /// A program and its arguments, at most 64, run without a shell; it gets the message on its standard input.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub command: Vec<String>,
}
