//! Whose key goes where: the client's own passes, ours is put in for those who show the token, and a token stays here.

use std::sync::Arc;

use peaklane_core::secret::Secret;
use peaklane_testkit::case::{Answer, Case, CaseApi};
use peaklane_testkit::net::MemoryNet;
use peaklane_testkit::player::CasePlayer;
use peaklane_wire::proxy::{Deaf, Passed, Policy, Proxy, ProxyError, Room, Upstream};

use crate::stage::{Stage, patient, wall_us};

const TOKEN: &str = "the-proxys-own-token";
const KEY: &str = "sk-of-the-upstream-4711";

fn player() -> (CasePlayer, MemoryNet) {
    let case = |id: &str| Case::scripted(id, CaseApi::Chat, vec![Answer::json(200, 0.0, "{}")]);
    let player = CasePlayer::new(vec![case("a"), case("b")]);
    let net = MemoryNet::with_cases(&player);
    (player, net)
}

fn upstream(name: &str, key: Option<&str>) -> Upstream {
    let base = format!("http://127.0.0.1:8099/case/{name}/v1");
    let key = key.map(|k| Secret::new(k).unwrap());
    Upstream::new(Some(name.into()), &base, key, vec![("x-plan".into(), "team".into())]).unwrap()
}

fn with_token() -> Policy {
    Policy { token: Some(Secret::new(TOKEN).unwrap()), ..patient() }
}

async fn ask(stage: &Stage, path: &str, headers: &str) -> crate::stage::Answer {
    let request =
        format!("POST {path} HTTP/1.1\r\nHost: p\r\nConnection: close\r\n{headers}Content-Length: 2\r\n\r\n{{}}");
    stage.talk(request.as_bytes()).await
}

#[tokio::test(start_paused = true)]
async fn the_clients_own_key_passes_as_it_is() {
    let (player, net) = player();
    let stage = Stage::new(&net, vec![upstream("a", None)], patient());
    ask(&stage, "/v1/chat/completions", "Authorization: Bearer sk-mine\r\nx-api-key: k2\r\n").await;
    let got = player.log().of("a").pop().unwrap();
    assert_eq!((got.header("authorization"), got.header("x-api-key")), (Some("Bearer sk-mine"), Some("k2")));
    assert_eq!(got.header("x-plan"), Some("team"));
}

#[tokio::test(start_paused = true)]
async fn our_key_goes_out_only_for_those_who_show_the_token_and_the_token_never_does() {
    let (player, net) = player();
    let stage = Stage::new(&net, vec![upstream("a", Some(KEY))], with_token());
    for headers in ["", "Authorization: Bearer wrong\r\n", "x-api-key: the-proxys-own-toke\r\n"] {
        let answer = ask(&stage, "/v1/chat/completions", headers).await;
        assert_eq!(answer.status(), Some(401), "{headers}");
        assert!(!answer.text().contains(KEY) && !answer.text().contains(TOKEN));
    }
    assert!(player.log().of("a").is_empty(), "nothing was sent");
    assert_eq!(*stage.notes.passed.lock().unwrap(), [Passed::Refused; 3]);
    for header in ["Authorization: Bearer", "authorization: bearer", "x-api-key:", "X-Peaklane-Token:"] {
        let answer = ask(&stage, "/v1/chat/completions", &format!("{header} {TOKEN}\r\n")).await;
        assert_eq!(answer.status(), Some(200), "{header}");
        let got = player.log().of("a").pop().unwrap();
        let all = format!("{:?}", got.headers);
        assert!(!all.contains(TOKEN) && all.matches(KEY).count() == 1, "{header}: {all}");
    }
}

#[tokio::test(start_paused = true)]
async fn behind_a_token_header_of_our_own_the_clients_key_still_passes() {
    let (player, net) = player();
    let stage = Stage::new(&net, vec![upstream("a", None)], with_token());
    let headers = format!("X-Peaklane-Token: {TOKEN}\r\nAuthorization: Bearer sk-mine\r\n");
    ask(&stage, "/v1/chat/completions", &headers).await;
    let got = player.log().of("a").pop().unwrap();
    assert_eq!((got.header("authorization"), got.header("x-peaklane-token")), (Some("Bearer sk-mine"), None));
    // Where the token stands in the key's place there is no key of the client's to be passed.
    ask(&stage, "/v1/chat/completions", &format!("Authorization: Bearer {TOKEN}\r\n")).await;
    assert_eq!(player.log().of("a").pop().unwrap().header("authorization"), None);
}

#[tokio::test(start_paused = true)]
async fn lanes_are_chosen_by_path_or_header_and_an_unknown_one_is_told_the_known() {
    let (player, net) = player();
    let stage = Stage::new(&net, vec![upstream("a", None), upstream("b", None)], patient());
    ask(&stage, "/v1/chat/completions", "").await;
    ask(&stage, "/lane/b/v1/chat/completions", "").await;
    ask(&stage, "/s/run-1/lane/b/v1/chat/completions", "").await;
    ask(&stage, "/v1/chat/completions", "X-Peaklane-Lane: b\r\n").await;
    assert_eq!((player.log().of("a").len(), player.log().of("b").len()), (1, 3));
    assert!(player.log().of("b").iter().all(|got| got.header("x-peaklane-lane").is_none()));
    let told = std::mem::take(&mut *stage.notes.asked.lock().unwrap());
    let lanes: Vec<_> = told.iter().map(|t| (t.lane.as_deref(), t.session.as_deref())).collect();
    assert_eq!(lanes, [(Some("a"), None), (Some("b"), None), (Some("b"), Some("run-1")), (Some("b"), None)]);
    assert_eq!(told[2].path, "/case/b/v1/chat/completions");
    let answer = ask(&stage, "/lane/c/v1/chat/completions", "").await;
    assert_eq!(answer.status(), Some(404));
    assert!(answer.text().contains("there are: a, b"), "{}", answer.text());
}

#[tokio::test(start_paused = true)]
async fn only_headers_that_tell_of_harness_and_session_are_told() {
    let (_player, net) = player();
    let stage = Stage::new(&net, vec![upstream("a", None)], patient());
    let headers = "User-Agent: pi/1\r\nAuthorization: Bearer sk-mine\r\nCookie: c=1\r\nSession-Id: s-1\r\n";
    ask(&stage, "/v1/chat/completions", headers).await;
    let told = stage.notes.asked.lock().unwrap().pop().unwrap();
    let want = [("user-agent".to_owned(), "pi/1".to_owned()), ("session-id".to_owned(), "s-1".to_owned())];
    assert_eq!(told.headers, want);
}

#[test]
fn a_key_of_ours_without_a_token_in_front_of_it_is_refused() {
    let make = |upstreams, policy| {
        let dial = Arc::new(MemoryNet::new());
        Proxy::new(upstreams, policy, dial, Arc::new(Deaf), Room::new(1), wall_us)
    };
    assert!(matches!(make(vec![upstream("a", Some(KEY))], patient()), Err(ProxyError::OpenKey { .. })));
    assert!(make(vec![upstream("a", Some(KEY))], with_token()).is_ok());
    assert!(matches!(make(Vec::new(), patient()), Err(ProxyError::NoUpstream)));
    let same = make(vec![upstream("a", None), upstream("a", None)], patient());
    assert!(matches!(same, Err(ProxyError::SameName { .. })));
}
