//! Reading the key of a lane from the place that the configuration names. No error holds anything of the key.

use std::path::{Path, PathBuf};

use peaklane_core::config::{Lane, may_name_a_variable};
use peaklane_core::secret::{Secret, SecretError};

use super::environment::Environment;
use super::file::{FileFault, read_text};

/// The longest key file: real keys and tokens are a few kilobytes at most.
const MAX_KEY_BYTES: usize = 64 * 1024;

/// Why there is no key. Exit code 2.
#[derive(Debug, thiserror::Error)]
pub enum KeyError {
    /// What was given in the place of a variable's name is none. It is not repeated: it may be the key itself.
    #[error("what should name the variable with the key is no such name, or looks like the key itself")]
    NotAName,
    /// The variable is not set.
    #[error("the variable `{variable}` should hold a key and is not set")]
    NotSet {
        /// The variable.
        variable: String,
    },
    /// The variable's value is not UTF-8.
    #[error("the value of `{variable}` is no text in UTF-8")]
    NotText {
        /// The variable.
        variable: String,
    },
    /// The variable's value cannot be a key.
    #[error("the variable `{variable}` holds no usable key")]
    BadVariable {
        /// The variable.
        variable: String,
        /// Why.
        source: SecretError,
    },
    /// The file cannot be read.
    #[error("cannot read the key file `{}`", .path.display())]
    File {
        /// The file.
        path: PathBuf,
        /// What is the matter with it.
        source: FileFault,
    },
    /// What the file holds cannot be a key.
    #[error("the key file `{}` holds no usable key", .path.display())]
    BadFile {
        /// The file.
        path: PathBuf,
        /// Why.
        source: SecretError,
    },
}

impl KeyError {
    /// The next thing to try.
    pub fn hint(&self) -> Option<String> {
        Some(match self {
            Self::NotAName => "give the name of an environment variable, and put the key into that variable".to_owned(),
            Self::NotSet { variable } => {
                format!("export {variable}=..., or name no variable for a server that asks for no key")
            }
            Self::NotText { variable } | Self::BadVariable { variable, .. } => {
                format!("set `{variable}` to the key alone: one line of plain characters")
            }
            Self::File { .. } => "name a file that holds the key and nothing else in `key_file`".to_owned(),
            Self::BadFile { .. } => "the file must hold the key alone, on one line".to_owned(),
        })
    }
}

/// The key of a lane, read from its variable or file; `None` for a lane that names neither.
///
/// # Errors
/// [`KeyError`], with the name of the variable or file and nothing of the key.
pub fn key_of(lane: &Lane, env: &dyn Environment) -> Result<Option<Secret>, KeyError> {
    match (&lane.key_env, &lane.key_file) {
        (Some(variable), _) => key_from_variable(variable, env).map(Some),
        (None, Some(path)) => key_from_file(Path::new(path)).map(Some),
        (None, None) => Ok(None),
    }
}

/// The key that a variable holds.
///
/// # Errors
/// [`KeyError`], with the name of the variable and nothing of the key.
pub fn key_from_variable(variable: &str, env: &dyn Environment) -> Result<Secret, KeyError> {
    if !may_name_a_variable(variable) {
        return Err(KeyError::NotAName);
    }
    let name = || variable.to_owned();
    let value = env.variable(variable).ok_or_else(|| KeyError::NotSet { variable: name() })?;
    let value = value.into_string().map_err(|_| KeyError::NotText { variable: name() })?;
    Secret::new(&value).map_err(|source| KeyError::BadVariable { variable: name(), source })
}

fn key_from_file(path: &Path) -> Result<Secret, KeyError> {
    let text = read_text(path, MAX_KEY_BYTES).map_err(|source| KeyError::File { path: path.to_owned(), source })?;
    Secret::new(&text).map_err(|source| KeyError::BadFile { path: path.to_owned(), source })
}
