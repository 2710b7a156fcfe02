//! Turns what a script decided into the bytes and the moments of a response.

use std::collections::VecDeque;
use std::time::Duration;

use bytes::Bytes;
use http::{HeaderMap, HeaderValue, Response, StatusCode, header};
use peaklane_core::lane::Api;
use serde_json::Value;
use tokio::time::Instant;

use crate::body::{Close, Paced};
use crate::dialect::error_body;
use crate::events::Voice;
use crate::plan::{Answer, Drip, DripKind, End, Piece, RateLimit, Raw, Refusal};
use crate::scale::Scale;

/// Bytes as the script has them.
pub(crate) fn raw(raw: &Raw) -> Response<Paced> {
    let status = StatusCode::from_u16(raw.status).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
    response(status, raw.content_type, Paced::at_once(raw.body.clone()))
}

/// An answer as an event stream, each piece at its own time; `at` turns moments of the plan into real ones.
pub(crate) fn stream(
    voice: &mut Voice,
    answer: &Answer,
    head_at: Instant,
    at: impl Fn(Duration) -> Instant,
) -> Response<Paced> {
    let mut pieces: VecDeque<(Instant, Bytes)> = VecDeque::with_capacity(answer.pieces.len() + 2);
    let opening = voice.opening();
    if !opening.is_empty() {
        pieces.push_back((head_at, opening.into()));
    }
    for piece in &answer.pieces {
        pieces.push_back((at(piece.at), voice.piece(piece).into()));
    }
    let end_at = at(answer.end_at).max(pieces.back().map_or(head_at, |(last, _)| *last));
    let close = match &answer.end {
        End::Whole => {
            pieces.push_back((end_at, voice.closing(answer).into()));
            Close::Clean
        }
        End::InBand(message) => {
            pieces.push_back((end_at, voice.in_band(message).into()));
            Close::Clean
        }
        End::Cut => Close::Clean,
        End::Abort => Close::Abort,
        End::Reset => Close::Reset,
    };
    let mut response = response(StatusCode::OK, "text/event-stream; charset=utf-8", Paced::new(pieces, end_at, close));
    response.headers_mut().insert(header::CACHE_CONTROL, HeaderValue::from_static("no-cache"));
    response
}

/// The answer without a stream. A broken one declares its full length and stops half way.
pub(crate) fn whole(voice: &mut Voice, answer: &Answer) -> Response<Paced> {
    if let End::InBand(message) = &answer.end {
        return json_response(StatusCode::OK, &error_body(voice.api, 500, "server_error", "internal_error", message));
    }
    let text = Bytes::from(voice.whole(answer).to_string());
    let now = Instant::now();
    let half = VecDeque::from([(now, text.slice(..text.len() / 2))]);
    let body = match answer.end {
        End::Reset => Paced::new(half, now, Close::Reset).declaring(text.len() as u64),
        End::Cut | End::Abort => Paced::new(half, now, Close::Abort).declaring(text.len() as u64),
        End::Whole | End::InBand(_) => Paced::at_once(text),
    };
    response(StatusCode::OK, "application/json", body)
}

/// A stream without an end.
pub(crate) fn dripping(voice: &mut Voice, drip: Drip, head_at: Instant, scale: Scale) -> Response<Paced> {
    let opening = Bytes::from(voice.opening());
    let piece = match drip.what {
        DripKind::Comments => ": still working\n\n".to_owned(),
        DripKind::Content => voice.piece(&Piece { at: Duration::ZERO, text: "again ".to_owned(), reasoning: false }),
    };
    let body = Paced::new(VecDeque::from([(head_at, opening)]), head_at, Close::Clean)
        .dripping(scale.real(drip.every), piece.into());
    response(StatusCode::OK, "text/event-stream; charset=utf-8", body)
}

/// An error as the script has it.
pub(crate) fn refusal(scale: Scale, api: Api, refused: &Refusal) -> Response<Paced> {
    let status = StatusCode::from_u16(refused.status).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
    let body = error_body(api, refused.status, refused.kind, refused.code, &refused.message);
    let mut response = json_response(status, &body);
    if let Some(wait) = refused.retry_after {
        // Whole seconds are all that `Retry-After` can say; compressed time needs the milliseconds beside it.
        let wait_ms = scale.real(wait).as_micros().div_ceil(1000);
        let headers = response.headers_mut();
        headers.insert(header::RETRY_AFTER, text(&wait_ms.div_ceil(1000).to_string()));
        headers.insert("retry-after-ms", text(&wait_ms.to_string()));
    }
    response
}

/// Tells the request limit in the spelling of the OpenAI API.
pub(crate) fn rate_limit_headers(headers: &mut HeaderMap, limit: RateLimit) {
    headers.insert("x-ratelimit-limit-requests", HeaderValue::from(limit.limit));
    headers.insert("x-ratelimit-remaining-requests", HeaderValue::from(limit.remaining));
    headers.insert("x-ratelimit-reset-requests", HeaderValue::from_static("1m0s"));
}

/// An error of the server's own: no such path, no such model.
pub(crate) fn refuse(api: Option<Api>, status: StatusCode, kind: &str, message: &str) -> Response<Paced> {
    json_response(status, &error_body(api.unwrap_or_default(), status.as_u16(), kind, kind, message))
}

/// A JSON body, there at once.
pub(crate) fn json_response(status: StatusCode, value: &Value) -> Response<Paced> {
    response(status, "application/json", Paced::at_once(value.to_string()))
}

fn response(status: StatusCode, content_type: &'static str, body: Paced) -> Response<Paced> {
    let mut response = Response::new(body);
    *response.status_mut() = status;
    response.headers_mut().insert(header::CONTENT_TYPE, HeaderValue::from_static(content_type));
    response
}

/// A header value of visible ASCII; anything else is left empty.
pub(crate) fn text(value: &str) -> HeaderValue {
    HeaderValue::from_str(value).unwrap_or_else(|_| HeaderValue::from_static(""))
}
