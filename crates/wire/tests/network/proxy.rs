//! Forwarding proxies over real sockets. The lanes are called `lane.test`, a name that no resolver knows (RFC 6761), so
//! that whatever answers was reached by the proxy.

use std::sync::{Arc, Mutex};

use peaklane_core::lane::Api;
use peaklane_core::outcome::Outcome;
use peaklane_core::record::TryRecord;
use peaklane_testkit::io::{BoxIo, NoReset};
use peaklane_wire::client::Limits;
use peaklane_wire::proxy_env::Proxies;
use tokio::io::AsyncWriteExt;
use tokio::net::TcpStream;
use tokio_rustls::TlsAcceptor;

use crate::certificates::Authority;
use crate::lane::{KEY, Request, ms, request, response, say, streamed, target};
use crate::sockets::{Server, client};
use crate::support::{body, generous};

type Heads = Arc<Mutex<Vec<String>>>;

/// `user:p@ss` in base64, by `printf 'user:p@ss' | base64`.
const CREDENTIALS: &str = "dXNlcjpwQHNz";

/// What the environment says.
fn environment(pairs: &[(&str, String)]) -> Proxies {
    let pairs: Vec<(String, String)> = pairs.iter().map(|(n, v)| ((*n).to_owned(), v.clone())).collect();
    Proxies::from_env(|name| pairs.iter().find(|(n, _)| n == name).map(|(_, v)| v.clone())).unwrap()
}

/// Serves one connection of a proxy that connects to `to` whatever is asked for, if the credentials are right.
async fn tunnel(mut io: BoxIo, to: u16, heads: Heads) {
    let Some(asked) = request(&mut io).await else { return };
    heads.lock().unwrap().push(asked.head.clone());
    if asked.header("proxy-authorization") != Some(&format!("Basic {CREDENTIALS}")) {
        let echo = asked.header("proxy-authorization").unwrap_or_default().to_owned();
        return say(&mut io, format!("HTTP/1.1 407 Proxy Authentication Required {echo}\r\n\r\n")).await;
    }
    say(&mut io, "HTTP/1.1 200 Connection established\r\nVia: test\r\n\r\n").await;
    let mut lane = TcpStream::connect(("127.0.0.1", to)).await.unwrap();
    let _ = tokio::io::copy_bidirectional(&mut io, &mut lane).await;
    let _ = io.shutdown().await;
}

fn hides_credentials(record: &TryRecord) {
    let shown = format!("{record:?}");
    for secret in [CREDENTIALS, "p@ss", "wr0ng", KEY] {
        assert!(!shown.contains(secret), "{secret}: {shown}");
    }
}

async fn tried(proxies: Proxies, ca: Option<&Authority>, base: &str, limits: &Limits) -> TryRecord {
    let client = client(ca.map(Authority::file).as_deref(), proxies);
    client.try_once(&target(base), &body(Api::Chat, true), None, limits).await.record
}

#[tokio::test]
async fn a_plain_lane_is_asked_for_by_its_whole_address_and_the_proxy_gets_its_credentials() {
    let seen: Arc<Mutex<Vec<Request>>> = Arc::default();
    let log = Arc::clone(&seen);
    let proxy = Server::start(move |stream, _| {
        let log = Arc::clone(&log);
        async move {
            let mut io: BoxIo = Box::new(stream);
            while let Some(asked) = request(&mut io).await {
                log.lock().unwrap().push(asked);
                say(&mut io, streamed("hello")).await;
            }
        }
    })
    .await;
    let proxies = environment(&[("HTTP_PROXY", format!("http://user:p%40ss@127.0.0.1:{}", proxy.port))]);
    let client = client(None, proxies);
    for reused in [false, true] {
        let lane = target("http://lane.test:8000/api?version=2");
        let record = client.try_once(&lane, &body(Api::Chat, true), None, &generous()).await.record;
        assert_eq!((record.outcome, record.content.as_str()), (Outcome::Ok, "hello"), "{:?}", record.message);
        assert_eq!((record.handshake.reused, record.handshake.dns_us), (reused, None));
        hides_credentials(&record);
    }
    let seen = seen.lock().unwrap();
    assert_eq!((seen.len(), proxy.accepted()), (2, 1));
    for asked in seen.iter() {
        let line = asked.head.lines().next();
        assert_eq!(line, Some("POST http://lane.test:8000/api/chat/completions?version=2 HTTP/1.1"));
        assert_eq!(asked.header("host"), Some("lane.test:8000"));
        assert_eq!(asked.header("proxy-authorization"), Some(format!("Basic {CREDENTIALS}").as_str()));
        assert_eq!(asked.header("authorization"), Some(format!("Bearer {KEY}").as_str()));
    }
}

#[tokio::test]
async fn an_https_lane_is_reached_through_connect_and_its_key_is_seen_by_the_lane_alone() {
    let authority = Authority::new();
    let (lane_saw, proxy_saw): (Heads, Heads) = Default::default();
    let log = Arc::clone(&lane_saw);
    let lane = Server::tls(authority.server(&["lane.test"], &["http/1.1"]), move |mut io, _| {
        let log = Arc::clone(&log);
        async move {
            while let Some(asked) = request(&mut io).await {
                log.lock().unwrap().push(asked.head);
                say(&mut io, streamed("hello")).await;
            }
        }
    })
    .await;
    let (to, log) = (lane.port, Arc::clone(&proxy_saw));
    let plain = Server::start(move |stream, _| tunnel(Box::new(stream), to, Arc::clone(&log))).await;
    let log = Arc::clone(&proxy_saw);
    // A proxy that would speak HTTP/2 itself is not offered it: CONNECT here is HTTP/1.1.
    let acceptor = TlsAcceptor::from(authority.server(&["localhost"], &["h2", "http/1.1"]));
    let secure = Server::start(move |stream, _| {
        let (acceptor, log) = (acceptor.clone(), Arc::clone(&log));
        async move {
            let io = acceptor.accept(stream).await.unwrap();
            if io.get_ref().1.alpn_protocol() == Some(b"http/1.1") {
                tunnel(Box::new(NoReset(io)), to, log).await;
            }
        }
    })
    .await;
    let addresses = [
        format!("http://user:p%40ss@127.0.0.1:{}", plain.port),
        format!("https://user:p%40ss@localhost:{}", secure.port),
    ];
    for address in addresses {
        let proxies = environment(&[("https_proxy", address.clone()), ("HTTP_PROXY", "http://127.0.0.1:1".into())]);
        let record = tried(proxies, Some(&authority), "https://lane.test", &generous()).await;
        assert_eq!((record.outcome, record.content.as_str()), (Outcome::Ok, "hello"), "{:?}", record.message);
        assert!(record.handshake.tls_us.is_some_and(|us| us > 0) && record.handshake.connect_us.is_some());
        hides_credentials(&record);
    }
    for head in proxy_saw.lock().unwrap().iter() {
        assert!(head.starts_with("CONNECT lane.test:443 HTTP/1.1\r\n") && !head.contains(KEY), "{head}");
    }
    let lane_saw = lane_saw.lock().unwrap();
    assert_eq!((lane_saw.len(), proxy_saw.lock().unwrap().len()), (2, 2));
    for head in lane_saw.iter() {
        assert!(head.starts_with("POST /v1/chat/completions HTTP/1.1\r\n") && head.contains(KEY));
        assert!(!head.to_ascii_lowercase().contains("proxy-"), "the proxy's credentials went to the lane");
    }
}

#[tokio::test]
async fn http2_works_behind_a_tunnel() {
    let authority = Authority::new();
    let lane = Server::tls(authority.server(&["lane.test"], &["h2"]), |io, _| async move {
        let mut connection = h2::server::handshake(io).await.unwrap();
        while let Some(Ok((_, mut respond))) = connection.accept().await {
            let head = http::Response::builder().status(429).header("retry-after", "3").body(()).unwrap();
            respond.send_response(head, true).unwrap();
        }
    })
    .await;
    let (to, heads) = (lane.port, Heads::default());
    let proxy = Server::start(move |stream, _| tunnel(Box::new(stream), to, Arc::clone(&heads))).await;
    let proxies = environment(&[("ALL_PROXY", format!("user:p%40ss@127.0.0.1:{}", proxy.port))]);
    let record = tried(proxies, Some(&authority), "https://lane.test", &generous()).await;
    assert_eq!(
        (record.outcome, record.http_version.as_deref()),
        (Outcome::RateLimited, Some("2")),
        "{:?}",
        record.message
    );
    assert_eq!(record.retry_after_ms, Some(3_000));
}

#[tokio::test]
async fn a_proxy_that_refuses_is_named_with_its_reason_and_without_its_password() {
    let heads = Heads::default();
    let asking = Server::start(move |stream, _| tunnel(Box::new(stream), 1, Arc::clone(&heads))).await;
    let refusing = Server::start(|stream, _| async move {
        let mut io: BoxIo = Box::new(stream);
        request(&mut io).await;
        say(&mut io, "HTTP/1.1 403 Forbidden by policy\r\nContent-Length: 0\r\n\r\n").await;
    })
    .await;
    let closing = Server::start(|stream, _| async move { drop(stream) }).await;
    let endless =
        Server::start(|mut stream, _| async move { while stream.write_all(&[b'x'; 4096]).await.is_ok() {} }).await;
    for (proxy, reason) in [
        (&asking, "407 Proxy Authentication Required Basic (credentials)"),
        (&refusing, "403 Forbidden by policy"),
        (&closing, ""),
        (&endless, "an answer without end"),
    ] {
        let address = format!("127.0.0.1:{}", proxy.port);
        let proxies = environment(&[("HTTPS_PROXY", format!("http://user:wr0ng@{address}"))]);
        let record = tried(proxies, None, "https://lane.test", &generous()).await;
        assert_eq!(record.outcome, Outcome::Unreachable);
        let message = record.message.clone().unwrap_or_default();
        let begin = format!("the proxy {address} does not connect to lane.test:443: ");
        assert!(message.starts_with(&begin) && message.contains(reason), "{message}");
        hides_credentials(&record);
        assert!(!message.contains("dXNlcjp3cjBuZw"), "{message}");
        assert_eq!(proxy.accepted(), 1);
    }
}

#[tokio::test]
async fn a_proxy_that_is_not_there_or_never_answers_is_told_as_the_proxys_fault() {
    let gone = std::net::TcpListener::bind(("127.0.0.1", 0)).unwrap().local_addr().unwrap();
    for base in ["https://lane.test", "http://lane.test"] {
        let proxies = environment(&[("ALL_PROXY", format!("http://user:p%40ss@{gone}"))]);
        let record = tried(proxies, None, base, &generous()).await;
        assert_eq!(record.outcome, Outcome::Unreachable);
        let message = record.message.clone().unwrap_or_default();
        assert!(message.starts_with(&format!("the proxy {gone} does not connect to lane.test:")), "{message}");
        hides_credentials(&record);
    }
    let silent = Server::start(|stream, _| async move {
        crate::lane::silence().await;
        drop(stream);
    })
    .await;
    let proxies = environment(&[("ALL_PROXY", format!("http://127.0.0.1:{}", silent.port))]);
    let limits = Limits { total: ms(200), ..Limits::default() };
    let record = tried(proxies, None, "https://lane.test", &limits).await;
    assert_eq!(record.outcome, Outcome::Unreachable);
    assert!(record.message.is_some_and(|m| m.contains("within 200 ms")));
}

#[tokio::test]
async fn a_plain_proxy_that_wants_other_credentials_is_a_refused_key_and_echoes_nothing() {
    let proxy = Server::start(|stream, _| async move {
        let mut io: BoxIo = Box::new(stream);
        while let Some(asked) = request(&mut io).await {
            let page = format!("you sent {}", asked.header("proxy-authorization").unwrap_or_default());
            say(&mut io, response("407 Proxy Authentication Required", "", page)).await;
        }
    })
    .await;
    let proxies = environment(&[("HTTP_PROXY", format!("http://user:p%40ss@127.0.0.1:{}", proxy.port))]);
    let record = tried(proxies, None, "http://lane.test", &generous()).await;
    assert_eq!((record.outcome, record.http_status), (Outcome::Auth, Some(407)));
    hides_credentials(&record);
}

#[tokio::test]
async fn exempt_hosts_and_loopback_are_reached_without_the_proxy() {
    let lane = Server::start(|stream, _| crate::sockets::hello(Box::new(stream))).await;
    let proxy = Server::start(|stream, _| async move { drop(stream) }).await;
    let all = ("ALL_PROXY", format!("http://127.0.0.1:{}", proxy.port));
    for host in ["localhost", "127.0.0.1"] {
        let base = format!("http://{host}:{}", lane.port);
        let record = tried(environment(std::slice::from_ref(&all)), None, &base, &generous()).await;
        assert_eq!((record.outcome, record.content.as_str()), (Outcome::Ok, "hello"), "{:?}", record.message);
    }
    // 192.0.2.0/24 is for documentation (RFC 5737): nothing answers there.
    let limits = Limits { total: ms(150), ..Limits::default() };
    let exempt = environment(&[all.clone(), ("NO_PROXY", "other.test,192.0.2.0/24".into())]);
    let record = tried(exempt, None, "http://192.0.2.7", &limits).await;
    assert_eq!(record.outcome, Outcome::Unreachable);
    assert_eq!((proxy.accepted(), record.message.is_some_and(|m| m.contains("192.0.2.7"))), (0, true));
    let record = tried(environment(&[all]), None, "http://192.0.2.7", &limits).await;
    assert_eq!((proxy.accepted(), record.outcome), (1, Outcome::ConnReset));
}
