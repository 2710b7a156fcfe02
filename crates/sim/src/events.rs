//! How an answer is said in each API: the events of a stream, and the one JSON object without it.
//!
//! Sources: OpenAI API reference (chat completions, completions, Responses streaming events); Anthropic API reference
//! (streaming messages).

use peaklane_core::lane::Api;
use serde_json::{Value, json};

use crate::dialect::error_body;
use crate::plan::{Answer, Finish, Piece};
use crate::prefix::PromptTokens;

/// The words of one answer; remembers what a stream has opened.
#[derive(Debug)]
pub(crate) struct Voice {
    pub(crate) api: Api,
    pub(crate) id: String,
    pub(crate) model: String,
    /// Unix seconds.
    pub(crate) created: u64,
    pub(crate) prompt: PromptTokens,
    pub(crate) include_usage: bool,
    block: Option<(u32, bool)>,
    sequence: u64,
    said: u64,
    thought: u64,
}

const FINGERPRINT: &str = "fp_peaklane_sim";

impl Voice {
    pub(crate) fn new(api: Api, id: String, model: String, created: u64, prompt: PromptTokens, usage: bool) -> Self {
        Self { api, id, model, created, prompt, include_usage: usage, block: None, sequence: 0, said: 0, thought: 0 }
    }

    /// The events before any content.
    pub(crate) fn opening(&mut self) -> String {
        match self.api {
            Api::Chat => self.chat(json!({"role": "assistant", "content": ""}), Value::Null),
            Api::Completions => String::new(),
            Api::Messages => self.named(
                "message_start",
                json!({"message": {"id": self.id, "type": "message", "role": "assistant", "model": self.model,
                    "content": [], "stop_reason": null, "stop_sequence": null, "usage": self.usage()}}),
            ),
            Api::Responses => {
                let response = self.response("in_progress", Value::Null, json!([]), Value::Null);
                let created = self.named("response.created", json!({"response": response}));
                let running = self.named("response.in_progress", json!({"response": response}));
                created + &running
            }
        }
    }

    /// The events of one piece.
    pub(crate) fn piece(&mut self, piece: &Piece) -> String {
        self.said += 1;
        self.thought += u64::from(piece.reasoning);
        let text = &piece.text;
        match self.api {
            Api::Chat if piece.reasoning => self.chat(json!({"reasoning_content": text}), Value::Null),
            Api::Chat => self.chat(json!({"content": text}), Value::Null),
            Api::Completions => self.completion(text, Value::Null),
            Api::Messages => {
                let (opened, index) = self.open_block(piece.reasoning);
                let delta = if piece.reasoning {
                    json!({"type": "thinking_delta", "thinking": text})
                } else {
                    json!({"type": "text_delta", "text": text})
                };
                opened + &self.named("content_block_delta", json!({"index": index, "delta": delta}))
            }
            Api::Responses => {
                let (opened, index) = self.open_block(piece.reasoning);
                let name = if piece.reasoning { "response.reasoning_text.delta" } else { "response.output_text.delta" };
                opened + &self.named(name, json!({"output_index": index, "content_index": 0, "delta": text}))
            }
        }
    }

    /// The terminal signal, with usage where the API or the request wants it.
    pub(crate) fn closing(&mut self, answer: &Answer) -> String {
        let reason = self.finish(answer.finish);
        match self.api {
            Api::Chat | Api::Completions => {
                let mut text = match self.api {
                    Api::Chat => self.chat(json!({}), json!(reason)),
                    _ => self.completion("", json!(reason)),
                };
                if self.include_usage {
                    text += &data(&self.envelope(json!([]), self.usage()));
                }
                text + "data: [DONE]\n\n"
            }
            Api::Messages => {
                let closed = self.close_block();
                let delta = self.named(
                    "message_delta",
                    json!({"delta": {"stop_reason": reason, "stop_sequence": null}, "usage": self.usage()}),
                );
                closed + &delta + &self.named("message_stop", json!({}))
            }
            Api::Responses => {
                let closed = self.close_block();
                let response = self.finished_response(answer);
                let name = if answer.finish == Finish::Stop { "response.completed" } else { "response.incomplete" };
                closed + &self.named(name, json!({"response": response}))
            }
        }
    }

    /// An error in the middle of a stream.
    pub(crate) fn in_band(&mut self, message: &str) -> String {
        match self.api {
            Api::Chat | Api::Completions => data(&error_body(self.api, 500, "server_error", "internal_error", message)),
            Api::Messages => self.named("error", json!({"error": {"type": "api_error", "message": message}})),
            Api::Responses => {
                let error = json!({"code": "server_error", "message": message});
                let response = self.response("failed", Value::Null, json!([]), error);
                self.named("response.failed", json!({"response": response}))
            }
        }
    }

    /// The whole answer as one object.
    pub(crate) fn whole(&mut self, answer: &Answer) -> Value {
        self.said = answer.pieces.len() as u64;
        self.thought = answer.pieces.iter().filter(|p| p.reasoning).count() as u64;
        let reason = self.finish(answer.finish);
        let (text, reasoning) = (answer.text(), answer.reasoning());
        match self.api {
            Api::Chat => {
                let mut message = json!({"role": "assistant", "content": text});
                if !reasoning.is_empty() {
                    message["reasoning_content"] = json!(reasoning);
                }
                json!({"id": self.id, "object": "chat.completion", "created": self.created, "model": self.model,
                    "system_fingerprint": FINGERPRINT, "usage": self.usage(),
                    "choices": [{"index": 0, "message": message, "finish_reason": reason, "logprobs": null}]})
            }
            Api::Completions => json!({"id": self.id, "object": "text_completion", "created": self.created,
                "model": self.model, "system_fingerprint": FINGERPRINT, "usage": self.usage(),
                "choices": [{"index": 0, "text": text, "finish_reason": reason, "logprobs": null}]}),
            Api::Messages => {
                let mut content = Vec::new();
                if !reasoning.is_empty() {
                    content.push(json!({"type": "thinking", "thinking": reasoning, "signature": ""}));
                }
                content.push(json!({"type": "text", "text": text}));
                json!({"id": self.id, "type": "message", "role": "assistant", "model": self.model, "content": content,
                    "stop_reason": reason, "stop_sequence": null, "usage": self.usage()})
            }
            Api::Responses => self.finished_response(answer),
        }
    }

    fn finish(&self, finish: Finish) -> &'static str {
        match (self.api, finish) {
            (Api::Messages, Finish::Stop) => "end_turn",
            (Api::Messages, Finish::Length) => "max_tokens",
            (_, Finish::Stop) => "stop",
            (_, Finish::Length) => "length",
        }
    }

    fn usage(&self) -> Value {
        let PromptTokens { all, cached } = self.prompt;
        match self.api {
            Api::Chat | Api::Completions => {
                json!({"prompt_tokens": all, "completion_tokens": self.said, "total_tokens": all + self.said,
                    "prompt_tokens_details": {"cached_tokens": cached},
                    "completion_tokens_details": {"reasoning_tokens": self.thought}})
            }
            // Input tokens are counted without the cached ones in this API.
            Api::Messages => json!({"input_tokens": all - cached, "cache_read_input_tokens": cached,
                "cache_creation_input_tokens": 0, "output_tokens": self.said}),
            Api::Responses => json!({"input_tokens": all, "input_tokens_details": {"cached_tokens": cached},
                "output_tokens": self.said, "output_tokens_details": {"reasoning_tokens": self.thought},
                "total_tokens": all + self.said}),
        }
    }

    fn envelope(&self, choices: Value, usage: Value) -> Value {
        let object = if self.api == Api::Chat { "chat.completion.chunk" } else { "text_completion" };
        let mut chunk = json!({"id": self.id, "object": object, "created": self.created, "model": self.model,
            "system_fingerprint": FINGERPRINT, "choices": choices});
        if self.include_usage {
            chunk["usage"] = usage;
        }
        chunk
    }

    fn chat(&self, delta: Value, finish: Value) -> String {
        data(
            &self.envelope(
                json!([{"index": 0, "delta": delta, "finish_reason": finish, "logprobs": null}]),
                Value::Null,
            ),
        )
    }

    fn completion(&self, text: &str, finish: Value) -> String {
        data(
            &self.envelope(json!([{"index": 0, "text": text, "finish_reason": finish, "logprobs": null}]), Value::Null),
        )
    }

    /// Opens a block of the wanted sort where none is open, closing one of the other sort. Gives its index.
    fn open_block(&mut self, reasoning: bool) -> (String, u32) {
        let next = match self.block {
            Some((index, sort)) if sort == reasoning => return (String::new(), index),
            Some((index, _)) => index + 1,
            None => 0,
        };
        let mut text = self.close_block();
        self.block = Some((next, reasoning));
        if self.api == Api::Messages {
            let block = if reasoning {
                json!({"type": "thinking", "thinking": "", "signature": ""})
            } else {
                json!({"type": "text", "text": ""})
            };
            text += &self.named("content_block_start", json!({"index": next, "content_block": block}));
        } else {
            let sort = if reasoning { "reasoning" } else { "message" };
            let item = json!({"type": sort, "status": "in_progress", "content": []});
            text += &self.named("response.output_item.added", json!({"output_index": next, "item": item}));
            if !reasoning {
                let part = json!({"type": "output_text", "text": "", "annotations": []});
                text += &self.named(
                    "response.content_part.added",
                    json!({"output_index": next, "content_index": 0, "part": part}),
                );
            }
        }
        (text, next)
    }

    fn close_block(&mut self) -> String {
        let Some((index, reasoning)) = self.block.take() else { return String::new() };
        if self.api == Api::Messages {
            return self.named("content_block_stop", json!({"index": index}));
        }
        let sort = if reasoning { "reasoning" } else { "message" };
        self.named(
            "response.output_item.done",
            json!({"output_index": index, "item": {"type": sort, "status": "completed"}}),
        )
    }

    fn finished_response(&self, answer: &Answer) -> Value {
        let (status, incomplete) = match answer.finish {
            Finish::Stop => ("completed", Value::Null),
            Finish::Length => ("incomplete", json!({"reason": "max_output_tokens"})),
        };
        let part = json!({"type": "output_text", "text": answer.text(), "annotations": []});
        let message = json!({"type": "message", "role": "assistant", "status": status, "content": [part]});
        let mut response = self.response(status, incomplete, json!([message]), Value::Null);
        response["usage"] = self.usage();
        response
    }

    fn response(&self, status: &str, incomplete: Value, output: Value, error: Value) -> Value {
        json!({"id": self.id, "object": "response", "created_at": self.created, "model": self.model, "status": status,
            "incomplete_details": incomplete, "output": output, "error": error, "usage": null})
    }

    /// An event whose name stands in the `event:` line and in the `type` of its data.
    fn named(&mut self, name: &str, mut fields: Value) -> String {
        fields["type"] = json!(name);
        if self.api == Api::Responses {
            fields["sequence_number"] = json!(self.sequence);
            self.sequence += 1;
        }
        format!("event: {name}\n{}", data(&fields))
    }
}

fn data(value: &Value) -> String {
    format!("data: {value}\n\n")
}
