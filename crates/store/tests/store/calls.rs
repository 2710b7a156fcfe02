//! Calls: written whole, read as they were, shared by two proxies, and gone with a purge.

use peaklane_core::call::{BreakKind, CallRecord, Delivery, Divergence, Gap, PrefixFigures, SessionBy};
use peaklane_core::lane::Api;
use peaklane_core::outcome::Outcome;
use peaklane_core::record::{Handshake, ToolCall, TryRecord, Usage};
use peaklane_store::{CallFilter, CallWriter, Ledger, PurgeBound, StoreError, StoreReader};

/// A call with a value in every field.
pub(crate) fn full(id: &str, session: &str, started_unix_us: i64) -> CallRecord {
    let mut record = TryRecord::new(Outcome::Ok);
    record.sent_us = 1_200;
    record.http_status = Some(200);
    record.http_version = Some("2".into());
    record.handshake = Handshake { reused: false, dns_us: Some(1), connect_us: Some(2), tls_us: Some(3) };
    (record.first_byte_us, record.ttft_us, record.first_answer_us) = (Some(10), Some(20), Some(30));
    (record.last_token_us, record.end_us, record.last_byte_us) = (Some(40), Some(50), Some(60));
    record.max_gap_us = Some(9);
    (record.body_bytes, record.output_chunks, record.reasoning_chunks) = (999, 5, 2);
    record.finish_reason = Some("stop".into());
    record.usage =
        Usage { prompt: Some(100), completion: Some(7), cached: Some(64), cache_write: Some(0), reasoning: Some(3) };
    record.model = Some("m-1".into());
    record.system_fingerprint = Some("fp".into());
    record.request_id = Some("r".into());
    record.streamed = Some(true);
    record.retry_after_ms = Some(4);
    record.clock_skew_ms = Some(-5);
    record.message = Some("words".into());
    record.rate_limits = vec![("x-ratelimit-remaining".into(), "3".into())];
    record.tool_calls = vec![ToolCall { name: "read".into(), arguments: String::new() }];
    CallRecord {
        id: id.into(),
        session: session.into(),
        session_by: SessionBy::Header,
        seq: 2,
        harness: Some("pi/1".into()),
        lane: Some("lane-a".into()),
        started_unix_us,
        path: "/v1/chat/completions".into(),
        api: Some(Api::Chat),
        model: Some("m".into()),
        request_bytes: 4_000,
        tools: 3,
        sent_us: 1_200,
        total_us: 5_000,
        record,
        estimated_prompt_tokens: Some(11),
        estimated_completion_tokens: Some(12),
        usage_injected: true,
        retry: 1,
        prefix: Some(PrefixFigures {
            prompt_bytes: 3_000,
            segments: 9,
            helper: false,
            former_seq: Some(1),
            former_bytes: Some(2_000),
            common_bytes: Some(1_000),
            common_other_order_bytes: Some(900),
            exact: true,
            best_bytes: Some(1_500),
            best_seq: Some(1),
            divergence: Some(Divergence {
                segment: "system".into(),
                path: "messages[0].content".into(),
                kind: BreakKind::Clock,
                before: "12:00".into(),
                after: "12:01".into(),
            }),
        }),
        delivery: Delivery::Drained,
        gap: Some(Gap::Busy),
    }
}

/// A call of which hardly anything is known.
fn bare(id: &str, session: &str, started_unix_us: i64) -> CallRecord {
    CallRecord {
        session_by: SessionBy::New,
        harness: None,
        lane: None,
        api: None,
        model: None,
        record: TryRecord::new(Outcome::ConnReset),
        sent_us: 0,
        estimated_prompt_tokens: None,
        estimated_completion_tokens: None,
        usage_injected: false,
        retry: 0,
        prefix: None,
        delivery: Delivery::NoUpstream,
        gap: None,
        ..full(id, session, started_unix_us)
    }
}

fn read(reader: &StoreReader, filter: &CallFilter) -> Vec<CallRecord> {
    let mut all = Vec::new();
    reader.calls(filter, |call| all.push(call)).unwrap();
    all
}

fn ids(reader: &StoreReader, filter: &CallFilter) -> Vec<String> {
    read(reader, filter).into_iter().map(|c| c.id).collect()
}

#[test]
fn a_call_comes_back_as_it_was_given_and_a_bare_one_stays_bare() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("s.db");
    let calls = [full("a-1", "s", 10), bare("a-2", "s", 20)];
    CallWriter::open(&path).unwrap().append(&calls).unwrap();
    let reader = StoreReader::open(&path).unwrap();
    assert_eq!(read(&reader, &CallFilter::default()), calls);
}

#[test]
fn texts_of_answers_and_arguments_of_tools_are_never_written() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("s.db");
    let mut call = full("a-1", "s", 10);
    call.record.content = "a-secret-answer".into();
    call.record.reasoning = "a-secret-thought".into();
    call.record.tool_calls[0].arguments = "{\"path\":\"a-secret-file\"}".into();
    call.record.message = Some("m".repeat(5_000));
    let mut writer = CallWriter::open(&path).unwrap();
    writer.append(&[call]).unwrap();
    let reader = StoreReader::open(&path).unwrap();
    assert_eq!(read(&reader, &CallFilter::default())[0].record.message.as_ref().map(String::len), Some(2_048));
    for entry in std::fs::read_dir(dir.path()).unwrap() {
        let bytes = std::fs::read(entry.unwrap().path()).unwrap();
        assert!(!bytes.windows(8).any(|w| w == b"a-secret"));
    }
}

#[test]
fn calls_are_found_by_session_lane_time_and_failure() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("s.db");
    let mut writer = CallWriter::open(&path).unwrap();
    writer.append(&[full("3", "b", 30), full("1", "a", 10), bare("2", "a", 20)]).unwrap();
    let reader = StoreReader::open(&path).unwrap();
    let none = CallFilter::default;
    assert_eq!(ids(&reader, &none()), ["1", "2", "3"]);
    assert_eq!(ids(&reader, &CallFilter { session: Some("a".into()), ..none() }), ["1", "2"]);
    assert_eq!(ids(&reader, &CallFilter { lanes: vec!["lane-a".into(), "x".into()], ..none() }), ["1", "3"]);
    assert_eq!(ids(&reader, &CallFilter { since_unix_us: Some(20), ..none() }), ["2", "3"]);
    assert_eq!(ids(&reader, &CallFilter { failed: true, ..none() }), ["2"]);
    assert_eq!(ids(&reader, &CallFilter { last: Some(2), ..none() }), ["2", "3"]);
    let sessions: Vec<_> = reader.sessions(&none()).unwrap().into_iter().map(|s| (s.session, s.calls)).collect();
    assert_eq!(sessions, [("a".to_owned(), 2), ("b".to_owned(), 1)]);
}

#[test]
fn two_proxies_write_to_one_store_and_nothing_is_lost_or_doubled() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("s.db");
    std::thread::scope(|scope| {
        for proxy in ["p", "q"] {
            let path = &path;
            scope.spawn(move || {
                let mut writer = CallWriter::open(path).unwrap();
                for n in 0..50 {
                    let batch = [full(&format!("{proxy}-{n}-a"), "s", n), bare(&format!("{proxy}-{n}-b"), "s", n)];
                    writer.append(&batch).unwrap();
                }
            });
        }
    });
    let reader = StoreReader::open(&path).unwrap();
    let mut found = ids(&reader, &CallFilter::default());
    found.sort_unstable();
    found.dedup();
    assert_eq!(found.len(), 200);
}

#[test]
fn a_batch_that_cannot_be_written_is_not_written_in_part_and_a_removed_file_is_told() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("s.db");
    let mut writer = CallWriter::open(&path).unwrap();
    writer.append(&[full("1", "s", 1)]).unwrap();
    // The second has an id that is there already.
    assert!(matches!(writer.append(&[full("2", "s", 2), full("1", "s", 3)]), Err(StoreError::Bug { .. })));
    assert_eq!(ids(&StoreReader::open(&path).unwrap(), &CallFilter::default()), ["1"]);
    writer.append(&[full("2", "s", 2)]).unwrap();
    std::fs::remove_file(&path).unwrap();
    assert!(matches!(writer.append(&[full("3", "s", 3)]), Err(StoreError::Gone { .. })));
}

#[test]
fn a_purge_takes_older_calls_with_their_pieces_of_prompts() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("s.db");
    CallWriter::open(&path).unwrap().append(&[full("1", "s", 1_000), full("2", "s", 2_000)]).unwrap();
    let ledger = Ledger::open(&path).unwrap();
    let bound = PurgeBound { date: "1970-01-01".into(), unix_us: 2_000, killed_before_unix_us: None };
    assert_eq!(ledger.would_purge(&bound).unwrap().calls, 1);
    assert_eq!(ledger.purge(&bound).unwrap().calls, 1);
    assert_eq!(ids(&StoreReader::open(&path).unwrap(), &CallFilter::default()), ["2"]);
}

#[test]
fn a_session_is_purged_with_every_piece_of_its_prompts_and_others_stay() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("s.db");
    let told = |id: &str, session: &str, before: &str| {
        let mut call = full(id, session, 1_000);
        let found = call.prefix.as_mut().and_then(|p| p.divergence.as_mut()).unwrap();
        before.clone_into(&mut found.before);
        call
    };
    // Two proxies had a session of that name.
    let calls = [told("p-1", "a", "piece-of-a"), told("q-1", "a", "piece-of-a"), told("p-2", "b", "piece-of-b")];
    CallWriter::open(&path).unwrap().append(&calls).unwrap();
    let ledger = Ledger::open(&path).unwrap();
    assert_eq!(ledger.would_purge_session("a").unwrap().calls, 2);
    assert_eq!(ledger.would_purge_session("A").unwrap().calls, 0, "names are exact");
    assert_eq!(ledger.purge_session("a").unwrap().calls, 2);
    ledger.compact().unwrap();
    drop(ledger);
    assert_eq!(ids(&StoreReader::open(&path).unwrap(), &CallFilter::default()), ["p-2"]);
    let bytes: Vec<u8> =
        std::fs::read_dir(dir.path()).unwrap().flat_map(|e| std::fs::read(e.unwrap().path()).unwrap()).collect();
    let holds = |text: &[u8]| bytes.windows(text.len()).any(|w| w == text);
    assert!(holds(b"piece-of-b") && !holds(b"piece-of-a"));
}
