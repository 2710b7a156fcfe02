//! A real model server as a lane: what a burst of identical prompts measures, and what the nonce is for.
//!
//! Nothing is said of the text: a small model says what it likes. What is asserted holds for any machine: which tokens came
//! from the prefix cache, and that reading a long prompt takes longer than not reading it.

use peaklane_core::attempt::AttemptRecord;
use peaklane_core::burst::BurstState;
use peaklane_testkit::binary::Sandbox;
use peaklane_testkit::real_server::RealServer;

use crate::support::{burst, stored, with_lane};

/// Some hundred tokens, so that reading them is most of the time to the first token.
fn prompt() -> String {
    let facts: String = (1..=11)
        .map(|n| {
            format!("House {n} has {} windows, {} doors and a garden with {} trees. ", n % 7 + 2, n % 3 + 1, n + 4)
        })
        .collect();
    format!("{facts}Reply with one word: yes")
}

/// Attempts of one burst, one after the other: the server has few slots, and each is to find the former one's cache.
fn attempts(sandbox: &Sandbox, mode: &str) -> Vec<AttemptRecord> {
    let prompt = prompt();
    // A floor far away: how fast this machine is, is not the question here.
    let words = ["--prompt", &prompt, "--prompt-mode", mode, "--concurrency", "1", "--max-tokens", "24"];
    burst(sandbox, &[&words[..], &["--accept-budget-stop", "--floor", "110s", "--csv", "real.csv"]].concat());
    let (burst, attempts) = stored(sandbox.path()).pop().unwrap();
    assert_eq!((burst.state(), burst.header.prompt_mode.name(), attempts.len()), (BurstState::Complete, mode, 8));
    attempts
}

fn median(mut values: Vec<u64>) -> u64 {
    values.sort_unstable();
    values[(values.len() - 1) / 2]
}

#[test]
fn identical_prompts_measure_the_prefix_cache_of_a_real_server_and_nonces_do_not() {
    let Some(server) = RealServer::find() else { return };
    let sandbox = with_lane(server.url(), "smollm2-135m").limit(std::time::Duration::from_secs(600));
    let nonce = attempts(&sandbox, "nonce");
    let identical = attempts(&sandbox, "identical");

    for attempt in nonce.iter().chain(&identical) {
        let last = attempt.last().unwrap();
        assert_eq!(last.outcome.name(), "ok", "{:?}", last.message);
        assert!(last.usage.completion.is_some_and(|n| n > 0) && last.output_chunks > 0, "{:?}", last.usage);
        assert!(attempt.ttft_us.is_some_and(|ttft| ttft <= attempt.latency_us));
    }
    let prompt_tokens = |a: &AttemptRecord| a.usage().prompt.unwrap();
    let cached = |a: &AttemptRecord| a.usage().cached.unwrap();
    for attempt in &nonce {
        // Only what the chat template puts before the nonce can be the same.
        assert!(prompt_tokens(attempt) > 200 && cached(attempt) <= 24, "{:?}", attempt.usage());
    }
    for attempt in &identical[1..] {
        // The server reads the last token again, since its output is what comes next.
        assert!(prompt_tokens(attempt) - cached(attempt) <= 4, "{:?}", attempt.usage());
    }
    let ttft = |all: &[AttemptRecord]| median(all.iter().map(|a| a.last().and_then(|t| t.ttft_us).unwrap()).collect());
    let (with_nonce, without) = (ttft(&nonce[1..]), ttft(&identical[1..]));
    assert!(with_nonce > without, "TTFT p50 {with_nonce} us with a nonce, {without} us without");

    let summary = sandbox.run(["summary", "real.csv", "--format", "json"]).expect_code(0);
    assert!(summary.stdout.contains("env"), "{}", summary.stdout);
}
