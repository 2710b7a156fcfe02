//! CSV files: rows, cut rows, other people's rows.

use std::fs;
use std::path::Path;

use peaklane_core::attempt::{AttemptRecord, Verdict};
use peaklane_core::burst::{AttemptFigures, BurstState};
use peaklane_store::csv::{COLUMNS, CsvAppender, CsvError, read};

use crate::support::{bare, full, header};

fn written(path: &Path, rows: &[(&str, AttemptRecord)]) -> String {
    let mut csv = CsvAppender::open(path).unwrap();
    for (id, attempt) in rows {
        csv.append(&header(id), attempt).unwrap();
    }
    fs::read_to_string(path).unwrap()
}

/// The numbers of the attempts in the only burst of a file; `full(n)` has `n` in its latency.
fn numbers(path: &Path) -> Vec<u64> {
    let found = read(path).unwrap();
    found.bursts.iter().flat_map(|b| &b.figures).map(|f| f.latency_us - 2_000_000).collect()
}

#[test]
fn rows_come_back_as_bursts_with_all_of_their_header() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("lane.csv");
    let warmup = AttemptRecord { warmup: true, ..full(0) };
    let text = written(&path, &[("b-1", full(1)), ("b-1", warmup), ("b-2", bare(0)), ("b-1", bare(0))]);
    assert_eq!(text.lines().count(), 5);
    assert!(text.ends_with('\n'));
    let found = read(&path).unwrap();
    assert_eq!(found.warnings, []);
    assert_eq!(found.bursts.len(), 2);
    assert_eq!((&found.bursts[0].header, &found.bursts[1].header), (&header("b-1"), &header("b-2")));
    assert_eq!(found.bursts[0].figures, [AttemptFigures::from(&bare(0)), AttemptFigures::from(&full(1))]);
    assert_eq!(found.bursts[1].figures, [AttemptFigures::from(&bare(0))]);
    assert_eq!(found.bursts[0].state, BurstState::Running);
}

#[test]
fn a_burst_is_complete_with_all_planned_rows_and_void_with_a_finding() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("lane.csv");
    let rows: Vec<_> = (0..8).map(|n| ("b", full(n))).collect();
    written(&path, &rows);
    assert_eq!(read(&path).unwrap().bursts[0].state, BurstState::Complete);
    written(&path, &[("c", AttemptRecord { verdict: Verdict::ConfigFinding, ..full(0) })]);
    assert_eq!(read(&path).unwrap().bursts[1].state, BurstState::Void);
}

#[test]
fn a_row_that_was_cut_at_any_byte_is_skipped_with_its_line_and_the_next_rows_are_whole() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("lane.csv");
    let text = written(&path, &[("b", full(0)), ("b", full(1))]);
    let second = text.len() - text.lines().last().unwrap().len() - 1;
    for cut in second..text.len() {
        fs::write(&path, &text.as_bytes()[..cut]).unwrap();
        // Without its line end a row is whole; with any byte less it is not there.
        let whole = cut == text.len() - 1;
        let before = read(&path).unwrap();
        let lines: Vec<u64> = before.warnings.iter().map(|w| w.line).collect();
        assert_eq!(lines, if whole || cut == second { vec![] } else { vec![3] }, "cut at {cut}");
        assert_eq!(numbers(&path), if whole { vec![0, 1] } else { vec![0] }, "cut at {cut}");

        written(&path, &[("b", full(2))]);
        let after = read(&path).unwrap();
        assert_eq!(after.warnings, before.warnings, "cut at {cut}");
        assert_eq!(numbers(&path), if whole { vec![0, 1, 2] } else { vec![0, 2] }, "cut at {cut}");
    }
}

#[test]
fn a_row_that_another_process_cut_meanwhile_does_not_swallow_ours() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("lane.csv");
    let mut csv = CsvAppender::open(&path).unwrap();
    csv.append(&header("b"), &full(0)).unwrap();
    let mut text = fs::read_to_string(&path).unwrap();
    text.push_str("0.1.0,\"half a");
    fs::write(&path, text).unwrap();
    csv.append(&header("b"), &full(1)).unwrap();
    assert_eq!(numbers(&path), [0, 1]);
    assert_eq!(read(&path).unwrap().warnings.len(), 1);
}

#[test]
fn a_header_that_was_cut_at_any_byte_is_written_again() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("lane.csv");
    let text = written(&path, &[("b", full(0))]);
    let header_line = text.lines().next().unwrap();
    for cut in 0..=header_line.len() {
        fs::write(&path, &header_line[..cut]).unwrap();
        if cut > 0 && cut < header_line.len() {
            let found = read(&path).unwrap();
            assert_eq!((found.bursts.len(), found.warnings.len()), (0, 1), "cut at {cut}");
        }
        assert_eq!(written(&path, &[("b", full(0))]), text, "cut at {cut}");
    }
}

#[test]
fn a_file_that_is_removed_while_it_is_written_is_made_again() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("lane.csv");
    let mut csv = CsvAppender::open(&path).unwrap();
    csv.append(&header("b"), &full(0)).unwrap();
    fs::rename(&path, dir.path().join("old.csv")).unwrap();
    csv.append(&header("b"), &full(1)).unwrap();
    assert_eq!(numbers(&path), [1]);
    assert_eq!(numbers(&dir.path().join("old.csv")), [0]);
    // Emptied by `> lane.csv`: the header comes back.
    fs::write(&path, "").unwrap();
    csv.append(&header("b"), &full(2)).unwrap();
    assert_eq!(numbers(&path), [2]);
}

#[test]
fn other_columns_are_refused_for_appending_with_the_difference_named() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("lane.csv");
    let swapped = {
        let mut names = COLUMNS.to_vec();
        names.swap(2, 3);
        names.join(",")
    };
    for (text, part) in [
        ("time,latency\n1,2\n".to_owned(), "has `time`, `latency`"),
        (COLUMNS[1..].join(",") + "\n", "lacks `tool_version`"),
        (COLUMNS.join(",") + ",mine\n", "1 more than ours"),
        (swapped + "\n", "`lane` stands where `run` belongs"),
        ("no columns at all".to_owned(), "has `no columns at all`"),
    ] {
        fs::write(&path, &text).unwrap();
        let error = CsvAppender::open(&path).unwrap_err();
        assert!(error.to_string().contains(part), "{error}");
        assert!(error.to_string().contains("lane.csv"), "{error}");
        assert!(error.hint().is_some());
        assert_eq!(fs::read_to_string(&path).unwrap(), text);
    }
    fs::write(&path, COLUMNS.join(";")).unwrap();
    assert!(CsvAppender::open(&path).unwrap_err().hint().unwrap().contains('`'));
}

#[test]
fn a_file_with_moved_missing_and_unknown_columns_is_read_where_nothing_needed_is_missing() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("lane.csv");
    let text = written(&path, &[("b", full(0)), ("b", full(1))]);
    // The columns backwards, `message` (the only one with an escaped field here besides) dropped, one added.
    let lines: Vec<String> = text
        .lines()
        .enumerate()
        .map(|(n, line)| {
            let safe = line.replace("\"a model, really\"", "m").replace("\"a note, with a comma\"", "n");
            let mut fields: Vec<&str> = safe.split(',').collect();
            assert_eq!(fields.len(), COLUMNS.len());
            let message = COLUMNS.iter().position(|c| *c == "message").unwrap();
            fields.remove(message);
            fields.push(if n == 0 { "mine" } else { "x" });
            fields.reverse();
            fields.join(",")
        })
        .collect();
    fs::write(&path, lines.join("\r\n")).unwrap();
    let found = read(&path).unwrap();
    assert_eq!(found.bursts[0].header, header("b"));
    assert_eq!(found.bursts[0].figures, [AttemptFigures::from(&full(0)), AttemptFigures::from(&full(1))]);
    assert_eq!(found.warnings.len(), 1);
    assert!(found.warnings[0].message.contains("`mine`"), "{:?}", found.warnings);

    let lacking = lines.join("\n").replace("latency_us", "latency_ms");
    fs::write(&path, lacking).unwrap();
    let error = read(&path).unwrap_err();
    assert!(error.to_string().contains("lacks `latency_us`"), "{error}");
}

#[test]
fn a_byte_order_mark_and_windows_line_ends_change_nothing() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("lane.csv");
    let text = written(&path, &[("b", full(0)), ("b", full(1))]);
    fs::write(&path, format!("\u{feff}{}", text.replace('\n', "\r\n"))).unwrap();
    assert_eq!(numbers(&path), [0, 1]);
    written(&path, &[("b", full(2))]);
    assert_eq!(numbers(&path), [0, 1, 2]);
    assert_eq!(read(&path).unwrap().warnings, []);
}

#[test]
fn a_value_that_cannot_be_true_is_an_error_with_line_and_column() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("lane.csv");
    let text = written(&path, &[("b", full(0)), ("b", full(1))]);
    for (from, to, part) in [
        ("2000001,", "-5,", "column `latency_us` is `-5`"),
        ("2000001,", "NaN,", "column `latency_us` is `NaN`"),
        ("2000001,", "2000001.5,", "column `latency_us` is `2000001.5`"),
        ("2000001,", "99999999999999999999,", "column `latency_us`"),
        ("2000001,", ",", "column `latency_us` is ``"),
        ("pass,ok,2000001", "passed,ok,2000001", "column `verdict` is `passed`"),
        ("pass,ok,2000001", "pass,fine,2000001", "column `outcome` is `fine`"),
        ("pass,ok,2000001", "pass,o\"k,2000001", "quote"),
        ("pass,ok,2000001", "pass,ok,2000001,2000001", "has 63 fields, the header has 62"),
    ] {
        assert_eq!(text.matches(from).count(), 1, "{from}");
        fs::write(&path, text.replace(from, to)).unwrap();
        let error = read(&path).unwrap_err();
        assert!(error.to_string().starts_with("line 3 of "), "{error}");
        assert!(error.to_string().contains(part), "{error}");
        assert!(error.hint().is_some());
    }
    // The other format is no cut row.
    let newer = text.trim_end().strip_suffix("v1").unwrap().to_owned() + "v2\n";
    fs::write(&path, newer).unwrap();
    assert!(read(&path).unwrap_err().to_string().contains("`v2`"));
    // One burst has one floor.
    let at = text.rfind("25000000").unwrap();
    fs::write(&path, format!("{}24000000{}", &text[..at], &text[at + 8..])).unwrap();
    let error = read(&path).unwrap_err().to_string();
    assert!(error.contains("`24000000` in column `floor_us`, but `25000000` on line 2"), "{error}");
}

#[test]
fn a_row_that_is_there_twice_counts_once_and_a_contradiction_is_an_error() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("lane.csv");
    let text = written(&path, &[("b", full(0)), ("b", full(1))]);
    // Two files of the same bursts put together with `cat`.
    fs::write(&path, text.repeat(2)).unwrap();
    assert_eq!(numbers(&path), [0, 1]);
    assert_eq!(read(&path).unwrap().warnings.iter().map(|w| w.line).collect::<Vec<_>>(), [4, 5, 6]);
    fs::write(&path, text.clone() + &text.replace("2000001,", "2000009,")).unwrap();
    let error = read(&path).unwrap_err().to_string();
    assert!(error.starts_with("line 6 of ") && error.contains("line 3 already"), "{error}");
}

#[test]
fn what_is_no_csv_file_is_an_error_that_says_so() {
    let dir = tempfile::tempdir().unwrap();
    assert!(matches!(read(dir.path()), Err(CsvError::Folder { .. })));
    let path = dir.path().join("lane.csv");
    let missing = read(&path).unwrap_err();
    assert!(missing.to_string().contains("lane.csv") && missing.hint().is_some());
    fs::write(&path, "").unwrap();
    assert!(matches!(read(&path), Err(CsvError::Empty { .. })));
    fs::write(&path, vec![b'x'; 3 << 20]).unwrap();
    assert!(read(&path).unwrap_err().to_string().contains("longer than"));
    fs::write(&path, b"\xff\xfet\0i\0m\0e\0").unwrap();
    assert!(read(&path).unwrap_err().to_string().contains("UTF-16"));
    fs::write(&path, b"caf\xe9,x\n1,2\n").unwrap();
    assert!(read(&path).unwrap_err().to_string().contains("no UTF-8"));
    fs::write(&path, COLUMNS.join(",") + "\n").unwrap();
    assert_eq!(read(&path).unwrap().bursts, []);
}
