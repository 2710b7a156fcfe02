//! The stream cases, typed. `testdata/cases/README.md` defines the format.
//!
//! Unknown keys are errors: a set of cases that uses something this reader does not know must not pass silently.

use peaklane_core::lane::Api;
use serde::de::Error as _;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::data;
use crate::expected::Expected;
pub use crate::step::Step;

/// One stream case: a request, what the server does, what a right client reports.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Case {
    /// Unique name, part of the URL.
    pub id: String,
    /// Family of the case: `framing`, `timeout`, ...
    #[serde(default)]
    pub kind: String,
    /// The public report or document that it was distilled from.
    #[serde(default)]
    pub source: Vec<String>,
    /// The API of the request.
    pub api: CaseApi,
    /// What the client sends.
    pub request: CaseRequest,
    /// Limits of the client; what is absent is generous.
    #[serde(default)]
    pub client: ClientLimits,
    /// The only answer.
    #[serde(default)]
    response: Option<Answer>,
    /// One answer per request, the last repeats.
    #[serde(default)]
    responses: Vec<Answer>,
    /// Answers chosen by path or query; they come first and do not count.
    #[serde(default)]
    pub routes: Vec<Route>,
    /// After the last of `responses` the first follows again.
    #[serde(default)]
    pub cycle: bool,
    /// What a right client reports.
    pub expected: Expected,
    /// The body that a proxy must deliver.
    #[serde(default)]
    pub proxy: Option<ProxyTruth>,
    /// The case asks for a decision: another choice is fine if it is documented and reported.
    #[serde(default)]
    pub advisory: bool,
    /// A remark.
    #[serde(default)]
    pub note: String,
}

/// The API as the cases spell it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
pub enum CaseApi {
    /// Chat completions.
    #[serde(rename = "openai-chat")]
    Chat,
    /// Legacy completions.
    #[serde(rename = "openai-completions")]
    Completions,
    /// Anthropic messages.
    #[serde(rename = "anthropic-messages")]
    Messages,
    /// OpenAI Responses.
    #[serde(rename = "openai-responses")]
    Responses,
}

impl From<CaseApi> for Api {
    fn from(api: CaseApi) -> Self {
        match api {
            CaseApi::Chat => Self::Chat,
            CaseApi::Completions => Self::Completions,
            CaseApi::Messages => Self::Messages,
            CaseApi::Responses => Self::Responses,
        }
    }
}

/// What the client sends.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct CaseRequest {
    /// HTTP method.
    pub method: String,
    /// Path below `/case/<id>`: `/v1/chat/completions`.
    pub path: String,
    /// A stream is asked for.
    #[serde(default)]
    pub stream: bool,
}

/// Limits that a case sets, milliseconds; `None`: generous.
#[derive(Clone, Copy, Debug, Default, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ClientLimits {
    /// Longest wait for the first byte of the response.
    #[serde(default)]
    pub first_byte_timeout_ms: Option<u64>,
    /// Longest gap between two bytes.
    #[serde(default)]
    pub idle_timeout_ms: Option<u64>,
    /// Longest exchange.
    #[serde(default)]
    pub total_timeout_ms: Option<u64>,
    /// Retries of the client; the cases are always run without.
    #[serde(default)]
    pub max_retries: Option<u32>,
}

/// An answer that is chosen by the request's path or query.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Route {
    /// All given conditions hold.
    #[serde(rename = "match")]
    pub condition: RouteMatch,
    /// The answer then.
    pub response: Answer,
}

/// Conditions of a route.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct RouteMatch {
    /// The path below `/case/<id>` is this.
    #[serde(default)]
    pub path: Option<String>,
    /// The query has this text.
    #[serde(default)]
    pub query_has: Option<String>,
    /// The query lacks this text.
    #[serde(default)]
    pub query_lacks: Option<String>,
}

impl RouteMatch {
    /// True when a request with this path and query takes the route.
    pub fn holds(&self, path: &str, query: &str) -> bool {
        self.path.as_deref().is_none_or(|p| p == path)
            && self.query_has.as_deref().is_none_or(|q| query.contains(q))
            && self.query_lacks.as_deref().is_none_or(|q| !query.contains(q))
    }
}

/// One answer of the server, step by step.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Answer {
    /// HTTP status; `None`: no head is sent at all.
    #[serde(default)]
    pub status: Option<u16>,
    /// Reason phrase, where it is not the usual one.
    #[serde(default)]
    pub reason: Option<String>,
    /// Header lines in order, with `{http_date:+20}`, `{base}`, `{other}` to be filled in.
    #[serde(default)]
    pub headers: Vec<(String, String)>,
    /// How the body's end is marked.
    #[serde(default)]
    pub framing: Framing,
    /// A `Content-Length` that is not the true one.
    #[serde(default)]
    pub content_length: Option<u64>,
    /// When the head goes out; `None`: with the first step.
    #[serde(default)]
    pub head_at_ms: Option<f64>,
    /// The pieces of the body.
    #[serde(default)]
    pub steps: Vec<Step>,
    /// How the answer ends.
    #[serde(default)]
    pub close: Close,
}

impl Answer {
    /// A whole JSON answer at `at_ms`, for lanes scripted in a test.
    pub fn json(status: u16, at_ms: f64, body: &str) -> Self {
        Self {
            status: Some(status),
            headers: vec![("Content-Type".to_owned(), "application/json".to_owned())],
            framing: Framing::Length,
            steps: vec![Step::new(at_ms, body)],
            ..Self::default()
        }
    }

    /// A chunked event stream, for lanes scripted in a test: (milliseconds, bytes as they go out).
    pub fn events<'a>(steps: impl IntoIterator<Item = (f64, &'a str)>) -> Self {
        Self {
            status: Some(200),
            headers: vec![("Content-Type".to_owned(), "text/event-stream".to_owned())],
            steps: steps.into_iter().map(|(at_ms, text)| Step::new(at_ms, text)).collect(),
            ..Self::default()
        }
    }

    /// The whole body as sent, without framing.
    pub fn body(&self) -> Vec<u8> {
        self.steps.iter().flat_map(|s| s.bytes.iter().copied()).collect()
    }

    /// When the head goes out, milliseconds after the last byte of the request.
    pub fn head_at_ms(&self) -> f64 {
        self.head_at_ms.or_else(|| self.steps.first().map(|s| s.at_ms)).unwrap_or(0.0)
    }
}

/// How the end of a body is marked.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Framing {
    /// Chunked transfer coding, one chunk per step.
    #[default]
    Chunked,
    /// `Content-Length`.
    Length,
    /// The connection's end.
    Close,
}

/// How an answer ends.
#[derive(Clone, Copy, Debug, Default, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Close {
    /// The manner.
    #[serde(default)]
    pub how: CloseHow,
    /// When; `None`: right after the last step.
    #[serde(default)]
    pub at_ms: Option<f64>,
}

/// The manner in which an answer ends.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum CloseHow {
    /// As its framing says.
    #[default]
    Clean,
    /// The connection is closed without the last chunk.
    Fin,
    /// The connection is reset.
    Rst,
}

/// Length and hash of the body that the last response sends, before any decoding.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ProxyTruth {
    /// Bytes.
    pub body_len: u64,
    /// SHA-256, lower-case hex.
    pub body_sha256: String,
}

impl Case {
    /// Reads one case.
    ///
    /// # Errors
    /// The text is no JSON, has a key this reader does not know, lacks one it needs, or holds no answer.
    pub fn parse(text: &str) -> Result<Self, serde_json::Error> {
        let case: Self = serde_json::from_str(text)?;
        match (&case.response, case.responses.is_empty()) {
            (None, true) => Err(serde_json::Error::custom("neither `response` nor `responses`")),
            (Some(_), false) => Err(serde_json::Error::custom("both `response` and `responses`")),
            _ => Ok(case),
        }
    }

    /// A lane scripted in a test: one answer per request, the last repeats. It expects nothing but `ok`.
    pub fn scripted(id: &str, api: CaseApi, answers: Vec<Answer>) -> Self {
        assert!(!answers.is_empty(), "a scripted lane needs an answer");
        Self {
            id: id.to_owned(),
            kind: "scripted".to_owned(),
            source: Vec::new(),
            api,
            request: CaseRequest {
                method: "POST".to_owned(),
                path: format!("/v1/{}", Api::from(api).path()),
                stream: true,
            },
            client: ClientLimits::default(),
            response: None,
            responses: answers,
            routes: Vec::new(),
            cycle: false,
            expected: Expected::of("ok"),
            proxy: None,
            advisory: false,
            note: String::new(),
        }
    }

    /// The answers by number of the request; never empty.
    pub fn answers(&self) -> &[Answer] {
        match &self.response {
            Some(only) => std::slice::from_ref(only),
            None => &self.responses,
        }
    }

    /// The answer to the request number `n` (from 0) among those that no route took.
    pub fn answer(&self, n: usize) -> &Answer {
        let answers = self.answers();
        let last = answers.len() - 1;
        &answers[if self.cycle { n % answers.len() } else { n.min(last) }]
    }

    /// The route that a request takes, if any.
    pub fn route(&self, path: &str, query: &str) -> Option<&Answer> {
        self.routes.iter().find(|r| r.condition.holds(path, query)).map(|r| &r.response)
    }
}

/// All stream cases, by file name.
///
/// # Panics
/// When the folder is missing or empty, or when a file is no case: nothing is skipped silently.
pub fn stream_cases() -> Vec<Case> {
    data::texts("cases/stream", "json")
        .into_iter()
        .map(|(name, text)| tolerant(&name, &text).unwrap_or_else(|e| panic!("case {name}: {e}")))
        .collect()
}

/// Reads a case; keys that this version does not know are noted and left out where the set is not the project's own.
pub(crate) fn tolerant(name: &str, text: &str) -> Result<Case, String> {
    let mut text = text.to_owned();
    loop {
        let error = match Case::parse(&text) {
            Ok(case) => return Ok(case),
            Err(error) => error.to_string(),
        };
        let Some(key) = error.strip_prefix("unknown field `").and_then(|rest| rest.split('`').next()) else {
            return Err(error);
        };
        data::unread(&format!("case {name} has a key `{key}`")).map_err(|_| error.clone())?;
        let mut value: Value = serde_json::from_str(&text).map_err(|e| e.to_string())?;
        remove(&mut value, key);
        text = value.to_string();
    }
}

fn remove(value: &mut Value, key: &str) {
    match value {
        Value::Object(map) => {
            map.remove(key);
            map.values_mut().for_each(|v| remove(v, key));
        }
        Value::Array(items) => items.iter_mut().for_each(|v| remove(v, key)),
        _ => {}
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_stream_case_can_be_read_and_says_its_file_name() {
        for (name, text) in data::texts("cases/stream", "json") {
            let case = tolerant(&name, &text).unwrap_or_else(|e| panic!("{name}: {e}"));
            assert_eq!(case.id, name);
            assert!(!case.answers().is_empty());
            assert!(case.request.path.ends_with(Api::from(case.api).path()), "{name}: {}", case.request.path);
        }
    }

    const SMALL: &str = r#"{"id":"x","api":"openai-chat","request":{"method":"POST","path":"/v1/chat/completions"},
        "response":{"status":200,"steps":[STEP]},"expected":{"outcome":"ok"}}"#;

    fn with_step(step: &str) -> Result<Case, serde_json::Error> {
        Case::parse(&SMALL.replace("STEP", step))
    }

    #[test]
    fn an_unknown_key_of_a_case_fails_loudly_wherever_it_stands() {
        assert!(with_step(r#"{"at_ms":1,"text":"a"}"#).is_ok());
        for wrong in [
            SMALL.replace("STEP", "").replace(r#""id":"x""#, r#""id":"x","sort":1"#),
            SMALL.replace("STEP", r#"{"at_ms":1,"txt":"a"}"#),
            SMALL.replace("STEP", r#"{"at_ms":1,"parts":[{"text":"a","times":2}]}"#),
            SMALL.replace("STEP", "").replace(r#""status":200"#, r#""status":200,"trailer":[]"#),
            SMALL.replace("STEP", "").replace(r#""outcome":"ok""#, r#""outcome":"ok","colour":"red""#),
            SMALL.replace("STEP", "").replace(r#""status":200"#, r#""status":200,"close":{"how":"slam"}"#),
        ] {
            assert!(Case::parse(&wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn pieces_are_repeated_and_joined_like_the_reference_server_does() {
        let bytes = |step: &str| with_step(step).unwrap().answer(0).body();
        assert_eq!(bytes(r#"{"at_ms":1,"text":"ab","rep":3}"#), b"ababab");
        assert_eq!(bytes(r#"{"at_ms":1,"b64":"AP8=","rep":2}"#), [0, 255, 0, 255]);
        assert_eq!(bytes(r#"{"at_ms":1,"parts":[{"text":"<"},{"text":"x","rep":4},{"b64":"Pg=="}]}"#), b"<xxxx>");
        // "surrogatepass": half a pair goes out as the three bytes that UTF-8 would give it
        assert_eq!(bytes(r#"{"at_ms":1,"text":"\ud83d"}"#), [0xED, 0xA0, 0xBD]);
        assert_eq!(bytes(r#"{"at_ms":1,"text":"\ud83d\ude00"}"#), "😀".as_bytes());
        assert!(with_step(r#"{"at_ms":1,"b64":"*"}"#).is_err());
    }

    #[test]
    fn the_last_answer_repeats_unless_the_case_goes_round() {
        let answers = || vec![Answer::json(503, 1.0, "a"), Answer::json(200, 1.0, "b")];
        let mut case = Case::scripted("x", CaseApi::Chat, answers());
        let seen = |case: &Case| (0..4).map(|n| case.answer(n).status.unwrap()).collect::<Vec<_>>();
        assert_eq!(seen(&case), [503, 200, 200, 200]);
        case.cycle = true;
        assert_eq!(seen(&case), [503, 200, 503, 200]);
    }
}
