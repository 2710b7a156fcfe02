//! Responses whose frame lies, never ends, or comes in crumbs.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use peaklane_core::outcome::Outcome;
use tokio::io::AsyncWriteExt;

use crate::lane::{
    Memory, OPEN_STREAM, STREAM, after, chunk, ending, event, request, response, say, streamed, try_answered, try_it,
    try_served, whole_json,
};
use crate::support::generous;

#[tokio::test(start_paused = true)]
async fn a_whole_answer_shorter_than_its_promised_length_is_cut() {
    let json = whole_json("hello");
    let short = format!("HTTP/1.1 200 OK\r\nContent-Length: {}\r\n\r\n{json}", json.len() + 1);
    let tried = try_served(&generous(), move |mut io, _| {
        let short = short.clone();
        async move {
            request(&mut io).await;
            say(&mut io, short).await;
        }
    })
    .await;
    assert_eq!(tried.record.outcome, Outcome::Truncated);
}

#[tokio::test(start_paused = true)]
async fn bytes_behind_the_promised_length_are_no_part_of_the_answer_and_end_the_connection() {
    let (client, net) = Memory::new(|mut io, _| async move {
        while request(&mut io).await.is_some() {
            say(
                &mut io,
                [response("200 OK", "", whole_json("hello")), b"HTTP/1.1 500 Surprise\r\n\r\n".to_vec()].concat(),
            )
            .await;
        }
    })
    .client();
    for _ in 0..2 {
        let record = try_it(&client, &generous()).await.record;
        assert_eq!((record.outcome, record.content.as_str()), (Outcome::Ok, "hello"));
    }
    assert_eq!(net.opened(), 2);
}

#[tokio::test(start_paused = true)]
async fn a_stream_that_closes_before_its_terminal_signal_is_cut_and_a_reset_is_told_apart() {
    for (reset, outcome) in [(false, Outcome::Truncated), (true, Outcome::ConnReset)] {
        let tried = try_served(&generous(), move |mut io, _| async move {
            request(&mut io).await;
            say(&mut io, STREAM).await;
            say(&mut io, chunk(event("half"))).await;
            after(40).await;
            if reset {
                io.reset_on_drop().unwrap();
            }
        })
        .await;
        assert_eq!((tried.record.outcome, tried.record.end_us), (outcome, Some(40_000)));
        assert_eq!(tried.record.content, "half");
    }
}

#[tokio::test(start_paused = true)]
async fn a_head_without_end_is_refused_after_a_bounded_number_of_bytes() {
    let written = Arc::new(AtomicUsize::new(0));
    let count = Arc::clone(&written);
    let (client, _) = Memory::new(move |mut io, _| {
        let count = Arc::clone(&count);
        async move {
            request(&mut io).await;
            say(&mut io, "HTTP/1.1 200 OK\r\n").await;
            while io.write_all(&[b'x'; 1 << 10]).await.is_ok() {
                count.fetch_add(1 << 10, Ordering::SeqCst);
            }
        }
    })
    .narrow(16 << 10)
    .client();
    let record = try_it(&client, &generous()).await.record;
    assert_eq!(record.outcome, Outcome::BadBody);
    assert_eq!(record.message.as_deref(), Some("a response head longer than 128 KiB"));
    let written = written.load(Ordering::SeqCst);
    assert!(written <= 200 << 10, "{written} bytes were taken");
}

#[tokio::test(start_paused = true)]
async fn a_line_without_end_is_refused_after_a_bounded_number_of_bytes() {
    let written = Arc::new(AtomicUsize::new(0));
    let count = Arc::clone(&written);
    let (client, _) = Memory::new(move |mut io, _| {
        let count = Arc::clone(&count);
        async move {
            request(&mut io).await;
            say(&mut io, OPEN_STREAM).await;
            say(&mut io, event("first")).await;
            say(&mut io, "data: ").await;
            while io.write_all(&[b'x'; 64 << 10]).await.is_ok() {
                count.fetch_add(64 << 10, Ordering::SeqCst);
            }
        }
    })
    .narrow(64 << 10)
    .client();
    let record = try_it(&client, &generous()).await.record;
    assert_eq!((record.outcome, record.content.as_str()), (Outcome::BadBody, "first"));
    assert_eq!(record.message.as_deref(), Some("an event longer than 16 MiB"));
    let written = written.load(Ordering::SeqCst);
    assert!((16 << 20..18 << 20).contains(&written), "{written} bytes were taken");
}

#[tokio::test(start_paused = true)]
async fn a_body_without_end_that_is_no_stream_is_refused_at_its_bound() {
    let (client, _) = Memory::new(|mut io, _| async move {
        request(&mut io).await;
        say(&mut io, "HTTP/1.1 200 OK\r\n\r\n{\"choices\": [\"").await;
        while io.write_all(&[b'x'; 256 << 10]).await.is_ok() {}
    })
    .narrow(256 << 10)
    .client();
    let record = try_it(&client, &generous()).await.record;
    assert_eq!(record.outcome, Outcome::BadBody);
    assert!(record.body_bytes < 34 << 20, "{} bytes were taken", record.body_bytes);
}

#[tokio::test(start_paused = true)]
async fn one_byte_a_packet_gives_the_same_record_as_one_packet() {
    let whole = [
        &b"HTTP/1.1 103 Early Hints\r\nLink: <x>\r\n\r\n"[..],
        b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nTransfer-Encoding: chunked\r\nX-Request-Id: r-1\r\n\r\n",
        &chunk(event("h\u{e9}llo ")),
        &chunk(event("world")),
        &chunk(ending()),
        b"0\r\nTrailer: t\r\n\r\n",
    ]
    .concat();
    let at_once = try_answered(whole.clone()).await.record;
    let crumbs = try_served(&generous(), move |mut io, _| {
        let whole = whole.clone();
        async move {
            request(&mut io).await;
            for byte in whole {
                say(&mut io, [byte]).await;
                tokio::task::yield_now().await;
            }
        }
    })
    .await
    .record;
    assert_eq!((at_once.outcome, at_once.content.as_str()), (Outcome::Ok, "h\u{e9}llo world"));
    assert_eq!((at_once.usage.prompt, at_once.usage.cached), (Some(7), Some(2)));
    // The outcome is known at the terminal signal; what comes behind it (the end of the chunks) is not counted.
    assert_eq!(crumbs, peaklane_core::record::TryRecord { body_bytes: crumbs.body_bytes, ..at_once });
}

#[tokio::test(start_paused = true)]
async fn the_first_byte_of_an_answer_counts_although_an_interim_response_came_in_the_same_packet() {
    let tried = try_served(&generous(), |mut io, _| async move {
        request(&mut io).await;
        after(30).await;
        say(&mut io, [b"HTTP/1.1 100 Continue\r\n\r\n".to_vec(), streamed("hello")].concat()).await;
        request(&mut io).await;
    })
    .await;
    assert_eq!((tried.record.outcome, tried.record.first_byte_us), (Outcome::Ok, Some(30_000)));
    let apart = try_served(&generous(), |mut io, _| async move {
        request(&mut io).await;
        after(30).await;
        say(&mut io, "HTTP/1.1 100 Continue\r\n\r\n").await;
        after(20).await;
        say(&mut io, streamed("hello")).await;
        request(&mut io).await;
    })
    .await;
    assert_eq!(apart.record.first_byte_us, Some(50_000));
}

#[tokio::test(start_paused = true)]
async fn what_speaks_no_http_is_told_as_such() {
    for other in ["SSH-2.0-OpenSSH_9.6\r\n", "\u{15}\u{3}\u{1}\0\u{2}\u{2}F\r\n", "220 mail.example ESMTP\r\n"] {
        let record = try_answered(other).await.record;
        assert_eq!(record.outcome, Outcome::BadBody, "{other:?}");
        assert!(record.message.is_some_and(|m| m.starts_with("not HTTP/1.1")), "{other:?}");
    }
}

#[tokio::test(start_paused = true)]
async fn an_answer_that_comes_before_the_request_was_read_is_heard_although_writing_fails() {
    let (client, net) = Memory::new(|mut io, _| async move {
        let mut some = [0; 1_000];
        tokio::io::AsyncReadExt::read_exact(&mut io, &mut some).await.unwrap();
        say(&mut io, response("413 Payload Too Large", "", r#"{"error": {"message": "no more than 1 KiB"}}"#)).await;
    })
    .narrow(32 << 10)
    .client();
    let body = bytes::Bytes::from(vec![b' '; 1 << 20]);
    let lane = crate::lane::target("http://lane.test");
    let record = client.try_once(&lane, &body, None, &generous()).await.record;
    assert_eq!((record.outcome, record.http_status), (Outcome::BadRequest, Some(413)));
    assert_eq!(record.message.as_deref(), Some("no more than 1 KiB"));
    assert_eq!((client.idle_connections(&lane.endpoint), net.opened()), (0, 1), "half a request is on the connection");
}
