//! Real agents' traffic replayed through the proxy: the scripted model, and the real small one.

use std::path::PathBuf;

use peaklane_testkit::harness::ScriptedModel;
use peaklane_testkit::real_server::RealServer;
use peaklane_testkit::traces;
use serde_json::Value;

use crate::support::{Proxy, body_of, post, sandbox, summary};

fn files() -> Option<Vec<PathBuf>> {
    let folder = traces::folder()?;
    let mut files: Vec<PathBuf> = std::fs::read_dir(folder)
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .filter(|path| path.extension().is_some_and(|e| e == "jsonl"))
        .collect();
    files.sort();
    assert!(!files.is_empty(), "no trace");
    Some(files)
}

fn path_of(api: &str) -> &'static str {
    match api {
        "responses" => "v1/responses",
        "messages" => "v1/messages",
        _ => "v1/chat/completions",
    }
}

#[test]
fn traces_replayed_through_the_proxy_give_the_figures_that_they_have_on_paper() {
    let Some(files) = files() else { return };
    let scratch = tempfile::tempdir().unwrap();
    let Some(model) = ScriptedModel::start(scratch.path()) else { return };
    let sandbox = sandbox();
    let proxy = Proxy::start(&sandbox, &model.base_url("replay"), &["--keep-bodies", "bodies"]);
    let mut sent = 0;
    for file in &files {
        for line in std::fs::read_to_string(file).unwrap().lines() {
            let call: Value = serde_json::from_str(line).unwrap();
            let path = format!("/s/{}/{}", call["session"].as_str().unwrap(), path_of(call["api"].as_str().unwrap()));
            let answer = proxy.talk(&post(&path, &call["body"].to_string()));
            assert!(answer.starts_with(b"HTTP/1.1 200 "), "{}", String::from_utf8_lossy(&answer));
            sent += 1;
        }
    }
    proxy.stop().expect_code(0);
    assert_eq!(model.requests("replay").len(), sent);
    let sessions = summary(&sandbox, &["sessions"]);
    for file in &files {
        let words = ["sessions", file.to_str().unwrap()];
        for paper in summary(&sandbox, &words) {
            let name = paper["session"].as_str().unwrap();
            let live = sessions.iter().find(|s| s["session"] == name).unwrap_or_else(|| panic!("{name} is not there"));
            assert_eq!((&live["calls"], &live["pairs"]), (&paper["calls"], &paper["pairs"]), "{name}");
            assert_eq!(live["append_only_pairs"], paper["append_only_pairs"], "{name}");
            if let (Some(a), Some(b)) = (live["reuse_min"].as_f64(), paper["reuse_min"].as_f64()) {
                assert!((a - b).abs() <= 0.00005 + 1e-12, "{name}: {a} {b}");
            }
            // The bodies that were kept say the same once more.
            let kept = summary(&sandbox, &["sessions", &format!("bodies/{name}.jsonl")]);
            assert_eq!(kept[0]["pair_list"].as_array().map(Vec::len), paper["pair_list"].as_array().map(Vec::len));
        }
    }
}

/// Largest prompt that a small model on one core reads within seconds, bytes of the body.
const SMALL_BYTES: usize = 8_000;
/// Calls of one session that are replayed to it.
const FEW: usize = 3;

#[test]
fn small_calls_of_traces_replayed_to_the_real_model_are_recorded_as_it_answered() {
    let (Some(files), Some(server)) = (files(), RealServer::find()) else { return };
    let sandbox = sandbox();
    let proxy = Proxy::start(&sandbox, server.url(), &[]);
    let mut answers = Vec::new();
    for file in &files {
        let text = std::fs::read_to_string(file).unwrap();
        let small = text.lines().take(FEW).map(|line| serde_json::from_str::<Value>(line).unwrap());
        for mut call in small.take_while(|c| c["api"] == "chat" && c["body"].to_string().len() <= SMALL_BYTES) {
            // A word or two: how a small model goes on is not what is asked.
            for key in ["max_tokens", "max_completion_tokens"] {
                call["body"].as_object_mut().unwrap().remove(key);
            }
            call["body"]["max_tokens"] = 4.into();
            let name = call["session"].as_str().unwrap().to_owned();
            let answer = proxy.talk(&post(&format!("/s/{name}/v1/chat/completions"), &call["body"].to_string()));
            answers.push((name, String::from_utf8_lossy(&answer).into_owned(), body_of(&answer)));
        }
    }
    proxy.stop().expect_code(0);
    let calls = summary(&sandbox, &["calls"]);
    assert_eq!(calls.len(), answers.len());
    assert!(calls.len() >= 2, "no trace has a small call");
    for (call, (name, answer, body)) in calls.iter().zip(&answers) {
        assert_eq!(call["session"], name.as_str());
        let status = answer.split(' ').nth(1).and_then(|s| s.parse::<u64>().ok());
        assert_eq!(call["http_status"].as_u64(), status, "{call:#}");
        // The server's own counts, out of a stream or a whole answer.
        let text = String::from_utf8_lossy(body);
        let parts = text.lines().map(|line| line.strip_prefix("data: ").unwrap_or(line));
        let mut told = parts.filter_map(|p| serde_json::from_str::<Value>(p).ok());
        if let Some(told) = told.rfind(|p| p["usage"].is_object()) {
            assert_eq!(call["prompt_tokens"], told["usage"]["prompt_tokens"], "{call:#}");
        }
    }
    for file in &files {
        for paper in summary(&sandbox, &["sessions", file.to_str().unwrap()]) {
            let pair = &paper["pair_list"][0];
            let live =
                calls.iter().filter(|c| c["session"] == paper["session"] && c["prefix"]["common_bytes"].is_u64());
            if let Some(second) = live.min_by_key(|c| c["seq"].as_u64()).filter(|c| c["seq"] == pair["to"]) {
                assert_eq!(second["prefix"]["common_bytes"], pair["common"], "{}", paper["session"]);
            }
        }
    }
}

#[test]
fn the_real_model_counts_what_the_proxy_records() {
    let Some(server) = RealServer::find() else { return };
    let sandbox = sandbox();
    let proxy = Proxy::start(&sandbox, server.url(), &[]);
    // Small enough for a small model's context, in two turns that go on from each other.
    let turn = |messages: &str| {
        let body = format!(
            "{{\"model\":\"m\",\"stream\":true,\"stream_options\":{{\"include_usage\":true}},\"max_tokens\":8,\"temperature\":0,\"messages\":[{messages}]}}"
        );
        proxy.talk(&post("/s/real/v1/chat/completions", &body))
    };
    let first =
        "{\"role\":\"system\",\"content\":\"Answer with one word.\"},{\"role\":\"user\",\"content\":\"Say yes.\"}";
    let second =
        format!("{first},{{\"role\":\"assistant\",\"content\":\"Yes\"}},{{\"role\":\"user\",\"content\":\"Again.\"}}");
    let answers = [turn(first), turn(&second)];
    proxy.stop().expect_code(0);
    let calls = summary(&sandbox, &["calls"]);
    assert_eq!(calls.len(), 2);
    for (call, answer) in calls.iter().zip(&answers) {
        let text = String::from_utf8_lossy(&body_of(answer)).into_owned();
        // The server's own counts, read out of its stream by plain search.
        let chunks = text.lines().filter_map(|line| line.strip_prefix("data: "));
        let mut usage = chunks.filter_map(|c| serde_json::from_str::<Value>(c).ok()).map(|c| c["usage"].clone());
        let usage = usage.rfind(Value::is_object).expect("the server counts");
        assert_eq!(call["prompt_tokens"], usage["prompt_tokens"], "{call:#}");
        assert_eq!(call["completion_tokens"], usage["completion_tokens"]);
        assert_eq!((call["outcome"].as_str(), call["http_status"].as_u64()), (Some("ok"), Some(200)));
        assert!(call["ttft_ms"].as_f64().unwrap() > 0.0);
    }
    assert_eq!(calls[1]["prefix"]["reuse"], 1.0);
}
