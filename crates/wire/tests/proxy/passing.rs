//! What passes besides calls: other paths, other protocols, several requests on one connection, the end of the proxy.

use std::sync::Arc;
use std::time::Duration;

use peaklane_testkit::net::MemoryNet;
use peaklane_wire::proxy::{Passed, Policy, Room, Upstream};
use tokio::io::{AsyncReadExt, AsyncWriteExt};

use crate::lane::{Memory, after, silence};
use crate::stage::{Stage, patient, read_all_within};

fn stage_over(memory: Memory, policy: Policy) -> Stage {
    let upstream = Upstream::new(None, "http://lane:80", None, Vec::new()).unwrap();
    Stage::over(&MemoryNet::new(), Arc::new(memory), vec![upstream], policy, Room::new(64 << 20))
}

/// Answers every request on a connection with its own head as text.
fn echo() -> Memory {
    Memory::new(|mut io, n| async move {
        let mut seen = Vec::new();
        let mut buffer = vec![0; 64 << 10];
        while let Ok(read) = io.read(&mut buffer).await {
            if read == 0 {
                return;
            }
            seen.extend_from_slice(&buffer[..read]);
            while let Some(at) = seen.windows(4).position(|w| w == b"\r\n\r\n") {
                let head: Vec<u8> = seen.drain(..at + 4).collect();
                let text = format!("connection {n}\n{}", String::from_utf8_lossy(&head));
                let length = text.len();
                let answer = format!("HTTP/1.1 200 Fine\r\nX-Up: 1\r\nContent-Length: {length}\r\n\r\n{text}");
                io.write_all(answer.as_bytes()).await.unwrap();
            }
        }
    })
}

#[tokio::test(start_paused = true)]
async fn any_path_and_method_passes_and_is_no_call() {
    let stage = stage_over(echo(), patient());
    for request in ["GET /v1/models?x=%20y", "DELETE /v1/files/f-1", "OPTIONS /anything/at/all"] {
        let answer = stage.talk(format!("{request} HTTP/1.1\r\nHost: p\r\nConnection: close\r\n\r\n").as_bytes()).await;
        assert!(answer.head().starts_with("HTTP/1.1 200 Fine\r\nX-Up: 1\r\n"), "{}", answer.head());
        assert!(answer.text().contains(&format!("{request} HTTP/1.1\r\nHost: lane\r\n\r\n")), "{}", answer.text());
    }
    assert_eq!(*stage.notes.passed.lock().unwrap(), [Passed::Plain; 3]);
    assert!(stage.notes.ended.lock().unwrap().is_empty());
}

#[tokio::test(start_paused = true)]
async fn requests_on_one_connection_are_answered_in_order_over_one_upstream_connection() {
    let stage = stage_over(echo(), patient());
    let mut io = stage.connect();
    // All at once: the later ones wait in the socket.
    let one = |n: u32| format!("GET /n/{n} HTTP/1.1\r\nHost: p\r\n\r\n");
    io.write_all((0..5).map(one).collect::<String>().as_bytes()).await.unwrap();
    let text = String::from_utf8(read_all_within(&mut io, Duration::from_secs(1)).await.raw).unwrap();
    let order: Vec<usize> = (0..5).map(|n| text.find(&format!("GET /n/{n} ")).unwrap()).collect();
    assert!(order.is_sorted(), "{text}");
    assert_eq!(text.matches("connection 0\n").count(), 5, "{text}");
}

#[tokio::test(start_paused = true)]
async fn an_idle_upstream_connection_is_not_used_again_after_three_seconds() {
    let stage = stage_over(echo(), patient());
    let mut numbers = Vec::new();
    for pause_ms in [0, 2_900, 3_100] {
        after(pause_ms).await;
        let answer = stage.talk(b"GET /v1/models HTTP/1.1\r\nHost: p\r\nConnection: close\r\n\r\n").await;
        numbers.push(answer.text().lines().next().unwrap().to_owned());
    }
    assert_eq!(numbers, ["connection 0", "connection 0", "connection 1"]);
}

#[tokio::test(start_paused = true)]
async fn trailers_interim_answers_and_chunk_extensions_pass() {
    const ANSWER: &str = "HTTP/1.1 103 Early Hints\r\nLink: </x>\r\n\r\nHTTP/1.1 200 OK\r\nTrailer: X-Sum\r\n\
        Transfer-Encoding: chunked\r\n\r\n3;note=1\r\nabc\r\n0\r\nX-Sum: 6\r\n\r\n";
    let memory = Memory::new(|mut io, _| async move {
        let mut buffer = vec![0; 4096];
        assert!(io.read(&mut buffer).await.unwrap() > 0);
        io.write_all(ANSWER.as_bytes()).await.unwrap();
        silence().await;
    });
    let stage = stage_over(memory, patient());
    let mut io = stage.connect();
    io.write_all(b"GET /v1/x HTTP/1.1\r\nHost: p\r\n\r\n").await.unwrap();
    let answer = read_all_within(&mut io, Duration::from_secs(1)).await;
    assert_eq!(String::from_utf8(answer.raw).unwrap(), ANSWER);
}

#[tokio::test(start_paused = true)]
async fn a_client_of_http_1_0_gets_the_data_without_chunks() {
    let memory = Memory::new(|mut io, _| async move {
        let mut buffer = vec![0; 4096];
        assert!(io.read(&mut buffer).await.unwrap() > 0);
        io.write_all(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n0\r\n\r\n").await.unwrap();
        silence().await;
    });
    let stage = stage_over(memory, patient());
    let answer = stage.talk(b"GET /v1/x HTTP/1.0\r\nHost: p\r\n\r\n").await;
    assert_eq!(String::from_utf8(answer.raw).unwrap(), "HTTP/1.1 200 OK\r\nConnection: close\r\n\r\nabc");
}

#[tokio::test(start_paused = true)]
async fn the_answer_to_head_has_no_body_whatever_it_says() {
    let memory = Memory::new(|mut io, _| async move {
        let mut buffer = vec![0; 4096];
        for _ in 0..2 {
            assert!(io.read(&mut buffer).await.unwrap() > 0);
            io.write_all(b"HTTP/1.1 200 OK\r\nContent-Length: 1000\r\n\r\n").await.unwrap();
        }
        silence().await;
    });
    let stage = stage_over(memory, patient());
    let mut io = stage.connect();
    io.write_all(b"HEAD /v1/x HTTP/1.1\r\nHost: p\r\n\r\nHEAD /v1/y HTTP/1.1\r\nHost: p\r\n\r\n").await.unwrap();
    let answer = read_all_within(&mut io, Duration::from_secs(1)).await;
    assert_eq!(String::from_utf8(answer.raw).unwrap().matches("200 OK").count(), 2);
}

#[tokio::test(start_paused = true)]
async fn a_websocket_passes_in_both_directions_and_is_counted() {
    let memory = Memory::new(|mut io, _| async move {
        let mut buffer = vec![0; 4096];
        let n = io.read(&mut buffer).await.unwrap();
        let head = String::from_utf8_lossy(&buffer[..n]).into_owned();
        assert!(head.contains("Connection: Upgrade\r\nUpgrade: websocket\r\n"), "{head}");
        io.write_all(
            b"HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n\r\n\x81\x02hi",
        )
        .await
        .unwrap();
        let n = io.read(&mut buffer).await.unwrap();
        io.write_all(&[b"echo ", &buffer[..n]].concat()).await.unwrap();
        io.shutdown().await.unwrap();
        silence().await;
    });
    let stage = stage_over(memory, patient());
    let mut io = stage.connect();
    io.write_all(b"GET /v1/realtime HTTP/1.1\r\nHost: p\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\r\n")
        .await
        .unwrap();
    let mut buffer = vec![0; 4096];
    let mut seen = Vec::new();
    while !seen.ends_with(b"\x81\x02hi") {
        let n = io.read(&mut buffer).await.unwrap();
        seen.extend_from_slice(&buffer[..n]);
    }
    assert!(seen.starts_with(b"HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n\r\n"));
    io.write_all(b"frame").await.unwrap();
    let n = io.read(&mut buffer).await.unwrap();
    assert_eq!(&buffer[..n], b"echo frame");
    assert_eq!(*stage.notes.passed.lock().unwrap(), [Passed::Upgraded]);
}

#[tokio::test(start_paused = true)]
async fn a_stop_lets_the_request_at_hand_end_and_closes_idle_connections() {
    let memory = Memory::new(|mut io, _| async move {
        let mut buffer = vec![0; 4096];
        assert!(io.read(&mut buffer).await.unwrap() > 0);
        after(500).await;
        io.write_all(b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok").await.unwrap();
        silence().await;
    });
    let stage = stage_over(memory, patient());
    let mut idle = stage.connect();
    let mut busy = stage.connect();
    busy.write_all(b"GET /v1/x HTTP/1.1\r\nHost: p\r\n\r\n").await.unwrap();
    after(100).await;
    stage.stop.send(true).unwrap();
    let closed = read_all_within(&mut idle, Duration::from_millis(50)).await;
    assert!(closed.raw.is_empty() && closed.closed);
    let answer = read_all_within(&mut busy, Duration::from_secs(5)).await;
    assert!(answer.text() == "ok" && answer.closed);
}

#[tokio::test(start_paused = true)]
async fn an_idle_client_is_let_go_after_two_minutes() {
    let stage = stage_over(echo(), patient());
    let mut io = stage.connect();
    let early = read_all_within(&mut io, Duration::from_secs(119)).await;
    assert!(!early.closed);
    let late = read_all_within(&mut io, Duration::from_secs(2)).await;
    assert!(late.closed);
}
