//! Which columns a file has, and how a record becomes fields.

use std::path::Path;

use peaklane_core::attempt::AttemptRecord;
use peaklane_core::burst::BurstHeader;

use super::error::CsvError;
use super::line::{Line, split};

/// Value of the last column, `format`. Later formats must not begin with an earlier one, or a cut row could pass.
pub const CSV_FORMAT: &str = "v1";

/// Columns that say what the burst was: the same in all rows of a burst.
pub(super) const HEADER_COLUMNS: [&str; 29] = [
    "burst_id",
    "run",
    "lane",
    "kind",
    "api",
    "model",
    "base_url",
    "task",
    "floor_us",
    "attempts",
    "concurrency",
    "spacing_us",
    "prompt_mode",
    "connections",
    "stream",
    "max_retries",
    "total_timeout_us",
    "seed",
    "prompt_hash",
    "date",
    "window",
    "zone",
    "started_unix_us",
    "tool_version",
    "simulated",
    "tasks_per_hour_floor",
    "stretch_us",
    "campaign",
    "site",
];

/// Columns that say how the attempt went.
pub(super) const ATTEMPT_COLUMNS: [&str; 32] = [
    "attempt",
    "warmup",
    "intended_unix_us",
    "skew_us",
    "verdict",
    "outcome",
    "latency_us",
    "ttft_us",
    "first_answer_us",
    "retries",
    "prompt_tokens",
    "cached_tokens",
    "cache_write_tokens",
    "completion_tokens",
    "reasoning_tokens",
    "http_status",
    "finish_reason",
    "answer_model",
    "output_chunks",
    "reasoning_chunks",
    "body_bytes",
    "reused",
    "dns_us",
    "connect_us",
    "tls_us",
    "own_lag_us",
    "try_ttft_us",
    "try_first_answer_us",
    "request_id",
    "message",
    "finding",
    "check_note",
];

/// All columns in the order in which they are written: version first, format last.
pub const COLUMNS: [&str; 62] = all_columns();

/// Columns that a file may lack when it is read: their fields may be empty anyway, or no summary needs them.
pub const OPTIONAL_COLUMNS: [&str; 34] = [
    "tasks_per_hour_floor",
    "stretch_us",
    "campaign",
    "site",
    "concurrency",
    "date",
    "window",
    "zone",
    "intended_unix_us",
    "skew_us",
    "ttft_us",
    "first_answer_us",
    "prompt_tokens",
    "cached_tokens",
    "cache_write_tokens",
    "completion_tokens",
    "reasoning_tokens",
    "http_status",
    "finish_reason",
    "answer_model",
    "output_chunks",
    "reasoning_chunks",
    "body_bytes",
    "reused",
    "dns_us",
    "connect_us",
    "tls_us",
    "own_lag_us",
    "try_ttft_us",
    "try_first_answer_us",
    "request_id",
    "message",
    "finding",
    "check_note",
];

const fn all_columns() -> [&'static str; 62] {
    // `tool_version` is a header column too, but stands first; everything else keeps the order of the lists.
    let mut all = [""; 62];
    all[0] = "tool_version";
    let mut to = 1;
    let mut from = 0;
    while from < HEADER_COLUMNS.len() {
        if from != TOOL_VERSION {
            all[to] = HEADER_COLUMNS[from];
            to += 1;
        }
        from += 1;
    }
    let mut from = 0;
    while from < ATTEMPT_COLUMNS.len() {
        all[to] = ATTEMPT_COLUMNS[from];
        to += 1;
        from += 1;
    }
    all[to] = "format";
    all
}

/// Place of `tool_version` in [`HEADER_COLUMNS`].
const TOOL_VERSION: usize = 23;

/// The names in a header line; a byte-order mark and any line end are no part of them.
pub(super) fn names(first_line: &str) -> Vec<String> {
    let line = first_line.trim_start_matches('\u{feff}').trim_end_matches(['\r', '\n']);
    // A line that is no CSV is one strange name, which the error then shows.
    split(line).unwrap_or_else(|_| vec![line.to_owned()])
}

/// Refuses a header that rows of ours cannot stand under.
pub(super) fn check_exact(path: &Path, first_line: &str) -> Result<(), CsvError> {
    let names = names(first_line);
    if names == COLUMNS {
        return Ok(());
    }
    let lacks: Vec<&str> = COLUMNS.into_iter().filter(|c| !names.iter().any(|n| n == c)).collect();
    let difference = match COLUMNS.iter().zip(&names).find(|(ours, found)| *ours != *found) {
        Some((ours, found)) if lacks.is_empty() => format!("`{}` stands where `{ours}` belongs", shown(found)),
        None if lacks.is_empty() => format!("{} more than ours", names.len() - COLUMNS.len()),
        _ => describe(&lacks, &names),
    };
    Err(other(path, first_line, difference))
}

/// Says which columns are missing and which of those found are not ours.
pub(super) fn describe(lacks: &[&str], names: &[String]) -> String {
    let unknown: Vec<&str> = names.iter().map(String::as_str).filter(|n| !COLUMNS.contains(n)).collect();
    let mut parts = vec![format!("lacks {}", some_of(lacks))];
    if !unknown.is_empty() {
        parts.push(format!("has {}", some_of(&unknown)));
    }
    parts.join(", ")
}

pub(super) fn other(path: &Path, first_line: &str, difference: String) -> CsvError {
    let separator = [';', '\t'].into_iter().find(|s| !first_line.contains(',') && first_line.contains(*s));
    CsvError::OtherColumns { path: path.to_path_buf(), difference, separator }
}

/// The first few of many, so that an error stays readable.
pub(super) fn some_of(names: &[&str]) -> String {
    let mut text = names.iter().take(5).map(|n| format!("`{}`", shown(n))).collect::<Vec<_>>().join(", ");
    if names.len() > 5 {
        text.push_str(&format!(" and {} more", names.len() - 5));
    }
    text
}

/// A foreign name, fit for one line of an error.
fn shown(name: &str) -> String {
    let short: String = name.chars().take(40).map(|c| if c.is_control() { '?' } else { c }).collect();
    if name.chars().nth(40).is_some() { short + "..." } else { short }
}

/// The header line without its line end.
pub(super) fn header_line() -> String {
    COLUMNS.join(",")
}

/// One row without its line end.
pub(super) fn row(line: &mut Line, h: &BurstHeader, a: &AttemptRecord) {
    line.text(&h.tool_version);
    line.text(&h.id).text(&h.run).text(&h.lane).text(h.kind.name()).text(h.api.name()).text(&h.model);
    line.text(&h.base_url).text(&h.task).number(h.floor_us).number(h.attempts).maybe(h.concurrency);
    line.number(h.spacing_us).text(h.prompt_mode.name()).text(h.connections.name()).number(h.stream);
    line.number(h.max_retries).number(h.total_timeout_us).number(h.seed).text(&h.prompt_hash);
    line.words(&h.date).words(&h.window).words(&h.zone).number(h.started_unix_us).number(h.simulated);
    line.maybe(h.tasks_per_hour_floor).maybe(h.stretch_us).words(&h.campaign).words(&h.site);

    let (usage, hands, last) = (a.usage(), a.handshake(), a.last());
    line.number(a.index).number(a.warmup).number(a.intended_unix_us).number(a.skew_us);
    line.text(a.verdict.name()).text(a.outcome.name()).number(a.latency_us).maybe(a.ttft_us);
    line.maybe(a.first_answer_us).number(a.retries);
    line.maybe(usage.prompt).maybe(usage.cached).maybe(usage.cache_write);
    line.maybe(usage.completion).maybe(usage.reasoning);
    line.maybe(last.and_then(|t| t.http_status));
    line.text(last.and_then(|t| t.finish_reason.as_deref()).unwrap_or_default());
    line.text(last.and_then(|t| t.model.as_deref()).unwrap_or_default());
    line.maybe(last.map(|t| t.output_chunks)).maybe(last.map(|t| t.reasoning_chunks));
    line.maybe(last.map(|t| t.body_bytes)).maybe(last.map(|_| hands.reused));
    line.maybe(hands.dns_us).maybe(hands.connect_us).maybe(hands.tls_us);
    line.maybe(a.tries.iter().map(|t| t.own_lag_us).max());
    line.maybe(last.and_then(|t| t.ttft_us)).maybe(last.and_then(|t| t.first_answer_us));
    line.text(last.and_then(|t| t.request_id.as_deref()).unwrap_or_default());
    line.text(last.and_then(|t| t.message.as_deref()).unwrap_or_default());
    line.words(&a.finding).words(&a.check_note);
    line.text(CSV_FORMAT);
}

#[cfg(test)]
mod tests {
    use peaklane_core::attempt::Verdict;
    use peaklane_core::burst::{Connections, PromptMode};
    use peaklane_core::lane::{Api, Kind};
    use peaklane_core::outcome::Outcome;

    use super::*;

    #[test]
    fn each_column_is_named_once_and_a_row_has_one_field_for_each() {
        let mut sorted = COLUMNS.to_vec();
        sorted.sort_unstable();
        sorted.dedup();
        assert_eq!(sorted.len(), COLUMNS.len());
        assert!(OPTIONAL_COLUMNS.iter().all(|c| COLUMNS.contains(c)));
        let header = BurstHeader {
            id: "id".into(),
            run: "run".into(),
            lane: "lane".into(),
            kind: Kind::PaidHosted,
            api: Api::Chat,
            model: "m".into(),
            base_url: "u".into(),
            task: "t".into(),
            floor_us: 1,
            attempts: 1,
            concurrency: None,
            spacing_us: 0,
            prompt_mode: PromptMode::Nonce,
            connections: Connections::Before,
            stream: true,
            max_retries: 0,
            total_timeout_us: 2,
            seed: 3,
            prompt_hash: "h".into(),
            date: None,
            window: None,
            zone: None,
            started_unix_us: -5,
            tool_version: "0.1.0".into(),
            simulated: false,
            tasks_per_hour_floor: None,
            stretch_us: None,
            campaign: None,
            site: None,
        };
        let attempt = AttemptRecord {
            index: 4,
            warmup: false,
            intended_unix_us: 6,
            skew_us: 7,
            latency_us: 8,
            verdict: Verdict::Failed,
            outcome: Outcome::Unreachable,
            retries: 0,
            ttft_us: None,
            first_answer_us: None,
            finding: None,
            check_note: None,
            tries: Vec::new(),
        };
        let mut line = Line::default();
        row(&mut line, &header, &attempt);
        assert_eq!(
            line.finish(),
            "0.1.0,id,run,lane,paid-hosted,chat,m,u,t,1,1,,0,nonce,before,true,0,2,3,h,,,,-5,false,,,,,4,false,6,7,failed,\
             unreachable,8,,,0,,,,,,,,,,,,,,,,,,,,,,,v1"
        );
    }
}
