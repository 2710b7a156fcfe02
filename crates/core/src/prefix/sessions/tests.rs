use proptest::prelude::*;
use serde_json::{Value, json};

use super::*;
use crate::call::BreakKind;
use crate::lane::Api;

fn prompt(body: &Value) -> Prompt {
    Prompt::from_body(Api::Chat, body.to_string().as_bytes()).unwrap()
}

/// A body with a tool, a system text and messages that take turns.
fn body(system: &str, messages: &[&str]) -> Value {
    let mut list = vec![json!({"role": "system", "content": system})];
    for (n, text) in messages.iter().enumerate() {
        list.push(json!({"role": if n % 2 == 0 { "user" } else { "assistant" }, "content": text}));
    }
    json!({"tools": [{"name": "read"}], "messages": list})
}

fn named(name: &str) -> Option<(SessionBy, String)> {
    Some((SessionBy::Path, name.to_owned()))
}

fn sessions() -> Sessions {
    Sessions::new(Bounds::default(), "auto-")
}

#[test]
fn a_call_that_goes_on_from_the_last_repeats_it_whole() {
    let mut all = sessions();
    let one = all.enter(named("s"), prompt(&body("be brief", &["hi"])), 0);
    assert_eq!((one.seq, one.figures.former_seq, one.figures.best_bytes), (1, None, None));
    let two = all.enter(named("s"), prompt(&body("be brief", &["hi", "yes?", "go"])), 10).figures;
    assert_eq!((two.former_seq, two.reuse(), two.lost_bytes(), &two.divergence), (Some(1), Some(1.0), Some(0), &None));
    assert_eq!((two.best_seq, two.best_bytes), (Some(1), two.common_bytes));
}

#[test]
fn the_same_prompt_again_is_a_retry() {
    let mut all = sessions();
    let retries: Vec<u32> = [["hi"], ["hi"], ["hi"], ["ho"], ["hi"]]
        .iter()
        .map(|m| all.enter(named("s"), prompt(&body("x", m)), 0).retry)
        .collect();
    assert_eq!(retries, [0, 1, 2, 0, 0]);
}

#[test]
fn a_clock_in_the_system_text_breaks_the_lineage_but_not_the_session() {
    let mut all = sessions();
    let long = "You write code and nothing else.\n".repeat(20);
    let at = |time: &str, messages: &[&str]| prompt(&body(&format!("{long}It is {time}\nBe brief."), messages));
    all.enter(None, at("09:00:01", &["fix it"]), 0);
    let two = all.enter(None, at("09:00:07", &["fix it", "done", "and this"]), 10);
    assert_eq!((two.by, two.seq), (SessionBy::Prefix, 2));
    let found = two.figures.divergence.unwrap();
    assert_eq!((found.kind, &*found.segment), (BreakKind::Clock, "system"));
}

#[test]
fn without_tools_a_clock_in_a_system_text_of_one_line_is_a_break_and_another_conversation_is_a_helper() {
    let mut all = sessions();
    let of = |system: &str, user: &str| {
        prompt(&json!({"messages": [{"role": "system", "content": system}, {"role": "user", "content": user}]}))
    };
    all.enter(named("s"), of("It is 10:01", "fix it"), 0);
    let two = all.enter(named("s"), of("It is 10:02", "fix it"), 0).figures;
    assert_eq!((two.helper, two.former_seq, two.divergence.unwrap().kind), (false, Some(1), BreakKind::Clock));
    assert!(all.enter(named("s"), of("Write a commit message.", "diff"), 0).figures.helper);
}

#[test]
fn two_runs_of_one_harness_are_two_sessions_although_they_begin_alike() {
    let mut all = sessions();
    let names: Vec<String> = [
        vec!["task a"],
        vec!["task b"],
        vec!["task a", "ok", "more a"],
        vec!["task b", "ok", "more b"],
        vec!["task c"],
    ]
    .iter()
    .map(|messages| all.enter(None, prompt(&body("same", messages)), 0).session)
    .collect();
    assert_eq!(names, ["auto-1", "auto-2", "auto-1", "auto-2", "auto-3"]);
}

#[test]
fn a_session_without_a_name_is_not_gone_on_with_after_two_hours() {
    let mut all = sessions();
    all.enter(None, prompt(&body("x", &["task"])), 0);
    let late = all.enter(None, prompt(&body("x", &["task", "ok", "more"])), 2 * 3_600_000 + 1);
    assert_eq!((late.by, &*late.session), (SessionBy::New, "auto-2"));
}

#[test]
fn a_sub_agent_has_a_lineage_of_its_own_and_the_main_one_goes_on_unbroken() {
    let mut all = sessions();
    let main = |messages: &[&str]| prompt(&body("You are the main agent.\nDo it well.", messages));
    let agent = |messages: &[&str]| prompt(&body("Search only.\nAnswer in one line.", messages));
    all.enter(named("s"), main(&["task"]), 0);
    let sub = all.enter(named("s"), agent(&["find x"]), 0).figures;
    assert_eq!((sub.former_seq, sub.best_seq), (None, None), "not even a block is shared");
    let sub = all.enter(named("s"), agent(&["find x", "hm", "y"]), 0).figures;
    assert_eq!((sub.former_seq, sub.reuse()), (Some(2), Some(1.0)));
    let main = all.enter(named("s"), main(&["task", "ok", "more"]), 0).figures;
    assert_eq!((main.former_seq, main.reuse()), (Some(1), Some(1.0)));
}

#[test]
fn a_title_call_is_a_helper_before_and_after_the_first_call_with_tools() {
    let mut all = sessions();
    let title =
        json!({"messages": [{"role": "system", "content": "Make a title."}, {"role": "user", "content": "task"}]});
    let early = all.enter(named("s"), prompt(&title), 0).figures;
    assert_eq!((early.helper, early.former_seq), (false, None), "nothing tells it yet");
    let first = all.enter(named("s"), prompt(&body("You code.", &["task"])), 0).figures;
    assert_eq!((first.helper, first.former_seq), (false, None), "the title is not its former call");
    let late = all.enter(named("s"), prompt(&title), 0).figures;
    assert_eq!((late.helper, late.former_seq), (true, None));
    let next = all.enter(named("s"), prompt(&body("You code.", &["task", "ok", "go"])), 0).figures;
    assert_eq!((next.former_seq, next.reuse()), (Some(2), Some(1.0)));
}

#[test]
fn a_prompt_that_returns_to_an_older_one_is_warm_from_that() {
    let mut all = sessions();
    let long = "x".repeat(1_000);
    all.enter(named("s"), prompt(&body("a", &["task", &long, "go"])), 0);
    all.enter(named("s"), prompt(&body("a", &["task", "cut"])), 0);
    let back = all.enter(named("s"), prompt(&body("a", &["task", &long, "go", "on"])), 0).figures;
    assert_eq!(back.former_seq, Some(2));
    assert_eq!(back.best_seq, Some(1));
    let first = prompt(&body("a", &["task", &long, "go"])).text.len() as u64;
    assert_eq!(back.best_bytes, Some(first / 64 * 64));
    assert!(back.common_bytes.unwrap() < 150);
}

#[test]
fn texts_go_first_and_then_whole_sessions_and_figures_stay_right_in_blocks() {
    let bounds = Bounds { text_bytes: 40_000, hash_bytes: 60_000, sessions: 50, idle_ms: 1_000 };
    let mut all = Sessions::new(bounds, "auto-");
    let long = "y".repeat(8_000);
    for n in 0..200 {
        let name = format!("s{n}");
        all.enter(named(&name), prompt(&body("a", &[&name, &long])), n);
        let (texts, hashes) = all.kept_bytes();
        assert!(texts <= bounds.text_bytes && hashes <= bounds.hash_bytes && all.len() <= bounds.sessions);
    }
    // Long enough ago for its text to have gone, not for its hashes.
    let name = "s190";
    let later = all.enter(named(name), prompt(&body("a", &[name, &long, "more"])), 300);
    assert_eq!((later.seq, later.figures.exact, later.figures.reuse()), (2, true, Some(1.0)));
    let changed = all.enter(named("s191"), prompt(&body("a", &["s191", &long.replace("yyyyyyyy", "z"), "x"])), 301);
    assert_eq!((changed.seq, changed.figures.exact, changed.figures.divergence), (2, false, None));
    assert_eq!(changed.figures.common_bytes.unwrap() % 64, 0);
    // The first ones are gone altogether.
    assert_eq!(all.enter(named("s0"), prompt(&body("a", &["s0"])), 302).seq, 1);
}

fn texts() -> impl Strategy<Value = Vec<String>> {
    prop::collection::vec("[a-z ]{1,40}", 1..12)
}

proptest! {
    #[test]
    fn a_history_that_only_grows_has_reuse_one(messages in texts()) {
        let mut all = sessions();
        for n in 1..=messages.len() {
            let shown: Vec<&str> = messages[..n].iter().map(String::as_str).collect();
            let placed = all.enter(named("s"), prompt(&body("sys", &shown)), 0);
            if n > 1 {
                prop_assert_eq!(placed.figures.reuse(), Some(1.0));
                prop_assert_eq!(placed.figures.divergence, None);
            }
        }
    }

    #[test]
    fn shares_are_shares_and_other_sessions_change_nothing(calls in prop::collection::vec((0u8..3, texts()), 1..12)) {
        let mut mixed = sessions();
        let mut apart: Vec<Sessions> = (0..3).map(|_| sessions()).collect();
        // As little memory as can be: only whole blocks are known.
        let mut tiny = Sessions::new(Bounds { text_bytes: 0, ..Bounds::default() }, "auto-");
        for (session, messages) in &calls {
            let shown: Vec<&str> = messages.iter().map(String::as_str).collect();
            let name = format!("s{session}");
            let one = mixed.enter(named(&name), prompt(&body("sys", &shown)), 0);
            let other = apart[usize::from(*session)].enter(named(&name), prompt(&body("sys", &shown)), 0);
            prop_assert_eq!(&one, &other);
            let blocks = tiny.enter(named(&name), prompt(&body("sys", &shown)), 0).figures;
            for share in [one.figures.reuse(), one.figures.warm(), one.figures.reuse_best()].into_iter().flatten() {
                prop_assert!((0.0..=1.0).contains(&share));
            }
            if blocks.former_seq == one.figures.former_seq
                && let (Some(rough), Some(exact)) = (blocks.common_bytes, one.figures.common_bytes)
            {
                prop_assert!(rough <= exact && exact - rough < 64, "{} {}", rough, exact);
            }
        }
    }
}
