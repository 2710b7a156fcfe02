//! What may happen to the program: kill, a taken port, a full disk, two of them on one store, secrets.

use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};

use peaklane_testkit::case::{Answer, Case, CaseApi};
use peaklane_testkit::net::CaseServer;

use crate::support::{Proxy, body_of, post, sandbox, summary};

const STREAM: &str = "data: {\"choices\":[{\"delta\":{\"content\":\"hi\"},\"finish_reason\":\"stop\"}]}\n\n";

fn server(at_ms: f64) -> CaseServer {
    let answer = Answer::events([(at_ms, STREAM), (at_ms + 1.0, "data: [DONE]\n\n")]);
    CaseServer::with(vec![Case::scripted("a", CaseApi::Chat, vec![answer])]).unwrap()
}

fn chat(session: &str, text: &str) -> Vec<u8> {
    let body =
        format!("{{\"model\":\"m\",\"stream\":true,\"messages\":[{{\"role\":\"user\",\"content\":\"{text}\"}}]}}");
    post(&format!("/s/{session}/v1/chat/completions"), &body)
}

#[test]
fn what_was_committed_before_a_kill_is_there_and_nothing_is_doubled() {
    let (server, sandbox) = (server(0.0), sandbox());
    let proxy = Proxy::start(&sandbox, &server.base_url("a"), &[]);
    for n in 0..40 {
        assert!(!body_of(&proxy.talk(&chat("s", &n.to_string()))).is_empty());
    }
    // Long enough for one batch; what came after it may be lost.
    let path = sandbox.path().join("peaklane.db");
    let recorded = || {
        let mut n = 0;
        let reader = peaklane_store::StoreReader::open(&path).unwrap();
        reader.calls(&peaklane_store::CallFilter::default(), |_| n += 1).unwrap();
        n
    };
    while recorded() == 0 {
        std::thread::sleep(std::time::Duration::from_millis(10));
    }
    let before = recorded();
    proxy.running.kill();
    let calls = summary(&sandbox, &["calls"]);
    assert!(calls.len() >= before && calls.len() <= 40);
    let mut ids: Vec<&str> = calls.iter().map(|c| c["id"].as_str().unwrap()).collect();
    ids.dedup();
    assert_eq!(ids.len(), calls.len());
}

#[test]
fn two_proxies_share_a_store_and_a_port_that_is_taken_is_told() {
    let (server, sandbox) = (server(0.0), sandbox());
    let one = Proxy::start(&sandbox, &server.base_url("a"), &[]);
    let two = Proxy::start(&sandbox, &server.base_url("a"), &[]);
    let base = server.base_url("a");
    let third = sandbox.run(["proxy", "--listen", &one.address, "--upstream", &base]).expect_code(2);
    assert!(third.stderr.contains("cannot listen on") && third.stderr.contains("hint: "), "{}", third.stderr);
    for n in 0..10 {
        one.talk(&chat("shared", &n.to_string()));
        two.talk(&chat("shared", &n.to_string()));
    }
    one.stop().expect_code(0);
    two.stop().expect_code(0);
    let sessions = summary(&sandbox, &["sessions"]);
    assert_eq!(sessions[0]["calls"], 20);
}

#[test]
fn a_stop_waits_for_the_stream_at_hand_and_the_farewell_counts_it() {
    let (server, sandbox) = (server(600.0), sandbox());
    let proxy = Proxy::start(&sandbox, &server.base_url("a"), &[]);
    let mut stream = TcpStream::connect(&proxy.address).unwrap();
    stream.write_all(&chat("s", "x")).unwrap();
    while server.log().all().is_empty() {
        std::thread::sleep(std::time::Duration::from_millis(2));
    }
    proxy.running.signal("TERM");
    let mut answer = Vec::new();
    stream.read_to_end(&mut answer).unwrap();
    assert!(String::from_utf8_lossy(&body_of(&answer)).ends_with("data: [DONE]\n\n"));
    let ran = proxy.running.wait().expect_code(0);
    assert!(ran.stderr.contains("1 call passed"), "{}", ran.stderr);
    assert_eq!(summary(&sandbox, &["calls"]).len(), 1);
}

#[test]
fn a_full_disk_loses_records_and_says_so_and_the_streams_go_on() {
    let (server, sandbox) = (server(0.0), sandbox());
    // A store first, so that the limit meets the records and not the making of the file.
    Proxy::start(&sandbox, &server.base_url("a"), &[]).stop().expect_code(0);
    // Room for the file as it is and some calls more, in blocks of 512 bytes, as POSIX counts.
    let size = std::fs::metadata(sandbox.path().join("peaklane.db")).unwrap().len();
    let script = format!(
        "ulimit -f {}; exec {} proxy --listen 127.0.0.1:0 --upstream {}",
        (size + (128 << 10)) / 512,
        crate::support::BINARY,
        server.base_url("a")
    );
    let shell = peaklane_testkit::binary::Sandbox::new("/bin/sh").limit(std::time::Duration::from_secs(120));
    std::fs::copy(sandbox.path().join("peaklane.db"), shell.path().join("peaklane.db")).unwrap();
    let mut running = shell.start(["-c", &script]);
    let address = running.wait_for_line("listening on http://");
    let proxy = Proxy { running, address };
    let long = "x".repeat(2_000);
    for n in 0..300 {
        let answer = proxy.talk(&chat(&format!("session-{n}-{}", &long[..60]), &long));
        assert!(String::from_utf8_lossy(&body_of(&answer)).ends_with("data: [DONE]\n\n"), "call {n}");
    }
    let metrics = proxy.talk(b"GET /metrics HTTP/1.1\r\nHost: p\r\n\r\n");
    assert!(String::from_utf8_lossy(&metrics).contains("peaklane_proxy_calls_total{"));
    let ran = proxy.stop().expect_code(0);
    assert!(ran.stderr.contains("could not be recorded: cannot write"), "{}", ran.stderr);
    assert!(ran.stderr.contains("300 calls passed"), "{}", ran.stderr);
}

#[test]
fn keys_of_clients_and_of_the_proxy_are_in_no_output_and_no_file() {
    let (server, sandbox) =
        (server(0.0), sandbox().env("PROXY_TOKEN", "token-hush-hush-4711").env("UP_KEY", "sk-up-hush-hush-4711"));
    let more = ["--token-env", "PROXY_TOKEN", "--inject-keys", "--key-env", "UP_KEY", "--keep-bodies", "bodies", "-v"];
    let proxy = Proxy::start(&sandbox, &server.base_url("a"), &more);
    let with = |key: &str| {
        let request = String::from_utf8(chat("s", "use sk-inside-hush-hush-4711 please")).unwrap();
        proxy.talk(request.replace("Host: p", &format!("Host: p\r\nAuthorization: Bearer {key}")).as_bytes())
    };
    assert!(String::from_utf8_lossy(&with("wrong")).starts_with("HTTP/1.1 401 "));
    assert!(!body_of(&with("token-hush-hush-4711")).is_empty());
    proxy.stop().expect_code(0);
    summary(&sandbox, &["sessions", "bodies/s.jsonl"]);
    let sent = server.log().all();
    assert_eq!(sent.len(), 1);
    assert_eq!(sent[0].header("authorization"), Some("Bearer sk-up-hush-hush-4711"));
    for secret in ["token-hush-hush-4711", "sk-up-hush-hush-4711", "sk-inside-hush-hush-4711"] {
        sandbox.assert_never_said(secret, &[]);
    }
}

#[test]
fn what_would_be_open_to_everybody_is_refused() {
    let sandbox = sandbox().env("UP_KEY", "sk-up-hush-hush-4711");
    let upstream = ["--upstream", "http://127.0.0.1:9/v1"];
    let wide = sandbox.run([&["proxy", "--listen", "0.0.0.0:0"][..], &upstream].concat()).expect_code(2);
    assert!(wide.stderr.contains("has no token") && wide.stderr.contains("--token-env"), "{}", wide.stderr);
    let open = sandbox.run([&["proxy", "--inject-keys", "--key-env", "UP_KEY"][..], &upstream].concat()).expect_code(2);
    assert!(open.stderr.contains("--token-env"), "{}", open.stderr);
    let none = sandbox.run(["proxy"]).expect_code(2);
    assert!(none.stderr.contains("no upstream") && none.stderr.contains("hint: "), "{}", none.stderr);
    let taken = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = taken.local_addr().unwrap().to_string();
    sandbox.run([&["proxy", "--listen", &address][..], &upstream].concat()).expect_code(2);
    let (base, by_name) = (format!("http://{address}/v1"), address.replace("127.0.0.1", "localhost"));
    let itself = sandbox.run(["proxy", "--listen", &by_name, "--upstream", &base]).expect_code(2);
    assert!(itself.stderr.contains("is the proxy itself"), "{}", itself.stderr);
    assert!(!sandbox.path().join("peaklane.db").exists(), "nothing was made by those that could not begin");
}
