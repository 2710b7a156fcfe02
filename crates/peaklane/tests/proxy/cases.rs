//! The shorter stream cases through the program: bytes at the client, figures in the store.

use peaklane_core::lane::Api;
use peaklane_testkit::case::{Answer, Case, stream_cases};
use peaklane_testkit::net::CaseServer;
use sha2::{Digest, Sha256};

use crate::support::{Proxy, body_of, sandbox, summary};

/// The smaller set: cases whose script is over within this time.
const LONGEST_MS: f64 = 1_000.0;

fn is_short(case: &Case) -> bool {
    let script = |answer: &Answer| {
        answer.steps.iter().map(|s| s.at_ms).chain(answer.close.at_ms).fold(answer.head_at_ms(), f64::max)
    };
    case.answers().iter().all(|answer| script(answer) < LONGEST_MS) && case.client == Default::default()
}

fn request(case: &Case) -> Vec<u8> {
    // The session is the case; the lane is its upstream.
    let body = format!("{{\"model\":\"m\",\"stream\":{},\"messages\":[]}}", case.request.stream);
    format!(
        "{} /s/{id}/lane/{id}{} HTTP/1.1\r\nHost: p\r\nConnection: close\r\nContent-Length: {}\r\n\r\n{body}",
        case.request.method,
        case.request.path,
        body.len(),
        id = case.id
    )
    .into_bytes()
}

#[test]
fn every_short_case_comes_through_the_program_and_is_recorded_as_it_was() {
    let cases: Vec<Case> = stream_cases().into_iter().filter(is_short).collect();
    assert!(!cases.is_empty());
    let server = CaseServer::start().unwrap();
    let sandbox = sandbox();
    let upstream = |case: &Case| {
        let base =
            if Api::from(case.api) == Api::Messages { server.root_url(&case.id) } else { server.base_url(&case.id) };
        format!("{}={base}", case.id)
    };
    let more: Vec<String> = cases.iter().skip(1).flat_map(|c| ["--upstream".to_owned(), upstream(c)]).collect();
    let more: Vec<&str> = more.iter().map(String::as_str).collect();
    let proxy = Proxy::start(&sandbox, &upstream(&cases[0]), &more);
    let mut wrong = Vec::new();
    for case in &cases {
        let mut answer = Vec::new();
        for _ in case.answers() {
            answer = proxy.talk(&request(case));
        }
        let body = body_of(&answer);
        let truth = case.proxy.as_ref().unwrap();
        let sha: String = Sha256::digest(&body).iter().map(|b| format!("{b:02x}")).collect();
        if (body.len() as u64, sha) != (truth.body_len, truth.body_sha256.clone()) {
            wrong.push(format!("{}: {} bytes instead of {}", case.id, body.len(), truth.body_len));
        }
    }
    let ran = proxy.stop().expect_code(0);
    assert!(!ran.stderr.contains("panic") && !ran.stderr.contains("could not be recorded"), "{}", ran.stderr);
    let calls = summary(&sandbox, &["calls"]);
    for case in &cases {
        let of_case: Vec<_> = calls.iter().filter(|c| c["session"] == case.id.as_str()).collect();
        if of_case.len() != case.answers().len() {
            wrong.push(format!("{}: {} calls on record", case.id, of_case.len()));
            continue;
        }
        if case.expected.redirects.is_some_and(|n| n > 0) || case.answers().len() > 1 {
            continue;
        }
        let outcome = of_case[0]["outcome"].as_str().unwrap().to_owned();
        let right = case.expected.outcome == outcome || case.expected.accept_also.contains(&outcome);
        if !right {
            wrong.push(format!("{}: recorded as {outcome}", case.id));
        }
    }
    assert!(wrong.is_empty(), "{} of {} cases are wrong:\n{}", wrong.len(), cases.len(), wrong.join("\n"));
}
