//! Redirects: same host only, method, body and key kept, bounded, and none that would make another request of it.

use std::sync::{Arc, Mutex};

use peaklane_core::lane::Api;
use peaklane_core::outcome::Outcome;
use peaklane_wire::client::Tried;

use crate::lane::{KEY, Memory, Request, request, response, say, streamed, target};
use crate::support::{body, generous};

/// What one try at `base` gives when every request is answered with that redirect; the requests seen, and what was
/// dialled.
async fn redirected(
    base: &str,
    status: &str,
    location: Option<&str>,
) -> (Tried, Vec<Request>, Vec<(String, u16, bool)>) {
    let requests: Arc<Mutex<Vec<Request>>> = Arc::default();
    let log = Arc::clone(&requests);
    let headers = location.map(|l| format!("Location: {l}\r\n")).unwrap_or_default();
    let answer = response(status, &headers, "moved");
    let (client, net) = Memory::new(move |mut io, _| {
        let (log, answer) = (Arc::clone(&log), answer.clone());
        async move {
            while let Some(seen) = request(&mut io).await {
                log.lock().unwrap().push(seen);
                say(&mut io, &answer).await;
            }
        }
    })
    .client();
    let tried = client.try_once(&target(base), &body(Api::Chat, true), None, &generous()).await;
    let requests = requests.lock().unwrap().clone();
    let dialled = net.dialled.lock().unwrap().clone();
    (tried, requests, dialled)
}

#[tokio::test(start_paused = true)]
async fn a_redirect_in_a_circle_is_followed_five_times_and_then_refused() {
    let (tried, requests, dialled) =
        redirected("http://lane.test", "307 Temporary Redirect", Some("/v1/chat/completions")).await;
    assert_eq!((tried.record.outcome, tried.record.redirects), (Outcome::RedirectRefused, 5));
    assert_eq!(tried.record.message.as_deref(), Some("more than 5 redirects"));
    assert_eq!((requests.len(), dialled.len()), (6, 1));
    assert!(requests.iter().all(|r| *r == requests[0]), "method, body and key are kept on the same host");
}

#[tokio::test(start_paused = true)]
async fn a_redirect_to_another_place_is_refused_and_nothing_is_sent_there() {
    let (lane, secure) = ("http://lane.test", "https://lane.test");
    for (base, location) in [
        (lane, "http://elsewhere.test/v1/chat/completions"),
        (lane, "//elsewhere.test/v1/chat/completions"),
        (lane, "http://lane.test:8080/v1/chat/completions"),
        (lane, "https://lane.test:8443/v1/chat/completions"),
        (lane, "http://lane.test.evil.test/v1/chat/completions"),
        (lane, "http://lane.test@evil.test/v1/chat/completions"),
        (lane, "ftp://lane.test/v1/chat/completions"),
        (lane, "file:///etc/passwd"),
        (secure, "http://lane.test/v1/chat/completions"),
        (secure, "http://lane.test:443/v1/chat/completions"),
    ] {
        for status in ["301 Moved Permanently", "302 Found", "307 Temporary Redirect", "308 Permanent Redirect"] {
            let (tried, requests, dialled) = redirected(base, status, Some(location)).await;
            assert_eq!(tried.record.outcome, Outcome::RedirectRefused, "{status} {location}");
            assert!(tried.record.message.is_some_and(|m| !m.contains(KEY)));
            assert_eq!((requests.len(), dialled.len()), (1, 1), "{status} {location}");
            assert_eq!(dialled[0].0, "lane.test");
        }
    }
}

#[tokio::test(start_paused = true)]
async fn a_redirect_that_asks_for_another_method_or_names_no_place_is_refused() {
    for (status, location) in [
        ("303 See Other", Some("/v1/elsewhere")),
        ("307 Temporary Redirect", None),
        ("307 Temporary Redirect", Some("")),
        ("308 Permanent Redirect", Some("http://")),
        ("300 Multiple Choices", Some("/v1/elsewhere")),
        ("304 Not Modified", Some("/v1/elsewhere")),
    ] {
        let (tried, requests, _) = redirected("http://lane.test", status, location).await;
        assert_eq!(tried.record.outcome, Outcome::RedirectRefused, "{status}");
        assert_eq!(requests.len(), 1, "{status}");
    }
}

#[tokio::test(start_paused = true)]
async fn the_same_host_may_move_from_plain_http_to_https_and_gets_the_same_request_there() {
    let requests: Arc<Mutex<Vec<Request>>> = Arc::default();
    let log = Arc::clone(&requests);
    let (client, net) = Memory::new(move |mut io, n| {
        let log = Arc::clone(&log);
        async move {
            while let Some(seen) = request(&mut io).await {
                log.lock().unwrap().push(seen);
                let moved =
                    response("308 Permanent Redirect", "Location: https://lane.test/v1/chat/completions\r\n", "");
                say(&mut io, if n == 0 { moved } else { streamed("hello") }).await;
            }
        }
    })
    .client();
    let tried = client.try_once(&target("http://lane.test"), &body(Api::Chat, true), Some("id-1"), &generous()).await;
    assert_eq!((tried.record.outcome, tried.record.redirects), (Outcome::Ok, 1));
    let requests = requests.lock().unwrap();
    assert_eq!((requests.len(), &requests[0]), (2, &requests[1]));
    assert_eq!(requests[1].header("authorization"), Some(format!("Bearer {KEY}").as_str()));
    let dialled = net.dialled.lock().unwrap().clone();
    assert_eq!(dialled, [("lane.test".to_owned(), 80, false), ("lane.test".to_owned(), 443, true)]);
}
