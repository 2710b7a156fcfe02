//! Token counts on the client's behalf: the upstream is asked for them, and the client sees nothing of it.

use peaklane_testkit::case::{Answer, Case, CaseApi};
use peaklane_testkit::net::MemoryNet;
use peaklane_testkit::player::CasePlayer;
use peaklane_wire::proxy::Policy;

use crate::stage::{Stage, patient};

const CHUNK: &str =
    "data: {\"choices\":[{\"delta\":{\"content\":\"hi\"},\"finish_reason\":\"stop\"}],\"usage\":null}\n\n";
const COUNTS: &str = "data: {\"choices\":[],\"usage\":{\"prompt_tokens\":7,\"completion_tokens\":1}}\n\n";
const DONE: &str = "data: [DONE]\n\n";

fn stage(inject_usage: bool) -> (CasePlayer, Stage) {
    let answer = Answer::events([(10.0, CHUNK), (20.0, COUNTS), (30.0, DONE)]);
    let player = CasePlayer::new(vec![Case::scripted("a", CaseApi::Chat, vec![answer])]);
    let net = MemoryNet::with_cases(&player);
    let policy = Policy { inject_usage, ..patient() };
    let stage = Stage::before(&net, "http://127.0.0.1:8099/case/a/v1", policy);
    (player, stage)
}

async fn ask(stage: &Stage, body: &str) -> crate::stage::Answer {
    let length = body.len();
    let head =
        format!("POST /v1/chat/completions HTTP/1.1\r\nHost: p\r\nConnection: close\r\nContent-Length: {length}");
    stage.talk(format!("{head}\r\nAccept-Encoding: gzip\r\n\r\n{body}").as_bytes()).await
}

#[tokio::test(start_paused = true)]
async fn asked_on_the_clients_behalf_the_counts_are_measured_and_taken_out_again() {
    let (player, stage) = stage(true);
    let answer = ask(&stage, r#"{"stream":true,"model":"m"}"#).await;
    assert_eq!(answer.text(), [CHUNK, DONE].concat());
    let got = player.log().of("a").pop().unwrap();
    assert_eq!(got.json()["stream_options"]["include_usage"], true);
    assert_eq!(got.header("accept-encoding"), Some("identity"));
    let ended = stage.notes.only();
    assert_eq!((ended.record.usage.prompt, ended.record.usage.completion), (Some(7), Some(1)));
    let told = stage.notes.asked.lock().unwrap().pop().unwrap();
    assert!(told.usage_injected);
    assert_eq!(told.body.unwrap(), br#"{"stream":true,"model":"m"}"#, "the prompt is the client's own");
}

#[tokio::test(start_paused = true)]
async fn who_asks_for_counts_gets_them_and_by_default_nothing_is_touched() {
    for (inject, body) in [
        (true, r#"{"stream":true,"stream_options":{"include_usage":true}}"#),
        (true, r#"{"stream":false}"#),
        (false, r#"{"stream":true}"#),
    ] {
        let (player, stage) = stage(inject);
        let answer = ask(&stage, body).await;
        assert_eq!(answer.text(), [CHUNK, COUNTS, DONE].concat(), "{body}");
        let got = player.log().of("a").pop().unwrap();
        assert_eq!((got.body.as_slice(), got.header("accept-encoding")), (body.as_bytes(), Some("gzip")), "{body}");
        assert!(!stage.notes.asked.lock().unwrap().pop().unwrap().usage_injected);
    }
}
