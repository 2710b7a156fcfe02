//! An upstream that speaks HTTP/2, in memory on a paused clock.

use std::sync::Arc;

use bytes::Bytes;
use peaklane_core::outcome::Outcome;
use peaklane_testkit::net::MemoryNet;
use peaklane_wire::proxy::{Room, Upstream};

use crate::lane::{Memory, after, ending, event};
use crate::stage::{Stage, patient};

fn stage(memory: Memory) -> Stage {
    let upstream = Upstream::new(None, "https://lane/v1", None, Vec::new()).unwrap();
    Stage::over(&MemoryNet::new(), Arc::new(memory.http2()), vec![upstream], patient(), Room::new(64 << 20))
}

/// A lane that gives back the length of what it got, in a stream with trailers, on one connection and no second.
fn lane() -> Memory {
    Memory::new(|io, number| async move {
        if number > 0 {
            return;
        }
        let mut connection = h2::server::handshake(io).await.unwrap();
        while let Some(Ok((request, mut respond))) = connection.accept().await {
            tokio::spawn(async move {
                let path = request.uri().to_string();
                let own = request.headers().get("x-own").cloned();
                let mut body = request.into_body();
                let mut all = 0;
                while let Some(Ok(bytes)) = body.data().await {
                    all += bytes.len();
                    body.flow_control().release_capacity(bytes.len()).unwrap();
                }
                after(100).await;
                let head = http::Response::builder().status(200).header("content-type", "text/event-stream");
                let mut stream = respond.send_response(head.body(()).unwrap(), false).unwrap();
                stream.send_data(Bytes::from(format!(": {path} {own:?} {all}\n\n")), false).unwrap();
                after(50).await;
                stream.send_data(Bytes::from(event("hello")), false).unwrap();
                stream.send_data(Bytes::from(ending()), false).unwrap();
                let mut trailers = http::HeaderMap::new();
                trailers.insert("x-sum", "6".parse().unwrap());
                stream.send_trailers(trailers).unwrap();
            });
        }
    })
}

#[tokio::test(start_paused = true)]
async fn an_http2_answer_comes_as_chunks_with_its_trailers_and_exact_moments() {
    let stage = stage(lane());
    for bytes in [2, 300_000] {
        let body = "x".repeat(bytes);
        let request = format!(
            "POST /v1/chat/completions?q=1 HTTP/1.1\r\nHost: p\r\nConnection: close\r\nX-Own: 1\r\nContent-Length: {bytes}\r\n\r\n{body}"
        );
        let answer = stage.talk(request.as_bytes()).await;
        let want =
            format!(": https://lane/v1/chat/completions?q=1 Some(\"1\") {bytes}\n\n{}{}", event("hello"), ending());
        assert_eq!(answer.text(), want);
        assert!(answer.raw.ends_with(b"\r\n0\r\nx-sum: 6\r\n\r\n"), "{}", String::from_utf8_lossy(&answer.raw));
        let record = stage.notes.only().record;
        assert_eq!((record.outcome, record.http_version.as_deref()), (Outcome::Ok, Some("2")));
        assert_eq!((record.first_byte_us, record.ttft_us), (Some(100_000), Some(150_000)));
    }
}

#[tokio::test(start_paused = true)]
async fn a_plain_get_over_http2_passes() {
    let stage = stage(lane());
    let answer = stage.talk(b"GET /v1/models HTTP/1.1\r\nHost: p\r\nConnection: close\r\n\r\n").await;
    assert!(answer.text().starts_with(": https://lane/v1/models None 0"), "{}", answer.text());
}

#[tokio::test(start_paused = true)]
async fn a_stream_that_is_reset_in_the_middle_is_a_reset_for_the_client() {
    let memory = Memory::new(|io, _| async move {
        let mut connection = h2::server::handshake(io).await.unwrap();
        while let Some(Ok((_, mut respond))) = connection.accept().await {
            tokio::spawn(async move {
                let mut stream = respond.send_response(http::Response::new(()), false).unwrap();
                stream.send_data(Bytes::from_static(b"data:"), false).unwrap();
                after(50).await;
                stream.send_reset(h2::Reason::INTERNAL_ERROR);
            });
        }
    });
    let stage = stage(memory);
    let answer = stage.talk(b"POST /v1/chat/completions HTTP/1.1\r\nHost: p\r\nContent-Length: 2\r\n\r\n{}").await;
    assert_eq!((answer.text().as_str(), answer.reset), ("data:", true));
    assert_eq!(stage.notes.only().record.outcome, Outcome::ConnReset);
}

/// A client would take them for its next answer.
#[tokio::test(start_paused = true)]
async fn bytes_behind_an_answer_that_has_no_body_reach_nobody() {
    let memory = Memory::new(|io, _| async move {
        let mut connection = h2::server::handshake(io).await.unwrap();
        while let Some(Ok((_, mut respond))) = connection.accept().await {
            let head = http::Response::builder().status(204).body(()).unwrap();
            let mut stream = respond.send_response(head, false).unwrap();
            stream.send_data(Bytes::from_static(b"HTTP/1.1 200 OK\r\n\r\n"), true).unwrap();
        }
    });
    let request = "GET /v1/x HTTP/1.1\r\nHost: p\r\n";
    let both = format!("{request}\r\n{request}Connection: close\r\n\r\n");
    let answer = stage(memory).talk(both.as_bytes()).await;
    let text = String::from_utf8_lossy(&answer.raw);
    assert_eq!((text.matches("HTTP/1.1 204").count(), text.matches("HTTP/1.1").count()), (2, 2), "{text}");
}
