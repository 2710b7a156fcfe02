//! Real harnesses at work through the proxy: the repository goes green, and the record equals what the harness, and what
//! the model, say was used.

use std::path::Path;
use std::process::Command;
use std::time::Duration;

use peaklane_testkit::binary::Sandbox;
use peaklane_testkit::harness::{Installed, ScriptedModel, find, installed};
use serde_json::Value;

use crate::support::{Proxy, sandbox, summary};

const TASK: &str = "The tests of this repository fail. Fix the code in ledger/ so that they pass.";
/// A run takes seconds; this is for a busy machine.
const LIMIT: Duration = Duration::from_secs(150);

fn is_green(repo: &Path) -> bool {
    let tests =
        Command::new("python3").args(["-B", "-m", "unittest", "discover", "-s", "tests"]).current_dir(repo).output();
    tests.unwrap().status.success()
}

/// What `proxy env` prints for it, and the line that it says to run, with the task in it.
fn env_of(sandbox: &Sandbox, proxy: &Proxy<'_>, harness: &Installed, session: &str) -> String {
    let at = format!("http://{}", proxy.address);
    let words =
        ["proxy", "env", "--harness", &harness.name, "--session", session, "--proxy", &at, "--model", "peak-test"];
    let lines = sandbox.run(words).expect_code(0).stdout;
    let told = sandbox.run([&words[..], &["--format", "json"]].concat()).expect_code(0).json();
    let line = told["run"].as_str().expect("the line to run").replace(" TASK ", " \"$TASK\" ");
    // A machine that runs tests may not let a program make its own cage; the copy of the repository is cage enough.
    let line = line.replace("codex exec ", "codex exec --dangerously-bypass-approvals-and-sandbox ");
    // The scripted model writes this one's blocks, and goes on where it hears of a test that fails.
    let line = line.replace(
        "aider ",
        "aider --edit-format diff --auto-test --test-cmd 'python3 -m unittest discover -s tests' --file ledger/balance.py ",
    );
    format!("{lines}{line}")
}

/// What the model says it replied to call after call, helper calls included: prompt and cached tokens.
fn replied(model: &ScriptedModel, label: &str) -> Vec<(u64, u64)> {
    let requests = model.requests(label);
    let replies = requests.iter().filter(|r| r["reply"].is_object()).map(|r| &r["reply"]["usage"]);
    replies.map(|usage| (usage[0].as_u64().unwrap(), usage[1].as_u64().unwrap())).collect()
}

/// The session equals what the model replied, and goes on from call to call.
fn equals_the_model(session: &Value, model: &ScriptedModel, label: &str) {
    let replies = replied(model, label);
    let (prompt, cached) = replies.iter().fold((0, 0), |sum, reply| (sum.0 + reply.0, sum.1 + reply.1));
    assert!(replies.len() >= 8, "{} calls are no work", replies.len());
    assert_eq!(session["calls"].as_u64(), Some(replies.len() as u64), "{session:#}");
    assert_eq!(session["tokens"]["prompt"].as_u64(), Some(prompt), "{session:#}");
    assert_eq!(session["tokens"]["cached"].as_u64(), Some(cached), "cached tokens are part of the prompt, once");
    assert_eq!(session["failed"], 0);
}

/// Each call equals its reply, in order.
fn calls_equal_the_model(sandbox: &Sandbox, model: &ScriptedModel, label: &str) {
    let counts = |call: &Value| (call["prompt_tokens"].as_u64().unwrap(), call["cached_tokens"].as_u64().unwrap());
    assert_eq!(summary(sandbox, &["calls"]).iter().map(counts).collect::<Vec<_>>(), replied(model, label));
}

#[test]
fn pi_works_through_the_proxy_and_its_session_is_what_pi_says_it_used() {
    let (Some(pi), scratch) = (find("pi"), tempfile::tempdir().unwrap()) else { return };
    let Some(model) = ScriptedModel::start(scratch.path()) else { return };
    let (sandbox, repo) = (sandbox(), model.repository("pi"));
    let proxy = Proxy::start(&sandbox, &model.base_url("pi"), &[]);
    let said = pi.run(&env_of(&sandbox, &proxy, &pi, "fix-1"), TASK, &repo, scratch.path(), LIMIT);
    proxy.stop().expect_code(0);
    assert!(is_green(&repo), "{said}");
    let sessions = summary(&sandbox, &["sessions"]);
    assert_eq!((sessions.len(), sessions[0]["session"].as_str()), (1, Some("fix-1")));
    equals_the_model(&sessions[0], &model, "pi");
    calls_equal_the_model(&sandbox, &model, "pi");
    assert_eq!(sessions[0]["append_only_pairs"], sessions[0]["pairs"], "{sessions:#?}");
    // Its last event has all messages; its `input` leaves cached tokens out.
    let last = said.lines().filter_map(|l| serde_json::from_str::<Value>(l).ok()).rfind(|e| e["messages"].is_array());
    let messages = last.expect("pi tells its messages")["messages"].as_array().unwrap().clone();
    let used: Vec<&Value> = messages.iter().filter(|m| m["role"] == "assistant").map(|m| &m["usage"]).collect();
    let sum = |key: &str| used.iter().map(|u| u[key].as_u64().unwrap()).sum::<u64>();
    let tokens = &sessions[0]["tokens"];
    assert_eq!(tokens["prompt"].as_u64(), Some(sum("input") + sum("cacheRead")));
    assert_eq!(tokens["cached"].as_u64(), Some(sum("cacheRead")));
    assert_eq!(tokens["completion"].as_u64(), Some(sum("output")));
}

#[test]
fn codex_works_through_the_proxy_and_names_its_session_itself() {
    let (Some(codex), scratch) = (find("codex"), tempfile::tempdir().unwrap()) else { return };
    let Some(model) = ScriptedModel::start(scratch.path()) else { return };
    let (sandbox, repo) = (sandbox(), model.repository("codex"));
    let proxy = Proxy::start(&sandbox, &model.base_url("codex"), &[]);
    // Without a session in the address: codex names it in headers.
    let lines = env_of(&sandbox, &proxy, &codex, "unused").replace("/s/unused/v1", "/v1");
    let said = codex.run(&lines, TASK, &repo, scratch.path(), LIMIT);
    proxy.stop().expect_code(0);
    assert!(is_green(&repo), "{said}");
    let sessions = summary(&sandbox, &["sessions"]);
    assert_eq!((sessions.len(), sessions[0]["session_by"].as_str()), (1, Some("header")), "{sessions:#?}");
    equals_the_model(&sessions[0], &model, "codex");
    calls_equal_the_model(&sandbox, &model, "codex");
    assert_eq!(sessions[0]["append_only_pairs"], sessions[0]["pairs"], "{sessions:#?}");
    let events: Vec<Value> = said.lines().filter_map(|l| serde_json::from_str(l).ok()).collect();
    let thread = events.iter().find_map(|e| e["thread_id"].as_str()).expect("codex tells its thread");
    assert_eq!(sessions[0]["session"], thread);
    // Its `input_tokens` has the cached ones in it.
    let usage = &events.iter().rfind(|e| e["type"] == "turn.completed").expect("codex tells its usage")["usage"];
    let tokens = &sessions[0]["tokens"];
    assert_eq!(tokens["prompt"], usage["input_tokens"]);
    assert_eq!(tokens["cached"], usage["cached_input_tokens"]);
    assert_eq!(tokens["completion"], usage["output_tokens"]);
}

#[test]
fn every_installed_harness_works_by_the_lines_that_proxy_env_prints() {
    let (Some(all), scratch) = (installed(), tempfile::tempdir().unwrap()) else { return };
    let Some(model) = ScriptedModel::start(scratch.path()) else { return };
    for harness in all {
        let label = format!("{}-{}", harness.name, harness.version);
        let (sandbox, repo) = (sandbox(), model.repository(&label));
        // This one asks for no usage report and edits by blocks of text.
        let guesses = harness.name == "aider";
        let upstream = if guesses { model.text_url(&label) } else { model.base_url(&label) };
        let proxy = Proxy::start(&sandbox, &upstream, &[]);
        let said = harness.run(&env_of(&sandbox, &proxy, &harness, &label), TASK, &repo, scratch.path(), LIMIT);
        proxy.stop().expect_code(0);
        assert!(is_green(&repo), "{label}: {said}");
        let sessions = summary(&sandbox, &["sessions"]);
        assert_eq!((sessions.len(), sessions[0]["session"].as_str()), (1, Some(label.as_str())), "{sessions:#?}");
        if guesses {
            assert_eq!(sessions[0]["calls"].as_u64(), Some(replied(&model, &label).len() as u64), "{label}");
        } else {
            equals_the_model(&sessions[0], &model, &label);
        }
    }
}
