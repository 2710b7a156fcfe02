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

fn request(asked: &Asked, n: usize) -> Vec<u8> {
    let code = "    if let Some(value) = table.get(&key) { return Ok(value.clone()); }\\n";
    let empty = format!("{{\"model\":\"{}\",\"stream\":true,\"messages\":[{{\"role\":\"user\",\"content\":\"\"}}]}}", asked.model);
    let text: String = code.chars().cycle().take(asked.body_bytes.saturating_sub(empty.len())).collect();
    // An escape that was cut would break the JSON.
    let text = text.trim_end_matches('\\');
    let body = empty.replace("\"content\":\"\"", &format!("\"content\":\"{text}\""));
    let session = if asked.sessions { format!("/s/c{n}") } else { String::new() };
    format!(
        "POST {session}{} HTTP/1.1\r\nHost: bench\r\nContent-Type: application/json\r\nContent-Length: {}\r\n\r\n{body}",
        asked.path,
        body.len()
    )
    .into_bytes()
}

/// One stream: microseconds to the first byte and to the last.
async fn stream(io: &mut TcpStream, request: &[u8], buffer: &mut [u8]) -> std::io::Result<(u64, u64)> {
    let begin = Instant::now();
    io.write_all(request).await?;
    let mut tail = Vec::new();
    let mut first = None;
    loop {
        let n = io.read(buffer).await?;
        if n == 0 {
            return Err(std::io::ErrorKind::UnexpectedEof.into());
        }
        first.get_or_insert_with(|| begin.elapsed());
        tail.extend_from_slice(&buffer[..n]);
        if tail.ends_with(b"\r\n0\r\n\r\n") {
            let status_ok = tail.starts_with(b"HTTP/1.1 200") || tail.len() <= 8;
            let micros = |d: Duration| d.as_micros() as u64;
            return if status_ok || first.is_some() { Ok((micros(first.unwrap_or_default()), micros(begin.elapsed()))) } else { Err(std::io::ErrorKind::InvalidData.into()) };
        }
        let keep = tail.len().saturating_sub(8);
        tail.drain(..keep);
    }
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
        io.write_all(&request(asked, n)).await.expect("the request can be written");
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
                let (mut firsts, mut lasts, mut errors) = (Vec::new(), Vec::new(), 0u64);
                let mut buffer = vec![0; 64 << 10];
                let request = request(&asked, n);
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
                    match stream(open, &request, &mut buffer).await {
                        Ok((first, last)) => {
                            firsts.push(first);
                            lasts.push(last);
                        }
                        Err(_) => {
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
    println!("{{\"requests\":{n},\"errors\":{errors},{},{}}}", percentiles("first", firsts), percentiles("last", lasts));
}
