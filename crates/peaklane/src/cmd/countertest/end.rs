//! `countertest end` and `show`: what has changed, what stands on both sides, and the verdict.

use peaklane_core::config::Config;
use peaklane_core::countertest::{Ended, JudgeError, Notice, Registered};
use peaklane_core::rules::CounterVerdict;
use peaklane_report::countertest::refusal_words;
use peaklane_store::Ledger;

use super::context::{Bursts, Standing, configuration, moment, now_of, print, reading, store, stored, zone};
use super::{EndArgs, ShowArgs};
use crate::exit::Exit;
use crate::failure::Failure;
use crate::globals::Globals;
use crate::out;

/// Judges one, keeps what came of it, and prints it.
///
/// # Errors
/// [`Failure`]: exit code 2 where there is not one change, 3 before the wait is over and without bursts on a side.
pub(super) fn run(args: &EndArgs, globals: &Globals) -> Result<Exit, Failure> {
    let (reader, path) = reading(globals)?;
    let mut test = open(stored(&reader)?, args.id.as_deref())?;
    drop(reader);
    let now_unix_us = moment(args.as_of, &zone(&test.zone)?)?;
    if args.give_up {
        test.ended = Some(Ended {
            unix_us: now_unix_us,
            changed_unix_us: None,
            judgement: None,
            after: Vec::new(),
            after_beside: Vec::new(),
        });
        store(&Ledger::open(&path)?, &test, now_unix_us)?;
        print(&[Standing::of(test, None, &Bursts::of(globals, "")?, now_unix_us)?], globals)?;
        return Ok(Exit::Fine);
    }
    let config = configuration(globals)?;
    let (found, stale) = test.notice(&now_of(&config, &test), now_unix_us);
    let ledger = Ledger::open(&path)?;
    if stale {
        store(&ledger, &test, now_unix_us)?;
    }
    let bursts = Bursts::of(globals, &test.task)?;
    let mut standing = Standing::of(test, Some(found), &bursts, now_unix_us)?;
    refuse(&standing)?;
    let judgement = standing.test.judge(&standing.after, &standing.after_beside).map_err(unjudged)?;
    let verdict = judgement.verdict;
    standing.judgement = Some(judgement.clone());
    if verdict == CounterVerdict::Undecided {
        standing.test.looks = standing.test.looks.saturating_add(1);
    } else {
        standing.test.ended = Some(Ended {
            unix_us: now_unix_us,
            changed_unix_us: standing.changed_unix_us,
            judgement: Some(judgement),
            after: standing.after.clone(),
            after_beside: standing.after_beside.clone(),
        });
    }
    store(&ledger, &standing.test, now_unix_us)?;
    print(std::slice::from_ref(&standing), globals)?;
    Ok(match verdict {
        CounterVerdict::Improved | CounterVerdict::NoChange => Exit::Fine,
        CounterVerdict::Worse => Exit::Negative,
        CounterVerdict::Undecided => Exit::Unmeasured,
    })
}

/// Shows one, or all. A change that is seen for the first time is noted.
///
/// # Errors
/// [`Failure`]: exit code 2 for an id that none has, 3 where there is none at all.
pub(super) fn show(args: &ShowArgs, globals: &Globals) -> Result<Exit, Failure> {
    let (reader, path) = reading(globals)?;
    let mut tests = stored(&reader)?;
    drop(reader);
    if tests.is_empty() {
        return Err(none());
    }
    if let Some(id) = &args.id {
        tests = vec![named(tests, id)?];
    }
    // What is over is shown without any configuration.
    let config = match tests.iter().any(|test| test.ended.is_none()) {
        true => Some(configuration(globals)?),
        false => None,
    };
    let standings = tests.into_iter().map(|test| standing(test, config.as_ref(), args, globals, &path));
    print(&standings.collect::<Result<Vec<_>, Failure>>()?, globals)?;
    Ok(Exit::Fine)
}

fn standing(
    mut test: Registered,
    config: Option<&Config>,
    args: &ShowArgs,
    globals: &Globals,
    path: &std::path::Path,
) -> Result<Standing, Failure> {
    let now_unix_us = moment(args.as_of, &zone(&test.zone)?)?;
    let mut found = None;
    if let (None, Some(config)) = (&test.ended, config) {
        let (notice, stale) = test.notice(&now_of(config, &test), now_unix_us);
        if stale
            && let Err(error) = Ledger::open(path).map_err(Failure::from).and_then(|l| store(&l, &test, now_unix_us))
        {
            out::warn(globals, &format!("what has changed could not be noted: {}", error.message));
        }
        found = Some(notice);
    }
    let bursts = Bursts::of(globals, &test.task)?;
    Standing::of(test, found, &bursts, now_unix_us)
}

/// The open one of that id, or the only open one.
fn open(tests: Vec<Registered>, id: Option<&str>) -> Result<Registered, Failure> {
    if tests.is_empty() {
        return Err(none());
    }
    if let Some(id) = id {
        let test = named(tests, id)?;
        return match &test.ended {
            None => Ok(test),
            Some(_) => Err(Failure::usage(format!("`{id}` is over"))
                .with_hint(format!("`peaklane countertest show {id}` shows what came of it"))),
        };
    }
    let mut open: Vec<Registered> = tests.into_iter().filter(|test| test.ended.is_none()).collect();
    match (open.pop(), open.is_empty()) {
        (Some(only), true) => Ok(only),
        (None, _) => Err(Failure::usage("no counter-test is open")
            .with_hint("`peaklane countertest show` shows those that are over")),
        (Some(last), false) => {
            let ids: Vec<&str> = open.iter().chain([&last]).map(|test| test.id.as_str()).collect();
            Err(Failure::usage("several counter-tests are open").with_hint(format!("name one: {}", ids.join(", "))))
        }
    }
}

fn named(tests: Vec<Registered>, id: &str) -> Result<Registered, Failure> {
    let ids: Vec<String> = tests.iter().map(|test| test.id.clone()).collect();
    tests.into_iter().find(|test| test.id == id).ok_or_else(|| {
        Failure::usage(format!("no counter-test is called `{id}`")).with_hint(format!("there are {}", ids.join(", ")))
    })
}

fn none() -> Failure {
    Failure::unmeasured("there is no counter-test yet")
        .with_hint("register one before you change anything: `peaklane countertest begin --change \"...\"`")
}

/// Stops where there is not exactly one change, and before the wait is over.
fn refuse(standing: &Standing) -> Result<(), Failure> {
    match &standing.found {
        Some(Notice::Refused(refusal)) => {
            let (what, next) = refusal_words(refusal);
            return Err(Failure::usage(what).with_hint(next));
        }
        Some(Notice::Nothing) => {
            return Err(Failure::usage("nothing has changed since the begin, so that there is nothing to judge")
                .with_hint("make the one change in the configuration, or close it: `countertest end --give-up`"));
        }
        _ => {}
    }
    if standing.ripe() {
        return Ok(());
    }
    let local = |at: Option<i64>| at.and_then(|at| standing.local(at)).map(|m| m.local).unwrap_or_default();
    let (since, ready) = (local(standing.changed_unix_us), local(standing.end_possible_unix_us));
    let days = standing.test.wait_days;
    Err(Failure::unmeasured(format!(
        "too early: the change is in force since {since}, and the wait of {days} days is over on {ready} ({})",
        standing.test.zone
    ))
    .with_hint("run the same bursts meanwhile; `peaklane countertest show` counts them"))
}

fn unjudged(error: JudgeError) -> Failure {
    let hint = match &error {
        JudgeError::NoBurst { .. } => {
            "run the same bursts again in that window: `peaklane watch`, or `peaklane burst --window HH:MM` while it is open"
        }
        JudgeError::Stats(_) => "judge fewer windows or days: begin again with `--window`",
    };
    Failure::of(Exit::Unmeasured, &error, Some(hint.to_owned()))
}
