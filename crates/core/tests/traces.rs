//! Real agents' traffic gives the figures of an independent script, and the same when it is played call by call.

#![allow(clippy::unwrap_used, reason = "a test that panics has failed")]

use std::collections::BTreeMap;
use std::path::Path;

use peaklane_core::call::SessionBy;
use peaklane_core::lane::Api;
use peaklane_core::prefix::trace::{TraceCall, TraceSession, session_of};
use peaklane_core::prefix::{Bounds, Prompt, Sessions};
use peaklane_testkit::traces;
use serde_json::Value;

fn sessions(file: &Path) -> Vec<TraceSession> {
    let text = std::fs::read_to_string(file).unwrap();
    let mut calls: BTreeMap<String, Vec<TraceCall>> = BTreeMap::new();
    for line in text.lines().filter(|l| !l.trim().is_empty()) {
        let call = TraceCall::read(line).unwrap();
        calls.entry(call.session().to_owned()).or_default().push(call);
    }
    let name = file.file_name().unwrap().to_str().unwrap();
    calls.into_values().map(|calls| session_of(Some(name), calls).unwrap()).collect()
}

/// What `got` lacks or has otherwise than `want`; what only `got` has is ours.
fn differences(path: &str, want: &Value, got: &Value, wrong: &mut Vec<String>) {
    match (want, got) {
        (Value::Object(want), Value::Object(_)) => {
            for (key, value) in want {
                differences(&format!("{path}.{key}"), value, &got[key], wrong);
            }
        }
        (Value::Array(want), Value::Array(list)) if want.len() == list.len() => {
            for (n, (want, got)) in want.iter().zip(list).enumerate() {
                differences(&format!("{path}[{n}]"), want, got, wrong);
            }
        }
        _ => {
            let same = match (want.as_f64(), got.as_f64()) {
                // Rounded to four places on both sides.
                (Some(a), Some(b)) => (a - b).abs() < 1e-9,
                _ => want == got,
            };
            if !same {
                wrong.push(format!("{path}: want {want}, got {got}"));
            }
        }
    }
}

#[test]
fn every_trace_gives_the_figures_of_the_independent_script() {
    let Some(folder) = traces::folder() else { return };
    let expected: Vec<Value> =
        serde_json::from_str(&std::fs::read_to_string(folder.join("expected.json")).unwrap()).unwrap();
    assert!(!expected.is_empty());
    let mut wrong = Vec::new();
    for want in &expected {
        let file = want["file"].as_str().unwrap();
        let found = sessions(&folder.join(file)).into_iter().find(|s| Some(&*s.session) == want["session"].as_str());
        let got = serde_json::to_value(found.unwrap_or_else(|| panic!("{file} has no such session"))).unwrap();
        differences(file, want, &got, &mut wrong);
    }
    assert!(wrong.is_empty(), "{} differences:\n{}", wrong.len(), wrong.join("\n"));
}

#[test]
fn a_trace_played_call_by_call_gives_the_pairs_of_the_whole() {
    let Some(folder) = traces::folder() else { return };
    let mut played = 0;
    for entry in std::fs::read_dir(&folder).unwrap() {
        let path = entry.unwrap().path();
        if path.extension().is_none_or(|e| e != "jsonl") {
            continue;
        }
        let whole = sessions(&path);
        for named in [true, false] {
            let mut live = Sessions::new(Bounds::default(), "auto-");
            let mut pairs = Vec::new();
            for (n, line) in std::fs::read_to_string(&path).unwrap().lines().enumerate() {
                let line: Value = serde_json::from_str(line).unwrap();
                let api: Api = line["api"].as_str().unwrap().parse().unwrap();
                let prompt = Prompt::from_body(api, line["body"].to_string().as_bytes()).unwrap();
                let name = named.then(|| (SessionBy::Path, line["session"].as_str().unwrap().to_owned()));
                let placed = live.enter(name, prompt, n as u64 * 1_000);
                if let (Some(common), false) = (placed.figures.common_bytes, placed.figures.helper) {
                    pairs.push((common, placed.figures.former_bytes.unwrap(), placed.figures.prompt_bytes));
                }
            }
            let [session] = &whole[..] else { panic!("one session a file") };
            let want: Vec<_> = session.pair_list.iter().map(|p| (p.common, p.a_bytes, p.b_bytes)).collect();
            if named {
                assert_eq!(pairs, want, "{}", path.display());
            } else {
                // Without names a session may fall apart where its harness rewrites the history; nothing else is joined.
                assert!(pairs.iter().all(|pair| want.contains(pair)), "{}", path.display());
                assert!(!session.breaks.is_empty() || pairs == want, "{}: {pairs:?}", path.display());
            }
            played += 1;
        }
    }
    assert!(played > 0);
}
