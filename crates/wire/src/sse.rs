//! Splits a byte stream into server-sent events, at the moment at which each becomes complete.
//!
//! Ready-made readers hide when an event's last byte came, or reconnect on their own; both would falsify a
//! measurement. The rules are those of the HTML standard (section 9.2.6, "Interpreting an event stream"): lines end
//! with CR, LF or CRLF; a blank line dispatches; a line that starts with a colon is a comment; an event without data
//! is dropped. Two deliberate differences: an event is dispatched at the CR of a CRLF (the blank line is complete
//! there, the LF may be in a later packet), and a line that begins like JSON is handed out as [`Item::Bare`], because
//! servers do put error bodies into event streams without framing them.

use memchr::memchr2;

/// Longest line or event that is kept, bytes. Real lines of 1.5 MiB exist (a whole file in one delta); what is longer
/// than this is not an answer, and an endless line must not eat the memory of 64 streams.
pub const MAX_EVENT_BYTES: usize = 16 << 20;

/// One thing that the stream said.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Item<'a> {
    /// A complete event: its name (empty = "message") and its data, lines joined by LF.
    Event {
        /// The `event:` field, empty when there was none.
        name: &'a [u8],
        /// The `data:` lines, joined by LF. Never empty.
        data: &'a [u8],
    },
    /// A comment line (`: ping`), without its colon.
    Comment,
    /// A line that is no field but begins like JSON: an unframed error body.
    Bare(&'a [u8]),
}

/// The stream went beyond [`MAX_EVENT_BYTES`] without completing an event.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("an event longer than {} MiB", MAX_EVENT_BYTES >> 20)]
pub struct TooLong;

/// The splitter. Feed it bytes in any portions; the events do not depend on where the portions end.
#[derive(Debug, Default)]
pub struct Splitter {
    /// Unfinished line of earlier portions.
    line: Vec<u8>,
    /// Data of the event in progress.
    data: Vec<u8>,
    /// Whether the event in progress has a data field at all.
    has_data: bool,
    /// Name of the event in progress.
    name: Vec<u8>,
    /// The last byte seen was a CR: a LF that follows belongs to it.
    after_cr: bool,
    /// The first bytes were looked at for a byte order mark.
    begun: bool,
}

impl Splitter {
    /// A splitter at the begin of a stream.
    pub fn new() -> Self {
        Self::default()
    }

    /// Takes the next portion and hands out what it completes.
    ///
    /// # Errors
    /// [`TooLong`] once a line or an event exceeds [`MAX_EVENT_BYTES`]; what was complete before was handed out.
    pub fn push(&mut self, mut bytes: &[u8], mut out: impl FnMut(Item<'_>)) -> Result<(), TooLong> {
        while !bytes.is_empty() {
            if self.after_cr {
                self.after_cr = false;
                if bytes[0] == b'\n' {
                    bytes = &bytes[1..];
                    continue;
                }
            }
            match memchr2(b'\r', b'\n', bytes) {
                None => {
                    if self.line.len() + bytes.len() > MAX_EVENT_BYTES {
                        return Err(TooLong);
                    }
                    self.line.extend_from_slice(bytes);
                    return Ok(());
                }
                Some(end) => {
                    self.after_cr = bytes[end] == b'\r';
                    if self.line.is_empty() {
                        // The common case: the whole line is in this portion, nothing is copied but its data.
                        self.take_line(&bytes[..end], &mut out)?;
                    } else {
                        self.line.extend_from_slice(&bytes[..end]);
                        let line = std::mem::take(&mut self.line);
                        self.take_line(&line, &mut out)?;
                        self.line = line;
                        self.line.clear();
                    }
                    bytes = &bytes[end + 1..];
                }
            }
        }
        Ok(())
    }

    /// The stream is over: hands out a last bare line without line end. An unfinished event is dropped, as the
    /// standard says: its end was never seen.
    pub fn finish(&mut self, mut out: impl FnMut(Item<'_>)) {
        let line = std::mem::take(&mut self.line);
        if begins_like_json(&line) {
            out(Item::Bare(&line));
        }
    }

    fn take_line(&mut self, mut line: &[u8], out: &mut impl FnMut(Item<'_>)) -> Result<(), TooLong> {
        if !self.begun {
            self.begun = true;
            line = line.strip_prefix(b"\xef\xbb\xbf").unwrap_or(line);
        }
        if line.is_empty() {
            if self.has_data && !self.data.is_empty() {
                out(Item::Event { name: &self.name, data: &self.data });
            }
            self.data.clear();
            self.has_data = false;
            self.name.clear();
            return Ok(());
        }
        if let Some(rest) = line.strip_prefix(b"data:") {
            return self.add_data(rest.strip_prefix(b" ").unwrap_or(rest));
        }
        if line[0] == b':' {
            out(Item::Comment);
        } else if let Some(rest) = line.strip_prefix(b"event:") {
            self.name.clear();
            self.name.extend_from_slice(rest.strip_prefix(b" ").unwrap_or(rest));
        } else if line == b"data" {
            return self.add_data(b"");
        } else if begins_like_json(line) {
            out(Item::Bare(line));
        }
        // `id`, `retry` and unknown fields say nothing about an answer.
        Ok(())
    }

    fn add_data(&mut self, value: &[u8]) -> Result<(), TooLong> {
        if self.data.len() + value.len() > MAX_EVENT_BYTES {
            return Err(TooLong);
        }
        if self.has_data {
            self.data.push(b'\n');
        }
        self.has_data = true;
        self.data.extend_from_slice(value);
        Ok(())
    }
}

fn begins_like_json(line: &[u8]) -> bool {
    matches!(line.trim_ascii_start().first(), Some(b'{' | b'['))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn all(portions: &[&[u8]]) -> Vec<String> {
        let mut seen = Vec::new();
        let mut splitter = Splitter::new();
        let mut note = |item: Item<'_>| {
            seen.push(match item {
                Item::Event { name, data } => {
                    format!("{}={}", String::from_utf8_lossy(name), String::from_utf8_lossy(data))
                }
                Item::Comment => ":".into(),
                Item::Bare(line) => format!("bare {}", String::from_utf8_lossy(line)),
            });
        };
        for portion in portions {
            splitter.push(portion, &mut note).unwrap();
        }
        splitter.finish(&mut note);
        seen
    }

    #[test]
    fn lines_may_end_with_cr_lf_or_both() {
        assert_eq!(all(&[b"data: a\n\ndata: b\r\n\r\ndata:c\r\r"]), ["=a", "=b", "=c"]);
    }

    #[test]
    fn a_crlf_cut_between_its_bytes_is_one_line_end() {
        assert_eq!(all(&[b"data: a\r", b"\n\r", b"\ndata: b\r", b"\n\n"]), ["=a", "=b"]);
    }

    #[test]
    fn several_data_lines_are_one_event_and_an_event_without_data_is_none() {
        assert_eq!(all(&[b"event: x\ndata: 1\ndata: 2\n\nevent: ping\n\n: hi\n\ndata\n\n"]), ["x=1\n2", ":"]);
    }

    #[test]
    fn a_byte_order_mark_is_no_part_of_the_first_field() {
        assert_eq!(all(&[b"\xef\xbb\xbfdata: a\n\n"]), ["=a"]);
    }

    #[test]
    fn an_unfinished_event_is_dropped_but_bare_json_is_told() {
        assert_eq!(all(&[b"data: a\n"]), Vec::<String>::new());
        assert_eq!(all(&[b"{\"error\": 1}"]), ["bare {\"error\": 1}"]);
    }

    #[test]
    fn an_endless_line_is_refused_instead_of_kept() {
        let mut splitter = Splitter::new();
        let portion = vec![b'x'; 1 << 20];
        let refused = (0..=MAX_EVENT_BYTES >> 20).any(|_| splitter.push(&portion, |_| {}).is_err());
        assert!(refused);
    }

    proptest! {
        /// The law of a splitter: events do not depend on packet borders.
        #[test]
        fn where_the_portions_end_changes_nothing(
            text in "(data: ?[a-c]{0,3}|event: e|: c|id: 1|\\{x|)(\r|\n|\r\n)".prop_flat_map(|_|
                proptest::collection::vec("(data: ?[a-c]{0,3}|event: e|: c|id: 1|\\{x|)(\r|\n|\r\n)", 0..12)
                    .prop_map(|lines| lines.concat())),
            cuts in proptest::collection::vec(0usize..200, 0..8),
        ) {
            let bytes = text.as_bytes();
            let mut borders: Vec<usize> = cuts.into_iter().map(|c| c.min(bytes.len())).collect();
            borders.extend([0, bytes.len()]);
            borders.sort_unstable();
            let portions: Vec<&[u8]> = borders.windows(2).map(|w| &bytes[w[0]..w[1]]).collect();
            prop_assert_eq!(all(&portions), all(&[bytes]));
        }
    }
}
