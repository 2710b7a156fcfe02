//! Bursts on a network in memory, on a paused clock: schedules, retries, verdicts and records are exact.

use std::collections::HashSet;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use peaklane_core::attempt::Verdict;
use peaklane_core::burst::{BurstHeader, BurstState, Connections, PromptMode};
use peaklane_core::check::Check;
use peaklane_core::config::LaneOrder;
use peaklane_core::lane::{Api, Kind};
use peaklane_core::outcome::Outcome;
use peaklane_run::burst::{BurstPlan, Event, Fired, LaneTarget, Stop, fire};
use peaklane_run::clock::wall_ms;
use peaklane_run::fleet::{Shot, fire_all};
use peaklane_run::recorder::Recorder;
use peaklane_store::{BurstFilter, Store, StoreReader};
use peaklane_testkit::case::{Answer, Case, CaseApi};
use peaklane_testkit::net::MemoryNet;
use peaklane_testkit::player::CasePlayer;
use peaklane_wire::client::{Client, Limits, Target};
use peaklane_wire::endpoint::Endpoint;
use peaklane_wire::lag::LagProbe;
use peaklane_wire::request::Ask;
use peaklane_wire::retry::RetryPolicy;

const CHUNK: &str = r#"{"choices":[{"index":0,"delta":{"content":"TEXT"},"finish_reason":null}]}"#;

/// An answer of `text` that ends `ms` after the request, with a finish reason.
fn says(text: &str, ms: f64, finish: &str) -> Answer {
    let first = format!("data: {}\n\n", CHUNK.replace("TEXT", text));
    let last = format!(
        "data: {{\"choices\":[{{\"index\":0,\"delta\":{{}},\"finish_reason\":\"{finish}\"}}]}}\n\ndata: [DONE]\n\n"
    );
    Answer::events([(ms / 2.0, first.as_str()), (ms, last.as_str())])
}

struct Lane {
    player: CasePlayer,
    client: Arc<Client>,
    target: LaneTarget,
}

fn lane(answers: Vec<Answer>) -> Lane {
    let player = CasePlayer::new(vec![Case::scripted("lane", CaseApi::Chat, answers)]);
    let net = MemoryNet::with_cases(&player);
    let endpoint = Endpoint::new("http://127.0.0.1:8099/case/lane/v1", Api::Chat).expect("a good address");
    let ask = Ask {
        model: "m".into(),
        system: None,
        prompt: "Say hi.".into(),
        max_tokens: 16,
        max_completion_tokens: false,
        temperature: Some(0.0),
        seed: Some(1),
        stream: true,
        extra: serde_json::Map::new(),
    };
    let target = Target { endpoint, api: Api::Chat, key: None, headers: Vec::new() };
    Lane { player, client: Arc::new(Client::new(Arc::new(net), wall_ms)), target: LaneTarget { target, ask } }
}

fn plan(attempts: u32) -> BurstPlan {
    BurstPlan {
        header: BurstHeader {
            id: "b-1".into(),
            run: "r-1".into(),
            lane: "lane".into(),
            kind: Kind::FreeHosted,
            api: Api::Chat,
            model: "m".into(),
            base_url: "http://127.0.0.1:8099/case/lane/v1".into(),
            task: "t".into(),
            floor_us: 400_000,
            attempts,
            concurrency: None,
            spacing_us: 0,
            prompt_mode: PromptMode::Nonce,
            connections: Connections::Before,
            stream: true,
            max_retries: 0,
            total_timeout_us: 5_000_000,
            seed: 7,
            prompt_hash: "h".into(),
            date: None,
            window: None,
            zone: None,
            started_unix_us: 0,
            tool_version: "0".into(),
            simulated: true,
            tasks_per_hour_floor: None,
            stretch_us: None,
            campaign: None,
            site: None,
        },
        warmup: 0,
        limits: Limits { total: Duration::from_secs(5), ..Limits::default() },
        retry: RetryPolicy::default(),
        check: Check::None,
        accept_budget_stop: false,
    }
}

async fn run(lane: &Lane, plan: &BurstPlan) -> Fired {
    let (_keep, stop) = Stop::pair();
    let lag = LagProbe::start();
    fire(&lane.client, &lane.target, plan, &Recorder::nowhere(), &lag, stop, |_| {})
        .await
        .expect("nothing is recorded, so nothing can fail")
}

fn latencies_ms(fired: &Fired) -> Vec<u64> {
    fired.figures.iter().map(|f| f.latency_us / 1_000).collect()
}

#[tokio::test(start_paused = true)]
async fn attempts_released_together_each_take_what_the_lane_took() {
    let lane = lane(vec![says("hi", 300.0, "stop")]);
    let fired = run(&lane, &plan(8)).await;
    assert_eq!(latencies_ms(&fired), [300; 8]);
    assert_eq!((fired.end.state, fired.end.peak_in_flight, fired.skew_us), (BurstState::Complete, 8, [0, 0, 0]));
    assert!(fired.figures.iter().all(|f| f.verdict == Verdict::Pass && f.ttft_us == Some(150_000)));
    assert_eq!(lane.player.connections(), 8);
}

#[tokio::test(start_paused = true)]
async fn a_late_start_counts_because_latency_runs_from_the_intended_one() {
    // One slot, one attempt due every 100 ms, each of 300 ms: the third waits 400 ms for the slot.
    let lane = lane(vec![says("hi", 300.0, "stop")]);
    let mut plan = plan(3);
    (plan.header.concurrency, plan.header.spacing_us) = (Some(1), 100_000);
    let fired = run(&lane, &plan).await;
    assert_eq!(latencies_ms(&fired), [300, 500, 700]);
    let verdicts: Vec<Verdict> = fired.figures.iter().map(|f| f.verdict).collect();
    assert_eq!(verdicts, [Verdict::Pass, Verdict::TooSlow, Verdict::TooSlow]);
    assert_eq!(fired.skew_us[2], 400_000);
}

#[tokio::test(start_paused = true)]
async fn in_a_closed_loop_an_attempt_is_due_when_its_slot_becomes_free() {
    let lane = lane(vec![says("hi", 300.0, "stop")]);
    let mut plan = plan(6);
    plan.header.concurrency = Some(2);
    let fired = run(&lane, &plan).await;
    assert_eq!(latencies_ms(&fired), [300; 6]);
    assert_eq!((fired.end.peak_in_flight, lane.player.connections()), (2, 2));
}

#[tokio::test(start_paused = true)]
async fn retries_and_waits_are_part_of_an_attempt() {
    let loading = Answer::json(503, 15.0, r#"{"error":{"message":"Loading model","code":503}}"#);
    let lane = lane(vec![loading, says("hi", 100.0, "stop")]);
    let mut plan = plan(1);
    plan.retry = RetryPolicy { max_retries: 2, base: Duration::from_millis(200), ..RetryPolicy::default() };
    let fired = run(&lane, &plan).await;
    let figures = fired.figures[0];
    assert_eq!((figures.retries, figures.outcome, figures.verdict), (1, Outcome::Ok, Verdict::Pass));
    // 15 ms, a back-off of 100 to 200 ms, 100 ms; timers round up to whole milliseconds.
    assert!((215_000..=317_000).contains(&figures.latency_us), "{}", figures.latency_us);
    assert_eq!(figures.ttft_us, Some(figures.latency_us - 50_000));
}

#[tokio::test(start_paused = true)]
async fn a_wrong_or_empty_answer_is_a_miss_however_fast() {
    let lane = lane(vec![says("hi", 20.0, "stop"), says("", 20.0, "stop"), says("ho", 20.0, "stop")]);
    let mut plan = plan(3);
    plan.check = Check::Contains("hi".into());
    plan.header.concurrency = Some(1);
    let verdicts: Vec<Verdict> = run(&lane, &plan).await.figures.iter().map(|f| f.verdict).collect();
    assert_eq!(verdicts, [Verdict::Pass, Verdict::Failed, Verdict::WrongAnswer]);
}

#[tokio::test(start_paused = true)]
async fn a_budget_that_is_too_small_voids_the_burst_instead_of_counting() {
    let lane = lane(vec![says("hi", 20.0, "stop"), says("cut", 20.0, "length")]);
    let mut plan = plan(4);
    plan.header.concurrency = Some(1);
    let fired = run(&lane, &plan).await;
    assert_eq!(fired.end.state, BurstState::Void);
    assert!(fired.end.finding.is_some_and(|f| f.contains("budget") && f.contains("max_tokens")));
    assert_eq!(fired.figures.len(), 4);
}

#[tokio::test(start_paused = true)]
async fn a_warm_up_that_shows_a_fault_of_the_request_saves_the_burst() {
    let refusal = r#"{"error":{"message":"Unsupported parameter: 'temperature'","code":"unsupported_parameter"}}"#;
    let lane = lane(vec![Answer::json(400, 5.0, refusal)]);
    let mut plan = plan(8);
    plan.warmup = 1;
    let fired = run(&lane, &plan).await;
    assert_eq!((fired.end.state, fired.figures.len(), fired.warmup.len()), (BurstState::Void, 0, 1));
    assert_eq!(lane.player.log().of("lane").len(), 1);
}

#[tokio::test(start_paused = true)]
async fn a_warm_up_is_measured_apart_and_its_connection_is_used_again() {
    let lane = lane(vec![says("hi", 390.0, "stop"), says("hi", 100.0, "stop")]);
    let mut plan = plan(4);
    plan.warmup = 1;
    let fired = run(&lane, &plan).await;
    assert_eq!(fired.warmup[0].latency_us, 390_000);
    assert_eq!(latencies_ms(&fired), [100; 4]);
    assert_eq!(lane.player.connections(), 4);
}

#[tokio::test(start_paused = true)]
async fn a_stop_gives_up_what_is_in_flight_and_keeps_what_is_there() {
    let lane = lane(vec![says("hi", 100.0, "stop")]);
    let mut plan = plan(10);
    plan.header.concurrency = Some(1);
    let (pull, stop) = Stop::pair();
    let lag = LagProbe::start();
    let ended = Mutex::new(0);
    let on = |event| {
        if let Event::Attempt(_) = event {
            let mut ended = ended.lock().unwrap();
            *ended += 1;
            if *ended == 3 {
                pull.send_replace(true);
            }
        }
    };
    let fired = fire(&lane.client, &lane.target, &plan, &Recorder::nowhere(), &lag, stop, on).await.unwrap();
    assert_eq!((fired.end.state, fired.figures.len()), (BurstState::Interrupted, 3));
}

/// A stretch of 1 s with two slots, judged by 3,600 right answers an hour.
fn stretch() -> BurstPlan {
    let mut plan = plan(0);
    (plan.header.stretch_us, plan.header.concurrency) = (Some(1_000_000), Some(2));
    (plan.header.floor_us, plan.header.tasks_per_hour_floor) = (0, Some(3_600));
    plan
}

#[tokio::test(start_paused = true)]
async fn a_stretch_begins_attempts_until_its_end_and_lets_those_in_flight_finish() {
    let lane = lane(vec![says("hi", 300.0, "stop")]);
    let fired = run(&lane, &stretch()).await;
    // Each slot begins at 0, 300, 600 and 900 ms (the second one 50 us later); the last two end at 1,200 ms.
    assert_eq!(latencies_ms(&fired), [300; 8]);
    assert_eq!((fired.end.state, fired.end.peak_in_flight), (BurstState::Complete, 2));
    let summary = &fired.summary;
    assert_eq!((summary.n, summary.passed, summary.right_in_stretch), (8, 8, Some(6)));
    // 6 in a second, 21,600 an hour.
    assert_eq!((summary.tasks_per_hour(), summary.throughput_holds()), (Some(21_600.0), Some(true)));
}

#[tokio::test(start_paused = true)]
async fn a_lane_that_refuses_at_once_is_asked_once_a_second_by_each_slot_of_a_stretch() {
    let lane = lane(vec![Answer::json(401, 5.0, r#"{"error":{"message":"Invalid key"}}"#)]);
    let mut plan = stretch();
    plan.header.stretch_us = Some(10_000_000);
    let fired = run(&lane, &plan).await;
    assert_eq!((fired.end.state, fired.figures.len()), (BurstState::Complete, 20));
    assert_eq!(fired.summary.throughput_holds(), Some(false));
    assert!(fired.header.all_made(&fired.figures));
}

#[tokio::test(start_paused = true)]
async fn a_stretch_ends_with_the_first_fault_of_the_request() {
    let lane = lane(vec![says("hi", 100.0, "stop"), says("cut", 100.0, "length")]);
    let mut plan = stretch();
    plan.header.concurrency = Some(1);
    let fired = run(&lane, &plan).await;
    assert_eq!((fired.end.state, fired.figures.len()), (BurstState::Void, 2));
}

#[tokio::test(start_paused = true)]
async fn a_stretch_that_is_stopped_is_interrupted_and_counts_neither_way() {
    let lane = lane(vec![says("hi", 100.0, "stop")]);
    let (pull, stop) = Stop::pair();
    let lag = LagProbe::start();
    let on = |event| {
        if let Event::Attempt(_) = event {
            pull.send_replace(true);
        }
    };
    let nowhere = Recorder::nowhere();
    let fired = fire(&lane.client, &lane.target, &stretch(), &nowhere, &lag, stop, on).await.unwrap();
    assert_eq!((fired.end.state, fired.summary.tasks_per_hour()), (BurstState::Interrupted, None));
    assert!(!fired.header.all_made(&fired.figures));
}

#[tokio::test(start_paused = true)]
async fn all_lanes_get_the_same_nonces_and_no_attempt_shares_one() {
    let lanes = [lane(vec![says("hi", 50.0, "stop")]), lane(vec![says("hi", 70.0, "stop")])];
    let shots: Vec<Shot> = lanes
        .iter()
        .enumerate()
        .map(|(i, l)| {
            let mut plan = plan(8);
            plan.header.id = format!("b-{i}");
            Shot { client: Arc::clone(&l.client), lane: l.target.clone(), plan }
        })
        .collect();
    for how in [LaneOrder::Random, LaneOrder::Interleaved] {
        let (_keep, stop) = Stop::pair();
        let lag = LagProbe::start();
        let fired = fire_all(&shots, how, &Recorder::nowhere(), &lag, &stop, |_, _| {}).await.unwrap();
        assert!(fired.iter().flatten().all(|f| f.end.state == BurstState::Complete));
    }
    let prompts =
        |lane: &Lane| -> HashSet<Vec<u8>> { lane.player.log().of("lane").into_iter().map(|r| r.body).collect() };
    assert_eq!(prompts(&lanes[0]).len(), 8);
    assert_eq!(prompts(&lanes[0]), prompts(&lanes[1]));
}

#[tokio::test]
async fn what_the_burst_saw_is_what_the_store_holds() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("p.db");
    let store = Store::open(&path).unwrap();
    let csv = folder.path().join("lane.csv");
    let recorder = Recorder::nowhere().with_store(store.sink()).with_csv(&csv).unwrap();
    let lane = lane(vec![says("hi", 20.0, "stop")]);
    let mut plan = plan(8);
    plan.warmup = 1;
    plan.header.prompt_mode = PromptMode::Identical;
    let (_keep, stop) = Stop::pair();
    let lag = LagProbe::start();
    let fired = fire(&lane.client, &lane.target, &plan, &recorder, &lag, stop, |_| {}).await.unwrap();
    let reader = StoreReader::open(&path).unwrap();
    let stored = &reader.bursts(&BurstFilter::default()).unwrap()[0];
    assert_eq!((&stored.header, stored.end.as_ref()), (&fired.header, Some(&fired.end)));
    assert_eq!(reader.figures("b-1").unwrap(), fired.figures);
    let read = peaklane_store::csv::read(&csv).unwrap();
    assert_eq!((read.bursts.len(), read.warnings.len()), (1, 0));
    assert_eq!(read.bursts[0].figures, fired.figures);
    let bodies: HashSet<Vec<u8>> = lane.player.log().of("lane").into_iter().map(|r| r.body).collect();
    assert_eq!(bodies.len(), 1, "identical prompts are identical to the byte");
}
