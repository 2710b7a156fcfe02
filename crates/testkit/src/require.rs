//! Tests that need a real part (a model server, a database): run where it is there, skipped and *said to be skipped*
//! where it is not, failed where `PEAKLANE_REQUIRE=real-server,...` names it (`all` names every part).
//!
//! A skipped test passes, and cargo hides what passing tests print. So each part that a test asked for is written to
//! `<target>/peaklane-skipped/<process id of the test command>`, and the last test binary of the workspace
//! (`crates/zz-skipped`) prints what was skipped and fails if a required part was never asked for.

use std::collections::{BTreeMap, BTreeSet};
use std::fs::{self, OpenOptions};
use std::io::Write;
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

use serde::{Deserialize, Serialize};

/// The variable that names the parts which must be there, separated by commas.
pub const VARIABLE: &str = "PEAKLANE_REQUIRE";

/// Notes of test commands that never came to their end are removed after this time.
const STALE_AFTER: Duration = Duration::from_secs(24 * 3600);

/// Looks for a real part on behalf of the running test.
///
/// * `name`: as in `PEAKLANE_REQUIRE`: `real-server`.
/// * `hint`: what to do to have it: `set REAL_SERVER_URL or run scripts/real-server/start.sh`.
/// * `find`: `None` when it is not there.
///
/// `None`: the skip is on record and the test returns.
///
/// # Panics
/// When the part is required and not there.
pub fn part<T>(name: &str, hint: &str, find: impl FnOnce() -> Option<T>) -> Option<T> {
    Notes::of_this_command().part(name, hint, find)
}

/// What the tests of one test command asked for.
#[derive(Clone, Debug)]
pub struct Notes {
    file: PathBuf,
    required: BTreeSet<String>,
}

/// One question of a test.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
struct Note {
    part: String,
    hint: String,
    test: String,
    found: bool,
}

impl Notes {
    /// The notes of the test command that runs this process.
    pub fn of_this_command() -> Self {
        // cargo starts every test binary itself, so its process id tells one `cargo test` from another
        #[cfg(unix)]
        let command = std::os::unix::process::parent_id();
        #[cfg(not(unix))]
        let command = 0;
        let required = std::env::var(VARIABLE).unwrap_or_default();
        Self::at(&folder(), command, &required)
    }

    /// The notes of a test command in a folder, with its list of required parts.
    pub fn at(folder: &Path, command: u32, required: &str) -> Self {
        Self {
            file: folder.join(format!("{command}.jsonl")),
            required: required.split(',').map(str::trim).filter(|p| !p.is_empty()).map(str::to_owned).collect(),
        }
    }

    /// [`part`] with these notes.
    ///
    /// # Panics
    /// When the part is required and not there.
    pub fn part<T>(&self, name: &str, hint: &str, find: impl FnOnce() -> Option<T>) -> Option<T> {
        let found = find();
        self.write(&Note {
            part: name.to_owned(),
            hint: hint.to_owned(),
            test: std::thread::current().name().unwrap_or("main").to_owned(),
            found: found.is_some(),
        });
        if found.is_none() {
            let required = self.required.contains(name) || self.required.contains("all");
            assert!(!required, "{VARIABLE} asks for `{name}`, which is not there ({hint})");
        }
        found
    }

    /// One line per part that was skipped, or `skipped: nothing`; never empty.
    pub fn lines(&self) -> Vec<String> {
        let mut skipped: BTreeMap<(String, String), BTreeSet<String>> = BTreeMap::new();
        for note in self.read().into_iter().filter(|n| !n.found) {
            skipped.entry((note.part, note.hint)).or_default().insert(note.test);
        }
        if skipped.is_empty() {
            return vec!["skipped: nothing".to_owned()];
        }
        skipped
            .into_iter()
            .map(|((part, hint), tests)| {
                let names = tests.iter().map(String::as_str).collect::<Vec<_>>().join(", ");
                format!("skipped: {part} ({hint}); tests: {names}")
            })
            .collect()
    }

    /// Required parts that no test asked for: a name spelled wrong, or a test that is gone.
    pub fn never_asked_for(&self) -> Vec<String> {
        let asked: BTreeSet<String> = self.read().into_iter().map(|n| n.part).collect();
        self.required.iter().filter(|p| *p != "all" && !asked.contains(*p)).cloned().collect()
    }

    /// Removes these notes and those that are stale.
    pub fn clear(&self) {
        let _ = fs::remove_file(&self.file);
        let Some(entries) = self.file.parent().and_then(|p| fs::read_dir(p).ok()) else { return };
        for entry in entries.flatten() {
            let age = entry.metadata().and_then(|m| m.modified()).map(|at| SystemTime::now().duration_since(at));
            if age.is_ok_and(|age| age.is_ok_and(|age| age > STALE_AFTER)) {
                let _ = fs::remove_file(entry.path());
            }
        }
    }

    fn write(&self, note: &Note) {
        let line = serde_json::to_string(note).expect("four plain fields") + "\n";
        let folder = self.file.parent().expect("the file is in a folder");
        fs::create_dir_all(folder).unwrap_or_else(|e| panic!("cannot make {}: {e}", folder.display()));
        // one write each: tests run side by side
        OpenOptions::new()
            .create(true)
            .append(true)
            .open(&self.file)
            .and_then(|mut file| file.write_all(line.as_bytes()))
            .unwrap_or_else(|e| panic!("cannot write {}: {e}", self.file.display()));
    }

    fn read(&self) -> Vec<Note> {
        let text = fs::read_to_string(&self.file).unwrap_or_default();
        text.lines().filter_map(|line| serde_json::from_str(line).ok()).collect()
    }
}

/// `<target>/peaklane-skipped`: every test binary of a command lies in the same `<target>/<profile>/deps`, whatever
/// names the target folder.
fn folder() -> PathBuf {
    let exe = std::env::current_exe().unwrap_or_default();
    let deps = exe.ancestors().find(|p| p.ends_with("deps"));
    let target = deps.and_then(|p| p.ancestors().nth(2)).map_or_else(std::env::temp_dir, Path::to_path_buf);
    target.join("peaklane-skipped")
}

#[cfg(test)]
mod tests {
    use super::*;

    const HINT: &str = "start one";

    #[test]
    fn what_is_missing_is_named_once_with_its_hint_and_its_tests() {
        let dir = tempfile::tempdir().unwrap();
        let notes = Notes::at(dir.path(), 1, "");
        assert_eq!(notes.lines(), ["skipped: nothing"]);
        assert_eq!(notes.part("here", HINT, || Some(7)), Some(7));
        assert_eq!(notes.lines(), ["skipped: nothing"]);
        for _ in 0..2 {
            assert_eq!(notes.part("away", HINT, || None::<u8>), None);
        }
        let test = std::thread::current().name().unwrap().to_owned();
        assert_eq!(notes.lines(), [format!("skipped: away (start one); tests: {test}")]);
        assert_eq!(Notes::at(dir.path(), 2, "").lines(), ["skipped: nothing"], "another command");
        notes.clear();
        assert_eq!(notes.lines(), ["skipped: nothing"]);
    }

    #[test]
    fn a_required_part_that_is_missing_fails_its_test() {
        let dir = tempfile::tempdir().unwrap();
        for required in ["real-server", " postgres , real-server ", "all"] {
            let notes = Notes::at(dir.path(), 1, required);
            let missing = std::panic::catch_unwind(|| notes.part("real-server", HINT, || None::<u8>));
            let message = *missing.unwrap_err().downcast::<String>().unwrap();
            assert!(message.contains("`real-server`") && message.contains(HINT), "{message}");
            assert_eq!(notes.part("real-server", HINT, || Some(1)), Some(1));
        }
        assert_eq!(Notes::at(dir.path(), 1, "real").part("real-server", HINT, || None::<u8>), None);
    }

    #[test]
    fn a_required_part_that_no_test_asked_for_is_told() {
        let dir = tempfile::tempdir().unwrap();
        let notes = Notes::at(dir.path(), 1, "real-servr,real-server");
        notes.part("real-server", HINT, || Some(1));
        assert_eq!(notes.never_asked_for(), ["real-servr"]);
    }

    #[test]
    fn notes_lie_in_the_target_folder_of_the_build() {
        let exe = std::env::current_exe().unwrap();
        assert!(exe.starts_with(folder().parent().unwrap()), "{} {}", exe.display(), folder().display());
        assert_ne!(folder().parent().unwrap(), std::env::temp_dir());
    }
}
