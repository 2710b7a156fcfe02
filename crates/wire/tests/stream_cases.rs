//! Every stream case against the client, in memory on a paused clock, where times are exact.

#![allow(clippy::unwrap_used, reason = "a test that panics has failed")]

mod support;

use std::time::Duration;

use peaklane_core::lane::Api;
use peaklane_core::secret::Secret;
use peaklane_testkit::case::{Case, CaseApi, stream_cases};
use peaklane_testkit::expect::{Seen, Tolerance, compare, compare_then};
use peaklane_testkit::net::MemoryNet;
use peaklane_testkit::player::CasePlayer;
use peaklane_wire::client::Limits;
use peaklane_wire::retry::{RetryPolicy, attempt};

fn api_of(case: &Case) -> Api {
    match case.api {
        CaseApi::Chat => Api::Chat,
        CaseApi::Completions => Api::Completions,
        CaseApi::Messages => Api::Messages,
        CaseApi::Responses => Api::Responses,
    }
}

fn limits_of(case: &Case) -> Limits {
    let ms = |ms: Option<u64>, generous: Duration| ms.map_or(generous, Duration::from_millis);
    let generous = support::generous();
    Limits {
        first_byte: ms(case.client.first_byte_timeout_ms, generous.first_byte),
        idle: ms(case.client.idle_timeout_ms, generous.idle),
        total: ms(case.client.total_timeout_ms, generous.total),
    }
}

#[tokio::test(start_paused = true)]
async fn every_stream_case_is_measured_exactly_on_a_paused_clock() {
    let cases = stream_cases();
    let player = CasePlayer::new(cases.clone());
    let net = MemoryNet::with_cases(&player);
    let mut wrong = Vec::new();
    for case in &cases {
        let api = api_of(case);
        let mut target = support::target(&player_base(&net, case), api);
        target.key = Some(Secret::new("sk-a-key-that-must-not-travel").unwrap());
        let client = support::client_on(&net);
        let body = support::body(api, case.request.stream);
        let tried = client.try_once(&target, &body, None, &limits_of(case)).await;
        let differences = compare(&case.expected, &Seen::from(&tried.record), Tolerance::Exact);
        if !differences.is_empty() {
            wrong.push(format!("{}: {}\n    {:?}", case.id, differences.join("; "), tried.record));
        }
        for received in player.log().of(&case.id) {
            let on_lane = received.header("host") == Some("127.0.0.1:8099");
            assert!(on_lane || received.credential().is_none(), "{}: the key went to another host", case.id);
            assert_eq!(received.body, body, "{}: method and body are kept", case.id);
        }
        if let Some(then) = &case.expected.then {
            let policy = RetryPolicy { max_retries: 4, ..RetryPolicy::default() };
            let mut again = target.clone();
            again.endpoint = support::target(&format!("http://127.0.0.1:8099/case/{}@then/v1", case.id), api).endpoint;
            let attempted = attempt(&client, &again, &body, None, &limits_of(case), &policy, || 0.5).await;
            let mut seen = Seen::from(&attempted.tries.last().unwrap().record);
            seen.retries = attempted.tries.len() as u64 - 1;
            let differences = compare_then(then, &seen);
            if !differences.is_empty() {
                wrong.push(format!("{} then: {}", case.id, differences.join("; ")));
            }
        }
    }
    assert!(wrong.is_empty(), "{} of {} cases are wrong:\n{}", wrong.len(), cases.len(), wrong.join("\n"));
}

fn player_base(_net: &MemoryNet, case: &Case) -> String {
    // As a user would write it: with /v1 for the OpenAI APIs, without for Anthropic's.
    let suffix = if api_of(case) == Api::Messages { "" } else { "/v1" };
    format!("http://127.0.0.1:8099/case/{}{suffix}", case.id)
}

#[tokio::test(start_paused = true)]
async fn every_case_takes_one_connection_and_one_request_unless_it_redirects() {
    for case in stream_cases() {
        let player = CasePlayer::new(vec![case.clone()]);
        let net = MemoryNet::with_cases(&player);
        let client = support::client_on(&net);
        let api = api_of(&case);
        let target = support::target(&player_base(&net, &case), api);
        let body = support::body(api, case.request.stream);
        let tried = client.try_once(&target, &body, None, &limits_of(&case)).await;
        let requests = player.log().of(&case.id).len() as u32;
        assert_eq!(requests, 1 + tried.record.redirects, "{}: something was sent again", case.id);
    }
}
