//! Sessions of harnesses from the store: what each took, where its time and tokens went, what broke its prefix.

use peaklane_core::session::{BreakGroup, SessionSummary};
use serde_json::{Value, json};

use crate::calls::{whole_percent, words};
use crate::notes::{self, Note};
use crate::palette::{Palette, Tone};
use crate::table::{Cell, Column, Table};
use crate::units::{count, counted, duration, money, one_line, shortened};
use crate::words::misses;

/// Breaks that are told one by one; of more there is only the number.
const TOLD: usize = 12;
/// Longest path in a note.
const MOST_PATH: usize = 60;

/// The table, and below it what broke prefixes, what is estimated and what is not known.
pub fn render(sessions: &[SessionSummary], local: &dyn Fn(i64) -> String, width: usize, palette: Palette) -> String {
    let mut out = String::new();
    if let Some((text, tone)) = sentence(sessions) {
        out.push_str(&palette.paint(tone, &text));
        out.push_str("\n\n");
    }
    out.push_str(&table(sessions, local).render(width, palette));
    let notes = notes_of(sessions);
    if !notes.is_empty() {
        out.push('\n');
        out.push_str(&notes::render(&notes, width, palette));
    }
    out
}

/// The same as Markdown.
pub fn markdown(sessions: &[SessionSummary], local: &dyn Fn(i64) -> String) -> String {
    let first = sentence(sessions).map(|(text, _)| format!("**{}**\n\n", crate::table::escape_markdown(&text)));
    let notes = notes_of(sessions);
    let below = if notes.is_empty() { String::new() } else { format!("\n{}", notes::markdown(&notes)) };
    format!("{}{}{below}", first.unwrap_or_default(), table(sessions, local).markdown())
}

/// The sentence that matters: the costliest break, or that there was none.
fn sentence(sessions: &[SessionSummary]) -> Option<(String, Tone)> {
    let all = sessions.iter().flat_map(|s| s.breaks.iter().map(move |b| (s, b)));
    let worst = all.max_by_key(|(_, b)| (b.refilled_tokens, b.lost_bytes));
    let pairs: u64 = sessions.iter().map(|s| s.pairs).sum();
    let server: u64 = sessions.iter().map(|s| s.blame.server + s.blame.both).sum();
    match worst {
        Some((session, group)) => {
            let of = if sessions.len() > 1 { format!(" of {}", one_line(&session.session)) } else { String::new() };
            Some((format!("The prefix{of} {}", broke(group)), Tone::Warn))
        }
        None if pairs == 0 => None,
        None if server > 0 => {
            let text = format!(
                "Every prompt repeats the former one whole; the server lost what it had cached in {}",
                counted(server, "call")
            );
            Some((text, Tone::Warn))
        }
        None => Some(("Every prompt repeats the former one whole".to_owned(), Tone::Good)),
    }
}

/// `broke 3 times at messages[0].content, by a clock: ~81,000 tokens prefilled again`.
fn broke(group: &BreakGroup) -> String {
    let times = if group.times == 1 { "once".to_owned() } else { format!("{} times", count(group.times)) };
    let cost = match group.refilled_tokens {
        Some(tokens) => format!("~{} prefilled again", counted(tokens, "token")),
        None => format!("{} of prompt behind it, tokens not known", crate::units::bytes(group.lost_bytes)),
    };
    format!("broke {times} at {}, by {}: {cost}", shortened(&one_line(&group.path), MOST_PATH), words(group.kind))
}

fn notes_of(sessions: &[SessionSummary]) -> Vec<Note> {
    let mut notes = Vec::new();
    let several = sessions.len() > 1;
    let mut told = 0;
    for session in sessions {
        let name = if several { format!("{}: ", one_line(&session.session)) } else { String::new() };
        for group in &session.breaks {
            told += 1;
            if told <= TOLD {
                notes.push(Note::warning("break", format!("{name}{}{}", broke(group), change(group))));
            }
        }
        if !session.failures.is_empty() {
            notes.push(Note::warning("failed", format!("{name}{}", misses(&session.failures))));
        }
        let blame = session.blame;
        if blame.server + blame.both > 0 {
            let text = format!(
                "{name}in {} the server served less of an unbroken prefix than it could have: evicted, or rendered anew",
                counted(blame.server + blame.both, "call")
            );
            notes.push(Note::warning("server", text));
        }
    }
    if told > TOLD {
        notes.push(Note::plain("break", format!("{} more; --format json has all", count((told - TOLD) as u64))));
    }
    let sum = |of: &dyn Fn(&SessionSummary) -> u64| sessions.iter().map(of).sum::<u64>();
    let estimated = sum(&|s| s.tokens.estimated_calls);
    if estimated > 0 {
        let text = format!(
            "{} without reported tokens; estimates (~) stand apart and cost nothing here",
            counted(estimated, "call")
        );
        notes.push(Note::plain("tokens", text));
    }
    let unmeasured = sum(&|s| s.unmeasured);
    if unmeasured > 0 {
        notes.push(Note::warning("gaps", format!("{} whose prompt was not measured", counted(unmeasured, "call"))));
    }
    notes
}

/// What stood there and what stands there now.
fn change(group: &BreakGroup) -> String {
    match (group.before.as_str(), group.after.as_str()) {
        ("", "") => String::new(),
        (before, "") => format!(" (`{}` went)", one_line(before)),
        ("", after) => format!(" (`{}` came)", one_line(after)),
        (before, after) => format!(" (`{}` -> `{}`)", one_line(before), one_line(after)),
    }
}

/// One row per session.
pub fn table(sessions: &[SessionSummary], local: &dyn Fn(i64) -> String) -> Table {
    let mut table = Table::new(vec![
        Column::words("session", "session"),
        Column::words("started", "begun"),
        Column::words("harness", "harness"),
        Column::figures("logical_calls", "calls"),
        Column::figures("repeats", "repeats"),
        Column::figures("failed", "failed"),
        Column::figures("wall_ms", "time"),
        Column::figures("model_ms", "model"),
        Column::figures("waiting_ms", "waiting"),
        Column::figures("harness_ms", "harness's"),
        Column::figures("prompt_tokens", "tokens in"),
        Column::figures("hit_rate", "cached"),
        Column::figures("warm_share", "could be"),
        Column::figures("completion_tokens", "out"),
        Column::figures("breaks", "breaks"),
        Column::figures("cost_usd", "cost"),
    ]);
    for s in sessions {
        let part = |us: u64| Cell::new(whole_percent(us, s.time.wall_us), us as f64 / 1e3);
        let share = |share: Option<f64>| {
            share.map_or_else(Cell::absent, |v| Cell::new(format!("{} %", (v * 100.0).floor()), v))
        };
        let number = |n: u64| Cell::new(count(n), n);
        let tokens = |reported: u64, estimated: Option<u64>| match (s.tokens.reported_calls, estimated) {
            (0, Some(n)) => Cell::new(format!("~{}", count(n)), Value::Null).tone(Tone::Dim),
            (0, None) => Cell::absent(),
            _ => number(reported),
        };
        let breaks: u64 = s.breaks.iter().map(|b| b.times).sum();
        let failed = number(s.failed);
        let broken = number(breaks);
        let usd = |micro: u64| Cell::new(money(micro), micro as f64 / 1e6);
        table.row(vec![
            Cell::text(shortened(&one_line(&s.session), 32)),
            Cell::text(local(s.started_unix_us)),
            s.harness.as_ref().map_or_else(Cell::absent, |h| Cell::new(shortened(&one_line(h), 18), h.clone())),
            number(s.logical_calls),
            number(s.repeats),
            if s.failed > 0 { failed.tone(Tone::Bad) } else { failed },
            Cell::new(duration(s.time.wall_us), s.time.wall_us as f64 / 1e3),
            part(s.time.model_us),
            part(s.time.waiting_us),
            part(s.time.harness_us),
            tokens(s.tokens.prompt, s.tokens.estimated_prompt),
            share(s.hit_rate),
            share(s.warm_share),
            tokens(s.tokens.completion, s.tokens.estimated_completion),
            if breaks > 0 { broken.tone(Tone::Warn) } else { broken },
            match (s.micro_usd, s.known_micro_usd) {
                (Some(micro), _) => usd(micro),
                (None, Some(known)) => Cell::new(format!(">= {}", money(known)), Value::Null),
                (None, None) => Cell::absent(),
            },
        ]);
    }
    table
}

/// All of it for programs: an array, one object per session. Keys carry their units.
pub fn json(sessions: &[SessionSummary]) -> Value {
    sessions.iter().map(one).collect()
}

fn one(s: &SessionSummary) -> Value {
    let ms = |us: u64| us as f64 / 1e3;
    let usd = |micro: Option<u64>| micro.map(|m| m as f64 / 1e6);
    let breaks: Vec<Value> = s
        .breaks
        .iter()
        .map(|b| {
            json!({
                "kind": b.kind, "path": b.path, "times": b.times, "lost_bytes": b.lost_bytes,
                "refilled_tokens_estimated": b.refilled_tokens, "before": b.before, "after": b.after,
            })
        })
        .collect();
    let t = &s.tokens;
    json!({
        "session": s.session, "session_by": s.session_by, "harness": s.harness, "lanes": s.lanes, "models": s.models,
        "started_unix_us": s.started_unix_us, "calls": s.calls, "logical_calls": s.logical_calls,
        "repeats": s.repeats, "helper_calls": s.helper_calls, "failed": s.failed, "failures": s.failures, "left": s.left,
        "unmeasured": s.unmeasured, "tool_calls": s.tool_calls,
        "time": {
            "wall_ms": ms(s.time.wall_us), "model_ms": ms(s.time.model_us), "waiting_ms": ms(s.time.waiting_us),
            "harness_ms": ms(s.time.harness_us),
        },
        "tokens": {
            "reported_calls": t.reported_calls, "prompt": t.prompt, "cached": t.cached, "cache_write": t.cache_write,
            "completion": t.completion, "reasoning": t.reasoning, "estimated_calls": t.estimated_calls,
            "estimated_prompt": t.estimated_prompt,
            "estimated_completion": t.estimated_completion,
        },
        "hit_rate": s.hit_rate, "warm_share": s.warm_share, "pairs": s.pairs,
        "append_only_pairs": s.append_only_pairs, "reuse_min": s.reuse_min, "reuse_mean": s.reuse_mean,
        "breaks": breaks, "refilled_tokens_estimated": s.refilled_tokens, "blame": s.blame,
        "cost_usd": usd(s.micro_usd), "known_cost_usd": usd(s.known_micro_usd),
    })
}

#[cfg(test)]
mod tests {
    use peaklane_core::session::{Prices, summary};

    use super::*;
    use crate::calls::tests::{call, fates, shares};

    fn of(calls: &[peaklane_core::call::CallRecord]) -> SessionSummary {
        summary(calls, &Prices { of_lane: &|_| None, zones: &|_| None }).unwrap()
    }

    fn shown(sessions: &[SessionSummary]) -> String {
        render(sessions, &|unix_us| format!("{} s", unix_us / 1_000_000), 150, Palette::PLAIN)
    }

    #[test]
    fn what_cost_most_comes_first_and_each_break_failure_and_estimate_is_told_below() {
        let first = call("fix-1", 1, 0);
        let calls: Vec<_> = [first].into_iter().chain(fates()).collect();
        insta::assert_snapshot!(shown(&[of(&calls)]), @r"
        The prefix broke once at messages[0].content, by a clock: ~9,000 tokens prefilled again

        session  begun  harness    calls  repeats  failed    time  model  waiting  harness's  tokens in  cached  could be  out  breaks  cost
        fix-1    0 s    pi/0.73.1      4        1       1  43.2 s   25 %     11 %       62 %     36,000    75 %      58 %  630       1     -

        break        broke once at messages[0].content, by a clock: ~9,000 tokens prefilled again (`time is 09:00` -> `time is 09:01`)
        failed       1 rate limited
        tokens       1 call without reported tokens; estimates (~) stand apart and cost nothing here
        ");
    }

    #[test]
    fn an_unbroken_session_is_said_to_be_one_and_a_server_that_lost_its_cache_is_named() {
        let goes_on = |seq, cached| {
            let mut one = call("fix-2", seq, i64::from(seq) * 10);
            one.prefix = Some(shares(40_000));
            one.record.usage.cached = Some(cached);
            one
        };
        // 10,000 of 12,000 tokens could have been served.
        let whole = of(&[call("fix-2", 1, 0), goes_on(2, 9_984)]);
        assert!(shown(&[whole]).starts_with("Every prompt repeats the former one whole\n"));
        let evicted = shown(&[of(&[call("fix-2", 1, 0), goes_on(2, 0)])]);
        assert!(evicted.contains("; the server lost what it had cached in 1 call\n"), "{evicted}");
    }

    #[test]
    fn what_is_not_known_is_blank_and_never_nothing() {
        let mut unknown = call("fix-3", 1, 0);
        unknown.record.usage = peaklane_core::record::Usage::default();
        let object = json(&[of(&[unknown])]);
        for key in ["hit_rate", "warm_share", "reuse_min", "cost_usd"] {
            assert_eq!(object[0][key], Value::Null, "{key}");
        }
    }
}
