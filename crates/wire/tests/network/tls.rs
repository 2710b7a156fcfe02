//! TLS over real sockets, with an authority of our own.

use std::time::Duration;

use bytes::Bytes;
use peaklane_core::outcome::Outcome;
use peaklane_core::record::TryRecord;
use peaklane_wire::client::{Client, Limits};
use peaklane_wire::net::Network;
use peaklane_wire::proxy_env::Proxies;
use tokio::io::{AsyncReadExt, AsyncWriteExt};

use crate::certificates::Authority;
use crate::lane::{STREAM, chunk, ending, event, ms, request, say, silence, target};
use crate::sockets::{Server, client};
use crate::support::{body, generous};

async fn tried(client: &Client, base: &str, limits: &Limits) -> TryRecord {
    client.try_once(&target(base), &body(peaklane_core::lane::Api::Chat, true), None, limits).await.record
}

fn unreachable(record: &TryRecord, words: &[&str]) {
    assert_eq!(record.outcome, Outcome::Unreachable, "{:?}", record.message);
    let message = record.message.as_deref().unwrap_or_default();
    for word in words {
        assert!(message.contains(word), "`{word}` is not in: {message}");
    }
    assert_eq!((record.http_status, record.first_byte_us), (None, None));
}

#[tokio::test]
async fn a_lane_behind_a_companys_own_authority_answers_once_its_certificate_is_given() {
    let authority = Authority::new();
    let lane = Server::hello(authority.server(&["localhost", "127.0.0.1"], &["http/1.1"])).await;
    let client = client(Some(&authority.file()), Proxies::none());
    for host in ["localhost", "127.0.0.1"] {
        let record = tried(&client, &format!("https://{host}:{}", lane.port), &generous()).await;
        assert_eq!((record.outcome, record.content.as_str()), (Outcome::Ok, "hello"), "{:?}", record.message);
        assert_eq!(record.http_version.as_deref(), Some("1.1"));
        let shake = record.handshake;
        assert!(!shake.reused && shake.connect_us.is_some() && shake.tls_us.is_some_and(|us| us > 0), "{shake:?}");
        assert_eq!(shake.dns_us.is_some(), host == "localhost");
        let again = tried(&client, &format!("https://{host}:{}", lane.port), &generous()).await;
        assert_eq!((again.outcome, again.handshake.reused), (Outcome::Ok, true));
        assert_eq!((again.handshake.connect_us, again.handshake.tls_us), (None, None));
    }
    assert_eq!(lane.accepted(), 2);
}

#[tokio::test]
async fn an_unknown_issuer_another_name_and_an_expired_certificate_are_unreachable_and_said_so() {
    let authority = Authority::new();
    let lane = Server::hello(authority.server(&["lane.test"], &["http/1.1"])).await;
    let base = format!("https://localhost:{}", lane.port);
    let record = tried(&client(None, Proxies::none()), &base, &generous()).await;
    unreachable(&record, &["`localhost`", "issuer", "not trusted", "`ca_file`"]);
    let other = Authority::new();
    let record = tried(&client(Some(&other.file()), Proxies::none()), &base, &generous()).await;
    unreachable(&record, &["issuer", "not trusted"]);
    let record = tried(&client(Some(&authority.file()), Proxies::none()), &base, &generous()).await;
    unreachable(&record, &["not valid for name", "localhost", "lane.test"]);
    let old = Server::hello(authority.expired("localhost")).await;
    let record = tried(
        &client(Some(&authority.file()), Proxies::none()),
        &format!("https://localhost:{}", old.port),
        &generous(),
    )
    .await;
    unreachable(&record, &["expired"]);
}

#[tokio::test]
async fn what_answers_without_tls_on_the_port_is_said_to_speak_none() {
    let plain = Server::start(|mut stream, _| async move {
        let mut hello = [0; 16];
        let _ = stream.read(&mut hello).await;
        let _ = stream.write_all(b"HTTP/1.1 400 Bad Request\r\nContent-Length: 0\r\n\r\n").await;
    })
    .await;
    let record = tried(&client(None, Proxies::none()), &format!("https://127.0.0.1:{}", plain.port), &generous()).await;
    unreachable(&record, &["`127.0.0.1`", "speaks no TLS", "http"]);
}

#[tokio::test]
async fn a_server_that_closes_during_the_handshake_is_said_to_have_done_so() {
    let closing = Server::start(|mut stream, _| async move {
        let mut hello = [0; 4096];
        let _ = stream.read(&mut hello).await;
        let _ = stream.shutdown().await;
    })
    .await;
    let base = format!("https://127.0.0.1:{}", closing.port);
    unreachable(&tried(&client(None, Proxies::none()), &base, &generous()).await, &["closed", "during the handshake"]);
}

#[tokio::test]
async fn a_handshake_that_never_ends_ends_at_the_limit() {
    let silent = Server::start(|stream, _| async move {
        silence().await;
        drop(stream);
    })
    .await;
    let base = format!("https://127.0.0.1:{}", silent.port);
    let limits = Limits { total: ms(200), ..Limits::default() };
    let begun = std::time::Instant::now();
    let record = tried(&client(None, Proxies::none()), &base, &limits).await;
    unreachable(&record, &["no connection to 127.0.0.1", "within 200 ms"]);
    assert!(begun.elapsed() >= ms(200) && begun.elapsed() < Duration::from_secs(10));
}

#[tokio::test]
async fn http2_is_agreed_on_and_its_moments_are_those_of_the_lane() {
    let authority = Authority::new();
    let lane = Server::tls(authority.server(&["localhost"], &["h2", "http/1.1"]), |io, n| async move {
        assert_eq!(n, 0);
        let mut connection = h2::server::handshake(io).await.unwrap();
        while let Some(Ok((request, mut respond))) = connection.accept().await {
            tokio::spawn(async move {
                let mut body = request.into_body();
                while let Some(Ok(bytes)) = body.data().await {
                    body.flow_control().release_capacity(bytes.len()).unwrap();
                }
                let head = http::Response::builder().header("content-type", "text/event-stream").body(()).unwrap();
                let mut stream = respond.send_response(head, false).unwrap();
                tokio::time::sleep(ms(120)).await;
                stream.send_data(Bytes::from(event("hel")), false).unwrap();
                tokio::time::sleep(ms(120)).await;
                stream.send_data(Bytes::from(event("lo") + &ending()), true).unwrap();
            });
        }
    })
    .await;
    let client = client(Some(&authority.file()), Proxies::none());
    let base = format!("https://localhost:{}", lane.port);
    // A large request too, in many records of TLS and frames of HTTP/2.
    let large = Bytes::from(vec![b' '; 300_000]);
    for (n, body) in [body(peaklane_core::lane::Api::Chat, true), large].into_iter().enumerate() {
        let record = client.try_once(&target(&base), &body, None, &generous()).await.record;
        assert_eq!((record.outcome, record.http_version.as_deref()), (Outcome::Ok, Some("2")), "{:?}", record.message);
        assert_eq!((record.content.as_str(), record.usage.cached), ("hello", Some(2)));
        assert_eq!((record.handshake.reused, record.handshake.tls_us.is_some()), (n == 1, n == 0));
        // Never earlier than the lane sent it; later only by what a busy machine adds.
        let (ttft, end) = (record.ttft_us.unwrap(), record.end_us.unwrap());
        assert!((119_000..5_000_000).contains(&ttft), "{ttft}");
        assert!(end >= ttft + 119_000 && record.max_gap_us.is_some_and(|gap| gap >= 100_000), "{ttft} {end}");
    }
    assert_eq!(lane.accepted(), 1);
}

#[tokio::test]
async fn a_close_without_farewell_is_an_end_like_any_other() {
    // Dropping the stream closes TCP and sends no close_notify.
    let authority = Authority::new();
    let lane = Server::tls(authority.server(&["localhost"], &["http/1.1"]), |mut io, n| async move {
        request(&mut io).await;
        if n == 0 {
            let json = crate::lane::whole_json("hello");
            return say(&mut io, format!("HTTP/1.1 200 OK\r\nConnection: close\r\n\r\n{json}")).await;
        }
        say(&mut io, [STREAM.as_bytes(), &chunk(event("half"))].concat()).await;
    })
    .await;
    let client = client(Some(&authority.file()), Proxies::none());
    let base = format!("https://localhost:{}", lane.port);
    let whole = tried(&client, &base, &generous()).await;
    assert_eq!((whole.outcome, whole.content.as_str()), (Outcome::Ok, "hello"), "{:?}", whole.message);
    let cut = tried(&client, &base, &generous()).await;
    assert_eq!((cut.outcome, cut.content.as_str()), (Outcome::Truncated, "half"), "{:?}", cut.message);
}

#[tokio::test]
async fn a_file_that_holds_no_usable_certificate_is_refused_before_anything_is_dialled() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("ca.pem");
    let refused = |text: &str| {
        std::fs::write(&path, text).unwrap();
        Network::new(Proxies::none(), std::slice::from_ref(&path), true).unwrap_err().to_string()
    };
    assert!(refused("no PEM at all").contains("it holds no certificate"));
    let nonsense = "-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n";
    assert!(refused(nonsense).contains("one of its certificates"));
    std::fs::File::create(&path).unwrap().set_len(1 << 30).unwrap();
    let of = |path: &std::path::Path| Network::new(Proxies::none(), &[path.into()], true).unwrap_err().to_string();
    assert!(of(&path).contains("longer than"));
    assert!(of(folder.path()).contains("it is a folder"));
    // It has no end.
    #[cfg(unix)]
    assert!(of(std::path::Path::new("/dev/zero")).contains("no regular file"));
    let error = Network::new(Proxies::none(), &[folder.path().join("none.pem")], true).unwrap_err();
    assert!(error.to_string().contains("none.pem") && error.hint().is_some());
}
