//! Over real sockets: the fake lane's misbehaviour, its log, and the lanes of the demo.

use std::io::{ErrorKind, Read, Write};
use std::net::TcpStream;
use std::time::{Duration, Instant};

use peaklane_sim::character::{ANSWER_CONTAINS, FLOOR};
use peaklane_sim::demo::{DemoLane, DemoLanes};
use peaklane_sim::fake::{FAKE_MODELS, FakeLane};
use peaklane_sim::scale::Scale;
use peaklane_sim::script::Moment;
use serde_json::{Value, json};

/// Sends a request with a key and gives what came, and how the connection ended.
fn send(base_url: &str, method: &str, path: &str, body: &str) -> (String, Option<ErrorKind>) {
    let address = base_url.strip_prefix("http://").unwrap().strip_suffix("/v1").unwrap();
    let mut stream = TcpStream::connect(address).unwrap();
    stream.set_read_timeout(Some(Duration::from_secs(10))).unwrap();
    let head = format!(
        "{method} /v1{path} HTTP/1.1\r\nhost: {address}\r\nauthorization: Bearer sk-secret\r\nconnection: close\r\ncontent-length: {}\r\n\r\n",
        body.len()
    );
    stream.write_all((head + body).as_bytes()).unwrap();
    let mut text = Vec::new();
    let end = stream.read_to_end(&mut text).err().map(|error| error.kind());
    (String::from_utf8(text).unwrap(), end)
}

fn chat(base_url: &str, model: &str, prompt: &str) -> (String, Option<ErrorKind>) {
    let body = json!({"model": model, "stream": true, "messages": [{"role": "user", "content": prompt}]});
    send(base_url, "POST", "/chat/completions", &body.to_string())
}

fn status(response: &str) -> &str {
    response.split(' ').nth(1).unwrap_or("none")
}

#[test]
fn a_reset_reaches_the_client_as_a_reset_and_an_abort_as_an_end() {
    let lane = FakeLane::start().unwrap();
    let (text, end) = chat(&lane.base_url(), "fake-reset", "hi");
    assert_eq!(end, Some(ErrorKind::ConnectionReset), "{text}");
    let (text, end) = chat(&lane.base_url(), "fake-abort", "hi");
    assert_eq!(end, None);
    assert!(text.contains("lane") && !text.ends_with("0\r\n\r\n"), "{text}");
}

#[test]
fn a_lane_that_limits_two_tries_answers_the_third_of_the_same_prompt() {
    let lane = FakeLane::start().unwrap();
    for prompt in ["a", "b"] {
        let tries = [0, 1, 2].map(|_| chat(&lane.base_url(), "fake-429-retry2", prompt).0);
        assert_eq!(tries.each_ref().map(|text| status(text)), ["429", "429", "200"]);
    }
}

#[test]
fn each_fake_model_with_an_end_does_what_its_name_says() {
    let lane = FakeLane::start().unwrap();
    for (model, code, says) in [
        ("fake-ok", "200", "asked "),
        ("fake-reasoning", "200", "reasoning_content"),
        ("fake-delay-5", "200", "[DONE]"),
        ("fake-wrong", "200", "else "),
        ("fake-empty", "200", "\"finish_reason\":\"stop\""),
        ("fake-budget", "200", "\"finish_reason\":\"length\""),
        ("fake-429", "429", "retry-after-ms: 50"),
        ("fake-loading-retry1", "503", "Loading model"),
        ("fake-quota", "429", "insufficient_quota"),
        ("fake-401", "401", "sk-secret"),
        ("fake-status-418", "418", "error"),
        ("fake-refuse-temperature", "200", "[DONE]"),
        ("fake-html", "200", "<!doctype html>"),
        ("fake-garbage", "200", "\"mess"),
        ("fake-in-band", "200", "lost its worker"),
        ("fake-cut", "200", "lane"),
        ("fake-unheard-of", "404", "does not exist"),
    ] {
        let (text, end) = chat(&lane.base_url(), model, model);
        assert_eq!((status(&text), end), (code, None), "{model}: {text}");
        assert!(text.contains(says), "{model}: {text}");
        assert!(text.contains("x-peaklane-simulated: 1"), "{model}");
    }
    let body = json!({"model": "fake-refuse-temperature", "temperature": 0, "messages": []}).to_string();
    let (text, _) = send(&lane.base_url(), "POST", "/chat/completions", &body);
    assert!(status(&text) == "400" && text.contains("temperature"), "{text}");
}

#[test]
fn lanes_without_an_end_go_on_until_the_client_leaves() {
    let lane = FakeLane::start().unwrap();
    for (model, least) in [("fake-never", 0), ("fake-forever", 5), ("fake-endless", 5)] {
        let address = lane.base_url().replace("http://", "").replace("/v1", "");
        let mut stream = TcpStream::connect(address).unwrap();
        stream.set_read_timeout(Some(Duration::from_millis(400))).unwrap();
        let body = json!({"model": model, "stream": true, "messages": []}).to_string();
        let head = format!("POST /v1/chat/completions HTTP/1.1\r\nhost: x\r\ncontent-length: {}\r\n\r\n", body.len());
        stream.write_all((head + &body).as_bytes()).unwrap();
        let (mut reads, mut buffer, begin) = (0, [0; 4096], Instant::now());
        while begin.elapsed() < Duration::from_millis(300) {
            match stream.read(&mut buffer) {
                Ok(0) => panic!("{model} ended"),
                Ok(_) => reads += 1,
                Err(error) => assert_eq!(error.kind(), ErrorKind::WouldBlock, "{model}"),
            }
        }
        assert!(reads >= least && (least > 0 || reads == 0), "{model}: {reads} reads");
    }
    let begin = Instant::now();
    drop(lane);
    assert!(begin.elapsed() < Duration::from_secs(2), "it stops although clients have just left");
}

#[test]
fn the_log_keeps_what_was_sent_and_hides_the_key() {
    let lane = FakeLane::start().unwrap();
    send(&lane.base_url(), "POST", "/chat/completions?api-version=1&key=sk-other", "{\"model\": \"fake-ok\"}");
    send(&lane.base_url(), "GET", "/models", "");
    let seen = lane.seen();
    assert_eq!((seen.len(), seen[0].method.as_str(), seen[1].target.as_str()), (2, "POST", "/v1/models"));
    assert_eq!(seen[0].target, "/v1/chat/completions?api-version=1&key=(hidden)");
    assert_eq!(seen[0].body, "{\"model\": \"fake-ok\"}");
    assert_eq!((seen[0].header("authorization"), seen[0].header("content-length")), (Some("(hidden)"), Some("20")));
    assert!(seen[0].carried("sk-secret") && !seen[0].carried("sk-wrong") && seen[0].has_credential());
    assert!(!format!("{seen:?}").contains("sk-"));
}

#[test]
fn every_fake_model_is_listed() {
    let lane = FakeLane::start().unwrap();
    let (text, _) = send(&lane.base_url(), "GET", "/models", "");
    let list: Value = serde_json::from_str(text.split("\r\n\r\n").nth(1).unwrap()).unwrap();
    assert_eq!(list["data"].as_array().unwrap().len(), FAKE_MODELS.len());
    assert!(FAKE_MODELS.iter().all(|(name, _)| text.contains(&format!("\"{name}\""))));
}

/// A burst of eight with two retries, as its client sees it: class and retries of each attempt, sorted.
fn burst(lane: &DemoLane, nonce: u64) -> Vec<(String, u32)> {
    std::thread::scope(|scope| {
        let attempts: Vec<_> = (0..8).map(|i| scope.spawn(move || attempt(lane, &format!("{nonce}-{i}")))).collect();
        let mut ended: Vec<_> = attempts.into_iter().map(|a| a.join().unwrap()).collect();
        ended.sort();
        ended
    })
}

fn attempt(lane: &DemoLane, prompt: &str) -> (String, u32) {
    let begin = Instant::now();
    for retry in 0.. {
        let (text, _) = chat(&lane.base_url, &lane.model, prompt);
        let class = match status(&text) {
            "200" if !text.contains("[DONE]") => "cut".to_owned(),
            "200" if Scale::DEMO.simulated(begin.elapsed()) > FLOOR => "too_slow".to_owned(),
            "200" => "pass".to_owned(),
            other => other.to_owned(),
        };
        if retry == 2 || ["pass", "too_slow"].contains(&class.as_str()) {
            return (class, retry);
        }
        let wait = text.lines().find_map(|line| line.strip_prefix("retry-after-ms: ")).unwrap_or("20");
        std::thread::sleep(Duration::from_millis(wait.parse().unwrap()));
    }
    unreachable!("the loop ends with its third try")
}

#[test]
fn one_seed_gives_the_same_counts_each_time_on_every_lane_of_the_demo() {
    let run = |nonce| {
        let demo = DemoLanes::start(7, Scale::DEMO).unwrap();
        let mut counts = Vec::new();
        for window in ["09:00", "16:00"] {
            demo.set_moment(Moment::parse(0, window).unwrap());
            counts.push(std::thread::scope(|scope| {
                let lanes: Vec<_> = demo.lanes().iter().map(|lane| scope.spawn(move || burst(lane, nonce))).collect();
                lanes.into_iter().map(|lane| lane.join().unwrap()).collect::<Vec<_>>()
            }));
        }
        demo.stop();
        counts
    };
    let first = run(1);
    // Other nonces, other arrival orders: the same counts.
    assert_eq!(first, run(2));
    let passes = |burst: &[(String, u32)]| burst.iter().filter(|(class, _)| class == "pass").count();
    assert!((2..=4).contains(&passes(&first[1][0])), "{:?}", first[1][0]);
    assert_eq!((passes(&first[1][2]), passes(&first[1][3])), (8, 8), "{:?}", first[1]);
}

#[test]
fn the_demo_has_a_lane_of_each_kind_that_says_it_is_simulated() {
    let demo = DemoLanes::start(1, Scale::DEMO).unwrap();
    let kinds: Vec<_> = demo.lanes().iter().map(|lane| lane.kind).collect();
    assert_eq!(kinds, peaklane_core::lane::Kind::ALL);
    for lane in demo.lanes() {
        let (text, _) = send(&lane.base_url, "GET", "/models", "");
        assert!(text.contains("x-peaklane-simulated: 1") && text.contains(&format!("\"sim-{}\"", lane.kind)), "{text}");
    }
    let paid = &demo.lanes()[2];
    let body = json!({"model": paid.model, "messages": [{"role": "user", "content": "x"}]}).to_string();
    let (text, _) = send(&paid.base_url, "POST", "/chat/completions", &body);
    assert!(text.contains(ANSWER_CONTAINS), "{text}");
}
