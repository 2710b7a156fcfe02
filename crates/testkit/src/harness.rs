//! Real coding-agent harnesses and the scripted model that they talk to (`scripts/harness`, `scripts/scripted-model`).

use std::fs::{self, File};
use std::io::{BufRead, BufReader};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use serde_json::Value;

use crate::data::project_root;
use crate::require;

/// Its name in `PEAKLANE_REQUIRE`.
pub const NAME: &str = "harness";

/// What to do to have it.
pub const HINT: &str = "run scripts/harness/install.sh DIR pi@0.73.1 codex@0.171.0 and set HARNESS_DIR=DIR";

/// Grain of the waiting for a harness's end.
const POLL: Duration = Duration::from_millis(50);

/// Environment variable that marks all processes of one run.
const MARK: &str = "PEAKLANE_TEST_RUN";

/// A harness that is installed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Installed {
    /// `pi`, `codex`, ...
    pub name: String,
    /// `0.73.1`
    pub version: String,
    /// Its program.
    pub program: PathBuf,
}

impl Installed {
    /// From a folder `NAME-VERSION` as `scripts/harness/install.sh` makes it: by npm, or by Python's `venv`.
    fn at(folder: &Path) -> Option<Self> {
        let (name, version) = folder.file_name()?.to_str()?.rsplit_once('-')?;
        let places = ["node_modules/.bin", "venv/bin"].map(|place| folder.join(place).join(name));
        let program = places.into_iter().find(|program| program.exists())?;
        Some(Self { name: name.to_owned(), version: version.to_owned(), program })
    }

    /// The parts of its version as numbers, so that 0.171 is newer than 0.80.
    fn rank(&self) -> Vec<u64> {
        self.version.split('.').map(|part| part.parse().unwrap_or(0)).collect()
    }

    /// Runs shell lines in `repo` that call the harness by its name, with a home of its own below `scratch`, and returns what they
    /// print on standard output. Whatever processes are left at the end are ended: some harnesses leave daemons behind.
    ///
    /// # Panics
    /// When the lines are not through within `limit`, or no shell can be started.
    pub fn run(&self, lines: &str, task: &str, repo: &Path, scratch: &Path, limit: Duration) -> String {
        let home = scratch.join(format!("home-{}-{}", self.name, self.version));
        fs::create_dir_all(&home).expect("a home can be made");
        let (out, err) = (home.join("out"), home.join("err"));
        let file = |path: &Path| File::create(path).expect("a file can be made");
        let own = self.program.parent().expect("a program lies in a folder").to_path_buf();
        let rest = std::env::var_os("PATH").unwrap_or_default();
        let path = std::env::join_paths([own].into_iter().chain(std::env::split_paths(&rest))).expect("a search path");
        let mark = home.display().to_string();
        let mut child = Command::new("sh")
            .args(["-c", lines])
            .current_dir(repo)
            .env_clear()
            .envs([("PATH", path)])
            .envs([("HOME", mark.as_str()), (MARK, &mark), ("TASK", task), ("LC_ALL", "C.UTF-8"), ("TERM", "dumb")])
            .stdin(Stdio::null())
            .stdout(file(&out))
            .stderr(file(&err))
            .process_group(0)
            .spawn()
            .expect("a shell can be started");
        let begun = Instant::now();
        let mut ended = false;
        while !ended && begun.elapsed() < limit {
            std::thread::sleep(POLL);
            ended = child.try_wait().expect("a child can be waited for").is_some();
        }
        end_all(&format!("{MARK}={mark}"), &format!("-{}", child.id()));
        let _ = child.wait();
        let told = |path: &Path| String::from_utf8_lossy(&fs::read(path).unwrap_or_default()).into_owned();
        assert!(
            ended,
            "{} {} was not through within {limit:?}:\n{}{}",
            self.name,
            self.version,
            told(&out),
            told(&err)
        );
        told(&out)
    }
}

/// Ends a process group, and all processes that carry the mark: a daemon leaves its group.
fn end_all(mark: &str, group: &str) {
    let carries = |process: &Path| {
        fs::read(process.join("environ")).is_ok_and(|all| all.split(|b| *b == 0).any(|one| one == mark.as_bytes()))
    };
    // Empty where there is no /proc; the group is ended then all the same.
    let processes = fs::read_dir("/proc").into_iter().flatten().flatten().map(|entry| entry.path());
    let marked =
        processes.filter(|process| carries(process)).filter_map(|process| Some(process.file_name()?.to_owned()));
    let _ = Command::new("kill").args(["-KILL", "--", group]).args(marked).stderr(Stdio::null()).status();
}

/// All harnesses below `HARNESS_DIR`, by name and version; `None` where there is none, and the skip is on record.
///
/// # Panics
/// When `PEAKLANE_REQUIRE` asks for harnesses and there is none.
pub fn installed() -> Option<Vec<Installed>> {
    require::part(NAME, HINT, || Some(all()).filter(|all| !all.is_empty()))
}

/// The newest installed version of a harness; `None` where there is none, and the skip is on record.
///
/// # Panics
/// When `PEAKLANE_REQUIRE` asks for harnesses and this one is missing.
pub fn find(name: &str) -> Option<Installed> {
    require::part(NAME, HINT, || all().into_iter().rfind(|one| one.name == name))
}

fn all() -> Vec<Installed> {
    let dir = std::env::var_os("HARNESS_DIR").filter(|dir| !dir.is_empty());
    let entries = dir.and_then(|dir| fs::read_dir(dir).ok()).into_iter().flatten().flatten();
    let mut all: Vec<Installed> = entries.filter_map(|entry| Installed::at(&entry.path())).collect();
    all.sort_by_key(|one| (one.name.clone(), one.rank()));
    all
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

    /// Base URL of a run whose harness offers tools: `http://127.0.0.1:PORT/LABEL/tools/v1`.
    pub fn base_url(&self, label: &str) -> String {
        format!("{}/{label}/tools/v1", self.url)
    }

    /// Base URL of a run whose harness wants blocks of text to put into files.
    pub fn text_url(&self, label: &str) -> String {
        format!("{}/{label}/text/v1", self.url)
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

#[cfg(test)]
mod tests {
    use super::*;

    fn fake(folder: &Path) -> Installed {
        let bin = folder.join("x-0.171.0/venv/bin");
        fs::create_dir_all(&bin).unwrap();
        fs::write(bin.join("x"), "").unwrap();
        let installed = Installed::at(&folder.join("x-0.171.0")).unwrap();
        assert_eq!((installed.name.as_str(), installed.rank()), ("x", vec![0, 171, 0]));
        installed
    }

    #[test]
    fn a_daemon_that_a_harness_leaves_behind_is_ended_with_it() {
        let dir = tempfile::tempdir().unwrap();
        // One in the group and one that has left it; each would write its file again and again.
        let script = "for n in 1 2; do echo $n; done; (while :; do date > in; sleep 0.01; done) &
            setsid sh -c 'echo $$ > id; while :; do date > out; sleep 0.01; done' & while [ ! -s id ]; do sleep 0.01; done";
        let said = fake(dir.path()).run(script, "t", dir.path(), dir.path(), Duration::from_secs(30));
        assert_eq!(said, "1\n2\n");
        let id = fs::read_to_string(dir.path().join("id")).unwrap();
        // Gone, or a zombie that only waits to be collected.
        let begun = Instant::now();
        let alive = || {
            let stat = fs::read_to_string(format!("/proc/{}/stat", id.trim())).unwrap_or_default();
            !stat.is_empty() && !stat.contains(") Z ")
        };
        while alive() {
            assert!(begun.elapsed() < Duration::from_secs(10), "it goes on");
            std::thread::sleep(POLL);
        }
    }

    #[test]
    #[should_panic(expected = "was not through within")]
    fn a_harness_that_hangs_is_ended_and_told() {
        let dir = tempfile::tempdir().unwrap();
        fake(dir.path()).run("sleep 60", "t", dir.path(), dir.path(), Duration::from_millis(200));
    }
}
