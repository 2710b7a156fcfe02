//! What the four APIs ask for, read from a request's JSON; and how each of them words an error.

use peaklane_core::lane::Api;
use serde_json::{Value, json};

/// A request, the same for all APIs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Wanted {
    pub(crate) model: String,
    /// Everything the model reads, roles included: its bytes identify the attempt.
    pub(crate) prompt: String,
    pub(crate) stream: bool,
    /// The usage chunk was asked for (chat and completions; the other APIs always send usage).
    pub(crate) include_usage: bool,
    /// Most tokens of the answer.
    pub(crate) budget: Option<usize>,
}

impl Wanted {
    /// Reads a request. The error is what the lane says in its 400.
    pub(crate) fn read(api: Api, body: &Value) -> Result<Self, String> {
        let object = body.as_object().ok_or("the body must be a JSON object")?;
        let model = object.get("model").and_then(Value::as_str).ok_or("you must provide a model parameter")?;
        let (source, field) = match api {
            Api::Chat => (object.get("messages"), "messages"),
            Api::Completions => (object.get("prompt"), "prompt"),
            Api::Messages => (object.get("messages"), "messages"),
            Api::Responses => (object.get("input"), "input"),
        };
        let source = source.filter(|v| !v.is_null()).ok_or_else(|| format!("missing required parameter: `{field}`"))?;
        let mut prompt = String::new();
        for before in ["system", "instructions"] {
            object.get(before).into_iter().for_each(|v| gather(v, &mut prompt));
        }
        gather(source, &mut prompt);
        let budget = ["max_tokens", "max_completion_tokens", "max_output_tokens"]
            .iter()
            .find_map(|name| object.get(*name).filter(|v| !v.is_null()).map(|v| (*name, v)));
        let budget = match budget {
            None => None,
            Some((name, value)) => {
                let n = value.as_u64().filter(|n| *n > 0).ok_or_else(|| format!("{name} must be at least 1"))?;
                Some(usize::try_from(n).unwrap_or(usize::MAX))
            }
        };
        Ok(Self {
            model: model.to_owned(),
            prompt,
            stream: object.get("stream").and_then(Value::as_bool).unwrap_or(false),
            include_usage: body.pointer("/stream_options/include_usage").and_then(Value::as_bool).unwrap_or(false),
            budget,
        })
    }
}

/// Collects the texts of a message tree in order, each with a line end; roles are part of what the model reads.
fn gather(value: &Value, into: &mut String) {
    match value {
        Value::String(text) => {
            into.push_str(text);
            into.push('\n');
        }
        Value::Array(items) => items.iter().for_each(|item| gather(item, into)),
        Value::Object(fields) => {
            for name in ["role", "content", "text", "input_text"] {
                fields.get(name).into_iter().for_each(|v| gather(v, into));
            }
        }
        _ => {}
    }
}

/// An error object in the words of one API.
pub(crate) fn error_body(api: Api, status: u16, kind: &str, code: &str, message: &str) -> Value {
    match api {
        Api::Messages => json!({"type": "error", "error": {"type": kind, "message": message}}),
        // llama.cpp's server gives the number as code; everyone else a word, or nothing.
        _ if status == 503 => json!({"error": {"message": message, "type": kind, "code": 503}}),
        _ => json!({"error": {"message": message, "type": kind, "param": null, "code": code}}),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_prompt_is_found_in_each_api() {
        let cases = [
            (Api::Chat, json!({"model": "m", "messages": [{"role": "user", "content": "hi"}]}), "user\nhi\n"),
            (Api::Completions, json!({"model": "m", "prompt": ["hi", "ho"]}), "hi\nho\n"),
            (
                Api::Messages,
                json!({"model": "m", "system": "be brief", "messages": [{"role": "user", "content": [{"type": "text", "text": "hi"}]}]}),
                "be brief\nuser\nhi\n",
            ),
            (Api::Responses, json!({"model": "m", "instructions": "be brief", "input": "hi"}), "be brief\nhi\n"),
        ];
        for (api, body, prompt) in cases {
            let wanted = Wanted::read(api, &body).unwrap();
            assert_eq!((wanted.prompt.as_str(), wanted.stream), (prompt, false), "{api}");
        }
    }

    #[test]
    fn a_request_without_its_required_parts_is_told_which() {
        let told = |body: Value| Wanted::read(Api::Chat, &body).unwrap_err();
        assert!(told(json!([])).contains("JSON object"));
        assert!(told(json!({"messages": []})).contains("model"));
        assert!(told(json!({"model": "m"})).contains("`messages`"));
        assert!(told(json!({"model": "m", "messages": [], "max_tokens": 0})).contains("max_tokens"));
    }

    #[test]
    fn the_budget_is_read_under_each_of_its_names() {
        for name in ["max_tokens", "max_completion_tokens", "max_output_tokens"] {
            let wanted = Wanted::read(Api::Chat, &json!({"model": "m", "messages": [], name: 7})).unwrap();
            assert_eq!(wanted.budget, Some(7), "{name}");
        }
    }
}
