//! The proxy on real sockets: its own answers arrive, ports that are taken are told, a stop drains.

use std::sync::Arc;
use std::time::Duration;

use peaklane_testkit::case::{Answer, Case, CaseApi};
use peaklane_testkit::net::CaseServer;
use peaklane_wire::net::Network;
use peaklane_wire::proxy::{Deaf, Policy, Proxy, Room, Upstream, listen, open_doors};
use peaklane_wire::proxy_env::Proxies;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::sync::watch;

use crate::stage::wall_us;

fn proxy(base: &str) -> Arc<Proxy> {
    let network = Network::new(Proxies::default(), &[], true).unwrap();
    let upstream = Upstream::new(None, base, None, Vec::new()).unwrap();
    let tap = Arc::new(Deaf);
    let policy = Policy::default();
    Arc::new(Proxy::new(vec![upstream], policy, Arc::new(network), tap, Room::new(1 << 20), wall_us).unwrap())
}

#[tokio::test]
async fn a_request_in_flight_is_answered_after_the_stop_and_nobody_new_is_let_in() {
    let answer = Answer::json(200, 300.0, "{\"ok\":true}");
    let server = CaseServer::with(vec![Case::scripted("a", CaseApi::Chat, vec![answer])]).unwrap();
    let listener = listen("127.0.0.1:0".parse().unwrap()).await.unwrap();
    let address = listener.local_addr().unwrap();
    let (stop, stopped) = watch::channel(false);
    let doors = tokio::spawn(open_doors(proxy(&server.base_url("a")), listener, 100, stopped, Duration::from_secs(20)));
    let mut client = TcpStream::connect(address).await.unwrap();
    client.write_all(b"POST /v1/chat/completions HTTP/1.1\r\nHost: p\r\nContent-Length: 2\r\n\r\n{}").await.unwrap();
    while server.log().all().is_empty() {
        tokio::time::sleep(Duration::from_millis(1)).await;
    }
    stop.send(true).unwrap();
    let mut text = String::new();
    client.read_to_string(&mut text).await.unwrap();
    assert!(text.ends_with("{\"ok\":true}"), "{text}");
    assert_eq!(doors.await.unwrap(), 0, "nothing was cut off");
    assert!(TcpStream::connect(address).await.is_err());
}

#[tokio::test]
async fn a_port_that_is_taken_is_told_with_what_to_do() {
    let first = listen("127.0.0.1:0".parse().unwrap()).await.unwrap();
    let error = listen(first.local_addr().unwrap()).await.unwrap_err();
    assert!(error.to_string().contains("cannot listen on 127.0.0.1:"), "{error}");
    assert!(error.hint().unwrap().contains("--listen 127.0.0.1:0"));
}
