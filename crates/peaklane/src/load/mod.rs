//! Where the configuration comes from: the file that was named, `peaklane.toml` in the current folder, or the
//! environment alone.
//!
//! What the pure reader cannot know is looked at here: whether the zone exists, and whether the files that the
//! configuration names are there. The environment comes in as an argument, so that tests are exact.

mod environment;
mod error;
mod file;
mod key;
mod resolve;
mod zone;

use std::fmt;
use std::path::{Path, PathBuf};

use peaklane_core::config::{self, Config};

pub use environment::{Environment, KEY_VARIABLE, ProcessEnvironment};
pub use error::LoadError;
pub use file::FileFault;
pub(crate) use file::read_text;
pub use key::{KeyError, key_from_variable, key_of};
pub use zone::{UnknownZone, Zones, time_zone, zones};

/// Name of the configuration file that is looked for in the current folder.
pub const FILE_NAME: &str = "peaklane.toml";

/// A configuration that holds together, and where it came from.
#[derive(Clone, Debug, PartialEq)]
pub struct Loaded {
    /// The configuration. Prompts of files are in `prompt`, and paths are relative to the current folder.
    pub config: Config,
    /// Where it came from.
    pub source: Source,
}

/// Where a configuration came from.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Source {
    /// This file.
    File(PathBuf),
    /// `LLM_BASE_URL`, `LLM_MODEL`, `LLM_API_KEY` and `LLM_API`.
    Environment,
}

impl fmt::Display for Source {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::File(path) => path.display().fmt(f),
            Self::Environment => f.write_str("the environment"),
        }
    }
}

/// Loads the configuration: the file at `path`, which must be there; without a path `peaklane.toml` in the current folder;
/// without that one lane out of the environment.
///
/// Names of people are taken out where `[privacy]` says so. Keys are not read here, so that a plan can be looked at without them: see [`key_of`].
///
/// # Errors
/// [`LoadError`], always a matter of usage or configuration (exit code 2), never with a key in it.
pub fn load(path: Option<&Path>, env: &dyn Environment) -> Result<Loaded, LoadError> {
    load_in(Path::new(""), path, env)
}

/// [`load`] with another folder in the place of the current one; an absolute `path` stays as it is.
///
/// # Errors
/// As [`load`].
pub fn load_in(folder: &Path, path: Option<&Path>, env: &dyn Environment) -> Result<Loaded, LoadError> {
    let here = folder.join(FILE_NAME);
    let file = match path {
        Some(path) => folder.join(path),
        // a dangling link of that name is a file that cannot be read, not a missing one
        None if here.symlink_metadata().is_ok() => here,
        None => return Ok(Loaded { config: environment::lane(env)?, source: Source::Environment }),
    };
    let text = file::read_text(&file, config::MAX_TEXT_BYTES)
        .map_err(|source| LoadError::File { path: file.clone(), source })?;
    let refused = |source| LoadError::Config { path: file.clone(), source };
    let mut config = config::parse_checked(&text).map_err(refused)?;
    let base = file.parent().unwrap_or(Path::new(""));
    resolve::resolve(&mut config, base, &text).map_err(refused)?;
    config.forget_names();
    Ok(Loaded { config, source: Source::File(file) })
}

#[cfg(test)]
mod tests;
