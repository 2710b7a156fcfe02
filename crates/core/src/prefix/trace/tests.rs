//! Sessions small enough to be worked out by hand: `{"content":"","role":""}` and the newline are 21 bytes without role
//! and content, `{"role":"","content":""}` as sent is 24.

use serde_json::json;

use super::*;

const TOOL: &str = r#"{"name":"t"}"#;

fn messages(said: &[(&str, &str)]) -> String {
    let one = |(role, content): &(&str, &str)| format!(r#"{{"role":"{role}","content":"{content}"}}"#);
    said.iter().map(one).collect::<Vec<_>>().join(",")
}

fn call(seq: u64, api: &str, body: &str) -> TraceCall {
    TraceCall::read(&format!(r#"{{"harness":"h","session":"s","seq":{seq},"t_ms":0,"api":"{api}","body":{body}}}"#))
        .unwrap()
}

fn chat(seq: u64, said: &[(&str, &str)], with_tool: bool) -> TraceCall {
    let tools = if with_tool { format!(r#","tools":[{TOOL}]"#) } else { String::new() };
    call(seq, "chat", &format!(r#"{{"messages":[{}]{tools}}}"#, messages(said)))
}

#[test]
fn a_session_with_a_title_and_a_changed_system_text_has_the_figures_worked_out_by_hand() {
    let (u, a, v, w) = (("user", "u"), ("assistant", "a1"), ("user", "v"), ("user", "w"));
    let session = session_of(
        Some("f.jsonl"),
        [
            chat(1, &[("system", "title"), u], false),
            chat(2, &[("system", "ab"), u], true),
            chat(3, &[("system", "ab"), u, a, v], true),
            chat(4, &[("system", "ac"), u, a, v, a, w], true),
        ],
    )
    .unwrap();
    // Tool 13, system 33, user 30, assistant 36 bytes: prompts of 76, 142 and 208. The system texts part behind
    // `{"content":"a`, 13 bytes in. As sent: 13 before the first message, 32, 29, 35 a message, 24 behind the last.
    let want = json!({
        "file": "f.jsonl", "harness": "h", "version": null, "session": "s", "calls": 4, "helper_calls": 1,
        "first_prompt_bytes": 76, "last_prompt_bytes": 208, "tools": 1, "reuse_min": 0.1831, "reuse_mean": 0.5915,
        "reuse_min_other_order": 0.0915, "append_only_pairs": 1, "pairs": 2, "bytes_resent": 350, "bytes_warm": 102,
        "session_hit_ratio": 0.2394,
        "breaks": [{"from": 3, "to": 4, "where": "system", "lost": 116, "reuse": 0.1831}],
        "pair_list": [
            {"from": 2, "to": 3, "a_bytes": 76, "b_bytes": 142, "common": 76, "reuse": 1.0, "warm": 0.5352, "blocks": 1.0,
             "lost": 0, "where": null, "raw": 0.75, "reuse_best": 0.5352, "first_divergence": null},
            {"from": 3, "to": 4, "a_bytes": 142, "b_bytes": 208, "common": 26, "reuse": 0.1831, "warm": 0.125,
             "blocks": 0.0, "lost": 116, "where": "system", "raw": 0.253, "reuse_best": 0.125,
             "first_divergence": {"segment": "system", "path": "messages[0].content", "kind": "system",
                                  "before": "ab", "after": "ac"}},
        ],
    });
    assert_eq!(serde_json::to_value(session).unwrap(), want);
}

#[test]
fn without_tools_the_largest_call_tells_which_calls_are_beside_it() {
    let u = ("user", "u");
    let of = |lines: &'static str| ("system", lines);
    let session = session_of(
        None,
        [
            chat(1, &[of(r"one\ntwo\nthree"), u], false),
            // Two of three lines, and one of three.
            chat(2, &[of(r"one\ntwo\nfour"), u], false),
            chat(3, &[of(r"one\nfive\nsix"), u], false),
            chat(4, &[of(r"one\ntwo\nthree"), u, ("assistant", "long enough to be the largest"), u], false),
        ],
    )
    .unwrap();
    assert_eq!((session.calls, session.helper_calls, session.tools), (4, 1, 0));
    assert_eq!(session.pair_list.iter().map(|p| (p.from, p.to)).collect::<Vec<_>>(), [(1, 2), (2, 4)]);
    // `{"content":"one\ntwo\n`, then `three` and `four` part: 12 bytes before the text, 10 of it.
    assert!(session.pair_list.iter().all(|p| p.common == 22 && p.place.as_deref() == Some("system")));
    // Call 1 began as call 4 does: system text 21 + 6 + 15, user 21 + 4 + 1 bytes, of which one block is whole.
    let last = &session.pair_list[1];
    assert_eq!(last.reuse_best, reduce::round4(64.0 / last.b_bytes as f64));
}

#[test]
fn what_the_model_never_sees_breaks_no_session_of_responses() {
    let body = |n: u32, more: &str| {
        format!(
            r#"{{"instructions":"be","input":[{{"type":"message","role":"user","content":"u","id":"m{n}"}},
                {{"encrypted_content":"e{n}","type":"reasoning","summary":[],"status":"s{n}"}}{more}]}}"#
        )
    };
    let next = r#",{"type":"function_call_output","call_id":"c","output":"ok"}"#;
    let session = session_of(None, [call(1, "responses", &body(1, "")), call(2, "responses", &body(2, next))]).unwrap();
    // "be" 5; {"content":"u","role":"user","type":"message"} 47; {"summary":[],"type":"reasoning"} 34, newlines included.
    assert_eq!((session.first_prompt_bytes, session.bytes_warm, session.append_only_pairs), (86, 86, 1));
    // As sent, the ids differ.
    assert!(session.pair_list[0].raw < 1.0);
}

#[test]
fn a_line_that_is_no_call_is_told_by_what_is_wrong_with_it() {
    let read = |line: &str| TraceCall::read(line).unwrap_err().to_string();
    assert!(read("{").starts_with("not a recorded call"));
    assert!(read(r#"{"session":"s","api":"gopher","body":{}}"#).contains("`api` is `gopher`"));
    let error = read(r#"{"session":"s","seq":7,"api":"chat","body":{}}"#);
    assert_eq!(error, "the body of call 7: the body has neither `messages` nor `input` nor `prompt`");
}
