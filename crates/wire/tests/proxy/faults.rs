//! Upstreams and clients that misbehave: nothing hangs, and what is told is what happened.

use std::sync::Arc;
use std::time::Duration;

use peaklane_core::call::{Delivery, Gap};
use peaklane_core::outcome::Outcome;
use peaklane_testkit::net::MemoryNet;
use peaklane_wire::proxy::{Passed, Policy, Room, Upstream};
use tokio::io::{AsyncReadExt, AsyncWriteExt};

use crate::lane::{Memory, after, silence};
use crate::stage::{Stage, patient};

const HEAD: &str = "HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nTransfer-Encoding: chunked\r\n\r\n";

fn post(body: &str) -> Vec<u8> {
    let length = body.len();
    format!("POST /v1/chat/completions HTTP/1.1\r\nHost: p\r\nContent-Length: {length}\r\n\r\n{body}").into_bytes()
}

/// Reads the head of a request and a body of `bytes`.
async fn take(io: &mut peaklane_testkit::io::BoxIo, bytes: usize) -> Vec<u8> {
    let mut all = Vec::new();
    let mut buffer = vec![0; 64 << 10];
    loop {
        let end = all.windows(4).position(|w| w == b"\r\n\r\n");
        if end.is_some_and(|at| all.len() >= at + 4 + bytes) {
            return all;
        }
        let n = io.read(&mut buffer).await.unwrap();
        assert!(n > 0, "the request ends early");
        all.extend_from_slice(&buffer[..n]);
    }
}

fn stage_over(memory: Memory, policy: Policy) -> Stage {
    let upstream = Upstream::new(None, "http://lane:80", None, Vec::new()).unwrap();
    Stage::over(&MemoryNet::new(), Arc::new(memory), vec![upstream], policy, Room::new(64 << 20))
}

#[tokio::test(start_paused = true)]
async fn an_upstream_that_closes_without_an_answer_is_seen_as_that_by_the_client() {
    let stage = stage_over(
        Memory::new(|mut io, _| async move {
            take(&mut io, 2).await;
            after(50).await;
        }),
        patient(),
    );
    let answer = stage.talk(&post("{}")).await;
    assert!(answer.raw.is_empty());
    let ended = stage.notes.only();
    assert_eq!((ended.record.outcome, ended.record.end_us), (Outcome::ConnReset, Some(50_000)));
    assert_eq!((ended.record.first_byte_us, ended.record.http_status), (None, None));
}

#[tokio::test(start_paused = true)]
async fn a_reset_in_the_middle_is_a_reset_for_the_client_after_what_came_before_it() {
    let stage = stage_over(
        Memory::new(|mut io, _| async move {
            take(&mut io, 2).await;
            io.write_all(format!("{HEAD}5\r\ndata:").as_bytes()).await.unwrap();
            after(30).await;
            io.reset_on_drop().unwrap();
        }),
        patient(),
    );
    let answer = stage.talk(&post("{}")).await;
    assert_eq!((answer.text().as_str(), answer.reset), ("data:", true));
    assert_eq!(stage.notes.only().record.outcome, Outcome::ConnReset);
}

#[tokio::test(start_paused = true)]
async fn an_upstream_that_stalls_is_given_up_at_the_limit_with_an_answer_that_says_so() {
    let limits = peaklane_wire::client::Limits {
        first_byte: Duration::from_secs(60),
        idle: Duration::from_secs(20),
        total: Duration::from_secs(600),
    };
    let policy = Policy { limits, ..Policy::default() };
    let stage = stage_over(
        Memory::new(|mut io, n| async move {
            take(&mut io, 2).await;
            if n == 1 {
                io.write_all(format!("{HEAD}5\r\ndata:").as_bytes()).await.unwrap();
            }
            silence().await;
        }),
        policy,
    );
    let answer = stage.talk(&post("{}")).await;
    assert_eq!(answer.status(), Some(504));
    assert!(answer.text().contains("no answer within 60 s"), "{}", answer.text());
    let ended = stage.notes.only();
    assert_eq!((ended.record.outcome, ended.record.end_us), (Outcome::TimeoutFirstByte, Some(60_000_000)));
    assert_eq!(ended.delivery, Delivery::NoUpstream);
    let answer = stage.talk(&post("{}")).await;
    assert_eq!((answer.text().as_str(), answer.reset), ("data:", true));
    let ended = stage.notes.only();
    assert_eq!((ended.record.outcome, ended.record.end_us), (Outcome::TimeoutIdle, Some(20_000_000)));
}

#[tokio::test(start_paused = true)]
async fn an_upstream_that_is_not_there_is_named_in_a_502() {
    let net = MemoryNet::new();
    let stage = Stage::before(&net, "http://127.0.0.1:9/v1", patient());
    let answer = stage.talk(&post("{}")).await;
    assert_eq!(answer.status(), Some(502));
    let error: serde_json::Value = serde_json::from_str(&answer.text()).unwrap();
    assert_eq!(error["error"]["type"], "upstream_unreachable");
    assert!(error["error"]["message"].as_str().unwrap().contains("http://127.0.0.1:9/v1"));
    let ended = stage.notes.only();
    assert_eq!((ended.record.outcome, ended.delivery), (Outcome::Unreachable, Delivery::NoUpstream));
}

#[tokio::test(start_paused = true)]
async fn an_upstream_that_speaks_no_http_is_a_502_and_a_bad_body() {
    let stage = stage_over(
        Memory::new(|mut io, _| async move {
            take(&mut io, 2).await;
            io.write_all(b"220 mail.example ESMTP\r\n\r\n").await.unwrap();
            silence().await;
        }),
        patient(),
    );
    let answer = stage.talk(&post("{}")).await;
    assert_eq!(answer.status(), Some(502));
    assert_eq!(stage.notes.only().record.outcome, Outcome::BadBody);
}

#[tokio::test(start_paused = true)]
async fn a_length_that_lies_is_the_clients_to_see() {
    let stage = stage_over(
        Memory::new(|mut io, n| async move {
            take(&mut io, 2).await;
            let (said, sent) = if n == 0 { (9, "{}") } else { (2, "{}beyond") };
            io.write_all(format!("HTTP/1.1 200 OK\r\nContent-Length: {said}\r\n\r\n{sent}").as_bytes()).await.unwrap();
        }),
        patient(),
    );
    let short = stage.talk(&post("{}")).await;
    assert_eq!(short.text(), "{}");
    assert!(!stage.notes.only().record.outcome.is_ok());
    // What is beyond the length belongs to nobody, and nobody reads it as the next answer.
    let mut io = stage.connect();
    io.write_all(&[post("{}"), post("{}")].concat()).await.unwrap();
    let long = crate::stage::read_all_within(&mut io, Duration::from_secs(1)).await;
    let text = String::from_utf8_lossy(&long.raw).into_owned();
    assert_eq!(text.matches("HTTP/1.1 200 OK").count(), 2, "{text}");
    assert!(!text.contains("beyond"), "{text}");
}

#[tokio::test(start_paused = true)]
async fn an_answer_in_single_bytes_and_one_with_a_line_of_20_mib_come_through_whole() {
    let line = "x".repeat(20 << 20);
    let event = format!("data: {line}\n\n");
    let sent = event.clone();
    let stage = stage_over(
        Memory::new(move |mut io, n| {
            let event = event.clone();
            async move {
                take(&mut io, 2).await;
                if n == 0 {
                    for byte in format!("{HEAD}7\r\ndata: 1\r\n2\r\n\n\n\r\n0\r\n\r\n").bytes() {
                        io.write_all(&[byte]).await.unwrap();
                        tokio::task::yield_now().await;
                    }
                } else {
                    let size = event.len();
                    io.write_all(format!("{HEAD}{size:x}\r\n{event}\r\n0\r\n\r\n").as_bytes()).await.unwrap();
                }
            }
        }),
        patient(),
    );
    let close = |body: &str| String::from_utf8(post(body)).unwrap().replace("Host: p", "Host: p\r\nConnection: close");
    assert_eq!(stage.talk(close("{}").as_bytes()).await.text(), "data: 1\n\n");
    stage.notes.only();
    let long = stage.talk(close("{}").as_bytes()).await;
    assert!(long.text() == sent, "{} bytes came", long.body().len());
    assert_eq!(stage.notes.only().record.outcome, Outcome::BadBody, "a line that long is no event");
}

#[tokio::test(start_paused = true)]
async fn broken_framing_and_broken_text_go_through_as_they_are() {
    let stage = stage_over(
        Memory::new(|mut io, n| async move {
            take(&mut io, 2).await;
            let rest: &[u8] = if n == 0 { b"zz\r\nwhat" } else { b"9\r\ndata: \xff\xfe\n\r\n0\r\n\r\n" };
            io.write_all(&[HEAD.as_bytes(), rest].concat()).await.unwrap();
            after(10).await;
        }),
        patient(),
    );
    let broken = stage.talk(&post("{}")).await;
    assert!(broken.raw.ends_with(b"\r\n\r\nzz\r\nwhat"));
    assert!(!stage.notes.only().record.outcome.is_ok());
    let mut io = stage.connect();
    io.write_all(&post("{}")).await.unwrap();
    let text = crate::stage::read_all_within(&mut io, Duration::from_secs(1)).await;
    assert_eq!(text.body(), b"data: \xff\xfe\n");
}

#[tokio::test(start_paused = true)]
async fn an_answer_that_comes_before_the_request_is_over_reaches_the_client() {
    let stage = stage_over(
        Memory::new(|mut io, _| async move {
            take(&mut io, 1).await;
            io.write_all(b"HTTP/1.1 413 Too Large\r\nContent-Length: 2\r\n\r\n{}").await.unwrap();
            silence().await;
        }),
        patient(),
    );
    let mut io = stage.connect();
    io.write_all(b"POST /v1/messages HTTP/1.1\r\nHost: p\r\nContent-Length: 1000000\r\n\r\nabc").await.unwrap();
    let answer = crate::stage::read_all_within(&mut io, Duration::from_secs(5)).await;
    assert_eq!(answer.status(), Some(413));
    assert_eq!(stage.notes.only().record.http_status, Some(413));
}

#[tokio::test(start_paused = true)]
async fn a_client_that_reads_slowly_slows_its_stream_and_takes_no_memory_beyond_one_read() {
    const PIECES: usize = 400;
    let stage = stage_over(
        Memory::new(|mut io, _| async move {
            take(&mut io, 2).await;
            io.write_all(HEAD.as_bytes()).await.unwrap();
            let piece = format!("10000\r\n{}\r\n", "y".repeat(0x10000));
            for _ in 0..PIECES {
                io.write_all(piece.as_bytes()).await.unwrap();
            }
            io.write_all(b"0\r\n\r\n").await.unwrap();
            silence().await;
        })
        .narrow(128 << 10),
        patient(),
    );
    let mut io = stage.connect_narrow(32 << 10);
    io.write_all(&post("{}")).await.unwrap();
    let mut all = 0;
    let mut buffer = vec![0; 16 << 10];
    while all < PIECES * 0x10000 {
        after(1).await;
        all += io.read(&mut buffer).await.unwrap();
    }
    // The slow one held the fast one back: the last piece left long after the first.
    drop(io);
    after(10).await;
    assert!(stage.notes.only().total_us > 1_000_000);
}

#[tokio::test(start_paused = true)]
async fn a_client_that_takes_nothing_is_given_up_at_the_idle_limit() {
    let policy = Policy {
        limits: peaklane_wire::client::Limits { idle: Duration::from_secs(30), ..patient().limits },
        ..patient()
    };
    let stage = stage_over(
        Memory::new(|mut io, _| async move {
            take(&mut io, 2).await;
            io.write_all(HEAD.as_bytes()).await.unwrap();
            loop {
                if io.write_all(format!("10000\r\n{}\r\n", "y".repeat(0x10000)).as_bytes()).await.is_err() {
                    return;
                }
            }
        })
        .narrow(128 << 10),
        policy,
    );
    let mut io = stage.connect_narrow(32 << 10);
    io.write_all(&post("{}")).await.unwrap();
    after(60_000).await;
    assert_eq!(stage.notes.only().delivery, Delivery::ClientLeft);
}

#[tokio::test(start_paused = true)]
async fn a_client_that_leaves_before_the_answer_closes_the_upstream_at_once() {
    let (told, mut hear) = tokio::sync::mpsc::unbounded_channel();
    let stage = stage_over(
        Memory::new(move |mut io, _| {
            let told = told.clone();
            async move {
                take(&mut io, 2).await;
                let mut buffer = [0; 16];
                let n = io.read(&mut buffer).await.unwrap_or(0);
                told.send(n).unwrap();
            }
        }),
        patient(),
    );
    let mut io = stage.connect();
    io.write_all(&post("{}")).await.unwrap();
    after(100).await;
    drop(io);
    let closed = tokio::time::timeout(Duration::from_secs(1), hear.recv()).await;
    assert_eq!(closed.unwrap(), Some(0));
    let ended = stage.notes.only();
    assert_eq!((ended.delivery, ended.record.http_status), (Delivery::ClientLeft, None));
}

#[tokio::test(start_paused = true)]
async fn requests_that_could_be_two_are_refused() {
    let stage = stage_over(Memory::new(|_, _| async {}), patient());
    for bad in [
        "POST /v1/messages HTTP/1.1\r\nHost: p\r\nContent-Length: 2\r\nTransfer-Encoding: chunked\r\n\r\n{}",
        "POST /v1/messages HTTP/1.1\r\nHost: p\r\nContent-Length: 2\r\nContent-Length: 3\r\n\r\n{}",
        "NOT HTTP\r\n\r\n",
        "GET http://elsewhere/ HTTP/1.1\r\nHost: elsewhere\r\n\r\n",
    ] {
        assert_eq!(stage.talk(bad.as_bytes()).await.status(), Some(400), "{bad}");
    }
    assert_eq!(*stage.notes.passed.lock().unwrap(), [Passed::Refused; 4]);
}

#[tokio::test(start_paused = true)]
async fn a_request_that_finds_no_room_is_passed_on_and_recorded_without_its_prompt() {
    let memory = Memory::new(|mut io, _| async move {
        take(&mut io, 6_000).await;
        io.write_all(b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n{}").await.unwrap();
        silence().await;
    });
    let upstream = Upstream::new(None, "http://lane:80", None, Vec::new()).unwrap();
    let room = Room::new(5_000);
    let stage = Stage::over(&MemoryNet::new(), Arc::new(memory), vec![upstream], patient(), room);
    let mut io = stage.connect();
    io.write_all(&post(&"x".repeat(6_000))).await.unwrap();
    let answer = crate::stage::read_all_within(&mut io, Duration::from_secs(1)).await;
    assert_eq!(answer.status(), Some(200));
    let told = stage.notes.asked.lock().unwrap().pop().unwrap();
    assert_eq!((told.body, told.bytes), (Err(Gap::Busy), 6_000));
}

#[tokio::test(start_paused = true)]
async fn where_no_copy_is_wanted_the_length_is_told_and_nothing_is_held() {
    let memory = Memory::new(|mut io, _| async move {
        take(&mut io, 6_000).await;
        io.write_all(b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n{}").await.unwrap();
        silence().await;
    });
    let upstream = Upstream::new(None, "http://lane:80", None, Vec::new()).unwrap();
    let room = Room::new(1);
    let policy = Policy { copies: false, ..patient() };
    let stage = Stage::over(&MemoryNet::new(), Arc::new(memory), vec![upstream], policy, room);
    let mut io = stage.connect();
    io.write_all(&post(&"x".repeat(6_000))).await.unwrap();
    crate::stage::read_all_within(&mut io, Duration::from_secs(1)).await;
    let told = stage.notes.asked.lock().unwrap().pop().unwrap();
    assert_eq!((told.body, told.bytes), (Ok(Vec::new()), 6_000));
}
