//! Connections that are kept, and what must never happen on them: a request that is sent twice.

use std::sync::{Arc, Mutex};

use peaklane_core::outcome::Outcome;
use peaklane_core::record::Handshake;

use crate::lane::{Memory, after, ms, request, say, streamed, target, try_it};
use crate::support::generous;

type Requests = Arc<Mutex<Vec<usize>>>;

/// A lane that notes on which connection each request came, and closes a connection that is idle for 50 ms.
fn impatient() -> (Memory, Requests) {
    let requests = Requests::default();
    let log = Arc::clone(&requests);
    let net = Memory::new(move |mut io, n| {
        let log = Arc::clone(&log);
        async move {
            while let Ok(Some(_)) = tokio::time::timeout(ms(50), request(&mut io)).await {
                log.lock().unwrap().push(n);
                say(&mut io, streamed("hello")).await;
            }
        }
    });
    (net, requests)
}

#[tokio::test(start_paused = true)]
async fn a_kept_connection_is_used_again_and_has_no_handshake_of_its_own() {
    let (net, requests) = impatient();
    let (client, _) = net.client();
    let first = try_it(&client, &generous()).await.record;
    let second = try_it(&client, &generous()).await.record;
    assert_eq!(first.handshake, Handshake { connect_us: Some(1_000), ..Handshake::default() });
    assert_eq!(second.handshake, Handshake { reused: true, ..Handshake::default() });
    assert_eq!((first.outcome, second.outcome), (Outcome::Ok, Outcome::Ok));
    assert_eq!(*requests.lock().unwrap(), [0, 0]);
}

#[tokio::test(start_paused = true)]
async fn a_connection_opened_beforehand_gives_its_handshake_to_the_first_try_on_it() {
    let (net, requests) = impatient();
    let (client, net) = net.client();
    let lane = target("http://lane.test");
    let opened = client.open(&lane.endpoint, ms(1_000)).await.unwrap();
    assert_eq!(client.idle_connections(&lane.endpoint), 1);
    let first = try_it(&client, &generous()).await.record;
    assert_eq!(first.handshake, opened);
    assert_eq!((net.opened(), requests.lock().unwrap().len()), (1, 1));
}

#[tokio::test(start_paused = true)]
async fn a_kept_connection_that_the_lane_closed_meanwhile_is_left_alone_and_nothing_is_sent_twice() {
    let (net, requests) = impatient();
    let (client, net) = net.client();
    assert_eq!(try_it(&client, &generous()).await.record.outcome, Outcome::Ok);
    after(100).await;
    let second = try_it(&client, &generous()).await.record;
    assert_eq!((second.outcome, second.handshake.reused), (Outcome::Ok, false));
    assert_eq!((net.opened(), requests.lock().unwrap().clone()), (2, vec![0, 1]));
}

#[tokio::test(start_paused = true)]
async fn a_kept_connection_on_which_the_lane_said_something_unasked_is_not_used_again() {
    let (client, net) = Memory::new(|mut io, _| async move {
        while request(&mut io).await.is_some() {
            say(&mut io, streamed("hello")).await;
            after(20).await;
            say(&mut io, "HTTP/1.1 408 Request Timeout\r\nContent-Length: 0\r\n\r\n").await;
        }
    })
    .client();
    for _ in 0..2 {
        assert_eq!(try_it(&client, &generous()).await.record.outcome, Outcome::Ok);
        after(50).await;
    }
    assert_eq!(net.opened(), 2);
}

#[tokio::test(start_paused = true)]
async fn a_connection_that_closes_once_the_request_was_read_is_a_reset_and_not_resent() {
    for kept in [false, true] {
        let requests = Requests::default();
        let log = Arc::clone(&requests);
        let (client, net) = Memory::new(move |mut io, n| {
            let log = Arc::clone(&log);
            async move {
                if kept {
                    request(&mut io).await;
                    say(&mut io, streamed("hello")).await;
                }
                request(&mut io).await;
                log.lock().unwrap().push(n);
            }
        })
        .client();
        if kept {
            assert_eq!(try_it(&client, &generous()).await.record.outcome, Outcome::Ok);
        }
        let record = try_it(&client, &generous()).await.record;
        assert_eq!((record.outcome, record.handshake.reused), (Outcome::ConnReset, kept));
        assert_eq!((net.opened(), requests.lock().unwrap().clone()), (1, vec![0]), "kept: {kept}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_response_that_says_close_or_ends_with_the_connection_keeps_none() {
    for head in ["Connection: close\r\nContent-Length: 2\r\n", "Connection: keep-alive\r\n"] {
        let (client, net) = Memory::new(move |mut io, _| async move {
            request(&mut io).await;
            say(&mut io, format!("HTTP/1.1 500 Oops\r\n{head}\r\n{{}}")).await;
        })
        .client();
        for _ in 0..2 {
            assert_eq!(try_it(&client, &generous()).await.record.outcome, Outcome::ServerError, "{head}");
        }
        assert_eq!(net.opened(), 2, "{head}");
    }
}
