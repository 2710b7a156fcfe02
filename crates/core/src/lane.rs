//! A lane: where inference may run. Its kind (rung of the ladder) and the API that it speaks.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

/// The rungs of the ladder, lowest first. A task class moves up one feasible rung when its trigger fires.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Kind {
    /// Somebody else's shared capacity at no price.
    FreeHosted,
    /// A free server that runs our own runtime.
    FreeServer,
    /// Hosted and paid, by token or by subscription.
    PaidHosted,
    /// Hardware that we own or rent and run ourselves.
    SelfHosted,
}

impl Kind {
    /// All rungs from the bottom up.
    pub const ALL: [Self; 4] = [Self::FreeHosted, Self::FreeServer, Self::PaidHosted, Self::SelfHosted];

    /// The stable spelling.
    pub const fn name(self) -> &'static str {
        match self {
            Self::FreeHosted => "free-hosted",
            Self::FreeServer => "free-server",
            Self::PaidHosted => "paid-hosted",
            Self::SelfHosted => "self-hosted",
        }
    }
}

impl fmt::Display for Kind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// The inference APIs that the lane client speaks.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Api {
    /// OpenAI chat completions: `POST <base>/chat/completions`.
    #[default]
    Chat,
    /// OpenAI legacy completions: `POST <base>/completions`.
    Completions,
    /// Anthropic messages: `POST <base>/messages`.
    Messages,
    /// OpenAI Responses: `POST <base>/responses`.
    Responses,
}

impl Api {
    /// All APIs.
    pub const ALL: [Self; 4] = [Self::Chat, Self::Completions, Self::Messages, Self::Responses];

    /// The stable spelling.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Chat => "chat",
            Self::Completions => "completions",
            Self::Messages => "messages",
            Self::Responses => "responses",
        }
    }

    /// The last part of the request path, without a leading slash.
    pub const fn path(self) -> &'static str {
        match self {
            Self::Chat => "chat/completions",
            Self::Completions => "completions",
            Self::Messages => "messages",
            Self::Responses => "responses",
        }
    }
}

impl fmt::Display for Api {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// A spelling that names no kind or no API.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("`{given}` is none of {}", .allowed.join(", "))]
pub struct UnknownName {
    /// What was given.
    pub given: String,
    /// What would have been right.
    pub allowed: Vec<&'static str>,
}

impl FromStr for Kind {
    type Err = UnknownName;
    fn from_str(text: &str) -> Result<Self, Self::Err> {
        Self::ALL.into_iter().find(|k| k.name() == text).ok_or_else(|| UnknownName {
            given: text.to_owned(),
            allowed: Self::ALL.iter().map(|k| k.name()).collect(),
        })
    }
}

impl FromStr for Api {
    type Err = UnknownName;
    fn from_str(text: &str) -> Result<Self, Self::Err> {
        Self::ALL.into_iter().find(|a| a.name() == text).ok_or_else(|| UnknownName {
            given: text.to_owned(),
            allowed: Self::ALL.iter().map(|a| a.name()).collect(),
        })
    }
}
