//! A look at the configuration by the commands that measure, so that a change is noted before its first burst.

use std::path::Path;

use peaklane_core::config::Config;
use peaklane_core::countertest::{Notice, Refusal};
use peaklane_report::countertest::{change_words, refusal_words};
use peaklane_run::clock::wall_us;
use peaklane_store::Ledger;

use super::context::{now_of, store, stored};
use crate::failure::Failure;
use crate::globals::Globals;
use crate::out;

/// Notes what has changed for every open counter-test of the store, and says it. Never stops a measurement.
pub(in crate::cmd) fn look(config: &Config, store: &Path, globals: &Globals) {
    if !store.is_file() {
        return;
    }
    if let Err(error) = noted(config, store, globals) {
        out::warn(globals, &format!("no look at open counter-tests: {}", error.message));
    }
}

fn noted(config: &Config, path: &Path, globals: &Globals) -> Result<(), Failure> {
    let ledger = Ledger::open_to_read(path)?;
    let open = stored(&ledger)?.into_iter().filter(|test| test.ended.is_none());
    for mut test in open {
        let now_unix_us = wall_us();
        let (found, stale) = test.notice(&now_of(config, &test), now_unix_us);
        match &found {
            // A file without these lanes is another matter.
            Notice::Refused(Refusal::Gone(_)) => continue,
            Notice::Refused(refusal) => {
                let (what, next) = refusal_words(refusal);
                out::warn(globals, &format!("{}: {what}: {next}", test.id));
            }
            Notice::One(change) if stale => out::note(globals, &format!("{}: {}", test.id, change_words(change))),
            _ => {}
        }
        if stale {
            store(&Ledger::open(path)?, &test, now_unix_us)?;
        }
    }
    Ok(())
}
