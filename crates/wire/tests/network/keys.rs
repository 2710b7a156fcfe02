//! A lane that echoes the key wherever it can: no record shows it.

use peaklane_core::lane::Api;
use peaklane_core::record::TryRecord;
use serde_json::{Value, json};

use crate::lane::{KEY, Memory, STREAM, chunk, request, response, say, target, try_answered};
use crate::support::{body, generous};

/// Longest begin of the key that may stand anywhere, letters: `sk-` says nothing.
const TOLD: usize = 3;

fn assert_hidden(record: &TryRecord, what: &str) {
    let shown = format!("{record:?} {}", serde_json::to_string(record).unwrap());
    assert!(!shown.contains(&KEY[..=TOLD]), "{what}: {shown}");
    assert!(shown.contains("(key)"), "{what}: the echo is not in the record at all: {shown}");
}

fn stream_of(events: &[Value]) -> Vec<u8> {
    let text: String = events.iter().map(|e| format!("data: {e}\n\n")).collect();
    [STREAM.as_bytes(), &chunk(text), &chunk("data: [DONE]\n\n"), b"0\r\n\r\n"].concat()
}

#[tokio::test(start_paused = true)]
async fn an_echoed_key_is_in_no_text_of_an_answer() {
    let delta = |delta: Value| json!({"choices": [{"index": 0, "delta": delta}]});
    let (front, back) = KEY.split_at(9);
    for (what, events) in [
        ("content", vec![delta(json!({"content": format!("your key is {KEY}.")}))]),
        ("content in two pieces", vec![delta(json!({"content": front})), delta(json!({"content": back}))]),
        ("reasoning", vec![delta(json!({"reasoning_content": KEY, "content": "x"}))]),
        (
            "tool call in two pieces",
            vec![
                delta(json!({"tool_calls": [{"index": 0, "id": "c", "function": {"name": "f", "arguments": front}}]})),
                delta(json!({"tool_calls": [{"index": 0, "function": {"arguments": back}}]})),
            ],
        ),
        ("tool name", vec![delta(json!({"tool_calls": [{"index": 0, "id": "c", "function": {"name": KEY}}]}))]),
        ("finish reason", vec![json!({"choices": [{"delta": {"content": "x"}, "finish_reason": KEY}]})]),
        ("model", vec![json!({"model": KEY, "choices": [{"delta": {"content": "x"}}]})]),
        ("fingerprint", vec![json!({"system_fingerprint": KEY, "choices": [{"delta": {"content": "x"}}]})]),
        ("id", vec![json!({"id": KEY, "choices": [{"delta": {"content": "x"}}]})]),
        ("error in a 200", vec![json!({"error": {"message": format!("bad key {KEY}"), "code": 401}})]),
    ] {
        assert_hidden(&try_answered(stream_of(&events)).await.record, what);
    }
}

#[tokio::test(start_paused = true)]
async fn an_echoed_key_is_in_no_header_message_or_preview() {
    let ok = stream_of(&[json!({"choices": [{"delta": {"content": "x"}}]})]);
    let with = |header: &str| {
        let text = String::from_utf8(ok.clone()).unwrap();
        text.replacen("\r\n", &format!("\r\n{header}\r\n"), 1).into_bytes()
    };
    for (what, answer) in [
        ("request id", with(&format!("X-Request-Id: {KEY}"))),
        ("rate limit", with(&format!("X-RateLimit-Key: user {KEY}"))),
        ("rate limit, cut", with(&format!("X-RateLimit-Key: {}{KEY}", "x".repeat(190)))),
        ("retry after", with(&format!("Retry-After: {KEY}"))),
        ("error", response("401 Unauthorized", "", json!({"error": {"message": format!("{KEY}?")}}).to_string())),
        ("error without shape", response("401 Unauthorized", "", format!("no such key: Bearer {KEY}"))),
        ("page", response("200 OK", "", format!("<html><title>hello {KEY}</title></html>"))),
        ("text", response("200 OK", "", format!("who is {KEY}?"))),
        ("other JSON", response("200 OK", "", json!({"echo": KEY}).to_string())),
        ("coding", response("200 OK", &format!("Content-Encoding: {KEY}\r\n"), "")),
        (
            "redirect",
            response("307 Moved", &format!("Location: http://lane.test:99/{KEY}\r\nX-RateLimit: {KEY}\r\n"), ""),
        ),
    ] {
        assert_hidden(&try_answered(answer).await.record, what);
    }
}

#[tokio::test(start_paused = true)]
async fn a_message_that_is_cut_within_the_key_does_not_show_its_begin() {
    // Messages are cut at 400 characters: every place of the cut within the key.
    for shift in 0..=KEY.len() {
        let message = format!("{}{KEY} is not known here", "x".repeat(400 - shift));
        let error = json!({"error": {"message": message}}).to_string();
        let record = try_answered(response("401 Unauthorized", "", error)).await.record;
        let shown = format!("{record:?}");
        assert!(!shown.contains(&KEY[..=TOLD]), "{shift}: {shown}");
    }
}

#[tokio::test(start_paused = true)]
async fn the_key_of_the_messages_api_travels_in_its_own_header_and_is_hidden_too() {
    let (client, _) = Memory::new(|mut io, _| async move {
        while let Some(seen) = request(&mut io).await {
            assert_eq!((seen.header("x-api-key"), seen.header("authorization")), (Some(KEY), None));
            let error = json!({"type": "error", "error": {"type": "authentication_error", "message": KEY}});
            say(&mut io, response("401 Unauthorized", "", error.to_string())).await;
        }
    })
    .client();
    let mut lane = target("http://lane.test");
    let keyless = crate::support::target("http://lane.test", Api::Messages);
    (lane.endpoint, lane.api) = (keyless.endpoint, Api::Messages);
    let tried = client.try_once(&lane, &body(Api::Messages, true), None, &generous()).await;
    assert_hidden(&tried.record, "messages");
}
