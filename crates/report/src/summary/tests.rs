//! What `summary` shows, checked by eye and by count.

use serde_json::json;

use super::*;
use crate::sample::{burst, collapsing, flat, header, lane, limited, slow};
use peaklane_core::lane::Kind;
use peaklane_core::summary::{BurstData, LaneSummary, lane_summaries};

fn text(summaries: &[(&LaneSummary, Option<&str>)], width: usize) -> String {
    let views: Vec<LaneView<'_>> = summaries.iter().map(|(summary, peak)| LaneView::new(summary, *peak)).collect();
    render(&views, &Thresholds::default(), width, Palette::PLAIN)
}

#[test]
fn windows_stand_one_below_the_other_and_are_never_pooled() {
    insta::assert_snapshot!(text(&[(&collapsing(), Some("16:00")), (&flat(), Some("16:00"))], 100), @r"
    lane-a · free-hosted · inline-assist, floor 25 s            3 days x 8 attempts a window, peak 16:00
    window    pass         by day  95 % interval     p90  TTFT p50  retries
    09:00    23/24   96 %  7 8 8         79-99 %   9.0 s    500 ms      0 %  1 too slow
    12:30    22/24   92 %  7 8 7         74-98 %   9.0 s    500 ms      4 %  1 rate limited, 1 too slow
    16:00 ^  12/24   50 %  4 4 4         31-69 %  > 60 s    500 ms     29 %  7 rate limited, 5 too slow
    21:00    24/24  100 %  8 8 8        86-100 %   9.0 s    500 ms      0 %
    ^ peak. Hard scheduling constraint: usable at 09:00, 12:30, 21:00; not an 84 % lane.

    lane-c · paid-hosted · inline-assist, floor 25 s            3 days x 8 attempts a window, peak 16:00
    window    pass         by day  95 % interval    p90  TTFT p50  retries
    09:00    24/24  100 %  8 8 8        86-100 %  9.0 s    500 ms      0 %
    12:30    24/24  100 %  8 8 8        86-100 %  9.0 s    500 ms      0 %
    16:00 ^  24/24  100 %  8 8 8        86-100 %  9.0 s    500 ms      0 %
    21:00    24/24  100 %  8 8 8        86-100 %  9.0 s    500 ms      0 %
    ^ peak.

    intervals    wider than for independent attempts where bursts of one window differ: attempts of one
                 burst share a queue
    ");
}

#[test]
fn at_80_columns_no_line_is_wider() {
    let text = text(&[(&collapsing(), Some("16:00"))], 80);
    assert!(text.lines().all(|line| line.width() <= 80), "{text}");
    insta::assert_snapshot!(text, @r"
    lane-a · free-hosted · inline-assist, floor 25 s
    3 days x 8 attempts a window, peak 16:00
    window    pass         by day  95 % interval     p90  TTFT p50  retries
    09:00    23/24   96 %  7 8 8         79-99 %   9.0 s    500 ms      0 %
        1 too slow
    12:30    22/24   92 %  7 8 7         74-98 %   9.0 s    500 ms      4 %
        1 rate limited, 1 too slow
    16:00 ^  12/24   50 %  4 4 4         31-69 %  > 60 s    500 ms     29 %
        7 rate limited, 5 too slow
    21:00    24/24  100 %  8 8 8        86-100 %   9.0 s    500 ms      0 %
    ^ peak. Hard scheduling constraint: usable at 09:00, 12:30, 21:00; not an 84 %
    lane.

    intervals    wider than for independent attempts where bursts of one window
                 differ: attempts of one burst share a queue
    ");
}

#[test]
fn without_a_declared_peak_the_worst_window_is_marked_as_such() {
    let shown = text(&[(&collapsing(), None)], 100);
    assert!(shown.contains("16:00 v  12/24") && shown.contains("v worst window (no peak declared)."), "{shown}");
    let shown = text(&[(&collapsing(), Some("09:00"))], 100);
    assert!(shown.contains("09:00 ^") && shown.contains("16:00 v") && shown.contains("^ peak, v worst."), "{shown}");
    // Equal windows have no worst one.
    assert!(!text(&[(&flat(), None)], 100).contains(" v"));
}

#[test]
fn bursts_by_hand_are_one_line_each() {
    let summary = lane("env", Kind::FreeHosted, &[(None, &[&[slow()], &[]])]);
    insta::assert_snapshot!(text(&[(&summary, None)], 100), @r"
    env · free-hosted · inline-assist, floor 25 s
    begin              pass         95 % interval    p50  worst of 8  TTFT p50  retries
    2026-11-23 10:00Z   7/8   88 %        53-98 %  5.0 s      40.0 s    500 ms      0 %  1 too slow
    2026-11-24 10:00Z   8/8  100 %       68-100 %  5.0 s       9.0 s    500 ms      0 %
    ");
}

#[test]
fn blocks_that_would_look_alike_are_told_apart() {
    let mut small = lane("env", Kind::FreeHosted, &[(None, &[&[]])]);
    let (mut large, mut other) = (small.clone(), small.clone());
    small.model = "small".into();
    (large.model, large.prompt_hash) = ("large".into(), "aaaa".into());
    (other.model, other.prompt_hash) = ("large".into(), "bbbb".into());
    let shown = text(&[(&small, None), (&large, None), (&other, None)], 100);
    let titles: Vec<&str> = shown.lines().filter(|line| line.starts_with("env")).collect();
    let head = "env · free-hosted · inline-assist, floor 25 s";
    assert_eq!(
        titles,
        [format!("{head} · small"), format!("{head} · large · prompt aaaa"), format!("{head} · large · prompt bbbb"),]
    );
}

#[test]
fn a_void_burst_is_named_and_not_counted() {
    let (a, b) = (
        header("lane-a", Kind::FreeHosted, "2026-11-23", Some("16:00")),
        header("lane-a", Kind::FreeHosted, "2026-11-24", Some("16:00")),
    );
    let figures = burst(8, &[limited()]);
    let data = [
        BurstData { header: &a, state: BurstState::Complete, figures: &figures },
        BurstData { header: &b, state: BurstState::Void, figures: &figures },
    ];
    let summaries = lane_summaries(&data);
    let shown = text(&[(&summaries[0], None)], 120);
    let words = shown.split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(words.contains("7/8") && words.contains("1 rate limited; 2026-11-24 void, not counted"), "{shown}");
    assert!(shown.contains("1 day x 8 attempts a window"), "{shown}");
}

#[test]
fn json_and_csv_have_each_window_and_no_rate_of_the_lane() {
    let summary = collapsing();
    let views = [LaneView::new(&summary, Some("16:00"))];
    let object = json(&views, &Thresholds::default()).unwrap();
    let lane = &object["lanes"][0];
    assert!(lane.get("pass_rate").is_none() && lane.get("passed").is_none());
    let peak = &lane["windows"][2];
    assert_eq!(
        (&peak["window"], &peak["peak"], &peak["passed"], &peak["n"]),
        (&json!("16:00"), &json!(true), &json!(12), &json!(24))
    );
    assert_eq!(peak["p90"], json!({"value_ms": null, "exceeds_ms": 60_000}));
    assert_eq!(peak["days"].as_array().unwrap().len(), 3);
    let csv = csv(&views, &Thresholds::default()).unwrap();
    assert_eq!(csv.lines().count(), 5);
    assert!(csv.lines().nth(3).unwrap().contains(",16:00,,true,true,3,12,24,0.5,"), "{csv}");
}

#[test]
fn markdown_shows_every_lane_under_its_heading() {
    let summary = collapsing();
    let views = [LaneView::new(&summary, Some("16:00"))];
    insta::assert_snapshot!(markdown(&views, &Thresholds::default()), @r"
    ### lane-a · free-hosted · inline-assist, floor 25 s

    3 days x 8 attempts a window, peak 16:00

    | window | pass |  | by day | 95 % interval | p90 | TTFT p50 | retries |  |
    | --- | ---: | ---: | --- | ---: | ---: | ---: | ---: | --- |
    | 09:00 | 23/24 | 96 % | 7 8 8 | 79-99 % | 9.0 s | 500 ms | 0 % | 1 too slow |
    | 12:30 | 22/24 | 92 % | 7 8 7 | 74-98 % | 9.0 s | 500 ms | 4 % | 1 rate limited, 1 too slow |
    | 16:00 ^ | 12/24 | 50 % | 4 4 4 | 31-69 % | > 60 s | 500 ms | 29 % | 7 rate limited, 5 too slow |
    | 21:00 | 24/24 | 100 % | 8 8 8 | 86-100 % | 9.0 s | 500 ms | 0 % |  |

    ^ peak. Hard scheduling constraint: usable at 09:00, 12:30, 21:00; not an 84 % lane.

    - intervals: wider than for independent attempts where bursts of one window differ: attempts of one burst share a queue
    ");
}
