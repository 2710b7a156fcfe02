use proptest::prelude::*;

use super::*;
use crate::config::{Micros, Usd, presets};
use crate::lane::{Api, Kind};

const LANE: &str =
    "[[lane]]\nname = \"a\"\nkind = \"free-hosted\"\nbase_url = \"https://a.example/v1\"\nmodel = \"m\"\n";

/// What the reader says about a text that it refuses.
fn refusal(text: &str) -> String {
    parse(text).unwrap_err().to_string()
}

#[test]
fn the_least_configuration_is_one_lane_and_the_rest_has_defaults() {
    let config = parse_checked(LANE).unwrap();
    assert_eq!(config.lanes.len(), 1);
    assert_eq!((config.lanes[0].kind, config.lanes[0].api), (Kind::FreeHosted, Api::Chat));
    assert_eq!((config.burst.attempts, config.burst.warmup, config.retry.max), (8, 1, 2));
    let limits = [config.timeouts.first_byte, config.timeouts.idle, config.timeouts.total];
    assert_eq!(limits, [60, 60, 120].map(Micros::from_secs));
    assert_eq!((config.campaign, config.time_zone), (None, None));
    let [task] = config.tasks.as_slice() else { panic!("one task class") };
    assert_eq!((task.name.as_str(), task.latency_floor()), ("inline-assist", Some(Micros::from_secs(25))));
}

#[test]
fn an_unknown_key_is_named_with_its_place_its_line_and_the_nearest_known_key() {
    let text = format!("{LANE}\n[[task]]\nname = \"t\"\nfloot = \"25s\"\n");
    assert_eq!(refusal(&text), "unknown key `floot` in [[task]] 1 (line 9): did you mean `floor`?");
    assert_eq!(
        refusal("timezone = \"UTC\""),
        "unknown key `timezone` at the top level (line 1): did you mean `time_zone`?"
    );
    let nested = format!("{LANE}[lane.price]\ninput_usd_per_mtok = 1\noutput_usd = 2\n");
    assert!(
        refusal(&nested).starts_with("unknown key `output_usd` in [[lane]] 1, `price` (line 8): "),
        "{}",
        refusal(&nested)
    );
    let window = "[campaign]\nwindows = [\"09:00\", { start = \"16:00\", lenght = \"1h\" }]\n";
    assert_eq!(refusal(window), "unknown key `lenght` in [campaign], `windows` 2 (line 2): did you mean `length`?");
    let check = format!("{LANE}[[task]]\nname = \"t\"\nprompt = \"p\"\ncheck = {{ contain = \"x\" }}\n");
    assert_eq!(refusal(&check), "unknown key `contain` in [[task]] 1, `check` (line 9): did you mean `contains`?");
}

#[test]
fn all_unknown_keys_are_told_together() {
    let error = parse("[burst]\natempts = 3\nwarm-up = 0\n").unwrap_err();
    let told: Vec<String> = error.problems().iter().map(ToString::to_string).collect();
    assert_eq!(
        told,
        [
            "unknown key `atempts` in [burst] (line 2): did you mean `attempts`?",
            "unknown key `warm-up` in [burst] (line 3): did you mean `warmup`?",
        ]
    );
}

#[test]
fn a_key_in_the_wrong_section_is_sent_to_the_right_one() {
    assert_eq!(refusal("floor = \"25s\""), "unknown key `floor` at the top level (line 1): it belongs in [[task]]");
    assert_eq!(
        refusal("[burst]\nholidays = []"),
        "unknown key `holidays` in [burst] (line 2): it belongs in [campaign]"
    );
    let far = refusal("[retry]\nquux = 1");
    assert!(far.contains("the nearest known key is `max`") && far.contains("`backoff_cap`"), "{far}");
}

#[test]
fn a_secret_in_the_file_is_refused_with_the_way_to_do_it_and_never_repeated() {
    for key in ["key", "api_key", "apiKey", "api-key", "token", "authorization"] {
        let told = refusal(&format!("{LANE}{key} = \"sk-s3cret\"\n"));
        assert!(told.contains("(line 6)") && told.contains("`key_env = \"ITS_NAME\"`"), "{told}");
        assert!(!told.contains("s3cret"), "{told}");
    }
    for broken in
        ["key_env = sk-s3cret", "key_env = [\"sk-s3cret\"]", "headers = \"Bearer sk-s3cret\"", "limits = \"sk-s3cret\""]
    {
        let told = refusal(&format!("{LANE}{broken}\n"));
        assert!(told.contains("line 6"), "{told}");
        assert!(!told.contains("s3cret"), "{told}");
    }
}

#[test]
fn a_wrong_type_is_told_with_key_place_and_line() {
    assert_eq!(
        refusal("[burst]\nattempts = \"eight\""),
        "bad value of `attempts` in [burst] (line 2): this is text, expected a whole number of 0 or more"
    );
    assert_eq!(
        refusal("[burst]\nattempts = -1"),
        "bad value of `attempts` in [burst] (line 2): integer `-1`, expected a whole number of 0 or more"
    );
    assert_eq!(
        refusal("[timeouts]\n\ntotal = 60"),
        "bad value of `total` in [timeouts] (line 3): `60` has no unit: write \"60s\", \"60ms\" or \"60min\" (with quotes)"
    );
    assert_eq!(
        refusal("[campaign]\nholidays = [\n  \"2026-12-25\",\n  \"2026-02-30\",\n]"),
        "bad entry 2 of `holidays` in [campaign] (line 4): `2026-02-30` is not on the calendar: there is no such day"
    );
    let kind = refusal(&LANE.replace("free-hosted", "free"));
    assert!(
        kind.starts_with("bad value of `kind` in [[lane]] 1 (line 3): ") && kind.contains("`self-hosted`"),
        "{kind}"
    );
    let check = |value: &str| refusal(&format!("{LANE}[[task]]\nname = \"t\"\ncheck = {value}\n"));
    let regex = check("{ regex = '(' }");
    assert!(regex.starts_with("bad value of `check` in [[task]] 1 (line 8): check `regex` is no regular"), "{regex}");
    assert!(
        check("{ contains = 'a', exact = 'b' }").contains("`check` in [[task]] 1 (line 8): expected one key alone")
    );
    let lane = refusal("lane = 3");
    assert!(lane.contains("`lane` at the top level (line 1)"), "{lane}");
}

#[test]
fn a_missing_key_is_named_with_its_table_and_line() {
    let without_model = LANE.replace("model = \"m\"\n", "");
    assert_eq!(refusal(&format!("\n{without_model}")), "`model` is missing in [[lane]] 1 (line 2): add `model = ...`");
}

#[test]
fn text_that_is_no_toml_is_told_with_its_line_and_without_its_words() {
    let told = refusal("[burst]\nattempts = 8\napi_key = sk-s3cret\n");
    assert!(told.starts_with("no valid TOML at the top level (line 3): "), "{told}");
    assert!(!told.contains("s3cret"), "{told}");
    let twice = refusal("[burst]\nattempts = 8\nattempts = 9\n");
    assert!(twice.contains("line 3") && twice.contains("duplicate key"), "{twice}");
    assert!(refusal(&"#".repeat(MAX_TEXT_BYTES + 1)).contains("bytes long"));
}

#[test]
fn prices_limits_and_the_extra_body_are_read_exactly() {
    let text = format!(
        "{LANE}extra_body = {{ reasoning = {{ effort = \"low\" }}, top_k = 40 }}\n[lane.price]\ninput_usd_per_mtok = 0.3\n\
         cached_input_usd_per_mtok = \"0.0375\"\noutput_usd_per_mtok = 1\n[lane.limits]\nrequests_per_day = 1000\n"
    );
    let config = parse_checked(&text).unwrap();
    let price = config.lanes[0].price.as_ref().unwrap();
    let micro = [Some(price.input_usd_per_mtok), price.cached_input_usd_per_mtok, Some(price.output_usd_per_mtok)];
    assert_eq!(micro.map(|p| p.map(Usd::micro_usd)), [Some(300_000), Some(37_500), Some(1_000_000)]);
    assert_eq!(config.lanes[0].limits.requests_per_day, Some(1000));
    let body = serde_json::Value::from(config.lanes[0].extra_body.clone());
    assert_eq!(body, serde_json::json!({ "reasoning": { "effort": "low" }, "top_k": 40 }));
    for (value, why) in [("{ a = nan }", "not finite"), ("{ a = [2026-12-01] }", "no dates")] {
        let told = refusal(&format!("{LANE}extra_body = {value}\n"));
        assert!(told.contains("`extra_body` in [[lane]] 1 (line 6)") && told.contains(why), "{told}");
    }
}

#[test]
fn a_problem_of_the_check_stands_on_its_line() {
    let text =
        format!("{LANE}\n[[task]]\nname = \"t\"\nprompt = \"p\"\nfloor = \"3m\"\n\n[timeouts]\ntotal = \"2m\"\n");
    let told = parse_checked(&text).unwrap_err().to_string();
    assert_eq!(
        told,
        "floor 3m of task `t` is longer than the total timeout 2m in [[task]] 1 (line 10): raise `total` in [timeouts] to \
         at least 3m, or lower the floor"
    );
    let path: KeyPath = vec!["task".into(), 0.into(), "floor".into()];
    assert_eq!(line_of(&text, &path), Some(10));
    assert_eq!(line_of(&text, &["task".into(), 0.into(), "system".into()]), Some(7));
    assert_eq!(line_of(&text, &["campaign".into()]), None);
}

#[test]
fn a_configuration_survives_being_written_and_read() {
    for preset in presets::PRESETS {
        let config = parse(preset.text).unwrap();
        let written = toml::to_string(&config).unwrap();
        assert_eq!(parse(&written).unwrap(), config, "{}", preset.name);
    }
}

proptest! {
    #[test]
    fn no_text_makes_the_reader_panic(text in "(\\[\\[?[a-z.]{1,8}\\]?\\]\n|[a-z_]{1,8} = [\"0-9a-z{}=,\\[\\] -]{0,16}\n){0,8}") {
        let _ = parse_checked(&text);
    }

    #[test]
    fn one_wrong_letter_in_a_key_is_traced_back_to_that_key(at in 0..8_usize, letter in "[a-z]") {
        let keys = ["attempts", "spacing", "concurrency", "warmup", "prompt_mode", "connections", "order", "seed"];
        let key = keys[at];
        let mut wrong = key.to_owned();
        wrong.replace_range(key.len() - 1.., &letter);
        prop_assume!(!keys.contains(&wrong.as_str()));
        let told = refusal(&format!("[burst]\n{wrong} = 1\n"));
        prop_assert!(told.ends_with(&format!("did you mean `{key}`?")), "{}", told);
    }
}
