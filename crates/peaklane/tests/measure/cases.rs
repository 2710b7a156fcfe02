//! Every stream case through the real binary: `peaklane try --format json` over real sockets.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use peaklane_core::lane::Api;
use peaklane_testkit::binary::{Ran, Sandbox};
use peaklane_testkit::case::{Case, stream_cases};
use peaklane_testkit::expect::{SERVER_LATE_MS, Seen, Tolerance, compare, compare_then};
use peaklane_testkit::net::CaseServer;
use serde_json::Value;

use crate::support::{BINARY, KEY};

/// The README of the cases judges times with at most this many at once.
const AT_ONCE: usize = 4;
/// A measurement on a machine that was late is made again, at most this often.
const REPEATS: u32 = 3;

fn words(server: &CaseServer, case: &Case, key: &str) -> Vec<String> {
    let api = Api::from(case.api);
    // As a user would write it: with /v1 for the OpenAI APIs, without for Anthropic's.
    let base = if api == Api::Messages { server.root_url(key) } else { server.base_url(key) };
    let mut words = vec!["try", "--format", "json", "--model", "lane-model", "--api", api.name(), "--base-url", &base]
        .into_iter()
        .map(str::to_owned)
        .collect::<Vec<_>>();
    if !case.request.stream {
        words.push("--no-stream".to_owned());
    }
    let limits = [
        ("--first-byte-timeout", case.client.first_byte_timeout_ms),
        ("--idle-timeout", case.client.idle_timeout_ms),
        ("--total-timeout", case.client.total_timeout_ms),
    ];
    for (flag, ms) in limits {
        words.extend(ms.into_iter().flat_map(|ms| [flag.to_owned(), format!("{ms}ms")]));
    }
    words
}

/// The one object of standard output; 0 where something was answered, else 3.
fn object(case: &Case, ran: &Ran) -> Result<Value, String> {
    let value: Value =
        serde_json::from_str(&ran.stdout).map_err(|e| format!("{}: stdout is not one object: {e}", case.id))?;
    let answered = value["outcome"] == "ok"
        || !value["ttft_at_ms"].is_null()
        || (value["outcome"] == "no_answer" && value["usage"]["completion"].as_u64().is_some_and(|n| n > 0));
    let want = if answered { 0 } else { 3 };
    if !value.is_object() || ran.code != Some(want) {
        return Err(format!("{}: exit code {:?}, want {want}: {}", case.id, ran.code, ran.stderr));
    }
    Ok(value)
}

/// `Ok(false)`: the machine was late at each repeat, no verdict about the binary.
fn judge(server: &CaseServer, case: &Case, sandbox: &Sandbox) -> Result<bool, String> {
    let mut repeat = 0;
    loop {
        let key = format!("{}@{repeat}", case.id);
        let value = object(case, &sandbox.run(words(server, case, &key)))?;
        let seen = Seen::from_json(&value).map_err(|problem| format!("{}: {problem}", case.id))?;
        let wrong = compare(&case.expected, &seen, Tolerance::Socket);
        let own = format!("127.0.0.1:{}", server.port());
        for request in server.log().of(&key) {
            let here = request.header("host") == Some(own.as_str());
            let carried = request.credential().is_some_and(|sent| sent.contains(KEY));
            if here != carried {
                return Err(format!("{}: a key at the lane: {here}, a key sent: {carried}", case.id));
            }
        }
        if wrong.is_empty() {
            return Ok(true);
        }
        let own_ms = value["own_lag_ms"].as_f64().unwrap_or_default();
        if server.log().worst_late_ms(&key).max(own_ms) <= SERVER_LATE_MS {
            return Err(format!("{}: {}", case.id, wrong.join("; ")));
        }
        repeat += 1;
        if repeat > REPEATS {
            return Ok(false);
        }
        std::thread::sleep(Duration::from_millis(100));
    }
}

/// Runs something for each case, a few at once, each worker in a sandbox of its own; the key is in no output and no file.
fn for_each<T: Send>(cases: &[Case], run: impl Fn(&Case, &Sandbox) -> T + Sync) -> Vec<T> {
    let next = AtomicUsize::new(0);
    let worker = || {
        let sandbox = Sandbox::new(BINARY).env("LLM_API_KEY", KEY);
        let mut done = Vec::new();
        while let Some(case) = cases.get(next.fetch_add(1, Ordering::Relaxed)) {
            done.push(run(case, &sandbox));
        }
        sandbox.assert_never_said(KEY, &[]);
        done
    };
    std::thread::scope(|scope| {
        let workers: Vec<_> = (0..AT_ONCE).map(|_| scope.spawn(worker)).collect();
        workers.into_iter().flat_map(|worker| worker.join().unwrap()).collect()
    })
}

#[test]
fn every_stream_case_is_reported_by_the_binary_as_one_object_with_the_values_of_the_case() {
    let cases = stream_cases();
    let server = CaseServer::with(cases.clone()).unwrap();
    let judged = for_each(&cases, |case, sandbox| judge(&server, case, sandbox));
    let wrong: Vec<&String> = judged.iter().filter_map(|one| one.as_ref().err()).collect();
    assert!(wrong.is_empty(), "{} of {} cases are wrong:\n{wrong:#?}", wrong.len(), cases.len());
    // Nothing is learnt on a machine that is late all the time, and that must not pass for "right".
    let void = judged.iter().filter(|one| matches!(one, Ok(false))).count();
    assert!(void * 4 <= cases.len(), "this machine was too late to judge {void} of {} cases", cases.len());
}

#[test]
fn retries_reach_what_the_case_says_and_each_try_is_one_request() {
    let cases: Vec<Case> = stream_cases().into_iter().filter(|case| case.expected.then.is_some()).collect();
    let server = CaseServer::with(cases.clone()).unwrap();
    let wrong: Vec<String> = for_each(&cases, |case, sandbox| {
        let then = case.expected.then.as_ref().expect("the cases were chosen by it");
        let key = format!("{}@then", case.id);
        let mut words = words(&server, case, &key);
        words.extend(["--retries".to_owned(), "4".to_owned()]);
        let value = object(case, &sandbox.run(words))?;
        let seen = Seen::from_json(&value).map_err(|problem| format!("{}: {problem}", case.id))?;
        let mut wrong = compare_then(then, &seen);
        let requests = server.log().of(&key).len() as u64;
        let tries = value["tries"].as_array().map_or(0, Vec::len) as u64;
        if requests != seen.retries + 1 || tries != requests {
            wrong.push(format!("{requests} requests, {tries} tries, {} retries", seen.retries));
        }
        if wrong.is_empty() { Ok(()) } else { Err(format!("{} then: {}", case.id, wrong.join("; "))) }
    })
    .into_iter()
    .filter_map(|one: Result<(), String>| one.err())
    .collect();
    assert!(wrong.is_empty(), "{wrong:#?}");
}
