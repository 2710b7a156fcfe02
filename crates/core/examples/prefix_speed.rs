//! How fast prompts are read and compared: `cargo run --release -p peaklane-core --example prefix_speed`.
//!
//! The yardstick in the same run is `serde_json` reading the same body into a tree of values.

use std::hint::black_box;
use std::time::Instant;

use peaklane_core::call::SessionBy;
use peaklane_core::lane::Api;
use peaklane_core::prefix::chain::Chain;
use peaklane_core::prefix::{Bounds, Prompt, Sessions, compare};
use serde_json::{Value, json};

/// A chat of about 1 MB, as a long session of a coding agent has it: tools, a system text, code in many messages.
fn body(messages: usize) -> String {
    let code =
        "    if let Some(value) = table.get(&key) {\n\t\treturn Ok(value.clone()); // \"cached\"\n    }\n".repeat(30);
    let tools: Vec<Value> = (0..12)
        .map(|n| json!({"type": "function", "function": {"name": format!("tool_{n}"), "description": "Reads a file.\n".repeat(40),
            "parameters": {"type": "object", "properties": {"path": {"type": "string"}, "lines": {"type": "integer"}}}}}))
        .collect();
    let mut list = vec![json!({"role": "system", "content": "You write code.\n".repeat(600)})];
    for n in 0..messages {
        let role = if n % 2 == 0 { "user" } else { "assistant" };
        list.push(json!({"role": role, "content": format!("{n}: {code}")}));
    }
    // Keys in the order that clients send them.
    let (messages, tools) = (Value::from(list).to_string(), Value::from(tools).to_string());
    format!("{{\"model\":\"m\",\"messages\":{messages},\"stream\":true,\"tools\":{tools}}}")
}

/// Megabytes a second of the fastest of several runs.
fn speed(bytes: usize, mut run: impl FnMut()) -> f64 {
    let mut best = f64::INFINITY;
    for _ in 0..40 {
        let begin = Instant::now();
        run();
        best = best.min(begin.elapsed().as_secs_f64());
    }
    bytes as f64 / best / 1e6
}

#[expect(clippy::print_stdout, reason = "an example that prints what it measured")]
fn main() {
    let (former, later) = (body(340), body(342));
    let read = |text: &str| Prompt::from_body(Api::Chat, text.as_bytes()).expect("the body is a prompt");
    let (a, b) = (read(&former), read(&later));
    println!("wire body {} bytes, canonical {} bytes, {} segments", later.len(), b.text.len(), b.segments.len());
    let tree = speed(later.len(), || drop(black_box(serde_json::from_str::<Value>(&later))));
    let parse = speed(later.len(), || drop(black_box(read(&later))));
    let name = || Some((SessionBy::Path, "s".to_owned()));
    let mut sessions = Sessions::new(Bounds::default(), "auto-");
    let mut n = 0;
    let figures = speed(later.len(), || {
        // By turns, so that each call has something to be held against.
        n += 1;
        let prompt = read(if n % 2 == 0 { &later } else { &former });
        black_box(sessions.enter(name(), prompt, n));
    });
    let canonical = speed(b.text.len(), || {
        black_box(compare::common(&a.text, &b.text));
        black_box(Chain::of(&b.text));
    });
    println!("serde_json to a tree     {tree:8.0} MB/s");
    println!("wire body to canonical   {parse:8.0} MB/s  {:.1} x the tree", parse / tree);
    println!("wire body to figures     {figures:8.0} MB/s  {:.1} x the tree", figures / tree);
    println!("canonical to figures     {canonical:8.0} MB/s  {:.1} x the tree", canonical / tree);
    drop(sessions);
    many_sessions();
}

/// Sessions of some 200,000 tokens each, all going on at once: what is kept of them, and what the process takes.
#[expect(clippy::print_stdout, reason = "an example that prints what it measured")]
fn many_sessions() {
    const SESSIONS: u64 = 5_000;
    let large = body(270);
    let mut sessions = Sessions::new(Bounds::default(), "auto-");
    for n in 0..SESSIONS {
        // Another first message, so that no two are alike.
        let text = large.replacen("\"0: ", &format!("\"{n}: "), 1);
        let prompt = Prompt::from_body(Api::Chat, text.as_bytes()).expect("the body is a prompt");
        sessions.enter(Some((SessionBy::Path, format!("s{n}"))), prompt, n);
    }
    let (texts, hashes) = sessions.kept_bytes();
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let resident = status.lines().find_map(|l| l.strip_prefix("VmRSS:")).map_or("not known here", str::trim).to_owned();
    println!(
        "{SESSIONS} sessions of {} bytes: {} kept, texts {} MiB, hashes {} MiB, resident {resident}",
        large.len(),
        sessions.len(),
        texts >> 20,
        hashes >> 20
    );
}
