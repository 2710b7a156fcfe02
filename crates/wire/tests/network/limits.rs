//! The three limits, each to the millisecond.

use peaklane_core::outcome::Outcome;
use peaklane_wire::client::Limits;

use crate::lane::{Memory, OPEN_STREAM, STREAM, after, chunk, event, ms, request, say, silence, try_served};

const LIMITS: Limits = Limits { first_byte: ms(600), idle: ms(2_000), total: ms(10_000) };

#[tokio::test(start_paused = true)]
async fn a_gap_in_the_stream_ends_at_the_idle_limit_and_what_came_is_kept() {
    let tried = try_served(&LIMITS, |mut io, _| async move {
        request(&mut io).await;
        after(100).await;
        say(&mut io, STREAM).await;
        after(200).await;
        say(&mut io, chunk(event("half an "))).await;
        silence().await;
    })
    .await;
    let record = tried.record;
    assert_eq!(record.outcome, Outcome::TimeoutIdle);
    assert_eq!((record.first_byte_us, record.ttft_us, record.end_us), (Some(100_000), Some(300_000), Some(2_300_000)));
    assert_eq!((record.content.as_str(), record.last_byte_us), ("half an ", Some(300_000)));
}

#[tokio::test(start_paused = true)]
async fn silence_after_the_request_ends_at_the_first_byte_limit() {
    let tried = try_served(&LIMITS, |mut io, _| async move {
        request(&mut io).await;
        silence().await;
    })
    .await;
    assert_eq!((tried.record.outcome, tried.record.end_us), (Outcome::TimeoutFirstByte, Some(600_000)));
    assert_eq!((tried.record.first_byte_us, tried.record.http_status), (None, None));
}

#[tokio::test(start_paused = true)]
async fn a_head_that_stops_halfway_is_a_gap_and_no_missing_first_byte() {
    let tried = try_served(&LIMITS, |mut io, _| async move {
        request(&mut io).await;
        after(500).await;
        say(&mut io, "HTTP/1.1 200 OK\r\nContent-").await;
        silence().await;
    })
    .await;
    assert_eq!((tried.record.outcome, tried.record.end_us), (Outcome::TimeoutIdle, Some(2_500_000)));
}

#[tokio::test(start_paused = true)]
async fn an_answer_without_end_ends_at_the_total_limit() {
    let tried = try_served(&LIMITS, |mut io, _| async move {
        request(&mut io).await;
        say(&mut io, STREAM).await;
        loop {
            after(300).await;
            say(&mut io, chunk(event("more "))).await;
        }
    })
    .await;
    let record = tried.record;
    assert_eq!((record.outcome, record.end_us), (Outcome::TimeoutTotal, Some(10_000_000)));
    // 9.9 s hold 33 events at 300 ms; the 34th would come at 10.2 s.
    assert_eq!((record.output_chunks, record.content.len()), (33, 33 * "more ".len()));
}

#[tokio::test(start_paused = true)]
async fn pings_keep_a_stream_alive_but_not_beyond_the_total_limit() {
    let tried = try_served(&LIMITS, |mut io, _| async move {
        request(&mut io).await;
        say(&mut io, OPEN_STREAM).await;
        loop {
            after(1_900).await;
            say(&mut io, ": ping\n\n").await;
        }
    })
    .await;
    assert_eq!((tried.record.outcome, tried.record.end_us), (Outcome::TimeoutTotal, Some(10_000_000)));
    assert_eq!(tried.record.ttft_us, None);
}

#[tokio::test(start_paused = true)]
async fn blanks_without_end_are_no_answer_and_do_not_pile_up() {
    let tried = try_served(&LIMITS, |mut io, _| async move {
        request(&mut io).await;
        say(&mut io, "HTTP/1.1 200 OK\r\nContent-Type: application/json\r\n\r\n").await;
        loop {
            after(100).await;
            say(&mut io, [b' '; 64 << 10]).await;
        }
    })
    .await;
    assert_eq!((tried.record.outcome, tried.record.end_us), (Outcome::TimeoutTotal, Some(10_000_000)));
}

#[tokio::test(start_paused = true)]
async fn a_lane_that_never_reads_a_large_request_ends_at_the_total_limit() {
    let (client, _) = Memory::new(|io, _| async move {
        silence().await;
        drop(io);
    })
    .narrow(64 << 10)
    .client();
    let body = bytes::Bytes::from(vec![b' '; 1 << 20]);
    let tried = client.try_once(&crate::lane::target("http://lane.test"), &body, None, &LIMITS).await;
    assert_eq!(tried.record.outcome, Outcome::TimeoutTotal);
    assert_eq!((tried.ended - tried.began, tried.record.end_us), (ms(10_000), Some(0)));
    assert!(tried.record.message.is_some_and(|m| m.contains("could not be written")));
    assert_eq!(client.idle_connections(&crate::lane::target("http://lane.test").endpoint), 0);
}

#[tokio::test(start_paused = true)]
async fn a_connection_that_is_never_made_ends_at_the_total_limit_and_nothing_was_sent() {
    struct Never;
    impl peaklane_wire::io::Dial for Never {
        fn dial<'a>(&'a self, _: &'a str, _: u16, _: bool) -> peaklane_wire::io::Dialling<'a> {
            Box::pin(std::future::pending())
        }
    }
    let client = peaklane_wire::client::Client::new(std::sync::Arc::new(Never), crate::support::wall_ms);
    let tried = crate::lane::try_it(&client, &LIMITS).await;
    assert_eq!((tried.record.outcome, tried.record.end_us), (Outcome::Unreachable, Some(10_000_000)));
    assert_eq!(tried.record.message.as_deref(), Some("no connection to lane.test:80 within 10000 ms"));
}
