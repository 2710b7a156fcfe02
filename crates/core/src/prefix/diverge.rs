//! The first place at which a prompt ceases to repeat the former one, and what sort of change it is.

use std::sync::OnceLock;

use regex::Regex;
use serde_json::Value;

use super::excerpt;
use super::prompt::{Part, Prompt, Segment};
use crate::call::{BreakKind, Divergence};

/// Characters around a difference that are looked at for what it is.
const NEAR_BYTES: usize = 48;
/// Characters before a difference that are looked at for what they talk about.
const TOPIC_BYTES: usize = 240;
/// Longest path that is given, bytes.
const MAX_PATH_BYTES: usize = 200;

/// What the first difference is; `None` when the former prompt is repeated whole.
///
/// * `common`: bytes that both begin with.
pub fn diverge(former: &Prompt, later: &Prompt, common: usize) -> Option<Divergence> {
    let n = former.segment_at(common)?;
    let segment = &former.segments[n];
    let base = path_of(segment);
    let before = std::str::from_utf8(former.segment(n)).unwrap_or_default();
    let Some(m) = later.segment_at(common) else {
        return Some(told(segment, base, BreakKind::HistoryCut, excerpt::around(before, 0), String::new()));
    };
    let after = std::str::from_utf8(later.segment(m)).unwrap_or_default();
    let other = &later.segments[m];
    if other.part == Part::Tool && segment.part != Part::Tool {
        // A tool came behind the last one: it is the place where it stands that tells.
        return Some(told(segment, path_of(other), BreakKind::ToolList, String::new(), excerpt::around(after, 0)));
    }
    if other.part == Part::System && segment.part == Part::Message {
        // One more system text came behind the last one, likewise.
        return Some(told(segment, path_of(other), BreakKind::System, String::new(), excerpt::around(after, 0)));
    }
    if let Some(kind) = whole_segment(former, later, n, m) {
        return Some(told(segment, base, kind, excerpt::around(before, 0), excerpt::around(after, 0)));
    }
    let (Ok(a), Ok(b)) = (serde_json::from_str::<Value>(before), serde_json::from_str::<Value>(after)) else {
        return Some(told(segment, base, fallback(segment), excerpt::around(before, 0), excerpt::around(after, 0)));
    };
    let mut path = base;
    let found = walk(&mut path, &a, &b);
    let kind = match &found {
        _ if other.part != segment.part => fallback(segment),
        Found::Missing { key, .. } if is_reasoning(key) => BreakKind::ReasoningDropped,
        Found::Missing { here, .. } if holds_reasoning(here) => BreakKind::ReasoningDropped,
        Found::Texts { b, .. } if is_emptied(b) && path.rsplit('.').next().is_some_and(is_reasoning) => {
            BreakKind::ReasoningDropped
        }
        Found::Texts { a, b, at } => of_texts(segment, &path, a, b, *at),
        _ => fallback(segment),
    };
    let (before, after) = match found {
        Found::Texts { a, b, at } => (excerpt::around(&a, at), excerpt::around(&b, at)),
        Found::Missing { here, .. } => (excerpt::around(&here, 0), String::new()),
        Found::Added { there } => (String::new(), excerpt::around(&there, 0)),
        Found::Same => (String::new(), String::new()),
    };
    Some(told(segment, path, kind, before, after))
}

fn told(segment: &Segment, mut path: String, kind: BreakKind, before: String, after: String) -> Divergence {
    while path.len() > MAX_PATH_BYTES {
        path.pop();
    }
    Divergence { segment: segment.to_string(), path, kind, before, after }
}

/// Where a segment stands in the body.
fn path_of(segment: &Segment) -> String {
    match segment.index {
        Some(index) => format!("{}[{index}]", segment.field),
        None => segment.field.to_owned(),
    }
}

/// Changes that concern segments as a whole: tools in another order, messages that came or went.
fn whole_segment(former: &Prompt, later: &Prompt, n: usize, m: usize) -> Option<BreakKind> {
    let all = |p: &Prompt, part: Part| -> Vec<Vec<u8>> {
        (0..p.segments.len()).filter(|i| p.segments[*i].part == part).map(|i| p.segment(i).to_vec()).collect()
    };
    if former.segments[n].part == Part::Tool {
        let (mut a, mut b) = (all(former, Part::Tool), all(later, Part::Tool));
        a.sort_unstable();
        b.sort_unstable();
        if a == b {
            return Some(BreakKind::ToolOrder);
        }
        // The tool that stood there is still offered elsewhere, or the one that stands there now was.
        let same_name = name_of(former.segment(n)) == name_of(later.segment(m));
        return (!same_name || later.segments[m].part != Part::Tool).then_some(BreakKind::ToolList);
    }
    if former.segments[n].part != Part::Message {
        return None;
    }
    if later.segments[m].part != Part::Message {
        return Some(BreakKind::HistoryCut);
    }
    // Compared as the items they are, so a message that merely moved is found.
    let rest = |p: &Prompt, from: usize, item: &[u8]| (from..p.segments.len()).any(|i| p.segment(i) == item);
    let reasoning = former.segments[n].role == "reasoning" && later.segments[m].role != "reasoning";
    if reasoning {
        return Some(BreakKind::ReasoningDropped);
    }
    if rest(later, m + 1, former.segment(n)) {
        return Some(BreakKind::MessageInserted);
    }
    if rest(former, n + 1, later.segment(m)) {
        return Some(BreakKind::MessageRemoved);
    }
    None
}

/// The name of a tool, in either of the shapes that tools have.
fn name_of(tool: &[u8]) -> Option<String> {
    let value: Value = serde_json::from_slice(tool).ok()?;
    let name = value.get("name").or_else(|| value.get("function")?.get("name"))?;
    name.as_str().map(str::to_owned)
}

enum Found {
    /// Two texts, and the byte of the first at which they part.
    Texts { a: String, b: String, at: usize },
    /// Something that the later one lacks.
    Missing { key: String, here: String },
    /// Something that only the later one has.
    Added { there: String },
    /// Equal as JSON.
    Same,
}

/// Goes down to the first difference, in the order of the canonical text.
fn walk(path: &mut String, a: &Value, b: &Value) -> Found {
    match (a, b) {
        (Value::Object(x), Value::Object(y)) => {
            let mut keys: Vec<&String> = x.keys().chain(y.keys().filter(|k| !x.contains_key(*k))).collect();
            keys.sort_unstable();
            for key in keys {
                let (left, right) = (x.get(key), y.get(key));
                if left == right {
                    continue;
                }
                path.push('.');
                path.push_str(key);
                return match (left, right) {
                    (Some(left), Some(right)) => walk(path, left, right),
                    (Some(left), None) => Found::Missing { key: key.clone(), here: left.to_string() },
                    (None, Some(right)) => Found::Added { there: right.to_string() },
                    (None, None) => Found::Same,
                };
            }
            Found::Same
        }
        (Value::Array(x), Value::Array(y)) => {
            let longer = x.len().max(y.len());
            let Some(n) = (0..longer).find(|n| x.get(*n) != y.get(*n)) else { return Found::Same };
            path.push_str(&format!("[{n}]"));
            match (x.get(n), y.get(n)) {
                // A block of thinking in whose place another block stands: its fields are not to be compared.
                (Some(left), Some(right)) if is_thought(left) && !is_thought(right) => {
                    Found::Missing { key: String::new(), here: left.to_string() }
                }
                (Some(left), Some(right)) => walk(path, left, right),
                (Some(left), None) => Found::Missing { key: String::new(), here: left.to_string() },
                (None, Some(right)) => Found::Added { there: right.to_string() },
                (None, None) => Found::Same,
            }
        }
        (Value::String(x), Value::String(y)) => {
            let at = x.char_indices().zip(y.chars()).find(|((_, c), d)| c != d);
            let at = at.map_or(x.len().min(y.len()), |((n, _), _)| n);
            Found::Texts { a: x.clone(), b: y.clone(), at }
        }
        _ if a == b => Found::Same,
        _ => Found::Texts { a: a.to_string(), b: b.to_string(), at: 0 },
    }
}

fn is_reasoning(key: &str) -> bool {
    matches!(key, "reasoning" | "reasoning_content" | "reasoning_details" | "thinking" | "redacted_thinking")
}

fn holds_reasoning(json: &str) -> bool {
    ["\"type\":\"thinking\"", "\"type\":\"redacted_thinking\"", "\"type\":\"reasoning\""]
        .iter()
        .any(|t| json.contains(t))
}

/// Is it a block of content in which a model thinks?
fn is_thought(block: &Value) -> bool {
    let kind = block.get("type").and_then(Value::as_str);
    kind.is_some_and(|kind| matches!(kind, "thinking" | "redacted_thinking" | "reasoning"))
}

/// Nothing is left of a text: it is empty, or the value that stands there is none.
fn is_emptied(text: &str) -> bool {
    matches!(text, "" | "null" | "[]")
}

fn fallback(segment: &Segment) -> BreakKind {
    match segment.part {
        Part::Tool => BreakKind::ToolList,
        Part::System => BreakKind::System,
        Part::Message => BreakKind::HistoryRewritten,
        Part::Text => BreakKind::Other,
    }
}

/// What two texts that part at a byte differ in.
fn of_texts(segment: &Segment, path: &str, a: &str, b: &str, at: usize) -> BreakKind {
    if is_clock(a, at) && is_clock(b, at) {
        return BreakKind::Clock;
    }
    if is_token(a, b, at) {
        return BreakKind::Token;
    }
    match segment.part {
        Part::System if talks_of_files(a, at) || talks_of_files(b, at) => BreakKind::FileState,
        // Output of tools is full of files: there it is the history that was rewritten.
        Part::Message if may_bring_files(&segment.role) && talks_of_files(a, at) && talks_of_files(b, at) => {
            BreakKind::FileState
        }
        Part::System if is_file_put_in(a, b, at) || is_file_put_in(b, a, at) => BreakKind::FileState,
        Part::System | Part::Tool if is_counter(a, b, at) => BreakKind::Token,
        Part::Tool if path.ends_with("description") => BreakKind::ToolDescription,
        Part::Tool => BreakKind::ToolList,
        _ => fallback(segment),
    }
}

/// The neighbourhood of a byte, and where the byte is in it.
fn near(text: &str, at: usize, before: usize, after: usize) -> (&str, usize) {
    let floor = |n: usize| (0..=n.min(text.len())).rev().find(|n| text.is_char_boundary(*n)).unwrap_or(0);
    let (from, to) = (floor(at.saturating_sub(before)), floor(at + after));
    (&text[from..to.max(from)], at.min(text.len()) - from)
}

/// Does a date or a time of day stand at that byte?
fn is_clock(text: &str, at: usize) -> bool {
    static CLOCK: OnceLock<Regex> = OnceLock::new();
    let clock = CLOCK.get_or_init(|| {
        Regex::new(concat!(
            r"\d{4}-\d{1,2}-\d{1,2}(?:[T ]\d{1,2}:\d{2}(?::\d{2})?(?:\.\d+)?)?",
            r"|\d{1,2}[/.]\d{1,2}[/.]\d{2,4}",
            r"|\d{1,2}:\d{2}(?::\d{2})?(?:\.\d+)?\s*(?:[AaPp][Mm])?",
            r"|(?:Mon|Tues?|Wed(?:nes)?|Thu(?:rs)?|Fri|Sat(?:ur)?|Sun)(?:day)?\b[, ]*(?:[A-Z][a-z]+)?\s*\d*",
            r"|(?:Jan|Feb|Mar|Apr|May|Jun|Jul|Aug|Sep|Oct|Nov|Dec)[a-z]*\.? \d{1,2}(?:st|nd|rd|th)?(?:,? \d{4})?",
            r"|\d{1,2}\.? (?:Jan|Feb|Mar|Apr|May|Jun|Jul|Aug|Sep|Oct|Nov|Dec)[a-z]*(?:,? \d{4})?",
            r"|\b1[6-9]\d{8}(?:\d{3})?\b",
        ))
        .expect("a fixed expression")
    });
    let (near, here) = near(text, at, NEAR_BYTES, NEAR_BYTES);
    clock.find_iter(near).any(|found| found.start() <= here && here < found.end().max(found.start() + 1))
}

/// Is it one word in the place of another of the same make: a hash, an id, a counter?
fn is_token(a: &str, b: &str, at: usize) -> bool {
    let (x, y) = (word_at(a, at), word_at(b, at));
    let digit = |w: &str| w.bytes().any(|b| b.is_ascii_digit());
    let plain = |w: &str| w.len() >= 6 && w.bytes().all(|b| b.is_ascii_alphanumeric() || b"-_.=+/".contains(&b));
    plain(x) && plain(y) && x.len() == y.len() && digit(x) && digit(y) && rest_is_same(a, b, at, x, y)
}

/// The texts go on alike behind the word: nothing but the word was changed there.
fn rest_is_same(a: &str, b: &str, at: usize, x: &str, y: &str) -> bool {
    let after = |text: &str, word: &str| {
        let begin = text[..at].rfind(|c| !is_word(c)).map_or(0, |n| n + 1);
        let rest = text.get(begin + word.len()..).unwrap_or_default();
        rest.chars().take(16).collect::<String>()
    };
    after(a, x) == after(b, y)
}

fn is_word(c: char) -> bool {
    c.is_ascii_alphanumeric() || "-_.=+/".contains(c)
}

fn word_at(text: &str, at: usize) -> &str {
    let at = at.min(text.len());
    let begin = text[..at].rfind(|c| !is_word(c)).map_or(0, |n| n + text[n..].chars().next().map_or(1, char::len_utf8));
    let end = text[at..].find(|c| !is_word(c)).map_or(text.len(), |n| at + n);
    &text[begin.min(end)..end]
}

/// Is a whole number in the place of another one the only change there: steps that are left, a process, a port?
fn is_counter(a: &str, b: &str, at: usize) -> bool {
    let number = |text: &str| {
        let is_digit = |b: &u8| b.is_ascii_digit();
        let begin = at - text.as_bytes()[..at].iter().rev().take_while(|b| is_digit(b)).count();
        let end = at + text.as_bytes()[at..].iter().take_while(|b| is_digit(b)).count();
        (end > begin).then(|| text[end..].chars().take(16).collect::<String>())
    };
    at <= a.len() && at <= b.len() && number(a).is_some_and(|rest| number(b) == Some(rest))
}

/// Do the words before the difference talk of the state of a repository or of a folder? Words that instructions of
/// coding agents have anyway (commit, git) say nothing.
fn talks_of_files(text: &str, at: usize) -> bool {
    let (near, _) = near(text, at, TOPIC_BYTES, NEAR_BYTES);
    let near = near.to_ascii_lowercase();
    [
        "git status",
        "gitstatus",
        "git log",
        "git diff",
        "branch:",
        "branch is",
        "recent commits",
        "last commit",
        "untracked",
        "modified:",
        "working directory:",
        "working tree",
        "file tree",
        "folder structure",
        "repo-map",
        "repository map",
    ]
    .iter()
    .any(|word| near.contains(word))
        || near.lines().filter(|line| is_path(line)).nth(1).is_some()
}

/// Is a line of a listing, a tree or a map of files nothing but a path?
fn is_path(line: &str) -> bool {
    let line = line.trim_matches(|c: char| c.is_whitespace() || "│├└─|`+*-:".contains(c));
    let named =
        line.contains('/') || line.rsplit_once('.').is_some_and(|(stem, end)| !stem.is_empty() && end.len() < 6);
    named && !line.ends_with('.') && line.len() > 2 && line.chars().all(|c| c.is_alphanumeric() || "/._-".contains(c))
}

/// Do harnesses put files that they looked up themselves into messages of that role?
fn may_bring_files(role: &str) -> bool {
    matches!(role, "user" | "system" | "developer")
}

/// Does `with` go on, where `without` ends or goes on alike, with something that names a file: a memory file, rules of a
/// folder?
fn is_file_put_in(without: &str, with: &str, at: usize) -> bool {
    static FILE: OnceLock<Regex> = OnceLock::new();
    let file = FILE.get_or_init(|| {
        Regex::new(r"(?:^|[\s\x22'`(<:])(?:~|\.{1,2})?/?(?:[\w.-]+/)*[\w.-]+\.(?:md|mdc|txt|json|ya?ml|toml)\b")
            .expect("a fixed expression")
    });
    let rest = without.get(at..).unwrap_or_default();
    let (added, _) = near(with, at, 0, 4 * NEAR_BYTES);
    with.len() > without.len() && with.ends_with(rest) && file.is_match(added)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::super::compare::common;
    use super::*;
    use crate::lane::Api;

    fn first(a: Value, b: Value) -> Divergence {
        let of = |body: Value| Prompt::from_body(Api::Chat, body.to_string().as_bytes()).unwrap();
        let (a, b) = (of(a), of(b));
        let common = common(&a.text, &b.text);
        diverge(&a, &b, common).unwrap()
    }

    fn system(a: &str, b: &str) -> Divergence {
        let of =
            |text: &str| json!({"messages": [{"role": "system", "content": text}, {"role": "user", "content": "go"}]});
        first(of(a), of(b))
    }

    fn history(messages: &[(&str, &str)]) -> Value {
        let list: Vec<Value> = messages.iter().map(|(r, c)| json!({"role": r, "content": c})).collect();
        json!({ "messages": list })
    }

    #[test]
    fn a_clock_in_the_system_text_is_found_by_its_place() {
        for (a, b) in [
            ("You help. Now: 2026-11-30 09:00:01. Be brief.", "You help. Now: 2026-11-30 09:00:09. Be brief."),
            ("Today's date: Mon Nov 30 2026", "Today's date: Tue Dec 1 2026"),
            ("It is 4:05 PM", "It is 4:06 PM"),
            ("epoch 1796000000", "epoch 1796000042"),
        ] {
            let found = system(a, b);
            assert_eq!((found.kind, &*found.path), (BreakKind::Clock, "messages[0].content"), "{a}: {found:?}");
            assert_eq!(found.segment, "system");
        }
        let found = system("It is 4:05 PM", "It is 4:06 PM");
        assert_eq!((&*found.before, &*found.after), ("It is 4:05 PM", "It is 4:06 PM"));
    }

    #[test]
    fn a_hash_per_request_is_a_token_and_its_end_is_not_shown() {
        let found = system("req cch=0a1b2c3d4e5f60718293a4b5 on", "req cch=ffeeddccbbaa00998877665 on");
        assert_ne!(found.kind, BreakKind::Token, "another length is another text");
        let found = system("req cch=0a1b2c3d4e5f60718293a4b5 on", "req cch=ffeeddccbbaa009988776655 on");
        assert_eq!(found.kind, BreakKind::Token);
        assert!(!found.before.contains("a4b5") && found.before.contains("0a1b"), "{found:?}");
    }

    #[test]
    fn the_state_of_a_repository_and_other_words_are_told_apart() {
        assert_eq!(system("git status: clean", "git status: 2 files changed").kind, BreakKind::FileState);
        assert_eq!(system("You are kind.", "You are brief.").kind, BreakKind::System);
        let rules =
            ("In a git repository never commit unasked. Be kind.", "In a git repository never commit unasked. Go on.");
        assert_eq!(system(rules.0, rules.1).kind, BreakKind::System, "every coding agent talks of git");
    }

    #[test]
    fn a_map_of_files_is_known_by_its_lines_in_what_the_harness_says_and_not_in_output_of_tools() {
        let map = |more: &str| format!("Files of this folder:\n\nsrc/main.rs:\n| fn main\n\nsrc/lib.rs\n{more}");
        let with = |role: &str, text: &str| history(&[("user", "go"), (role, text), ("user", "on")]);
        let kind = |role: &str| first(with(role, &map("\nsrc/a.rs:\n| fn a")), with(role, &map("\nsrc/b.rs"))).kind;
        assert_eq!((kind("user"), kind("tool")), (BreakKind::FileState, BreakKind::HistoryRewritten));
        assert_eq!(system(&map("src/a.rs"), &map("src/b.rs")).kind, BreakKind::FileState);
        let cut = first(with("user", &map("")), with("user", "(older output removed)"));
        assert_eq!(cut.kind, BreakKind::HistoryRewritten);
    }

    #[test]
    fn a_memory_file_that_comes_or_goes_is_the_state_of_files() {
        let (bare, with) = ("You code.", "You code.\n\n--- Context from: ../notes/AGENTS.md ---\nUse tabs.");
        assert_eq!((system(bare, with).kind, system(with, bare).kind), (BreakKind::FileState, BreakKind::FileState));
        assert_eq!(system("You code.", "You code.\n\nUse tabs.").kind, BreakKind::System);
    }

    #[test]
    fn a_number_that_counts_is_a_token_whatever_its_length() {
        assert_eq!(system("10 steps are left.", "9 steps are left.").kind, BreakKind::Token);
        assert_eq!(system("Process 41 runs.", "Process 42 runs.").kind, BreakKind::Token);
        assert_eq!(system("Write 10 lines.", "Write 9 tests.").kind, BreakKind::System);
    }

    #[test]
    fn a_system_message_that_came_before_the_history_is_no_cut_of_it() {
        let (go, note) = (("user", "go"), ("system", "Be brief."));
        let found = first(history(&[("system", "Code."), go]), history(&[("system", "Code."), note, go]));
        assert_eq!((found.kind, &*found.path, &*found.segment), (BreakKind::System, "messages[1]", "msg[1]/user"));
    }

    #[test]
    fn tools_in_another_order_added_or_reworded_are_three_kinds() {
        let tool =
            |name: &str, words: &str| json!({"type": "function", "function": {"name": name, "description": words}});
        let of = |tools: Vec<Value>| json!({"tools": tools, "messages": [{"role": "user", "content": "go"}]});
        let (a, b, c) = (tool("a", "does a"), tool("b", "does b"), tool("a", "does A"));
        let kind = |x: Vec<&Value>, y: Vec<&Value>| {
            first(of(x.into_iter().cloned().collect()), of(y.into_iter().cloned().collect()))
        };
        assert_eq!(kind(vec![&a, &b], vec![&b, &a]).kind, BreakKind::ToolOrder);
        assert_eq!(kind(vec![&a, &b], vec![&b]).kind, BreakKind::ToolList);
        let reworded = kind(vec![&a, &b], vec![&c, &b]);
        assert_eq!((reworded.kind, &*reworded.path), (BreakKind::ToolDescription, "tools[0].function.description"));
        // A tool behind the last: the former one goes on, into something else.
        let added = kind(vec![&a], vec![&a, &b]);
        assert_eq!((added.kind, &*added.path, &*added.segment), (BreakKind::ToolList, "tools[1]", "msg[0]/user"));
    }

    #[test]
    fn what_became_of_the_history_is_told() {
        let base = [("user", "one"), ("assistant", "two"), ("user", "three")];
        let kind = |later: &[(&str, &str)]| first(history(&base), history(later)).kind;
        assert_eq!(kind(&base[..2]), BreakKind::HistoryCut);
        assert_eq!(kind(&[base[0], base[2]]), BreakKind::MessageRemoved);
        assert_eq!(kind(&[base[0], ("user", "note"), base[1], base[2]]), BreakKind::MessageInserted);
        let rewritten = first(history(&base), history(&[base[0], ("assistant", "tw... pruned"), base[2]]));
        assert_eq!((rewritten.kind, &*rewritten.path), (BreakKind::HistoryRewritten, "messages[1].content"));
        assert_eq!(rewritten.segment, "msg[1]/assistant");
    }

    #[test]
    fn dropped_reasoning_is_found_in_each_of_its_shapes() {
        let chat = |reasoning: Option<&str>| {
            let mut said = json!({"role": "assistant", "content": "two"});
            if let Some(text) = reasoning {
                said["reasoning_content"] = Value::from(text);
            }
            json!({"messages": [{"role": "user", "content": "one"}, said, {"role": "user", "content": "three"}]})
        };
        let found = first(chat(Some("hm")), chat(None));
        assert_eq!((found.kind, &*found.path), (BreakKind::ReasoningDropped, "messages[1].reasoning_content"));
        let of =
            |items: Value| Prompt::from_body(Api::Responses, json!({ "input": items }).to_string().as_bytes()).unwrap();
        let user = json!({"role": "user", "content": "x"});
        let a = of(json!([user, {"type": "reasoning", "summary": []}, {"type": "function_call", "name": "f"}]));
        let b = of(json!([user, {"type": "function_call", "name": "f"}]));
        let found = diverge(&a, &b, common(&a.text, &b.text)).unwrap();
        assert_eq!((found.kind, &*found.path), (BreakKind::ReasoningDropped, "input[1]"));
        let found = first(chat(Some("hm")), chat(Some("")));
        assert_eq!((found.kind, &*found.path), (BreakKind::ReasoningDropped, "messages[1].reasoning_content"));
        let of = |blocks: Value| {
            let body =
                json!({"messages": [{"role": "user", "content": "x"}, {"role": "assistant", "content": blocks}]});
            Prompt::from_body(Api::Messages, body.to_string().as_bytes()).unwrap()
        };
        let thought = json!({"type": "thinking", "thinking": "hm", "signature": "c2ln"});
        let said = json!({"type": "text", "text": "two"});
        let (a, b) = (of(json!([thought, said])), of(json!([said])));
        let found = diverge(&a, &b, common(&a.text, &b.text)).unwrap();
        assert_eq!((found.kind, &*found.path), (BreakKind::ReasoningDropped, "messages[1].content[0]"));
    }

    #[test]
    fn a_prompt_that_goes_on_has_no_difference() {
        let of = |body: Value| Prompt::from_body(Api::Chat, body.to_string().as_bytes()).unwrap();
        let (a, b) = (of(history(&[("user", "one")])), of(history(&[("user", "one"), ("assistant", "two")])));
        assert_eq!(diverge(&a, &b, common(&a.text, &b.text)), None);
    }
}
