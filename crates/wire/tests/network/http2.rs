//! HTTP/2 in memory on a paused clock, so that every moment is exact.

use std::future::Future;
use std::sync::{Arc, Mutex};

use bytes::Bytes;
use h2::server::SendResponse;
use h2::{Reason, RecvStream, SendStream};
use peaklane_core::lane::Api;
use peaklane_core::outcome::Outcome;
use peaklane_core::record::Handshake;
use peaklane_testkit::io::BoxIo;
use peaklane_wire::client::{Limits, Tried};

use crate::lane::{KEY, Memory, after, ending, event, ms, say, silence, target, try_it};
use crate::support::generous;

type Request = http::Request<RecvStream>;

/// A lane whose requests are each served by `handler`; it also gets the number of the connection.
fn lane<R: Future<Output = ()> + Send + 'static>(
    handler: impl Fn(Request, SendResponse<Bytes>, usize) -> R + Clone + Send + Sync + 'static,
) -> Memory {
    Memory::new(move |io, n| {
        let handler = handler.clone();
        async move {
            let mut connection = h2::server::handshake(io).await.unwrap();
            while let Some(Ok((request, respond))) = connection.accept().await {
                tokio::spawn(handler(request, respond, n));
            }
        }
    })
    .http2()
}

/// The whole body of a request; everything is released as it comes.
async fn read(request: Request) -> Vec<u8> {
    let mut body = request.into_body();
    let mut all = Vec::new();
    while let Some(Ok(bytes)) = body.data().await {
        all.extend_from_slice(&bytes);
        body.flow_control().release_capacity(bytes.len()).unwrap();
    }
    all
}

fn begin(respond: &mut SendResponse<Bytes>) -> SendStream<Bytes> {
    let head = http::Response::builder().header("content-type", "text/event-stream").body(()).unwrap();
    respond.send_response(head, false).unwrap()
}

fn answer(respond: &mut SendResponse<Bytes>, status: u16, headers: &[(&str, &str)], body: &str) {
    let head = headers.iter().fold(http::Response::builder().status(status), |b, (n, v)| b.header(*n, *v));
    let mut stream = respond.send_response(head.body(()).unwrap(), false).unwrap();
    stream.send_data(Bytes::copy_from_slice(body.as_bytes()), true).unwrap();
}

fn send(stream: &mut SendStream<Bytes>, text: &str) {
    stream.send_data(Bytes::copy_from_slice(text.as_bytes()), false).unwrap();
}

fn whole(respond: &mut SendResponse<Bytes>) {
    let mut stream = begin(respond);
    send(&mut stream, &event("hello"));
    stream.send_data(Bytes::from(ending()), true).unwrap();
}

async fn tried(memory: Memory) -> Tried {
    try_it(&memory.client().0, &generous()).await
}

#[tokio::test(start_paused = true)]
async fn every_moment_of_an_http2_answer_is_exact() {
    let record = tried(lane(|request, mut respond, _| async move {
        assert_eq!(request.headers()["authorization"], format!("Bearer {KEY}"));
        assert_eq!((request.method().as_str(), request.uri().path()), ("POST", "/v1/chat/completions"));
        read(request).await;
        after(100).await;
        let mut stream = begin(&mut respond);
        after(50).await;
        send(&mut stream, ": ping\n\n");
        after(20).await;
        send(&mut stream, &event("hel"));
        after(200).await;
        send(&mut stream, &event("lo"));
        after(30).await;
        stream.send_data(Bytes::from(ending()), true).unwrap();
    }))
    .await
    .record;
    assert_eq!((record.outcome, record.http_version.as_deref(), record.sent_us), (Outcome::Ok, Some("2"), 0));
    assert_eq!(
        (record.first_byte_us, record.ttft_us, record.first_answer_us),
        (Some(100_000), Some(170_000), Some(170_000))
    );
    assert_eq!((record.last_token_us, record.end_us, record.max_gap_us), (Some(370_000), Some(400_000), Some(200_000)));
    assert_eq!((record.content.as_str(), record.output_chunks), ("hello", 2));
    assert_eq!((record.usage.prompt, record.usage.completion, record.usage.cached), (Some(7), Some(3), Some(2)));
    assert_eq!((record.finish_reason.as_deref(), record.model.as_deref()), (Some("stop"), Some("m")));
}

#[tokio::test(start_paused = true)]
async fn a_request_larger_than_the_flow_control_window_is_sent_when_its_last_byte_is() {
    // RFC 9113, section 6.9.2: both windows begin at 65,535 bytes. Three full windows and 100 bytes need three updates,
    // and the last 100 bytes are fewer than the frame heads that went before.
    const WINDOW: usize = 65_535;
    let body = Bytes::from(vec![b' '; 3 * WINDOW + 100]);
    let expected = body.clone();
    let (client, _) = lane(move |request, mut respond, _| {
        let expected = expected.clone();
        async move {
            let mut body = request.into_body();
            let mut all = Vec::new();
            while all.len() < expected.len() {
                all.extend_from_slice(&body.data().await.unwrap().unwrap());
                if all.len().is_multiple_of(WINDOW) {
                    after(100).await;
                    body.flow_control().release_capacity(WINDOW).unwrap();
                }
            }
            assert!(all == expected);
            after(50).await;
            whole(&mut respond);
        }
    })
    .client();
    let tried = client.try_once(&target("http://lane.test"), &body, None, &generous()).await;
    let record = tried.record;
    assert_eq!((record.outcome, record.sent_us), (Outcome::Ok, 300_000));
    assert_eq!((tried.zero - tried.began, record.ttft_us), (ms(300), Some(50_000)));
}

#[tokio::test(start_paused = true)]
async fn a_window_that_never_opens_ends_at_the_total_limit() {
    let (client, _) = lane(|request, _respond, _| async move {
        silence().await;
        drop(request);
    })
    .client();
    let limits = Limits { first_byte: ms(500), idle: ms(500), total: ms(3_000) };
    let body = Bytes::from(vec![b' '; 1 << 20]);
    let tried = client.try_once(&target("http://lane.test"), &body, None, &limits).await;
    assert_eq!((tried.record.outcome, tried.ended - tried.began), (Outcome::TimeoutTotal, ms(3_000)));
}

#[tokio::test(start_paused = true)]
async fn the_limits_hold_over_http2() {
    let limits = Limits { first_byte: ms(600), idle: ms(2_000), total: ms(5_000) };
    for (says, outcome, end_us) in [
        (0, Outcome::TimeoutFirstByte, 600_000),
        (1, Outcome::TimeoutIdle, 2_000_000),
        (2, Outcome::TimeoutIdle, 2_000_000),
        (3, Outcome::TimeoutTotal, 5_000_000),
    ] {
        let (client, _) = lane(move |request, mut respond, _| async move {
            read(request).await;
            if says > 0 {
                let mut stream = begin(&mut respond);
                if says > 1 {
                    send(&mut stream, &event("half"));
                }
                if says > 2 {
                    loop {
                        after(1_900).await;
                        send(&mut stream, &event("more"));
                    }
                }
                silence().await;
            }
            silence().await;
        })
        .client();
        let record = try_it(&client, &limits).await.record;
        assert_eq!((record.outcome, record.end_us), (outcome, Some(end_us)), "{says}");
    }
}

#[tokio::test(start_paused = true)]
async fn error_statuses_over_http2_are_classed_as_over_http1() {
    for (status, headers, body, outcome, after_ms) in [
        (429, &[("retry-after", "2")][..], "", Outcome::RateLimited, Some(2_000)),
        (401, &[], r#"{"error": {"message": "no"}}"#, Outcome::Auth, None),
        (503, &[], "", Outcome::Overloaded, None),
        (307, &[], "", Outcome::RedirectRefused, None),
        (200, &[], "<html><title>Hi</title></html>", Outcome::BadBody, None),
    ] {
        let record = tried(lane(move |request, mut respond, _| async move {
            read(request).await;
            answer(&mut respond, status, headers, body);
        }))
        .await
        .record;
        assert_eq!((record.outcome, record.http_status), (outcome, Some(status)));
        assert_eq!(record.retry_after_ms, after_ms);
    }
}

#[tokio::test(start_paused = true)]
async fn a_stream_reset_in_the_middle_is_a_reset_and_keeps_what_came() {
    let record = tried(lane(|request, mut respond, _| async move {
        read(request).await;
        let mut stream = begin(&mut respond);
        send(&mut stream, &event("half"));
        after(70).await;
        stream.send_reset(Reason::INTERNAL_ERROR);
    }))
    .await
    .record;
    assert_eq!((record.outcome, record.end_us), (Outcome::ConnReset, Some(70_000)));
    assert_eq!((record.content.as_str(), record.ttft_us), ("half", Some(0)));
}

#[tokio::test(start_paused = true)]
async fn a_refused_stream_is_a_reset_and_not_resent() {
    let count = Arc::new(Mutex::new(0));
    let seen = Arc::clone(&count);
    let (client, net) = lane(move |request, mut respond, _| {
        *seen.lock().unwrap() += 1;
        async move {
            read(request).await;
            respond.send_reset(Reason::REFUSED_STREAM);
        }
    })
    .client();
    let record = try_it(&client, &generous()).await.record;
    assert_eq!((record.outcome, record.http_status), (Outcome::ConnReset, None));
    assert_eq!((*count.lock().unwrap(), net.opened()), (1, 1));
}

#[tokio::test(start_paused = true)]
async fn an_answer_that_comes_before_the_request_was_read_is_heard_over_http2() {
    let (client, _) = lane(|request, mut respond, _| async move {
        answer(&mut respond, 413, &[], r#"{"error": {"message": "no more than 64 KiB"}}"#);
        after(10).await;
        respond.send_reset(Reason::NO_ERROR);
        drop(request);
    })
    .client();
    let body = Bytes::from(vec![b' '; 1 << 20]);
    let record = client.try_once(&target("http://lane.test"), &body, None, &generous()).await.record;
    assert_eq!((record.outcome, record.http_status), (Outcome::BadRequest, Some(413)));
}

/// What happens to a connection in the middle of its first answer.
#[derive(Clone, Copy, Debug)]
enum Ends {
    GoAway,
    GoAwayInAnger,
    Close,
    Reset,
    Garbage,
}

/// A lane that says "half" at 0 ms, meets its end at 50 ms and says the rest at 100 ms.
fn ending_lane(how: Ends) -> Memory {
    Memory::new(move |io: BoxIo, _| async move {
        let mut io = io;
        if matches!(how, Ends::Reset) {
            io.reset_on_drop().unwrap();
        }
        if matches!(how, Ends::Garbage) {
            after(50).await;
            say(&mut io, "HTTP/1.1 400 Bad Request\r\nContent-Length: 0\r\n\r\n").await;
            return silence().await;
        }
        let mut connection = h2::server::handshake(io).await.unwrap();
        let (request, mut respond) = connection.accept().await.unwrap().unwrap();
        let serve = tokio::spawn(async move {
            read(request).await;
            let mut stream = begin(&mut respond);
            send(&mut stream, &event("half"));
            after(100).await;
            if matches!(how, Ends::GoAway) {
                stream.send_data(Bytes::from(event(" whole") + &ending()), true).unwrap();
            }
        });
        let end = tokio::time::sleep(ms(50));
        tokio::pin!(end);
        let mut due = true;
        loop {
            tokio::select! {
                biased;
                () = &mut end, if due => {
                    due = false;
                    match how {
                        Ends::GoAway => connection.graceful_shutdown(),
                        Ends::GoAwayInAnger => connection.abrupt_shutdown(Reason::ENHANCE_YOUR_CALM),
                        Ends::Close | Ends::Reset | Ends::Garbage => break,
                    }
                }
                next = connection.accept() => if next.is_none() { break },
            }
        }
        drop(connection);
        let _ = serve.await;
    })
    .http2()
}

#[tokio::test(start_paused = true)]
async fn a_connection_that_ends_in_the_middle_is_told_by_how_it_ended() {
    for (how, outcome, content) in [
        // A GOAWAY that still counts this stream among those that are served, and then a close.
        (Ends::GoAwayInAnger, Outcome::Truncated, "half"),
        (Ends::Close, Outcome::Truncated, "half"),
        (Ends::Reset, Outcome::ConnReset, "half"),
        (Ends::Garbage, Outcome::BadBody, ""),
    ] {
        let (client, net) = ending_lane(how).client();
        let record = try_it(&client, &generous()).await.record;
        assert_eq!((record.outcome, record.end_us), (outcome, Some(50_000)), "{how:?}: {:?}", record.message);
        assert_eq!((record.content.as_str(), net.opened()), (content, 1), "{how:?}");
    }
}

#[tokio::test(start_paused = true)]
async fn an_announced_end_lets_the_answer_finish_and_the_next_request_takes_a_new_connection() {
    let (client, net) = ending_lane(Ends::GoAway).client();
    let record = try_it(&client, &generous()).await.record;
    assert_eq!((record.outcome, record.content.as_str(), record.end_us), (Outcome::Ok, "half whole", Some(100_000)));
    let again = try_it(&client, &generous()).await.record;
    assert_eq!((again.outcome, again.handshake.reused, net.opened()), (Outcome::Ok, false, 2));
}

#[tokio::test(start_paused = true)]
async fn an_idle_connection_that_the_lane_ended_is_left_alone_and_nothing_is_sent_twice() {
    for announced in [true, false] {
        let requests: Arc<Mutex<Vec<usize>>> = Arc::default();
        let log = Arc::clone(&requests);
        let (client, _) = Memory::new(move |io, n| {
            let log = Arc::clone(&log);
            async move {
                let mut connection = h2::server::handshake(io).await.unwrap();
                let end = tokio::time::sleep(ms(50));
                tokio::pin!(end);
                loop {
                    tokio::select! {
                        () = &mut end => break,
                        next = connection.accept() => {
                            let Some(Ok((request, mut respond))) = next else { return };
                            log.lock().unwrap().push(n);
                            tokio::spawn(async move {
                                read(request).await;
                                whole(&mut respond);
                            });
                        }
                    }
                }
                if announced {
                    connection.abrupt_shutdown(Reason::NO_ERROR);
                    while connection.accept().await.is_some() {}
                }
            }
        })
        .http2()
        .client();
        assert_eq!(try_it(&client, &generous()).await.record.outcome, Outcome::Ok);
        after(50).await;
        let second = try_it(&client, &generous()).await.record;
        assert_eq!((second.outcome, second.handshake.reused), (Outcome::Ok, false), "announced: {announced}");
        assert_eq!(*requests.lock().unwrap(), [0, 1], "announced: {announced}");
    }
}

#[tokio::test(start_paused = true)]
async fn two_tries_share_a_connection_also_behind_trailers_and_a_plain_request() {
    let (client, net) = lane(|request, mut respond, n| async move {
        assert_eq!(n, 0);
        if request.method() == http::Method::GET {
            return answer(&mut respond, 200, &[], "{}");
        }
        read(request).await;
        after(20).await;
        let mut stream = begin(&mut respond);
        send(&mut stream, &event("hello"));
        send(&mut stream, &ending());
        let mut trailers = http::HeaderMap::new();
        trailers.insert("x-checksum", http::HeaderValue::from_static("1"));
        stream.send_trailers(trailers).unwrap();
    })
    .client();
    for n in 0..3 {
        let record = try_it(&client, &generous()).await.record;
        assert_eq!((record.outcome, record.ttft_us, record.sent_us), (Outcome::Ok, Some(20_000), 0));
        let handshake = Handshake { reused: n > 0, connect_us: (n == 0).then_some(1_000), ..Handshake::default() };
        assert_eq!(record.handshake, handshake);
        let plain = crate::support::target("http://lane.test", Api::Chat);
        let fetched = client.fetch("GET", &plain, &Bytes::new(), &generous()).await.unwrap();
        assert_eq!((fetched.status, fetched.body.as_slice(), fetched.took_us), (200, &b"{}"[..], 0));
    }
    assert_eq!(net.opened(), 1);
}

#[tokio::test(start_paused = true)]
async fn thousands_of_tiny_frames_and_an_event_over_many_frames_are_read_like_any_other() {
    let text = "x".repeat(100_000);
    let expected = text.clone();
    let record = tried(lane(move |request, mut respond, _| {
        let text = text.clone();
        async move {
            read(request).await;
            let mut stream = begin(&mut respond);
            for byte in event("tiny ").repeat(100).bytes() {
                send(&mut stream, std::str::from_utf8(&[byte]).unwrap());
            }
            after(10).await;
            stream.send_data(Bytes::from(event(&text) + &ending()), true).unwrap();
        }
    }))
    .await
    .record;
    assert_eq!((record.outcome, record.output_chunks, record.max_gap_us), (Outcome::Ok, 101, Some(10_000)));
    assert_eq!(record.content, "tiny ".repeat(100) + &expected);
}
