//! Where the body of an HTTP/1.1 message ends (RFC 9112, section 6).
//!
//! Follows the framing of bytes that are handed on as they are: tells which of them are data, and how many belong to the
//! message. The lane client takes the data; the proxy passes the frame on with it.

use crate::headers::Headers;

/// Most hexadecimal digits of a chunk size: 60 bits are beyond all bodies.
const MAX_SIZE_DIGITS: u8 = 15;

/// Where one body is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Framing {
    /// That many bytes are to come.
    Length(u64),
    /// Until the peer closes.
    UntilClose,
    /// In the middle of a chunked body.
    Chunked(Chunked),
    /// Over, as promised.
    Over,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Chunked {
    /// Reading a size line; the value so far, whether a digit was seen, whether the rest of the line is skipped.
    Size { value: u64, digits: u8, extension: bool },
    /// That many bytes of a chunk are to come.
    Data(u64),
    /// The line end after a chunk.
    DataEnd,
    /// Trailer lines; true while the current one is empty so far.
    Trailer { empty: bool },
}

/// The place within one body.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Frame(Framing);

const CHUNKED: Framing = Framing::Chunked(Chunked::Size { value: 0, digits: 0, extension: false });

impl Frame {
    /// No body, or the end of one.
    pub(crate) const fn over() -> Self {
        Self(Framing::Over)
    }

    /// The body of a response to a request that was no HEAD.
    pub(crate) fn of_response(status: u16, headers: &Headers) -> Result<Self, String> {
        if matches!(status, 204 | 304) || (100..200).contains(&status) {
            return Ok(Self::over());
        }
        let coding = headers.get("transfer-encoding");
        Self::framing(coding, headers.get("content-length"), Framing::UntilClose).map(Self)
    }

    /// The body of a request. Two framings at once are refused: what one server takes for a body another takes for the
    /// next request (RFC 9112, section 11.2).
    pub(crate) fn of_request(coding: Option<&str>, length: Option<&str>) -> Result<Self, String> {
        if coding.is_some() && length.is_some() {
            return Err("both Transfer-Encoding and Content-Length".into());
        }
        match Self::framing(coding, length, Framing::Over)? {
            Framing::UntilClose => Err("a request body without an end".into()),
            framing => Ok(Self(framing)),
        }
    }

    fn framing(coding: Option<&str>, length: Option<&str>, without: Framing) -> Result<Framing, String> {
        if let Some(coding) = coding {
            // Chunked is the last coding or the body ends with the connection (RFC 9112, section 6.3).
            let last = coding.rsplit(',').next().unwrap_or_default().trim();
            return Ok(if last.eq_ignore_ascii_case("chunked") { CHUNKED } else { Framing::UntilClose });
        }
        match length {
            None => Ok(without),
            Some(text) => match text.parse::<u64>() {
                Ok(0) => Ok(Framing::Over),
                Ok(length) => Ok(Framing::Length(length)),
                Err(_) => Err("a Content-Length that is no number".into()),
            },
        }
    }

    /// Takes bytes up to the end of the body and hands over the data among them. Gives how many it took.
    pub(crate) fn feed(&mut self, bytes: &[u8], out: &mut dyn FnMut(&[u8])) -> Result<usize, String> {
        let mut from = 0;
        while from < bytes.len() {
            let held = &bytes[from..];
            match &mut self.0 {
                Framing::Over => break,
                Framing::UntilClose => {
                    out(held);
                    from = bytes.len();
                }
                Framing::Length(left) => {
                    let n = (*left).min(held.len() as u64);
                    out(&held[..n as usize]);
                    from += n as usize;
                    *left -= n;
                    if *left == 0 {
                        self.0 = Framing::Over;
                    }
                }
                Framing::Chunked(Chunked::Data(left)) => {
                    let n = (*left).min(held.len() as u64);
                    out(&held[..n as usize]);
                    from += n as usize;
                    *left -= n;
                    if *left == 0 {
                        self.0 = Framing::Chunked(Chunked::DataEnd);
                    }
                }
                Framing::Chunked(state) => {
                    self.0 = chunk_step(*state, held[0])?;
                    from += 1;
                }
            }
        }
        Ok(from)
    }

    /// The peer closed. True when that is how the body was to end, or it was over before.
    pub(crate) fn closed(&mut self) -> bool {
        if self.0 == Framing::UntilClose {
            self.0 = Framing::Over;
        }
        self.0 == Framing::Over
    }

    /// The body is over, as promised.
    pub(crate) fn is_over(&self) -> bool {
        self.0 == Framing::Over
    }

    /// Its end is that of the connection.
    pub(crate) fn ends_with_connection(&self) -> bool {
        self.0 == Framing::UntilClose
    }

    /// The chunked coding frames it.
    pub(crate) fn is_chunked(&self) -> bool {
        matches!(self.0, Framing::Chunked(_))
    }
}

/// One byte of a chunked body's frame.
fn chunk_step(state: Chunked, byte: u8) -> Result<Framing, String> {
    let bad = |what: &str| Err(format!("broken chunked framing: {what}"));
    Ok(Framing::Chunked(match (state, byte) {
        (Chunked::Size { value, digits, .. }, b'\n') => {
            if digits == 0 {
                return bad("a chunk without a size");
            }
            if value == 0 { Chunked::Trailer { empty: true } } else { Chunked::Data(value) }
        }
        (Chunked::Size { value, digits, .. }, b';' | b'\r' | b' ' | b'\t') => {
            Chunked::Size { value, digits, extension: true }
        }
        (Chunked::Size { value, digits, extension: true }, _) => Chunked::Size { value, digits, extension: true },
        (Chunked::Size { value, digits, extension: false }, _) => {
            let Some(digit) = (byte as char).to_digit(16) else { return bad("a size that is no hexadecimal number") };
            if digits >= MAX_SIZE_DIGITS {
                return bad("a size beyond all bounds");
            }
            Chunked::Size { value: value * 16 + u64::from(digit), digits: digits + 1, extension: false }
        }
        (Chunked::DataEnd, b'\r') => Chunked::DataEnd,
        (Chunked::DataEnd, b'\n') => Chunked::Size { value: 0, digits: 0, extension: false },
        (Chunked::DataEnd, _) => return bad("a chunk longer than its size"),
        (Chunked::Trailer { empty: true }, b'\n') => return Ok(Framing::Over),
        (Chunked::Trailer { .. }, b'\n') => Chunked::Trailer { empty: true },
        (Chunked::Trailer { empty }, b'\r') => Chunked::Trailer { empty },
        (Chunked::Trailer { .. }, _) => Chunked::Trailer { empty: false },
        (Chunked::Data(_), _) => return bad("a data byte in a frame"),
    }))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_request_has_one_framing_and_an_end() {
        let of = |coding, length| Frame::of_request(coding, length);
        assert!(of(None, None).unwrap().is_over());
        assert!(of(None, Some("0")).unwrap().is_over());
        assert!(of(Some("gzip, chunked"), None).unwrap().is_chunked());
        assert!(of(Some("chunked"), Some("3")).is_err());
        assert!(of(Some("gzip"), None).is_err());
        assert!(of(None, Some("3, 3")).is_err());
        assert!(of(None, Some("-1")).is_err());
    }

    #[test]
    fn what_stands_behind_the_end_of_a_body_is_left_where_it_is() {
        let mut frame = Frame::of_request(Some("chunked"), None).unwrap();
        let mut data = Vec::new();
        let bytes = b"3;x=y\r\nabc\r\n0\r\nA: b\r\n\r\nPOST ";
        let took = frame.feed(bytes, &mut |b| data.extend_from_slice(b)).unwrap();
        assert_eq!((&data[..], &bytes[took..], frame.is_over()), (&b"abc"[..], &b"POST "[..], true));
    }

    #[test]
    fn a_close_ends_only_the_body_that_has_no_other_end() {
        let mut open = Frame::of_response(200, &Headers::default()).unwrap();
        assert!(open.ends_with_connection() && open.closed() && open.is_over());
        let mut headers = Headers::default();
        headers.push("content-length", "3");
        let mut counted = Frame::of_response(200, &headers).unwrap();
        assert!(!counted.closed());
    }
}
