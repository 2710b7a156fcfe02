//! Counter-tests as people see them.

use std::collections::BTreeMap;

use peaklane_core::countertest::{
    Change, CountedBurst, Ended, KeyChange, REGISTERED_FORMAT, Refusal, Registered, Seen, Series, Side, Snapshot,
};
use peaklane_core::lane::{Api, Kind};
use serde_json::Value;

use super::*;
use crate::words::list;

fn snapshot(lane: &str, model: &str) -> Snapshot {
    let series = Series {
        lane: lane.into(),
        task: "inline-assist".into(),
        kind: Kind::FreeHosted,
        api: Api::Chat,
        model: model.into(),
        base_url: "https://a.example/v1".into(),
        prompt_hash: "h".into(),
    };
    Snapshot { series, things: BTreeMap::new(), frozen: BTreeMap::new() }
}

/// Three bursts of 8.
fn side(window: &str, passes: [u32; 3]) -> Side {
    let burst = |passed| CountedBurst { id: format!("b-{window}-{passed}"), date: None, passed, n: 8 };
    Side { window: window.into(), bursts: passes.map(burst).into() }
}

fn registered(to: Option<&str>, beside: Option<&str>) -> Registered {
    let change = Change {
        thing: "model".into(),
        keys: vec![KeyChange { key: "model".into(), from: "small-coder".into(), to: "other-coder".into() }],
    };
    let seen = Seen { unix_us: 1, change, after: snapshot("lane-a", "other-coder"), beside_shares: false };
    Registered {
        format: REGISTERED_FORMAT,
        id: "countertest-2026-11-25-lane-a-inline-assist".into(),
        change: "the newer model".into(),
        lane: "lane-a".into(),
        to: to.map(str::to_owned),
        task: "inline-assist".into(),
        beside: beside.map(str::to_owned),
        site: None,
        zone: "Europe/Berlin".into(),
        windows: vec!["16:00".into(), "09:00".into()],
        campaign: Some("7f3a9c01b2d4-2026-11-23".into()),
        margin_percent: 25,
        wait_days: 2,
        begun_unix_us: 0,
        in_retrospect: false,
        tested: snapshot("lane-a", "small-coder"),
        target: None,
        unchanged: None,
        before: vec![side("16:00", [4, 4, 4]), side("09:00", [8, 8, 8])],
        before_beside: beside.map(|_| vec![side("16:00", [8, 8, 7])]).unwrap_or_default(),
        not_before_unix_us: 0,
        looks: 0,
        seen: to.is_none().then_some(seen),
        ended: None,
    }
}

fn moment(local: &str) -> Moment {
    Moment { local: local.into(), utc: format!("{}Z", local.replace(' ', "T")) }
}

/// The text of a test that ended with these bursts after.
fn ended(mut test: Registered, after: [u32; 3], beside: Option<[u32; 3]>) -> String {
    let after = vec![side("16:00", after), side("09:00", [8, 8, 8])];
    let after_beside = beside.map(|b| vec![side("16:00", b)]).unwrap_or_default();
    let judgement = test.judge(&after, &after_beside).unwrap();
    let (after_unix_us, changed_unix_us) = (9, Some(1));
    test.ended = Some(Ended {
        unix_us: after_unix_us,
        changed_unix_us,
        judgement: Some(judgement.clone()),
        after,
        after_beside,
    });
    let view = view(&test, Some(&judgement));
    render(&[view], 100, Palette::PLAIN)
}

fn view<'a>(test: &'a Registered, judgement: Option<&'a Judgement>) -> CounterTestView<'a> {
    let (windows, beside) = match judgement {
        Some(judgement) => (judgement.windows.clone(), judgement.beside.clone()),
        None => test.counts(&[], &[]),
    };
    CounterTestView {
        test,
        found: None,
        begun: moment("2026-11-25 18:00"),
        changed: Some(moment("2026-11-26 16:00")),
        end_possible: Some(moment("2026-11-28 16:00")),
        ripe: judgement.is_some(),
        ended: test.ended.as_ref().map(|_| moment("2026-12-01 12:00")),
        windows,
        beside,
        judgement,
        after: Vec::new(),
        after_beside: Vec::new(),
    }
}

#[test]
fn an_improvement_is_told_with_its_counts_first_and_the_lane_beside() {
    insta::assert_snapshot!(ended(registered(None, Some("lane-b")), [7, 7, 7], Some([8, 8, 8])), @r#"
    improved: 16:00 passes 12/24 = 50 % before and 21/24 = 88 % after
    countertest-2026-11-25-lane-a-inline-assist
    lane           window   before         after            points (95 %)  Barnard  Fisher  verdict
    lane-a         16:00 ^   12/24   50 %  21/24   88 %  +38 (+11 to +58)    0.006   0.011  improved
    lane-a         09:00     24/24  100 %  24/24  100 %    0 (-14 to +14)     1.00    1.00  no change
    beside lane-b  16:00     23/24   96 %  24/24  100 %   +4 (-10 to +20)     0.53    1.00  no change
    registered   "the newer model" on 2026-11-25 18:00, Europe/Berlin: inline-assist at lane-a; 16:00
                 decides, 09:00 beside it (before: 3 bursts of campaign 7f3a9c01b2d4-2026-11-23)
    changed      model "small-coder" -> "other-coder", since 2026-11-26 16:00
    means        the change helped: keep it
    world        lane-b, unchanged, shows no change of its own: 23/24 = 96 % before, 24/24 = 100 % after
                 (p 0.53)
    "#);
}

#[test]
fn no_change_of_the_lane_itself_calls_the_migration_off_and_of_anything_else_does_not() {
    let mut lane = registered(Some("lane-c"), Some("lane-b"));
    lane.before[0] = side("16:00", [8, 8, 8]);
    insta::assert_snapshot!(ended(lane, [8, 8, 8], Some([8, 8, 8])), @r#"
    no change that matters: 16:00 passes 24/24 = 100 % before and 24/24 = 100 % after
    countertest-2026-11-25-lane-a-inline-assist
    lane           window   before         after           points (95 %)  Barnard  Fisher  verdict
    -> lane-c      16:00 ^   24/24  100 %  24/24  100 %   0 (-14 to +14)     1.00    1.00  no change
    -> lane-c      09:00     24/24  100 %  24/24  100 %   0 (-14 to +14)     1.00    1.00  no change
    beside lane-b  16:00     23/24   96 %  24/24  100 %  +4 (-10 to +20)     0.53    1.00  no change
    registered   "the newer model" on 2026-11-25 18:00, Europe/Berlin: inline-assist at lane-a; 16:00
                 decides, 09:00 beside it (before: 3 bursts of campaign 7f3a9c01b2d4-2026-11-23)
    changed      lane lane-a -> lane-c, since 2026-11-26 16:00
    means        the lane was changed and nothing moved by more than 25 points: the rung was not the
                 problem, and the migration is off
    world        lane-b, unchanged, shows no change of its own: 23/24 = 96 % before, 24/24 = 100 % after
                 (p 0.53)
    "#);
    let mut model = registered(None, Some("lane-b"));
    model.before[0] = side("16:00", [8, 8, 8]);
    let text = ended(model, [8, 8, 8], Some([8, 8, 8]));
    assert!(text.contains("says nothing about the rung") && !text.contains("migration is off"), "{text}");
}

#[test]
fn a_world_that_changed_takes_the_meaning_from_the_verdict() {
    let text = ended(registered(None, Some("lane-b")), [0, 1, 0], Some([1, 0, 1]));
    assert!(text.starts_with("worse: "), "{text}");
    assert!(text.contains("lane-b, unchanged, moved too: 23/24 = 96 % before, 2/24 = 8 % after (p <0.001)"), "{text}");
    assert!(text.contains("cannot be put down to the change") && !text.contains("take it back"), "{text}");
}

#[test]
fn an_undecided_test_says_how_many_bursts_would_decide() {
    let mut test = registered(None, None);
    test.looks = 2;
    let after = vec![side("16:00", [5, 5, 5])];
    let judgement = test.judge(&after, &[]).unwrap();
    insta::assert_snapshot!(render(&[view(&test, Some(&judgement))], 100, Palette::PLAIN), @r#"
    undecided: 16:00 passes 12/24 = 50 % before and 15/24 = 63 % after
    countertest-2026-11-25-lane-a-inline-assist
    lane    window   before         after           points (95 %)  Barnard  Fisher  verdict
    lane-a  16:00 ^   12/24   50 %  15/24  63 %  +13 (-15 to +37)     0.53    0.56  undecided
    lane-a  09:00     24/24  100 %      -                       -        -       -
    registered   "the newer model" on 2026-11-25 18:00, Europe/Berlin: inline-assist at lane-a; 16:00
                 decides, 09:00 beside it (before: 3 bursts of campaign 7f3a9c01b2d4-2026-11-23)
    changed      model "small-coder" -> "other-coder", since 2026-11-26 16:00
    means        neither a change nor its absence is shown. 9 further bursts on each side would decide
                 with 80 % probability at these rates
    next         it stays open: more bursts, then `peaklane countertest end` again
    world        no unchanged lane runs beside: what the world does cannot be told apart from the change
    looks        look 2 at this test: each further one makes a false alarm likelier than the 5 % of one
    "#);
}

#[test]
fn an_open_test_shows_counts_and_no_p_value_before_its_end() {
    let mut test = registered(None, Some("lane-b"));
    test.seen = None;
    let mut open = view(&test, None);
    (open.changed, open.end_possible) = (None, None);
    insta::assert_snapshot!(render(&[open.clone()], 100, Palette::PLAIN), @r#"
    open: the newer model
    countertest-2026-11-25-lane-a-inline-assist
    lane           window   before         after  points (95 %)  Barnard  Fisher
    lane-a         16:00 ^   12/24   50 %      -              -        -       -
    lane-a         09:00     24/24  100 %      -              -        -       -
    beside lane-b  16:00     23/24   96 %      -              -        -       -
    registered   "the newer model" on 2026-11-25 18:00, Europe/Berlin: inline-assist at lane-a; 16:00
                 decides, 09:00 beside it (before: 3 bursts of campaign 7f3a9c01b2d4-2026-11-23)
    changed      nothing yet
    "#);
    let two = ["model", "max_tokens"].map(|thing| Change {
        thing: thing.into(),
        keys: vec![KeyChange { key: thing.into(), from: Value::Null, to: 64.into() }],
    });
    open.found = Some(Notice::Refused(Refusal::Several(two.into())));
    let text = render(&[open.clone()], 200, Palette::PLAIN);
    assert!(
        text.contains("2 things have changed, and a counter-test has one: model nothing -> 64 and max_tokens"),
        "{text}"
    );
    assert_eq!(json(&[open])["countertests"][0]["refused"]["why"], "several");
    assert_eq!(list(&[]), "");
}

#[test]
fn a_p_value_never_crosses_five_percent_by_rounding() {
    let texts = [0.0004, 0.0123, 0.05, 0.0500001, 0.04999, 0.0496, 0.2, 1.0].map(words::p_value);
    assert_eq!(texts, ["<0.001", "0.012", "0.050", "0.0500001", "0.050", "0.050", "0.20", "1.00"]);
}

#[test]
fn missing_sides_are_null_and_never_0() {
    let test = registered(None, Some("lane-b"));
    let value = json(&[view(&test, None)]);
    let figures = &value["countertests"][0]["figures"][0];
    assert_eq!((&figures["after_passed"], &figures["before_passed"]), (&Value::Null, &Value::from(12)));
    assert_eq!(figures["barnard_two_sided_p"], Value::Null);
    let csv = table(&[view(&test, None)]).csv().unwrap();
    assert!(csv.lines().nth(1).unwrap().contains(",16:00,true,12,24,3,,0,0,"), "{csv}");
}
