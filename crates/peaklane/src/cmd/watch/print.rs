//! `watch --print`: a unit that starts the watcher, with the paths of this machine.

use std::path::{Path, PathBuf};

use peaklane_core::config::{MAX_TEXT_BYTES, parse};
use peaklane_report::watch::units::{UnitFacts, cron, k8s, systemd};

use super::PrintForm;
use crate::exit::Exit;
use crate::failure::Failure;
use crate::globals::Globals;
use crate::load::{Loaded, Source, read_text};
use crate::out;

pub(super) fn show(form: PrintForm, loaded: &Loaded, globals: &Globals) -> Result<Exit, Failure> {
    let facts = facts(loaded, globals)?;
    out::print(&match form {
        PrintForm::Systemd => systemd(&facts),
        PrintForm::Cron => cron(&facts),
        PrintForm::K8s => k8s(&facts),
    })?;
    Ok(Exit::Fine)
}

fn facts(loaded: &Loaded, globals: &Globals) -> Result<UnitFacts, Failure> {
    let Source::File(config) = &loaded.source else {
        return Err(Failure::usage("a unit needs a configuration file").with_hint("write one: `peaklane init`"));
    };
    let program = std::env::current_exe().map_err(|error| Failure::of(Exit::Unmeasured, &error, None))?;
    let mut key_variables: Vec<String> = Vec::new();
    let mut files: Vec<PathBuf> = Vec::new();
    for lane in &loaded.config.lanes {
        match (&lane.key_file, &lane.key_env) {
            (Some(file), _) => files.push(file.into()),
            (None, Some(name)) if !key_variables.contains(name) => key_variables.push(name.clone()),
            _ => {}
        }
        files.extend(lane.ca_file.iter().map(PathBuf::from));
    }
    files.extend(prompt_files(config));
    let mut files = files.iter().map(|file| absolute(file)).collect::<Result<Vec<_>, _>>()?;
    files.sort();
    files.dedup();
    Ok(UnitFacts {
        program: absolute(&program)?,
        config: absolute(config)?,
        store: absolute(globals.store.path())?,
        key_variables,
        files,
        version: env!("CARGO_PKG_VERSION").to_owned(),
    })
}

/// The prompt files that the configuration names. Loading puts their texts in their place, so that it is read once more.
fn prompt_files(config: &Path) -> Vec<PathBuf> {
    let beside = config.parent().unwrap_or(Path::new(""));
    let read = read_text(config, MAX_TEXT_BYTES).ok().and_then(|text| parse(&text).ok());
    let tasks = read.map(|config| config.tasks).unwrap_or_default();
    tasks.into_iter().filter_map(|task| Some(beside.join(task.prompt_file?))).collect()
}

/// The absolute path as text, links left as they are: what a link leads to may change with an update.
fn absolute(path: &Path) -> Result<String, Failure> {
    let whole = std::path::absolute(path).map_err(|error| Failure::of(Exit::Usage, &error, None))?;
    let text = whole.into_os_string().into_string();
    text.map_err(|path| Failure::usage(format!("a unit cannot name `{}`: it is no UTF-8", path.display())))
}
