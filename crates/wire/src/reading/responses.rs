//! OpenAI Responses: stream events and whole answers.

use serde_json::Value;

use super::answer::{Answer, Slot};
use super::{usage, whole};

/// Takes one stream event. `in_band` classes a failed response or an error event.
pub(crate) fn take(answer: &mut Answer, event: &Value, in_band: impl FnOnce(&mut Answer, &Value)) {
    let delta = || event.get("delta").and_then(Value::as_str).unwrap_or_default();
    let slot = Slot { index: event.get("output_index").and_then(Value::as_u64), id: None };
    match event.get("type").and_then(Value::as_str).unwrap_or_default() {
        "response.created" | "response.in_progress" | "response.queued" => head(answer, event),
        "response.output_text.delta" | "response.refusal.delta" => answer.text(delta()),
        "response.reasoning_text.delta" | "response.reasoning_summary_text.delta" | "response.reasoning.delta" => {
            answer.think(delta());
        }
        "response.function_call_arguments.delta" | "response.custom_tool_call_input.delta" => {
            answer.tool(&slot, "", delta());
        }
        "response.output_item.added" => {
            if let Some(item) = event.get("item").filter(|i| is_call(i)) {
                answer.tool(&slot, item.get("name").and_then(Value::as_str).unwrap_or_default(), "");
            }
        }
        "response.output_item.done" => {
            // A server that sends no deltas tells its tool call here for the first time; otherwise it is a repeat.
            if let Some(item) = event.get("item").filter(|i| is_call(i) && !answer.said_something()) {
                call(answer, item, &slot);
            }
        }
        "response.completed" | "response.done" => {
            head(answer, event);
            finish(answer, event.get("response"));
            answer.terminal = true;
        }
        "response.incomplete" => {
            head(answer, event);
            finish(answer, event.get("response"));
            answer.terminal = true;
        }
        "response.failed" | "response.cancelled" | "error" => {
            head(answer, event);
            in_band(answer, event);
        }
        // `*.done` events repeat what the deltas said.
        _ => {
            if event.get("error").is_some_and(|e| !e.is_null()) {
                in_band(answer, event);
            }
        }
    }
}

/// Takes a whole answer.
pub(crate) fn take_whole(answer: &mut Answer, body: &Value) {
    note(answer, body);
    for (index, item) in body.get("output").and_then(Value::as_array).into_iter().flatten().enumerate() {
        let slot = Slot { index: Some(index as u64), id: None };
        output_item(answer, item, &slot);
    }
    finish(answer, Some(body));
}

fn output_item(answer: &mut Answer, item: &Value, slot: &Slot) {
    let parts = |key: &str| item.get(key).and_then(Value::as_array).cloned().unwrap_or_default();
    let text_of = |part: &Value| part.get("text").or(part.get("refusal")).and_then(Value::as_str).map(str::to_owned);
    match item.get("type").and_then(Value::as_str).unwrap_or_default() {
        "message" => parts("content").iter().filter_map(text_of).for_each(|t| answer.text(&t)),
        "reasoning" => {
            parts("summary").iter().chain(&parts("content")).filter_map(text_of).for_each(|t| answer.think(&t));
        }
        _ if is_call(item) => call(answer, item, slot),
        _ => {}
    }
}

fn is_call(item: &Value) -> bool {
    matches!(item.get("type").and_then(Value::as_str), Some("function_call" | "custom_tool_call"))
}

fn call(answer: &mut Answer, item: &Value, slot: &Slot) {
    let arguments = item.get("arguments").or(item.get("input")).map(whole::argument_text).unwrap_or_default();
    answer.tool(slot, item.get("name").and_then(Value::as_str).unwrap_or_default(), &arguments);
}

fn head(answer: &mut Answer, event: &Value) {
    if let Some(response) = event.get("response") {
        note(answer, response);
    }
}

fn note(answer: &mut Answer, response: &Value) {
    answer.note_id(response.get("id").and_then(Value::as_str));
    answer.note_model(response.get("model").and_then(Value::as_str));
    if let Some(found) = response.get("usage").filter(|u| u.is_object()) {
        usage::openai(answer, found);
    }
}

/// The finish reason of this API is the status, or the reason of an incomplete answer. A completed response whose
/// text never came as deltas (a server that only sends the end) is read from its output.
fn finish(answer: &mut Answer, response: Option<&Value>) {
    let Some(response) = response else { return };
    let status = response.get("status").and_then(Value::as_str).unwrap_or("completed");
    let reason = response.get("incomplete_details").and_then(|d| d.get("reason")).and_then(Value::as_str);
    answer.note_finish(Some(if status == "incomplete" { reason.unwrap_or(status) } else { status }));
    if !answer.has_text() {
        for (index, item) in response.get("output").and_then(Value::as_array).into_iter().flatten().enumerate() {
            output_item(answer, item, &Slot { index: Some(index as u64), id: None });
        }
    }
}
