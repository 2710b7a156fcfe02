//! The shorter stream cases over real sockets, where bytes, timers and the kernel are those of a real lane. Exactness is
//! proved in memory (`stream_cases.rs`); here the tolerance is the one of the cases' README.

#![allow(clippy::unwrap_used, reason = "a test that panics has failed")]

mod support;

use std::sync::Arc;
use std::time::Duration;

use peaklane_core::lane::Api;
use peaklane_core::secret::Secret;
use peaklane_testkit::case::{Answer, Case, stream_cases};
use peaklane_testkit::expect::{SERVER_LATE_MS, Seen, Tolerance, compare};
use peaklane_testkit::net::CaseServer;
use peaklane_wire::client::{Client, Limits, Target};
use peaklane_wire::endpoint::Endpoint;
use peaklane_wire::lag::LagProbe;
use peaklane_wire::net::Network;
use peaklane_wire::proxy_env::Proxies;
use tokio::sync::Semaphore;

/// The smaller set: cases whose script and limits are over within this time.
const LONGEST_MS: f64 = 1_000.0;
/// The README judges times with at most this many cases at once.
const AT_ONCE: usize = 4;
/// A measurement on a machine that was late is made again, at most this often.
const REPEATS: u32 = 3;
/// The key that every request carries.
const KEY: &str = "sk-hush-hush-4711-never-shown";

/// When the script of an answer is over, milliseconds after the request.
fn script_ms(answer: &Answer) -> f64 {
    let steps = answer.steps.iter().map(|step| step.at_ms);
    steps.chain(answer.close.at_ms).fold(answer.head_at_ms(), f64::max)
}

fn is_short(case: &Case) -> bool {
    let limits = [case.client.first_byte_timeout_ms, case.client.idle_timeout_ms, case.client.total_timeout_ms];
    case.answers()
        .iter()
        .chain(case.routes.iter().map(|route| &route.response))
        .map(script_ms)
        .all(|ms| ms < LONGEST_MS)
        && limits.into_iter().flatten().all(|ms| (ms as f64) < LONGEST_MS)
}

fn limits_of(case: &Case) -> Limits {
    let generous = Limits::default();
    let ms = |ms: Option<u64>, generous: Duration| ms.map_or(generous, Duration::from_millis);
    Limits {
        first_byte: ms(case.client.first_byte_timeout_ms, generous.first_byte),
        idle: ms(case.client.idle_timeout_ms, generous.idle),
        total: ms(case.client.total_timeout_ms, generous.total),
    }
}

/// How one case went.
enum Judged {
    Right,
    /// The machine was late at each repeat: no verdict about the client.
    Void,
    Wrong(String),
}

async fn judge(server: &CaseServer, case: &Case, lag: &Arc<LagProbe>) -> Judged {
    let api = Api::from(case.api);
    let network = Network::new(Proxies::none(), &[], true).unwrap();
    let client = Client::new(Arc::new(network), support::wall_ms).with_lag_probe(Arc::clone(lag));
    let body = support::body(api, case.request.stream);
    let mut repeat = 0;
    loop {
        let key = format!("{}@{repeat}", case.id);
        let base = if api == Api::Messages { server.root_url(&key) } else { server.base_url(&key) };
        let endpoint = Endpoint::new(&base, api).unwrap();
        let target = Target { endpoint, api, key: Secret::new(KEY).ok(), headers: Vec::new() };
        let tried = client.try_once(&target, &body, None, &limits_of(case)).await;
        let wrong = compare(&case.expected, &Seen::from(&tried.record), Tolerance::Socket);
        let requests = server.log().of(&key);
        assert_eq!(requests.len() as u32, 1 + tried.record.redirects, "{}: something was sent again", case.id);
        assert!(requests.iter().all(|r| r.body == body), "{}: method and body are kept", case.id);
        if wrong.is_empty() {
            return Judged::Right;
        }
        let server_ms = server.log().worst_late_ms(&key);
        let own_ms = tried.record.own_lag_us as f64 / 1e3;
        if server_ms.max(own_ms) <= SERVER_LATE_MS {
            return Judged::Wrong(format!("{}: {}", case.id, wrong.join("; ")));
        }
        repeat += 1;
        if repeat > REPEATS {
            return Judged::Void;
        }
        tokio::time::sleep(Duration::from_millis(100)).await;
    }
}

#[tokio::test]
async fn every_short_stream_case_is_measured_over_real_sockets() {
    let cases: Vec<Case> = stream_cases().into_iter().filter(is_short).collect();
    assert!(!cases.is_empty(), "no case is shorter than {LONGEST_MS} ms");
    let count = cases.len();
    let server = Arc::new(CaseServer::with(cases.clone()).unwrap());
    let lag = Arc::new(LagProbe::start());
    let room = Arc::new(Semaphore::new(AT_ONCE));
    let mut running = tokio::task::JoinSet::new();
    for case in cases {
        let (server, lag, room) = (Arc::clone(&server), Arc::clone(&lag), Arc::clone(&room));
        running.spawn(async move {
            let _place = room.acquire().await.unwrap();
            judge(&server, &case, &lag).await
        });
    }
    let (mut wrong, mut void) = (Vec::new(), 0);
    while let Some(judged) = running.join_next().await {
        match judged.unwrap() {
            Judged::Right => {}
            Judged::Void => void += 1,
            Judged::Wrong(what) => wrong.push(what),
        }
    }
    assert!(wrong.is_empty(), "{} of {count} cases are wrong:\n{}", wrong.len(), wrong.join("\n"));
    // Nothing is learnt on a machine that is late all the time, and that must not pass for "right".
    assert!(void * 4 <= count, "this machine was too late to judge {void} of {count} cases");
}
