//! Commented example configurations, as `peaklane init` writes them.

/// One example configuration.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Preset {
    /// Name for `--preset`.
    pub name: &'static str,
    /// What it is for, in one sentence without a full stop.
    pub about: &'static str,
    /// The whole text of the file.
    pub text: &'static str,
}

/// All presets; the first is the default.
pub const PRESETS: [Preset; 4] = [
    Preset {
        name: "two-free-lanes",
        about: "two free hosted lanes under the same bursts",
        text: include_str!("presets/two-free-lanes.toml"),
    },
    Preset {
        name: "four-rungs",
        about: "one lane of each kind, from free hosted to self-hosted",
        text: include_str!("presets/four-rungs.toml"),
    },
    Preset {
        name: "self-hosted-vs-api",
        about: "a box of your own beside a paid API, with a latency and a batch task",
        text: include_str!("presets/self-hosted-vs-api.toml"),
    },
    Preset {
        name: "single-lane",
        about: "the least that works: one lane, one task",
        text: include_str!("presets/single-lane.toml"),
    },
];

/// A name that no preset has.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("no preset is called `{given}`")]
pub struct UnknownPreset {
    /// What was given.
    pub given: String,
}

impl UnknownPreset {
    /// The names that would have been right.
    pub fn hint(&self) -> Option<String> {
        let names: Vec<&str> = PRESETS.iter().map(|preset| preset.name).collect();
        Some(format!("the presets are {}", names.join(", ")))
    }
}

/// The preset of that name.
///
/// # Errors
/// [`UnknownPreset`], whose hint lists the names.
pub fn preset(name: &str) -> Result<Preset, UnknownPreset> {
    PRESETS.into_iter().find(|preset| preset.name == name).ok_or_else(|| UnknownPreset { given: name.to_owned() })
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;
    use crate::config::{Config, TaskKind, parse_checked};
    use crate::lane::Kind;

    fn read(name: &str) -> Config {
        parse_checked(preset(name).unwrap().text).unwrap_or_else(|error| panic!("{name}: {error}"))
    }

    #[test]
    fn every_preset_is_a_sound_configuration_that_shows_where_the_key_comes_from() {
        for preset in PRESETS {
            let config = read(preset.name);
            assert!(config.lanes.iter().any(|lane| lane.key_env.is_some()), "{}", preset.name);
            assert!(config.tasks.iter().all(|task| task.floor_reason.is_some()), "{}", preset.name);
            let comments = preset.text.lines().filter(|line| line.trim_start().starts_with('#')).count();
            assert!(comments >= 8, "{} explains itself in {comments} lines", preset.name);
            assert!(preset.text.contains("export "), "{} shows how a key gets into its variable", preset.name);
            assert!(preset.text.lines().all(|line| line.chars().count() <= 120), "{}", preset.name);
        }
    }

    #[test]
    fn what_stands_in_comments_is_a_key_that_there_is() {
        let key = |line: &str| {
            let Some(rest) = line.strip_prefix("# ") else { return false };
            let name = rest.split_once(" = ").map_or("", |(name, _)| name);
            rest.starts_with('[') || !name.is_empty() && name.chars().all(|c| c.is_ascii_lowercase() || c == '_')
        };
        let mut found = 0;
        for preset in PRESETS {
            let lines = preset.text.lines().map(|line| if key(line) { line.trim_start_matches("# ") } else { line });
            found += preset.text.lines().filter(|line| key(line)).count();
            let text = lines.collect::<Vec<_>>().join("\n");
            parse_checked(&text).unwrap_or_else(|error| panic!("{}: {error}\n{text}", preset.name));
        }
        assert!(found > 10, "{found}");
    }

    #[test]
    fn each_preset_holds_the_lanes_that_its_name_promises() {
        let kinds = |name: &str| read(name).lanes.iter().map(|lane| lane.kind).collect::<Vec<Kind>>();
        assert_eq!(kinds("two-free-lanes"), [Kind::FreeHosted, Kind::FreeHosted]);
        assert_eq!(kinds("four-rungs"), Kind::ALL);
        assert_eq!(kinds("self-hosted-vs-api"), [Kind::PaidHosted, Kind::SelfHosted]);
        assert_eq!(kinds("single-lane").len(), 1);
        assert!(read("self-hosted-vs-api").tasks.iter().any(|task| task.judged_by() == TaskKind::Batch));
    }

    #[test]
    fn a_preset_is_found_by_name_and_an_unknown_one_is_told_the_names() {
        let names: BTreeSet<&str> = PRESETS.iter().map(|preset| preset.name).collect();
        assert_eq!(names.len(), PRESETS.len());
        let hint = preset("two-lanes").unwrap_err().hint().unwrap();
        assert!(names.iter().all(|name| hint.contains(name)), "{hint}");
    }
}
