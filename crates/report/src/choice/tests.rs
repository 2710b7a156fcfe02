//! What people read of a choice, and what a router does.

use peaklane_core::choice::{Choice, Inputs, Recorded, Seen, choices};
use peaklane_core::config::{Config, parse};
use peaklane_core::lane::Kind;

use super::*;
use crate::sample::{burst, header, limited, slow};

const CONFIG: &str = "[campaign]\nwindows = ['09:00', '16:00']\npeak = '16:00'\n\
    [[lane]]\nname = 'lane-a'\nkind = 'free-hosted'\nbase_url = 'https://a.example/v1'\nmodel = 'm'\n\
    [[lane]]\nname = 'lane-b'\nkind = 'free-server'\nbase_url = 'https://b.example/v1'\nmodel = 'm'\n\
    [[lane]]\nname = 'lane-c'\nkind = 'paid-hosted'\nbase_url = 'https://c.example/v1?key=s3cret'\nmodel = 'm'\n\
    api = 'messages'\nkey_env = 'LANE_C_KEY'\n";

fn config(extra: &str) -> Config {
    parse(&format!("time_zone = 'Europe/Berlin'\n{extra}\n{CONFIG}")).unwrap()
}

/// Misses of each of the three bursts at 16:00; nothing is missed at 09:00.
fn lane(name: &str, kind: Kind, misses: usize) -> Vec<Seen> {
    let mut all = Vec::new();
    for date in ["2026-11-23", "2026-11-24", "2026-11-25"] {
        for (window, misses) in [("09:00", 0), ("16:00", misses)] {
            let missed: Vec<_> = (0..misses).map(|at| if at == 0 { limited() } else { slow() }).collect();
            all.push(Seen {
                header: header(name, kind, date, Some(window)),
                state: peaklane_core::burst::BurstState::Complete,
                figures: burst(8, &missed),
                warmups: Vec::new(),
                peak_in_flight: Some(8),
                limit_headers: Vec::new(),
            });
        }
    }
    all
}

fn lanes(a: usize, b: usize, c: usize) -> Vec<Seen> {
    let all = [("lane-a", Kind::FreeHosted, a), ("lane-b", Kind::FreeServer, b), ("lane-c", Kind::PaidHosted, c)];
    all.into_iter().flat_map(|(name, kind, misses)| lane(name, kind, misses)).collect()
}

fn decide(bursts: &[Seen], config: &Config, recorded: &[Recorded], as_of: &str) -> Choice {
    let inputs = Inputs {
        site: None,
        time_zone: Some("Europe/Berlin"),
        campaign: None,
        config: Some(config),
        peak: None,
        bursts,
        gaps: &[],
        recorded,
        as_of: as_of.parse().unwrap(),
        whole_day: true,
        zones: &|_| None,
    };
    choices(&inputs).remove(0)
}

fn recorded(lane: &str) -> Recorded {
    Recorded {
        id: "decision-2026-11-10-inline-assist".into(),
        site: None,
        task: "inline-assist".into(),
        date: "2026-11-10".parse().unwrap(),
        lane: Some(lane.into()),
        kind: Some(Kind::FreeHosted),
        expires: "2026-11-24".parse().unwrap(),
    }
}

fn text(choice: Choice) -> String {
    render(&[choice], Detail::Short, 110, Palette::PLAIN)
}

#[test]
fn a_trigger_that_fired_and_a_record_that_expired_are_told_with_days_and_the_next_rung() {
    let choice = decide(&lanes(4, 1, 0), &config(""), &[recorded("lane-a")], "2026-11-25");
    insta::assert_snapshot!(text(choice), @r#"
    inline-assist -> lane-c (paid-hosted)                               provisional · expires 2026-12-09
      lane-a  free-hosted  out     16:00 passes 12/24 = 50 % (needs 90 %); retries 6 % (needs < 5 %), 13 % at
                                   16:00
      lane-b  free-server  out     16:00 passes 21/24 = 88 % (needs 90 %); retries 6 % (needs < 5 %), 13 % at
                                   16:00; no owner is named for patching
      lane-c  paid-hosted  holds   16:00 passes 24/24 = 100 % (86-100 %): every lower rung is out
    By hours: lane-a from 09:00 to 16:00, lane-c from 16:00 to 09:00 would hold too
    Trigger: fired, inline-assist moves from lane-a to lane-c (paid-hosted): 16:00 passed 4/8 on 2026-11-23, 4/8
    on 2026-11-24 and 4/8 on 2026-11-25 (below 80 %)
    Record: decision-2026-11-10-inline-assist chose lane-a, expired 2026-11-24
    hint: 2 more bursts at 16:00 make lane-c conclusive with a probability of 80 % if it goes on passing 100 %
    hint: `peaklane decide --record DIR` writes what is decided now
    "#);
}

#[test]
fn nothing_holds_is_an_answer_with_the_least_bad_lane_and_what_would_have_to_change() {
    let needs = config("[needs]\np99_ms = 900\ngeneration_minutes_per_day = 40");
    let mut bursts = lanes(4, 8, 2);
    // the paid lane is no better in the morning, so that hours do not help
    for seen in bursts.iter_mut().filter(|s| s.header.window.as_deref() == Some("09:00")) {
        seen.figures = burst(8, &[slow(), slow(), slow()]);
    }
    let choice = decide(&bursts, &needs, &[], "2026-11-25");
    insta::assert_snapshot!(text(choice), @r#"
    inline-assist -> no lane holds                                                    expires 2026-12-09
      lane-a  free-hosted  out     16:00 passes 12/24 = 50 % (needs 90 %); retries 6 % (needs < 5 %), 13 % at
                                   16:00
      lane-b  free-server  out     16:00 passes 0/24 = 0 % (needs 90 %); retries 6 % (needs < 5 %), 13 % at 16:00;
                                   no owner is named for patching
      lane-c  paid-hosted  out     16:00 passes 18/24 = 75 % (needs 90 %); retries 6 % (needs < 5 %), 13 % at
                                   16:00
    Trigger: none (no lane is chosen)
    least bad    lane-c: it would hold if 16:00 passed 22 of 24 instead of 18 and retries were below 5 % instead
                 of 6 %
    wrong tool   a p99 of 900 ms is a promise that bursts of 8 can neither show nor keep: take a contract with
                 dedicated capacity and its own monitoring of every request, and use these figures to choose whom
                 to ask
    wrong tool   40 minutes of generation a day and developer: short bursts say little of it. Measure a batch
                 class with `tasks_per_hour`, or whole tasks
    "#);
}

#[test]
fn too_little_data_says_what_is_missing() {
    let bursts: Vec<Seen> =
        lanes(0, 0, 0).into_iter().filter(|s| s.header.date.as_deref() != Some("2026-11-25")).collect();
    insta::assert_snapshot!(text(decide(&bursts, &config(""), &[], "2026-11-24")), @r#"
    inline-assist -> no decision yet: too little data
      lane-a  free-hosted  undecided  16:00 passes 16/16 = 100 %; 2 of 3 days are complete
      lane-b  free-server  undecided  16:00 passes 16/16 = 100 %; 2 of 3 days are complete; no owner is named for
                                      patching
      lane-c  paid-hosted  undecided  16:00 passes 16/16 = 100 %; 2 of 3 days are complete
    Trigger: none (no lane is chosen)
    hint: lane-a needs 1 more day with complete bursts at 16:00; let `peaklane watch` go on
    "#);
}

#[test]
fn the_trade_off_leaves_blank_what_is_not_known() {
    let choice = decide(&lanes(4, 1, 0), &config(""), &[], "2026-11-25");
    insta::assert_snapshot!(trade_off::text(&choice, 190, Palette::PLAIN), @r#"
    at the peak      lane-a                                                lane-b                                                lane-c
    kind             free-hosted                                           free-server                                           paid-hosted
    p90              > 60 s                                                > 60 s                                                9.0 s
    misses           9 too slow, 3 rate limited                            3 rate limited                                        none
    retries          6 % of the campaign, 13 % at the peak                 6 % of the campaign, 13 % at the peak                 0 % of the campaign, 0 % at the peak
    1,000 requests   $0                                                    -                                                     -
    waiting in vain  7.6 s a request                                       62.5 ms a request                                     none
    limits observed  3 of 48 attempts rate limited, 8 at once without one  3 of 48 attempts rate limited, 8 at once without one  0 of 48 attempts rate limited, 8 at once without one
    expires          2026-12-09                                            2026-12-09                                            2026-12-09
    "#);
    let narrow = trade_off::text(&choice, 80, Palette::PLAIN);
    assert!(narrow.contains("lane-b           at the peak\nkind             free-server\n"), "{narrow}");
}

#[test]
fn a_router_gets_hours_as_comments_and_no_secret() {
    let choice = decide(&lanes(4, 1, 0), &config(""), &[], "2026-11-25");
    insta::assert_snapshot!(litellm(&[choice], &config("")).unwrap(), @r#"
    # Written by peaklane decide --routing litellm.
    # inline-assist -> lane-c (paid-hosted), expires 2026-12-09
    # The router has no clock. By the hours of the day (Europe/Berlin) the alias `inline-assist` is
    #   from 09:00 to 16:00: inline-assist-lane-a
    #   from 16:00 to 09:00: inline-assist-lane-c
    model_list:
      - model_name: "inline-assist-lane-a"
        litellm_params:
          model: "openai/m"
          api_base: "https://a.example/v1"
          api_key: "none"
      - model_name: "inline-assist-lane-c"
        litellm_params:
          model: "anthropic/m"
          api_base: "https://c.example"
          api_key: "os.environ/LANE_C_KEY"
    router_settings:
      model_group_alias:
        "inline-assist": "inline-assist-lane-a"
    "#);
    let nothing = decide(&lanes(8, 8, 8), &config(""), &[], "2026-11-25");
    let refused = litellm(&[nothing], &config("")).unwrap_err();
    assert_eq!(refused.to_string(), "inline-assist -> no lane holds, so that there is nothing to route");
}

#[test]
fn the_trigger_line_tells_days_without_data_from_bad_ones() {
    let mut bursts = lanes(0, 0, 0);
    for seen in bursts.iter_mut().filter(|s| s.header.window.as_deref() == Some("16:00")) {
        if seen.header.date.as_deref() == Some("2026-11-24") {
            seen.state = peaklane_core::burst::BurstState::Interrupted;
        }
    }
    let choice = decide(&bursts, &config(""), &[recorded("lane-a")], "2026-11-25");
    assert_eq!(trigger_line(&choice), "Trigger: none (lane-a, last 3 working days 8/8, -, 8/8)");
    let gone = decide(&bursts, &config(""), &[recorded("lane-x")], "2026-11-25");
    assert_eq!(trigger_line(&gone), "Trigger: not enough data (lane-x, last 3 working days none measured)");
}
