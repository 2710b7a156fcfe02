//! The canonical form, held against a plain one that builds a tree of values.

#![allow(clippy::unwrap_used, reason = "a test that panics has failed")]

use peaklane_core::lane::Api;
use peaklane_core::prefix::Prompt;
use proptest::prelude::*;
use serde_json::{Map, Value};

/// Names of segments and their texts, by the definition alone.
fn reference(api: Api, body: &Map<String, Value>) -> Vec<(String, String)> {
    let list = |key: &str| body.get(key).and_then(Value::as_array).cloned().unwrap_or_default();
    let mut all: Vec<(String, Value)> =
        list("tools").into_iter().enumerate().map(|(n, tool)| (format!("tool[{n}]"), tool)).collect();
    let (system, messages) = match api {
        Api::Responses => ("instructions", "input"),
        _ => ("system", "messages"),
    };
    match body.get(system).filter(|_| api != Api::Chat) {
        None | Some(Value::Null) => {}
        Some(Value::Array(texts)) => {
            all.extend(texts.iter().enumerate().map(|(n, text)| (format!("system[{n}]"), text.clone())));
        }
        Some(text) => all.push(("system".into(), text.clone())),
    }
    let mut leads = api == Api::Chat;
    for (n, mut message) in list(messages).into_iter().enumerate() {
        let word = |key: &str| message.get(key).and_then(Value::as_str).map(str::to_owned);
        let role = word("role").or(word("type")).unwrap_or_default();
        leads &= role == "system" || role == "developer";
        if api == Api::Responses {
            let item = message.as_object_mut().unwrap();
            item.retain(|key, _| !matches!(key.as_str(), "id" | "status" | "encrypted_content"));
        }
        all.push((if leads { "system".into() } else { format!("msg[{n}]/{role}") }, message));
    }
    all.into_iter().map(|(name, value)| (name, format!("{}\n", seen(value)))).collect()
}

/// Without breakpoints. The tree of values has its keys in order.
fn seen(value: Value) -> Value {
    match value {
        Value::Object(members) => {
            members.into_iter().filter(|(key, _)| key != "cache_control").map(|(key, v)| (key, seen(v))).collect()
        }
        Value::Array(list) => list.into_iter().map(seen).collect(),
        other => other,
    }
}

fn key() -> impl Strategy<Value = String> {
    prop_oneof![
        Just("cache_control".to_owned()),
        Just("id".to_owned()),
        Just("status".to_owned()),
        Just("encrypted_content".to_owned()),
        "[a-z\"\\\\\n\t #é😀]{0,3}",
    ]
}

fn anything() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        any::<i64>().prop_map(Value::from),
        any::<i32>().prop_map(|n| Value::from(f64::from(n) / 8.0)),
        any::<String>().prop_map(Value::from),
        "[a-z\"\\\\\n/\u{1}\u{7f}\u{2028}é😀]{0,90}".prop_map(Value::from),
    ];
    leaf.prop_recursive(3, 24, 5, |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..5).prop_map(Value::from),
            prop::collection::vec((key(), inner), 0..5).prop_map(|m| Value::Object(m.into_iter().collect())),
        ]
    })
}

fn message() -> impl Strategy<Value = Value> {
    let word = prop_oneof![Just("system"), Just("developer"), Just("user"), Just("assistant"), Just("tool")];
    let kind = prop_oneof![Just("reasoning"), Just("message")];
    let more = prop::collection::vec((key(), anything()), 0..3);
    (prop::option::weighted(0.8, word), prop::option::of(kind), anything(), more).prop_map(
        |(role, kind, content, more)| {
            let mut all: Map<String, Value> = more.into_iter().collect();
            all.insert("content".into(), content);
            role.map(|role| all.insert("role".into(), role.into()));
            kind.map(|kind| all.insert("type".into(), kind.into()));
            Value::Object(all)
        },
    )
}

/// A body's members in some order.
fn body() -> impl Strategy<Value = (Api, Vec<(String, Value)>)> {
    let api = prop_oneof![Just(Api::Chat), Just(Api::Messages), Just(Api::Responses)];
    let parts = (
        prop::collection::vec(anything(), 0..4),
        anything(),
        prop::collection::vec(message(), 0..6),
        prop::collection::vec(("x[a-z]{1,4}", anything()), 0..3),
    );
    (api, parts).prop_flat_map(|(api, (tools, system, messages, more))| {
        let (instructions, list) = match api {
            Api::Responses => ("instructions", "input"),
            _ => ("system", "messages"),
        };
        // Only `system` may be a list.
        let system = if api == Api::Responses && system.is_array() { Value::from("be") } else { system };
        let mut all = vec![
            ("tools".to_owned(), Value::from(tools)),
            (instructions.to_owned(), system),
            (list.to_owned(), Value::from(messages)),
        ];
        all.extend(more);
        (Just(api), Just(all).prop_shuffle())
    })
}

/// JSON in which every character that is none of ASCII's is escaped, as many clients write it, surrogate pairs and all.
fn ascii(json: &str) -> String {
    let mut out = String::new();
    for c in json.chars() {
        if c.is_ascii() {
            out.push(c);
        } else {
            c.encode_utf16(&mut [0; 2]).iter().for_each(|unit| out.push_str(&format!("\\u{unit:04x}")));
        }
    }
    out
}

proptest! {
    #[test]
    fn a_prompt_is_what_a_tree_of_values_makes_of_the_body((api, members) in body()) {
        let want = reference(api, &members.iter().cloned().collect());
        let joined: Vec<String> = members.iter().map(|(key, v)| format!("{}: {v:#}", Value::from(&**key))).collect();
        let sent = format!(" {{ {} }}\n", joined.join(" ,\t"));
        for text in [ascii(&sent), sent] {
            let prompt = Prompt::from_body(api, text.as_bytes()).unwrap();
            let got: Vec<(String, String)> = (0..prompt.segments.len())
                .map(|n| (prompt.segments[n].to_string(), String::from_utf8(prompt.segment(n).to_vec()).unwrap()))
                .collect();
            prop_assert_eq!(&got, &want);
            prop_assert_eq!(prompt.text.len(), want.iter().map(|(_, text)| text.len()).sum::<usize>());
        }
    }
}
