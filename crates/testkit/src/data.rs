//! Where test data lies, and how case folders are listed.
//!
//! `PEAKLANE_TESTDATA` names another folder of the layout of `testdata/`; without it the project's own is used. A test
//! lists a folder and never names a case, so that it runs on any other set. An empty folder is a failure.

use std::fs;
use std::path::{Path, PathBuf};

/// The project's root folder.
pub fn project_root() -> PathBuf {
    let here = Path::new(env!("CARGO_MANIFEST_DIR"));
    here.ancestors().nth(2).expect("crates/testkit lies two folders below the root").to_path_buf()
}

/// A folder of the test data: `cases/stream`, `recorded`, ...
pub fn testdata(sub: &str) -> PathBuf {
    let base = match std::env::var_os("PEAKLANE_TESTDATA") {
        Some(dir) if !dir.is_empty() => PathBuf::from(dir),
        _ => project_root().join("testdata"),
    };
    base.join(sub)
}

/// The files with that extension in a folder of the test data, by name: (stem, text).
///
/// # Panics
/// When the folder is missing or has no such file: a test without cases proves nothing.
pub fn texts(sub: &str, extension: &str) -> Vec<(String, String)> {
    texts_in(&testdata(sub), extension)
}

/// The same for any folder.
///
/// # Panics
/// When the folder is missing or has no such file.
pub fn texts_in(dir: &Path, extension: &str) -> Vec<(String, String)> {
    let mut files: Vec<PathBuf> = fs::read_dir(dir)
        .unwrap_or_else(|e| panic!("cannot list {}: {e}", dir.display()))
        .filter_map(|entry| entry.ok().map(|e| e.path()))
        .filter(|path| path.extension().is_some_and(|e| e == extension))
        .collect();
    files.sort();
    assert!(!files.is_empty(), "no cases in {}", dir.display());
    files
        .into_iter()
        .map(|path| {
            let text = fs::read_to_string(&path).unwrap_or_else(|e| panic!("cannot read {}: {e}", path.display()));
            (path.file_stem().map(|s| s.to_string_lossy().into_owned()).unwrap_or_default(), text)
        })
        .collect()
}

/// True when `PEAKLANE_TESTDATA` names another set than the project's own.
pub fn is_foreign() -> bool {
    std::env::var_os("PEAKLANE_TESTDATA").is_some_and(|dir| !dir.is_empty())
}

/// What a case states and no test reads. In the project's own set that is an error, since it would pass unchecked; another
/// set may say more than this version knows, which is noted and tells nothing against the product.
///
/// # Errors
/// The note itself, for the project's own set.
#[expect(clippy::print_stderr, reason = "a note for whoever runs the tests on another set")]
pub fn unread(note: &str) -> Result<(), String> {
    if is_foreign() {
        eprintln!("note: {note}: not checked by this version");
        Ok(())
    } else {
        Err(note.to_owned())
    }
}

/// All JSON cases of a folder, by file name.
///
/// # Panics
/// When the folder is missing or empty, or when a file is no JSON: a test without cases proves nothing.
pub fn cases(sub: &str) -> Vec<(String, serde_json::Value)> {
    texts(sub, "json")
        .into_iter()
        .map(|(name, text)| {
            let value = serde_json::from_str(&text).unwrap_or_else(|e| panic!("{sub}/{name}.json is no JSON: {e}"));
            (name, value)
        })
        .collect()
}
