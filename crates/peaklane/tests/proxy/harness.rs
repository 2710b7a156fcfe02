//! Real harnesses at work through the proxy: the repository goes green, and the record equals what the harness, and what
//! the model, say was used.

use std::path::Path;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use peaklane_testkit::binary::Sandbox;
use peaklane_testkit::harness::{ScriptedModel, find};
use serde_json::Value;

use crate::support::{Proxy, sandbox, summary};

const TASK: &str = "The tests of this repository fail. Fix the code in ledger/ so that they pass.";
/// A run takes seconds; this is for a busy machine.
const LIMIT: Duration = Duration::from_secs(150);

/// Evaluates what `proxy env` prints and runs the harness in the repository, with a home of its own.
fn run(program: &Path, env: &str, line: &str, repo: &Path, home: &Path) -> String {
    std::fs::create_dir_all(home).unwrap();
    let script = format!("{env}\nexec {} {line} </dev/null", program.display());
    let out = std::fs::File::create(home.join("out")).unwrap();
    let mut child = Command::new("sh")
        .args(["-c", &script])
        .current_dir(repo)
        .env_clear()
        .envs(std::env::var_os("PATH").map(|path| ("PATH", path)))
        .env("HOME", home)
        .env("TASK", TASK)
        .env("LC_ALL", "C.UTF-8")
        .stdin(Stdio::null())
        .stdout(out)
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    let begun = Instant::now();
    while child.try_wait().unwrap().is_none() {
        if begun.elapsed() > LIMIT {
            let _ = child.kill();
            let _ = child.wait();
            panic!("{} did not come to its end", program.display());
        }
        std::thread::sleep(Duration::from_millis(50));
    }
    std::fs::read_to_string(home.join("out")).unwrap()
}

fn is_green(repo: &Path) -> bool {
    let tests =
        Command::new("python3").args(["-B", "-m", "unittest", "discover", "-s", "tests"]).current_dir(repo).output();
    tests.unwrap().status.success()
}

fn env_of(sandbox: &Sandbox, proxy: &Proxy<'_>, harness: &str, session: &str) -> String {
    let at = format!("http://{}", proxy.address);
    let words = ["proxy", "env", "--harness", harness, "--session", session, "--proxy", &at, "--model", "peak-test"];
    sandbox.run(words).expect_code(0).stdout
}

/// Sums of what the model says it replied, helper calls included: prompt and cached tokens.
fn replied(model: &ScriptedModel, label: &str) -> (u64, u64, u64) {
    let requests = model.requests(label);
    let replies: Vec<&Value> = requests.iter().filter(|r| r["reply"].is_object()).collect();
    let sum = |n: usize| replies.iter().map(|r| r["reply"]["usage"][n].as_u64().unwrap()).sum();
    (replies.len() as u64, sum(0), sum(1))
}

/// The session equals what the model replied, and goes on from call to call.
fn equals_the_model(session: &Value, model: &ScriptedModel, label: &str) {
    let (calls, prompt, cached) = replied(model, label);
    assert!(calls >= 8, "{calls} calls are no work");
    assert_eq!(session["calls"].as_u64(), Some(calls), "{session:#}");
    assert_eq!(session["tokens"]["prompt"].as_u64(), Some(prompt), "{session:#}");
    assert_eq!(session["tokens"]["cached"].as_u64(), Some(cached), "cached tokens are part of the prompt, once");
    assert_eq!(session["failed"], 0);
    assert_eq!(session["append_only_pairs"], session["pairs"], "{session:#}");
}

#[test]
fn pi_works_through_the_proxy_and_its_session_is_what_pi_says_it_used() {
    let (Some(program), scratch) = (find("pi"), tempfile::tempdir().unwrap()) else { return };
    let Some(model) = ScriptedModel::start(scratch.path()) else { return };
    let (sandbox, repo) = (sandbox(), model.repository("pi"));
    let proxy = Proxy::start(&sandbox, &model.base_url("pi"), &[]);
    let env = env_of(&sandbox, &proxy, "pi", "fix-1");
    let line = "-p --mode json --provider peaklane --model peak-test \"$TASK\"";
    let said = run(&program, &env, line, &repo, &scratch.path().join("home"));
    proxy.stop().expect_code(0);
    assert!(is_green(&repo), "{said}");
    let sessions = summary(&sandbox, &["sessions"]);
    assert_eq!((sessions.len(), sessions[0]["session"].as_str()), (1, Some("fix-1")));
    equals_the_model(&sessions[0], &model, "pi");
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
    let (Some(program), scratch) = (find("codex"), tempfile::tempdir().unwrap()) else { return };
    let Some(model) = ScriptedModel::start(scratch.path()) else { return };
    let (sandbox, repo) = (sandbox(), model.repository("codex"));
    let proxy = Proxy::start(&sandbox, &model.base_url("codex"), &[]);
    // Without a session in the address: codex names it in headers.
    let env = env_of(&sandbox, &proxy, "codex", "unused").replace("/s/unused/v1", "/v1");
    let line = "exec --json --dangerously-bypass-approvals-and-sandbox --skip-git-repo-check \"$TASK\"";
    let said = run(&program, &env, line, &repo, &scratch.path().join("home"));
    proxy.stop().expect_code(0);
    assert!(is_green(&repo), "{said}");
    let sessions = summary(&sandbox, &["sessions"]);
    assert_eq!((sessions.len(), sessions[0]["session_by"].as_str()), (1, Some("header")), "{sessions:#?}");
    equals_the_model(&sessions[0], &model, "codex");
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
