//! Every recording of a real server replayed through the client gives the values of its index.

#![allow(clippy::unwrap_used, reason = "a test that panics has failed")]

mod support;

use bytes::Bytes;
use peaklane_core::lane::Api;
use peaklane_core::outcome::Outcome;
use peaklane_testkit::net::MemoryNet;
use peaklane_testkit::recorded::{EndHow, Recording, recordings};
use peaklane_testkit::replay::RecordedPlayer;
use peaklane_wire::client::Target;
use peaklane_wire::endpoint::Endpoint;

/// Timers have a grain of 1 ms, recordings one of 1 us: played a thousand times slower, every moment is exact.
const SLOWER: u32 = 1_000;

fn differences(recording: &Recording, record: &peaklane_core::record::TryRecord) -> Vec<String> {
    let truth = &recording.truth;
    let mut wrong = Vec::new();
    let mut check = |name: &str, right: bool, want: String, got: String| {
        if !right {
            wrong.push(format!("{name}: want {want}, got {got}"));
        }
    };
    let moment = |us: Option<u64>| us.map(|us| us as f64 / f64::from(SLOWER) / 1e3);
    if let Some(want) = truth.status {
        check("status", record.http_status == Some(want), want.to_string(), format!("{:?}", record.http_status));
    }
    let mut time = |name: &str, want: Option<f64>, got: Option<f64>| {
        if let Some(want) = want {
            let right = got.is_some_and(|got| (got - want).abs() < 0.002);
            check(name, right, want.to_string(), format!("{got:?}"));
        }
    };
    time("first byte", truth.first_byte_ms, moment(record.first_byte_us));
    let is_stream = truth.sse_data_events.is_some();
    if is_stream {
        time("first content", truth.first_content_ms, moment(record.first_answer_us));
        let tools_last = truth.tool_call_chunks.unwrap_or(0) > 0;
        time("last content", truth.last_content_ms.filter(|_| !tools_last), moment(record.last_token_us));
    }
    // The recorder counted Anthropic's argument pieces only; the begin of a tool block, which names the tool, is a chunk
    // by the definition of the stream cases.
    let named = if recording.api() == Some(Api::Messages) { record.tool_calls.len() as u64 } else { 0 };
    let answer = truth.content_chunks.map(|n| n + truth.tool_call_chunks.unwrap_or(0) + named);
    if let (Some(want), true) = (answer, is_stream) {
        check(
            "content chunks",
            u64::from(record.output_chunks) == want,
            want.to_string(),
            record.output_chunks.to_string(),
        );
    }
    if let Some(want) = truth.text_len {
        let got = record.content.chars().count() as u64;
        check("text length", got == want, want.to_string(), got.to_string());
    }
    if let Some(want) = truth.tool_calls {
        check(
            "tool calls",
            record.tool_calls.len() as u64 == want,
            want.to_string(),
            format!("{:?}", record.tool_calls),
        );
    }
    if let Some(want) = &truth.finish_reason {
        check(
            "finish reason",
            record.finish_reason.as_ref() == Some(want),
            want.clone(),
            format!("{:?}", record.finish_reason),
        );
    }
    if let Some(want) = truth.usage_counts() {
        let got = record.usage;
        // An index that took only the last report lacks what earlier ones said.
        let same = |want: Option<u64>, got: Option<u64>| want.is_none() || want == got;
        let right = same(want.prompt, got.prompt)
            && same(want.completion, got.completion)
            && (same(want.cached, got.cached) || want.prompt.is_none());
        check("usage", right, format!("{want:?}"), format!("{got:?}"));
    }
    if truth.error.as_ref().is_some_and(|e| !e.is_null()) {
        check("an error is a failure", !record.outcome.is_ok(), "failure".into(), record.outcome.to_string());
        check("with words", record.message.is_some(), "a message".into(), "none".into());
    }
    let said =
        truth.text_len.unwrap_or(0) > 0 || truth.tool_call_chunks.unwrap_or(0) > 0 || truth.tool_calls.unwrap_or(0) > 0;
    let whole = truth.body_complete == Some(true) && truth.status == Some(200);
    if whole && said && truth.error.as_ref().is_none_or(serde_json::Value::is_null) {
        check("a whole answer is ok", record.outcome.is_ok(), "ok".into(), record.outcome.to_string());
    }
    if truth.body_complete == Some(false) && recording.how == EndHow::Eof && truth.done_marker == Some(false) {
        let cut = record.outcome == Outcome::Truncated;
        check("a cut answer", cut, "truncated".into(), record.outcome.to_string());
    }
    wrong
}

#[tokio::test(start_paused = true)]
async fn every_recorded_case_replayed_gives_the_values_of_its_index() {
    let mut wrong = Vec::new();
    let all = recordings();
    for recording in &all {
        let net = MemoryNet::new();
        net.serve("127.0.0.1", 80, RecordedPlayer::slowed(vec![recording.clone()], SLOWER));
        let client = support::client_on(&net);
        let Some(api) = recording.api() else {
            plain(recording, &client, &mut wrong).await;
            continue;
        };
        let target = support::target("http://127.0.0.1:80/v1", api);
        let body = Bytes::from(recording.request.body.clone().unwrap_or_default());
        let mut limits = support::generous();
        if matches!(recording.how, EndHow::ClientClosed | EndHow::Timeout) {
            // The recorder left; so does the client, at the same moment.
            limits.total = std::time::Duration::from_micros((recording.end_ms * 1e3) as u64) * SLOWER;
        }
        let tried = client.try_once(&target, &body, None, &limits).await;
        let found = differences(recording, &tried.record);
        if !found.is_empty() {
            wrong.push(format!("{}: {}", recording.key(), found.join("; ")));
        }
    }
    assert!(wrong.is_empty(), "{} of {} recordings are wrong:\n{}", wrong.len(), all.len(), wrong.join("\n"));
}

/// An exchange that is no inference call: status and body.
async fn plain(recording: &Recording, client: &peaklane_wire::client::Client, wrong: &mut Vec<String>) {
    let method = if recording.request.method == "GET" { "GET" } else { "POST" };
    let base = format!("http://127.0.0.1:80/{}", recording.request.path.trim_start_matches('/'));
    let (base, name) = base.rsplit_once('/').unwrap();
    // A path of one part has no base to stand beside: any other will do, the player does not look at it.
    let endpoint = Endpoint::beside(base, name).unwrap();
    let target = Target { endpoint, api: Api::Chat, key: None, headers: Vec::new() };
    let body = Bytes::from(recording.request.body.clone().unwrap_or_default());
    match client.fetch(method, &target, &body, &support::generous()).await {
        Ok(fetched) => {
            let raw = recording.bytes();
            let text = String::from_utf8_lossy(&raw);
            let sent = text.split_once("\r\n\r\n").map(|(_, b)| b).unwrap_or_default();
            let got = String::from_utf8_lossy(&fetched.body).into_owned();
            if Some(fetched.status) != recording.truth.status
                || got.is_empty()
                || !sent.contains(&got[..got.len().min(80)])
            {
                wrong.push(format!("{}: status {} body {got}", recording.key(), fetched.status));
            }
        }
        Err(why) => wrong.push(format!("{}: {why}", recording.key())),
    }
}
