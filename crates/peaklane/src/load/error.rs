//! Why no configuration could be loaded.

use std::path::PathBuf;

use peaklane_core::config::ConfigError;
use peaklane_core::lane::UnknownName;

use super::environment::{API_VARIABLE, KEY_VARIABLE, MODEL_VARIABLE, URL_VARIABLE};
use super::file::FileFault;

/// Why no configuration could be loaded. Every one of these is exit code 2.
#[derive(Debug, thiserror::Error)]
pub enum LoadError {
    /// The file cannot be read at all.
    #[error("cannot read the configuration `{}`", .path.display())]
    File {
        /// The file.
        path: PathBuf,
        /// What is the matter with it.
        source: FileFault,
    },
    /// The file can be read, but not used.
    #[error("cannot use the configuration `{}`", .path.display())]
    Config {
        /// The file.
        path: PathBuf,
        /// Everything that is wrong with it.
        source: ConfigError,
    },
    /// No file and no variables.
    #[error("there is no lane to measure: no `peaklane.toml` here, and `LLM_BASE_URL` and `LLM_MODEL` are not set")]
    Nothing,
    /// No file, and only some of the variables.
    #[error("`{missing}` is not set, and there is no `peaklane.toml` here")]
    MissingVariable {
        /// The variable that is missing.
        missing: &'static str,
    },
    /// A variable whose value is no text.
    #[error("the value of `{variable}` is not UTF-8")]
    NotText {
        /// The variable.
        variable: String,
    },
    /// `LLM_API` names no API.
    #[error("`{API_VARIABLE}` names no API that peaklane speaks")]
    UnknownApi {
        /// What was given and what would have been right.
        source: UnknownName,
    },
    /// The variables are set, but make no usable lane.
    #[error("the variables `{URL_VARIABLE}` and `{MODEL_VARIABLE}` make no usable lane")]
    Environment {
        /// What is wrong with it.
        source: ConfigError,
    },
}

impl LoadError {
    /// The next thing to try.
    pub fn hint(&self) -> Option<String> {
        Some(match self {
            Self::File { source: FileFault::Missing, .. } => {
                "`peaklane init` writes a commented example; `--config FILE` names another file".to_owned()
            }
            Self::File { .. } => "name a file of text in TOML with `--config FILE`".to_owned(),
            Self::Config { source, .. } => return source.hint(),
            Self::Nothing => format!(
                "write a file with `peaklane init`, or set {URL_VARIABLE}, {MODEL_VARIABLE} and, for a lane that asks for \
                 one, {KEY_VARIABLE}; `peaklane demo` needs neither"
            ),
            Self::MissingVariable { missing } if *missing == MODEL_VARIABLE => {
                format!("export {missing}=NAME, the model as the lane spells it")
            }
            Self::MissingVariable { missing } => {
                format!("export {missing}=https://lane.example/v1, the address of the API")
            }
            Self::NotText { variable } => format!("set `{variable}` again, or unset it"),
            Self::UnknownApi { .. } => format!("unset `{API_VARIABLE}` for chat completions"),
            Self::Environment { .. } => format!("check `{URL_VARIABLE}` and `{MODEL_VARIABLE}`"),
        })
    }
}
