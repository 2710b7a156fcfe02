//! The time line of one request: what `curl -w` is to HTTP, for inference.

use peaklane_core::record::{TryRecord, Usage};
use serde_json::Value;
use unicode_width::UnicodeWidthStr;

use crate::palette::{Palette, Tone};
use crate::table::{Align, Cell, Column, Table, wrap};
use crate::try_view::{Speaks, TrySeen, TryView};
use crate::units::{ABSENT, bytes, count, counted, duration, limit, ms, one_line, shortened};
use crate::words::hint;

/// Room for the bars, columns of a terminal.
const BAR_WIDTH: usize = 40;

/// Where the texts of the facts below the bars begin.
const FACT_INDENT: usize = 12;

/// How much of an answer is shown, characters.
const EXCERPT: usize = 160;

/// One stretch of the time line, microseconds from its begin.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Step {
    name: &'static str,
    from_us: u64,
    to_us: u64,
    /// End of the step counted from the last byte of the request, where it lies behind that.
    at_us: Option<u64>,
    tone: Tone,
}

/// The request as a person reads it: the lane, how it ended, a bar for each step, tokens, the answer, and what the lane
/// speaks. Ends with a newline.
///
/// * `width`: columns of the terminal.
pub fn render(view: &TryView<'_>, width: usize, palette: Palette) -> String {
    let mut out = String::new();
    let title = [one_line(view.lane), view.api.name().to_owned(), one_line(view.url)].join(" · ");
    out.push_str(&format!("{}\n", palette.paint(Tone::Strong, &title)));
    let Some((last, former)) = view.tries.split_last() else {
        out.push_str("nothing was sent\n");
        return out;
    };
    for (number, seen) in (1..).zip(former) {
        out.push_str(&format!("try {number}: {}\n", told(seen.record, palette)));
    }
    if former.is_empty() {
        out.push_str(&format!("{}\n", told(last.record, palette)));
    } else {
        let waited = if last.waited_us > 0 { format!(" (after {})", duration(last.waited_us)) } else { String::new() };
        out.push_str(&format!("try {}{waited}: {}\n", view.tries.len(), told(last.record, palette)));
    }
    out.push('\n');
    out.push_str(&bars(last, palette));
    out.push('\n');
    for (name, text, tone) in facts(view, last) {
        for (number, line) in wrap(&text, width.saturating_sub(FACT_INDENT).max(24)).into_iter().enumerate() {
            let name = if number == 0 { name } else { "" };
            let fill = " ".repeat(FACT_INDENT.saturating_sub(name.width()));
            out.push_str(&format!("{}{fill}{}\n", palette.paint(Tone::Dim, name), palette.paint(tone, &line)));
        }
    }
    out
}

/// One line: how a try ended.
fn told(record: &TryRecord, palette: Palette) -> String {
    let ok = record.outcome.is_ok();
    let mut parts = vec![palette.paint(if ok { Tone::Good } else { Tone::Bad }, record.outcome.words())];
    match (record.http_status, record.in_band) {
        (Some(status), true) => parts.push(format!("inside an HTTP {status}")),
        (Some(status), false) => parts.push(format!("HTTP {status}")),
        (None, _) => parts.push("no HTTP answer".to_owned()),
    }
    if let Some(version) = &record.http_version {
        parts.push(format!("HTTP/{version}"));
    }
    if record.http_status.is_some() {
        parts.push(if record.handshake.reused { "reused connection" } else { "new connection" }.to_owned());
    }
    if record.redirects > 0 {
        parts.push(counted(record.redirects.into(), "redirect"));
    }
    if !ok && let Some(after) = record.retry_after_ms {
        parts.push(format!("asks to wait {}", limit(after.saturating_mul(1000))));
    }
    parts.join(" · ")
}

/// The steps of one try. A connection that was opened long before the request lies right before it.
fn steps(record: &TryRecord) -> Vec<Step> {
    let h = record.handshake;
    let handshake = [("DNS", h.dns_us), ("connect", h.connect_us), ("TLS", h.tls_us)];
    let opened: u64 = handshake.iter().filter_map(|(_, us)| *us).sum();
    let sent = record.sent_us.max(opened);
    let mut steps = Vec::new();
    let mut from_us = 0;
    for (name, us) in handshake {
        if let Some(us) = us {
            steps.push(Step { name, from_us, to_us: from_us + us, at_us: None, tone: Tone::Dim });
            from_us += us;
        }
    }
    steps.push(Step { name: "request", from_us, to_us: sent, at_us: Some(0), tone: Tone::Dim });

    let reasoned = record.reasoning_chunks > 0;
    let end = match (record.end_us, record.last_byte_us) {
        (Some(end), Some(last)) if record.outcome.is_ok() => Some(end.max(last)),
        (end, last) => end.or(last),
    };
    let first_answer = record.first_answer_us.filter(|_| reasoned);
    let moments = [
        ("first byte", record.first_byte_us, Tone::Warn),
        ("first token", record.ttft_us, Tone::Warn),
        ("reasoning", first_answer, Tone::Dim),
        (if reasoned && first_answer.is_none() { "reasoning" } else { "answer" }, record.last_token_us, Tone::Good),
        (
            if record.outcome.is_ok() { "end" } else { "failure" },
            end,
            if record.outcome.is_ok() { Tone::Dim } else { Tone::Bad },
        ),
    ];
    let mut before = 0;
    for (name, moment, tone) in moments {
        let Some(at) = moment else { continue };
        // Moments are in order but for rounding at one instant.
        let at = at.max(before);
        steps.push(Step { name, from_us: sent + before, to_us: sent + at, at_us: Some(at), tone });
        before = at;
    }
    steps
}

/// A small diagram: one row per step, its length, when it ended, and where it lies on the whole.
fn bars(seen: &TrySeen<'_>, palette: Palette) -> String {
    let steps = steps(seen.record);
    let total = steps.iter().map(|s| s.to_us).max().unwrap_or(0).max(1);
    let mut table = Table::new(vec![
        Column::shown("step", Align::Left),
        Column::shown("took", Align::Right),
        Column::shown("at", Align::Right),
        Column::shown("", Align::Left),
    ]);
    for step in steps {
        let at = step.at_us.filter(|at| *at > 0).map_or_else(String::new, duration);
        let bar = bar(step.from_us, step.to_us, total);
        table.row(vec![
            Cell::new(step.name, Value::Null),
            Cell::new(duration(step.to_us - step.from_us), Value::Null),
            Cell::new(at, Value::Null),
            Cell::bar(bar).tone(step.tone),
        ]);
    }
    table.render(usize::MAX, palette)
}

/// `━` from one moment to another; at least one, so that no step gets lost.
fn bar(from_us: u64, to_us: u64, total_us: u64) -> String {
    let column = |us: u64| (u128::from(us) * BAR_WIDTH as u128 / u128::from(total_us)) as usize;
    let from = column(from_us).min(BAR_WIDTH - 1);
    let to = column(to_us).clamp(from + 1, BAR_WIDTH);
    format!("{}{}", " ".repeat(from), "━".repeat(to - from))
}

/// What else there is to say, each with its name.
fn facts(view: &TryView<'_>, last: &TrySeen<'_>) -> Vec<(&'static str, String, Tone)> {
    let r = last.record;
    let mut facts = Vec::new();
    if !r.outcome.is_ok() {
        if let Some(message) = &r.message {
            facts.push(("message", shortened(&one_line(message), 400), Tone::Bad));
        }
        if let Some(hint) = hint(r) {
            facts.push(("hint", hint, Tone::Warn));
        }
    }
    // A lane that refused says nothing of these.
    let answered = r.outcome.is_ok() || r.ttft_us.is_some();
    if answered || r.usage != Usage::default() {
        facts.push(("tokens", tokens(r), Tone::Plain));
    }
    let mut answer = Vec::new();
    if !r.content.trim().is_empty() {
        answer.push(format!("\"{}\"", shortened(&one_line(&r.content), EXCERPT)));
    }
    answer.extend(r.tool_calls.iter().map(|call| format!("tool call {}", shortened(&one_line(&call.name), 60))));
    if let Some(reason) = &r.finish_reason {
        answer.push(format!("finish {}", one_line(reason)));
    }
    if r.output_chunks > 0 || r.reasoning_chunks > 0 {
        answer.push(counted(r.output_chunks.into(), "chunk"));
    }
    if r.reasoning_chunks > 0 {
        answer.push(format!("{} of reasoning", counted(r.reasoning_chunks.into(), "chunk")));
    }
    if let Some(gap) = r.max_gap_us {
        answer.push(format!("longest gap {}", duration(gap)));
    }
    answer.push(bytes(r.body_bytes));
    facts.push(("answer", answer.join(" · "), Tone::Plain));
    let mut model = match &r.model {
        Some(named) if named == view.model => vec![format!("{} (as asked)", one_line(named))],
        Some(named) => vec![format!("{} (asked for {})", one_line(named), one_line(view.model))],
        None => vec![format!("not named (asked for {})", one_line(view.model))],
    };
    model.extend(r.system_fingerprint.iter().map(|f| format!("fingerprint {}", one_line(f))));
    model.extend(r.request_id.iter().map(|id| format!("request {}", one_line(id))));
    if answered || r.model.is_some() || r.request_id.is_some() {
        facts.push(("model", model.join(" · "), Tone::Plain));
    }
    if answered {
        facts.push(("speaks", speaks(Speaks::of(r)), Tone::Plain));
    }
    if !r.rate_limits.is_empty() {
        let limits = r.rate_limits.iter().map(|(name, value)| format!("{}: {}", one_line(name), one_line(value)));
        facts.push(("limits", limits.collect::<Vec<_>>().join(" · "), Tone::Plain));
    }
    if r.bursty {
        facts.push((
            "note",
            "all content came at one moment: something in between collects the stream".to_owned(),
            Tone::Warn,
        ));
    }
    if r.own_lag_us > 0 {
        facts.push(("own lag", format!("{} at most", duration(r.own_lag_us)), Tone::Dim));
    }
    facts
}

fn tokens(record: &TryRecord) -> String {
    let usage = record.usage;
    let mut parts = Vec::new();
    if let Some(prompt) = usage.prompt {
        let cached = usage.cached.map_or_else(String::new, |n| format!(" ({} cached)", count(n)));
        parts.push(format!("{} prompt{cached}", count(prompt)));
    }
    parts.extend(usage.cache_write.map(|n| format!("{} written to the cache", count(n))));
    if let Some(completion) = usage.completion {
        let reasoning = usage.reasoning.map_or_else(String::new, |n| format!(" ({} reasoning)", count(n)));
        parts.push(format!("{} completion{reasoning}", count(completion)));
    }
    if parts.is_empty() {
        return "not reported".to_owned();
    }
    if let Some(tpot) = record.tpot_us().filter(|us| *us > 0) {
        let tenths = 10_000_000 / tpot;
        parts.push(format!("{}.{} tokens/s after the first", tenths / 10, tenths % 10));
    }
    parts.join(" · ")
}

fn speaks(speaks: Speaks) -> String {
    let word = |what: Option<bool>| what.map_or("?", |yes| if yes { "yes" } else { "no" });
    let mut parts = vec![
        format!("streaming {}", word(speaks.streaming)),
        format!("usage {}", word(speaks.usage)),
        format!("cached tokens {}", word(speaks.cached)),
        format!("model name {}", word(speaks.model_echo)),
        format!("rate-limit headers {}", if speaks.rate_limit_headers > 0 { "yes" } else { "no" }),
    ];
    parts.extend(speaks.clock_skew_ms.map(|ms| format!("clock {}", skew(ms))));
    parts.join(" · ")
}

/// The lane's clock against ours; it is known to a second only.
fn skew(skew_ms: i64) -> String {
    let sign = if skew_ms < 0 { "-" } else { "+" };
    format!("{sign}{}", duration(skew_ms.unsigned_abs().saturating_mul(1000)))
}

/// One row per lane: what each speaks and how it answered, for `try --all`.
pub fn overview(views: &[TryView<'_>]) -> Table {
    let mut table = Table::new(vec![
        Column::words("lane", "lane"),
        Column::words("outcome", "outcome"),
        Column::figures("ttft_at_ms", "TTFT"),
        Column::figures("first_answer_at_ms", "answer"),
        Column::figures("end_at_ms", "end"),
        Column::words("streaming", "stream"),
        Column::words("usage", "usage"),
        Column::words("cached_tokens", "cached"),
        Column::words("model_echo", "model"),
        Column::figures("rate_limit_headers", "limits"),
        Column::figures("clock_skew_ms", "clock"),
        Column::words("message", ""),
    ]);
    for view in views {
        let Some(last) = view.last() else {
            table.row(vec![Cell::text(view.lane)]);
            continue;
        };
        let r = last.record;
        let at = |moment: Option<u64>| match last.shifted(moment) {
            Some(us) => Cell::new(duration(us), ms(us)),
            None => Cell::absent(),
        };
        let speaks = Speaks::of(r);
        let said = |what: Option<bool>| match what {
            Some(yes) => Cell::new(if yes { "yes" } else { "no" }, yes),
            None => Cell::new(ABSENT, Value::Null),
        };
        let streaming = match (speaks.streaming, speaks.flowing) {
            (Some(true), Some(false)) => Cell::new("all at once", true).tone(Tone::Warn),
            (streaming, _) => said(streaming),
        };
        let message = r.message.as_deref().filter(|_| !r.outcome.is_ok()).map(|m| shortened(&one_line(m), EXCERPT));
        table.row(vec![
            Cell::text(view.lane),
            Cell::new(r.outcome.words(), r.outcome.name()).tone(if r.outcome.is_ok() { Tone::Good } else { Tone::Bad }),
            at(r.ttft_us),
            at(r.first_answer_us),
            at(r.end_us),
            streaming,
            said(speaks.usage),
            said(speaks.cached),
            said(speaks.model_echo),
            Cell::new(speaks.rate_limit_headers.to_string(), speaks.rate_limit_headers),
            speaks.clock_skew_ms.map_or_else(Cell::absent, |ms| Cell::new(skew(ms), ms)),
            Cell::new(message.as_deref().unwrap_or(""), message.clone()),
        ]);
    }
    table
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::try_view::sample::{answered, refused};
    use peaklane_core::lane::Api;
    use peaklane_core::outcome::Outcome;

    fn view<'a>(tries: Vec<TrySeen<'a>>) -> TryView<'a> {
        TryView {
            lane: "lane-a",
            api: Api::Chat,
            url: "https://a.example/v1/chat/completions",
            model: "qwen3-coder",
            stream: true,
            tool_version: "0.1.0",
            tries,
        }
    }

    fn at_once(record: &TryRecord) -> TrySeen<'_> {
        TrySeen { record, offset_us: 0, waited_us: 0 }
    }

    #[test]
    fn a_request_is_shown_step_by_step() {
        let record = answered();
        insta::assert_snapshot!(render(&view(vec![at_once(&record)]), 80, Palette::PLAIN), @r#"
        lane-a · chat · https://a.example/v1/chat/completions
        ok · HTTP 200 · HTTP/2 · new connection

        step            took      at
        DNS          2.00 ms          ━
        connect      10.0 ms          ━
        TLS          20.0 ms          ━
        request      1.00 ms          ━
        first byte    400 ms  400 ms  ━━━━━━━━━
        first token   100 ms  500 ms           ━━━
        reasoning     400 ms  900 ms              ━━━━━━━━━
        answer        700 ms   1.6 s                       ━━━━━━━━━━━━━━━━
        end           100 ms   1.7 s                                       ━━━

        tokens      9,507 prompt (9,000 cached) · 23 completion (12 reasoning) · 20.0
                    tokens/s after the first
        answer      "Done, and well." · finish stop · 8 chunks · 3 chunks of reasoning ·
                    longest gap 210 ms · 5.0 KiB
        model       qwen3-coder-2507 (asked for qwen3-coder) · fingerprint fp_1 ·
                    request req-7
        speaks      streaming yes · usage yes · cached tokens yes · model name yes ·
                    rate-limit headers yes · clock -1.2 s
        limits      x-ratelimit-remaining-requests: 9
        own lag     240 µs at most
        "#);
    }

    #[test]
    fn a_refused_try_shows_its_class_its_message_and_what_to_do() {
        let record = refused();
        insta::assert_snapshot!(render(&view(vec![at_once(&record)]), 80, Palette::PLAIN), @r"
        lane-a · chat · https://a.example/v1/chat/completions
        rate limited · HTTP 429 · HTTP/1.1 · new connection · asks to wait 2 s

        step           took      at
        connect     1.00 ms          ━
        request      500 µs          ━
        first byte   120 ms  120 ms  ━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━
        failure     1.00 ms  121 ms                                         ━

        message     Rate limit reached for [1mfree tier
        hint        the lane asks to wait 2 s; fewer attempts at once stay below its
                    limit
        answer      60 B
        ");
    }

    #[test]
    fn a_retry_shows_what_came_before_it() {
        let (first, second) = (refused(), answered());
        let tries = vec![at_once(&first), TrySeen { record: &second, offset_us: 2_121_750, waited_us: 2_000_000 }];
        let text = render(&view(tries), 80, Palette::PLAIN);
        insta::assert_snapshot!(text.lines().take(3).collect::<Vec<_>>().join("\n"), @r"
        lane-a · chat · https://a.example/v1/chat/completions
        try 1: rate limited · HTTP 429 · HTTP/1.1 · new connection · asks to wait 2 s
        try 2 (after 2.0 s): ok · HTTP 200 · HTTP/2 · new connection
        ");
    }

    #[test]
    fn the_steps_follow_each_other_without_a_hole_and_end_where_the_request_ends() {
        for record in [answered(), refused()] {
            let steps = steps(&record);
            assert!(steps.windows(2).all(|pair| pair[0].to_us == pair[1].from_us), "{steps:?}");
            let end = record.sent_us + record.end_us.max(record.last_byte_us).unwrap();
            assert_eq!(steps.last().unwrap().to_us, end);
        }
    }

    #[test]
    fn a_connection_opened_long_before_lies_right_before_the_request() {
        let mut record = answered();
        record.sent_us = 500;
        let steps = steps(&record);
        let request = steps.iter().find(|s| s.name == "request").unwrap();
        assert_eq!((request.from_us, request.to_us), (32_000, 32_000));
    }

    #[test]
    fn a_bar_is_never_empty_and_never_too_long() {
        assert_eq!(bar(0, 0, 100), "━");
        assert_eq!(bar(100, 100, 100), format!("{}━", " ".repeat(39)));
        assert_eq!(bar(0, 100, 100), "━".repeat(40));
        assert_eq!(bar(50, 75, 100), format!("{}{}", " ".repeat(20), "━".repeat(10)));
    }

    #[test]
    fn all_lanes_stand_in_one_table_with_what_each_speaks() {
        let (fine, limited, mut lumpy) = (answered(), refused(), answered());
        lumpy.bursty = true;
        lumpy.usage = peaklane_core::record::Usage::default();
        lumpy.model = None;
        let lost = TryRecord { message: Some("name not known".into()), ..TryRecord::new(Outcome::Unreachable) };
        let mut views: Vec<TryView<'_>> = [&fine, &limited, &lumpy, &lost].map(|r| view(vec![at_once(r)])).into();
        for (view, name) in views.iter_mut().zip(["lane-a", "lane-b", "lane-c", "lane-d"]) {
            view.lane = name;
        }
        insta::assert_snapshot!(overview(&views).render(100, Palette::PLAIN), @r"
        lane    outcome         TTFT  answer     end  stream       usage  cached  model  limits   clock
        lane-a  ok            500 ms  900 ms   1.7 s  yes          yes    yes     yes         1  -1.2 s
        lane-b  rate limited       -       -  121 ms  -            -      -       -           0       -
            Rate limit reached for [1mfree tier
        lane-c  ok            500 ms  900 ms   1.7 s  all at once  no     no      no          1  -1.2 s
        lane-d  unreachable        -       -       -  -            -      -       -           0       -
            name not known
        ");
    }
}
