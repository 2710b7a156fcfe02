//! `peaklane init`: writes a commented configuration.

use std::fs::{self, OpenOptions};
use std::io::{self, Write as _};
use std::path::{Path, PathBuf};

use clap::Args;
use peaklane_core::config::{self, presets};
use peaklane_report::table::{Cell, Column, Table};
use serde_json::json;

use crate::exit::Exit;
use crate::failure::Failure;
use crate::globals::{Format, Globals};
use crate::load::FILE_NAME;
use crate::out;

const EXAMPLES: &str = "\
Examples:
  peaklane init                                peaklane.toml for two free lanes
  peaklane init --list-presets
  peaklane init --preset single-lane --stdout  look at it first
  peaklane init --config team.toml             another name";

/// Write a commented peaklane.toml
///
/// An existing file is left alone unless `--force` is given.
#[derive(Args, Clone, Debug)]
#[command(after_help = EXAMPLES)]
pub struct InitArgs {
    /// Which example to begin with; `--list-presets` shows them. Default: `two-free-lanes`. Example: `--preset four-rungs`
    #[arg(long, value_name = "NAME", default_value = presets::PRESETS[0].name, hide_default_value = true)]
    pub preset: String,

    /// Show the presets and write nothing. Default: off. Example: `--list-presets --format json`
    #[arg(long, conflicts_with_all = ["force", "stdout"])]
    pub list_presets: bool,

    /// Replace a file that is there already. Default: off. Example: `--preset single-lane --force`
    #[arg(long)]
    pub force: bool,

    /// Print the text instead of writing a file. Default: off. Example: `--stdout > team.toml`
    #[arg(long, conflicts_with = "force")]
    pub stdout: bool,
}

/// Writes the file, prints it, or lists the presets.
///
/// # Errors
/// [`Failure`] with exit code 2 for an unknown preset, for a file that is there already and for one that cannot be written.
pub fn run(args: &InitArgs, globals: &Globals) -> Result<Exit, Failure> {
    if args.list_presets {
        out::print(&list(globals)?)?;
        return Ok(Exit::Fine);
    }
    let preset = presets::preset(&args.preset)?;
    if args.stdout {
        out::print(preset.text)?;
        return Ok(Exit::Fine);
    }
    let path = globals.config.clone().unwrap_or_else(|| PathBuf::from(FILE_NAME));
    write(&path, preset.text, args.force).map_err(|error| refused(&path, &error))?;
    let variables = key_variables(preset.text)?;
    if globals.format == Format::Json {
        out::print_json(&json!({
            "path": path.to_string_lossy(),
            "preset": preset.name,
            "key_variables": variables,
        }))?;
    } else {
        let check = if globals.config.is_some() { format!(" --config {}", path.display()) } else { String::new() };
        out::print(&format!("wrote {}: {}\n", path.display(), preset.about))?;
        let text = "put your own addresses and models into it, and the keys into";
        out::note(globals, &format!("next: {text} {}; then `peaklane check{check}`", variables.join(", ")));
    }
    Ok(Exit::Fine)
}

fn list(globals: &Globals) -> Result<String, Failure> {
    let mut table = Table::new(vec![Column::words("name", "preset"), Column::words("about", "for")]);
    for preset in presets::PRESETS {
        table.row(vec![Cell::text(preset.name), Cell::text(preset.about)]);
    }
    Ok(match globals.format {
        Format::Table => table.render(globals.width, globals.palette),
        Format::Json => format!("{:#}\n", table.json()),
        Format::Csv => table.csv().map_err(|error| Failure::of(Exit::Unmeasured, &error, None))?,
        Format::Md => table.markdown(),
    })
}

/// Names of the variables that the lanes take their keys from, each once.
fn key_variables(text: &str) -> Result<Vec<String>, Failure> {
    let mut names: Vec<String> = Vec::new();
    for name in config::parse_checked(text)?.lanes.into_iter().filter_map(|lane| lane.key_env) {
        if !names.contains(&name) {
            names.push(name);
        }
    }
    Ok(names)
}

/// Writes the file whole or not at all: a full disk leaves an earlier one as it was.
fn write(path: &Path, text: &str, force: bool) -> io::Result<()> {
    if !force {
        // one call that looks and makes, so that nothing slips in between; a dangling link counts as there
        let mut file = OpenOptions::new().write(true).create_new(true).open(path)?;
        return file.write_all(text.as_bytes()).inspect_err(|_| {
            let _ = fs::remove_file(path);
        });
    }
    // what a link points to is replaced, not the link
    let target = fs::canonicalize(path).unwrap_or_else(|_| path.to_owned());
    if target.is_dir() {
        return Err(io::ErrorKind::IsADirectory.into());
    }
    let mut beside = target.clone().into_os_string();
    beside.push(".new");
    let done = fs::write(&beside, text).and_then(|()| fs::rename(&beside, &target));
    done.inspect_err(|_| {
        let _ = fs::remove_file(&beside);
    })
}

fn refused(path: &Path, error: &io::Error) -> Failure {
    if error.kind() == io::ErrorKind::AlreadyExists {
        return Failure::usage(format!("`{}` is there already and was left as it is", path.display()))
            .with_hint("`--force` replaces it, `--config FILE` writes another file, `--stdout` only shows the text");
    }
    let exit = match error.kind() {
        io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded => Exit::Unmeasured,
        _ => Exit::Usage,
    };
    Failure::new(exit, format!("cannot write `{}`", path.display()))
        .because(error.to_string())
        .with_hint("name a file in a folder that you may write to with `--config FILE`")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_is_only_replaced_on_demand_and_through_its_link() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("peaklane.toml");
        write(&path, "one", false).unwrap();
        assert_eq!(write(&path, "two", false).unwrap_err().kind(), io::ErrorKind::AlreadyExists);
        assert_eq!(fs::read_to_string(&path).unwrap(), "one");
        write(&path, "two", true).unwrap();
        assert_eq!(fs::read_to_string(&path).unwrap(), "two");
        assert!(write(dir.path(), "three", true).is_err());
        assert_eq!(fs::read_dir(dir.path()).unwrap().count(), 1, "nothing is left beside the file");
    }

    #[cfg(unix)]
    #[test]
    fn a_link_stays_one_when_its_file_is_replaced() {
        let dir = tempfile::tempdir().unwrap();
        let (file, link) = (dir.path().join("real.toml"), dir.path().join("peaklane.toml"));
        write(&file, "one", false).unwrap();
        std::os::unix::fs::symlink(&file, &link).unwrap();
        write(&link, "two", true).unwrap();
        assert_eq!(fs::read_to_string(&file).unwrap(), "two");
        assert!(link.symlink_metadata().unwrap().is_symlink());
    }

    #[test]
    fn the_default_preset_is_one_of_them() {
        assert!(presets::preset(presets::PRESETS[0].name).is_ok());
    }
}
