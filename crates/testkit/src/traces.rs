//! Recorded traffic of real coding agents: where it is. It is not part of the project.

use std::path::PathBuf;

use crate::data::{project_root, testdata};
use crate::require;

/// Its name in `PEAKLANE_REQUIRE`.
pub const NAME: &str = "traces";

/// What to do to have it.
pub const HINT: &str = "set PEAKLANE_TESTDATA to a folder with traces/, or put shared/traces beside the checkout";

/// The folder of traces: `traces/` of the test data, else `../shared/traces` beside the project. `None`: there is
/// none, and the skip is on record.
///
/// # Panics
/// When `PEAKLANE_REQUIRE` asks for traces and there are none.
pub fn folder() -> Option<PathBuf> {
    require::part(NAME, HINT, || {
        let beside = project_root().parent().map(|above| above.join("shared/traces"));
        [Some(testdata("traces")), beside].into_iter().flatten().find(|dir| dir.join("expected.json").is_file())
    })
}
