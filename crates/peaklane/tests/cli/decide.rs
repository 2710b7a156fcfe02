//! `peaklane decide` from outside: a store with a campaign of known counts, files alone, triggers, records, expiry.

use std::path::Path;

use peaklane_core::campaign::Locked;
use peaklane_core::config::parse_checked;
use peaklane_core::lane::Kind;
use peaklane_store::{CampaignRow, Ledger};
use peaklane_testkit::binary::Sandbox;
use serde_json::{Value, json};

use crate::schema::assert_valid;
use crate::support::{Burst, End, burst, refused, sandbox, write_csv, write_store};

/// Two free lanes without a fault of their own but the afternoon, and a paid one.
const CONFIG: &str = r#"time_zone = "Europe/Berlin"
[campaign]
windows = ["09:00", "16:00"]
peak = "16:00"
[cost]
developers = 10
requests_per_developer_per_day = 60
developer_usd_per_hour = 80
[[lane]]
name = "lane-a"
kind = "free-hosted"
base_url = "http://127.0.0.1:9/v1"
model = "small-coder"
key_env = "LANE_A_KEY"
terms_url = "https://lane-a.example/terms"
terms_checked = "2026-11-20"
affiliation = "none"
limits = { requests_per_minute = 60 }
[[lane]]
name = "lane-c"
kind = "paid-hosted"
base_url = "http://127.0.0.1:9/v1"
model = "small-coder"
price = { input_usd_per_mtok = 1, output_usd_per_mtok = 4 }
ops_hours_per_month = 2
[[task]]
name = "inline-assist"
prompt = "Say hello."
floor_reason = "people stop waiting"
"#;

const DAYS: [&str; 3] = ["2026-11-23", "2026-11-24", "2026-11-25"];

/// One burst of 8 with so many that pass; the others are too slow.
fn one(lane: &str, kind: Kind, date: &str, window: &str, passed: usize) -> Burst {
    let mut burst = burst(lane, date, Some(window), &vec![End::Slow(40_000); 8 - passed]);
    burst.header.kind = kind;
    burst.header.simulated = false;
    burst
}

/// lane-a holds in the morning and not at the peak; lane-c holds always.
fn three_days() -> Vec<Burst> {
    DAYS.into_iter()
        .flat_map(|date| {
            [
                one("lane-a", Kind::FreeHosted, date, "09:00", 8),
                one("lane-a", Kind::FreeHosted, date, "16:00", 4),
                one("lane-c", Kind::PaidHosted, date, "09:00", 8),
                one("lane-c", Kind::PaidHosted, date, "16:00", 8),
            ]
        })
        .collect()
}

/// Puts the bursts into the store as those of a campaign that locked the configuration.
fn campaign(folder: &Path, config: &str, mut bursts: Vec<Burst>) {
    let config = parse_checked(config).expect("a configuration");
    let locked = Locked::new(&config, &config.sites()[0], DAYS[0].parse().expect("a date"));
    let path = folder.join("peaklane.db");
    let row = CampaignRow {
        id: locked.id(),
        site: None,
        started_unix_us: bursts.iter().map(|b| b.header.started_unix_us).min().expect("bursts"),
        tool_version: "0.1.0".into(),
        locked: serde_json::to_string(&locked).expect("JSON"),
        stopped: None,
    };
    Ledger::open(&path).expect("a store").begin_campaign(&row).expect("a campaign");
    bursts.iter_mut().for_each(|b| b.header.campaign = Some(locked.id()));
    write_store(&path, &bursts);
}

fn with_campaign(bursts: Vec<Burst>) -> Sandbox {
    let sandbox = sandbox();
    sandbox.file("peaklane.toml", CONFIG);
    campaign(sandbox.path(), CONFIG, bursts);
    sandbox
}

fn decided(sandbox: &Sandbox, code: i32, words: &[&str]) -> Value {
    let all = ["decide", "--format", "json"].iter().chain(words);
    let object = sandbox.run(all.copied()).expect_code(code).json();
    assert_valid("decide", &object);
    object
}

#[test]
fn the_lowest_rung_that_holds_is_chosen_and_each_other_says_why_not() {
    let sandbox = with_campaign(three_days());
    let told = sandbox.run(["decide", "--as-of", "2026-11-25"]).expect_code(0);
    assert_eq!(told.stderr, "");
    let lines: Vec<&str> = told.stdout.lines().collect();
    assert!(lines[0].starts_with("inline-assist -> lane-c (paid-hosted)  "), "{}", told.stdout);
    assert!(lines[0].ends_with("provisional · expires 2026-12-09"), "{}", told.stdout);
    for words in [
        "lane-a  free-hosted  out     16:00 passes 12/24 = 50 % (needs 90 %)",
        "lane-c  paid-hosted  holds   16:00 passes 24/24 = 100 % (86-100 %): every lower rung is out",
        "By hours: lane-a from 09:00 to 16:00, lane-c from 16:00 to 09:00 would cost 50 % less and hold",
        "Trigger: none (lane-c, last 3 working days 8/8, 8/8, 8/8)",
        // Wilson's interval of 35 of 35 reaches 90 %, that of 34 of 34 does not: 11 more attempts, two bursts.
        "hint: 2 more bursts at 16:00 make lane-c conclusive",
    ] {
        assert!(told.stdout.contains(words), "no `{words}` in\n{}", told.stdout);
    }
    let full = sandbox.run(["decide", "--as-of", "2026-11-25", "-v"]).expect_code(0).stdout;
    for words in ["12 too slow", "2 h a month", "checked 2026-11-20", "60 requests a minute"] {
        assert!(full.contains(words), "no `{words}` in\n{full}");
    }
}

#[test]
fn the_figures_for_programs_are_counts_with_their_units() {
    let sandbox = with_campaign(three_days());
    let object = decided(&sandbox, 0, &["--as-of", "2026-11-25"]);
    let one = &object["decisions"][0];
    assert_eq!(
        (&one["chosen"], &one["outcome"], &one["rules_locked"]),
        (&json!("lane-c"), &json!("chosen"), &json!(true))
    );
    let lanes = one["lanes"].as_array().unwrap();
    assert_eq!((&lanes[0]["passed"], &lanes[0]["n"], &lanes[0]["complete_days"]), (&json!(12), &json!(24), &json!(3)));
    // 420 prompt tokens at $1 and 96 completion tokens at $4 a million: $0.804 for 1,000 requests
    assert_eq!(lanes[1]["usd_per_1000_requests"], json!(0.804));
    // half of the attempts at 16:00 wait 40 s in vain, none at 09:00: 10 s a request, 12,600 requests a month, 35 hours
    assert_eq!(lanes[0]["waited_ms_per_request"], json!(10_000.0));
    assert_eq!(lanes[0]["waiting_hours_per_month"], json!(35.0));
    assert_eq!(lanes[0]["waiting_usd_per_month"], json!(2_800.0));
    assert_eq!(lanes[0]["bursts"].as_array().map(Vec::len), Some(6));
    assert_eq!(one["split"]["percent_less"], json!(50));
    for form in ["csv", "md"] {
        let text = sandbox.run(["decide", "--as-of", "2026-11-25", "--format", form]).expect_code(0).stdout;
        assert!(text.contains("lane-c") && text.contains("paid-hosted"), "{text}");
    }
}

#[test]
fn two_days_are_too_little_and_say_what_is_missing() {
    let bursts = three_days().into_iter().filter(|b| b.header.date.as_deref() != Some(DAYS[2])).collect();
    let sandbox = with_campaign(bursts);
    let object = decided(&sandbox, 3, &["--as-of", "2026-11-24"]);
    assert_eq!(object["decisions"][0]["outcome"], json!("too_little_data"));
    let told = sandbox.run(["decide", "--as-of", "2026-11-24"]).expect_code(3).stdout;
    assert!(told.contains("no decision yet") && told.contains("2 of 3 days are complete"), "{told}");
    assert!(told.contains("hint: lane-a needs 1 more day"), "{told}");
    // On the day after, the third burst of the peak is missing.
    let later = decided(&sandbox, 3, &["--as-of", "2026-11-26"]);
    let missing = &later["decisions"][0]["lanes"][0]["missing"];
    assert_eq!(missing, &json!([{"date": "2026-11-25", "why": "not on record"}]));
}

#[test]
fn as_of_leaves_out_what_came_later() {
    let sandbox = with_campaign(three_days());
    decided(&sandbox, 3, &["--as-of", "2026-11-24"]);
    decided(&sandbox, 0, &["--as-of", "2026-11-25"]);
    refused(sandbox.run(["decide", "--as-of", "2026-11-22"]), 3, &["no burst of a window", "by that day"]);
}

#[test]
fn a_trigger_that_fires_ends_with_1_and_names_days_and_the_next_rung() {
    let mut bursts: Vec<Burst> = three_days();
    for burst in &mut bursts {
        if burst.header.lane == "lane-a" && burst.header.window.as_deref() == Some("16:00") {
            *burst = one("lane-a", Kind::FreeHosted, &burst.header.date.clone().unwrap(), "16:00", 8);
        }
    }
    // After the campaign the peak goes on: 8, then 5, then 3 of 8.
    for (date, passed) in [("2026-11-26", 8), ("2026-11-27", 5), ("2026-11-30", 3)] {
        bursts.push(one("lane-a", Kind::FreeHosted, date, "16:00", passed));
    }
    let sandbox = with_campaign(bursts);
    sandbox.run(["decide", "--as-of", "2026-11-25", "--record", "decisions"]).expect_code(0);
    let quiet = decided(&sandbox, 0, &["--as-of", "2026-11-27"]);
    assert_eq!(quiet["decisions"][0]["trigger"]["bad_days"], json!(1));
    let fired = decided(&sandbox, 1, &["--as-of", "2026-11-30"]);
    let trigger = &fired["decisions"][0]["trigger"];
    assert_eq!(
        (&trigger["fired"], &trigger["lane"], &trigger["moves_to"]),
        (&json!(true), &json!("lane-a"), &json!("lane-c"))
    );
    let bad: Vec<_> = trigger["days"].as_array().unwrap().iter().filter(|d| d["bad"] == json!(true)).collect();
    assert_eq!(bad.iter().map(|d| d["date"].clone()).collect::<Vec<_>>(), [json!("2026-11-27"), json!("2026-11-30")]);
    let told = sandbox.run(["decide", "--as-of", "2026-11-30"]).expect_code(1).stdout.replace('\n', " ");
    assert!(told.contains("16:00 passed 5/8 on 2026-11-27 and 3/8 on 2026-11-30 (below 80 %)"), "{told}");
}

#[test]
fn a_void_burst_fires_nothing() {
    let mut bursts = three_days();
    for date in ["2026-11-26", "2026-11-27", "2026-11-30"] {
        let mut void = one("lane-c", Kind::PaidHosted, date, "16:00", 0);
        void.attempts.iter_mut().for_each(|a| a.verdict = peaklane_core::attempt::Verdict::ConfigFinding);
        bursts.push(void);
    }
    let sandbox = with_campaign(bursts);
    let object = decided(&sandbox, 0, &["--as-of", "2026-11-30"]);
    assert_eq!(object["decisions"][0]["trigger"]["action"], json!("not_enough_data"));
}

#[test]
fn a_record_is_written_once_never_overwritten_and_expires() {
    let sandbox = with_campaign(three_days());
    let words = ["decide", "--as-of", "2026-11-25", "--record", "decisions"];
    sandbox.run(words).expect_code(0);
    let name = "decisions/decision-2026-11-25-inline-assist";
    let (page, body) = (sandbox.read(&format!("{name}.md")), sandbox.read(&format!("{name}.json")));
    for words in [
        "expires: 2026-12-09",
        "as locked when the campaign began",
        "people stop waiting",
        "lane-a.example/terms",
        "20261124T160000.000000Z-lane-c-3f9c",
        "| affiliation | none |",
    ] {
        assert!(page.contains(words), "no `{words}` in\n{page}");
    }
    sandbox.run(words).expect_code(0);
    assert_eq!(sandbox.read(&format!("{name}.json")), body, "the first one stays as it was");
    let second: Value = serde_json::from_str(&sandbox.read(&format!("{name}-2.json"))).unwrap();
    assert_eq!((&second["lane"], &second["id"]), (&json!("lane-c"), &json!("decision-2026-11-25-inline-assist-2")));

    assert_eq!(decided(&sandbox, 0, &["--as-of", "2026-12-08"])["decisions"][0]["record"]["expired"], json!(false));
    let old = decided(&sandbox, 1, &["--as-of", "2026-12-09"]);
    assert_eq!(old["decisions"][0]["record"]["expired"], json!(true));
    // A record that was not there yet on that day does not count.
    assert_eq!(decided(&sandbox, 3, &["--as-of", "2026-11-24"])["decisions"][0]["record"], Value::Null);
}

#[test]
fn the_locked_thresholds_count_and_a_change_since_is_told() {
    let sandbox = with_campaign(three_days());
    sandbox.file("peaklane.toml", &CONFIG.replace("[cost]", "[rules]\npass_percent = 40\n[cost]"));
    let told = sandbox.run(["decide", "--as-of", "2026-11-25"]).expect_code(0);
    assert!(told.stderr.contains("`pass_percent` is 40") && told.stderr.contains("90 counts"), "{}", told.stderr);
    assert!(told.stdout.contains("lane-c (paid-hosted)"), "{}", told.stdout);
}

#[test]
fn a_stated_limit_below_a_need_and_a_declared_reason_decide() {
    let sandbox = with_campaign(three_days());
    let needs = "[needs]\nrequests_per_minute = 100\np99_ms = 900\n[cost]";
    sandbox.file("peaklane.toml", &CONFIG.replace("[cost]", needs));
    let told = sandbox.run(["decide", "--as-of", "2026-11-25"]).expect_code(0).stdout;
    assert!(told.contains("its terms allow 60 requests a minute, needed are 100"), "{told}");
    assert!(told.contains("lane-c: its terms state no limit"), "{told}");
    assert!(told.contains("wrong tool") && told.contains("p99 of 900 ms"), "{told}");
    sandbox.file("peaklane.toml", &CONFIG.replace("[cost]", "[reasons]\ndata_must_not_leave = 'a contract'\n[cost]"));
    let told = sandbox.run(["decide", "--as-of", "2026-11-25"]).expect_code(0).stdout;
    assert!(told.contains("no lane holds") && told.contains("data_must_not_leave: a contract"), "{told}");
}

#[test]
fn every_site_has_its_own_choice_and_its_own_record() {
    let sandbox = sandbox();
    let sites = "[[site]]\nname = \"berlin\"\ntime_zone = \"Europe/Berlin\"\n[[site]]\nname = \"pune\"\ntime_zone = \"Asia/Kolkata\"\n";
    let config = format!("{CONFIG}{sites}").replace("time_zone = \"Europe/Berlin\"\n[campaign]", "[campaign]");
    sandbox.file("peaklane.toml", &config);
    let parsed = parse_checked(&config).expect("a configuration");
    let path = sandbox.path().join("peaklane.db");
    let mut all = Vec::new();
    for (number, site) in parsed.sites().iter().enumerate() {
        let locked = Locked::new(&parsed, site, DAYS[0].parse().expect("a date"));
        let row = CampaignRow {
            id: locked.id(),
            site: site.name.clone(),
            started_unix_us: 1_795_400_000_000_000,
            tool_version: "0.1.0".into(),
            locked: serde_json::to_string(&locked).expect("JSON"),
            stopped: None,
        };
        Ledger::open(&path).expect("a store").begin_campaign(&row).expect("a campaign");
        for mut burst in three_days() {
            // Seen from Pune, the free lane holds at the peak.
            if number == 1 && burst.header.lane == "lane-a" {
                let (date, window) = (burst.header.date.clone().unwrap(), burst.header.window.clone().unwrap());
                burst = one("lane-a", Kind::FreeHosted, &date, &window, 8);
            }
            burst.header.id = format!("{}-{number}", burst.header.id);
            (burst.header.campaign, burst.header.site) = (Some(locked.id()), site.name.clone());
            all.push(burst);
        }
    }
    write_store(&path, &all);
    let told = sandbox.run(["decide", "--as-of", "2026-11-25", "--record", "d"]).expect_code(0).stdout;
    assert!(
        told.contains("berlin · inline-assist -> lane-c") && told.contains("pune · inline-assist -> lane-a"),
        "{told}"
    );
    assert!(sandbox.read("d/decision-2026-11-25-pune-inline-assist.json").contains("\"lane\": \"lane-a\""));
    let object = decided(&sandbox, 0, &["--as-of", "2026-11-26", "--site", "pune"]);
    assert_eq!(object["decisions"].as_array().map(Vec::len), Some(1));
    assert_eq!(object["decisions"][0]["trigger"]["from_record"], json!(true));
    refused(sandbox.run(["decide", "--as-of", "2026-11-25", "--site", "oslo"]), 3, &["site or task class"]);
}

#[test]
fn files_alone_are_enough() {
    let sandbox = sandbox();
    write_csv(&sandbox.path().join("all.csv"), &three_days());
    let told = sandbox.run(["decide", "all.csv", "--peak", "16:00", "--as-of", "2026-11-25"]).expect_code(0).stdout;
    assert!(told.contains("inline-assist -> lane-c (paid-hosted)"), "{told}");
    assert!(!sandbox.path().join("peaklane.db").exists(), "no store is made");
    let by_hand = [burst("lane-a", "2026-11-23", None, &[])];
    write_csv(&sandbox.path().join("hand.csv"), &by_hand);
    refused(sandbox.run(["decide", "hand.csv"]), 3, &["no burst of a window in `hand.csv`"]);
    refused(sandbox.run(["decide"]), 2, &["there is no store"]);
}

#[test]
fn what_is_decided_is_printed_as_the_configuration_of_a_router() {
    let sandbox = with_campaign(three_days());
    let yaml = sandbox.run(["decide", "--as-of", "2026-11-25", "--routing", "litellm"]).expect_code(0).stdout;
    for words in [
        "#   from 16:00 to 09:00: inline-assist-lane-c",
        "model_list:\n  - model_name: \"inline-assist-lane-a\"\n    litellm_params:\n      model: \"openai/small-coder\"",
        "      api_base: \"http://127.0.0.1:9/v1\"\n      api_key: \"os.environ/LANE_A_KEY\"\n      rpm: 60",
        "router_settings:\n  model_group_alias:\n    \"inline-assist\": \"inline-assist-lane-a\"",
    ] {
        assert!(yaml.contains(words), "no `{words}` in\n{yaml}");
    }
    let plain = sandbox.run(["decide", "--as-of", "2026-11-25", "--routing", "json"]).expect_code(0).json();
    let want =
        json!([{"from": "09:00", "to": "16:00", "lane": "lane-a"}, {"from": "16:00", "to": "09:00", "lane": "lane-c"}]);
    assert_eq!((&plain["routes"][0]["ranges"], &plain["routes"][0]["time_zone"]), (&want, &json!("Europe/Berlin")));
    refused(sandbox.run(["decide", "--as-of", "2026-11-24", "--routing", "json"]), 3, &["nothing to route"]);
}

#[cfg(unix)]
#[test]
fn a_command_is_told_on_its_standard_input_and_its_failure_changes_no_verdict() {
    let sandbox = with_campaign(three_days());
    let notify = "[notify]\ncommand = ['/bin/sh', '-c', 'cat > told.json']\n[cost]";
    sandbox.file("peaklane.toml", &CONFIG.replace("[cost]", notify));
    sandbox.run(["decide", "--as-of", "2026-11-25", "--notify"]).expect_code(0);
    assert!(!sandbox.path().join("told.json").exists(), "nothing negative, nobody is told");
    sandbox.run(["decide", "--as-of", "2026-11-25", "--notify", "always"]).expect_code(0);
    let told: Value = serde_json::from_str(&sandbox.read("told.json")).unwrap();
    assert_eq!((&told["exit_code"], &told["decisions"][0]["chosen"]), (&json!(0), &json!("lane-c")));

    let broken = "[notify]\ncommand = ['/bin/sh', '-c', 'exit 3']\nwebhook_env = 'NO_SUCH_HOOK'\n[cost]";
    sandbox.file("peaklane.toml", &CONFIG.replace("[cost]", broken));
    let ran = sandbox.run(["decide", "--as-of", "2026-11-25", "--notify", "always"]).expect_code(0);
    assert!(ran.stderr.contains("/bin/sh") && ran.stderr.contains("`NO_SUCH_HOOK` was not told"), "{}", ran.stderr);
}

#[test]
fn a_webhook_gets_the_message_and_a_redirect_is_not_followed() {
    use std::io::{Read as _, Write as _};
    let listener = std::net::TcpListener::bind("127.0.0.1:0").expect("a port");
    let address = listener.local_addr().expect("an address");
    let answers = [
        "HTTP/1.1 204 No Content\r\nconnection: close\r\n\r\n",
        "HTTP/1.1 307 Temporary Redirect\r\nlocation: /other\r\ncontent-length: 0\r\nconnection: close\r\n\r\n",
    ];
    let server = std::thread::spawn(move || {
        answers.map(|answer| {
            let (mut stream, _) = listener.accept().expect("a connection");
            let mut seen = Vec::new();
            let mut part = [0_u8; 4096];
            while !String::from_utf8_lossy(&seen).contains("\"tool_version\"") {
                let n = stream.read(&mut part).expect("a request");
                assert!(n > 0, "the request ended early");
                seen.extend_from_slice(&part[..n]);
            }
            stream.write_all(answer.as_bytes()).expect("an answer");
            String::from_utf8_lossy(&seen).into_owned()
        })
    });
    let sandbox = sandbox().env("TEAM_HOOK", format!("http://{address}/T0/s3cret"));
    let config = CONFIG.replace("[cost]", "[notify]\nwebhook_env = 'TEAM_HOOK'\n[cost]");
    sandbox.file("peaklane.toml", &config);
    campaign(sandbox.path(), &config, three_days());
    let words = ["decide", "--as-of", "2026-11-25", "--notify", "always"];
    assert_eq!(sandbox.run(words).expect_code(0).stderr, "");
    let refused = sandbox.run(words).expect_code(0);
    assert!(refused.stderr.contains("`TEAM_HOOK` was not told: it answered with HTTP 307"), "{}", refused.stderr);
    assert!(!refused.stderr.contains("s3cret"), "{}", refused.stderr);
    let [request, _] = server.join().expect("two requests");
    assert!(request.starts_with("POST /T0/s3cret HTTP/1.1\r\n") && request.contains("lane-c"), "{request}");
}
