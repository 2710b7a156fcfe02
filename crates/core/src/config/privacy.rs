//! `[privacy]`: what is kept of people and of what they are answered.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::Config;

/// Stands where a name was that is not kept, since that somebody is named is part of a decision.
pub const NAME_NOT_KEPT: &str = "(not kept)";

/// What is kept of people and of what they are answered.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct Privacy {
    /// Keep texts and names. `false`: answers, reasoning, arguments of tool calls, pieces of prompts at which two calls of a
    /// harness part, words of the server, its request ids, and the names of owners and of authors of floors are kept nowhere,
    /// neither in the store nor in CSV files or records of decisions. Figures and classes of failures stay.
    pub texts: bool,
}

impl Default for Privacy {
    fn default() -> Self {
        Self { texts: true }
    }
}

impl Config {
    /// Takes the names of people out where they are not to be kept: authors of floors are forgotten, owners stay as somebody
    /// without a name. Done where a configuration is loaded, so that nothing behind it can keep them.
    pub fn forget_names(&mut self) {
        if self.privacy.texts {
            return;
        }
        for task in &mut self.tasks {
            task.floor_author = None;
        }
        for owner in self.lanes.iter_mut().filter_map(|lane| lane.owner.as_mut()) {
            NAME_NOT_KEPT.clone_into(owner);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::parse_checked;

    fn named(privacy: &str) -> Config {
        let text = format!(
            "{privacy}\n[[lane]]\nname = 'a'\nkind = 'free-server'\nbase_url = 'http://a.example/v1'\nmodel = 'm'\n\
             owner = 'Ada'\n[[lane]]\nname = 'b'\nkind = 'free-server'\nbase_url = 'http://b.example/v1'\nmodel = 'm'\n\
             [[task]]\nname = 't'\nprompt = 'p'\nfloor_author = 'Grace'\nfloor_reason = 'r'\n"
        );
        let mut config = parse_checked(&text).unwrap();
        config.forget_names();
        config
    }

    #[test]
    fn names_go_and_that_there_is_an_owner_stays() {
        let config = named("[privacy]\ntexts = false");
        assert_eq!(config.lanes[0].owner.as_deref(), Some(NAME_NOT_KEPT));
        assert_eq!(config.lanes[1].owner, None, "nobody is still nobody");
        assert_eq!(config.tasks[0].floor_author, None);
        assert_eq!(config.tasks[0].floor_reason.as_deref(), Some("r"));
    }

    #[test]
    fn without_the_section_names_are_kept() {
        let config = named("");
        assert_eq!(config.lanes[0].owner.as_deref(), Some("Ada"));
        assert_eq!(config.tasks[0].floor_author.as_deref(), Some("Grace"));
    }
}
