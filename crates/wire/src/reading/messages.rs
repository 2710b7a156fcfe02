//! Anthropic messages: stream events and whole answers.

use serde_json::Value;

use super::answer::{Answer, Slot};
use super::{usage, whole};

/// Takes one stream event. `in_band` classes an error event.
pub(crate) fn take(answer: &mut Answer, event: &Value, in_band: impl FnOnce(&mut Answer, &Value)) {
    let text = |value: &Value, key: &str| value.get(key).and_then(Value::as_str).unwrap_or_default().to_owned();
    let slot = Slot { index: event.get("index").and_then(Value::as_u64), id: None };
    match event.get("type").and_then(Value::as_str).unwrap_or_default() {
        "message_start" => {
            if let Some(message) = event.get("message") {
                answer.note_id(message.get("id").and_then(Value::as_str));
                answer.note_model(message.get("model").and_then(Value::as_str));
                if let Some(found) = message.get("usage") {
                    usage::anthropic(answer, found);
                }
                message
                    .get("content")
                    .and_then(Value::as_array)
                    .into_iter()
                    .flatten()
                    .for_each(|b| block(answer, b, &slot));
            }
        }
        "content_block_start" => {
            if let Some(content) = event.get("content_block") {
                block_start(answer, content, &slot);
            }
        }
        "content_block_delta" => {
            if let Some(delta) = event.get("delta") {
                match delta.get("type").and_then(Value::as_str).unwrap_or_default() {
                    "text_delta" => answer.text(&text(delta, "text")),
                    "thinking_delta" => answer.think(&text(delta, "thinking")),
                    "input_json_delta" => answer.tool(&slot, "", &text(delta, "partial_json")),
                    // Signatures and citations are neither reasoning text nor answer.
                    _ => {}
                }
            }
        }
        "message_delta" => {
            let reason = event.get("delta").and_then(|d| d.get("stop_reason")).and_then(Value::as_str);
            answer.note_finish(reason);
            if let Some(found) = event.get("usage") {
                usage::anthropic(answer, found);
            }
        }
        "message_stop" => answer.terminal = true,
        "error" => in_band(answer, event),
        _ => {
            if event.get("error").is_some_and(|e| !e.is_null()) {
                in_band(answer, event);
            }
        }
    }
}

/// Takes a whole answer.
pub(crate) fn take_whole(answer: &mut Answer, body: &Value) {
    answer.note_id(body.get("id").and_then(Value::as_str));
    answer.note_model(body.get("model").and_then(Value::as_str));
    answer.note_finish(body.get("stop_reason").and_then(Value::as_str));
    for (index, content) in body.get("content").and_then(Value::as_array).into_iter().flatten().enumerate() {
        block(answer, content, &Slot { index: Some(index as u64), id: None });
    }
    if let Some(found) = body.get("usage") {
        usage::anthropic(answer, found);
    }
}

/// The begin of a block names its tool; its `input` is an empty placeholder that the deltas fill.
fn block_start(answer: &mut Answer, content: &Value, slot: &Slot) {
    match content.get("type").and_then(Value::as_str).unwrap_or_default() {
        "tool_use" | "server_tool_use" => {
            answer.tool(slot, content.get("name").and_then(Value::as_str).unwrap_or_default(), "");
        }
        _ => block(answer, content, slot),
    }
}

fn block(answer: &mut Answer, content: &Value, slot: &Slot) {
    let text = |key: &str| content.get(key).and_then(Value::as_str).unwrap_or_default();
    match content.get("type").and_then(Value::as_str).unwrap_or_default() {
        "text" => answer.text(text("text")),
        "thinking" => answer.think(text("thinking")),
        "tool_use" | "server_tool_use" => {
            let input = content.get("input").map(whole::argument_text).unwrap_or_default();
            answer.tool(slot, text("name"), &input);
        }
        _ => {}
    }
}
