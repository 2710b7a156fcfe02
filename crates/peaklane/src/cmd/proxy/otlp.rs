//! Finished calls as OpenTelemetry spans, sent to a collector (feature `otel`). A collector that is slow or gone costs spans,
//! which are counted, and nothing else.

use std::collections::VecDeque;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError, SyncSender, sync_channel};
use std::thread::JoinHandle;
use std::time::Duration;

use peaklane_core::call::CallRecord;
use peaklane_core::lane::Api;
use peaklane_report::genai::export;
use peaklane_run::clock::wall_ms;
use peaklane_wire::client::{Client, Limits, Target};
use peaklane_wire::endpoint::Endpoint;
use peaklane_wire::io::Dial;

use crate::cmd::lanes::event_loop;
use crate::exit::Exit;
use crate::failure::Failure;

/// Calls that may wait for the collector.
const QUEUE: usize = 4_096;
/// Spans of one request.
const BATCH: usize = 256;
/// How long a batch gathers.
const GATHER: Duration = Duration::from_secs(1);
/// How long the collector has for one request.
const PATIENCE: Duration = Duration::from_secs(10);

/// A running exporter.
pub(super) struct Exporter {
    queue: SyncSender<CallRecord>,
    lost: Arc<AtomicU64>,
    thread: JoinHandle<()>,
}

impl Exporter {
    /// Sends to a collector: `http://127.0.0.1:4318`, or the whole address of its traces.
    ///
    /// # Errors
    /// [`Failure`] with exit code 2 for what is no address.
    pub(super) fn start(collector: &str, dial: Arc<dyn Dial>) -> Result<Self, Failure> {
        let base = collector.trim_end_matches('/');
        let url = if base.ends_with("/v1/traces") { base.to_owned() } else { format!("{base}/v1/traces") };
        let endpoint = Endpoint::exactly(&url).map_err(|e| Failure::of(Exit::Usage, &e, e.hint()))?;
        let target = Target { endpoint, api: Api::Chat, key: None, headers: headers()? };
        let (queue, calls) = sync_channel(QUEUE);
        let lost = Arc::new(AtomicU64::new(0));
        let counted = Arc::clone(&lost);
        let runtime = event_loop()?;
        let thread = std::thread::spawn(move || {
            runtime.block_on(async {
                let client = Client::new(dial, wall_ms);
                send_all(&client, &target, &calls, &counted).await;
            });
        });
        Ok(Self { queue, lost, thread })
    }

    /// Where to put finished calls.
    pub(super) fn queue(&self) -> impl Fn(&CallRecord) + Send + use<> {
        let (queue, lost) = (self.queue.clone(), Arc::clone(&self.lost));
        move |call| {
            if queue.try_send(call.clone()).is_err() {
                lost.fetch_add(1, Ordering::Relaxed);
            }
        }
    }

    /// Sends what is queued; gives how many spans were lost.
    pub(super) fn finish(self) -> u64 {
        drop(self.queue);
        // A panic there was printed there.
        let _ = self.thread.join();
        self.lost.load(Ordering::Relaxed)
    }
}

/// The headers of the usual variable: `name=value,name=value`. They may hold a key, so they are not repeated.
fn headers() -> Result<Vec<(String, String)>, Failure> {
    let text = std::env::var("OTEL_EXPORTER_OTLP_HEADERS").unwrap_or_default();
    text.split(',')
        .filter(|part| !part.trim().is_empty())
        .map(|part| {
            let (name, value) = part.split_once('=').ok_or_else(|| {
                Failure::usage("OTEL_EXPORTER_OTLP_HEADERS is no list of name=value")
                    .with_hint("separate them with commas")
            })?;
            Ok((name.trim().to_ascii_lowercase(), value.trim().to_owned()))
        })
        .collect()
}

async fn send_all(client: &Client, target: &Target, calls: &Receiver<CallRecord>, lost: &AtomicU64) {
    let limits = Limits { first_byte: PATIENCE, idle: PATIENCE, total: PATIENCE };
    let mut waiting: VecDeque<CallRecord> = VecDeque::new();
    let mut open = true;
    while open || !waiting.is_empty() {
        while open && waiting.len() < BATCH {
            match calls.recv_timeout(GATHER) {
                Ok(call) => waiting.push_back(call),
                Err(RecvTimeoutError::Timeout) => break,
                Err(RecvTimeoutError::Disconnected) => open = false,
            }
        }
        if waiting.is_empty() {
            continue;
        }
        let batch: Vec<CallRecord> = waiting.drain(..waiting.len().min(BATCH)).collect();
        let body = export(&batch, env!("CARGO_PKG_VERSION")).to_string();
        let sent = client.fetch("POST", target, &body.into(), &limits).await;
        if !sent.is_ok_and(|answer| answer.status < 300) {
            lost.fetch_add(batch.len() as u64, Ordering::Relaxed);
        }
    }
}

#[cfg(test)]
mod tests {
    use peaklane_testkit::case::{Answer, Case, CaseApi};
    use peaklane_testkit::net::{CASE_PORT, MemoryNet};
    use peaklane_testkit::player::CasePlayer;

    use super::*;

    #[test]
    fn a_collector_that_is_gone_costs_spans_that_are_counted() {
        let player = CasePlayer::new(vec![Case::scripted("a", CaseApi::Chat, vec![Answer::json(200, 0.0, "{}")])]);
        let net = MemoryNet::with_cases(&player);
        let record = peaklane_core::record::TryRecord::new(peaklane_core::outcome::Outcome::Ok);
        let call = CallRecord::new("s", 1, record);
        let there = format!("http://127.0.0.1:{CASE_PORT}/case/a");
        for (collector, lost) in [(there.as_str(), 0), ("http://127.0.0.1:1", 3)] {
            let exporter = Exporter::start(collector, Arc::new(net.clone())).unwrap();
            let queue = exporter.queue();
            (0..3).for_each(|_| queue(&call));
            drop(queue);
            assert_eq!(exporter.finish(), lost, "{collector}");
        }
        let got = player.log().of("a");
        assert_eq!((got.len(), got[0].path.as_str()), (1, "/v1/traces"));
        assert_eq!(got[0].json()["resourceSpans"][0]["scopeSpans"][0]["spans"].as_array().map(Vec::len), Some(3));
    }
}
