//! Times, on a paused clock: exact to the millisecond of tokio's timer.

use std::time::Duration;

use peaklane_sim::plan::{End, Plan, RateLimit, Refusal, Reply};
use peaklane_sim::scale::Scale;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::time::{Instant, sleep, timeout};

use crate::memory::{Same, ask, chat, connect, ms, request, three_pieces};

#[tokio::test(start_paused = true)]
async fn each_piece_leaves_at_its_own_time() {
    let lane = Same::new(three_pieces(End::Whole)).lane(Scale::REAL);
    let seen = ask(&lane, "/v1/chat/completions", &chat("hi")).await;
    let times = ["HTTP/1.1 200", "\"role\":\"assistant\"", "one ", "two ", "three", "[DONE]"].map(|text| seen.at(text));
    assert_eq!(times, [10, 10, 100, 250, 300, 400].map(ms));
    assert_eq!(seen.closed, ms(400));
}

#[tokio::test(start_paused = true)]
async fn compressed_time_shortens_every_wait_alike() {
    let plan = Same::new(three_pieces(End::Whole));
    let lane = plan.lane(Scale::per_second(ms(20)).unwrap());
    let seen = ask(&lane, "/v1/chat/completions", &chat("hi")).await;
    // 2 ms, 5 ms, 6 ms, 8 ms: a fiftieth.
    let times = ["one ", "two ", "three", "[DONE]"].map(|text| seen.at(text));
    assert_eq!(times, [2, 5, 6, 8].map(ms));
    assert_eq!(seen.header("x-peaklane-us-per-second").as_deref(), Some("20000"));
}

#[tokio::test(start_paused = true)]
async fn a_client_that_reads_late_does_not_push_later_pieces_back() {
    let lane = Same::new(three_pieces(End::Whole)).lane(Scale::REAL);
    let (mut client, _stop) = connect(&lane, 128);
    let start = Instant::now();
    let sending = request("/v1/chat/completions", &chat("hi"));
    client.write_all(sending.as_bytes()).await.unwrap();
    sleep(ms(280)).await;
    let mut text = Vec::new();
    let mut buffer = [0; 4096];
    while !String::from_utf8_lossy(&text).contains("three") {
        let n = client.read(&mut buffer).await.unwrap();
        text.extend_from_slice(&buffer[..n]);
    }
    assert_eq!(start.elapsed(), ms(300));
}

#[tokio::test(start_paused = true)]
async fn without_a_stream_the_whole_answer_comes_at_its_end() {
    let lane = Same::new(three_pieces(End::Whole)).lane(Scale::REAL);
    let mut body = chat("hi");
    body["stream"] = false.into();
    let seen = ask(&lane, "/v1/chat/completions", &body).await;
    assert_eq!(seen.at("HTTP/1.1 200"), ms(400));
    assert_eq!(seen.json()["choices"][0]["message"]["content"], "one two three");
    assert_eq!(seen.header("content-length"), Some(seen.body().len().to_string()));
}

#[tokio::test(start_paused = true)]
async fn the_second_half_of_a_burst_waits_for_a_slot() {
    let mut script = Same::new(three_pieces(End::Whole));
    script.slots = 4;
    let lane = script.lane(Scale::REAL);
    let mut burst = tokio::task::JoinSet::new();
    for attempt in 0..8 {
        let lane = lane.clone();
        burst.spawn(async move { ask(&lane, "/v1/chat/completions", &chat(&attempt.to_string())).await.at("[DONE]") });
    }
    let mut ends = burst.join_all().await;
    ends.sort_unstable();
    assert_eq!(ends, [400, 400, 400, 400, 800, 800, 800, 800].map(ms));
}

#[tokio::test(start_paused = true)]
async fn a_client_that_leaves_gives_its_slot_back_and_comes_again_as_a_retry() {
    let mut script = Same::new(three_pieces(End::Whole));
    script.slots = 1;
    let lane = script.lane(Scale::REAL);
    let (mut client, _stop) = connect(&lane, 1 << 16);
    client.write_all(request("/v1/chat/completions", &chat("hi")).as_bytes()).await.unwrap();
    sleep(ms(150)).await;
    drop(client);
    sleep(ms(10)).await;
    let seen = ask(&lane, "/v1/chat/completions", &chat("hi")).await;
    assert_eq!(seen.at("[DONE]"), ms(400), "the slot was free at once");
    let places: Vec<_> = script.tickets.lock().unwrap().iter().map(|t| (t.slot, t.retry)).collect();
    assert_eq!(places, [(0, 0), (0, 1)]);
}

#[tokio::test(start_paused = true)]
async fn a_client_that_leaves_a_silent_lane_is_noticed() {
    let script = Same::new(Plan::new(ms(0), Reply::Nothing));
    let lane = script.lane(Scale::REAL);
    let (client, server) = tokio::io::duplex(1 << 16);
    let (_stop, stopped) = tokio::sync::watch::channel(false);
    let serving = tokio::spawn(peaklane_sim::server::serve_connection(lane, server, Default::default(), stopped));
    let mut client = client;
    client.write_all(request("/v1/chat/completions", &chat("hi")).as_bytes()).await.unwrap();
    let mut buffer = [0; 64];
    let read = timeout(Duration::from_secs(3600), client.read(&mut buffer)).await;
    assert!(read.is_err(), "an hour of silence");
    drop(client);
    timeout(ms(1), serving).await.expect("the server lets go").unwrap();
}

#[tokio::test(start_paused = true)]
async fn a_server_that_stops_lets_a_busy_connection_go_after_a_tenth_of_a_second() {
    let lane = Same::new(Plan::new(ms(0), Reply::Nothing)).lane(Scale::REAL);
    let (mut client, stop) = connect(&lane, 1 << 16);
    client.write_all(request("/v1/chat/completions", &chat("hi")).as_bytes()).await.unwrap();
    sleep(ms(50)).await;
    let start = Instant::now();
    stop.send(true).unwrap();
    assert_eq!(client.read(&mut [0; 64]).await.unwrap(), 0);
    assert_eq!(start.elapsed(), ms(100));
}

#[tokio::test(start_paused = true)]
async fn a_refusal_says_when_to_come_again_in_whole_seconds_and_in_milliseconds_of_real_time() {
    let refusal = Refusal {
        status: 429,
        kind: "requests",
        code: "rate_limit_exceeded",
        message: "slow down".to_owned(),
        retry_after: Some(Duration::from_secs(4)),
    };
    let mut plan = Plan::new(ms(100), Reply::Refusal(refusal));
    plan.rate_limit = Some(RateLimit { limit: 20, remaining: 0 });
    let seen = ask(&Same::new(plan).lane(Scale::DEMO), "/v1/chat/completions", &chat("hi")).await;
    // 4 s of simulated time are 80 ms; the next whole second is 1.
    assert_eq!((seen.status(), seen.at("HTTP/1.1 429")), (429, ms(2)));
    assert_eq!(seen.header("retry-after-ms").as_deref(), Some("80"));
    assert_eq!(seen.header("retry-after").as_deref(), Some("1"));
    assert_eq!(seen.header("x-ratelimit-remaining-requests").as_deref(), Some("0"));
    assert_eq!(seen.json()["error"]["code"], "rate_limit_exceeded");
}
