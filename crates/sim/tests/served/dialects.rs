//! The four APIs, as their clients read them.

use peaklane_sim::plan::{End, Piece, Reply};
use peaklane_sim::scale::Scale;
use serde_json::{Value, json};

use crate::memory::{Same, Seen, ask, chat, ms, three_pieces};

const CHAT: &str = "/v1/chat/completions";

async fn answer(end: End, path: &str, body: &Value) -> Seen {
    ask(&Same::new(three_pieces(end)).lane(Scale::REAL), path, body).await
}

/// All texts at `pointer` of the events, joined.
fn joined(seen: &Seen, pointer: &str) -> String {
    seen.events().iter().filter_map(|event| event.pointer(pointer)?.as_str().map(str::to_owned)).collect()
}

#[tokio::test(start_paused = true)]
async fn a_chat_stream_has_a_role_content_a_reason_and_usage_when_asked_for() {
    let mut body = chat("hi");
    let plain = answer(End::Whole, CHAT, &body).await;
    assert!(plain.events().iter().all(|event| event.get("usage").is_none()));
    body["stream_options"] = json!({"include_usage": true});
    let seen = answer(End::Whole, CHAT, &body).await;
    let events = seen.events();
    assert_eq!(events[0]["choices"][0]["delta"], json!({"role": "assistant", "content": ""}));
    assert_eq!(joined(&seen, "/choices/0/delta/content"), "one two three");
    assert_eq!(joined(&seen, "/choices/0/finish_reason"), "stop");
    let last = events.last().unwrap();
    // "user\nhi\n" is 8 bytes: 2 tokens.
    assert_eq!((last["choices"].clone(), last["usage"]["total_tokens"].clone()), (json!([]), json!(5)));
    assert!(events.iter().all(|event| event["model"] == "m" && event["system_fingerprint"] == "fp_peaklane_sim"));
    assert!(seen.body().ends_with("data: [DONE]\n\n"));
    assert_eq!(seen.header("content-type").as_deref(), Some("text/event-stream; charset=utf-8"));
    assert_eq!(seen.header("x-peaklane-simulated").as_deref(), Some("1"));
}

#[tokio::test(start_paused = true)]
async fn a_messages_stream_opens_and_closes_its_blocks() {
    let script = Same::new(three_pieces(End::Whole));
    let mut plan = script.plan.clone();
    if let Reply::Answer(answer) = &mut plan.reply {
        answer.pieces.insert(0, Piece { at: ms(50), text: "hm".to_owned(), reasoning: true });
    }
    let body = json!({"model": "m", "stream": true, "max_tokens": 50, "messages": [{"role": "user", "content": "hi"}]});
    let seen = ask(&Same::new(plan).lane(Scale::REAL), "/v1/messages", &body).await;
    let names: Vec<String> = seen.events().iter().map(|event| event["type"].as_str().unwrap().to_owned()).collect();
    assert_eq!(
        names,
        [
            "message_start",
            "content_block_start",
            "content_block_delta",
            "content_block_stop",
            "content_block_start",
            "content_block_delta",
            "content_block_delta",
            "content_block_delta",
            "content_block_stop",
            "message_delta",
            "message_stop"
        ]
    );
    assert_eq!(joined(&seen, "/delta/thinking"), "hm");
    assert_eq!(joined(&seen, "/delta/text"), "one two three");
    assert_eq!(joined(&seen, "/delta/stop_reason"), "end_turn");
    assert_eq!(seen.events()[9]["usage"]["output_tokens"], 4);
    assert_eq!(seen.at("hm"), ms(50));
}

#[tokio::test(start_paused = true)]
async fn a_responses_stream_ends_with_the_whole_response_and_its_usage() {
    let body = json!({"model": "m", "stream": true, "input": "hi"});
    let seen = answer(End::Whole, "/v1/responses", &body).await;
    let events = seen.events();
    let numbers: Vec<u64> = events.iter().map(|event| event["sequence_number"].as_u64().unwrap()).collect();
    assert_eq!(numbers, (0..events.len() as u64).collect::<Vec<_>>());
    assert_eq!(joined(&seen, "/delta"), "one two three");
    let last = &events.last().unwrap();
    assert_eq!((&last["type"], &last["response"]["status"]), (&json!("response.completed"), &json!("completed")));
    assert_eq!(last["response"]["output"][0]["content"][0]["text"], "one two three");
    assert_eq!(last["response"]["usage"]["output_tokens"], 3);
}

#[tokio::test(start_paused = true)]
async fn legacy_completions_stream_text() {
    let seen = answer(End::Whole, "/v1/completions", &json!({"model": "m", "stream": true, "prompt": "hi"})).await;
    assert_eq!(joined(&seen, "/choices/0/text"), "one two three");
    assert!(seen.body().ends_with("data: [DONE]\n\n"));
}

#[tokio::test(start_paused = true)]
async fn a_budget_that_is_too_small_ends_the_answer_early_and_says_so() {
    let mut body = chat("hi");
    body["max_tokens"] = json!(2);
    let seen = answer(End::Whole, CHAT, &body).await;
    assert_eq!(joined(&seen, "/choices/0/delta/content"), "one two ");
    assert_eq!(joined(&seen, "/choices/0/finish_reason"), "length");
    assert_eq!(seen.at("[DONE]"), ms(250));
    let body = json!({"model": "m", "input": "hi", "max_output_tokens": 2});
    let whole = answer(End::Whole, "/v1/responses", &body).await.json();
    assert_eq!(whole["incomplete_details"]["reason"], "max_output_tokens");
}

#[tokio::test(start_paused = true)]
async fn the_same_prompt_again_is_read_from_the_cache() {
    let lane = Same::new(three_pieces(End::Whole)).lane(Scale::REAL);
    let mut body = chat(&"x".repeat(640));
    body["stream"] = json!(false);
    let cached =
        async || ask(&lane, CHAT, &body).await.json()["usage"]["prompt_tokens_details"]["cached_tokens"].clone();
    assert_eq!(cached().await, 0);
    // "user\n" + 640 + "\n" = 646 bytes: ten whole blocks of 16 tokens.
    assert_eq!(cached().await, 160);
    let body = json!({"model": "m", "max_tokens": 9, "messages": [{"role": "user", "content": "x".repeat(640)}]});
    let usage = &ask(&lane, "/v1/messages", &body).await.json()["usage"];
    assert_eq!((&usage["cache_read_input_tokens"], &usage["input_tokens"]), (&json!(160), &json!(2)));
}

#[tokio::test(start_paused = true)]
async fn a_stream_breaks_the_way_its_script_says() {
    let cut = answer(End::Cut, CHAT, &chat("hi")).await;
    assert!(cut.text().ends_with("0\r\n\r\n") && !cut.text().contains("[DONE]"), "well-formed, without a signal");
    assert_eq!((joined(&cut, "/choices/0/finish_reason").as_str(), cut.closed), ("", ms(400)));
    let abort = answer(End::Abort, CHAT, &chat("hi")).await;
    assert!(abort.text().contains("three") && !abort.text().ends_with("0\r\n\r\n"), "the last chunk is missing");
    assert_eq!(abort.closed, ms(400));
    let in_band = answer(End::InBand("lost".to_owned()), CHAT, &chat("hi")).await;
    assert_eq!(in_band.events().last().unwrap()["error"]["message"], "lost");
    assert_eq!(in_band.status(), 200);
}

#[tokio::test(start_paused = true)]
async fn without_a_stream_a_broken_answer_is_shorter_than_it_declares() {
    let mut body = chat("hi");
    body["stream"] = json!(false);
    let seen = answer(End::Cut, CHAT, &body).await;
    let declared: usize = seen.header("content-length").unwrap().parse().unwrap();
    assert_eq!(seen.body().len(), declared / 2);
}

#[tokio::test(start_paused = true)]
async fn what_cannot_be_served_is_refused_in_words() {
    for (path, body, status) in [
        ("/v1/nowhere", chat("hi"), 404),
        (CHAT, json!({"model": "other", "messages": []}), 404),
        (CHAT, json!({"messages": []}), 400),
        (CHAT, json!("text"), 400),
    ] {
        let seen = answer(End::Whole, path, &body).await;
        assert_eq!(seen.status(), status, "{path} {body}");
        assert!(seen.json()["error"]["message"].as_str().unwrap().len() > 10);
    }
}

#[tokio::test(start_paused = true)]
async fn a_lane_answers_under_its_base_url_with_and_without_v1() {
    assert_eq!(answer(End::Whole, "/chat/completions", &chat("hi")).await.status(), 200);
}
