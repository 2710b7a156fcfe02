//! The one retry layer against a lane that refuses: what is waited for, and what is never asked twice.

use std::sync::{Arc, Mutex};

use peaklane_core::lane::Api;
use peaklane_core::outcome::Outcome;
use peaklane_wire::client::Limits;
use peaklane_wire::retry::{Attempted, RetryPolicy, attempt};
use tokio::time::Instant;

use crate::lane::{Memory, ms, request, response, say, silence, streamed, target};
use crate::support::{body, generous};

const POLICY: RetryPolicy =
    RetryPolicy { max_retries: 3, base: ms(400), cap: ms(1_000), jitter: true, longest_wait: ms(60_000) };

/// An attempt at a lane that answers with `answers` in turn, the last one for good (an empty one is silence); and when
/// each request came.
async fn attempted(answers: Vec<Vec<u8>>, limits: &Limits, dice: f64) -> (Attempted, Vec<Instant>) {
    let times: Arc<Mutex<Vec<Instant>>> = Arc::default();
    let log = Arc::clone(&times);
    let (client, _) = Memory::new(move |mut io, _| {
        let (log, answers) = (Arc::clone(&log), answers.clone());
        async move {
            while request(&mut io).await.is_some() {
                let n = {
                    let mut log = log.lock().unwrap();
                    log.push(Instant::now());
                    log.len() - 1
                };
                let answer = &answers[n.min(answers.len() - 1)];
                if answer.is_empty() {
                    silence().await;
                }
                say(&mut io, answer).await;
            }
        }
    })
    .client();
    let lane = target("http://lane.test");
    let attempted = attempt(&client, &lane, &body(Api::Chat, true), Some("a"), limits, &POLICY, || dice).await;
    let times = times.lock().unwrap().clone();
    (attempted, times)
}

fn gaps_ms(times: &[Instant]) -> Vec<u128> {
    times.windows(2).map(|pair| (pair[1] - pair[0]).as_millis()).collect()
}

fn refused(headers: &str) -> Vec<u8> {
    response("429 Too Many Requests", headers, r#"{"error": {"message": "slow down"}}"#)
}

#[tokio::test(start_paused = true)]
async fn a_wait_that_the_lane_asks_for_is_kept_to_the_millisecond_and_never_cut_short() {
    let date = "Date: Mon, 30 Nov 2026 16:00:00 GMT\r\nRetry-After: Mon, 30 Nov 2026 16:00:07 GMT\r\n";
    for (headers, asked) in [
        ("retry-after-ms: 1234\r\n", 1_234),
        ("Retry-After: 2\r\n", 2_000),
        ("Retry-After: 0\r\n", 0),
        ("Retry-After: 1.5\r\n", 1_500),
        ("Retry-After: 3\r\nretry-after-ms: 2750\r\n", 2_750),
        (date, 7_000),
        ("x-ratelimit-remaining-requests: 0\r\nx-ratelimit-reset-requests: 1.2s\r\n", 1_200),
    ] {
        // Jitter is added only: up to a tenth of the first back-off.
        for (dice, jitter) in [(0.0, 0), (1.0, 40)] {
            let (attempted, times) = attempted(vec![refused(headers), streamed("hello")], &generous(), dice).await;
            assert_eq!(gaps_ms(&times), [asked + jitter], "{headers} {dice}");
            assert_eq!(attempted.tries[1].record.outcome, Outcome::Ok);
            assert_eq!(attempted.tries[0].record.retry_after_ms.map(u128::from), Some(asked));
        }
    }
}

#[tokio::test(start_paused = true)]
async fn without_a_wish_of_the_lane_the_back_off_doubles_and_the_retries_are_counted() {
    for answer in
        [refused(""), response("503 Busy", "", ""), response("500 Oops", "", ""), response("504 Late", "", "")]
    {
        let (attempted, times) = attempted(vec![answer], &generous(), 0.0).await;
        assert_eq!(gaps_ms(&times), [200, 400, 500]);
        assert_eq!(attempted.tries.len(), 4);
    }
}

#[tokio::test(start_paused = true)]
async fn what_cannot_succeed_is_asked_once_whatever_the_lane_says_about_waiting() {
    let after = "Retry-After: 1\r\n";
    for (answer, outcome) in [
        (response("429 Too Many", after, r#"{"error": {"code": "insufficient_quota"}}"#), Outcome::QuotaExhausted),
        (response("402 Payment Required", after, ""), Outcome::QuotaExhausted),
        (response("401 Unauthorized", after, ""), Outcome::Auth),
        (response("403 Forbidden", after, ""), Outcome::Auth),
        (response("400 Bad Request", after, r#"{"error": {"message": "temperature"}}"#), Outcome::BadRequest),
        (response("404 Not Found", after, ""), Outcome::NotFound),
        (response("413 Too Large", after, ""), Outcome::BadRequest),
        (response("200 OK", "Content-Type: text/html\r\n", "<html><title>Hi</title></html>"), Outcome::BadBody),
        (response("303 See Other", "Location: /\r\n", ""), Outcome::RedirectRefused),
        (refused("Retry-After: 61\r\n"), Outcome::RateLimited),
        (refused("Retry-After: Fri, 31 Dec 9999 23:59:59 GMT\r\n"), Outcome::RateLimited),
    ] {
        let text = String::from_utf8_lossy(&answer).into_owned();
        let (attempted, times) = attempted(vec![answer], &generous(), 0.0).await;
        assert_eq!((attempted.tries[0].record.outcome, times.len()), (outcome, 1), "{text}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_limit_that_ran_out_is_waited_for_from_the_moment_of_the_limit() {
    let limits = Limits { first_byte: ms(600), idle: ms(600), total: ms(5_000) };
    let (attempted, times) = attempted(vec![Vec::new(), streamed("hello")], &limits, 0.0).await;
    assert_eq!(attempted.tries[0].record.outcome, Outcome::TimeoutFirstByte);
    assert_eq!(gaps_ms(&times), [600 + 200]);
    assert_eq!(attempted.tries[1].record.outcome, Outcome::Ok);
}

#[tokio::test(start_paused = true)]
async fn each_try_has_a_request_id_of_its_own() {
    let ids: Arc<Mutex<Vec<String>>> = Arc::default();
    let log = Arc::clone(&ids);
    let (client, _) = Memory::new(move |mut io, _| {
        let log = Arc::clone(&log);
        async move {
            while let Some(seen) = request(&mut io).await {
                log.lock().unwrap().push(seen.header("x-request-id").unwrap().to_owned());
                say(&mut io, response("503 Busy", "", "")).await;
            }
        }
    })
    .client();
    let lane = target("http://lane.test");
    attempt(&client, &lane, &body(Api::Chat, true), Some("a"), &generous(), &POLICY, || 0.0).await;
    assert_eq!(*ids.lock().unwrap(), ["a", "a-r1", "a-r2", "a-r3"]);
}
