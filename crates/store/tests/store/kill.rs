//! `kill -9` at any moment.

use std::collections::BTreeMap;
use std::io::{BufRead, BufReader, Read, Write};
use std::time::{Duration, Instant, SystemTime};

use peaklane_store::csv::{CsvAppender, read};
use peaklane_store::{Store, StoreReader};

use crate::support::{child, end, full, given_path, header, said};

const ROUNDS: u64 = 12;

/// Kills a child after a random number of acknowledged steps and a random rest, and gives all that it acknowledged.
fn killed(test: &str, path: &std::path::Path, round: u64) -> Vec<String> {
    let now = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap();
    let seed = u64::from(now.subsec_nanos()) ^ (round << 32);
    println!("round {round}: seed {seed}");
    let dice = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407) >> 33;
    let mut running = child(test, path).spawn().unwrap();
    let mut stdout = BufReader::new(running.stdout.take().unwrap());
    let mut text = String::new();
    for _ in 0..=dice % 40 {
        if stdout.read_line(&mut text).unwrap() == 0 {
            break;
        }
    }
    let rest = Duration::from_micros(dice / 40 % 5_000);
    let at = Instant::now();
    while at.elapsed() < rest {
        std::hint::spin_loop();
    }
    running.kill().unwrap();
    // What was said before the kill is still in the pipe; the last line may be cut.
    stdout.read_to_string(&mut text).unwrap();
    running.wait().unwrap();
    let whole = text.rfind('\n').map_or("", |at| &text[..=at]);
    said(whole, "ACK ")
}

/// By burst: the most attempts that were acknowledged, and whether its end was.
fn furthest(acknowledged: &[String]) -> BTreeMap<&str, (usize, bool)> {
    let mut bursts = BTreeMap::new();
    for line in acknowledged {
        let (id, what) = line.split_once('/').unwrap();
        let (count, ended) = bursts.entry(id).or_insert((0, false));
        match what {
            "ended" => *ended = true,
            number => *count = number.parse::<usize>().unwrap().max(*count),
        }
    }
    bursts
}

/// Bursts of 300 attempts for ever; says what is on disk: `burst/attempts`, `burst/ended`.
#[test]
#[ignore = "child of no_acknowledged_attempt_is_lost_or_doubled_by_a_kill"]
fn write_for_ever() {
    let store = Store::open(&given_path()).unwrap();
    let sink = store.sink();
    let mut out = std::io::stdout();
    let process = std::process::id();
    for burst in 0.. {
        let id = format!("{process}-{burst}");
        let key = sink.begin_burst_blocking(&header(&id)).unwrap();
        writeln!(out, "ACK {id}/0").unwrap();
        for index in 0..300 {
            sink.attempt_blocking(key, full(index)).unwrap();
            if index % 50 == 49 && burst % 2 == 0 {
                sink.flush_blocking().unwrap();
                writeln!(out, "ACK {id}/{}", index + 1).unwrap();
            }
        }
        sink.end_burst_blocking(key, &end()).unwrap();
        writeln!(out, "ACK {id}/ended").unwrap();
    }
}

#[test]
fn no_acknowledged_attempt_is_lost_or_doubled_by_a_kill() {
    let dir = tempfile::tempdir().unwrap();
    // One store for all rounds: each begins on what the former kill left behind.
    let path = dir.path().join("s.db");
    let mut acknowledged = Vec::new();
    for round in 0..ROUNDS {
        acknowledged.extend(killed("kill::write_for_ever", &path, round));
        if !path.exists() {
            continue; // Killed before it had made the file.
        }
        let Ok(reader) = StoreReader::open(&path) else {
            assert!(acknowledged.is_empty(), "a store that had records cannot be opened");
            continue;
        };
        for (id, (count, ended)) in furthest(&acknowledged) {
            let burst = reader.burst(id).unwrap().unwrap_or_else(|| panic!("burst {id} is lost"));
            let attempts = reader.attempts(id).unwrap();
            assert!(attempts.len() >= count, "burst {id}: {count} acknowledged, {} are there", attempts.len());
            // In order, each once, each whole with its tries.
            assert_eq!(attempts, (0..u32::try_from(attempts.len()).unwrap()).map(full).collect::<Vec<_>>());
            if ended {
                assert_eq!((attempts.len(), burst.end), (300, Some(end())));
            }
        }
        let check: String = rusqlite::Connection::open(&path)
            .and_then(|c| c.query_row("PRAGMA integrity_check", [], |r| r.get(0)))
            .unwrap();
        assert_eq!(check, "ok");
    }
    assert!(acknowledged.len() > ROUNDS as usize, "the children said too little: {acknowledged:?}");
}

/// Rows for ever; says how many are written.
#[test]
#[ignore = "child of no_acknowledged_row_of_a_csv_file_is_lost_or_doubled_by_a_kill"]
fn append_for_ever() {
    let mut out = std::io::stdout();
    let id = std::process::id().to_string();
    let mut csv = CsvAppender::open(&given_path()).unwrap();
    for index in 0.. {
        csv.append(&header(&id), &full(index)).unwrap();
        writeln!(out, "ACK {id}/{}", index + 1).unwrap();
    }
}

#[test]
fn no_acknowledged_row_of_a_csv_file_is_lost_or_doubled_by_a_kill() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("lane.csv");
    let mut acknowledged = Vec::new();
    for round in 0..ROUNDS {
        acknowledged.extend(killed("kill::append_for_ever", &path, round));
        if acknowledged.is_empty() {
            continue;
        }
        let found = read(&path).unwrap();
        for (id, (count, _)) in furthest(&acknowledged) {
            let burst = found.bursts.iter().find(|b| b.header.id == id).unwrap();
            assert!(burst.figures.len() >= count, "{id}: {count} acknowledged, {} are there", burst.figures.len());
            let expected: Vec<_> =
                (0..u32::try_from(burst.figures.len()).unwrap()).map(|n| (&full(n)).into()).collect();
            assert_eq!(burst.figures, expected);
        }
        assert!(found.warnings.len() as u64 <= round + 1, "{:?}", found.warnings);
    }
    assert!(acknowledged.len() > ROUNDS as usize, "the children said too little");
}
