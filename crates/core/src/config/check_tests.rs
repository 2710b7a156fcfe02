use crate::config::parse;

pub(in crate::config) const LANE: &str =
    "[[lane]]\nname = \"a\"\nkind = \"free-hosted\"\nbase_url = \"https://a.example/v1\"\nmodel = \"m\"\n";
pub(in crate::config) const TASK: &str = "[[task]]\nname = \"t\"\nprompt = \"p\"\n";

/// All problems of a text that can be read, one sentence each.
pub(in crate::config) fn problems(text: &str) -> Vec<String> {
    match parse(text).unwrap_or_else(|error| panic!("cannot be read: {error}\n{text}")).check() {
        Ok(()) => Vec::new(),
        Err(error) => error.problems().iter().map(ToString::to_string).collect(),
    }
}

/// The only problem of a text.
pub(in crate::config) fn problem(text: &str) -> String {
    let found = problems(text);
    assert_eq!(found.len(), 1, "{found:?}");
    found.into_iter().next().unwrap()
}

pub(in crate::config) fn campaign(keys: &str) -> String {
    format!("time_zone = \"UTC\"\n[campaign]\n{keys}\n{LANE}")
}

#[test]
fn a_sound_configuration_has_no_problem() {
    assert_eq!(problems(LANE), [""; 0]);
    assert_eq!(problems(&campaign("windows = [\"01:30\", \"02:30\", \"09:00\"]")), [""; 0]);
    assert_eq!(
        problems(&campaign("windows = [{ start = \"09:00\", length = \"7h\" }, \"16:00\"]\npeak = \"16:00\"")),
        [""; 0]
    );
    assert_eq!(problems(&campaign("windows = [{ start = \"09:00\", length = \"24h\" }]")), [""; 0]);
    assert_eq!(problems(&campaign("windows = [\"09:00\", \"09:01\"]")), [""; 0]);
    assert_eq!(problems(&format!("{LANE}key_file = \"keys/lane-a-2026-11-30-rotated.key\"\n")), [""; 0]);
}

#[test]
fn all_problems_are_told_at_once() {
    let text = format!("[burst]\nattempts = 0\n[timeouts]\ntotal = \"0s\"\n{LANE}{LANE}[[task]]\nname = \"t\"\n");
    let found = problems(&text);
    for part in ["`attempts` is 0", "`total` is no time", "\"a\" is taken", "task `t` has no prompt"] {
        assert!(found.iter().any(|told| told.contains(part)), "{part} in {found:?}");
    }
}

#[test]
fn a_campaign_needs_a_zone_and_a_lane() {
    assert!(problem(&format!("[campaign]\ndays = 1\n{LANE}")).starts_with("`time_zone` is missing at the top level"));
    assert!(problem("").starts_with("there is no [[lane]]"));
    for zone in ["", "Europe//Berlin", "UTC; rm", "../etc/passwd", "/etc/localtime"] {
        let told = problem(&format!("time_zone = {zone:?}\n{LANE}"));
        assert!(told.contains("no name of a zone"), "{told}");
    }
}

#[test]
fn windows_are_apart_and_the_peak_is_one_of_them() {
    let peak = problem(&campaign("windows = [\"09:00\", \"16:00\"]\npeak = \"15:00\""));
    assert!(peak.starts_with("`peak` \"15:00\" is none of the windows in [campaign]"), "{peak}");
    assert!(peak.ends_with("09:00, 16:00"), "{peak}");
    let overlap = problem(&campaign("windows = [\"10:00\", { start = \"09:00\", length = \"61min\" }]"));
    assert!(overlap.starts_with("window \"09:00\" runs into window \"10:00\" in [campaign]"), "{overlap}");
    assert!(overlap.ends_with("at most 1h"), "{overlap}");
    let midnight = problem(&campaign("windows = [\"00:30\", { start = \"23:30\", length = \"90min\" }]"));
    assert!(midnight.contains("\"23:30\" runs into window \"00:30\""), "{midnight}");
    assert!(problem(&campaign("windows = [\"09:00\", \"09:00\"]")).contains("stands twice"));
    assert!(problem(&campaign("windows = []")).contains("`windows` is empty"));
    let length = problem(&campaign("windows = [{ start = \"09:00\", length = \"25h\" }]"));
    assert!(length.contains("impossible length"), "{length}");
    let late = problem(&campaign("late_tolerance = \"25h\""));
    assert!(late.starts_with("`late_tolerance` is 1d1h in [campaign]"), "{late}");
}

#[test]
fn the_days_of_the_week_are_numbers_from_one_to_seven() {
    assert!(problem(&campaign("weekend = [6, 8]")).starts_with("`weekend` names the day 8 in [campaign]"));
    assert!(problem(&campaign("weekend = [0]")).contains("names the day 0"));
    assert!(problem(&campaign("weekend = [1, 2, 3, 4, 5, 6, 7]")).contains("all seven days"));
    assert_eq!(problems(&campaign("weekend = [1, 2, 3, 4, 5, 6, 7]\nworkdays_only = false")), [""; 0]);
    assert!(problem(&campaign("days = 367")).contains("`days` is 367"));
}

#[test]
fn a_floor_is_within_the_total_limit_and_equal_to_it_is_enough() {
    let with = |floor: &str| format!("{LANE}{TASK}floor = \"{floor}\"\n");
    assert_eq!(problems(&with("120s")), [""; 0]);
    assert!(problem(&with("120001ms")).starts_with("floor 2m1ms of task `t` is longer than the total timeout 2m"));
    assert!(problem(&with("0s")).contains("no time at all"));
    // the floor that is not written counts too
    let short = format!("{LANE}{TASK}[timeouts]\nfirst_byte = \"10s\"\nidle = \"10s\"\ntotal = \"20s\"\n");
    assert!(problem(&short).contains("floor 25s of task `t`"));
}

#[test]
fn the_parts_of_a_timeout_fit_into_the_whole() {
    let told = problem(&format!("[timeouts]\nfirst_byte = \"3m\"\n{LANE}"));
    assert!(told.starts_with("`first_byte` 3m is longer than `total` 2m in [timeouts]"), "{told}");
    let retry = problem(&format!("[retry]\nbackoff_base = \"1m\"\n{LANE}"));
    assert!(retry.contains("`backoff_base` 1m is longer than `backoff_cap` 8s"), "{retry}");
}

#[test]
fn nothing_is_without_a_bound() {
    for (section, key, value) in [
        ("burst", "attempts", "1000001"),
        ("burst", "concurrency", "0"),
        ("burst", "concurrency", "10001"),
        ("burst", "warmup", "11"),
        ("burst", "spacing", "\"61min\""),
        ("retry", "max", "21"),
        ("retry", "backoff_cap", "\"2h\""),
        ("timeouts", "total", "\"25h\""),
    ] {
        let told = problem(&format!("[{section}]\n{key} = {value}\n{LANE}"));
        assert!(told.starts_with(&format!("`{key}` is ")), "{told}");
    }
    assert!(problem(&campaign("bursts_per_window = 61")).starts_with("`bursts_per_window` is 61"));
    assert!(problem(&format!("{LANE}{TASK}max_tokens = 0\n")).starts_with("`max_tokens` is 0"));
    for temperature in ["-0.1", "2.1", "nan"] {
        assert!(problem(&format!("{LANE}{TASK}temperature = {temperature}\n")).starts_with("`temperature` is "));
    }
}

#[test]
fn a_task_has_one_prompt_and_one_way_to_be_judged() {
    assert!(problem(&format!("{LANE}{TASK}prompt_file = \"p.txt\"\n")).contains("both `prompt` and `prompt_file`"));
    assert!(problem(&format!("{LANE}[[task]]\nname = \"t\"\nprompt = \" \"\n")).contains("is blank"));
    assert!(problem(&format!("{LANE}{TASK}kind = \"batch\"\n")).contains("names no `tasks_per_hour`"));
    assert!(problem(&format!("{LANE}{TASK}tasks_per_hour = 60\nfloor = \"25s\"\n")).contains("has a latency `floor`"));
    assert!(problem(&format!("{LANE}{TASK}kind = \"latency\"\ntasks_per_hour = 60\n")).contains("kind latency"));
    assert_eq!(problems(&format!("{LANE}{TASK}tasks_per_hour = 60\n")), [""; 0]);
}

#[test]
fn names_are_unique_and_fit_into_file_names() {
    assert!(
        problem(&format!("{LANE}{TASK}{TASK}"))
            .starts_with("`name` \"t\" is taken by an earlier [[task]] in [[task]] 2")
    );
    for name in ["", "a/b", "..", "-a", "a b", "ä"] {
        let told = problem(&LANE.replace("\"a\"", &format!("{name:?}")));
        assert!(told.contains("is no name"), "{told}");
    }
}

#[test]
fn a_lane_is_paid_by_token_or_by_time() {
    let both = format!("{LANE}rent_usd_per_hour = 2\n[lane.price]\ninput_usd_per_mtok = 1\noutput_usd_per_mtok = 1\n");
    assert!(problem(&both).starts_with("lane `a` has both `price` and `rent_usd_per_hour` in [[lane]] 1"));
}

#[test]
fn an_address_is_http_without_credentials_and_is_never_repeated() {
    for (address, why) in [
        ("lane-s3cret.example/v1", "is no address"),
        ("ftp://s3cret.example", "neither http nor https"),
        ("https://user:s3cret@a.example/v1", "carries credentials"),
        ("https://s3cret@a.example/v1", "carries credentials"),
        ("https://a.example/v1#s3cret", "`#` part"),
        ("https://", "is no address"),
    ] {
        let told = problem(&LANE.replace("https://a.example/v1", address));
        assert!(told.contains(why) && !told.contains("s3cret"), "{told}");
    }
    assert!(problem(&format!("{LANE}proxy = \"https://p.example:3128\"\n")).contains("no http proxy"));
    assert!(problem(&format!("{LANE}[control]\nurl = \"nowhere\"\n")).starts_with("`url` is no address"));
}

#[test]
fn a_key_in_a_wrong_place_is_found_and_never_repeated() {
    for line in [
        "key_env = \"sk-s3cret-abc\"",
        "key_env = \"gsk_s3cretAbCdEfGh0123456789\"",
        "key_env = \"\"",
        "key_file = \"sk-s3cret\"",
        "key_file = \"s3cret0123456789abcdef\"",
        "headers = { Authorization = \"Bearer s3cret\" }",
        "headers = { x-api-key = \"s3cret\" }",
        "headers = { x-other = \"Bearer s3cret\" }",
        "headers = { x-auth-token = \"s3cret\" }",
    ] {
        let told = problem(&format!("{LANE}{line}\n"));
        assert!(told.contains("key") && !told.contains("s3cret"), "{told}");
    }
    assert_eq!(problems(&format!("{LANE}key_env = \"LANE_A_KEY_2\"\nheaders = {{ x-team = \"blue\" }}\n")), [""; 0]);
    assert!(problem(&format!("{LANE}key_env = \"A\"\nkey_file = \"k\"\n")).contains("both `key_env` and `key_file`"));
    assert!(problem(&format!("{LANE}headers = {{ Host = \"x\" }}\n")).contains("set by the client"));
    assert!(problem(&format!("{LANE}headers = {{ x-a = \"b\\nc\" }}\n")).contains("no header may have"));
    assert!(problem(&format!("{LANE}headers = {{ \"a b\" = \"c\" }}\n")).contains("no name of a header"));
}

#[test]
fn what_has_a_key_of_its_own_is_not_set_through_the_extra_body() {
    let told = problem(&format!("{LANE}extra_body = {{ temperature = 1, top_k = 2 }}\n"));
    assert!(told.starts_with("`extra_body` sets `temperature` in [[lane]] 1, `extra_body`"), "{told}");
    assert!(problem(&format!("{LANE}limits = {{ requests_per_day = 0 }}\n")).contains("`requests_per_day` is 0"));
}

#[test]
fn what_is_told_of_a_lane_is_within_reason() {
    let fine = "ops_hours_per_month = 0\nregion = \"eu-west\"\naffiliation = \"customer\"\n";
    assert_eq!(problems(&format!("{LANE}{fine}")), [""; 0]);
    for hours in ["-0.5", "10001.0", "nan", "inf"] {
        let told = problem(&format!("{LANE}ops_hours_per_month = {hours}\n"));
        assert!(told.starts_with("`ops_hours_per_month` is "), "{told}");
    }
    for key in ["owner", "region", "affiliation"] {
        assert!(problem(&format!("{LANE}{key} = \" \"\n")).starts_with(&format!("`{key}` is blank in [[lane]] 1")));
    }
    for key in ["tokens_per_day", "concurrency"] {
        assert!(problem(&format!("{LANE}limits = {{ {key} = 0 }}\n")).starts_with(&format!("`{key}` is 0")), "{key}");
    }
}
