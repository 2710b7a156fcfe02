//! A load generator for proxies: streams over kept connections, paced or one after the other, or many that are held open.
//!
//!     refload --to 127.0.0.1:8787 --path /v1/chat/completions --model ref-ttft0-itl0-n20 --connections 64 --seconds 5
//!             [--every-ms 100] [--body-bytes 100000] [--sessions] | --hold 9000
//!
//! Prints one JSON object: requests, errors, and percentiles of the time to the first byte and to the last, microseconds.

use std::time::{Duration, Instant};

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

struct Asked {
    to: String,
    path: String,
    model: String,
    connections: usize,
    seconds: f64,
    every: Option<Duration>,
    body_bytes: usize,
    sessions: bool,
    hold: usize,
}

fn asked() -> Asked {
    let mut asked = Asked {
        to: String::new(),
        path: "/v1/chat/completions".into(),
        model: "ref-ttft0-itl0-n20".into(),
        connections: 64,
        seconds: 5.0,
        every: None,
        body_bytes: 200,
        sessions: false,
        hold: 0,
    };
    let mut words = std::env::args().skip(1);
    while let Some(word) = words.next() {
        if word == "--sessions" {
            asked.sessions = true;
            continue;
        }
        let value = words.next().unwrap_or_else(|| panic!("{word} wants a value"));
        let number = || value.parse::<f64>().unwrap_or_else(|_| panic!("{word}: no number"));
        match word.as_str() {
            "--to" => asked.to = value,
            "--path" => asked.path = value,
            "--model" => asked.model = value,
            "--connections" => asked.connections = number() as usize,
            "--seconds" => asked.seconds = number(),
            "--every-ms" => asked.every = Some(Duration::from_secs_f64(number() / 1e3)),
            "--body-bytes" => asked.body_bytes = number() as usize,
            "--hold" => asked.hold = number() as usize,
            other => panic!("unknown option {other}"),
        }
    }
    asked
}

/// Digits that number the prompts of a connection, at the end of the last message: each prompt is another one, as those of a
/// harness are, and none can be answered from memory of the former.
const DIGITS: usize = 10;

/// Bytes of code in one message.
const MESSAGE_BYTES: usize = 2_000;

/// A request, and where its number stands in it.
struct Request {
    bytes: Vec<u8>,
    number_at: usize,
}

impl Request {
    /// That of connection `n`: a chat of messages of code, as large as asked for.
    fn new(asked: &Asked, n: usize) -> Self {
        let code = "    if let Some(value) = table.get(&key) { return Ok(value.clone()); }\\n";
        let (mut messages, mut left) = (Vec::new(), asked.body_bytes.saturating_sub(150));
        while left > MESSAGE_BYTES {
            let role = if messages.len() % 2 == 0 { "user" } else { "assistant" };
            messages
                .push(format!("{{\"role\":\"{role}\",\"content\":\"{}\"}}", code.repeat(MESSAGE_BYTES / code.len())));
            left = left.saturating_sub(messages[messages.len() - 1].len() + 1);
        }
        messages.push(format!(
            "{{\"role\":\"user\",\"content\":\"{}{}\"}}",
            code.repeat(left / code.len()),
            "0".repeat(DIGITS)
        ));
        let body = format!("{{\"model\":\"{}\",\"stream\":true,\"messages\":[{}]}}", asked.model, messages.join(","));
        let session = if asked.sessions { format!("/s/c{n}") } else { String::new() };
        let head = format!(
            "POST {session}{} HTTP/1.1\r\nHost: bench\r\nContent-Type: application/json\r\nContent-Length: {}\r\n\r\n",
            asked.path,
            body.len()
        );
        let bytes = (head + &body).into_bytes();
        let number_at = bytes.len() - DIGITS - "\"}]}".len();
        Self { bytes, number_at }
    }

    /// Gives it its number.
    fn number(&mut self, number: u64) {
        self.bytes[self.number_at..self.number_at + DIGITS].copy_from_slice(format!("{number:0DIGITS$}").as_bytes());
    }
}

/// One stream: microseconds to the first byte and to the last. What is no 200 is an error, and so is one of fewer than `events`
/// events.
async fn stream(io: &mut TcpStream, request: &[u8], buffer: &mut [u8], events: usize) -> std::io::Result<(u64, u64)> {
    let wrong = |what: String| std::io::Error::new(std::io::ErrorKind::InvalidData, what);
    let begin = Instant::now();
    io.write_all(request).await?;
    let mut answer: Vec<u8> = Vec::with_capacity(8 << 10);
    let mut first = None;
    loop {
        let n = io.read(buffer).await?;
        if n == 0 {
            return Err(std::io::ErrorKind::UnexpectedEof.into());
        }
        let first = *first.get_or_insert_with(|| begin.elapsed());
        answer.extend_from_slice(&buffer[..n]);
        if answer.len() >= 12 && !answer.starts_with(b"HTTP/1.1 200") {
            return Err(wrong(format!("answered: {}", String::from_utf8_lossy(&answer[..12]))));
        }
        if answer.ends_with(b"\r\n0\r\n\r\n") {
            let last = begin.elapsed();
            // After the clock was read.
            let seen = answer.windows(6).filter(|w| w == b"data: ").count();
            let micros = |d: Duration| d.as_micros() as u64;
            return if seen >= events {
                Ok((micros(first), micros(last)))
            } else {
                Err(wrong(format!("{seen} events")))
            };
        }
    }
}

/// Chunks that a model named `...-n20` sends, and no fewer events than those.
fn events_of(model: &str) -> usize {
    model.rsplit("-n").next().and_then(|n| n.parse().ok()).unwrap_or(1)
}

fn percentiles(name: &str, mut all: Vec<u64>) -> String {
    all.sort_unstable();
    let at = |p: usize| all.get((all.len() * p).div_ceil(100).saturating_sub(1)).copied().unwrap_or(0);
    format!("\"{name}_p50_us\":{},\"{name}_p90_us\":{},\"{name}_p99_us\":{}", at(50), at(90), at(99))
}

async fn hold(asked: &Asked) {
    let mut held = Vec::new();
    let mut buffer = [0; 4096];
    for n in 0..asked.hold {
        let mut io = match TcpStream::connect(&asked.to).await {
            Ok(io) => io,
            Err(error) => {
                eprintln!("{n} streams held, then: {error}");
                break;
            }
        };
        io.write_all(&Request::new(asked, n).bytes).await.expect("the request can be written");
        held.push(io);
    }
    // Until each has begun to answer.
    let mut begun = 0;
    for io in &mut held {
        begun += usize::from(io.read(&mut buffer).await.is_ok_and(|n| n > 0));
    }
    println!("{{\"held\":{begun}}}");
    let mut line = String::new();
    // Held until standard input ends.
    let _ = std::io::stdin().read_line(&mut line);
}

#[tokio::main(flavor = "current_thread")]
async fn main() {
    let asked = std::rc::Rc::new(asked());
    if asked.hold > 0 {
        return hold(&asked).await;
    }
    let local = tokio::task::LocalSet::new();
    let end = Instant::now() + Duration::from_secs_f64(asked.seconds);
    let tasks: Vec<_> = (0..asked.connections)
        .map(|n| {
            let asked = asked.clone();
            local.spawn_local(async move {
                let (mut firsts, mut lasts, mut errors, mut number) = (Vec::new(), Vec::new(), 0u64, 0);
                let mut buffer = vec![0; 64 << 10];
                let (mut request, events) = (Request::new(&asked, n), events_of(&asked.model));
                let mut io: Option<TcpStream> = None;
                if let Some(every) = asked.every {
                    // Spread over the interval, so that they do not all come at once.
                    tokio::time::sleep(every.mul_f64(n as f64 / asked.connections as f64)).await;
                }
                while Instant::now() < end {
                    let begin = Instant::now();
                    if io.is_none() {
                        let fresh = TcpStream::connect(&asked.to).await;
                        let Ok(fresh) = fresh else {
                            errors += 1;
                            tokio::time::sleep(Duration::from_millis(10)).await;
                            continue;
                        };
                        let _ = fresh.set_nodelay(true);
                        io = Some(fresh);
                    }
                    let Some(open) = io.as_mut() else { continue };
                    request.number(number);
                    number += 1;
                    match stream(open, &request.bytes, &mut buffer, events).await {
                        Ok((first, last)) => {
                            firsts.push(first);
                            lasts.push(last);
                        }
                        Err(error) => {
                            if errors == 0 {
                                eprintln!("connection {n}: {error}");
                            }
                            errors += 1;
                            io = None;
                        }
                    }
                    if let Some(rest) = asked.every.and_then(|every| every.checked_sub(begin.elapsed())) {
                        tokio::time::sleep(rest).await;
                    }
                }
                (firsts, lasts, errors)
            })
        })
        .collect();
    let (mut firsts, mut lasts, mut errors) = (Vec::new(), Vec::new(), 0);
    local
        .run_until(async {
            for task in tasks {
                let (f, l, e) = task.await.expect("a task does not panic");
                firsts.extend(f);
                lasts.extend(l);
                errors += e;
            }
        })
        .await;
    let n = lasts.len();
    println!(
        "{{\"requests\":{n},\"errors\":{errors},{},{}}}",
        percentiles("first", firsts),
        percentiles("last", lasts)
    );
}
