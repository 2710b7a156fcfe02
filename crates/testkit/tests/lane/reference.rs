//! The player against the reference server (`testdata/cases/replay_server.py`): the same raw bytes for every case.

use std::io::{BufRead, BufReader};
use std::process::{Child, Command, Stdio};

use peaklane_testkit::case::{Answer, Case, stream_cases};
use peaklane_testkit::data::{project_root, testdata};
use peaklane_testkit::net::CaseServer;
use peaklane_testkit::require;

use crate::raw::{post, tcp_exchange};

struct Reference {
    process: Child,
    port: u16,
}

impl Drop for Reference {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

fn start_reference() -> Reference {
    let mut process = Command::new("python3")
        .arg(project_root().join("testdata/cases/replay_server.py"))
        .args(["--port", "0", "--cases"])
        .arg(testdata("cases/stream"))
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut line = String::new();
    BufReader::new(process.stdout.take().unwrap()).read_line(&mut line).unwrap();
    // "replaying 66 cases on http://127.0.0.1:PORT/case/<id>/v1"
    let port = line.split("127.0.0.1:").nth(1).unwrap().split('/').next().unwrap().parse().unwrap();
    Reference { process, port }
}

/// Everything but ports and dates, which cannot be the same.
fn raw_answer(port: u16, case: &Case) -> String {
    let bytes = tcp_exchange(port, &post(&format!("/case/{}{}", case.id, case.request.path), "{}")).bytes();
    let text = String::from_utf8_lossy(&bytes).replace(&format!(":{port}/"), ":PORT/");
    let lines = text.split("\r\n").map(|l| if l.ends_with(" GMT") { l.split(',').next().unwrap() } else { l });
    lines.collect::<Vec<_>>().join("\r\n")
}

#[test]
fn every_case_goes_out_as_the_reference_server_sends_it() {
    let python = || Command::new("python3").arg("--version").output().is_ok_and(|o| o.status.success());
    let Some(()) = require::part("python3", "install python3", || python().then_some(())) else { return };
    let last = |a: &Answer| a.close.at_ms.or(a.steps.last().map(|s| s.at_ms)).unwrap_or(0.0);
    let mut cases = stream_cases();
    cases.retain(|c| c.answers().iter().all(|a| last(a) < 500.0));
    assert!(!cases.is_empty());
    let reference = start_reference();
    let ours = CaseServer::with(cases.clone()).unwrap();
    for some in cases.chunks(32) {
        std::thread::scope(|scope| {
            for case in some {
                let (theirs, ours) = (reference.port, ours.port());
                scope.spawn(move || {
                    for n in 0..case.answers().len() + 1 {
                        let (theirs, ours) = (raw_answer(theirs, case), raw_answer(ours, case));
                        assert!(theirs == ours, "{} request {n}:\n{theirs}\n--- ours\n{ours}", case.id);
                    }
                });
            }
        });
    }
}
