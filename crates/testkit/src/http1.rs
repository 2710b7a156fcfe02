//! Just enough of HTTP/1.1 to be the other side of a client under test: it reads requests and names statuses.

use std::io;

use tokio::io::{AsyncRead, AsyncReadExt};

/// Longest request head, as in the reference server.
const MAX_HEAD_BYTES: usize = 1 << 20;

/// Longest request body: far above any prompt of a test.
const MAX_BODY_BYTES: usize = 64 << 20;

/// A request as it arrived.
#[derive(Clone, Debug, Default)]
pub(crate) struct Request {
    pub(crate) method: String,
    /// Path of the request target; scheme and authority of an absolute form are taken off.
    pub(crate) path: String,
    /// Query without the question mark.
    pub(crate) query: String,
    pub(crate) headers: Vec<(String, String)>,
    pub(crate) body: Vec<u8>,
}

/// Reads one request. `pending` holds bytes that were read before and keeps those that belong to the next request.
///
/// `None` is a connection that ended between two requests.
///
/// # Errors
/// The connection breaks inside a request, or what comes is no HTTP/1.1.
pub(crate) async fn read_request<R: AsyncRead + Unpin>(
    io: &mut R,
    pending: &mut Vec<u8>,
) -> io::Result<Option<Request>> {
    let head_len = loop {
        if let Some(at) = find(pending, b"\r\n\r\n") {
            break at + 4;
        }
        if pending.len() > MAX_HEAD_BYTES {
            return Err(bad("request head is too long"));
        }
        if fill(io, pending).await? == 0 {
            return if pending.is_empty() { Ok(None) } else { Err(io::ErrorKind::UnexpectedEof.into()) };
        }
    };
    let head: Vec<u8> = pending.drain(..head_len).collect();
    let mut request = parse_head(&head)?;
    let value = |name: &str| request.headers.iter().find(|(k, _)| k.eq_ignore_ascii_case(name)).map(|(_, v)| v.clone());
    if value("transfer-encoding").is_some_and(|v| v.to_ascii_lowercase().contains("chunked")) {
        request.body = read_chunked(io, pending).await?;
    } else if let Some(len) = value("content-length") {
        let len: usize = len.parse().map_err(|_| bad("content-length is no number"))?;
        request.body = take(io, pending, len).await?;
    }
    Ok(Some(request))
}

fn parse_head(head: &[u8]) -> io::Result<Request> {
    // Latin-1, as in the reference server: a byte is a character
    let text: String = head.iter().map(|&b| char::from(b)).collect();
    let mut lines = text.split("\r\n");
    let mut words = lines.next().unwrap_or_default().splitn(3, ' ');
    let (Some(method), Some(target), Some(version)) = (words.next(), words.next(), words.next()) else {
        return Err(bad("no request line"));
    };
    if !version.starts_with("HTTP/1.") {
        return Err(bad("not HTTP/1"));
    }
    let target = match target.split_once("://") {
        Some((scheme, rest)) if !scheme.contains('/') => rest.find('/').map_or("/", |at| &rest[at..]),
        _ => target,
    };
    let (path, query) = target.split_once('?').unwrap_or((target, ""));
    let headers = lines
        .filter_map(|line| line.split_once(':'))
        .map(|(k, v)| (k.trim().to_owned(), v.trim().to_owned()))
        .collect();
    Ok(Request { method: method.to_owned(), path: path.to_owned(), query: query.to_owned(), headers, body: Vec::new() })
}

async fn read_chunked<R: AsyncRead + Unpin>(io: &mut R, pending: &mut Vec<u8>) -> io::Result<Vec<u8>> {
    let mut body = Vec::new();
    loop {
        let line = read_line(io, pending).await?;
        let size = line.split(|&b| b == b';').next().unwrap_or_default();
        let size = std::str::from_utf8(size).ok().and_then(|s| usize::from_str_radix(s.trim(), 16).ok());
        let size = size.ok_or_else(|| bad("chunk size is no number"))?;
        if size == 0 {
            while !read_line(io, pending).await?.is_empty() {} // trailers
            return Ok(body);
        }
        if body.len() + size > MAX_BODY_BYTES {
            return Err(bad("request body is too long"));
        }
        body.extend(take(io, pending, size).await?);
        read_line(io, pending).await?;
    }
}

async fn read_line<R: AsyncRead + Unpin>(io: &mut R, pending: &mut Vec<u8>) -> io::Result<Vec<u8>> {
    loop {
        if let Some(at) = find(pending, b"\r\n") {
            let line = pending[..at].to_vec();
            pending.drain(..at + 2);
            return Ok(line);
        }
        if pending.len() > MAX_HEAD_BYTES {
            return Err(bad("line is too long"));
        }
        if fill(io, pending).await? == 0 {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
    }
}

async fn take<R: AsyncRead + Unpin>(io: &mut R, pending: &mut Vec<u8>, len: usize) -> io::Result<Vec<u8>> {
    if len > MAX_BODY_BYTES {
        return Err(bad("request body is too long"));
    }
    while pending.len() < len {
        if fill(io, pending).await? == 0 {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
    }
    Ok(pending.drain(..len).collect())
}

/// Reads what is there, at least one byte unless the stream ended (0). Cancelling it loses nothing.
pub(crate) async fn fill<R: AsyncRead + Unpin>(io: &mut R, pending: &mut Vec<u8>) -> io::Result<usize> {
    pending.reserve(16 << 10);
    io.read_buf(pending).await
}

fn find(bytes: &[u8], needle: &[u8]) -> Option<usize> {
    bytes.windows(needle.len()).position(|w| w == needle)
}

fn bad(what: &str) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, what)
}

/// The reason phrase that the reference server sends.
pub(crate) const fn reason(status: u16) -> &'static str {
    match status {
        200 => "OK",
        307 => "Temporary Redirect",
        308 => "Permanent Redirect",
        400 => "Bad Request",
        401 => "Unauthorized",
        402 => "Payment Required",
        404 => "Not Found",
        408 => "Request Timeout",
        409 => "Conflict",
        413 => "Payload Too Large",
        422 => "Unprocessable Entity",
        429 => "Too Many Requests",
        500 => "Internal Server Error",
        502 => "Bad Gateway",
        503 => "Service Unavailable",
        504 => "Gateway Timeout",
        524 => "A Timeout Occurred",
        529 => "Site Overloaded",
        _ => "Status",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    async fn read_all(mut wire: &[u8]) -> Vec<Request> {
        let mut pending = Vec::new();
        let mut requests = Vec::new();
        while let Some(request) = read_request(&mut wire, &mut pending).await.unwrap() {
            requests.push(request);
        }
        requests
    }

    #[tokio::test]
    async fn several_requests_on_one_connection_are_told_apart_with_either_body_form() {
        let wire = b"POST /a?x=1 HTTP/1.1\r\nContent-Length: 5\r\n\r\nhello\
            POST /b HTTP/1.1\r\nTransfer-Encoding: Chunked\r\n\r\n3;ext=1\r\nhel\r\n2\r\nlo\r\n0\r\nTrailer: t\r\n\r\n\
            GET http://other:80/c?y HTTP/1.1\r\n\r\n";
        let requests = read_all(wire).await;
        let seen: Vec<_> = requests.iter().map(|r| (r.path.as_str(), r.query.as_str(), r.body.as_slice())).collect();
        assert_eq!(seen, [("/a", "x=1", &b"hello"[..]), ("/b", "", b"hello"), ("/c", "y", b"")]);
    }

    #[tokio::test]
    async fn a_request_that_is_cut_is_an_error_and_an_idle_end_is_none() {
        for cut in ["POST / HT", "POST / HTTP/1.1\r\nContent-Length: 5\r\n\r\nhel"] {
            let mut wire = cut.as_bytes();
            assert!(read_request(&mut wire, &mut Vec::new()).await.is_err(), "{cut}");
        }
        assert!(read_request(&mut &b""[..], &mut Vec::new()).await.unwrap().is_none());
    }
}
