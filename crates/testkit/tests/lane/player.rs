//! The scripted lane seen by a client written by hand: raw bytes and exact moments.

use std::io::ErrorKind;
use std::time::{Duration, SystemTime};

use crate::raw::{End, Exchange, hex_sha256, post, tcp_exchange};
use peaklane_testkit::case::{Answer, Case, CaseApi, Close, CloseHow, Framing, stream_cases};
use peaklane_testkit::log::Received;
use peaklane_testkit::net::{CASE_PORT, CaseServer, MemoryNet};
use peaklane_testkit::player::CasePlayer;
use tokio::io::{AsyncReadExt, AsyncWriteExt};

/// When each byte count should have arrived, by the case alone.
fn expected_arrivals(answer: &Answer) -> Vec<f64> {
    let mut at: Vec<f64> = Vec::new();
    if answer.status.is_some() {
        at.push(answer.head_at_ms());
    }
    at.extend(answer.steps.iter().map(|s| s.at_ms));
    let ends_with_a_chunk =
        answer.framing == Framing::Chunked && answer.close.how == CloseHow::Clean && answer.status.is_some();
    if ends_with_a_chunk && let Some(close) = answer.close.at_ms {
        at.push(close);
    }
    at.dedup();
    at
}

/// When an answer is over, by the case alone.
fn ends_at(answer: &Answer) -> f64 {
    answer.close.at_ms.or(answer.steps.last().map(|s| s.at_ms)).unwrap_or(0.0)
}

#[tokio::test(start_paused = true)]
async fn every_case_plays_to_its_end_at_exact_moments() {
    let mut hashed = 0;
    for mut case in stream_cases() {
        case.routes.clear(); // they have tests of their own; here the counted answers are wanted
        let player = CasePlayer::new(vec![case.clone()]);
        let net = MemoryNet::with_cases(&player);
        for n in 0..case.answers().len() {
            let answer = case.answer(n);
            let mut io = net.connect("127.0.0.1", CASE_PORT).unwrap();
            let sent = post(&format!("/case/{}/v1/x", case.id), "{}");
            let got = Exchange::run(&mut io, &sent).await;
            let id = &case.id;
            let empty = answer.framing != Framing::Chunked && answer.steps.iter().any(|s| s.bytes.is_empty());
            if !empty {
                assert_eq!(got.arrivals(), expected_arrivals(answer), "{id}: arrivals");
            }
            let ends_at = ends_at(answer);
            match answer.close.how {
                CloseHow::Rst => assert_eq!(got.end, End::Error(ErrorKind::ConnectionReset, ends_at), "{id}"),
                CloseHow::Fin => assert_eq!(got.end, End::Eof(ends_at), "{id}"),
                CloseHow::Clean if answer.framing == Framing::Close => assert_eq!(got.end, End::Eof(ends_at), "{id}"),
                CloseHow::Clean => assert_eq!(got.end, End::StillOpen, "{id}"),
            }
            let Some(status) = answer.status else {
                assert!(got.bytes().is_empty(), "{id}: no head was to be sent");
                continue;
            };
            let (head, body) = got.head_and_body(answer.framing);
            assert!(head.starts_with(&format!("HTTP/1.1 {status} ")), "{id}: {head}");
            assert_eq!(body, answer.body(), "{id}: body");
            let entry: Received = player.log().of(id).pop().unwrap();
            assert_eq!(entry.worst_late_ms, 0.0, "{id}: a paused clock is never late");
            assert_eq!(entry.sent_ms, answer.steps.iter().map(|s| s.at_ms).collect::<Vec<_>>(), "{id}");
        }
        let last = case.answers().last().unwrap();
        let Some(truth) = &case.proxy else { continue };
        hashed += 1;
        assert_eq!(last.body().len() as u64, truth.body_len, "{}", case.id);
        assert_eq!(hex_sha256(&last.body()), truth.body_sha256, "{}", case.id);
    }
    assert!(hashed > 0, "no case says what its body is");
}

#[test]
fn every_case_plays_over_a_real_socket_with_the_bytes_that_its_hash_names() {
    let mut cases = stream_cases();
    cases.retain(|c| c.proxy.is_some() && c.answers().iter().all(|a| a.status.is_some() && ends_at(a) < 500.0));
    cases.iter_mut().for_each(|c| c.routes.clear());
    assert!(!cases.is_empty());
    let server = CaseServer::with(cases.clone()).unwrap();
    for chunk in cases.chunks(8) {
        std::thread::scope(|scope| {
            for case in chunk {
                let port = server.port();
                scope.spawn(move || {
                    let mut got = tcp_exchange(port, &post(&format!("/case/{}/v1/x", case.id), "{}"));
                    for _ in 1..case.answers().len() {
                        got = tcp_exchange(port, &post(&format!("/case/{}/v1/x", case.id), "{}"));
                    }
                    let last = case.answers().last().unwrap();
                    let (_, body) = got.head_and_body(last.framing);
                    let truth = case.proxy.as_ref().unwrap();
                    assert_eq!(body.len() as u64, truth.body_len, "{}", case.id);
                    assert_eq!(hex_sha256(&body), truth.body_sha256, "{}", case.id);
                    match last.close.how {
                        CloseHow::Rst => assert!(
                            matches!(got.end, End::Error(ErrorKind::ConnectionReset, _)),
                            "{}: {:?}",
                            case.id,
                            got.end
                        ),
                        CloseHow::Fin => assert!(matches!(got.end, End::Eof(_)), "{}: {:?}", case.id, got.end),
                        CloseHow::Clean => {}
                    }
                });
            }
        });
    }
    for case in &cases {
        let wanted: Vec<u64> = case.answers().iter().map(|a| a.body().len() as u64).collect();
        let sent = || server.log().of(&case.id).iter().map(|e| e.sent_bytes).collect::<Vec<_>>();
        // the server writes its log after the bytes, on its own thread
        for _ in 0..200 {
            if sent() == wanted {
                break;
            }
            std::thread::sleep(Duration::from_millis(5));
        }
        assert_eq!(sent(), wanted, "{}", case.id);
    }
}

fn two_hundreds() -> Vec<Case> {
    vec![
        Case::scripted("a", CaseApi::Chat, vec![Answer::json(503, 10.0, "first"), Answer::json(200, 20.0, "second")]),
        Case::scripted("b", CaseApi::Chat, vec![Answer::events([(5.0, "data: x\n\n"), (7.0, "data: y\n\n")])]),
    ]
}

#[tokio::test(start_paused = true)]
async fn a_kept_connection_carries_several_requests_and_each_has_its_own_time_zero() {
    let player = CasePlayer::new(two_hundreds());
    let net = MemoryNet::with_cases(&player);
    let mut io = net.connect("127.0.0.1", CASE_PORT).unwrap();
    for (path, wanted, at) in [("/case/a/v1/x?q=1", "first", 10.0), ("/case/a/v1/x", "second", 20.0)] {
        tokio::time::advance(Duration::from_millis(100)).await;
        let got = Exchange::run(&mut io, &post(path, "{\"n\":1}")).await;
        assert_eq!(got.head_and_body(Framing::Length).1, wanted.as_bytes());
        assert_eq!(got.arrivals(), [at]);
    }
    let log = player.log().of("a");
    assert_eq!(log.iter().map(|e| (e.n, e.connection)).collect::<Vec<_>>(), [(1, 0), (2, 0)]);
    assert_eq!((log[0].path.as_str(), log[0].query.as_str()), ("/v1/x", "q=1"));
    assert_eq!(log[0].json()["n"], 1);
    assert_eq!(player.connections(), 1);
}

#[tokio::test(start_paused = true)]
async fn keys_count_apart_and_a_credential_that_came_along_is_seen() {
    let player = CasePlayer::new(two_hundreds());
    let net = MemoryNet::with_cases(&player);
    for key in ["a@one", "a@two"] {
        let mut io = net.connect("localhost", CASE_PORT).unwrap();
        let with_key =
            post(&format!("/case/{key}/v1/x"), "").replace("Host: h\r\n", "Host: h\r\nX-API-Key: not-a-key\r\n");
        let got = Exchange::run(&mut io, &with_key).await;
        assert_eq!(got.head_and_body(Framing::Length).1, b"first");
        assert_eq!(player.log().of(key)[0].credential(), Some("not-a-key"));
    }
    let mut io = net.connect("localhost", CASE_PORT).unwrap();
    Exchange::run(&mut io, &post("/case/b/v1/x", "")).await;
    assert_eq!(player.log().of("b")[0].credential(), None);
}

#[tokio::test(start_paused = true)]
async fn a_client_that_hangs_up_is_noticed_at_that_moment() {
    let steps = [(5.0, "data: x\n\n"), (300.0, "data: y\n\n"), (600.0, "data: z\n\n")];
    let player = CasePlayer::new(vec![Case::scripted("slow", CaseApi::Chat, vec![Answer::events(steps)])]);
    let net = MemoryNet::with_cases(&player);
    let mut io = net.connect("127.0.0.1", CASE_PORT).unwrap();
    io.write_all(post("/case/slow/v1/x", "").as_bytes()).await.unwrap();
    tokio::time::sleep(Duration::from_millis(42)).await;
    drop(io);
    tokio::time::sleep(Duration::from_secs(1)).await;
    let entry = &player.log().of("slow")[0];
    assert_eq!(entry.client_closed_ms, Some(42.0));
    assert!(entry.sent_ms.len() < 3, "nothing is written to a closed connection for long: {:?}", entry.sent_ms);
}

#[tokio::test(start_paused = true)]
async fn dates_and_addresses_are_filled_in_and_the_other_host_is_the_same_server() {
    let mut answer = Answer::json(307, 1.0, "");
    answer.headers = vec![
        ("Location".to_owned(), "{other}/v1/y".to_owned()),
        ("X-Base".to_owned(), "<{base}>".to_owned()),
        ("Retry-After".to_owned(), "{http_date:+20}".to_owned()),
    ];
    // 2015-10-21 07:28:00 UTC is 1445412480
    let wall = SystemTime::UNIX_EPOCH + Duration::from_millis(1_445_412_480_900);
    let case = Case::scripted("go", CaseApi::Chat, vec![answer]);
    let player = CasePlayer::with_wall_clock(vec![case], move || wall);
    let net = MemoryNet::with_cases(&player);
    assert_eq!(player.base_url("go@1"), "http://127.0.0.1:8099/case/go@1/v1");
    let mut io = net.connect("127.0.0.1", CASE_PORT).unwrap();
    let got = Exchange::run(&mut io, &post("/case/go@1/v1/x", "")).await;
    let (head, _) = got.head_and_body(Framing::Length);
    assert!(head.contains("Location: http://localhost:8099/case/go@1/v1/y\r\n"), "{head}");
    assert!(head.contains("X-Base: <http://127.0.0.1:8099/case/go@1>\r\n"), "{head}");
    assert!(head.contains("Retry-After: Wed, 21 Oct 2015 07:28:20 GMT\r\n"), "{head}");
    assert!(net.connect("localhost", CASE_PORT).is_ok());
    assert_eq!(net.connect("localhost", 1).unwrap_err().kind(), ErrorKind::ConnectionRefused);
    assert_eq!(net.connect("elsewhere", CASE_PORT).unwrap_err().kind(), ErrorKind::NotFound);
}

#[tokio::test(start_paused = true)]
async fn a_body_may_be_shorter_than_its_length_says_and_then_the_connection_ends() {
    let mut answer = Answer::json(200, 10.0, "{\"cut\":");
    answer.content_length = Some(100);
    answer.close = Close { how: CloseHow::Fin, at_ms: Some(50.0) };
    let player = CasePlayer::new(vec![Case::scripted("cut", CaseApi::Chat, vec![answer])]);
    let net = MemoryNet::with_cases(&player);
    let mut io = net.connect("127.0.0.1", CASE_PORT).unwrap();
    let got = Exchange::run(&mut io, &post("/case/cut/v1/x", "")).await;
    let (head, body) = got.head_and_body(Framing::Length);
    assert!(head.contains("Content-Length: 100\r\n"), "{head}");
    assert_eq!(body, b"{\"cut\":");
    assert_eq!(got.end, End::Eof(50.0));
}

#[tokio::test(start_paused = true)]
async fn many_clients_at_once_each_see_exact_moments() {
    let player = CasePlayer::new(two_hundreds());
    let net = MemoryNet::with_cases(&player);
    let mut clients = tokio::task::JoinSet::new();
    for k in 0..32u64 {
        let net = net.clone();
        clients.spawn(async move {
            tokio::time::sleep(Duration::from_millis(k)).await;
            let mut io = net.connect("127.0.0.1", CASE_PORT).unwrap();
            Exchange::run(&mut io, &post("/case/b/v1/x", "")).await.arrivals()
        });
    }
    while let Some(arrivals) = clients.join_next().await {
        assert_eq!(arrivals.unwrap(), [5.0, 7.0]);
    }
    assert_eq!(player.connections(), 32);
}

#[tokio::test(start_paused = true)]
async fn an_unknown_case_is_a_404_and_leaves_no_entry() {
    let player = CasePlayer::new(two_hundreds());
    let net = MemoryNet::with_cases(&player);
    let mut io = net.connect("127.0.0.1", CASE_PORT).unwrap();
    io.write_all(post("/case/nobody/v1/x", "").as_bytes()).await.unwrap();
    let mut start = [0; 12];
    io.read_exact(&mut start).await.unwrap();
    assert_eq!(&start, b"HTTP/1.1 404");
    assert!(player.log().all().is_empty());
}
