//! The proxy's side of an answer: the head as the client gets it, the body in the framing that the client can read, and
//! answers of the proxy's own.

use crate::frame::Frame;
use crate::proxy::head::{ResponseHead, line};
use crate::proxy::strip::Strip;

/// How the body of an answer is handed on.
#[derive(Debug)]
pub(crate) enum Mode {
    /// As it came, frame included.
    Raw,
    /// The data alone; its end is that of the connection, or its length is known.
    Data,
    /// The data in chunks of our own.
    Chunks,
    /// In chunks of our own, without the token counts that the client did not ask for.
    Stripped(Box<Strip>),
}

impl Mode {
    /// Puts data into the form in which the client gets it.
    pub(crate) fn put(&mut self, data: &[u8], out: &mut Vec<u8>) {
        match self {
            Self::Raw | Self::Data => out.extend_from_slice(data),
            Self::Chunks => chunk(data, out),
            Self::Stripped(strip) => {
                let mut left = Vec::with_capacity(data.len());
                strip.push(data, &mut left);
                chunk(&left, out);
            }
        }
    }

    /// The end of the body, where it is ours to mark. `trailers`: lines with their ends.
    pub(crate) fn end(&mut self, trailers: &[u8], out: &mut Vec<u8>) {
        match self {
            Self::Raw | Self::Data => return,
            Self::Chunks => {}
            Self::Stripped(strip) => {
                let mut left = Vec::new();
                strip.finish(&mut left);
                chunk(&left, out);
            }
        }
        out.extend_from_slice(b"0\r\n");
        out.extend_from_slice(trailers);
        out.extend_from_slice(b"\r\n");
    }
}

fn chunk(data: &[u8], out: &mut Vec<u8>) {
    // An empty chunk would be the end.
    if !data.is_empty() {
        out.extend_from_slice(format!("{:x}\r\n", data.len()).as_bytes());
        out.extend_from_slice(data);
        out.extend_from_slice(b"\r\n");
    }
}

/// The head of an answer as the client gets it.
///
/// * `mode`: how the body follows.
/// * `close`: the connection ends with this answer.
pub(crate) fn head(head: &ResponseHead, mode: &Mode, close: bool) -> Vec<u8> {
    let mut out = Vec::with_capacity(512);
    out.extend_from_slice(format!("HTTP/1.1 {:03} ", head.status).as_bytes());
    out.extend_from_slice(&head.reason);
    out.extend_from_slice(b"\r\n");
    let frames = |name: &[u8]| name.eq_ignore_ascii_case(b"transfer-encoding");
    let counts = |name: &[u8]| name.eq_ignore_ascii_case(b"content-length");
    for (name, value) in head.fields.end_to_end() {
        let ours = match mode {
            Mode::Raw => false,
            Mode::Data => frames(name),
            Mode::Chunks | Mode::Stripped(_) => frames(name) || counts(name),
        };
        if !ours {
            line(&mut out, name, value);
        }
    }
    if matches!(mode, Mode::Chunks | Mode::Stripped(_)) {
        out.extend_from_slice(b"Transfer-Encoding: chunked\r\n");
    }
    if close {
        out.extend_from_slice(b"Connection: close\r\n");
    }
    out.extend_from_slice(b"\r\n");
    out
}

/// Is it a stream of events as text, which can be read line by line? `field`: the value of a header.
pub(crate) fn is_plain_stream<T: AsRef<str>>(status: u16, field: impl Fn(&str) -> Option<T>) -> bool {
    status == 200
        && field("content-type").is_some_and(|t| t.as_ref().to_ascii_lowercase().contains("event-stream"))
        && field("content-encoding").is_none_or(|c| c.as_ref().eq_ignore_ascii_case("identity"))
}

/// How the body of a response follows, for a client of HTTP/1.1 or (`old`) HTTP/1.0.
pub(crate) fn mode(frame: &Frame, old: bool, strip: bool) -> Mode {
    match (frame.is_chunked(), old, strip) {
        _ if frame.is_over() => Mode::Raw,
        (_, false, true) => Mode::Stripped(Box::default()),
        (true, true, _) => Mode::Data,
        _ => Mode::Raw,
    }
}

/// An answer of the proxy's own: an error in the shape that clients of both APIs read.
///
/// `kind` is the error's stable name, `message` says what failed and what to do.
pub(crate) fn own(status: u16, kind: &str, message: &str) -> Vec<u8> {
    let reason = match status {
        400 => "Bad Request",
        401 => "Unauthorized",
        404 => "Not Found",
        431 => "Request Header Fields Too Large",
        502 => "Bad Gateway",
        504 => "Gateway Timeout",
        _ => "Error",
    };
    let error = serde_json::json!({
        "type": "error",
        "error": { "type": kind, "code": kind, "message": format!("peaklane proxy: {message}") },
    });
    page(status, reason, "application/json", &error.to_string(), true)
}

/// A whole small answer.
pub(crate) fn page(status: u16, reason: &str, content_type: &str, body: &str, close: bool) -> Vec<u8> {
    let close = if close { "Connection: close\r\n" } else { "" };
    let length = body.len();
    format!(
        "HTTP/1.1 {status} {reason}\r\nContent-Type: {content_type}\r\nContent-Length: {length}\r\n\
         X-Peaklane: own\r\n{close}\r\n{body}"
    )
    .into_bytes()
}
