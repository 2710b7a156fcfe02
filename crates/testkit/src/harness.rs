//! Real coding-agent harnesses and the scripted model that they talk to (`scripts/harness`, `scripts/scripted-model`).

use std::fs;
use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

use serde_json::Value;

use crate::data::project_root;
use crate::require;

/// Its name in `PEAKLANE_REQUIRE`.
pub const NAME: &str = "harness";

/// What to do to have it.
pub const HINT: &str = "run scripts/harness/install.sh DIR pi@0.73.1 codex@0.171.0 and set HARNESS_DIR=DIR";

/// The program of the newest installed version of a harness, below `HARNESS_DIR`; `None` where there is none, and the
/// skip is on record.
///
/// # Panics
/// When `PEAKLANE_REQUIRE` asks for harnesses and this one is missing.
pub fn find(name: &str) -> Option<PathBuf> {
    require::part(NAME, HINT, || {
        let dir = PathBuf::from(std::env::var_os("HARNESS_DIR").filter(|dir| !dir.is_empty())?);
        let mut found: Vec<PathBuf> = fs::read_dir(dir)
            .ok()?
            .filter_map(|entry| Some(entry.ok()?.path()))
            .filter(|path| path.file_name().is_some_and(|n| n.to_string_lossy().starts_with(&format!("{name}-"))))
            .map(|path| path.join("node_modules/.bin").join(name))
            .filter(|program| program.exists())
            .collect();
        found.sort();
        found.pop()
    })
}

/// The scripted model, running. It ends on drop.
#[derive(Debug)]
pub struct ScriptedModel {
    child: Child,
    url: String,
    folder: PathBuf,
}

impl ScriptedModel {
    /// Starts it with its records below `folder`. `None` where there is no python3, and the skip is on record.
    ///
    /// # Panics
    /// When it says no address, or `PEAKLANE_REQUIRE` asks for it and there is no python3.
    pub fn start(folder: &Path) -> Option<Self> {
        require::part("python3", "install python3", || {
            let script = project_root().join("scripts/scripted-model/scripted_model.py");
            let mut child = Command::new("python3")
                .arg("-B")
                .arg(script)
                .env("STUB_DIR", folder)
                .stdin(Stdio::null())
                .stdout(Stdio::piped())
                .stderr(Stdio::null())
                .spawn()
                .ok()?;
            let mut line = String::new();
            let pipe = child.stdout.take().expect("it is piped");
            BufReader::new(pipe).read_line(&mut line).expect("its address can be read");
            let url = line.trim().to_owned();
            assert!(url.starts_with("http://"), "the scripted model said `{url}`");
            Some(Self { child, url, folder: folder.to_path_buf() })
        })
    }

    /// Base URL of a run: `http://127.0.0.1:PORT/LABEL/tools/v1`.
    pub fn base_url(&self, label: &str) -> String {
        format!("{}/{label}/tools/v1", self.url)
    }

    /// A fresh copy of the repository that a run works in; its tests are red.
    ///
    /// # Panics
    /// When it cannot be made.
    pub fn repository(&self, label: &str) -> PathBuf {
        let repo = self.folder.join("runs").join(label).join("repo");
        copy(&project_root().join("scripts/scripted-model/seed-repo"), &repo);
        repo
    }

    /// What a run asked for, in order: one object per request.
    ///
    /// # Panics
    /// When the record is broken.
    pub fn requests(&self, label: &str) -> Vec<Value> {
        let path = self.folder.join("rec").join(format!("{label}.jsonl"));
        let text = fs::read_to_string(path).unwrap_or_default();
        text.lines().map(|line| serde_json::from_str(line).expect("a line of JSON")).collect()
    }
}

impl Drop for ScriptedModel {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn copy(from: &Path, to: &Path) {
    fs::create_dir_all(to).expect("a folder can be made");
    for entry in fs::read_dir(from).expect("the seed is there").flatten() {
        let target = to.join(entry.file_name());
        if entry.path().is_dir() {
            copy(&entry.path(), &target);
        } else {
            fs::copy(entry.path(), target).expect("a file can be copied");
        }
    }
}
