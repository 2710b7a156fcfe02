//! The rules of `[rules]`, `[needs]`, `[reasons]`, `[cost]` and `[notify]`.

use super::Config;
use super::check::Found;
use super::check_lane::may_name_a_variable;
use super::needs::{Needs, Reasons};
use super::notify::Notify;
use super::rules::RulesSettings;

const MAX_RATE: u64 = 1_000_000_000_000;
const MAX_DEVELOPERS: u64 = 1_000_000;
const MAX_REQUESTS: f64 = 1_000_000.0;
const MAX_WORDS: usize = 64;
/// A reason is a sentence or two.
const MAX_REASON_BYTES: usize = 4 * 1024;

pub(super) fn check(config: &Config, found: &mut Found) {
    rules(&config.rules, found);
    needs(&config.needs, found);
    reasons(&config.reasons, found);
    let key = |name: &str| vec!["cost".into(), name.into()];
    let cost = &config.cost;
    for (name, number) in
        [("developers", cost.developers), ("requests_per_developer_per_day", cost.requests_per_developer_per_day)]
    {
        if let Some(number) = number {
            found.range(key(name), name, number.into(), 1..=MAX_DEVELOPERS);
        }
    }
    let days = u64::from(cost.working_days_per_month);
    found.range(key("working_days_per_month"), "working_days_per_month", days, 1..=31);
    if let Some(told) = &config.notify {
        notify(told, found);
    }
}

fn rules(rules: &RulesSettings, found: &mut Found) {
    let key = |name: &str| vec!["rules".into(), name.into()];
    for (name, value, range) in [
        ("pass_percent", rules.pass_percent, 0..=100),
        // no rate is below 0
        ("retry_below_percent", rules.retry_below_percent, 1..=100),
        ("days", rules.days, 1..=366),
        ("batch_pass_percent", rules.batch_pass_percent, 0..=100),
        ("trigger_pass_percent", rules.trigger_pass_percent, 0..=100),
        ("trigger_days", rules.trigger_days, 1..=60),
        ("trigger_retry_percent", rules.trigger_retry_percent, 0..=100),
        ("expiry_days", rules.expiry_days, 1..=366),
        ("counter_margin_percent", rules.counter_margin_percent, 0..=100),
        ("counter_wait_days", rules.counter_wait_days, 0..=60),
        ("step_down_days", rules.step_down_days, 0..=60),
    ] {
        found.range(key(name), name, value.into(), range);
    }
    let (bad, of) = (rules.trigger_bad_days, rules.trigger_days);
    if bad > of && bad > 0 {
        let what = format!("`trigger_bad_days` {bad} is more than `trigger_days` {of}");
        found.key(
            key("trigger_bad_days"),
            what,
            "so many bad days there can never be: lower it or raise `trigger_days`",
        );
    } else {
        found.range(key("trigger_bad_days"), "trigger_bad_days", bad.into(), 1..=60);
    }
}

fn needs(needs: &Needs, found: &mut Found) {
    let key = |name: &str| vec!["needs".into(), name.into()];
    for (name, value, most) in [
        ("concurrency", needs.concurrency, MAX_RATE),
        ("developers", needs.developers.map(u64::from), MAX_DEVELOPERS),
        ("requests_per_minute", needs.requests_per_minute, MAX_RATE),
        ("tokens_per_minute", needs.tokens_per_minute, MAX_RATE),
        ("tokens_per_minute_per_developer", needs.tokens_per_minute_per_developer, MAX_RATE),
        ("p99_ms", needs.p99_ms, 86_400_000),
        ("generation_minutes_per_day", needs.generation_minutes_per_day.map(u64::from), 1_440),
    ] {
        if let Some(value) = value {
            found.range(key(name), name, value, 1..=most);
        }
    }
    if let Some(each) = needs.requests_per_minute_per_developer.filter(|each| !(0.001..=MAX_REQUESTS).contains(each)) {
        let what = format!("`requests_per_minute_per_developer` is {each}");
        found.key(key("requests_per_minute_per_developer"), what, "write a number from 0.001 to 1000000");
    }
    for (name, declared) in [
        ("requests_per_minute_per_developer", needs.requests_per_minute_per_developer.is_some()),
        ("tokens_per_minute_per_developer", needs.tokens_per_minute_per_developer.is_some()),
    ] {
        if declared && needs.developers.is_none() {
            found.key(
                key(name),
                format!("`{name}` without `developers`"),
                "add `developers = N`, who work at one time",
            );
        }
    }
}

fn reasons(reasons: &Reasons, found: &mut Found) {
    for (name, words) in reasons.declared() {
        let key = vec!["reasons".into(), name.into()];
        if words.trim().is_empty() {
            found.key(key, format!("`{name}` is blank"), "give the reason in words, for the record, or leave it out");
        } else if words.len() > MAX_REASON_BYTES {
            found.key(
                key,
                format!("`{name}` is longer than {MAX_REASON_BYTES} bytes"),
                "shorten it to a few sentences",
            );
        }
    }
}

fn notify(notify: &Notify, found: &mut Found) {
    let key = |name: &str| vec!["notify".into(), name.into()];
    if notify.webhook_env.is_none() && notify.command.is_empty() {
        let next = "add `webhook_env = \"NAME\"` or `command = [\"PROGRAM\", \"ARGUMENT\"]`, or leave the section out";
        found.table(vec!["notify".into()], "nobody is told", next);
    }
    // the text is not repeated: it may be the address itself, with a secret in it
    if notify.webhook_env.as_ref().is_some_and(|variable| !may_name_a_variable(variable)) {
        let next = "write the NAME of an environment variable that holds the address (letters, digits and _), never the address itself";
        found.key(key("webhook_env"), "`webhook_env` is no name of a variable", next);
    }
    if notify.command.len() > MAX_WORDS {
        let what = format!("`command` has {} words", notify.command.len());
        found.key(key("command"), what, format!("write at most {MAX_WORDS}"));
    }
    if notify.command.first().is_some_and(|program| program.trim().is_empty()) {
        found.key(key("command"), "`command` names no program", "put the program first, then its arguments");
    }
    if notify.command.iter().any(|word| word.contains('\0')) {
        found.key(key("command"), "`command` has a NUL character", "no argument of a program may have one");
    }
}

#[cfg(test)]
mod tests {
    use super::super::check::tests::{LANE, problem, problems};

    fn section(name: &str, keys: &str) -> String {
        format!("[{name}]\n{keys}\n{LANE}")
    }

    #[test]
    fn every_threshold_has_its_range_and_its_ends_belong_to_it() {
        for (key, least, most) in [
            ("pass_percent", 0, 100),
            ("retry_below_percent", 1, 100),
            ("days", 1, 366),
            ("batch_pass_percent", 0, 100),
            ("trigger_pass_percent", 0, 100),
            ("trigger_retry_percent", 0, 100),
            ("expiry_days", 1, 366),
            ("counter_margin_percent", 0, 100),
            ("counter_wait_days", 0, 60),
            ("step_down_days", 0, 60),
        ] {
            for fine in [least, most] {
                assert_eq!(problems(&section("rules", &format!("{key} = {fine}"))), [""; 0], "{key} = {fine}");
            }
            let wrong = if least == 0 { vec![most + 1] } else { vec![least - 1, most + 1] };
            for value in wrong {
                let told = problem(&section("rules", &format!("{key} = {value}")));
                assert!(told.starts_with(&format!("`{key}` is {value} in [rules]")), "{told}");
            }
        }
    }

    #[test]
    fn a_trigger_asks_for_no_more_bad_days_than_it_looks_at() {
        assert_eq!(problems(&section("rules", "trigger_bad_days = 3")), [""; 0]);
        assert_eq!(problems(&section("rules", "trigger_bad_days = 60\ntrigger_days = 60")), [""; 0]);
        let told = problem(&section("rules", "trigger_bad_days = 4"));
        assert!(told.starts_with("`trigger_bad_days` 4 is more than `trigger_days` 3 in [rules]"), "{told}");
        assert!(problem(&section("rules", "trigger_bad_days = 0")).starts_with("`trigger_bad_days` is 0"));
        assert!(problem(&section("rules", "trigger_days = 61")).starts_with("`trigger_days` is 61"));
    }

    #[test]
    fn a_declared_need_is_a_need() {
        for key in [
            "concurrency",
            "developers",
            "requests_per_minute",
            "tokens_per_minute",
            "p99_ms",
            "generation_minutes_per_day",
        ] {
            assert_eq!(problems(&section("needs", &format!("{key} = 1"))), [""; 0], "{key}");
            let told = problem(&section("needs", &format!("{key} = 0")));
            assert!(told.starts_with(&format!("`{key}` is 0 in [needs]")), "{told}");
        }
        assert!(problem(&section("needs", "generation_minutes_per_day = 1441")).contains("is 1441"));
    }

    #[test]
    fn what_each_developer_needs_asks_for_their_number() {
        for key in ["requests_per_minute_per_developer", "tokens_per_minute_per_developer"] {
            assert_eq!(problems(&section("needs", &format!("developers = 4\n{key} = 2"))), [""; 0], "{key}");
            let told = problem(&section("needs", &format!("{key} = 2")));
            assert!(told.starts_with(&format!("`{key}` without `developers` in [needs]")), "{told}");
        }
        for each in ["0.0", "-1.0", "nan", "inf", "1000001.0"] {
            let told =
                problem(&section("needs", &format!("developers = 4\nrequests_per_minute_per_developer = {each}")));
            assert!(told.starts_with("`requests_per_minute_per_developer` is "), "{told}");
        }
    }

    #[test]
    fn a_reason_is_given_in_words() {
        for key in ["data_must_not_leave", "rate_limits_not_acceptable", "price_must_not_move"] {
            assert_eq!(problems(&section("reasons", &format!("{key} = 'contract with a customer'"))), [""; 0]);
            let told = problem(&section("reasons", &format!("{key} = ' '")));
            assert!(told.starts_with(&format!("`{key}` is blank in [reasons]")), "{told}");
        }
        let long = format!("price_must_not_move = '{}'", "x".repeat(4 * 1024 + 1));
        assert!(problem(&section("reasons", &long)).contains("longer than 4096 bytes"));
    }

    #[test]
    fn assumptions_of_cost_are_within_reason() {
        assert_eq!(problems(&section("cost", "developer_usd_per_hour = 0\ndevelopers = 1")), [""; 0]);
        for (key, value) in [
            ("developers", 0),
            ("requests_per_developer_per_day", 0),
            ("working_days_per_month", 0),
            ("working_days_per_month", 32),
        ] {
            let told = problem(&section("cost", &format!("{key} = {value}")));
            assert!(told.starts_with(&format!("`{key}` is {value} in [cost]")), "{told}");
        }
    }

    #[test]
    fn somebody_is_told_and_the_address_of_a_webhook_never_stands_in_the_file() {
        assert_eq!(problems(&section("notify", "webhook_env = 'TEAM_HOOK'")), [""; 0]);
        assert_eq!(problems(&section("notify", "command = ['notify-send', 'peaklane']")), [""; 0]);
        for keys in ["", "command = []"] {
            assert!(problem(&section("notify", keys)).starts_with("nobody is told in [notify]"));
        }
        let told = problem(&section("notify", "webhook_env = 'https://hooks.example/s3cret'"));
        assert!(told.starts_with("`webhook_env` is no name of a variable") && !told.contains("s3cret"), "{told}");
        assert!(problem(&section("notify", "command = [' ', 'x']")).starts_with("`command` names no program"));
        assert!(problem(&section("notify", "command = ['x', \"a\\u0000b\"]")).contains("NUL"));
        let words = vec!["'x'"; 65].join(", ");
        assert!(problem(&section("notify", &format!("command = [{words}]"))).starts_with("`command` has 65 words"));
    }
}
