use proptest::prelude::*;

use super::*;
use crate::call::{BreakKind, Divergence, PrefixFigures};
use crate::outcome::Outcome;
use crate::record::{TryRecord, Usage};

/// A call that begins at a second, waits and generates for so many more.
fn call(seq: u32, at_s: i64, waits_s: u64, generates_s: u64) -> CallRecord {
    let mut record = TryRecord::new(Outcome::Ok);
    record.http_status = Some(200);
    record.ttft_us = Some(waits_s * 1_000_000);
    record.usage = Usage { prompt: Some(1_000), completion: Some(100), cached: Some(600), ..Usage::default() };
    CallRecord {
        harness: Some("pi/1".into()),
        lane: Some("lane-a".into()),
        started_unix_us: at_s * 1_000_000,
        api: None,
        model: Some("m".into()),
        request_bytes: 4_000,
        tools: 1,
        total_us: (waits_s + generates_s) * 1_000_000,
        ..CallRecord::new("s", seq, record)
    }
}

fn figures(former: u64, common: u64, prompt: u64, kind: Option<BreakKind>, path: &str) -> PrefixFigures {
    PrefixFigures {
        prompt_bytes: prompt,
        former_seq: Some(1),
        former_bytes: Some(former),
        common_bytes: Some(common),
        exact: true,
        divergence: kind.map(|kind| Divergence {
            segment: "system".into(),
            path: path.into(),
            kind,
            before: "a".into(),
            after: "b".into(),
        }),
        ..PrefixFigures::default()
    }
}

fn free() -> Prices<'static> {
    Prices { of_lane: &|_| None, zones: &|_| None }
}

#[test]
fn time_is_split_between_model_queue_and_harness_and_each_moment_counts_once() {
    // 0-2 waits, 2-5 generates, 5-8 the harness works, 8-9 waits, 9-12 generates; a helper waits 4-6 and generates 6-7.
    let calls = [call(1, 0, 2, 3), call(2, 4, 2, 1), call(3, 8, 1, 3)];
    let time = split(&calls.iter().collect::<Vec<_>>());
    let s = |n: u64| n * 1_000_000;
    assert_eq!(time, Split { wall_us: s(12), model_us: s(3 + 1 + 3), waiting_us: s(2 + 1 + 1), harness_us: s(1) });
    assert_eq!(split(&[]), Split::default());
}

#[test]
fn tokens_are_those_of_the_servers_and_cached_ones_are_counted_once() {
    let mut silent = call(3, 20, 1, 1);
    silent.record.usage = Usage::default();
    (silent.estimated_prompt_tokens, silent.estimated_completion_tokens) = (Some(900), Some(80));
    let found = summary(&[call(1, 0, 1, 1), call(2, 10, 1, 1), silent], &free()).unwrap();
    let want = Tokens {
        reported_calls: 2,
        prompt: 2_000,
        cached: Some(1_200),
        cache_write: None,
        completion: 200,
        reasoning: None,
        estimated_calls: 1,
        estimated_prompt: Some(900),
        estimated_completion: Some(80),
    };
    assert_eq!((found.tokens, found.hit_rate), (want, Some(0.6)));
}

#[test]
fn what_a_session_cost_is_known_only_where_every_part_of_it_is() {
    let price: Price =
        toml::from_str("input_usd_per_mtok = 1\ncached_input_usd_per_mtok = 0.1\noutput_usd_per_mtok = 4").unwrap();
    let prices = Prices { of_lane: &|lane| (lane == Some("lane-a")).then(|| price.clone()), zones: &|_| None };
    // 400 fresh at $1, 600 cached at $0.1, 100 out at $4 for a million: 400 + 60 + 400 micro-dollars.
    let one = call(1, 0, 1, 1);
    assert_eq!(summary(std::slice::from_ref(&one), &prices).unwrap().micro_usd, Some(860));
    let mut elsewhere = call(2, 10, 1, 1);
    elsewhere.lane = None;
    let both = summary(&[one.clone(), elsewhere], &prices).unwrap();
    assert_eq!((both.micro_usd, both.known_micro_usd), (None, Some(860)));
    let mut refused = call(2, 10, 1, 1);
    refused.record.usage = Usage::default();
    (refused.record.http_status, refused.record.outcome) = (Some(429), Outcome::RateLimited);
    let found = summary(&[one, refused], &prices).unwrap();
    assert_eq!((found.micro_usd, found.failed), (Some(860), 1));
}

#[test]
fn breaks_are_grouped_by_kind_and_place_with_what_they_cost() {
    let with = |seq, f| CallRecord { prefix: Some(f), ..call(seq, i64::from(seq) * 10, 1, 1) };
    let calls = [
        with(1, PrefixFigures { prompt_bytes: 4_000, ..PrefixFigures::default() }),
        with(2, figures(4_000, 400, 4_000, Some(BreakKind::Clock), "messages[0].content")),
        with(3, figures(4_000, 400, 4_000, Some(BreakKind::Clock), "messages[0].content")),
        with(4, figures(4_000, 3_000, 4_000, Some(BreakKind::HistoryRewritten), "messages[7].content")),
        with(5, figures(4_000, 4_000, 4_000, None, "")),
    ];
    let found = summary(&calls, &free()).unwrap();
    let short: Vec<_> =
        found.breaks.iter().map(|b| (b.kind, &*b.path, b.times, b.lost_bytes, b.refilled_tokens)).collect();
    assert_eq!(
        short,
        [
            (BreakKind::Clock, "messages[0].content", 2, 7_200, Some(1_800)),
            (BreakKind::HistoryRewritten, "messages[*].content", 1, 1_000, Some(250)),
        ]
    );
    assert_eq!((found.pairs, found.append_only_pairs, found.reuse_min), (4, 1, Some(0.1)));
    assert_eq!((found.refilled_tokens, found.blame.harness), (Some(2_050), 3));
    // 400 + 400 + 3,000 + 4,000 of 20,000 bytes.
    assert_eq!(found.warm_share, Some(0.39));
}

#[test]
fn repeats_of_one_prompt_are_one_logical_call() {
    let repeat = |seq, retry| CallRecord { retry, ..call(seq, i64::from(seq), 0, 0) };
    let found = summary(&[repeat(1, 0), repeat(2, 1), repeat(3, 2), repeat(4, 0)], &free()).unwrap();
    assert_eq!((found.calls, found.logical_calls, found.repeats), (4, 2, 2));
    assert!(summary(&[], &free()).is_none());
}

#[test]
fn failures_are_told_by_class_and_a_client_that_left_is_none() {
    let ended = |seq, outcome, delivery| {
        let mut one = call(seq, i64::from(seq), 0, 1);
        (one.record.outcome, one.delivery) = (outcome, delivery);
        one
    };
    let calls = [
        ended(1, Outcome::ConnReset, Delivery::Whole),
        ended(2, Outcome::RateLimited, Delivery::Whole),
        ended(3, Outcome::RateLimited, Delivery::Whole),
        ended(4, Outcome::Unreachable, Delivery::NoUpstream),
        ended(5, Outcome::Truncated, Delivery::ClientLeft),
        ended(6, Outcome::Ok, Delivery::Whole),
    ];
    let found = summary(&calls, &free()).unwrap();
    let told: Vec<_> = found.failures.iter().map(|one| (one.class.as_str(), one.count)).collect();
    assert_eq!(told, [("rate_limited", 2), ("conn_reset", 1), ("unreachable", 1)]);
    assert_eq!((found.failed, found.left), (4, 1));
}

proptest! {
    #[test]
    fn the_parts_of_the_time_add_up_in_any_order_of_arrival(
        calls in prop::collection::vec((0i64..200, 0u64..20, 0u64..20), 1..20),
        turn in 0usize..20,
    ) {
        let calls: Vec<CallRecord> =
            calls.iter().enumerate().map(|(n, (at, waits, takes))| call(n as u32 + 1, *at, *waits, *takes)).collect();
        let one = summary(&calls, &free()).unwrap();
        let Split { wall_us, model_us, waiting_us, harness_us } = one.time;
        prop_assert_eq!(wall_us, model_us + waiting_us + harness_us);
        let end = calls.iter().map(|c| c.started_unix_us + c.total_us as i64).max().unwrap();
        prop_assert_eq!(wall_us as i64, end - one.started_unix_us);
        let mut turned = calls.clone();
        turned.rotate_left(turn % calls.len());
        prop_assert_eq!(summary(&turned, &free()).unwrap(), one);
    }
}
