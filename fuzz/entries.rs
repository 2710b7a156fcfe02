//! What is fed with bytes from outside, one function each, and the laws that must hold whatever the bytes are. A law
//! that is broken, and any panic, is a finding.
//!
//! Compiled twice: by the fuzz targets (nightly) and by the tests of the front door (stable, with every seed and mutations
//! of it), so that an entry that no longer compiles, or a finding that comes back, fails an ordinary test run.

use std::io::Write as _;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use peaklane_core::lane::Api;
use peaklane_core::outcome::Outcome;
use peaklane_core::record::{Handshake, TryRecord};
use peaklane_core::secret::Secret;
use peaklane_wire::client::{Client, Limits, Target};
use peaklane_wire::endpoint::Endpoint;
use peaklane_wire::headers::Headers;
use peaklane_wire::io::{Dial, Dialled, Dialling};
use peaklane_wire::reading::{End, Reading};
use peaklane_wire::request::Ask;
use peaklane_wire::sse::{Item, Splitter};
use tokio::io::{AsyncReadExt, AsyncWriteExt, DuplexStream};

/// One entry: takes any bytes.
pub type Entry = fn(&[u8]);

/// Every entry by the name of its target and of its folder of seeds.
pub const ENTRIES: [(&str, Entry); 10] = [
    ("sse", sse),
    ("reading", reading),
    ("h1", h1),
    ("retry_after", retry_after),
    ("config", config),
    ("csv", csv),
    ("classify", classify),
    ("prompt", prompt),
    ("trace", trace),
    ("proxy", proxy),
];

/// Longest message of a record, characters: 400 and what is put around them.
const MESSAGE_CHARS: usize = 500;

/// Cuts bytes at places drawn from a seed, into pieces of 1 to 64 bytes; seed 0 does not cut.
fn pieces(seed: u8, mut bytes: &[u8]) -> Vec<&[u8]> {
    if seed == 0 {
        return vec![bytes];
    }
    let mut state = u32::from(seed);
    let mut cut = Vec::new();
    while !bytes.is_empty() {
        state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        let (piece, rest) = bytes.split_at((1 + (state >> 26) as usize).min(bytes.len()));
        cut.push(piece);
        bytes = rest;
    }
    cut
}

/// Event splitter. First byte: where to cut. Law: where packets end changes nothing.
pub fn sse(bytes: &[u8]) {
    let Some((&seed, text)) = bytes.split_first() else { return };
    let all = |pieces: Vec<&[u8]>| {
        let mut seen: Vec<(u8, Vec<u8>, Vec<u8>)> = Vec::new();
        let mut splitter = Splitter::new();
        let mut note = |item: Item<'_>| {
            seen.push(match item {
                Item::Event { name, data } => {
                    assert!(!data.is_empty(), "an event without data");
                    (0, name.to_vec(), data.to_vec())
                }
                Item::Comment => (1, Vec::new(), Vec::new()),
                Item::Bare(line) => (2, Vec::new(), line.to_vec()),
            });
        };
        let fits = pieces.into_iter().all(|piece| splitter.push(piece, &mut note).is_ok());
        splitter.finish(&mut note);
        (seen, fits)
    };
    assert_eq!(all(pieces(seed, text)), all(vec![text]));
}

/// Response reader. Bytes: API and end; status and content type; coding; where to cut; then the body. Law: where packets
/// end changes nothing, except how much came out before compressed bytes broke.
pub fn reading(bytes: &[u8]) {
    let Some((&[api, kind, coding, seed], body)) = bytes.split_first_chunk::<4>() else { return };
    let status = [200, 200, 200, 200, 201, 204, 307, 400, 401, 429, 500, 503][usize::from(kind >> 2) % 12];
    let mut headers = Headers::default();
    match kind & 3 {
        0 => {}
        1 => headers.push("content-type", "text/event-stream"),
        2 => headers.push("content-type", "application/json"),
        _ => headers.push("retry-after", "2"),
    }
    let coding = ["", "gzip", "deflate", "br", "zstd", "odd"].get(usize::from(coding)).copied().unwrap_or_default();
    if !coding.is_empty() {
        headers.push("content-encoding", coding);
    }
    let end = match api >> 2 & 3 {
        0 => End::Clean,
        1 => End::Cut,
        2 => End::Reset,
        _ => End::Limit(Outcome::TimeoutIdle),
    };
    let read = |pieces: Vec<&[u8]>| {
        let mut reading = Reading::new(Api::ALL[usize::from(api & 3)], status, headers.clone(), 1_796_054_400_000);
        for piece in pieces {
            reading.body(piece, 1_000);
        }
        reading.finish(end, 2_000)
    };
    let (whole, cut) = (read(vec![body]), read(pieces(seed, body)));
    assert_eq!(whole.outcome, cut.outcome, "{whole:?} {cut:?}");
    if coding.is_empty() || whole.outcome != Outcome::BadBody {
        assert_eq!(whole, cut);
    }
    laws(&whole);
    assert_eq!(whole.body_bytes, body.len() as u64);
}

/// What holds for every record.
fn laws(record: &TryRecord) {
    assert_eq!(record.ttft_us.is_some(), record.output_chunks + record.reasoning_chunks > 0);
    assert_eq!(record.first_answer_us.is_some(), record.output_chunks > 0);
    assert_eq!(record.ttft_us.is_some(), record.last_token_us.is_some());
    assert!(record.ttft_us <= record.last_token_us);
    assert!(record.first_answer_us.is_none_or(|at| Some(at) >= record.ttft_us && Some(at) <= record.last_token_us));
    assert!(record.outcome != Outcome::Ok || record.output_chunks > 0, "ok, but nothing was said");
    assert!(record.message.as_ref().is_none_or(|m| m.chars().count() <= MESSAGE_CHARS && !m.contains('\n')));
}

/// The key of the `h1` entry: no record may show it, whatever the lane echoes.
pub const KEY: &str = "sk-fuzz-0123456789abcdef";

/// A lane in memory that answers every request with the same bytes, a millisecond between their pieces, and then keeps the
/// connection or closes it.
struct Scripted {
    seed: u8,
    closes: bool,
    answer: Arc<[u8]>,
    requests: Arc<AtomicU64>,
}

impl Dial for Scripted {
    fn dial<'a>(&'a self, _host: &'a str, _port: u16, _tls: bool) -> Dialling<'a> {
        let (client, server) = tokio::io::duplex(64 << 10);
        let (seed, closes) = (self.seed, self.closes);
        let (answer, requests) = (Arc::clone(&self.answer), Arc::clone(&self.requests));
        tokio::spawn(serve(server, seed, closes, answer, requests));
        Box::pin(std::future::ready(Ok(Dialled {
            io: Box::new(client),
            handshake: Handshake::default(),
            http2: false,
            absolute_form: false,
            proxy_authorization: None,
        })))
    }
}

async fn serve(mut io: DuplexStream, seed: u8, closes: bool, answer: Arc<[u8]>, requests: Arc<AtomicU64>) {
    let mut held = Vec::new();
    loop {
        // Our own client ends each body with its last brace.
        while !held.ends_with(b"}") {
            if !io.read_buf(&mut held).await.is_ok_and(|n| n > 0) {
                return;
            }
        }
        held.clear();
        requests.fetch_add(1, Ordering::Relaxed);
        for piece in pieces(seed, &answer) {
            if io.write_all(piece).await.is_err() {
                return;
            }
            if seed > 0 {
                tokio::time::sleep(Duration::from_millis(1)).await;
            }
        }
        if closes {
            return;
        }
    }
}

/// HTTP/1.1, from the head to the kept connection: two tries of the client at a lane that answers with these bytes. First
/// byte: whether the lane closes; second: where to cut. Laws: nothing is sent twice, every try ends within its limits, no
/// record shows the key.
pub fn h1(bytes: &[u8]) {
    let Some((&[closes, seed], answer)) = bytes.split_first_chunk::<2>() else { return };
    let requests = Arc::new(AtomicU64::new(0));
    let lane = Scripted { seed, closes: closes & 1 == 1, answer: answer.into(), requests: Arc::clone(&requests) };
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_time()
        .start_paused(true)
        .build()
        .expect("a runtime without I/O needs nothing of the system");
    runtime.block_on(async {
        let client = Client::new(Arc::new(lane), || 1_796_054_400_000);
        let endpoint = Endpoint::new("http://lane.test", Api::Chat).expect("a base URL");
        let key = Some(Secret::new(KEY).expect("a key"));
        let target = Target { endpoint, api: Api::Chat, key, headers: Vec::new() };
        let ask = Ask {
            model: "m".into(),
            system: None,
            prompt: "p".into(),
            max_tokens: 1,
            max_completion_tokens: false,
            temperature: None,
            seed: None,
            stream: true,
            extra: serde_json::Map::new(),
        };
        let body = ask.body(Api::Chat);
        let ms = Duration::from_millis;
        let limits = Limits { first_byte: ms(500), idle: ms(500), total: ms(60_000) };
        for _ in 0..2 {
            let before = requests.load(Ordering::Relaxed);
            let tried = client.try_once(&target, &body, None, &limits).await;
            let sent = requests.load(Ordering::Relaxed) - before;
            assert!(sent <= 1 + u64::from(tried.record.redirects), "{sent} requests: {:?}", tried.record);
            assert!(tried.ended >= tried.began && tried.ended - tried.zero <= limits.total, "{:?}", tried.record);
            laws(&tried.record);
            assert!(!format!("{:?}", tried.record).contains(KEY), "the key is in the record");
        }
    });
}

/// Request bodies. First byte: the API. Laws: the segments are the whole text, each of them JSON with a newline behind it; a
/// prompt repeats itself whole; shares are shares, however the prompt is held against its own half.
pub fn prompt(bytes: &[u8]) {
    use peaklane_core::prefix::{Bounds, Prompt, Sessions};
    let Some((&api, body)) = bytes.split_first() else { return };
    let api = Api::ALL[usize::from(api) % Api::ALL.len()];
    let Ok(prompt) = Prompt::from_body(api, body) else { return };
    assert_eq!(prompt.segments.last().map_or(0, |s| s.end), prompt.text.len());
    for n in 0..prompt.segments.len() {
        let segment = prompt.segment(n);
        let text = std::str::from_utf8(segment).expect("what was text stays text");
        let (json, end) = text.split_at(text.len() - 1);
        assert_eq!(end, "\n");
        // Numbers beyond a float, and nesting deeper than that reader likes, are ours alone to read.
        if let Err(error) = serde_json::from_str::<serde_json::Value>(json) {
            let said = error.to_string();
            assert!(said.contains("recursion") || said.contains("range") || said.contains("control"), "{said}: {json}");
        }
    }
    let mut sessions = Sessions::new(Bounds { text_bytes: 64 << 10, ..Bounds::default() }, "auto-");
    let mut half = prompt.clone();
    half.segments.truncate(prompt.segments.len() / 2);
    half.text.truncate(half.segments.last().map_or(0, |s| s.end));
    for one in [half, prompt.clone(), prompt.clone(), prompt] {
        let placed = sessions.enter(None, one, 0);
        let figures = placed.figures;
        for share in [figures.reuse(), figures.warm(), figures.reuse_best()].into_iter().flatten() {
            assert!((0.0..=1.0).contains(&share), "{figures:?}");
        }
        if placed.retry > 0 && !figures.helper && figures.former_bytes.is_some() {
            assert_eq!(figures.lost_bytes(), Some(0), "{figures:?}");
        }
    }
}

/// Lines of recorded sessions. Law: a call, or told in words what is wrong.
pub fn trace(bytes: &[u8]) {
    use peaklane_core::prefix::trace::{TraceCall, session_of};
    let Ok(text) = std::str::from_utf8(bytes) else { return };
    let mut calls = Vec::new();
    for line in text.lines() {
        match TraceCall::read(line) {
            Ok(call) => calls.push(call),
            Err(error) => assert!(!error.to_string().trim().is_empty()),
        }
    }
    if let Some(session) = session_of(None, calls) {
        assert_eq!(session.pairs as usize, session.pair_list.len());
        assert!(session.pair_list.iter().all(|p| (0.0..=1.0).contains(&p.reuse) && p.common <= p.a_bytes));
    }
}

/// What a client sends and what an upstream answers, through the proxy. First byte: whether the upstream closes; second: where
/// to cut; then the client's bytes, `|||`, and the upstream's. Laws: it comes to its end; every call that was told of is told to
/// be over.
pub fn proxy(bytes: &[u8]) {
    use peaklane_wire::proxy::{Asked, Ended, Guest, Passed, Policy, Proxy, Room, Tap, Upstream};
    struct Counts(AtomicU64, AtomicU64);
    impl Tap for Counts {
        fn asked(&self, _: Asked) {
            self.0.fetch_add(1, Ordering::Relaxed);
        }
        fn ended(&self, ended: Ended) {
            self.1.fetch_add(1, Ordering::Relaxed);
            laws(&ended.record);
        }
        fn passed(&self, _: Passed) {}
    }
    struct Client(DuplexStream);
    impl tokio::io::AsyncRead for Client {
        fn poll_read(
            mut self: std::pin::Pin<&mut Self>,
            cx: &mut std::task::Context<'_>,
            buf: &mut tokio::io::ReadBuf<'_>,
        ) -> std::task::Poll<std::io::Result<()>> {
            std::pin::Pin::new(&mut self.0).poll_read(cx, buf)
        }
    }
    impl tokio::io::AsyncWrite for Client {
        fn poll_write(
            mut self: std::pin::Pin<&mut Self>,
            cx: &mut std::task::Context<'_>,
            buf: &[u8],
        ) -> std::task::Poll<std::io::Result<usize>> {
            std::pin::Pin::new(&mut self.0).poll_write(cx, buf)
        }
        fn poll_flush(
            mut self: std::pin::Pin<&mut Self>,
            cx: &mut std::task::Context<'_>,
        ) -> std::task::Poll<std::io::Result<()>> {
            std::pin::Pin::new(&mut self.0).poll_flush(cx)
        }
        fn poll_shutdown(
            mut self: std::pin::Pin<&mut Self>,
            cx: &mut std::task::Context<'_>,
        ) -> std::task::Poll<std::io::Result<()>> {
            std::pin::Pin::new(&mut self.0).poll_shutdown(cx)
        }
    }
    impl Guest for Client {
        fn reset(&mut self) {}
    }
    let Some((&[closes, seed], rest)) = bytes.split_first_chunk::<2>() else { return };
    let at = rest.windows(3).position(|w| w == b"|||").unwrap_or(rest.len());
    let (asked, answer) = (&rest[..at], rest.get(at + 3..).unwrap_or_default());
    let lane = Scripted { seed, closes: closes & 1 == 1, answer: answer.into(), requests: Arc::default() };
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_time()
        .start_paused(true)
        .build()
        .expect("a runtime without I/O needs nothing of the system");
    runtime.block_on(async {
        let upstream = Upstream::new(None, "http://lane.test/v1", None, Vec::new()).expect("a base URL");
        let counts = Arc::new(Counts(AtomicU64::new(0), AtomicU64::new(0)));
        let tap: Arc<dyn Tap> = counts.clone();
        let policy = Policy { inject_usage: closes & 2 == 2, ..Policy::default() };
        let proxy =
            Proxy::new(vec![upstream], policy, Arc::new(lane), tap, Room::new(1 << 20), || 1_796_054_400_000_000)
                .expect("one upstream");
        let (client, server) = tokio::io::duplex(4 << 10);
        let (_stop, stopped) = tokio::sync::watch::channel(false);
        let (mut read, mut write) = tokio::io::split(client);
        let asked = asked.to_vec();
        let talk = async move {
            for piece in pieces(seed, &asked) {
                if write.write_all(piece).await.is_err() {
                    return;
                }
            }
            // Half an hour is longer than every limit of the proxy for a client that says nothing.
            tokio::time::sleep(Duration::from_secs(1_800)).await;
        };
        let listen = async move {
            let mut buffer = [0; 1024];
            while read.read(&mut buffer).await.is_ok_and(|n| n > 0) {}
        };
        let serve = async {
            proxy.serve(Box::new(Client(server)), stopped).await;
        };
        let all = async { tokio::join!(talk, listen, serve) };
        let ended = tokio::time::timeout(Duration::from_secs(500_000), all).await;
        assert!(ended.is_ok(), "the proxy does not come to its end");
        assert_eq!(counts.0.load(Ordering::Relaxed), counts.1.load(Ordering::Relaxed));
    });
}

/// Waits that servers ask for: header lines, a blank line, a JSON body. Laws: plain milliseconds are taken as they are; a
/// wait does not grow while time passes, and does not change at all where the server's own date stands beside it.
pub fn retry_after(bytes: &[u8]) {
    let text = String::from_utf8_lossy(bytes);
    let (head, body) = text.split_once("\n\n").unwrap_or((&text, ""));
    let mut headers = Headers::default();
    for (name, value) in head.lines().filter_map(|line| line.split_once(':')) {
        headers.push(name.trim(), value.trim());
    }
    let body = serde_json::from_str(body).ok();
    let asked = |now| peaklane_wire::retry_after::retry_after_ms(&headers, body.as_ref(), now);
    let (wait, later) = (asked(1_796_054_400_000), asked(1_796_054_460_000));
    if headers.get("date").is_some_and(|d| d.ends_with(" 2026 16:00:00 GMT") && d.starts_with("Mon, 30 Nov")) {
        assert_eq!(wait, later);
    }
    if headers.get("retry-after").is_some() {
        assert!(later <= wait, "a wait grows while time passes");
    }
    let plain = headers.get("retry-after-ms").filter(|v| v.len() < 9 && v.bytes().all(|b| b.is_ascii_digit()));
    if let Some(ms) = plain.and_then(|v| v.parse::<u64>().ok()) {
        assert_eq!(wait, Some(ms));
    }
}

/// Configuration. Law: it is read, or told in words what is wrong.
pub fn config(bytes: &[u8]) {
    let Ok(text) = std::str::from_utf8(bytes) else { return };
    match peaklane_core::config::parse_checked(text) {
        Ok(config) => {
            assert!(!config.lanes.is_empty() && config.lanes.len() <= 100 && !config.tasks.is_empty());
            assert!(config.check().is_ok());
        }
        Err(error) => assert!(!error.to_string().trim().is_empty()),
    }
}

/// A file of attempts. Law: it is read with no more attempts than lines, or told in words what is wrong.
pub fn csv(bytes: &[u8]) {
    let mut file = tempfile::NamedTempFile::new().expect("a temporary file");
    file.write_all(bytes).expect("a small temporary file can be written");
    let lines = bytes.split(|b| *b == b'\n').count();
    match peaklane_store::csv::read(file.path()) {
        Ok(read) => {
            let attempts: usize = read.bursts.iter().map(|b| b.figures.len()).sum();
            assert!(attempts <= lines && read.bursts.len() <= lines);
            assert!(read.warnings.iter().all(|w| w.line >= 1 && w.line as usize <= lines && !w.message.is_empty()));
        }
        Err(error) => assert!(!error.to_string().trim().is_empty()),
    }
}

/// Classes of failures. First byte: the status, from 300; then a body. Laws: a failure is never fine, and its message is
/// short and on one line.
pub fn classify(bytes: &[u8]) {
    use peaklane_wire::failure::{in_band, is_error, message_of, of_status};
    let Some((&status, body)) = bytes.split_first() else { return };
    let text = String::from_utf8_lossy(body);
    let value: Option<serde_json::Value> = serde_json::from_str(&text).ok();
    let outcome = of_status(300 + u16::from(status), value.as_ref(), &text);
    assert!(outcome != Outcome::Ok && Outcome::ALL.contains(&outcome));
    if let Some(value) = &value {
        assert_ne!(in_band(value), Outcome::Ok);
        let _ = is_error(value);
        assert!(message_of(value).is_none_or(|m| m.chars().count() <= MESSAGE_CHARS && !m.contains('\n')));
    }
}
