//! Heads of requests and responses as bytes: names, order and spelling of what passes stay as they were.

use std::ops::Range;

use crate::frame::Frame;
use crate::headers::Headers;

/// Longest head that is read, bytes. Cookies and tokens of companies' gateways have some 16 KiB.
pub(crate) const MAX_HEAD_BYTES: usize = 128 << 10;
/// Most fields of one head.
const MAX_FIELDS: usize = 200;

/// Fields that belong to one connection and not to the message (RFC 9110, section 7.6.1). `Transfer-Encoding` and
/// `Trailer` are among them there; they stay with the framing, which is handed on as it is.
const HOP_BY_HOP: [&str; 6] = ["connection", "keep-alive", "proxy-connection", "proxy-authorization", "te", "upgrade"];

/// The fields of a head, still in the bytes they came in.
#[derive(Debug)]
pub(crate) struct Fields {
    raw: Vec<u8>,
    places: Vec<(Range<usize>, Range<usize>)>,
}

impl Fields {
    fn of(raw: &[u8], parsed: &[httparse::Header<'_>]) -> Self {
        let from = raw.as_ptr() as usize;
        let place = |part: &[u8]| {
            let at = part.as_ptr() as usize - from;
            at..at + part.len()
        };
        let places = parsed.iter().map(|h| (place(h.name.as_bytes()), place(h.value))).collect();
        Self { raw: raw.to_vec(), places }
    }

    /// All fields in order: name as sent, value as sent.
    pub(crate) fn iter(&self) -> impl Iterator<Item = (&[u8], &[u8])> {
        self.places.iter().map(|(name, value)| (&self.raw[name.clone()], &self.raw[value.clone()]))
    }

    /// All values of a field, joined as the standard allows. `None` without the field, or where it is no text.
    pub(crate) fn get(&self, name: &str) -> Option<String> {
        let mut found: Option<String> = None;
        for (_, value) in self.iter().filter(|(n, _)| n.eq_ignore_ascii_case(name.as_bytes())) {
            let text = std::str::from_utf8(value).ok()?.trim();
            match &mut found {
                None => found = Some(text.to_owned()),
                Some(joined) => {
                    joined.push_str(", ");
                    joined.push_str(text);
                }
            }
        }
        found
    }

    pub(crate) fn has(&self, name: &str) -> bool {
        self.iter().any(|(n, _)| n.eq_ignore_ascii_case(name.as_bytes()))
    }

    /// Is `word` one of the words of a field (`Connection: close, te`)?
    pub(crate) fn says(&self, name: &str, word: &str) -> bool {
        self.get(name).is_some_and(|text| text.split(',').any(|w| w.trim().eq_ignore_ascii_case(word)))
    }

    /// The fields that are not meant for this connection alone.
    pub(crate) fn end_to_end(&self) -> impl Iterator<Item = (&[u8], &[u8])> {
        let named = self.get("connection").unwrap_or_default();
        self.iter().filter(move |(name, _)| {
            let hop = HOP_BY_HOP.iter().any(|hop| name.eq_ignore_ascii_case(hop.as_bytes()));
            // What frames the body is never the connection's alone, whatever `Connection` says.
            let frames = [&b"content-length"[..], b"transfer-encoding", b"content-encoding", b"host"];
            let listed = named.split(',').any(|w| name.eq_ignore_ascii_case(w.trim().as_bytes()))
                && !frames.iter().any(|f| name.eq_ignore_ascii_case(f));
            !hop && !listed
        })
    }

    /// As the readers of responses want them.
    pub(crate) fn headers(&self) -> Headers {
        let mut headers = Headers::default();
        for (name, value) in self.iter() {
            headers.push(&String::from_utf8_lossy(name), String::from_utf8_lossy(value));
        }
        headers
    }
}

/// Head of a request.
#[derive(Debug)]
pub(crate) struct RequestHead {
    pub(crate) method: String,
    /// Path and query as sent.
    pub(crate) target: String,
    /// HTTP/1.0.
    pub(crate) old: bool,
    pub(crate) fields: Fields,
    pub(crate) frame: Frame,
}

/// Head of a response.
#[derive(Debug)]
pub(crate) struct ResponseHead {
    pub(crate) status: u16,
    pub(crate) reason: Vec<u8>,
    /// HTTP/1.0.
    pub(crate) old: bool,
    pub(crate) fields: Fields,
}

/// A head that is whole, with its length; or `None` while more is to come.
pub(crate) type Parsed<T> = Result<Option<(T, usize)>, String>;

/// Reads the head of a request.
pub(crate) fn request(bytes: &[u8]) -> Parsed<RequestHead> {
    let mut storage = [httparse::EMPTY_HEADER; MAX_FIELDS];
    let mut parsed = httparse::Request::new(&mut storage);
    match parsed.parse(bytes) {
        Ok(httparse::Status::Complete(length)) => {
            let fields = Fields::of(&bytes[..length], parsed.headers);
            let frame = Frame::of_request(
                fields.get("transfer-encoding").as_deref(),
                // Two lengths that agree are one.
                fields.get("content-length").map(|l| agreed(&l)).as_deref(),
            )?;
            let head = RequestHead {
                method: parsed.method.unwrap_or_default().to_owned(),
                target: parsed.path.unwrap_or_default().to_owned(),
                old: parsed.version == Some(0),
                fields,
                frame,
            };
            Ok(Some((head, length)))
        }
        Ok(httparse::Status::Partial) if bytes.len() > MAX_HEAD_BYTES => {
            Err(format!("a request head longer than {} KiB", MAX_HEAD_BYTES >> 10))
        }
        Ok(httparse::Status::Partial) => Ok(None),
        Err(e) => Err(format!("not HTTP/1.1: {e}")),
    }
}

fn agreed(lengths: &str) -> String {
    let mut each = lengths.split(',').map(str::trim);
    let first = each.next().unwrap_or_default();
    if each.all(|other| other == first) { first.to_owned() } else { lengths.to_owned() }
}

/// Reads the head of a response.
pub(crate) fn response(bytes: &[u8]) -> Parsed<ResponseHead> {
    let mut storage = [httparse::EMPTY_HEADER; MAX_FIELDS];
    let mut parsed = httparse::Response::new(&mut storage);
    match parsed.parse(bytes) {
        Ok(httparse::Status::Complete(length)) => {
            let head = ResponseHead {
                status: parsed.code.unwrap_or_default(),
                reason: parsed.reason.unwrap_or_default().as_bytes().to_vec(),
                old: parsed.version == Some(0),
                fields: Fields::of(&bytes[..length], parsed.headers),
            };
            Ok(Some((head, length)))
        }
        Ok(httparse::Status::Partial) if bytes.len() > MAX_HEAD_BYTES => {
            Err(format!("a response head longer than {} KiB", MAX_HEAD_BYTES >> 10))
        }
        Ok(httparse::Status::Partial) => Ok(None),
        Err(e) => Err(format!("not HTTP/1.1: {e}")),
    }
}

/// Puts `name: value` behind what is written so far.
pub(crate) fn line(out: &mut Vec<u8>, name: &[u8], value: &[u8]) {
    out.extend_from_slice(name);
    out.extend_from_slice(b": ");
    out.extend_from_slice(value);
    out.extend_from_slice(b"\r\n");
}

#[cfg(test)]
mod tests {
    use super::*;

    fn names(fields: &Fields) -> Vec<String> {
        fields.end_to_end().map(|(n, _)| String::from_utf8_lossy(n).into_owned()).collect()
    }

    #[test]
    fn names_keep_their_spelling_and_order_and_only_hop_by_hop_ones_stay_behind() {
        let bytes = b"POST /v1/x HTTP/1.1\r\nHost: h\r\nX-One: 1\r\nconnection: keep-alive, X-Mine\r\nx-mine: 2\r\n\
            TE: trailers\r\nX-one: 3\r\nContent-Length: 0\r\n\r\nrest";
        let (head, length) = request(bytes).unwrap().unwrap();
        assert_eq!(&bytes[length..], b"rest");
        assert_eq!(names(&head.fields), ["Host", "X-One", "X-one", "Content-Length"]);
        assert_eq!(head.fields.get("x-one").as_deref(), Some("1, 3"));
    }

    #[test]
    fn two_lengths_that_differ_are_refused_and_two_that_agree_are_one() {
        let with = |lengths: &str| request(format!("POST / HTTP/1.1\r\n{lengths}\r\n").as_bytes());
        assert!(with("Content-Length: 3\r\nContent-Length: 4\r\n").is_err());
        assert!(with("Content-Length: 3\r\nTransfer-Encoding: chunked\r\n").is_err());
        assert!(with("Content-Length: 3\r\nContent-Length: 3\r\n").unwrap().is_some());
    }

    #[test]
    fn a_head_that_is_not_whole_waits_and_one_without_end_is_refused() {
        assert!(request(b"POST / HTT").unwrap().is_none());
        assert!(request(b"\x16\x03\x01\x02").is_err());
        let long = format!("POST / HTTP/1.1\r\nX: {}", "y".repeat(MAX_HEAD_BYTES));
        assert!(request(long.as_bytes()).is_err());
        assert!(response(b"HTTP/1.1 200 OK\r\n").unwrap().is_none());
    }
}
