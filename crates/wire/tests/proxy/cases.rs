//! Every stream case through the proxy: the bytes of the case at the client, the figures of the direct client at the tap.

use std::time::Duration;

use peaklane_core::call::Delivery;
use peaklane_core::lane::Api;
use peaklane_testkit::case::{Case, stream_cases};
use peaklane_testkit::expect::{Seen, Tolerance, compare};
use peaklane_testkit::net::MemoryNet;
use peaklane_testkit::player::CasePlayer;
use peaklane_wire::client::Limits;
use peaklane_wire::proxy::{OnDisconnect, Policy};
use sha2::{Digest, Sha256};
use tokio::io::AsyncWriteExt;

use crate::stage::{Stage, patient};

fn limits_of(case: &Case) -> Limits {
    let ms = |ms: Option<u64>, generous: Duration| ms.map_or(generous, Duration::from_millis);
    let generous = patient().limits;
    Limits {
        first_byte: ms(case.client.first_byte_timeout_ms, generous.first_byte),
        idle: ms(case.client.idle_timeout_ms, generous.idle),
        total: ms(case.client.total_timeout_ms, generous.total),
    }
}

fn request(case: &Case) -> Vec<u8> {
    let stream = case.request.stream;
    let body = format!("{{\"model\":\"lane-model\",\"stream\":{stream},\"messages\":[],\"text\":\"Grüße\"}}");
    format!(
        "{} {} HTTP/1.1\r\nHost: proxy\r\nContent-Type: application/json\r\nConnection: close\r\n\
         X-Odd-Case: Kept\r\nContent-Length: {}\r\n\r\n{body}",
        case.request.method,
        case.request.path,
        body.len(),
    )
    .into_bytes()
}

fn base(case: &Case) -> String {
    let suffix = if Api::from(case.api) == Api::Messages { "" } else { "/v1" };
    format!("http://127.0.0.1:8099/case/{}{suffix}", case.id)
}

fn hex(bytes: &[u8]) -> String {
    Sha256::digest(bytes).iter().map(|b| format!("{b:02x}")).collect()
}

#[tokio::test(start_paused = true)]
async fn every_stream_case_comes_through_byte_for_byte() {
    let cases = stream_cases();
    let mut wrong = Vec::new();
    for case in &cases {
        let player = CasePlayer::new(vec![case.clone()]);
        let net = MemoryNet::with_cases(&player);
        let stage = Stage::before(&net, &base(case), patient());
        let mut answer = stage.talk(&request(case)).await;
        for _ in 1..case.answers().len() {
            answer = stage.talk(&request(case)).await;
        }
        let truth = case.proxy.as_ref().expect("every case says what a proxy delivers");
        let body = answer.body();
        if (body.len() as u64, hex(&body)) != (truth.body_len, truth.body_sha256.clone()) {
            wrong.push(format!("{}: {} bytes instead of {}", case.id, body.len(), truth.body_len));
        }
        let last = case.answers().last().unwrap().status;
        if answer.status() != last {
            wrong.push(format!("{}: status {:?} instead of {last:?}", case.id, answer.status()));
        }
        let sent = player.log().of(&case.id);
        let got = &sent.last().unwrap();
        assert_eq!(got.header("x-odd-case"), Some("Kept"), "{}", case.id);
        assert!(request(case).ends_with(&got.body) && !got.body.is_empty(), "{}: the request is kept", case.id);
        // Headers in their order and spelling, each with its value.
        let head = answer.head();
        let mut from = 0;
        for (name, value) in &case.answers().last().unwrap().headers {
            let fixed = !value.contains('{') && !name.eq_ignore_ascii_case("connection");
            let line = format!("{name}: {value}\r\n");
            match head[from..].find(&line) {
                Some(at) => from += at + line.len(),
                None if fixed => wrong.push(format!("{}: header {name} is not as sent", case.id)),
                None => {}
            }
        }
    }
    assert!(wrong.is_empty(), "{} of {} cases are wrong:\n{}", wrong.len(), cases.len(), wrong.join("\n"));
}

#[tokio::test(start_paused = true)]
async fn every_stream_case_is_measured_in_passing_as_by_the_direct_client() {
    let cases = stream_cases();
    let mut wrong = Vec::new();
    for case in &cases {
        let player = CasePlayer::new(vec![case.clone()]);
        let net = MemoryNet::with_cases(&player);
        let policy = Policy { limits: limits_of(case), ..patient() };
        let stage = Stage::before(&net, &base(case), policy);
        stage.talk(&request(case)).await;
        let ended = stage.notes.only();
        let told = stage.notes.asked.lock().unwrap().pop().unwrap();
        assert!(request(case).ends_with(&told.body.unwrap()), "{}: the tap saw the request", case.id);
        assert_eq!(told.number, ended.number);
        if case.expected.redirects.is_some_and(|n| n > 0) {
            // The client follows it, or not: what passed here is the redirect itself.
            assert!(ended.record.http_status.is_some_and(|s| (300..400).contains(&s)), "{}", case.id);
            continue;
        }
        let differences = compare(&case.expected, &Seen::from(&ended.record), Tolerance::Exact);
        if !differences.is_empty() {
            wrong.push(format!("{}: {}\n    {:?}", case.id, differences.join("; "), ended.record));
        }
    }
    assert!(wrong.is_empty(), "{} of {} cases are wrong:\n{}", wrong.len(), cases.len(), wrong.join("\n"));
}

#[tokio::test(start_paused = true)]
async fn every_case_arrives_at_the_moment_at_which_it_was_sent_and_not_a_read_later() {
    for case in stream_cases() {
        let player = CasePlayer::new(vec![case.clone()]);
        let net = MemoryNet::with_cases(&player);
        let stage = Stage::before(&net, &base(&case), patient());
        let answer = stage.talk(&request(&case)).await;
        let entry = player.log().of(&case.id).pop().unwrap();
        // The head and the last chunk, or the close, may be pieces of their own.
        let ends = [case.answers()[0].close.at_ms, Some(case.answers()[0].head_at_ms())];
        let sent: Vec<u64> =
            entry.sent_ms.iter().copied().chain(ends.into_iter().flatten()).map(|ms| ms as u64).collect();
        for (at, _) in &answer.pieces {
            let near = sent.iter().any(|ms| at.abs_diff(*ms) <= 1) || answer.pieces.len() == 1;
            assert!(near, "{}: a piece came at {at} ms, sent at {sent:?}", case.id);
        }
    }
}

#[tokio::test(start_paused = true)]
async fn every_case_is_closed_upstream_within_a_second_when_its_client_leaves_and_read_to_its_end_in_drain() {
    for case in stream_cases() {
        let answers = case.answers();
        let last_ms = answers[0].steps.iter().map(|s| s.at_ms).fold(answers[0].head_at_ms(), f64::max);
        if answers[0].status != Some(200) || last_ms < 20.0 {
            continue;
        }
        for on_disconnect in [OnDisconnect::Close, OnDisconnect::Drain] {
            let player = CasePlayer::new(vec![case.clone()]);
            let net = MemoryNet::with_cases(&player);
            let stage = Stage::before(&net, &base(&case), Policy { on_disconnect, ..patient() });
            let mut io = stage.connect();
            io.write_all(&request(&case)).await.unwrap();
            tokio::time::sleep(Duration::from_millis(5)).await;
            drop(io);
            tokio::time::sleep(Duration::from_secs(600)).await;
            let ended = stage.notes.only();
            let entry = player.log().of(&case.id).pop().unwrap();
            if on_disconnect == OnDisconnect::Drain {
                assert_eq!(ended.delivery, Delivery::Drained, "{}", case.id);
                let differences = compare(&case.expected, &Seen::from(&ended.record), Tolerance::Exact);
                let limited = case.client != Default::default();
                assert!(differences.is_empty() || limited, "{}: {differences:?}", case.id);
            } else {
                assert_eq!(ended.delivery, Delivery::ClientLeft, "{}", case.id);
                let closed = entry.client_closed_ms.expect("the upstream saw the client go");
                assert!(closed <= last_ms + 1.0 && closed <= 1_005.0 || closed <= last_ms, "{}: {closed}", case.id);
            }
        }
    }
}
