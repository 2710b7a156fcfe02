//! Calls of harnesses: a line as each passes, a table of sessions that go on, and the list from the store.

use peaklane_core::call::{BreakKind, CallRecord, Delivery};
use peaklane_core::prefix::blame::refilled_tokens;
use peaklane_core::prefix::{Blame, blame};
use serde_json::{Value, json};

use crate::palette::{Palette, Tone};
use crate::table::{Cell, Column, Table};
use crate::units::{count, counted, duration, one_line, shortened};

/// Longest name of a session in a line.
const MOST_NAME: usize = 28;
/// Longest path of a break in a line.
const MOST_PATH: usize = 48;

/// One finished call in one line: `run-1 #3 chat 200 ok  first token 0.4 s, 3.2 s in all  12,345 tokens in (98 % cached), 210 out
/// prefix 100 %`.
pub fn line(call: &CallRecord, palette: Palette) -> String {
    let record = &call.record;
    let ok = record.outcome.is_ok();
    let status = record.http_status.map_or_else(|| "-".to_owned(), |s| s.to_string());
    let tone = if ok { Tone::Plain } else { Tone::Bad };
    let mut parts = vec![
        format!("{} #{}", shortened(&one_line(&call.session), MOST_NAME), call.seq),
        palette.paint(tone, &format!("{status} {}", record.outcome.name().replace('_', " "))),
    ];
    if let Some(how) = delivered(call.delivery) {
        parts.push(how.to_owned());
    }
    let first = record.ttft_us.map(|us| format!("first token {}, ", duration(us))).unwrap_or_default();
    parts.push(format!("{first}{} in all", duration(call.total_us)));
    if let Some(tokens) = tokens(call) {
        parts.push(tokens);
    }
    if call.retry > 0 {
        parts.push(palette.paint(Tone::Warn, &format!("repeat {}", call.retry)));
    }
    if let Some((text, tone)) = prefix(call) {
        parts.push(palette.paint(tone, &text));
    }
    parts.join("  ")
}

fn delivered(delivery: Delivery) -> Option<&'static str> {
    match delivery {
        Delivery::Whole => None,
        Delivery::ClientLeft => Some("client left"),
        Delivery::Drained => Some("client left, drained"),
        Delivery::NoUpstream => Some("answered by the proxy"),
    }
}

/// `12,345 tokens in (98 % cached), 210 out`; estimated ones have a `~`.
fn tokens(call: &CallRecord) -> Option<String> {
    let usage = &call.record.usage;
    let part = |reported: Option<u64>, estimated: Option<u64>| match (reported, estimated) {
        (Some(n), _) => Some(count(n)),
        (None, Some(n)) => Some(format!("~{}", count(n))),
        (None, None) => None,
    };
    let (prompt, out) =
        (part(usage.prompt, call.estimated_prompt_tokens), part(usage.completion, call.estimated_completion_tokens));
    let cached = match (usage.cached, usage.prompt) {
        (Some(cached), Some(prompt)) if prompt > 0 => format!(" ({} cached)", whole_percent(cached, prompt)),
        _ => String::new(),
    };
    match (prompt, out) {
        (None, None) => None,
        (Some(prompt), None) => Some(format!("{prompt} tokens in{cached}")),
        (None, Some(out)) => Some(format!("{out} tokens out")),
        (Some(prompt), Some(out)) => Some(format!("{prompt} tokens in{cached}, {out} out")),
    }
}

/// Rounded down: what is not whole must not read as 100 %.
pub(crate) fn whole_percent(part: u64, of: u64) -> String {
    format!("{} %", u128::from(part) * 100 / u128::from(of.max(1)))
}

/// `prefix 100 %`, or where and why it broke.
fn prefix(call: &CallRecord) -> Option<(String, Tone)> {
    if let Some(gap) = call.gap {
        return Some((format!("prompt not measured: {}", gap.name().replace('_', " ")), Tone::Warn));
    }
    let figures = call.prefix.as_ref()?;
    if figures.helper {
        return Some(("helper call".to_owned(), Tone::Dim));
    }
    let (common, former) = (figures.common_bytes?, figures.former_bytes?);
    let share = whole_percent(common, former);
    if common >= former {
        let lost = blame(figures, &call.record.usage) == Some(Blame::Server);
        return Some(if lost {
            (format!("prefix {share}, but the server served less"), Tone::Warn)
        } else {
            (format!("prefix {share}"), Tone::Dim)
        });
    }
    let place = figures.divergence.as_ref().map_or_else(String::new, |found| {
        format!(": {} at {}", words(found.kind), shortened(&one_line(&found.path), MOST_PATH))
    });
    Some((format!("prefix {share}{place}"), Tone::Warn))
}

/// A sort of break for people.
pub fn words(kind: BreakKind) -> &'static str {
    match kind {
        BreakKind::Clock => "a clock",
        BreakKind::Token => "a token per request",
        BreakKind::FileState => "the state of files",
        BreakKind::ToolOrder => "tools in another order",
        BreakKind::ToolList => "another list of tools",
        BreakKind::ToolDescription => "a tool's description",
        BreakKind::ReasoningDropped => "dropped reasoning",
        BreakKind::MessageRemoved => "a message removed",
        BreakKind::MessageInserted => "a message inserted",
        BreakKind::HistoryRewritten => "rewritten history",
        BreakKind::HistoryCut => "cut history",
        BreakKind::System => "the system text",
        BreakKind::Other => "another text",
    }
}

/// A session as the live table shows it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct LiveSession {
    /// Begin of its last call, microseconds since the Unix epoch.
    pub last_unix_us: i64,
    harness: Option<String>,
    calls: u64,
    failed: u64,
    prompt: u64,
    cached: Option<u64>,
    completion: u64,
    last_ttft_us: Option<u64>,
    broke: u64,
    last_break: Option<String>,
}

impl LiveSession {
    /// One more call.
    pub fn take(&mut self, call: &CallRecord) {
        self.last_unix_us = self.last_unix_us.max(call.started_unix_us);
        if self.harness.is_none() {
            self.harness.clone_from(&call.harness);
        }
        self.calls += 1;
        self.failed += u64::from(!call.record.outcome.is_ok());
        let usage = &call.record.usage;
        self.prompt += usage.prompt.unwrap_or(0);
        if let Some(cached) = usage.cached {
            self.cached = Some(self.cached.unwrap_or(0) + cached);
        }
        self.completion += usage.completion.unwrap_or(0);
        self.last_ttft_us = call.record.ttft_us;
        let Some(figures) = &call.prefix else { return };
        if let (Some(found), true) = (&figures.divergence, figures.lost_bytes().is_some_and(|lost| lost > 0)) {
            self.broke += 1;
            self.last_break =
                Some(format!("{} at {}", words(found.kind), shortened(&one_line(&found.path), MOST_PATH)));
        }
    }
}

/// The sessions that go on, in the order given.
pub fn live_table(sessions: &[(&String, &LiveSession)], width: usize, palette: Palette) -> String {
    let mut table = Table::new(vec![
        Column::words("session", "session"),
        Column::words("harness", "harness"),
        Column::figures("calls", "calls"),
        Column::figures("failed", "failed"),
        Column::figures("ttft_ms", "TTFT"),
        Column::figures("prompt_tokens", "tokens in"),
        Column::figures("cached", "cached"),
        Column::figures("completion_tokens", "out"),
        Column::words("breaks", "prefix breaks"),
    ]);
    for (name, session) in sessions {
        let breaks = match &session.last_break {
            None => Cell::text("none").tone(Tone::Dim),
            Some(last) => Cell::text(format!("{}: {last}", session.broke)).tone(Tone::Warn),
        };
        let failed = Cell::text(count(session.failed));
        table.row(vec![
            Cell::text(shortened(name, MOST_NAME)),
            Cell::text(shortened(session.harness.as_deref().unwrap_or("-"), 16)),
            Cell::text(count(session.calls)),
            if session.failed > 0 { failed.tone(Tone::Bad) } else { failed },
            session.last_ttft_us.map_or_else(Cell::absent, |us| Cell::text(duration(us))),
            Cell::text(count(session.prompt)),
            session.cached.map_or_else(Cell::absent, |n| Cell::text(whole_percent(n, session.prompt))),
            Cell::text(count(session.completion)),
            breaks,
        ]);
    }
    table.render(width, palette)
}

/// The list of calls: one row each.
pub fn table(calls: &[CallRecord], local: &dyn Fn(i64) -> String) -> Table {
    let mut table = Table::new(vec![
        Column::words("started", "when"),
        Column::words("session", "session"),
        Column::figures("seq", "#"),
        Column::data("id"),
        Column::words("lane", "lane"),
        Column::words("outcome", "outcome"),
        Column::figures("http_status", "status"),
        Column::figures("ttft_ms", "TTFT"),
        Column::figures("total_ms", "in all"),
        Column::figures("prompt_tokens", "tokens in"),
        Column::figures("cached_tokens", "cached"),
        Column::figures("completion_tokens", "out"),
        Column::figures("reuse", "prefix"),
        Column::words("break", "broken by"),
    ]);
    for call in calls {
        let usage = &call.record.usage;
        let number = |n: Option<u64>| n.map_or_else(Cell::absent, |n| Cell::new(count(n), n));
        let marked = |reported: Option<u64>, estimated: Option<u64>| match (reported, estimated) {
            (None, Some(n)) => Cell::new(format!("~{}", count(n)), Value::Null).tone(Tone::Dim),
            (reported, _) => number(reported),
        };
        let figures = call.prefix.as_ref();
        let reuse = figures.and_then(|f| Some((f.common_bytes?, f.former_bytes?, f.reuse()?)));
        let reuse = match (reuse, figures.is_some_and(|f| f.helper)) {
            (Some((common, former, share)), _) => {
                let cell = Cell::new(whole_percent(common, former), share);
                if common < former { cell.tone(Tone::Warn) } else { cell }
            }
            (None, true) => Cell::new("helper", Value::Null).tone(Tone::Dim),
            (None, false) => Cell::absent(),
        };
        let broken = figures.and_then(|f| f.divergence.as_ref());
        let outcome = Cell::new(call.record.outcome.name().replace('_', " "), call.record.outcome.name());
        table.row(vec![
            Cell::text(local(call.started_unix_us)),
            Cell::text(&call.session),
            Cell::new(call.seq.to_string(), call.seq),
            Cell::value(call.id.clone()),
            call.lane.as_ref().map_or_else(Cell::absent, Cell::text),
            if call.record.outcome.is_ok() { outcome } else { outcome.tone(Tone::Bad) },
            call.record.http_status.map_or_else(Cell::absent, |s| Cell::new(s.to_string(), s)),
            call.record.ttft_us.map_or_else(Cell::absent, |us| Cell::new(duration(us), us as f64 / 1e3)),
            Cell::new(duration(call.total_us), call.total_us as f64 / 1e3),
            marked(usage.prompt, call.estimated_prompt_tokens),
            number(usage.cached),
            marked(usage.completion, call.estimated_completion_tokens),
            reuse,
            broken.map_or_else(
                || Cell::new("", Value::Null),
                |b| {
                    Cell::new(
                        format!("{} at {}", words(b.kind), shortened(&one_line(&b.path), MOST_PATH)),
                        b.path.clone(),
                    )
                },
            ),
        ]);
    }
    table
}

/// One call for programs: everything that is known of it.
pub fn json(call: &CallRecord) -> Value {
    let r = &call.record;
    let ms = |us: Option<u64>| us.map(|us| us as f64 / 1e3);
    let prefix = call.prefix.as_ref().map(|p| {
        json!({
            "prompt_bytes": p.prompt_bytes, "segments": p.segments, "helper": p.helper, "former_seq": p.former_seq,
            "former_bytes": p.former_bytes, "common_bytes": p.common_bytes,
            "common_other_order_bytes": p.common_other_order_bytes, "exact": p.exact, "best_bytes": p.best_bytes,
            "best_seq": p.best_seq, "reuse": p.reuse(), "warm": p.warm(), "reuse_best": p.reuse_best(),
            "lost_bytes": p.lost_bytes(), "first_divergence": p.divergence,
            "blame": blame(p, &r.usage).map(Blame::name),
            "refilled_tokens_estimated": refilled_tokens(p, r.usage.prompt.or(call.estimated_prompt_tokens)),
        })
    });
    let who = json!({
        "id": call.id, "session": call.session, "session_by": call.session_by.name(), "seq": call.seq,
        "harness": call.harness, "lane": call.lane, "started_unix_us": call.started_unix_us, "path": call.path,
        "api": call.api, "model": call.model, "answered_model": r.model, "request_bytes": call.request_bytes,
        "tools": call.tools, "retry": call.retry, "usage_injected": call.usage_injected, "prefix": prefix,
    });
    let how = json!({
        "outcome": r.outcome.name(), "http_status": r.http_status, "http_version": r.http_version,
        "delivery": call.delivery.name(), "gap": call.gap.map(|g| g.name()), "message": r.message,
        "finish_reason": r.finish_reason, "streamed": r.streamed, "reused_connection": r.handshake.reused,
        "response_bytes": r.body_bytes, "output_chunks": r.output_chunks, "reasoning_chunks": r.reasoning_chunks,
        "tool_calls": r.tool_calls.iter().map(|t| &t.name).collect::<Vec<_>>(),
    });
    let figures = json!({
        "sent_ms": call.sent_us as f64 / 1e3, "total_ms": call.total_us as f64 / 1e3,
        "first_byte_ms": ms(r.first_byte_us), "ttft_ms": ms(r.ttft_us), "first_answer_ms": ms(r.first_answer_us),
        "last_token_ms": ms(r.last_token_us), "end_ms": ms(r.end_us), "prompt_tokens": r.usage.prompt,
        "cached_tokens": r.usage.cached, "cache_write_tokens": r.usage.cache_write,
        "completion_tokens": r.usage.completion, "reasoning_tokens": r.usage.reasoning,
        "estimated_prompt_tokens": call.estimated_prompt_tokens,
        "estimated_completion_tokens": call.estimated_completion_tokens,
    });
    let parts = [who, how, figures].into_iter().filter_map(|part| match part {
        Value::Object(map) => Some(map),
        _ => None,
    });
    Value::Object(parts.flatten().collect())
}

/// What the list amounts to, in a sentence: `214 calls of 6 sessions; 3 failed`.
pub fn sentence(calls: &[CallRecord]) -> String {
    let sessions: std::collections::BTreeSet<&str> = calls.iter().map(|c| c.session.as_str()).collect();
    let failed = calls.iter().filter(|c| !c.record.outcome.is_ok()).count() as u64;
    let mut text = format!("{} of {}", counted(calls.len() as u64, "call"), counted(sessions.len() as u64, "session"));
    if failed > 0 {
        text.push_str(&format!("; {} without a whole answer", count(failed)));
    }
    text
}

#[cfg(test)]
pub(crate) mod tests {
    use peaklane_core::call::{Divergence, PrefixFigures};
    use peaklane_core::outcome::Outcome;
    use peaklane_core::record::{TryRecord, Usage};

    use super::*;

    /// A call of 12,000 prompt tokens, 9,000 of them cached, and 210 generated ones: it waits 0.4 s and generates 2.8 s.
    pub(crate) fn call(session: &str, seq: u32, at_s: i64) -> CallRecord {
        let mut record = TryRecord::new(Outcome::Ok);
        (record.http_status, record.ttft_us) = (Some(200), Some(400_000));
        record.usage = Usage { prompt: Some(12_000), completion: Some(210), cached: Some(9_000), ..Usage::default() };
        CallRecord {
            id: format!("p1-{seq:04}"),
            harness: Some("pi/0.73.1".into()),
            lane: Some("lane-a".into()),
            started_unix_us: at_s * 1_000_000,
            model: Some("m".into()),
            request_bytes: 50_000,
            tools: 4,
            total_us: 3_200_000,
            ..CallRecord::new(session, seq, record)
        }
    }

    /// A prompt of 48,000 bytes that repeats so many of a former one of 40,000.
    pub(crate) fn shares(common: u64) -> PrefixFigures {
        PrefixFigures {
            prompt_bytes: 48_000,
            former_seq: Some(1),
            former_bytes: Some(40_000),
            common_bytes: Some(common),
            exact: true,
            divergence: (common < 40_000).then(|| Divergence {
                segment: "system".into(),
                path: "messages[0].content".into(),
                kind: BreakKind::Clock,
                before: "time is 09:00".into(),
                after: "time is 09:01".into(),
            }),
            ..PrefixFigures::default()
        }
    }

    /// A break by a clock, a limit, a server that reports no tokens, and a helper call, in this order.
    pub(crate) fn fates() -> Vec<CallRecord> {
        let broken = CallRecord { prefix: Some(shares(4_000)), ..call("fix-1", 2, 10) };
        let mut limited = CallRecord { prefix: Some(shares(40_000)), retry: 1, ..call("fix-1", 3, 20) };
        limited.record = TryRecord::new(Outcome::RateLimited);
        limited.record.http_status = Some(429);
        let mut silent = CallRecord { prefix: Some(shares(40_000)), ..call("fix-1", 4, 30) };
        silent.record.usage = Usage::default();
        (silent.estimated_prompt_tokens, silent.estimated_completion_tokens) = (Some(12_100), Some(190));
        let helper = PrefixFigures { helper: true, ..PrefixFigures::default() };
        vec![broken, limited, silent, CallRecord { prefix: Some(helper), ..call("fix-1", 5, 40) }]
    }

    #[test]
    fn each_call_is_a_line_with_what_broke_it_and_what_is_estimated_marked() {
        let seconds = |unix_us: i64| format!("{} s", unix_us / 1_000_000);
        insta::assert_snapshot!(table(&fates(), &seconds).render(150, Palette::PLAIN), @r"
        when  session  #  lane    outcome       status    TTFT  in all  tokens in  cached   out  prefix  broken by
        10 s  fix-1    2  lane-a  ok               200  400 ms   3.2 s     12,000   9,000   210    10 %  a clock at messages[0].content
        20 s  fix-1    3  lane-a  rate limited     429       -   3.2 s          -       -     -   100 %
        30 s  fix-1    4  lane-a  ok               200  400 ms   3.2 s    ~12,100       -  ~190   100 %
        40 s  fix-1    5  lane-a  ok               200  400 ms   3.2 s     12,000   9,000   210  helper
        ");
    }

    #[test]
    fn a_finished_call_is_told_in_one_line_even_where_its_session_has_line_breaks() {
        let lines: Vec<String> = fates().iter().map(|one| line(one, Palette::PLAIN)).collect();
        insta::assert_snapshot!(lines.join("\n"), @r"
        fix-1 #2  200 ok  first token 400 ms, 3.2 s in all  12,000 tokens in (75 % cached), 210 out  prefix 10 %: a clock at messages[0].content
        fix-1 #3  429 rate limited  3.2 s in all  repeat 1  prefix 100 %
        fix-1 #4  200 ok  first token 400 ms, 3.2 s in all  ~12,100 tokens in, ~190 out  prefix 100 %
        fix-1 #5  200 ok  first token 400 ms, 3.2 s in all  12,000 tokens in (75 % cached), 210 out  helper call
        ");
        let odd = CallRecord { session: "a\nb\u{1b}[2J".into(), ..call("", 1, 0) };
        let told = line(&odd, Palette::PLAIN);
        assert!(!told.contains('\n') && !told.contains('\u{1b}'), "{told}");
        assert_eq!(sentence(&fates()), "4 calls of 1 session; 1 without a whole answer");
    }
}
