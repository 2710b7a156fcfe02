//! Serves one lane: HTTP/1.1 on any connection, real or in memory. What a request gets is the script's business.

use std::convert::Infallible;
use std::pin::pin;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, SystemTime};

use bytes::Bytes;
use http::{HeaderMap, HeaderValue, Method, Request, Response, StatusCode, header};
use http_body_util::{BodyExt, Limited};
use hyper::body::Incoming;
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::TokioIo;
use peaklane_core::lane::Api;
use serde_json::{Value, json};
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::sync::{Semaphore, watch};
use tokio::time::{Instant, sleep_until, timeout};

use crate::body::Paced;
use crate::dialect::Wanted;
use crate::draw::fingerprint;
use crate::events::Voice;
use crate::ledger::{Admission, Ledger};
use crate::plan::Reply;
use crate::prefix::PrefixCache;
use crate::respond::{self, json_response, rate_limit_headers, refuse, text};
use crate::scale::Scale;
use crate::script::{Arrival, Ask, LaneScript, Moment};

/// Longest request body: far above any prompt, so that a mistake does not fill the memory.
const LONGEST_REQUEST: usize = 16 << 20;
/// How long a connection may finish what it is doing once the server stops (real time).
const FAREWELL: Duration = Duration::from_millis(100);

/// One lane: a script, and the book of who is who.
pub struct Lane {
    script: Box<dyn LaneScript>,
    scale: Scale,
    book: Mutex<Book>,
    slots: Option<Arc<Semaphore>>,
    serial: AtomicU64,
}

#[derive(Default)]
struct Book {
    ledger: Ledger,
    prefixes: PrefixCache,
}

impl Lane {
    /// A lane that does what `script` says, at `scale`.
    pub fn new(script: impl LaneScript, scale: Scale) -> Arc<Self> {
        let slots = script.slots().map(|n| Arc::new(Semaphore::new(n.get())));
        Arc::new(Self { script: Box::new(script), scale, book: Mutex::default(), slots, serial: AtomicU64::new(0) })
    }

    /// Begins a moment: attempts are numbered from 0 again and the model is cold, as after hours of idling.
    pub fn begin(&self, moment: Moment) {
        self.book().ledger.begin(moment);
    }

    fn book(&self) -> MutexGuard<'_, Book> {
        // A book is whole between any two statements, so a panic elsewhere does not spoil it.
        self.book.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// An attempt under way. Dropped without [`Booking::whole`] it counts as failed: the client left, or was sent away.
pub(crate) struct Booking {
    lane: Arc<Lane>,
    admission: Admission,
    whole: bool,
}

impl Booking {
    pub(crate) fn whole(mut self) {
        self.whole = true;
    }
}

impl Drop for Booking {
    fn drop(&mut self) {
        self.lane.book().ledger.ended(self.admission, self.whole);
    }
}

/// Serves one connection until the client leaves it or `stop` turns true (its sender gone counts as true).
///
/// `reset` is set when the script asks for a reset: the owner of the socket sees to it when the connection is dropped.
pub async fn serve_connection<I>(lane: Arc<Lane>, io: I, reset: Arc<AtomicBool>, mut stop: watch::Receiver<bool>)
where
    I: AsyncRead + AsyncWrite + Unpin,
{
    let service = service_fn(|request| {
        let (lane, reset) = (Arc::clone(&lane), Arc::clone(&reset));
        async move { Ok::<_, Infallible>(marked(&lane, answer(&lane, request, reset).await)) }
    });
    // No header timer: an idle connection waits for its owner, and the number of connections is bounded elsewhere.
    let mut connection =
        pin!(http1::Builder::new().header_read_timeout(None).serve_connection(TokioIo::new(io), service));
    // How a connection ends is the client's affair or the script's; the measuring side records it.
    let over = tokio::select! {
        _ = connection.as_mut() => true,
        () = stopped(&mut stop) => false,
    };
    if !over {
        connection.as_mut().graceful_shutdown();
        let _ = timeout(FAREWELL, connection).await;
    }
}

/// Waits until `stop` is true or its sender gone.
pub(crate) async fn stopped(stop: &mut watch::Receiver<bool>) {
    let _ = stop.wait_for(|stop| *stop).await;
}

/// Says on every response that nobody should take it for a real lane.
fn marked(lane: &Lane, mut response: Response<Paced>) -> Response<Paced> {
    let headers = response.headers_mut();
    headers.insert("server", HeaderValue::from_static("peaklane-sim"));
    headers.insert("x-peaklane-simulated", HeaderValue::from_static("1"));
    headers.insert("x-peaklane-us-per-second", HeaderValue::from(lane.scale.micros_per_second()));
    response
}

async fn answer(lane: &Arc<Lane>, request: Request<Incoming>, reset: Arc<AtomicBool>) -> Response<Paced> {
    let (head, body) = request.into_parts();
    let path = head.uri.path().trim_end_matches('/');
    let path = path.strip_prefix("/v1").unwrap_or(path);
    let api = Api::ALL.into_iter().find(|api| path.strip_prefix('/') == Some(api.path()));
    let body = match Limited::new(body, LONGEST_REQUEST).collect().await {
        Ok(body) => body.to_bytes(),
        Err(error) => {
            let long = error.downcast_ref::<http_body_util::LengthLimitError>().is_some();
            let status = if long { StatusCode::PAYLOAD_TOO_LARGE } else { StatusCode::BAD_REQUEST };
            return refuse(api, status, "invalid_request_error", "the request body cannot be read");
        }
    };
    // The clock of the answer starts here: the last byte of the request is in.
    let received = Instant::now();
    let target = head.uri.path_and_query().map_or("/", |t| t.as_str());
    lane.script.arrived(Arrival { method: &head.method, target, headers: &head.headers, body: &body });
    match (api, &head.method) {
        (Some(api), &Method::POST) => infer(lane, api, &head.headers, &body, received, reset).await,
        (None, &Method::GET) if path == "/models" => json_response(StatusCode::OK, &models(lane)),
        (None, &Method::GET) if path == "/health" => json_response(StatusCode::OK, &json!({"status": "ok"})),
        (Some(_), _) => {
            let mut response = refuse(api, StatusCode::METHOD_NOT_ALLOWED, "invalid_request_error", "use POST here");
            response.headers_mut().insert(header::ALLOW, HeaderValue::from_static("POST"));
            response
        }
        (None, _) => refuse(None, StatusCode::NOT_FOUND, "not_found_error", "no such path at this simulated lane"),
    }
}

fn models(lane: &Lane) -> Value {
    let models: Vec<Value> = (lane.script.models().iter())
        .map(|id| json!({"id": id, "object": "model", "created": 0, "owned_by": "peaklane-sim"}))
        .collect();
    json!({"object": "list", "data": models})
}

async fn infer(
    lane: &Arc<Lane>,
    api: Api,
    headers: &HeaderMap,
    body: &Bytes,
    received: Instant,
    reset: Arc<AtomicBool>,
) -> Response<Paced> {
    let read = serde_json::from_slice::<Value>(body)
        .map_err(|error| format!("the body is no JSON: {error}"))
        .and_then(|value| Wanted::read(api, &value).map(|wanted| (value, wanted)));
    let (value, wanted) = match read {
        Ok(read) => read,
        Err(message) => return refuse(Some(api), StatusCode::BAD_REQUEST, "invalid_request_error", &message),
    };
    if !lane.script.serves(&wanted.model) {
        let message = format!("the model `{}` does not exist at this simulated lane", wanted.model);
        return refuse(Some(api), StatusCode::NOT_FOUND, "not_found_error", &message);
    }
    let (admission, tokens) = {
        let mut book = lane.book();
        (book.ledger.admit(fingerprint(wanted.prompt.as_bytes())), book.prefixes.serve(&wanted.prompt))
    };
    let booking = Booking { lane: Arc::clone(lane), admission, whole: false };
    let credential = [header::AUTHORIZATION.as_str(), "x-api-key"].iter().find_map(|name| headers.get(*name));
    let ask = Ask {
        ticket: admission.ticket,
        api,
        model: &wanted.model,
        body: &value,
        credential: credential.and_then(|value| value.to_str().ok()),
    };
    let mut plan = lane.script.plan(&ask);
    if let (Reply::Answer(answer), Some(budget)) = (&mut plan.reply, wanted.budget) {
        answer.limit(budget);
    }
    // A failure that is planned is booked before the client can hear of it, so that its retry cannot come too early.
    let booking = plan.whole().then_some(booking);
    let (slot, from) = match &lane.slots {
        // The semaphore is never closed, so waiting for it cannot fail.
        Some(slots) => (Arc::clone(slots).acquire_owned().await.ok(), Instant::now()),
        None => (None, received),
    };
    let at = |moment: Duration| from + lane.scale.real(moment);
    let head_at = match &plan.reply {
        Reply::Answer(answer) if !wanted.stream => at(answer.end_at),
        Reply::Nothing => std::future::pending().await,
        _ => at(plan.head_at),
    };
    sleep_until(head_at).await;

    let serial = lane.serial.fetch_add(1, Ordering::Relaxed);
    let created = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).map_or(0, |since| since.as_secs());
    let id = format!("sim-{serial}");
    let mut voice = Voice::new(api, id.clone(), wanted.model.clone(), created, tokens, wanted.include_usage);
    let mut response = match &plan.reply {
        Reply::Answer(answer) if wanted.stream => respond::stream(&mut voice, answer, head_at, at),
        Reply::Answer(answer) => respond::whole(&mut voice, answer),
        Reply::Refusal(refusal) => respond::refusal(lane.scale, api, refusal),
        Reply::Raw(raw) => respond::raw(raw),
        Reply::Drip(drip) => respond::dripping(&mut voice, *drip, head_at, lane.scale),
        Reply::Nothing => unreachable!("a lane that never answers waits above"),
    };
    let told = response.headers_mut();
    told.insert("x-request-id", headers.get("x-request-id").cloned().unwrap_or_else(|| text(&id)));
    if let Some(limit) = plan.rate_limit {
        rate_limit_headers(told, limit);
    }
    response.map(|body| body.holding(booking, slot, reset))
}
