//! What is asked of a lane, as the bytes of each API.

use bytes::Bytes;
use peaklane_core::lane::Api;
use serde::Serialize;
use serde_json::{Map, Value};

/// One question to a model, independent of the API.
#[derive(Clone, Debug, PartialEq)]
pub struct Ask {
    /// Model name as the lane knows it.
    pub model: String,
    /// System text, if any.
    pub system: Option<String>,
    /// The user's text.
    pub prompt: String,
    /// Budget of generated tokens.
    pub max_tokens: u64,
    /// Send the budget as `max_completion_tokens` (chat only: newer OpenAI models refuse the old name).
    pub max_completion_tokens: bool,
    /// Temperature; `None` where the lane refuses it.
    pub temperature: Option<f64>,
    /// Seed; `None` where the lane refuses it. Only chat and legacy completions know one.
    pub seed: Option<u64>,
    /// Ask for an event stream.
    pub stream: bool,
    /// Further fields of the body; they win over ours.
    pub extra: Map<String, Value>,
}

#[derive(Serialize)]
struct Message<'a> {
    role: &'a str,
    content: &'a str,
}

#[derive(Serialize)]
struct StreamOptions {
    include_usage: bool,
}

/// The union of the bodies of all four APIs, in the order in which fields are written.
#[derive(Default, Serialize)]
struct Body<'a> {
    model: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    instructions: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    system: Option<&'a str>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    messages: Vec<Message<'a>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    prompt: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    input: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    max_tokens: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    max_completion_tokens: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    max_output_tokens: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    temperature: Option<Value>,
    #[serde(skip_serializing_if = "Option::is_none")]
    seed: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    store: Option<bool>,
    stream: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    stream_options: Option<StreamOptions>,
}

impl Ask {
    /// The request body for `api`.
    pub fn body(&self, api: Api) -> Bytes {
        Bytes::from(self.text(api, self.system.as_deref(), &self.prompt))
    }

    /// A body with a place for a nonce at the very begin of what the model sees, so that no prefix cache can answer.
    pub fn template(&self, api: Api) -> BodyTemplate {
        // A mark that no prompt holds: the private-use character U+F8FE is not escaped in JSON.
        const MARK: &str = "\u{f8fe}peaklane-nonce\u{f8fe}";
        let marked = |text: &str| format!("{MARK}{text}");
        let text = match self.system.as_deref() {
            Some(system) => self.text(api, Some(&marked(system)), &self.prompt),
            None => self.text(api, None, &marked(&self.prompt)),
        };
        let at = text.find(MARK).unwrap_or(0);
        let after = text[at..].strip_prefix(MARK).unwrap_or(&text[at..]);
        BodyTemplate { before: text[..at].to_owned(), after: after.to_owned() }
    }

    fn text(&self, api: Api, system: Option<&str>, prompt: &str) -> String {
        let mut body = Body { model: &self.model, stream: self.stream, ..Body::default() };
        // JSON knows no NaN; a whole number is written without fraction, as people write it.
        body.temperature = self.temperature.and_then(|t| {
            if t.fract() == 0.0 && t.abs() < 1e9 {
                Some(Value::from(t as i64))
            } else {
                serde_json::Number::from_f64(t).map(Value::Number)
            }
        });
        let options = self.stream.then_some(StreamOptions { include_usage: true });
        let joined;
        match api {
            Api::Chat => {
                body.messages.extend(system.map(|content| Message { role: "system", content }));
                body.messages.push(Message { role: "user", content: prompt });
                if self.max_completion_tokens {
                    body.max_completion_tokens = Some(self.max_tokens);
                } else {
                    body.max_tokens = Some(self.max_tokens);
                }
                body.seed = self.seed;
                body.stream_options = options;
            }
            Api::Completions => {
                // This API has no roles: a system text goes in front.
                joined = system.map_or_else(|| prompt.to_owned(), |s| format!("{s}\n\n{prompt}"));
                body.prompt = Some(&joined);
                body.max_tokens = Some(self.max_tokens);
                body.seed = self.seed;
                body.stream_options = options;
            }
            Api::Messages => {
                body.system = system;
                body.messages.push(Message { role: "user", content: prompt });
                body.max_tokens = Some(self.max_tokens);
            }
            Api::Responses => {
                body.instructions = system;
                body.input = Some(prompt);
                body.max_output_tokens = Some(self.max_tokens);
                // Nothing of a measurement is to be kept on the other side.
                body.store = Some(false);
            }
        }
        let own = serde_json::to_string(&body).expect("a struct of strings and numbers is JSON");
        if self.extra.is_empty() {
            return own;
        }
        let mut fields: Map<String, Value> = serde_json::from_str(&own).expect("what was just written reads back");
        fields.extend(self.extra.clone());
        Value::Object(fields).to_string()
    }
}

/// A request body with a place for a nonce.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BodyTemplate {
    before: String,
    after: String,
}

impl BodyTemplate {
    /// The body with `nonce` in its place. The nonce must need no escaping (letters, digits, blanks, brackets).
    pub fn with(&self, nonce: &str) -> Bytes {
        debug_assert!(nonce.chars().all(|c| c.is_ascii_alphanumeric() || " []-.:".contains(c)));
        let mut body = Vec::with_capacity(self.before.len() + nonce.len() + self.after.len());
        body.extend_from_slice(self.before.as_bytes());
        body.extend_from_slice(nonce.as_bytes());
        body.extend_from_slice(self.after.as_bytes());
        Bytes::from(body)
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn ask() -> Ask {
        Ask {
            model: "m".into(),
            system: Some("be brief".into()),
            prompt: "say \"hi\"".into(),
            max_tokens: 16,
            max_completion_tokens: false,
            temperature: Some(0.0),
            seed: Some(7),
            stream: true,
            extra: Map::new(),
        }
    }

    fn body(ask: &Ask, api: Api) -> Value {
        serde_json::from_slice(&ask.body(api)).unwrap()
    }

    #[test]
    fn each_api_gets_its_own_fields() {
        assert_eq!(
            body(&ask(), Api::Chat),
            json!({"model": "m", "messages": [{"role": "system", "content": "be brief"},
                {"role": "user", "content": "say \"hi\""}], "max_tokens": 16, "temperature": 0, "seed": 7, "stream": true,
                "stream_options": {"include_usage": true}})
        );
        assert_eq!(
            body(&ask(), Api::Messages),
            json!({"model": "m", "system": "be brief", "messages": [{"role": "user", "content": "say \"hi\""}],
                "max_tokens": 16, "temperature": 0, "stream": true})
        );
        assert_eq!(
            body(&ask(), Api::Responses),
            json!({"model": "m", "instructions": "be brief", "input": "say \"hi\"", "max_output_tokens": 16,
                "temperature": 0, "store": false, "stream": true})
        );
        assert_eq!(body(&ask(), Api::Completions)["prompt"], "be brief\n\nsay \"hi\"");
    }

    #[test]
    fn what_a_lane_refuses_is_left_out_and_extra_fields_win() {
        let mut ask = ask();
        (ask.temperature, ask.seed, ask.max_completion_tokens, ask.stream) = (None, None, true, false);
        ask.extra.insert("cache_prompt".into(), json!(false));
        let body = body(&ask, Api::Chat);
        assert_eq!((body.get("temperature"), body.get("seed"), body.get("stream_options")), (None, None, None));
        assert_eq!((&body["max_completion_tokens"], &body["cache_prompt"]), (&json!(16), &json!(false)));
    }

    #[test]
    fn a_nonce_stands_before_everything_the_model_sees() {
        let template = ask().template(Api::Chat);
        let seen: Value = serde_json::from_slice(&template.with("[n-1] ")).unwrap();
        assert_eq!(seen["messages"][0]["content"], "[n-1] be brief");
        let mut plain = ask();
        plain.system = None;
        let seen: Value = serde_json::from_slice(&plain.template(Api::Responses).with("[n-2] ")).unwrap();
        assert_eq!(seen["input"], "[n-2] say \"hi\"");
        let seen: Value = serde_json::from_slice(&ask().template(Api::Completions).with("[n-3] ")).unwrap();
        assert!(seen["prompt"].as_str().unwrap().starts_with("[n-3] be brief"));
    }
}
