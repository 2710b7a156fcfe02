//! OpenAI chat completions and legacy completions: stream events and whole answers.

use std::borrow::Cow;
use std::fmt;

use serde::Deserialize;
use serde::de::{self, Deserializer, MapAccess, SeqAccess, Visitor};
use serde_json::Value;

use super::answer::{Answer, Slot};
use super::{usage, whole};

/// One event of a stream, or the whole answer. Borrows its text from the event.
#[derive(Debug, Deserialize)]
pub(crate) struct Chunk<'a> {
    #[serde(borrow, default)]
    id: Option<Cow<'a, str>>,
    #[serde(borrow, default)]
    model: Option<Cow<'a, str>>,
    #[serde(borrow, default)]
    system_fingerprint: Option<Cow<'a, str>>,
    #[serde(default)]
    pub(crate) error: Option<Value>,
    #[serde(borrow, default)]
    choices: Option<Vec<Choice<'a>>>,
    #[serde(default)]
    usage: Option<Value>,
    #[serde(default)]
    x_groq: Option<Value>,
}

#[derive(Debug, Deserialize)]
struct Choice<'a> {
    #[serde(default)]
    index: Option<u64>,
    #[serde(borrow, default)]
    delta: Option<Said<'a>>,
    #[serde(borrow, default)]
    message: Option<Said<'a>>,
    #[serde(borrow, default)]
    text: Option<Cow<'a, str>>,
    #[serde(borrow, default)]
    finish_reason: Option<Cow<'a, str>>,
    #[serde(default)]
    usage: Option<Value>,
}

#[derive(Debug, Deserialize)]
struct Said<'a> {
    #[serde(borrow, default)]
    content: Option<Text<'a>>,
    #[serde(borrow, default)]
    reasoning_content: Option<Text<'a>>,
    #[serde(borrow, default)]
    reasoning: Option<Text<'a>>,
    #[serde(borrow, default)]
    thinking: Option<Text<'a>>,
    #[serde(borrow, default)]
    refusal: Option<Text<'a>>,
    #[serde(borrow, default)]
    tool_calls: Option<Vec<Call<'a>>>,
    #[serde(borrow, default)]
    function_call: Option<Function<'a>>,
}

#[derive(Debug, Deserialize)]
struct Call<'a> {
    #[serde(default)]
    index: Option<u64>,
    #[serde(borrow, default)]
    id: Option<Cow<'a, str>>,
    #[serde(borrow, default)]
    function: Option<Function<'a>>,
}

#[derive(Debug, Deserialize)]
struct Function<'a> {
    #[serde(borrow, default)]
    name: Option<Cow<'a, str>>,
    #[serde(default)]
    arguments: Option<Value>,
}

/// Text as servers send it: a string, or a list of parts (`text`, `thinking`).
#[derive(Debug, Default)]
struct Text<'a> {
    text: Cow<'a, str>,
    thinking: String,
}

impl<'de: 'a, 'a> Deserialize<'de> for Text<'a> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Reader;
        impl<'de> Visitor<'de> for Reader {
            type Value = Text<'de>;
            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("text or a list of parts")
            }
            fn visit_borrowed_str<E: de::Error>(self, text: &'de str) -> Result<Text<'de>, E> {
                Ok(Text { text: Cow::Borrowed(text), thinking: String::new() })
            }
            fn visit_str<E: de::Error>(self, text: &str) -> Result<Text<'de>, E> {
                Ok(Text { text: Cow::Owned(text.to_owned()), thinking: String::new() })
            }
            fn visit_unit<E: de::Error>(self) -> Result<Text<'de>, E> {
                Ok(Text::default())
            }
            fn visit_bool<E: de::Error>(self, _: bool) -> Result<Text<'de>, E> {
                Ok(Text::default())
            }
            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Text<'de>, A::Error> {
                let mut part = serde_json::Map::new();
                while let Some((key, value)) = map.next_entry::<String, Value>()? {
                    part.insert(key, value);
                }
                Ok(parts(&[Value::Object(part)]))
            }
            fn visit_seq<A: SeqAccess<'de>>(self, mut seq: A) -> Result<Text<'de>, A::Error> {
                let mut list = Vec::new();
                while let Some(part) = seq.next_element::<Value>()? {
                    list.push(part);
                }
                Ok(parts(&list))
            }
        }
        deserializer.deserialize_any(Reader)
    }
}

fn parts(list: &[Value]) -> Text<'static> {
    let mut text = String::new();
    let mut thinking = String::new();
    for part in list {
        match part {
            Value::String(piece) => text.push_str(piece),
            _ => {
                if let Some(piece) = part.get("text").and_then(Value::as_str) {
                    text.push_str(piece);
                }
                match part.get("thinking") {
                    Some(Value::String(piece)) => thinking.push_str(piece),
                    Some(Value::Array(inner)) => {
                        inner.iter().filter_map(|p| p.get("text")?.as_str()).for_each(|p| thinking.push_str(p));
                    }
                    _ => {}
                }
            }
        }
    }
    Text { text: Cow::Owned(text), thinking }
}

/// Takes one stream event or, with `is_whole`, the whole answer.
pub(crate) fn take(answer: &mut Answer, chunk: &Chunk<'_>, is_whole: bool) {
    answer.note_id(chunk.id.as_deref());
    answer.note_model(chunk.model.as_deref());
    answer.note_fingerprint(chunk.system_fingerprint.as_deref());
    for choice in chunk.choices.iter().flatten() {
        // Only one choice is asked for; a second one would double the text.
        if choice.index.unwrap_or(0) != 0 {
            continue;
        }
        if let Some(delta) = &choice.delta {
            take_said(answer, delta);
        }
        if let Some(message) = &choice.message
            && (is_whole || !answer.has_text())
        {
            // A last stream chunk in full-message shape repeats the answer; it is news only where nothing came before.
            take_said(answer, message);
        }
        if let Some(text) = &choice.text {
            answer.text(text);
        }
        answer.note_finish(choice.finish_reason.as_deref());
        if let Some(found) = &choice.usage {
            usage::openai(answer, found);
        }
    }
    if let Some(found) = chunk.x_groq.as_ref().and_then(|x| x.get("usage")) {
        usage::openai(answer, found);
    }
    if let Some(found) = &chunk.usage {
        usage::openai(answer, found);
    }
}

fn take_said(answer: &mut Answer, said: &Said<'_>) {
    // Gateways that send the same thought under two names exist: the first name that has text counts.
    let thoughts = [&said.reasoning_content, &said.reasoning, &said.thinking];
    if let Some(thought) = thoughts.into_iter().flatten().find(|t| !t.text.is_empty() || !t.thinking.is_empty()) {
        answer.think(&thought.text);
        answer.think(&thought.thinking);
    }
    for text in [&said.content, &said.refusal].into_iter().flatten() {
        answer.think(&text.thinking);
        answer.text(&text.text);
    }
    for call in said.tool_calls.iter().flatten() {
        let slot = Slot { index: call.index, id: call.id.as_deref().filter(|i| !i.is_empty()).map(str::to_owned) };
        take_function(answer, &slot, call.function.as_ref());
    }
    if let Some(function) = said.function_call.as_ref().filter(|_| said.tool_calls.as_ref().is_none_or(Vec::is_empty)) {
        // The old spelling; llama-cpp-python sends the same call under both names.
        take_function(answer, &Slot { index: Some(0), id: None }, Some(function));
    }
}

fn take_function(answer: &mut Answer, slot: &Slot, function: Option<&Function<'_>>) {
    let name = function.and_then(|f| f.name.as_deref()).unwrap_or_default();
    let arguments = function.and_then(|f| f.arguments.as_ref()).map(whole::argument_text).unwrap_or_default();
    answer.tool(slot, name, &arguments);
}
