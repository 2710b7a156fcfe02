//! Without texts: no piece of a prompt, no word of a server and no name that a body gives is on any disk.

use std::fs;

use peaklane_testkit::binary::Sandbox;
use peaklane_testkit::case::{Answer, Case, CaseApi};
use peaklane_testkit::net::CaseServer;

use crate::support::{Proxy, post, sandbox, summary};

/// A configuration needs a lane.
const LANE: &str =
    "[[lane]]\nname = \"a\"\nkind = \"free-server\"\nbase_url = \"http://127.0.0.1:9/v1\"\nmodel = \"m\"\n";
const REFUSED: &str = "{\"error\":{\"message\":\"account of Grace is over its limit\"}}";

fn server() -> CaseServer {
    let case = Case::scripted("a", CaseApi::Chat, vec![Answer::json(429, 0.0, REFUSED)]);
    CaseServer::with(vec![case]).unwrap()
}

/// Two calls that go on from each other, but for what the system text says; the body names a person.
fn two_calls(proxy: &Proxy<'_>) {
    for name in ["Lovelace", "Babbage"] {
        let body = format!(
            "{{\"model\":\"m\",\"user\":\"ada@example.org\",\"messages\":[{{\"role\":\"system\",\"content\":\"You write code.\\nYou are brief.\\nYou work for {name}.\\nYou run the tests.\"}},{{\"role\":\"user\",\"content\":\"Begin.\"}}]}}"
        );
        assert!(proxy.talk(&post("/v1/chat/completions", &body)).starts_with(b"HTTP/1.1 429 "));
    }
}

/// Whether one of the store's files holds the words.
fn holds(sandbox: &Sandbox, words: &str) -> bool {
    let files = ["peaklane.db", "peaklane.db-wal"].map(|name| fs::read(sandbox.path().join(name)).unwrap_or_default());
    files.iter().any(|bytes| bytes.windows(words.len()).any(|part| part == words.as_bytes()))
}

#[test]
fn texts_of_calls_are_kept_unless_the_configuration_or_the_option_says_otherwise() {
    for (privacy, more, kept) in [
        ("", &[][..], true),
        ("", &["--no-texts"], false),
        ("[privacy]\ntexts = false\n", &[], false),
        ("[privacy]\ntexts = true\n", &["--no-texts"], false),
    ] {
        let (server, sandbox) = (server(), sandbox());
        sandbox.file("peaklane.toml", &format!("{privacy}{LANE}"));
        let proxy = Proxy::start(&sandbox, &server.base_url("a"), more);
        two_calls(&proxy);
        proxy.stop().expect_code(0);
        for words in ["ada@example.org", "Lovelace", "Grace"] {
            assert_eq!(holds(&sandbox, words), kept, "{privacy}{more:?}: {words}");
        }
        let calls = summary(&sandbox, &["calls"]);
        assert_eq!((calls.len(), &calls[0]["session_by"]), (2, &"field".into()));
        assert_eq!(calls[0]["session"], calls[1]["session"], "they are of one session under whatever name");
        let found = &calls[1]["prefix"]["first_divergence"];
        assert_eq!((&found["path"], &calls[1]["http_status"]), (&"messages[0].content".into(), &429.into()));
        assert_eq!(calls[1]["message"].is_string(), kept);
    }
}

#[test]
fn bodies_are_not_kept_where_texts_are_not_and_a_configuration_that_cannot_be_read_is_not_guessed() {
    let sandbox = sandbox();
    let start = ["proxy", "--listen", "127.0.0.1:0", "--upstream", "http://127.0.0.1:9/v1"];
    sandbox.file("peaklane.toml", &format!("[privacy]\ntexts = false\n{LANE}"));
    let both = sandbox.run([&start[..], &["--keep-bodies", "bodies"]].concat()).expect_code(2);
    assert!(both.stderr.contains("--keep-bodies"), "{}", both.stderr);
    sandbox.file("peaklane.toml", &format!("[privacy]\ntexts = maybe\n{LANE}"));
    sandbox.run(start).expect_code(2);
    assert!(!sandbox.path().join("peaklane.db").exists() && !sandbox.path().join("bodies").exists());
}
