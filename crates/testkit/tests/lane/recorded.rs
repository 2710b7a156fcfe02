//! Recordings seen by a client written by hand: the bytes and the moments of the real server.

use std::io::ErrorKind;

use crate::raw::{End, Exchange, post};
use peaklane_testkit::net::MemoryNet;
use peaklane_testkit::recorded::{EndHow, Piece, Recording, recordings};
use peaklane_testkit::replay::RecordedPlayer;

const SCALE: u32 = 1000;

fn serve(recordings: Vec<Recording>, scale: u32) -> (MemoryNet, RecordedPlayer) {
    let player = RecordedPlayer::slowed(recordings, scale);
    let net = MemoryNet::new();
    net.serve("server", 80, player.clone());
    (net, player)
}

/// To the microsecond: what a recording holds.
fn micros(ms: f64) -> u64 {
    (ms * 1e3).round() as u64
}

#[tokio::test(start_paused = true)]
async fn every_recorded_case_comes_back_with_its_bytes_at_its_microseconds() {
    for recording in recordings() {
        let key = recording.key();
        let (net, player) = serve(vec![recording.clone()], SCALE);
        let mut io = net.connect("server", 80).unwrap();
        let got = Exchange::run_patiently(&mut io, &post("/v1/x", "{}"), 1_000_000).await;
        assert_eq!(got.bytes(), recording.bytes(), "{key}");
        let mut wanted: Vec<u64> =
            recording.pieces.iter().filter(|p| !p.bytes.is_empty()).map(|p| micros(p.t_ms)).collect();
        wanted.dedup();
        let slowed = |ms: &f64| micros(*ms / f64::from(SCALE));
        assert_eq!(got.arrivals().iter().map(slowed).collect::<Vec<_>>(), wanted, "{key}");
        match (recording.how, &got.end) {
            (EndHow::Eof, End::Eof(at)) => assert_eq!(slowed(at), micros(recording.end_ms), "{key}"),
            (EndHow::Reset, End::Error(ErrorKind::ConnectionReset, at)) => {
                assert_eq!(slowed(at), micros(recording.end_ms), "{key}");
            }
            // the server had closed the connection before this request was sent on it
            (EndHow::ResponseComplete, End::Eof(_)) if recording.bytes().is_empty() => {}
            (EndHow::ResponseComplete | EndHow::ClientClosed | EndHow::Timeout, End::StillOpen) => {}
            (how, end) => panic!("{key}: recorded {how:?}, played {end:?}"),
        }
        assert_eq!(player.log().of(&key).len(), 1, "{key}");
    }
}

fn scripted(name: &str, how: EndHow, pieces: &[(f64, &str)]) -> Recording {
    let mut recording = recordings().remove(0);
    recording.server = "s".to_owned();
    recording.name = name.to_owned();
    recording.how = how;
    recording.end_ms = 9.0;
    recording.pieces = pieces.iter().map(|(t_ms, s)| Piece { t_ms: *t_ms, bytes: s.as_bytes().to_vec() }).collect();
    recording
}

#[tokio::test(start_paused = true)]
async fn exchanges_follow_one_another_on_a_kept_connection_and_a_closed_one_is_an_end_at_once() {
    let list = vec![
        scripted("one", EndHow::ResponseComplete, &[(2.0, "HTTP/1.1 200 OK\r\n\r\n1")]),
        scripted("two", EndHow::ResponseComplete, &[(0.0, "")]),
        scripted("three", EndHow::Reset, &[(3.0, "HTTP/1.1 200 OK\r\n\r\n3")]),
    ];
    let (net, player) = serve(list, 1);
    let mut io = net.connect("server", 80).unwrap();
    let got = Exchange::run(&mut io, &post("/v1/x", "")).await;
    assert_eq!((got.bytes().last(), &got.end), (Some(&b'1'), &End::StillOpen));
    let got = Exchange::run(&mut io, &post("/v1/x", "")).await;
    assert_eq!((got.bytes().len(), &got.end), (0, &End::Eof(0.0)));
    let mut io = net.connect("server", 80).unwrap();
    let got = Exchange::run(&mut io, &post("/v1/x", "")).await;
    assert_eq!(got.end, End::Error(ErrorKind::ConnectionReset, 9.0));
    assert_eq!(player.log().all().iter().map(|e| e.connection).collect::<Vec<_>>(), [0, 0, 1]);
    let mut io = net.connect("server", 80).unwrap();
    let got = Exchange::run(&mut io, &post("/v1/x", "")).await;
    assert_eq!(got.end, End::Eof(0.0), "there is no fourth answer");
}
