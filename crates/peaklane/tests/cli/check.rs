//! `peaklane check`: everything that can be wrong with a configuration, told before anything is sent.

use std::fs;

use crate::schema::assert_valid;
use crate::support::{KEY, configuration, refused, sandbox};

#[test]
fn a_sound_configuration_shows_what_would_be_measured() {
    let sandbox = sandbox().env("LANE_A_KEY", KEY).env("LANE_B_KEY", KEY);
    sandbox.run(["init"]).expect_code(0);
    let shown = sandbox.run(["check"]).expect_code(0);
    assert_eq!(shown.stderr, "");
    assert!(shown.stdout.starts_with("peaklane.toml can be used\n"), "{}", shown.stdout);
    for words in [
        "https://lane-b.example/openai/v1/chat/completions",
        // 2 lanes x 1 task x 4 windows x 3 days = 24 bursts; 24 x (8 + 1) = 216; with 2 retries each 648
        "2 lanes x 1 task x 4 windows x 3 days = 24 bursts of 8 attempts",
        "216 (24 of them to warm up), at most 648 with 2 retries each",
        "16:00 (peak) for 90 min",
        "Europe/Berlin",
    ] {
        assert!(shown.stdout.contains(words), "no `{words}` in\n{}", shown.stdout);
    }
    sandbox.assert_never_said(KEY, &[]);
}

#[test]
fn programs_get_the_same_in_json_csv_and_markdown() {
    let sandbox = sandbox().env("LANE_A_KEY", KEY);
    sandbox.run(["init"]).expect_code(0);
    let object = sandbox.run(["check", "--format", "json"]).expect_code(0).json();
    assert_valid("check", &object);
    assert_eq!((&object["ok"], &object["extent"]["requests"]), (&true.into(), &216.into()));
    assert_eq!((&object["lanes"][0]["key"], &object["lanes"][1]["key"]), (&"ready".into(), &"not_set".into()));
    let csv = sandbox.run(["check", "--format", "csv"]).expect_code(0).stdout;
    assert!(csv.contains("\nextent.requests,216\n") && csv.contains("\nlanes.0.name,lane-a\n"), "{csv}");
    let markdown = sandbox.run(["check", "--format", "md"]).expect_code(0).stdout;
    assert!(markdown.contains("| lane-a | free-hosted |"), "{markdown}");
    sandbox.assert_never_said(KEY, &[]);
}

#[test]
fn a_key_variable_that_is_not_set_is_a_warning_unless_the_check_is_strict() {
    let sandbox = sandbox();
    sandbox.file("peaklane.toml", &configuration("key_env = \"LANE_A_KEY\""));
    let ran = sandbox.run(["check"]).expect_code(0);
    assert!(ran.stderr.starts_with("warning: lane `lane-a`: the variable `LANE_A_KEY`"), "{}", ran.stderr);
    refused(
        sandbox.run(["check", "--strict"]),
        2,
        &["`LANE_A_KEY` should hold its key and is not set", "export LANE_A_KEY"],
    );
}

#[test]
fn an_unknown_key_is_told_with_its_line_and_the_nearest_known_one() {
    let sandbox = sandbox();
    sandbox.file("peaklane.toml", &configuration("modell = \"x\"\nbase_ulr = \"y\""));
    refused(sandbox.run(["check"]), 2, &["`modell`", "`model`", "(line 6)", "`base_ulr`", "`base_url`", "(line 7)"]);
    let object = sandbox.run(["check", "--format", "json"]).expect_code(2).json();
    assert_valid("check", &object);
    assert_eq!(object["ok"], false);
    let mut lines: Vec<_> = object["problems"].as_array().unwrap().iter().map(|p| p["line"].as_u64()).collect();
    lines.sort_unstable();
    assert_eq!(lines, [Some(6), Some(7)]);
}

#[test]
fn a_wrong_zone_is_told_with_the_nearest_one() {
    let sandbox = sandbox();
    sandbox.file("peaklane.toml", &format!("time_zone = \"Europe/Berlim\"\n{}", configuration("")));
    refused(sandbox.run(["check"]), 2, &["Europe/Berlim", "Europe/Berlin"]);
}

#[test]
fn problems_of_every_sort_are_told_together() {
    let sandbox = sandbox();
    let text = configuration("key_file = \"no-such-key\"\n[burst]\nattempts = 0");
    sandbox.file("peaklane.toml", &format!("time_zone = \"Europe/Berlim\"\n{text}"));
    let told = ["`attempts` is 0", "no-such-key", "Europe/Berlim"];
    refused(sandbox.run(["check"]), 2, &told);
    let object = sandbox.run(["check", "--format", "json"]).expect_code(2).json();
    assert_valid("check", &object);
    let texts = object["problems"].to_string();
    assert!(told.iter().all(|word| texts.contains(word)), "{texts}");
}

#[cfg(unix)]
#[test]
fn a_key_file_that_is_a_folder_a_dangling_link_or_no_key_is_told_without_what_is_in_it() {
    let sandbox = sandbox();
    fs::create_dir(sandbox.path().join("folder")).unwrap();
    std::os::unix::fs::symlink("nowhere", sandbox.path().join("dangling")).unwrap();
    sandbox.file("two-lines", &format!("{KEY}\n{KEY}\n"));
    sandbox.file("blank", "  \n");
    for (file, words) in [
        ("folder", "it is a folder"),
        ("dangling", "a link to something that is not there"),
        ("missing", "no such file"),
        ("two-lines", "line break"),
        ("blank", "the key is empty"),
    ] {
        sandbox.file("peaklane.toml", &configuration(&format!("key_file = \"{file}\"")));
        refused(sandbox.run(["check"]), 2, &["lane `lane-a`", file, words]);
        let object = sandbox.run(["check", "--format", "json"]).expect_code(2).json();
        assert_valid("check", &object);
        assert_eq!(object["lanes"][0]["key"], "unusable", "{file}");
    }
    sandbox.assert_never_said(KEY, &["two-lines"]);
}

#[test]
fn a_key_in_the_wrong_place_is_not_repeated() {
    let sandbox = sandbox();
    for extra in [
        format!("key_env = \"{KEY}\""),
        format!("api_key = \"{KEY}\""),
        format!("headers = {{ Authorization = \"Bearer {KEY}\" }}"),
        format!("kind = \"{KEY}\""),
    ] {
        sandbox.file("peaklane.toml", &configuration(&extra));
        for form in ["table", "json"] {
            sandbox.run(["check", "--format", form]).expect_code(2);
        }
    }
    sandbox.file("peaklane.toml", &configuration("").replace("http://", &format!("http://user:{KEY}@")));
    sandbox.run(["check"]).expect_code(2);
    sandbox.assert_never_said(KEY, &["peaklane.toml"]);
}

#[cfg(unix)]
#[test]
fn a_configuration_that_cannot_be_read_is_told() {
    let sandbox = sandbox();
    refused(sandbox.run(["check", "--config", "missing.toml"]), 2, &["missing.toml", "no such file", "peaklane init"]);
    refused(sandbox.run(["check", "--config", "home"]), 2, &["it is a folder"]);
    fs::write(sandbox.path().join("latin.toml"), b"# caf\xe9\n").unwrap();
    refused(sandbox.run(["check", "--config", "latin.toml"]), 2, &["UTF-8"]);
    sandbox.file("broken.toml", "[[lane]\n");
    refused(sandbox.run(["check", "--config", "broken.toml"]), 2, &["no valid TOML", "line 1"]);
    std::os::unix::fs::symlink("nowhere", sandbox.path().join("peaklane.toml")).unwrap();
    refused(sandbox.run(["check"]), 2, &["link to something that is not there"]);
}

#[test]
fn without_a_file_the_environment_makes_the_lane() {
    let nothing = sandbox();
    refused(nothing.run(["check"]), 2, &["no lane to measure", "peaklane init", "peaklane demo"]);
    let object = nothing.run(["check", "--format", "json"]).expect_code(2).json();
    assert_valid("check", &object);

    let half = sandbox().env("LLM_BASE_URL", "http://127.0.0.1:9");
    refused(half.run(["check"]), 2, &["`LLM_MODEL` is not set"]);

    let whole = sandbox().env("LLM_BASE_URL", "http://127.0.0.1:9").env("LLM_MODEL", "m").env("LLM_API_KEY", KEY);
    let object = whole.run(["check", "--format", "json"]).expect_code(0).json();
    assert_valid("check", &object);
    let lane = &object["lanes"][0];
    assert_eq!((&lane["name"], &lane["kind"], &lane["key"]), (&"env".into(), &"free-hosted".into(), &"ready".into()));
    assert_eq!(lane["url"], "http://127.0.0.1:9/v1/chat/completions");
    // no warm-up: a burst is eight requests and nothing else
    assert_eq!((&object["extent"]["requests"], &object["extent"]["campaign"]), (&8.into(), &false.into()));
    whole.assert_never_said(KEY, &[]);
}

#[test]
fn a_prompt_file_is_read_beside_the_configuration() {
    let sandbox = sandbox();
    fs::create_dir(sandbox.path().join("conf")).unwrap();
    let task = "[[task]]\nname = \"t\"\nprompt_file = \"prompt.txt\"";
    sandbox.file("conf/team.toml", &configuration(task));
    refused(sandbox.run(["check", "--config", "conf/team.toml"]), 2, &["`prompt_file` \"prompt.txt\"", "no such file"]);
    sandbox.file("conf/prompt.txt", "Say hello.");
    let object = sandbox.run(["check", "--config", "conf/team.toml", "--format", "json"]).expect_code(0).json();
    assert_eq!(object["tasks"][0]["prompt_bytes"], 10);
}

#[cfg(unix)]
#[test]
fn a_device_or_a_huge_file_in_the_place_of_the_configuration_is_refused_unread() {
    let sandbox = sandbox();
    fs::File::create(sandbox.path().join("huge.toml")).unwrap().set_len(1 << 40).unwrap();
    for (file, why) in [("/dev/zero", "no regular file"), ("huge.toml", "bytes long")] {
        refused(sandbox.run(["check", "--config", file]), 2, &[why]);
    }
}

#[test]
fn each_site_is_shown_with_its_own_zone_and_windows() {
    let sandbox = sandbox();
    let sites = "[campaign]\ndays = 2\n[[site]]\nname = \"berlin\"\ntime_zone = \"Europe/Berlin\"\n[[site]]\nname = \"seoul\"\n\
                 time_zone = \"asia/seoul\"\nwindows = [\"10:00\"]\npeak = \"10:00\"\n";
    sandbox.file("peaklane.toml", &format!("{sites}{}", configuration("")));
    let object = sandbox.run(["check", "--format", "json"]).expect_code(0).json();
    assert_valid("check", &object);
    let extent = &object["extent"];
    // four windows and one, two days each, of one lane and one task
    assert_eq!(
        (&extent["bursts"], &extent["sites"][0]["bursts"], &extent["sites"][1]["bursts"]),
        (&10.into(), &8.into(), &2.into())
    );
    assert_eq!(extent["sites"][1]["time_zone"], "Asia/Seoul");
    let shown = sandbox.run(["check"]).expect_code(0).stdout;
    assert!(shown.contains("seoul, 1 lane: 10:00 (peak)") && shown.contains("5 windows at 2 sites"), "{shown}");
}
