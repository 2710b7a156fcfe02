//! Reads JSON once and writes its canonical form: compact, keys sorted, text unescaped where that can be.
//!
//! Written by hand, because prompts are megabytes of text in few long strings: a tree of values would copy each of them
//! twice and is thrown away at once. Here a string is copied in runs, and an object whose keys are in order already is
//! written as it is read. A reference implementation on `serde_json` is held against it in the tests.

use super::number;

/// Deepest nesting that is read. Schemas of tools have some 20 levels.
const MAX_DEPTH: u32 = 128;

/// Text that is no JSON.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ScanError {
    /// Something else stands there.
    #[error("no JSON at byte {at}")]
    Syntax {
        /// Offset.
        at: usize,
    },
    /// The text ends in the middle.
    #[error("JSON that stops in the middle")]
    Cut,
    /// Nested too deeply.
    #[error("JSON nested more than {MAX_DEPTH} levels deep")]
    Deep,
}

/// A reader of one text.
pub(super) struct Scan<'a> {
    bytes: &'a [u8],
    at: usize,
    depth: u32,
    /// Keys are sorted and `cache_control` is left out; otherwise all stays in the order sent.
    sorted: bool,
}

/// One member of an object in the output: its key, unescaped and in quotes as written, and where it ends.
struct Member {
    key: (usize, usize),
    end: usize,
}

impl<'a> Scan<'a> {
    pub(super) fn new(text: &'a str, sorted: bool) -> Self {
        Self { bytes: text.as_bytes(), at: 0, depth: 0, sorted }
    }

    /// Skips white space and gives the next byte without taking it.
    pub(super) fn peek(&mut self) -> Result<u8, ScanError> {
        while let Some(byte) = self.bytes.get(self.at) {
            if !matches!(byte, b' ' | b'\t' | b'\n' | b'\r') {
                return Ok(*byte);
            }
            self.at += 1;
        }
        Err(ScanError::Cut)
    }

    /// Bytes that are still to be read.
    pub(super) fn left(&self) -> usize {
        self.bytes.len() - self.at
    }

    fn take(&mut self, byte: u8) -> Result<(), ScanError> {
        if self.peek()? == byte {
            self.at += 1;
            Ok(())
        } else {
            Err(ScanError::Syntax { at: self.at })
        }
    }

    /// Nothing but white space is left.
    pub(super) fn finish(mut self) -> Result<(), ScanError> {
        match self.peek() {
            Err(ScanError::Cut) => Ok(()),
            _ => Err(ScanError::Syntax { at: self.at }),
        }
    }

    /// Walks an object: `each` gets its keys, and has to take the value.
    pub(super) fn object<E: From<ScanError>>(
        &mut self,
        mut each: impl FnMut(&mut Self, &[u8]) -> Result<(), E>,
    ) -> Result<(), E> {
        self.enter(b'{')?;
        let mut key = Vec::new();
        let mut first = true;
        while !self.leave(b'}', &mut first)? {
            key.clear();
            self.string(&mut key)?;
            self.take(b':')?;
            each(self, &key[1..key.len() - 1])?;
        }
        Ok(())
    }

    /// Walks an array: `each` has to take one value.
    pub(super) fn array<E: From<ScanError>>(
        &mut self,
        mut each: impl FnMut(&mut Self) -> Result<(), E>,
    ) -> Result<(), E> {
        self.enter(b'[')?;
        let mut first = true;
        while !self.leave(b']', &mut first)? {
            each(self)?;
        }
        Ok(())
    }

    fn enter(&mut self, bracket: u8) -> Result<(), ScanError> {
        self.take(bracket)?;
        self.depth += 1;
        if self.depth > MAX_DEPTH { Err(ScanError::Deep) } else { Ok(()) }
    }

    /// The end of an object or array, or the comma before its next part.
    fn leave(&mut self, bracket: u8, first: &mut bool) -> Result<bool, ScanError> {
        let next = self.peek()?;
        if next == bracket {
            self.at += 1;
            self.depth -= 1;
            return Ok(true);
        }
        if !std::mem::take(first) {
            self.take(b',')?;
            // A comma is followed by something.
            if self.peek()? == bracket {
                return Err(ScanError::Syntax { at: self.at });
            }
        }
        Ok(false)
    }

    /// Writes the next value.
    pub(super) fn value(&mut self, out: &mut Vec<u8>) -> Result<(), ScanError> {
        match self.peek()? {
            b'"' => self.string(out),
            b'{' => self.members(out, &mut |_, _| true),
            b'[' => {
                out.push(b'[');
                let begin = out.len();
                self.array(|scan| {
                    if out.len() > begin {
                        out.push(b',');
                    }
                    scan.value(out)
                })?;
                out.push(b']');
                Ok(())
            }
            b't' => self.word(b"true", out),
            b'f' => self.word(b"false", out),
            b'n' => self.word(b"null", out),
            b'-' | b'0'..=b'9' => self.number(out),
            _ => Err(ScanError::Syntax { at: self.at }),
        }
    }

    /// Takes the next value and writes nothing.
    pub(super) fn skip(&mut self) -> Result<(), ScanError> {
        match self.peek()? {
            b'"' => {
                self.at += 1;
                loop {
                    let found = memchr::memchr2(b'"', b'\\', &self.bytes[self.at..]).ok_or(ScanError::Cut)?;
                    self.at += found + 1;
                    if self.bytes[self.at - 1] == b'"' {
                        return Ok(());
                    }
                    self.at += 1;
                    if self.at > self.bytes.len() {
                        return Err(ScanError::Cut);
                    }
                }
            }
            b'{' => self.object(|scan, _| scan.skip()),
            b'[' => self.array(Self::skip),
            _ => self.value(&mut Vec::new()),
        }
    }

    /// Writes an object whose members `keep` wants; it gets each key and where the member's value begins in the output.
    pub(super) fn members(
        &mut self,
        out: &mut Vec<u8>,
        keep: &mut dyn FnMut(&[u8], Where<'_>) -> bool,
    ) -> Result<(), ScanError> {
        self.enter(b'{')?;
        out.push(b'{');
        let begin = out.len();
        let mut members: Vec<Member> = Vec::new();
        let mut in_order = true;
        let mut first = true;
        while !self.leave(b'}', &mut first)? {
            let from = out.len();
            if from > begin {
                out.push(b',');
            }
            let key = out.len();
            self.string(out)?;
            let key = (key + 1, out.len() - 1);
            self.take(b':')?;
            let dropped =
                self.sorted && (&out[key.0..key.1] == b"cache_control" || !keep(&out[key.0..key.1], Where::Key));
            if dropped {
                out.truncate(from);
                self.skip()?;
                continue;
            }
            out.push(b':');
            let value = out.len();
            self.value(out)?;
            let (before, written) = out.split_at(value);
            keep(&before[key.0..key.1], Where::Value(written));
            if let Some(last) = members.last() {
                in_order &= self.sorted && by_text(&before[last.key.0..last.key.1], &before[key.0..key.1]).is_lt();
            }
            members.push(Member { key, end: out.len() });
        }
        if !in_order && members.len() > 1 {
            arrange(out, begin, &members, self.sorted);
        }
        out.push(b'}');
        Ok(())
    }

    fn word(&mut self, word: &[u8], out: &mut Vec<u8>) -> Result<(), ScanError> {
        if self.bytes[self.at..].starts_with(word) {
            self.at += word.len();
            out.extend_from_slice(word);
            Ok(())
        } else if word.starts_with(&self.bytes[self.at..]) {
            Err(ScanError::Cut)
        } else {
            Err(ScanError::Syntax { at: self.at })
        }
    }

    fn number(&mut self, out: &mut Vec<u8>) -> Result<(), ScanError> {
        let from = self.at;
        let is_part = |b: &&u8| matches!(**b, b'0'..=b'9' | b'-' | b'+' | b'.' | b'e' | b'E');
        self.at += self.bytes[from..].iter().take_while(is_part).count();
        let text = &self.bytes[from..self.at];
        if !is_number(text) {
            return Err(ScanError::Syntax { at: from });
        }
        number::write(text, out);
        Ok(())
    }

    /// Writes a string with its quotes. What needs no other escape than the one that stands there is copied in runs.
    fn string(&mut self, out: &mut Vec<u8>) -> Result<(), ScanError> {
        self.take(b'"')?;
        out.push(b'"');
        let mut run = self.at;
        let mut look = self.at;
        loop {
            let found = memchr::memchr2(b'"', b'\\', &self.bytes[look..]).ok_or(ScanError::Cut)?;
            let at = look + found;
            if self.bytes[at] == b'"' {
                out.extend_from_slice(&self.bytes[run..at]);
                out.push(b'"');
                self.at = at + 1;
                return Ok(());
            }
            match self.bytes.get(at + 1).ok_or(ScanError::Cut)? {
                b'"' | b'\\' | b'n' | b'r' | b't' | b'b' | b'f' => look = at + 2,
                b'/' => {
                    out.extend_from_slice(&self.bytes[run..at]);
                    run = at + 1;
                    look = at + 2;
                }
                b'u' => {
                    out.extend_from_slice(&self.bytes[run..at]);
                    look = at + self.unicode(at, out)?;
                    run = look;
                }
                _ => return Err(ScanError::Syntax { at }),
            }
        }
    }

    /// Writes the character of an escape like `\u0041` at `at`; gives the length of the escape, of both for a surrogate
    /// pair. A half of a pair alone is no character: it becomes U+FFFD.
    fn unicode(&self, at: usize, out: &mut Vec<u8>) -> Result<usize, ScanError> {
        let unit = self.hex(at + 2)?;
        let mut length = 6;
        let mut code = u32::from(unit);
        if (0xd800..0xdc00).contains(&unit) && self.bytes[at + 6..].starts_with(b"\\u") {
            let low = self.hex(at + 8)?;
            if (0xdc00..0xe000).contains(&low) {
                code = 0x1_0000 + ((code - 0xd800) << 10) + (u32::from(low) - 0xdc00);
                length = 12;
            }
        }
        let c = char::from_u32(code).unwrap_or(char::REPLACEMENT_CHARACTER);
        match c {
            '"' => out.extend_from_slice(b"\\\""),
            '\\' => out.extend_from_slice(b"\\\\"),
            '\n' => out.extend_from_slice(b"\\n"),
            '\r' => out.extend_from_slice(b"\\r"),
            '\t' => out.extend_from_slice(b"\\t"),
            '\u{8}' => out.extend_from_slice(b"\\b"),
            '\u{c}' => out.extend_from_slice(b"\\f"),
            c if c < ' ' => out.extend_from_slice(format!("\\u{code:04x}").as_bytes()),
            c => out.extend_from_slice(c.encode_utf8(&mut [0; 4]).as_bytes()),
        }
        Ok(length)
    }

    fn hex(&self, at: usize) -> Result<u16, ScanError> {
        let digits = self.bytes.get(at..at + 4).ok_or(ScanError::Cut)?;
        let mut value = 0;
        for digit in digits {
            let digit = (*digit as char).to_digit(16).ok_or(ScanError::Syntax { at })?;
            value = value * 16 + digit as u16;
        }
        Ok(value)
    }
}

/// What [`Scan::members`] asks about.
#[derive(Debug)]
pub(super) enum Where<'a> {
    /// Is the member wanted?
    Key,
    /// This is its value as written. The answer does not matter.
    Value(&'a [u8]),
}

/// The order of two keys as written: that of their text, in which an escape is the character that it stands for.
fn by_text(a: &[u8], b: &[u8]) -> std::cmp::Ordering {
    let escaped = |key: &[u8]| memchr::memchr(b'\\', key).is_some();
    if !escaped(a) && !escaped(b) {
        return a.cmp(b);
    }
    let text = |key: &[u8]| serde_json::from_slice::<String>(&[b"\"", key, b"\""].concat()).unwrap_or_default();
    text(a).cmp(&text(b)).then_with(|| a.cmp(b))
}

/// Puts the members of an object into order. Of those with one key the last counts, as everywhere.
fn arrange(out: &mut Vec<u8>, begin: usize, members: &[Member], sorted: bool) {
    let mut order: Vec<usize> = (0..members.len()).collect();
    let key = |n: usize| &out[members[n].key.0..members[n].key.1];
    // Stable, so that of equal keys the last stays last.
    order.sort_by(|a, b| by_text(key(*a), key(*b)));
    order.dedup_by(|later, earlier| {
        let same = key(*later) == key(*earlier);
        if same {
            *earlier = *later;
        }
        same
    });
    if !sorted {
        if order.len() == members.len() {
            return;
        }
        // The first place of a key with the last value of it, as a dictionary keeps it.
        let first = |n: &usize| (0..members.len()).find(|m| key(*m) == key(*n)).unwrap_or(*n);
        order.sort_by_key(first);
    }
    let mut arranged = Vec::with_capacity(out.len() - begin);
    for n in order {
        if !arranged.is_empty() {
            arranged.push(b',');
        }
        // A member begins at the quote before its key.
        arranged.extend_from_slice(&out[members[n].key.0 - 1..members[n].end]);
    }
    out.truncate(begin);
    out.append(&mut arranged);
}

/// The grammar of RFC 8259, section 6.
fn is_number(text: &[u8]) -> bool {
    let digits = |t: &[u8]| t.iter().take_while(|b| b.is_ascii_digit()).count();
    let mut left = text.strip_prefix(b"-").unwrap_or(text);
    let n = digits(left);
    if n == 0 || (n > 1 && left[0] == b'0') {
        return false;
    }
    left = &left[n..];
    if let Some(rest) = left.strip_prefix(b".") {
        let n = digits(rest);
        if n == 0 {
            return false;
        }
        left = &rest[n..];
    }
    if let [b'e' | b'E', rest @ ..] = left {
        let rest = rest.strip_prefix(b"+").or(rest.strip_prefix(b"-")).unwrap_or(rest);
        let n = digits(rest);
        return n > 0 && n == rest.len();
    }
    left.is_empty()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use serde_json::Value;

    use super::*;

    fn written(text: &str, sorted: bool) -> Result<String, ScanError> {
        let mut out = Vec::new();
        let mut scan = Scan::new(text, sorted);
        scan.value(&mut out)?;
        scan.finish()?;
        Ok(String::from_utf8(out).unwrap())
    }

    #[test]
    fn keys_are_sorted_spaces_go_and_text_is_unescaped_where_it_can_be() {
        let text = r#" { "b" : [ 1 , 2.0 , true ] , "a" : "Gr\u00fc\u00dfe \/ \"x\" \n \u0001 \ud83d\ude00" , "cache_control":{"x":[1]} } "#;
        let want = r#"{"a":"Grüße / \"x\" \n \u0001 😀","b":[1,2.0,true]}"#;
        assert_eq!(written(text, true).unwrap(), want);
    }

    #[test]
    fn keys_are_sorted_by_what_they_say_not_by_how_it_is_escaped() {
        // A quote comes before `#`, its backslash would come behind; a tab before a space.
        assert_eq!(written(r##"{"a#":1,"a\"":2," ":3,"\t":4}"##, true).unwrap(), r##"{"\t":4," ":3,"a\"":2,"a#":1}"##);
    }

    #[test]
    fn unsorted_nothing_is_left_out_and_the_last_of_equal_keys_counts_in_the_first_place() {
        assert_eq!(written(r#"{"b":1,"a":2,"b":3}"#, false).unwrap(), r#"{"b":3,"a":2}"#);
        assert_eq!(written(r#"{"b":1,"cache_control":2}"#, false).unwrap(), r#"{"b":1,"cache_control":2}"#);
        assert_eq!(written(r#"{"b":1,"a":2,"b":3}"#, true).unwrap(), r#"{"a":2,"b":3}"#);
    }

    #[test]
    fn half_a_surrogate_pair_is_no_character_and_no_panic() {
        assert_eq!(written(r#""\ud800x""#, true).unwrap(), "\"\u{fffd}x\"");
        assert_eq!(written(r#""\ud800\u0041""#, true).unwrap(), "\"\u{fffd}A\"");
        assert_eq!(written(r#""\udc00""#, true).unwrap(), "\"\u{fffd}\"");
    }

    #[test]
    fn what_is_no_json_is_told_where() {
        for bad in
            ["", "{", "[1,]", "{\"a\":1,}", "[1 2]", "01", "1.", "nul", "\"abc", "\"\\x\"", "{a:1}", "1 2", "\"\\u12"]
        {
            assert!(written(bad, true).is_err(), "{bad}");
        }
        assert_eq!(written("[tru]", true), Err(ScanError::Syntax { at: 1 }));
        let deep = "[".repeat(100_000);
        assert_eq!(written(&deep, true), Err(ScanError::Deep));
    }

    fn anything() -> impl Strategy<Value = Value> {
        let leaf = prop_oneof![
            Just(Value::Null),
            any::<bool>().prop_map(Value::from),
            any::<i64>().prop_map(Value::from),
            // What serde_json reads exactly: by default it may be off by the last bit.
            any::<i32>().prop_map(|n| Value::from(f64::from(n) / 8.0)),
            any::<String>().prop_map(Value::from),
        ];
        leaf.prop_recursive(4, 64, 8, |inner| {
            prop_oneof![
                prop::collection::vec(inner.clone(), 0..8).prop_map(Value::from),
                prop::collection::vec((any::<String>(), inner), 0..8)
                    .prop_map(|members| Value::Object(members.into_iter().collect())),
            ]
        })
    }

    proptest! {
        #[test]
        fn the_written_form_means_what_was_read_and_writing_it_again_changes_nothing(value in anything()) {
            for text in [serde_json::to_string(&value).unwrap(), serde_json::to_string_pretty(&value).unwrap()] {
                let once = written(&text, true).unwrap();
                prop_assert_eq!(&serde_json::from_str::<Value>(&once).unwrap(), &value);
                prop_assert_eq!(written(&once, true).unwrap(), once.clone());
                // `serde_json` sorts keys too, and has other floats than Python's alone.
                let mut skip = Scan::new(&text, true);
                skip.skip().unwrap();
                prop_assert!(skip.finish().is_ok());
            }
        }

        #[test]
        fn no_text_makes_it_panic(text in ".*") {
            let _ = written(&text, true);
            let _ = Scan::new(&text, true).skip();
        }
    }
}
