//! Without texts and names: what people were answered and who they are is on no disk.

use std::fs;
use std::path::Path;

use peaklane_sim::fake::{FAKE_ANSWER, FakeLane};
use peaklane_testkit::binary::Sandbox;

use crate::support::{BINARY, stored};

/// A configuration of one lane that answers well and one that refuses with words.
fn configured(lane: &FakeLane, privacy: &str) -> Sandbox {
    let sandbox = Sandbox::new(BINARY);
    let one = |name: &str, model: &str| {
        format!(
            "[[lane]]\nname = \"{name}\"\nkind = \"free-server\"\nbase_url = \"{}\"\nmodel = \"{model}\"\nowner = \"Ada L\"\n",
            lane.base_url()
        )
    };
    let task = "[[task]]\nname = \"t\"\nprompt = \"Say it.\"\nfloor_author = \"Grace H\"\ncheck = { contains = \"nothing of the kind\" }\n";
    let lanes = one("well", "fake-ok") + &one("refused", "fake-quota");
    sandbox.file("peaklane.toml", &format!("{privacy}\n[retry]\nmax = 0\n{lanes}{task}"));
    sandbox
}

/// Every byte of the folder: the store with its log, the CSV file.
fn bytes(folder: &Path) -> Vec<u8> {
    let files = ["peaklane.db", "peaklane.db-wal", "all.csv"];
    files.iter().flat_map(|name| fs::read(folder.join(name)).unwrap_or_default()).collect()
}

fn holds(folder: &Path, words: &str) -> bool {
    bytes(folder).windows(words.len()).any(|part| part == words.as_bytes())
}

#[test]
fn texts_are_kept_unless_the_configuration_or_the_option_says_otherwise() {
    let lane = FakeLane::start().unwrap();
    let burst = ["burst", "-q", "-n", "2", "--warmup", "1", "--csv", "all.csv"];
    let answer = &FAKE_ANSWER[..24];
    for (privacy, more, kept) in [
        ("", &[][..], true),
        ("", &["--no-texts"], false),
        ("[privacy]\ntexts = false", &[], false),
        ("[privacy]\ntexts = true", &["--no-texts"], false),
    ] {
        let sandbox = configured(&lane, privacy);
        sandbox.run([&burst[..], more].concat()).expect_code(0);
        assert_eq!(holds(sandbox.path(), answer), kept, "{privacy} {more:?}");
        let tries = stored(sandbox.path()).into_iter().flat_map(|(_, attempts)| attempts).flat_map(|a| a.tries);
        let (answered, refused): (Vec<_>, Vec<_>) = tries.partition(|one| one.outcome.is_ok());
        assert_eq!((answered.len(), refused.len()), (3, 3), "figures and classes are there either way");
        assert!(answered.iter().all(|one| one.request_id.is_some() == kept && one.ttft_us.is_some()));
        assert!(refused.iter().all(|one| one.message.is_some() == kept && one.http_status == Some(429)));
        // the verdict stays, what the check quotes goes
        let rows = sandbox.read("all.csv");
        assert_eq!(rows.lines().filter(|row| row.contains(",wrong_answer,")).count(), 3, "{rows}");
    }
}

#[test]
fn names_are_shown_nowhere_where_they_are_not_to_be_kept() {
    let lane = FakeLane::start().unwrap();
    let sandbox = configured(&lane, "[privacy]\ntexts = false");
    sandbox.run(["burst", "-q", "-n", "1"]).expect_code(0);
    sandbox.run(["check", "--format", "json"]).expect_code(0);
    for name in ["Ada L", "Grace H"] {
        assert!(!holds(sandbox.path(), name), "{name}");
    }
}
