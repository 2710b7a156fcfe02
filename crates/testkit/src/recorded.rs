//! Recorded answers of real servers (`testdata/recorded`): what was sent, the raw bytes that came back and when, and
//! the true values that the recorder's own parser found.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD as BASE64;
use peaklane_core::lane::Api;
use peaklane_core::record::Usage;
use serde::Deserialize;
use serde_json::Value;

use crate::data;

/// One recorded exchange.
#[derive(Clone, Debug)]
pub struct Recording {
    /// Folder: the server and its set-up.
    pub server: String,
    /// Name of the exchange.
    pub name: String,
    /// What was sent.
    pub request: RecordedRequest,
    /// The recorder's remark.
    pub note: Option<String>,
    /// One entry per `recv()` of the recorder.
    pub pieces: Vec<Piece>,
    /// How it ended.
    pub how: EndHow,
    /// When, milliseconds after the last byte of the request.
    pub end_ms: f64,
    /// The true values.
    pub truth: Truth,
}

/// What was sent.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct RecordedRequest {
    /// HTTP method.
    pub method: String,
    /// Path with query.
    pub path: String,
    /// Header lines; recorded as an object, so in no order.
    #[serde(default)]
    pub headers: BTreeMap<String, String>,
    /// The body, if there was one. It need not be JSON: some recordings are of broken requests.
    pub body: Option<String>,
}

/// Bytes that came at one moment. Empty: the end of the stream.
#[derive(Clone, Debug, PartialEq)]
pub struct Piece {
    /// Milliseconds after the last byte of the request.
    pub t_ms: f64,
    /// Raw bytes: status line, headers, chunk sizes and all.
    pub bytes: Vec<u8>,
}

/// How a recorded exchange ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum EndHow {
    /// The server closed the connection.
    Eof,
    /// The recorder closed it; the server would have gone on.
    ClientClosed,
    /// The answer was whole; the connection stayed open, as far as the recorder saw.
    ResponseComplete,
    /// The server reset the connection.
    Reset,
    /// The recorder's patience ended; nothing more came.
    Timeout,
}

/// The true values of an exchange. What a field means is in `testdata/recorded/README.md`; absent: not known.
#[derive(Clone, Debug, Default, Deserialize)]
pub struct Truth {
    /// HTTP status.
    pub status: Option<u16>,
    /// `Content-Type`.
    pub content_type: Option<String>,
    /// Raw bytes that came, head and framing included.
    pub bytes: Option<u64>,
    /// First byte, milliseconds.
    pub first_byte_ms: Option<f64>,
    /// `false`: the body was cut.
    pub body_complete: Option<bool>,
    /// `false`: a plain body that is no JSON (metrics).
    pub body_is_json: Option<bool>,
    /// SSE events with data.
    pub sse_data_events: Option<u64>,
    /// SSE comments.
    pub sse_comments: Option<u64>,
    /// Chunks with nothing but a role.
    pub role_chunks: Option<u64>,
    /// Chunks with text.
    pub content_chunks: Option<u64>,
    /// Chunks with pieces of tool calls.
    pub tool_call_chunks: Option<u64>,
    /// Chunks with reasoning.
    pub reasoning_chunks: Option<u64>,
    /// Tool calls of a plain answer.
    pub tool_calls: Option<u64>,
    /// Length of the text, characters.
    pub text_len: Option<u64>,
    /// First content (first tool-call piece where there is no text), milliseconds.
    pub first_content_ms: Option<f64>,
    /// Last content, milliseconds.
    pub last_content_ms: Option<f64>,
    /// As sent.
    pub finish_reason: Option<String>,
    /// `[DONE]` or the API's own stop event came.
    pub done_marker: Option<bool>,
    /// Token counts in the server's own spelling.
    pub usage: Option<Value>,
    /// Error object of the body or the stream.
    pub error: Option<Value>,
    /// llama.cpp's own figures.
    pub timings: Option<Value>,
    /// The recorder's clock started late: the times of this exchange are too small.
    pub timing_suspect: Option<String>,
    /// How the exchange ended.
    pub end: Option<EndHow>,
    /// When.
    pub end_ms: Option<f64>,
    /// Reads of the recorder.
    pub recv_count: Option<u64>,
    /// A remark.
    pub note: Option<String>,
    /// What this reader does not understand; tolerated, since the values are about the server as well.
    #[serde(flatten)]
    pub other: BTreeMap<String, Value>,
}

impl Truth {
    /// `usage` in our words: prompt (whole), completion, cached. The other counts stay `None`. `None` where no usage
    /// was reported.
    ///
    /// Anthropic's `input_tokens` leaves the cached part out (recognised by `cache_read_input_tokens`), the Responses
    /// API's includes it.
    pub fn usage_counts(&self) -> Option<Usage> {
        let usage = self.usage.as_ref().filter(|u| u.is_object())?;
        let n = |pointer: &str| usage.pointer(pointer).and_then(Value::as_u64);
        let read = n("/cache_read_input_tokens");
        let written = n("/cache_creation_input_tokens");
        let input = n("/prompt_tokens").or_else(|| n("/input_tokens"));
        Some(Usage {
            prompt: input.map(|i| i + read.unwrap_or(0) + written.unwrap_or(0)),
            completion: n("/completion_tokens").or_else(|| n("/output_tokens")),
            cached: n("/prompt_tokens_details/cached_tokens")
                .or_else(|| n("/input_tokens_details/cached_tokens"))
                .or(read),
            ..Usage::default()
        })
    }
}

impl Recording {
    /// `server/name`.
    pub fn key(&self) -> String {
        format!("{}/{}", self.server, self.name)
    }

    /// The inference API that the request speaks; `None` for models, health, metrics, token counting.
    pub fn api(&self) -> Option<Api> {
        let path = self.request.path.split('?').next().unwrap_or_default();
        // the chat path ends like the legacy one, so the longest match decides
        Api::ALL
            .into_iter()
            .filter(|api| self.request.method == "POST" && path.ends_with(&format!("/{}", api.path())))
            .max_by_key(|api| api.path().len())
    }

    /// The request's body as JSON; `None` where there is none or it is broken.
    pub fn request_json(&self) -> Option<Value> {
        serde_json::from_str(self.request.body.as_deref()?).ok()
    }

    /// A stream was asked for.
    pub fn asks_for_stream(&self) -> bool {
        self.request_json().is_some_and(|body| body["stream"] == true)
    }

    /// All bytes that came.
    pub fn bytes(&self) -> Vec<u8> {
        self.pieces.iter().flat_map(|p| p.bytes.iter().copied()).collect()
    }
}

/// All recordings, by folder and name.
///
/// # Panics
/// When the folder is missing or empty, a file cannot be read, or index and files do not match.
pub fn recordings() -> Vec<Recording> {
    let root = data::testdata("recorded");
    let mut folders: Vec<_> = fs::read_dir(&root)
        .unwrap_or_else(|e| panic!("cannot list {}: {e}", root.display()))
        .filter_map(|entry| entry.ok().map(|e| e.path()))
        .filter(|path| path.is_dir())
        .collect();
    folders.sort();
    let all: Vec<_> = folders.iter().flat_map(|folder| read_folder(folder)).collect();
    assert!(!all.is_empty(), "no recordings in {}", root.display());
    all
}

#[derive(Deserialize)]
struct Index {
    cases: BTreeMap<String, Truth>,
}

fn read_folder(folder: &Path) -> Vec<Recording> {
    let server = folder.file_name().unwrap_or_default().to_string_lossy().into_owned();
    let index = fs::read_to_string(folder.join("index.json")).unwrap_or_else(|e| panic!("{server}/index.json: {e}"));
    let mut index: Index = serde_json::from_str(&index).unwrap_or_else(|e| panic!("{server}/index.json: {e}"));
    let recordings: Vec<_> = data::texts_in(folder, "jsonl")
        .into_iter()
        .map(|(name, text)| {
            let truth = index.cases.remove(&name).unwrap_or_else(|| panic!("{server}/{name} is not in the index"));
            parse(&server, &name, &text, truth).unwrap_or_else(|e| panic!("{server}/{name}: {e}"))
        })
        .collect();
    assert!(index.cases.is_empty(), "{server}: no files for {:?}", index.cases.keys());
    recordings
}

#[derive(Deserialize)]
struct Line {
    kind: Option<String>,
    t: Option<f64>,
    s: Option<String>,
    b64: Option<String>,
    how: Option<EndHow>,
    note: Option<String>,
}

/// Reads one JSON-lines file.
fn parse(server: &str, name: &str, text: &str, truth: Truth) -> Result<Recording, String> {
    let mut request = None;
    let mut note = None;
    let mut pieces: Vec<Piece> = Vec::new();
    let mut end = None;
    for (number, text) in text.lines().filter(|l| !l.trim().is_empty()).enumerate() {
        let at = |e: &dyn std::fmt::Display| format!("line {}: {e}", number + 1);
        let line: Line = serde_json::from_str(text).map_err(|e| at(&e))?;
        match (line.kind.as_deref(), line.t) {
            (Some("request"), _) => {
                let mut value: Value = serde_json::from_str(text).map_err(|e| at(&e))?;
                if let Some(fields) = value.as_object_mut() {
                    fields.remove("kind");
                }
                request = Some(serde_json::from_value(value).map_err(|e| at(&e))?);
            }
            (Some("meta"), _) => note = line.note,
            (Some("end"), Some(t)) => end = Some((line.how.ok_or_else(|| at(&"no `how`"))?, t)),
            (None, Some(t)) => {
                if pieces.last().is_some_and(|p| p.t_ms > t) {
                    return Err(at(&"time runs backwards"));
                }
                let bytes = match (line.s, line.b64) {
                    (Some(s), None) => s.into_bytes(),
                    (None, Some(b64)) => BASE64.decode(b64).map_err(|e| at(&e))?,
                    _ => return Err(at(&"neither `s` nor `b64`, or both")),
                };
                pieces.push(Piece { t_ms: t, bytes });
            }
            _ => return Err(at(&"unknown kind of line")),
        }
    }
    let (how, end_ms) = end.ok_or("no end")?;
    Ok(Recording {
        server: server.to_owned(),
        name: name.to_owned(),
        request: request.ok_or("no request")?,
        note,
        pieces,
        how,
        end_ms,
        truth,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_recorded_case_agrees_with_its_index_on_bytes_reads_and_end() {
        for recording in recordings() {
            let (key, truth) = (recording.key(), &recording.truth);
            assert_eq!(truth.bytes, Some(recording.bytes().len() as u64), "{key}");
            assert_eq!(truth.recv_count, Some(recording.pieces.len() as u64), "{key}");
            assert_eq!(truth.end, Some(recording.how), "{key}");
            assert_eq!(truth.end_ms, Some(recording.end_ms), "{key}");
            let first = recording.pieces.iter().find(|p| !p.bytes.is_empty());
            assert_eq!(truth.first_byte_ms, first.map(|p| p.t_ms), "{key}");
            if let Some(status) = truth.status {
                assert!(recording.bytes().starts_with(format!("HTTP/1.1 {status} ").as_bytes()), "{key}");
            }
        }
    }

    fn counts(usage: &str) -> [Option<u64>; 3] {
        let truth = Truth { usage: serde_json::from_str(usage).unwrap(), ..Truth::default() };
        let usage = truth.usage_counts().unwrap();
        [usage.prompt, usage.completion, usage.cached]
    }

    #[test]
    fn the_prompt_of_every_api_is_the_whole_one() {
        let anthropic = r#"{"input_tokens":1,"output_tokens":16,"cache_read_input_tokens":25}"#;
        assert_eq!(counts(anthropic), [Some(26), Some(16), Some(25)]);
        let responses = r#"{"input_tokens":33,"output_tokens":12,"input_tokens_details":{"cached_tokens":24}}"#;
        assert_eq!(counts(responses), [Some(33), Some(12), Some(24)]);
        let chat = r#"{"prompt_tokens":20,"completion_tokens":4,"total_tokens":24}"#;
        assert_eq!(counts(chat), [Some(20), Some(4), None]);
        assert!(Truth::default().usage_counts().is_none());
    }

    #[test]
    fn a_broken_recording_is_an_error() {
        let good = "{\"kind\":\"request\",\"method\":\"GET\",\"path\":\"/v1/models\",\"headers\":{},\"body\":null}\n\
            {\"t\":1.5,\"s\":\"HTTP\"}\n{\"kind\":\"end\",\"how\":\"reset\",\"t\":2}\n";
        let read = |text: &str| parse("s", "n", text, Truth::default());
        let recording = read(good).unwrap();
        assert_eq!(recording.pieces, [Piece { t_ms: 1.5, bytes: b"HTTP".to_vec() }]);
        assert_eq!((recording.how, recording.api()), (EndHow::Reset, None));
        for (from, to) in [("\"reset\"", "\"tired\""), ("\"s\"", "\"z\""), ("\"end\"", "\"fin\""), ("\"GET\"", "1")] {
            assert!(read(&good.replace(from, to)).is_err(), "{to}");
        }
    }
}
