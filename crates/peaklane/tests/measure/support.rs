//! What these tests share: a lane made by the environment, and the records that the binary left.

use std::path::Path;
use std::time::{Duration, Instant};

use jiff::Timestamp;
use peaklane_core::attempt::AttemptRecord;
use peaklane_sim::fake::FakeLane;
use peaklane_store::{BurstFilter, StoreReader, StoredBurst};
use peaklane_testkit::binary::{Ran, Sandbox};
use serde_json::Value;

/// A key that must be found nowhere but at the lane.
pub(crate) const KEY: &str = "sk-hush-hush-4711-never-shown";

/// The binary under test.
pub(crate) const BINARY: &str = env!("CARGO_BIN_EXE_peaklane");

/// A sandbox whose environment makes a lane, as a new user would.
pub(crate) fn with_lane(base_url: &str, model: &str) -> Sandbox {
    Sandbox::new(BINARY)
        .env("LLM_BASE_URL", base_url)
        .env("LLM_MODEL", model)
        .env("LLM_API_KEY", KEY)
        .limit(Duration::from_secs(120))
}

/// The same at a fake lane.
pub(crate) fn with_fake(lane: &FakeLane, model: &str) -> Sandbox {
    with_lane(&lane.base_url(), model)
}

/// Runs `burst` with `--format json`: exit code 0, one object, its only burst.
#[track_caller]
pub(crate) fn burst(sandbox: &Sandbox, more: &[&str]) -> Value {
    let words = [&["burst", "--format", "json"], more].concat();
    let object = sandbox.run(words).expect_code(0).json();
    let bursts = object["bursts"].as_array().unwrap();
    assert_eq!(bursts.len(), 1, "one lane, one task class: one burst");
    bursts[0].clone()
}

/// Every burst of the store of a sandbox, oldest first, with its attempts.
pub(crate) fn stored(folder: &Path) -> Vec<(StoredBurst, Vec<AttemptRecord>)> {
    let reader = StoreReader::open(&folder.join("peaklane.db")).unwrap();
    let bursts = reader.bursts(&BurstFilter::default()).unwrap();
    let with_attempts = |burst: StoredBurst| {
        let attempts = reader.attempts(&burst.header.id).unwrap();
        (burst, attempts)
    };
    bursts.into_iter().map(with_attempts).collect()
}

/// Waits until the store of a sandbox holds this many attempts, and says how many it holds then.
pub(crate) fn wait_for_attempts(folder: &Path, least: usize) -> usize {
    let begun = Instant::now();
    let held = || {
        let reader = StoreReader::open(&folder.join("peaklane.db")).ok()?;
        let bursts = reader.bursts(&BurstFilter::default()).ok()?;
        bursts.iter().map(|burst| Some(reader.attempts(&burst.header.id).ok()?.len())).sum::<Option<usize>>()
    };
    loop {
        match held() {
            Some(count) if count >= least => return count,
            _ => assert!(begun.elapsed() < Duration::from_secs(60), "no {least} attempts within a minute"),
        }
        std::thread::sleep(Duration::from_millis(10));
    }
}

/// The rows of a CSV file of ours: each is one physical line, the header apart.
#[track_caller]
pub(crate) fn rows(csv: &str) -> Vec<&str> {
    let mut lines = csv.lines();
    let header = lines.next().unwrap();
    assert!(header.starts_with("tool_version,") && header.ends_with(",format"), "{header}");
    let rows: Vec<&str> = lines.collect();
    for row in &rows {
        assert!(!row.starts_with("tool_version"), "the header stands once");
        assert!(row.ends_with(",v1") || row.ends_with(",v2"), "a row of several lines, or a torn one: {row}");
    }
    assert!(csv.ends_with('\n'), "the last row is whole");
    rows
}

/// Asserts one of these exit codes, an error and a next step on standard error, and nothing on standard output.
#[track_caller]
pub(crate) fn refused(ran: &Ran, codes: &[i32]) {
    let Ran { code, stdout, stderr, .. } = ran;
    assert!(code.is_some_and(|code| codes.contains(&code)), "exit code {code:?}\n{stdout}\n{stderr}");
    assert_eq!(stdout, "", "an error leaves standard output empty");
    assert!(stderr.starts_with("error: "), "{stderr}");
    assert!(stderr.contains("\n\nhint: "), "no next step:\n{stderr}");
}

/// A zone in which it is noon, so that no window of these tests lies at the end of a day: hours behind UTC, and its name.
pub(crate) fn noon_zone(now: Timestamp) -> (i64, String) {
    let hour: i64 = now.to_string()[11..13].parse().expect("an hour");
    let behind = hour - 12;
    // the signs of these names are those of POSIX: `Etc/GMT+5` is five hours behind
    (behind, format!("Etc/GMT{}{}", if behind < 0 { '-' } else { '+' }, behind.abs()))
}
