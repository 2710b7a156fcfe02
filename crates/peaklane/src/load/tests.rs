use std::collections::HashMap;
use std::error::Error;
use std::fs;
use std::os::unix::fs::symlink;

use peaklane_core::config::{DEFAULT_PROMPT, Micros};
use peaklane_core::lane::{Api, Kind};
use peaklane_run::plan_hash::plan_hash;
use tempfile::TempDir;

use super::*;

const LANE: &str =
    "[[lane]]\nname = \"a\"\nkind = \"free-hosted\"\nbase_url = \"https://a.example/v1\"\nmodel = \"m\"\n";

fn env(pairs: &[(&str, &str)]) -> HashMap<String, String> {
    pairs.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect()
}

fn folder(files: &[(&str, &str)]) -> TempDir {
    let dir = tempfile::tempdir().unwrap();
    for (name, text) in files {
        fs::write(dir.path().join(name), text).unwrap();
    }
    dir
}

/// An error as `main` prints it: message, causes, hint.
fn told(error: &(dyn Error + 'static), hint: Option<String>) -> String {
    let mut text = error.to_string();
    let mut cause = error.source();
    while let Some(error) = cause {
        text.push_str(&format!("\n{error}"));
        cause = error.source();
    }
    format!("{text}\nhint: {}", hint.unwrap_or_default())
}

fn refusal(dir: &TempDir, path: Option<&str>, variables: &[(&str, &str)]) -> String {
    let error = load_in(dir.path(), path.map(Path::new), &env(variables)).unwrap_err();
    told(&error, error.hint())
}

#[test]
fn the_environment_alone_makes_one_lane_without_a_warm_up() {
    let variables = env(&[("LLM_BASE_URL", "http://127.0.0.1:8080"), ("LLM_MODEL", "m"), ("LLM_API_KEY", "sk-s3cret")]);
    let loaded = load_in(folder(&[]).path(), None, &variables).unwrap();
    assert_eq!(loaded.source, Source::Environment);
    let [lane] = loaded.config.lanes.as_slice() else { panic!("one lane") };
    assert_eq!((lane.name.as_str(), lane.kind, lane.api), ("env", Kind::FreeHosted, Api::Chat));
    assert_eq!((lane.base_url.as_str(), lane.model.as_str()), ("http://127.0.0.1:8080", "m"));
    let [task] = loaded.config.tasks.as_slice() else { panic!("one task class") };
    assert_eq!((task.name.as_str(), task.prompt.as_deref()), ("inline-assist", Some(DEFAULT_PROMPT)));
    assert_eq!(task.latency_floor(), Some(Micros::from_secs(25)));
    assert_eq!((loaded.config.burst.attempts, loaded.config.burst.warmup, loaded.config.retry.max), (8, 0, 2));
    assert_eq!(key_of(lane, &variables).unwrap().unwrap().expose(), "sk-s3cret");
    assert!(!format!("{loaded:?}").contains("s3cret"));
}

#[test]
fn switching_the_variables_switches_the_lane() {
    let dir = folder(&[]);
    let base = [("LLM_BASE_URL", "http://127.0.0.1:1/v1"), ("LLM_MODEL", "m")];
    let first = load_in(dir.path(), None, &env(&base)).unwrap().config;
    let second =
        load_in(dir.path(), None, &env(&[base[0], ("LLM_MODEL", "n"), ("LLM_API", "messages")])).unwrap().config;
    assert_eq!((second.lanes[0].model.as_str(), second.lanes[0].api), ("n", Api::Messages));
    assert_eq!((first.tasks, first.burst, first.retry), (second.tasks, second.burst, second.retry));
    assert!(key_of(&first.lanes[0], &env(&[])).unwrap().is_none());
}

#[test]
fn what_is_missing_in_the_environment_is_named_with_the_next_step() {
    let dir = folder(&[]);
    let nothing = refusal(&dir, None, &[("LLM_BASE_URL", " ")]);
    assert!(nothing.contains("no lane to measure") && nothing.contains("peaklane init"), "{nothing}");
    let model = refusal(&dir, None, &[("LLM_BASE_URL", "http://a")]);
    assert!(model.starts_with("`LLM_MODEL` is not set") && model.contains("export LLM_MODEL="), "{model}");
    let url = refusal(&dir, None, &[("LLM_MODEL", "m")]);
    assert!(url.starts_with("`LLM_BASE_URL` is not set") && url.contains("export LLM_BASE_URL="), "{url}");
    let both = [("LLM_BASE_URL", "http://a"), ("LLM_MODEL", "m")];
    let api = refusal(&dir, None, &[both[0], both[1], ("LLM_API", "chta")]);
    assert!(api.contains("`chta` is none of chat, completions"), "{api}");
    let bad = refusal(&dir, None, &[("LLM_BASE_URL", "user:s3cret"), both[1], ("LLM_API_KEY", "s3cret")]);
    assert!(
        bad.contains("`LLM_BASE_URL`") && bad.contains("neither http nor https") && !bad.contains("s3cret"),
        "{bad}"
    );
}

#[test]
fn the_file_in_the_folder_goes_before_the_environment() {
    let dir = folder(&[(FILE_NAME, LANE)]);
    let variables = env(&[("LLM_BASE_URL", "http://b"), ("LLM_MODEL", "n")]);
    let loaded = load_in(dir.path(), None, &variables).unwrap();
    assert_eq!(loaded.config.lanes[0].name, "a");
    assert_eq!(loaded.source, Source::File(dir.path().join(FILE_NAME)));
    assert_eq!(loaded.config.burst.warmup, 1);
}

#[test]
fn a_file_that_was_named_must_be_there_whatever_the_environment_says() {
    let dir = folder(&[("lanes.toml", LANE), ("binary.toml", "x")]);
    let both = [("LLM_BASE_URL", "http://b"), ("LLM_MODEL", "n")];
    assert!(load_in(dir.path(), Some(Path::new("lanes.toml")), &env(&both)).is_ok());
    let missing = refusal(&dir, Some("other.toml"), &both);
    assert!(missing.contains("other.toml`\nthere is no such file") && missing.contains("peaklane init"), "{missing}");
    let below = refusal(&dir, Some("lanes.toml/other.toml"), &both);
    assert!(below.contains("there is no such file"), "{below}");
    fs::create_dir(dir.path().join("folder.toml")).unwrap();
    assert!(refusal(&dir, Some("folder.toml"), &both).contains("it is a folder"));
    fs::write(dir.path().join("binary.toml"), [0xff, 0xfe]).unwrap();
    assert!(refusal(&dir, Some("binary.toml"), &both).contains("no text in UTF-8"));
    fs::write(dir.path().join("huge.toml"), "#".repeat(config::MAX_TEXT_BYTES + 1)).unwrap();
    assert!(refusal(&dir, Some("huge.toml"), &both).contains("bytes long"));
    symlink("nowhere", dir.path().join(FILE_NAME)).unwrap();
    assert!(refusal(&dir, None, &both).contains("a link to something that is not there"));
}

#[test]
fn a_file_with_a_fault_is_told_with_its_name_and_line() {
    let dir = folder(&[(FILE_NAME, &format!("{LANE}modle = 1\n"))]);
    let text = refusal(&dir, None, &[]);
    assert!(
        text.contains("peaklane.toml`\nunknown key `modle` in [[lane]] 1 (line 6): did you mean `model`?"),
        "{text}"
    );
}

#[test]
fn a_zone_must_exist_and_is_kept_in_its_own_spelling() {
    let dir = folder(&[(FILE_NAME, &format!("\ntime_zone = \"Europe/Berln\"\n{LANE}"))]);
    let text = refusal(&dir, None, &[]);
    assert!(
        text.contains("unknown zone `Europe/Berln` at the top level (line 2): did you mean `Europe/Berlin`?"),
        "{text}"
    );
    fs::write(dir.path().join(FILE_NAME), format!("time_zone = \"europe/berlin\"\n{LANE}")).unwrap();
    let loaded = load_in(dir.path(), None, &env(&[])).unwrap();
    assert_eq!(loaded.config.time_zone.as_deref(), Some("Europe/Berlin"));
}

#[test]
fn files_that_the_configuration_names_lie_beside_it() {
    let task = "[[task]]\nname = \"t\"\nprompt_file = \"p.txt\"\n";
    let text = format!("{LANE}key_file = \"a.key\"\nca_file = \"ca.pem\"\n{task}");
    let pem = "-----BEGIN CERTIFICATE-----\n";
    let files = [("c.toml", text.as_str()), ("p.txt", "Say it.\n"), ("a.key", "sk-1\n"), ("ca.pem", pem)];
    let dir = folder(&files);
    let config = load_in(dir.path(), Some(Path::new("c.toml")), &env(&[])).unwrap().config;
    assert_eq!(config.tasks[0].prompt.as_deref(), Some("Say it.\n"));
    assert_eq!(config.lanes[0].ca_file.as_deref(), dir.path().join("ca.pem").to_str());
    assert_eq!(key_of(&config.lanes[0], &env(&[])).unwrap().unwrap().expose(), "sk-1");
    assert!(config.check().is_ok());
}

#[test]
fn a_prompt_in_a_file_makes_the_same_series_as_the_same_prompt_in_the_configuration() {
    let task = |keys: &str| format!("{LANE}[[task]]\nname = \"t\"\n{keys}\n");
    let files = [("a.txt", "Say it."), ("b.txt", "Say it."), ("c.txt", "Say it!")];
    let hash = |keys: &str| {
        let dir = folder(&files);
        fs::write(dir.path().join(FILE_NAME), task(keys)).unwrap();
        plan_hash(&load_in(dir.path(), None, &env(&[])).unwrap().config.tasks[0], true)
    };
    let inline = hash("prompt = \"Say it.\"");
    // neither the name nor the folder of the file counts, only what is in it
    assert_eq!(hash("prompt_file = \"a.txt\""), inline);
    assert_eq!(hash("prompt_file = \"b.txt\""), inline);
    assert_ne!(hash("prompt_file = \"c.txt\""), inline);
}

#[test]
fn all_files_that_cannot_be_used_are_told_together_with_their_lines() {
    let blank = "[[task]]\nname = \"blank\"\nprompt_file = \"blank.txt\"\n";
    let text = format!("{LANE}ca_file = \"no.pem\"\n[[task]]\nname = \"t\"\nprompt_file = \"p.txt\"\n{blank}");
    let dir = folder(&[(FILE_NAME, text.as_str()), ("no.pem", "hello"), ("blank.txt", " \n")]);
    let told = refusal(&dir, None, &[]);
    for line in [
        "cannot use `prompt_file` \"p.txt\" in [[task]] 1 (line 9): there is no such file",
        "cannot use `prompt_file` \"blank.txt\" in [[task]] 2 (line 12): it is blank",
        "cannot use `ca_file` \"no.pem\" in [[lane]] 1 (line 6): it holds no certificate in PEM form",
    ] {
        assert!(told.contains(line), "{line}\n{told}");
    }
}

#[test]
fn a_key_that_cannot_be_used_is_told_by_its_place_and_never_shown() {
    let dir = folder(&[("two.key", "sk-s3cret\nsk-s3cret\n"), ("empty.key", "\n"), ("control.key", "sk-s3cret\u{7}x")]);
    fs::create_dir(dir.path().join("folder.key")).unwrap();
    symlink("nowhere", dir.path().join("dangling.key")).unwrap();
    let mut lane = load_in(folder(&[(FILE_NAME, LANE)]).path(), None, &env(&[])).unwrap().config.lanes.remove(0);
    let mut file = |name: &str| {
        lane.key_file = dir.path().join(name).to_str().map(str::to_owned);
        let error = key_of(&lane, &env(&[])).unwrap_err();
        told(&error, error.hint())
    };
    for (name, why) in [
        ("two.key", "line break"),
        ("control.key", "cannot stand in a header"),
        ("empty.key", "the key is empty"),
        ("folder.key", "it is a folder"),
        ("dangling.key", "a link to something"),
        ("missing.key", "there is no such file"),
    ] {
        let told = file(name);
        assert!(told.contains(name) && told.contains(why) && !told.contains("s3cret"), "{told}");
    }
    let pasted = key_from_variable("sk-s3cret", &env(&[])).unwrap_err();
    assert!(!told(&pasted, pasted.hint()).contains("s3cret"));
    lane.key_file = None;
    lane.key_env = Some("LANE_A_KEY".to_owned());
    for (variables, why) in [
        (env(&[]), "is not set"),
        (env(&[("LANE_A_KEY", "")]), "the key is empty"),
        (env(&[("LANE_A_KEY", "sk-s3cret\r\nx-evil: 1")]), "line break"),
    ] {
        let error = key_of(&lane, &variables).unwrap_err();
        let told = told(&error, error.hint());
        assert!(told.contains("`LANE_A_KEY`") && told.contains(why) && !told.contains("s3cret"), "{told}");
    }
}

#[cfg(unix)]
#[test]
fn a_variable_that_is_no_text_is_refused_by_name() {
    use std::collections::BTreeMap;
    use std::ffi::OsString;
    use std::os::unix::ffi::OsStringExt;

    let bad = OsString::from_vec(vec![0xff]);
    let good = OsString::from("http://a");
    let variables: BTreeMap<String, OsString> =
        [("LLM_BASE_URL".to_owned(), good), ("LLM_MODEL".to_owned(), bad)].into();
    let error = load_in(folder(&[]).path(), None, &variables).unwrap_err();
    assert_eq!(error.to_string(), "the value of `LLM_MODEL` is not UTF-8");
    assert!(matches!(key_from_variable("LLM_MODEL", &variables), Err(KeyError::NotText { .. })));
}

#[test]
fn the_zones_of_sites_and_of_prices_are_looked_up_too() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("peaklane.toml");
    let text = "[campaign]\n[[site]]\nname = \"one\"\ntime_zone = \"Europe/Berln\"\n[[lane]]\nname = \"a\"\n\
                kind = \"paid-hosted\"\nbase_url = \"http://127.0.0.1:9/v1\"\nmodel = \"m\"\n\
                price = { input_usd_per_mtok = 1, output_usd_per_mtok = 2, hours = [{ from = \"08:30\", to = \"18:30\", \
                zone = \"Asia/Shanghi\", input_usd_per_mtok = 2, output_usd_per_mtok = 4 }] }\n";
    fs::write(&path, text).unwrap();
    let told = load(Some(&path), &env(&[])).unwrap_err();
    let mut all = String::new();
    let mut error: Option<&dyn std::error::Error> = Some(&told);
    while let Some(one) = error {
        all.push_str(&one.to_string());
        error = one.source();
    }
    for part in ["`Europe/Berln`", "`Europe/Berlin`", "`Asia/Shanghi`", "`Asia/Shanghai`"] {
        assert!(all.contains(part), "no {part} in {all}");
    }
}
