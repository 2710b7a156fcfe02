//! Puts calls together: what was asked, where it belongs, what it shares, how it ended.

use std::collections::HashMap;
use std::hash::{BuildHasher as _, RandomState};

use peaklane_core::call::{CallRecord, Delivery, Gap, PrefixFigures, SESSION_HEADERS, SessionBy};
use peaklane_core::lane::Api;
use peaklane_core::prefix::{Bounds, Prompt, Sessions};
use peaklane_core::record::TryRecord;
use peaklane_wire::decode::Decoder;
use peaklane_wire::proxy::{Asked, Ended, MAX_REQUEST_BYTES};

use super::keep::Bodies;

/// Bytes of canonical text a token, where no server has told yet: the usual figure for English and code.
const BYTES_PER_TOKEN: f64 = 4.0;
/// Most models of which tokens per byte are learned.
const MOST_MODELS: usize = 256;
/// Longest name of a harness or session that is kept, characters.
const MAX_NAME_CHARS: usize = 120;
/// Most calls that are under way at once, as far as this knows: beyond the connections that any proxy has.
const MOST_OPEN: usize = 100_000;

/// What is known of a call that is under way.
struct Open {
    session: String,
    session_by: SessionBy,
    seq: u32,
    retry: u32,
    harness: Option<String>,
    lane: Option<String>,
    started_unix_us: i64,
    path: String,
    api: Api,
    model: Option<String>,
    tools: u32,
    request_bytes: u64,
    usage_injected: bool,
    prefix: Option<PrefixFigures>,
    gap: Option<Gap>,
}

/// Prompt bytes and tokens that servers reported for one lane and model.
#[derive(Clone, Copy, Default)]
struct Ratio {
    bytes: u64,
    tokens: u64,
}

/// All calls that are under way, and the sessions they belong to.
pub struct Book {
    /// Unique to the process.
    prefix: String,
    sessions: Sessions,
    open: HashMap<u64, Open>,
    ratios: HashMap<(Option<String>, Option<String>), Ratio>,
    /// Prompts are read and compared.
    analyse: bool,
    /// Calls without a session of their own, where prompts are not compared.
    unplaced: u32,
    bodies: Option<Bodies>,
    /// Makes names of what no text is kept of; `None` keeps texts.
    names: Option<RandomState>,
    last_ms: u64,
    first_us: Option<i64>,
}

impl Book {
    /// An empty book. `prefix` begins the ids of its calls and the names of its nameless sessions.
    pub fn new(prefix: &str, bounds: Bounds, analyse: bool, bodies: Option<Bodies>) -> Self {
        Self {
            prefix: prefix.to_owned(),
            sessions: Sessions::new(bounds, &format!("{prefix}-")),
            open: HashMap::new(),
            ratios: HashMap::new(),
            analyse,
            unplaced: 0,
            bodies,
            names: None,
            last_ms: 0,
            first_us: None,
        }
    }

    /// Keeps no texts: calls are without them ([`CallRecord::forget_texts`]), and a session that a field of the body names,
    /// which may be a person's name, gets another one, good for the life of this book.
    pub fn without_texts(mut self) -> Self {
        self.names = Some(RandomState::new());
        self
    }

    /// Calls under way, sessions, and bytes of texts and hashes that are kept.
    pub fn extent(&self) -> (usize, usize, usize) {
        let (texts, hashes) = self.sessions.kept_bytes();
        (self.open.len(), self.sessions.len(), texts + hashes)
    }

    /// A request went out.
    pub fn asked(&mut self, asked: Asked) {
        if self.open.len() >= MOST_OPEN {
            return;
        }
        let header = |name: &str| asked.headers.iter().find(|(n, _)| n == name).map(|(_, v)| v.as_str());
        let by_header = SESSION_HEADERS.iter().find_map(|name| header(name)).map(short).filter(|v| !v.is_empty());
        let harness = header("user-agent").map(short);
        let named = match (&asked.session, by_header) {
            (Some(session), _) => Some((SessionBy::Path, session.clone())),
            (None, Some(session)) => Some((SessionBy::Header, session)),
            (None, None) => None,
        };
        let coding = header("content-encoding").map(str::to_owned);
        let (prompt, gap) = match &asked.body {
            Ok(_) if !self.analyse => (None, None),
            Ok(held) => match plain(held.bytes(), coding.as_deref()) {
                Some(bytes) => match Prompt::from_body(asked.api, &bytes) {
                    Ok(prompt) => (Some(prompt), None),
                    Err(_) => (None, Some(Gap::Unreadable)),
                },
                None => (None, Some(Gap::Unreadable)),
            },
            Err(gap) => (None, Some(*gap)),
        };
        let (model, tools) = prompt.as_ref().map_or((None, 0), |p| (p.asked.model.clone(), p.asked.tools));
        let named = named.or_else(|| {
            let field = prompt.as_ref()?.asked.session.as_deref().map(short)?;
            let name =
                self.names.as_ref().map(|names| format!("{}-field-{:016x}", self.prefix, names.hash_one(&field)));
            Some((SessionBy::Field, name.unwrap_or(field)))
        });
        // A clock that is set back must not make sessions look idle for ever.
        let first = *self.first_us.get_or_insert(asked.started_unix_us);
        let now_ms = u64::try_from((asked.started_unix_us - first) / 1_000).unwrap_or(0).max(self.last_ms);
        self.last_ms = now_ms;
        let placed = match prompt {
            Some(prompt) => Some(self.sessions.enter(named.clone(), prompt, now_ms)),
            None => None,
        };
        let (session_by, session, seq, retry, prefix) = match placed {
            Some(p) => (p.by, p.session, p.seq, p.retry, Some(p.figures)),
            None => {
                self.unplaced += 1;
                let (by, name) = named.unwrap_or_else(|| (SessionBy::New, format!("{}-unplaced", self.prefix)));
                (by, name, self.unplaced, 0, None)
            }
        };
        if let (Some(bodies), Ok(held)) = (&mut self.bodies, &asked.body)
            && let Some(bytes) = plain(held.bytes(), coding.as_deref())
        {
            bodies.keep(&session, seq, asked.started_unix_us, harness.as_deref(), asked.api, &bytes);
        }
        let open = Open {
            session,
            session_by,
            seq,
            retry,
            harness,
            lane: asked.lane,
            started_unix_us: asked.started_unix_us,
            path: asked.path,
            api: asked.api,
            model,
            tools,
            request_bytes: asked.bytes,
            usage_injected: asked.usage_injected,
            prefix,
            gap,
        };
        self.open.insert(asked.number, open);
    }

    /// A call is over: its record. `None` for one of which nothing was told at its begin.
    ///
    /// * `said_bytes`: of the answer's texts and the arguments of its tool calls, which are not in the record any more.
    pub fn ended(&mut self, ended: Ended, said_bytes: u64) -> Option<CallRecord> {
        let open = self.open.remove(&ended.number)?;
        let record = ended.record;
        let key = (open.lane.clone(), open.model.clone().or_else(|| record.model.clone()));
        self.learn(&key, open.prefix.as_ref(), &record);
        let (prompt, completion) = self.estimates(&key, &open, &record, ended.delivery, said_bytes);
        let mut call = CallRecord {
            id: format!("{}-{:08}", self.prefix, ended.number),
            session: open.session,
            session_by: open.session_by,
            seq: open.seq,
            harness: open.harness,
            lane: open.lane,
            started_unix_us: open.started_unix_us,
            path: open.path,
            api: Some(open.api),
            model: open.model,
            request_bytes: open.request_bytes,
            tools: open.tools,
            sent_us: ended.sent_us,
            total_us: ended.total_us,
            record,
            estimated_prompt_tokens: prompt,
            estimated_completion_tokens: completion,
            usage_injected: open.usage_injected,
            retry: open.retry,
            prefix: open.prefix,
            delivery: ended.delivery,
            gap: open.gap,
        };
        if self.names.is_some() {
            call.forget_texts();
        }
        Some(call)
    }

    fn learn(&mut self, key: &(Option<String>, Option<String>), prefix: Option<&PrefixFigures>, record: &TryRecord) {
        let (Some(figures), Some(tokens)) = (prefix, record.usage.prompt.filter(|n| *n > 0)) else { return };
        if self.ratios.len() >= MOST_MODELS && !self.ratios.contains_key(key) {
            return;
        }
        let ratio = self.ratios.entry(key.clone()).or_default();
        ratio.bytes += figures.prompt_bytes;
        ratio.tokens += tokens;
    }

    /// Tokens where the server reported none: bytes at what this lane and model took for a token so far.
    fn estimates(
        &self,
        key: &(Option<String>, Option<String>),
        open: &Open,
        record: &TryRecord,
        delivery: Delivery,
        said_bytes: u64,
    ) -> (Option<u64>, Option<u64>) {
        let answered = record.http_status.is_some_and(|s| s < 300) && delivery != Delivery::NoUpstream;
        if !answered {
            return (None, None);
        }
        let known = self.ratios.get(key).filter(|r| r.tokens > 0);
        let per_token = known.map_or(BYTES_PER_TOKEN, |r| r.bytes as f64 / r.tokens as f64);
        let tokens = |bytes: u64| (bytes as f64 / per_token).round() as u64;
        let prompt = open.prefix.as_ref().filter(|_| record.usage.prompt.is_none());
        let completion = record.usage.completion.is_none().then(|| tokens(said_bytes));
        (prompt.map(|p| tokens(p.prompt_bytes)), completion)
    }
}

/// The body without its content coding; `None` for one that cannot be undone, or grows beyond what is kept.
fn plain<'a>(bytes: &'a [u8], coding: Option<&str>) -> Option<std::borrow::Cow<'a, [u8]>> {
    if coding.is_none_or(|c| c.eq_ignore_ascii_case("identity")) {
        return Some(bytes.into());
    }
    let mut decoder = Decoder::for_coding(coding)?;
    let mut out = Vec::new();
    let mut fits = true;
    let pushed = decoder.push(bytes, |piece| {
        fits &= out.len() + piece.len() <= MAX_REQUEST_BYTES;
        if fits {
            out.extend_from_slice(piece);
        }
    });
    (pushed.is_ok() && fits).then(|| out.into())
}

/// A name as it may stand in records: one line, not too long.
fn short(name: &str) -> String {
    name.trim().chars().filter(|c| !c.is_control()).take(MAX_NAME_CHARS).collect()
}
