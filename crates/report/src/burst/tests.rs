//! What `burst` shows, checked by eye and by count.

use super::*;
use crate::sample::{attempt, burst, end, header, limited, slow};
use peaklane_core::attempt::Verdict;
use peaklane_core::burst::AttemptFigures;
use peaklane_core::lane::Kind;
use peaklane_core::outcome::Outcome;
use peaklane_core::summary::summarise;

fn summary(lane: &str, kind: Kind, misses: &[AttemptFigures]) -> BurstSummary {
    let mut header = header(lane, kind, "2026-11-30", Some("16:00"));
    header.date = Some("2026-11-30".into());
    summarise(&header, BurstState::Complete, &burst(8, misses))
}

fn view<'a>(summary: &'a BurstSummary, end: Option<&'a BurstEnd>) -> BurstView<'a> {
    BurstView { summary, end, warmup: None, handshake_us: Some(31_000), findings: Vec::new() }
}

fn warmup() -> AttemptRecord {
    AttemptRecord {
        index: 0,
        warmup: true,
        intended_unix_us: 0,
        skew_us: 0,
        latency_us: 12_300_000,
        verdict: Verdict::Pass,
        outcome: Outcome::Ok,
        retries: 1,
        ttft_us: Some(11_900_000),
        first_answer_us: Some(11_900_000),
        finding: None,
        check_note: None,
        tries: Vec::new(),
    }
}

#[test]
fn a_burst_at_two_lanes_is_one_table_with_notes_that_say_how_it_was_measured() {
    let (a, b) = (summary("lane-a", Kind::FreeHosted, &[limited(), slow()]), summary("lane-b", Kind::FreeServer, &[]));
    let (end, warmup) = (end(BurstState::Complete), warmup());
    let mut views = [view(&a, Some(&end)), view(&b, Some(&end))];
    views[1].warmup = Some(&warmup);
    insta::assert_snapshot!(render(&views, &Thresholds::default(), 100, Palette::PLAIN), @r"
    inline-assist, floor 25 s · 8 attempts together · 2026-11-30 16:00 Europe/Berlin
    lane    kind         pass             95 %    p50  worst of 8    TTFT  answer  retried
    lane-a  free-hosted   6/8   75 %   41-93 %  5.0 s      > 60 s  500 ms   1.0 s      1/8
        1 rate limited, 1 too slow
    lane-b  free-server   8/8  100 %  68-100 %  5.0 s       9.0 s  500 ms   1.0 s      0/8

    cold start   lane-b: the warm-up attempt took 12.3 s (TTFT 11.9 s), 1 retry; it is not counted
    prompts      each attempt begins with its own nonce, so that no prefix cache answers for the prompt
    connections  opened before the burst; the handshake (median 31.0 ms) is not in these times
    delivered    8 of 8 in flight at once, released within 420 µs of the intended instant; 40.0 KiB in
                 9.0 s
    read with    8 attempts: 8/8 still allows a true rate of 68 %, and p90 of 8 is the worst attempt
    ");
}

#[test]
fn a_finding_stands_apart_from_the_misses_and_voids_its_burst() {
    let finding = attempt(900, Verdict::ConfigFinding, Outcome::BadRequest, 0);
    let void = summary("lane-a", Kind::PaidHosted, &[finding; 8]);
    let mut view = view(&void, None);
    view.handshake_us = None;
    view.findings = vec!["temperature was refused; set `send_temperature = false`".into(); 2];
    insta::assert_snapshot!(render(&[view], &Thresholds::default(), 100, Palette::PLAIN), @r"
    inline-assist, floor 25 s · 8 attempts together · 2026-11-30 16:00 Europe/Berlin
    lane    kind         pass     95 %  p50  worst of 8  TTFT  answer  retried
    lane-a  paid-hosted  void  -     -    -           -     -       -      0/8  8 configuration
                                                                                findings, see below

    finding      lane-a: temperature was refused; set `send_temperature = false`
    prompts      each attempt begins with its own nonce, so that no prefix cache answers for the prompt
    connections  opened before the burst; the handshake is not in these times
    read with    8 attempts: 8/8 still allows a true rate of 68 %, and p90 of 8 is the worst attempt
    ");
}

#[test]
fn what_so_few_attempts_leave_open_is_said_until_they_do_not() {
    // Wilson, 95 %: 8/8 0.676, 34/34 0.898, 35/35 0.901 (n / (n + 3.84)).
    assert!(few(8, 90).unwrap().contains("8/8 still allows a true rate of 68 %, and p90 of 8 is the worst attempt"));
    assert!(few(9, 90).unwrap().contains("p90 of 9"));
    assert!(!few(10, 90).unwrap().contains("p90"));
    assert!(few(34, 90).unwrap().contains("89.8 %"));
    assert_eq!(few(35, 90), None);
    assert_eq!(few(0, 90), None);
}

#[test]
fn p90_is_called_the_worst_attempt_where_it_is() {
    assert_eq!(p90_head(&[8, 8]), "worst of 8");
    assert_eq!(p90_head(&[8, 7]), "p90");
    assert_eq!(p90_head(&[10]), "p90");
    assert_eq!(p90_head(&[0]), "p90");
    assert_eq!(p90_head(&[]), "p90");
}

#[test]
fn a_burst_that_was_cut_short_has_no_rate() {
    let header = header("lane-a", Kind::FreeHosted, "2026-11-30", None);
    let cut = summarise(&header, BurstState::Interrupted, &burst(5, &[limited()]));
    let object = table(&[view(&cut, None)], &Thresholds::default()).json();
    assert_eq!(
        (&object[0]["pass_rate"], &object[0]["passed"], &object[0]["made"]),
        (&Value::Null, &json!(4), &json!(5))
    );
    assert!(
        render(&[view(&cut, None)], &Thresholds::default(), 100, Palette::PLAIN)
            .contains("interrupted: 5 of 8 attempts made")
    );
}

#[test]
fn json_csv_and_markdown_carry_what_the_table_shows() {
    let a = summary("lane-a", Kind::FreeHosted, &[limited(), slow()]);
    let (end, warmup) = (end(BurstState::Complete), warmup());
    let mut one = view(&a, Some(&end));
    one.warmup = Some(&warmup);
    let views = [one];
    let object = json(&views, &Thresholds::default()).unwrap();
    let burst = &object["bursts"][0];
    assert_eq!((&burst["lane"], &burst["passed"], &burst["n"]), (&json!("lane-a"), &json!(6), &json!(8)));
    assert_eq!(burst["p90"], json!({"value_ms": null, "exceeds_ms": 60_000}));
    assert_eq!(burst["delivered"]["max_skew_ms"], json!(0.42));
    assert_eq!(burst["cold_start"]["ttft_ms"], json!(11_900));
    assert_eq!(burst["handshake_ms"], json!(31));
    assert!(object["notes"].as_array().unwrap().iter().any(|n| n["about"] == "prompts"));

    let csv = csv(&views, &Thresholds::default()).unwrap();
    let (head, line) = csv.trim_end().split_once('\n').unwrap();
    let value = |key: &str| line.split(',').nth(head.split(',').position(|k| k == key).unwrap()).unwrap().to_owned();
    assert_eq!((value("passed"), value("n"), value("pass_rate")), ("6".into(), "8".into(), "0.75".into()));
    assert_eq!(
        (value("p90_ms"), value("p90_exceeds_ms"), value("attempts_with_retry")),
        (String::new(), "60000.0".into(), "1".into())
    );

    let markdown = markdown(&views, &Thresholds::default());
    for text in ["| lane-a | free-hosted | 6/8 | 75 % |", "- cold start: the warm-up attempt took 12.3 s"] {
        assert!(markdown.contains(text), "{markdown}");
    }
}

#[test]
fn a_busy_client_warns_that_the_lane_may_be_better() {
    let a = summary("lane-a", Kind::FreeHosted, &[]);
    let mut end = end(BurstState::Complete);
    assert!(notes(&[view(&a, Some(&end))], &Thresholds::default()).iter().all(|n| n.about != "busy client"));
    end.own_lag_us[1] = 12_000;
    assert!(
        notes(&[view(&a, Some(&end))], &Thresholds::default())
            .iter()
            .any(|n| n.about == "busy client" && n.text.contains("12.0 ms (p99)"))
    );
}

#[test]
fn simulated_lanes_are_called_so() {
    let mut a = summary("lane-a", Kind::FreeHosted, &[]);
    a.header.simulated = true;
    let b = summary("lane-b", Kind::FreeServer, &[]);
    assert_eq!(notes(&[view(&a, None)], &Thresholds::default())[0].text, "These lanes are simulated.");
    assert_eq!(notes(&[view(&a, None), view(&b, None)], &Thresholds::default())[0].text, "Simulated: lane-a.");
    assert!(notes(&[view(&b, None)], &Thresholds::default()).iter().all(|n| n.about != "simulated"));
}
