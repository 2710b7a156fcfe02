//! One physical line: fields to text and back.

use std::fmt::{Display, Write as _};

/// Longest line that is read, header included. Ours are some 600 bytes; a file of one endless line is no CSV file.
pub const LINE_LIMIT_BYTES: usize = 1024 * 1024;

/// A line that grows field by field.
#[derive(Debug, Default)]
pub(super) struct Line {
    text: String,
    fields: usize,
}

impl Line {
    pub(super) fn finish(self) -> String {
        self.text
    }

    fn comma(&mut self) {
        if self.fields > 0 {
            self.text.push(',');
        }
        self.fields += 1;
    }

    /// A field that needs no quotes: numbers and booleans.
    pub(super) fn number(&mut self, value: impl Display) -> &mut Self {
        self.comma();
        // Writing to a string cannot fail.
        let _ = write!(self.text, "{value}");
        self
    }

    /// Empty when there is none.
    pub(super) fn maybe(&mut self, value: Option<impl Display>) -> &mut Self {
        match value {
            Some(value) => self.number(value),
            None => self.text(""),
        }
    }

    pub(super) fn words(&mut self, value: &Option<String>) -> &mut Self {
        self.text(value.as_deref().unwrap_or_default())
    }

    /// Any text: quoted where RFC 4180 asks for it, control characters escaped.
    pub(super) fn text(&mut self, value: &str) -> &mut Self {
        self.comma();
        let quoted = value.contains([',', '"']) || value.starts_with(' ') || value.ends_with(' ');
        if quoted {
            self.text.push('"');
        }
        for c in value.chars() {
            match c {
                '"' => self.text.push_str("\"\""),
                '\\' => self.text.push_str("\\\\"),
                '\n' => self.text.push_str("\\n"),
                '\r' => self.text.push_str("\\r"),
                '\t' => self.text.push_str("\\t"),
                // The two separators end a line for Unicode-aware readers, as the control characters do for some.
                c if c.is_control() || matches!(c, '\u{2028}' | '\u{2029}') => {
                    let _ = write!(self.text, "\\u{:04x}", u32::from(c));
                }
                c => self.text.push(c),
            }
        }
        if quoted {
            self.text.push('"');
        }
        self
    }
}

/// Undoes the escapes of [`Line::text`]. What is no escape of ours stays as it is.
pub(super) fn unescape(field: &str) -> String {
    let mut out = String::with_capacity(field.len());
    let mut rest = field;
    while let Some(at) = rest.find('\\') {
        out.push_str(&rest[..at]);
        let after = &rest[at + 1..];
        let (c, used) = match after.as_bytes().first() {
            Some(b'n') => ('\n', 1),
            Some(b'r') => ('\r', 1),
            Some(b't') => ('\t', 1),
            Some(b'\\') => ('\\', 1),
            Some(b'u') => {
                let code = after.get(1..5).and_then(|hex| u32::from_str_radix(hex, 16).ok());
                code.and_then(char::from_u32).map_or(('\\', 0), |c| (c, 5))
            }
            _ => ('\\', 0),
        };
        out.push(c);
        rest = &after[used..];
    }
    out.push_str(rest);
    out
}

/// Why a line has no fields.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum BadQuote {
    /// It ends inside quotes: it was cut.
    Open,
    /// A quote stands where none may.
    Stray,
}

/// Splits a line into fields, quotes undone, escapes not.
pub(super) fn split(line: &str) -> Result<Vec<String>, BadQuote> {
    let mut fields = Vec::new();
    let mut rest = line;
    loop {
        let field;
        if let Some(inner) = rest.strip_prefix('"') {
            let mut text = String::new();
            let mut tail = inner;
            loop {
                let at = tail.find('"').ok_or(BadQuote::Open)?;
                text.push_str(&tail[..at]);
                tail = &tail[at + 1..];
                match tail.strip_prefix('"') {
                    Some(more) => {
                        text.push('"');
                        tail = more;
                    }
                    None => break,
                }
            }
            field = text;
            rest = tail;
        } else {
            let end = rest.find(',').unwrap_or(rest.len());
            if rest[..end].contains('"') {
                return Err(BadQuote::Stray);
            }
            field = rest[..end].to_owned();
            rest = &rest[end..];
        }
        fields.push(field);
        match rest.strip_prefix(',') {
            Some(more) => rest = more,
            None if rest.is_empty() => return Ok(fields),
            None => return Err(BadQuote::Stray),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn one(text: &str) -> String {
        let mut line = Line::default();
        line.text(text);
        line.finish()
    }

    #[test]
    fn any_text_is_one_physical_line_and_comes_back() {
        let texts = [
            "",
            "plain",
            "a,b",
            "say \"hi\"",
            "two\nlines\r\n",
            " lead",
            "C:\\new\\table",
            "\\u0041",
            "tab\t\u{0}\u{b}\u{85}",
            "para\u{2029}graph",
            "\"",
            ",",
            "é 한국어 😀",
            "\\",
            "\\\\n",
        ];
        for text in texts {
            let line = one(text);
            assert!(!line.chars().any(|c| c.is_control() || c == '\u{2028}' || c == '\u{2029}'), "{line:?}");
            let fields = split(&line).unwrap();
            assert_eq!(fields.iter().map(|f| unescape(f)).collect::<Vec<_>>(), [text], "{line:?}");
        }
    }

    #[test]
    fn fields_are_quoted_as_rfc_4180_says() {
        let mut line = Line::default();
        line.text("a,b").text("say \"hi\"").number(7).maybe(None::<u64>).text("x");
        assert_eq!(line.finish(), "\"a,b\",\"say \"\"hi\"\"\",7,,x");
        assert_eq!(split("\"a,\"\"b\",,c,").unwrap(), ["a,\"b", "", "c", ""]);
    }

    #[test]
    fn an_open_quote_is_a_cut_line_and_a_stray_one_a_mangled_line() {
        for line in ["\"open", "a,\"open,b", "\"", "\"a\"\""] {
            assert_eq!(split(line), Err(BadQuote::Open), "{line}");
        }
        for line in ["\"a\"b,c", "a\"b", "x,a\""] {
            assert_eq!(split(line), Err(BadQuote::Stray), "{line}");
        }
    }
}
