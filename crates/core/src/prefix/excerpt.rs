//! Short pieces of prompts for people, without what looks like a secret.

use std::sync::OnceLock;

use regex::Regex;

/// Characters shown before the difference, for orientation.
const BEFORE: usize = 24;
/// Characters shown from the difference on.
const AFTER: usize = 56;

/// A piece of `text` around the byte at `at`: one line, at most 80 characters, secrets taken out.
pub(super) fn around(text: &str, at: usize) -> String {
    let at = (0..=at.min(text.len())).rev().find(|n| text.is_char_boundary(*n)).unwrap_or(0);
    let (head, tail) = text.split_at(at);
    // More than is shown is looked at, so that a secret that is cut is still seen as one.
    let begin = head.char_indices().rev().nth(4 * BEFORE).map_or(0, |(n, _)| n);
    let end = tail.char_indices().nth(4 * AFTER).map_or(tail.len(), |(n, _)| n);
    let clean_head = clean(&head[begin..]);
    let joined = clean(&text[begin..at + end]);
    let kept = common_chars(&clean_head, &joined);
    let shown_from = joined.char_indices().take_while(|(n, _)| *n < kept).map(|(n, _)| n).collect::<Vec<_>>();
    let from = shown_from.len().checked_sub(BEFORE).map_or(0, |n| shown_from[n]);
    let to = joined[kept..].char_indices().nth(AFTER).map_or(joined.len(), |(n, _)| kept + n);
    let cut = |yes: bool| if yes { "..." } else { "" };
    let piece = joined[from..to].replace(['\n', '\r', '\t'], " ");
    format!("{}{}{}", cut(begin > 0 || from > 0), piece.trim(), cut(to < joined.len() || at + end < text.len()))
}

fn common_chars(a: &str, b: &str) -> usize {
    a.char_indices().zip(b.chars()).find(|((_, x), y)| x != y).map_or(a.len().min(b.len()), |((n, _), _)| n)
}

/// Takes keys out of a text by their known beginnings. What stands in their place has no quotes and no backslashes, nor
/// has what is taken out, so that JSON stays JSON.
pub fn redact_keys(text: &str) -> std::borrow::Cow<'_, str> {
    static KEY: OnceLock<Regex> = OnceLock::new();
    let key = KEY.get_or_init(|| {
        Regex::new(concat!(
            r"\b(?:sk|pk|rk|gh[pousr]|github_pat|glpat|xox[abprs]|hf|nvapi)[-_][-_A-Za-z0-9]{8,}",
            r"|\b(?:AKIA|AIza)[-_A-Za-z0-9]{12,}",
            r"|\beyJ[-_A-Za-z0-9]{8,}\.[-_A-Za-z0-9]+\.[-_A-Za-z0-9]+",
            r"|(?i)\bbearer\s+[-_.~+/=A-Za-z0-9]{8,}",
        ))
        .expect("a fixed expression")
    });
    key.replace_all(text, "(key)")
}

/// Takes out what looks like a key: known beginnings, and long words of letters and digits mixed.
pub(super) fn clean(text: &str) -> String {
    static KEY: OnceLock<Regex> = OnceLock::new();
    let key = KEY.get_or_init(|| {
        Regex::new(concat!(
            r"(?i)\b(?:sk|pk|rk|gh[pousr]|github_pat|glpat|xox[abprs]|hf|nvapi|AKIA|AIza|eyJ)[-_A-Za-z0-9]{8,}(?:\.[-_A-Za-z0-9]+)*",
            r"|(?i)bearer\s+\S{8,}",
            r#"|(?i)(?:password|passwd|secret|token|api[_-]?key)["'\s]*[:=]\s*["']?[^\s"',}]{6,}"#,
        ))
        .expect("a fixed expression")
    });
    static WORD: OnceLock<Regex> = OnceLock::new();
    let word = WORD.get_or_init(|| Regex::new(r"[A-Za-z0-9_-]{20,}").expect("a fixed expression"));
    let text = key.replace_all(text, "(key)");
    let short = word.replace_all(&text, |found: &regex::Captures<'_>| {
        let found = &found[0];
        let mixed = found.bytes().any(|b| b.is_ascii_digit()) && found.bytes().any(|b| b.is_ascii_alphabetic());
        // The begin stays: it is enough to tell two hashes apart.
        if mixed { format!("{}(...)", &found[..6]) } else { found.to_owned() }
    });
    short.into_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_piece_is_short_and_on_one_line() {
        let text = format!("{}\nToday is Monday, 12:01\n{}", "x ".repeat(100), "y ".repeat(100));
        let at = text.find("12:01").unwrap();
        let piece = around(&text, at);
        assert!(piece.contains("Today is Monday, 12:01 y"), "{piece}");
        assert!(piece.chars().count() <= 86 && piece.starts_with("...") && piece.ends_with("..."), "{piece}");
        assert_eq!(around("short", 3), "short");
        assert_eq!(around("Grüße", 3), "Grüße");
    }

    #[test]
    fn keys_are_taken_out_of_json_and_it_stays_json() {
        let body = r#"{"a":"key sk-abcdefgh1234 and \"Bearer abcdef.ghijkl\"","b":"task-list, hf-data, eyJust"}"#;
        let clean = redact_keys(body);
        let value: serde_json::Value = serde_json::from_str(&clean).unwrap();
        assert_eq!(value["a"], "key (key) and \"(key)\"");
        assert_eq!(value["b"], "task-list, hf-data, eyJust");
    }

    #[test]
    fn what_looks_like_a_key_is_taken_out() {
        for secret in
            ["sk-proj-abcdefgh12345678", "ghp_abcdEFGH1234567890", "Bearer abc.def.ghi", "API_KEY=hunter2hunter2"]
        {
            let piece = around(&format!("use {secret} here"), 8);
            assert!(!piece.contains(&secret[secret.len() - 6..]), "{piece}");
        }
        assert_eq!(clean("commit 0123456789abcdef0123456789abcdef01234567"), "commit 012345(...)");
        assert_eq!(clean("an_ordinary_long_function_name"), "an_ordinary_long_function_name");
    }
}
