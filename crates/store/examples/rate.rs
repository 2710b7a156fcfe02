//! How fast the store writes: `cargo run --release -p peaklane-store --example rate -- FILE [ATTEMPTS] [A_SECOND]`.
//! With a pace, attempts come at that rate instead of as fast as the writer takes them.
//!
//! Prints rows a second by clock and CPU a row (user and system, all threads of the process), each attempt with one
//! try and a short answer, as a burst of the throughput kind leaves them.
#![allow(clippy::print_stdout)] // its output is what it is for

use std::path::PathBuf;
use std::time::{Duration, Instant};

use peaklane_core::attempt::{AttemptRecord, Verdict};
use peaklane_core::burst::{BurstEnd, BurstHeader, BurstState, Connections, PromptMode};
use peaklane_core::lane::{Api, Kind};
use peaklane_core::outcome::Outcome;
use peaklane_core::record::{TryRecord, Usage};
use peaklane_store::csv::CsvAppender;
use peaklane_store::{Store, StoreError};

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let mut args = std::env::args().skip(1);
    let path = PathBuf::from(args.next().ok_or("name a file that may be written")?);
    let count: u32 = args.next().map_or(Ok(200_000), |n| n.parse())?;
    let pace: Option<f64> = args.next().map(|n| n.parse()).transpose()?;
    let header = header(count);

    let (_, making) = measure(|| (0..count).map(|n| attempt(n).latency_us).max());
    println!("making the records      {}", shown(making, count));
    let store = Store::open(&path)?;
    let sink = store.sink();
    let (written, writing) = measure(|| -> Result<(), StoreError> {
        let key = sink.begin_burst_blocking(&header)?;
        let start = Instant::now();
        for n in 0..count {
            let due = pace.map_or(Duration::ZERO, |pace| Duration::from_secs_f64(f64::from(n) / pace));
            let early = due.saturating_sub(start.elapsed());
            // In steps of a millisecond, or sleeping would cost more than writing.
            if early > Duration::from_millis(1) {
                std::thread::sleep(early);
            }
            sink.attempt_blocking(key, attempt(n))?;
        }
        sink.end_burst_blocking(key, &end())?;
        store.close()
    });
    written?;
    println!("store, records included {}", shown(writing, count));
    let mut csv = CsvAppender::open(&path.with_extension("csv"))?;
    let (appended, appending) = measure(|| (0..count).try_for_each(|n| csv.append(&header, &attempt(n))));
    appended?;
    println!("CSV, records included   {}", shown(appending, count));
    Ok(())
}

/// What came of the work, seconds by clock and seconds of CPU.
fn measure<T>(work: impl FnOnce() -> T) -> (T, (f64, f64)) {
    let (clock, cpu) = (Instant::now(), cpu_seconds());
    let done = std::hint::black_box(work());
    (done, (clock.elapsed().as_secs_f64(), cpu_seconds() - cpu))
}

/// User and system time of this process, in hundredths of a second (proc(5), fields 14 and 15).
fn cpu_seconds() -> f64 {
    let stat = std::fs::read_to_string("/proc/self/stat").unwrap_or_default();
    let after = stat.rsplit_once(')').map_or("", |(_, rest)| rest);
    after.split_whitespace().skip(11).take(2).filter_map(|f| f.parse::<f64>().ok()).sum::<f64>() / 100.0
}

fn shown((clock, cpu): (f64, f64), count: u32) -> String {
    let count = f64::from(count);
    format!("{:>9.0} rows/s by clock, {:>6.2} us CPU a row", count / clock, cpu / count * 1e6)
}

fn attempt(index: u32) -> AttemptRecord {
    let mut one = TryRecord::new(Outcome::Ok);
    one.http_status = Some(200);
    one.http_version = Some("1.1".to_owned());
    one.handshake.reused = true;
    (one.sent_us, one.body_bytes, one.output_chunks) = (40, 4_200, 20);
    (one.first_byte_us, one.ttft_us, one.first_answer_us) = (Some(900), Some(1_100), Some(1_100));
    (one.last_token_us, one.end_us, one.last_byte_us) = (Some(1_900), Some(1_950), Some(1_960));
    one.max_gap_us = Some(210);
    one.content = "twenty words of an answer ".repeat(5);
    one.finish_reason = Some("stop".to_owned());
    one.usage = Usage { prompt: Some(120), completion: Some(20), cached: Some(0), ..Usage::default() };
    one.model = Some("ref-ttft0-itl0-n20".to_owned());
    one.request_id = Some(format!("chatcmpl-{index:08}"));
    one.streamed = Some(true);
    AttemptRecord {
        index,
        warmup: false,
        intended_unix_us: 1_796_050_800_000_000 + i64::from(index) * 100,
        skew_us: 20,
        latency_us: 2_000 + u64::from(index % 97),
        verdict: Verdict::Pass,
        outcome: Outcome::Ok,
        retries: 0,
        ttft_us: Some(1_160),
        first_answer_us: Some(1_160),
        finding: None,
        check_note: None,
        tries: vec![one],
    }
}

fn end() -> BurstEnd {
    BurstEnd {
        state: BurstState::Complete,
        duration_us: 1,
        peak_in_flight: 64,
        max_skew_us: 20,
        own_lag_us: [1, 2, 3],
        body_bytes: 1,
        finding: None,
        control: None,
    }
}

fn header(attempts: u32) -> BurstHeader {
    let now = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).unwrap_or_default();
    BurstHeader {
        id: format!("rate-{}", now.as_micros()),
        run: "rate".to_owned(),
        lane: "rate".to_owned(),
        kind: Kind::SelfHosted,
        api: Api::Chat,
        model: "ref-ttft0-itl0-n20".to_owned(),
        base_url: "http://127.0.0.1:9/v1".to_owned(),
        task: "rate".to_owned(),
        floor_us: 25_000_000,
        attempts,
        concurrency: Some(64),
        spacing_us: 0,
        prompt_mode: PromptMode::Nonce,
        connections: Connections::Before,
        stream: true,
        max_retries: 0,
        total_timeout_us: 60_000_000,
        seed: 1,
        prompt_hash: "0".repeat(64),
        date: None,
        window: None,
        zone: None,
        started_unix_us: i64::try_from(now.as_micros()).unwrap_or(i64::MAX),
        tool_version: env!("CARGO_PKG_VERSION").to_owned(),
        simulated: true,
        tasks_per_hour_floor: None,
        stretch_us: None,
        campaign: None,
        site: None,
    }
}
