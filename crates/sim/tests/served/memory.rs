//! A raw client over an in-memory connection: sends one request, notes when each piece of the response arrives.

use std::sync::Arc;
use std::sync::Mutex;
use std::time::Duration;

use peaklane_sim::plan::{Answer, End, Finish, Piece, Plan, Reply};
use peaklane_sim::scale::Scale;
use peaklane_sim::script::{Ask, LaneScript, Ticket};
use peaklane_sim::server::{Lane, serve_connection};
use serde_json::{Value, json};
use tokio::io::{AsyncReadExt, AsyncWriteExt, DuplexStream, duplex};
use tokio::sync::watch;
use tokio::time::Instant;

/// A lane that gives everyone the same, and remembers who came.
#[derive(Clone)]
pub(crate) struct Same {
    pub(crate) plan: Plan,
    pub(crate) slots: usize,
    pub(crate) tickets: Arc<Mutex<Vec<Ticket>>>,
}

impl Same {
    pub(crate) fn new(plan: Plan) -> Self {
        Self { plan, slots: 64, tickets: Arc::default() }
    }

    pub(crate) fn lane(&self, scale: Scale) -> Arc<Lane> {
        Lane::new(self.clone(), scale)
    }
}

impl LaneScript for Same {
    fn models(&self) -> Vec<String> {
        vec!["m".to_owned()]
    }

    fn plan(&self, ask: &Ask<'_>) -> Plan {
        self.tickets.lock().unwrap().push(ask.ticket);
        self.plan.clone()
    }

    fn slots(&self) -> Option<std::num::NonZeroUsize> {
        std::num::NonZeroUsize::new(self.slots)
    }
}

pub(crate) fn ms(ms: u64) -> Duration {
    Duration::from_millis(ms)
}

/// Head at 10 ms, "one " at 100, "two " at 250, "three" at 300, terminal signal at 400.
pub(crate) fn three_pieces(end: End) -> Plan {
    let pieces = [(100, "one "), (250, "two "), (300, "three")].map(|(at, text)| Piece {
        at: ms(at),
        text: text.to_owned(),
        reasoning: false,
    });
    Plan::new(ms(10), Reply::Answer(Answer { pieces: pieces.to_vec(), finish: Finish::Stop, end_at: ms(400), end }))
}

/// What came back, with the moment of each read since the request was written.
pub(crate) struct Seen {
    pub(crate) reads: Vec<(Duration, String)>,
    /// When the connection was closed by the server.
    pub(crate) closed: Duration,
}

impl Seen {
    pub(crate) fn text(&self) -> String {
        self.reads.iter().map(|(_, text)| text.as_str()).collect()
    }

    /// When the read came that held `text`.
    pub(crate) fn at(&self, text: &str) -> Duration {
        let read = self.reads.iter().find(|(_, read)| read.contains(text));
        read.unwrap_or_else(|| panic!("`{text}` never came in {}", self.text())).0
    }

    pub(crate) fn status(&self) -> u16 {
        self.text().split(' ').nth(1).unwrap().parse().unwrap()
    }

    pub(crate) fn header(&self, name: &str) -> Option<String> {
        let text = self.text();
        let head = text.split("\r\n\r\n").next().unwrap();
        let line = head.lines().find(|line| line.to_lowercase().starts_with(&format!("{name}:")))?;
        Some(line[name.len() + 1..].trim().to_owned())
    }

    /// The body, put together from its chunks where it is chunked.
    pub(crate) fn body(&self) -> String {
        let text = self.text();
        let (head, body) = text.split_once("\r\n\r\n").unwrap();
        if !head.to_lowercase().contains("transfer-encoding: chunked") {
            return body.to_owned();
        }
        let (mut rest, mut whole) = (body, String::new());
        while let Some((size, after)) = rest.split_once("\r\n") {
            let size = usize::from_str_radix(size, 16).unwrap();
            whole += &after[..size];
            rest = &after[size + 2..];
        }
        whole
    }

    /// The data of all events but `[DONE]`.
    pub(crate) fn events(&self) -> Vec<Value> {
        let body = self.body();
        let data = body.lines().filter_map(|line| line.strip_prefix("data: ")).filter(|data| *data != "[DONE]");
        data.map(|data| serde_json::from_str(data).unwrap()).collect()
    }

    pub(crate) fn json(&self) -> Value {
        serde_json::from_str(&self.body()).unwrap()
    }
}

/// Opens a connection to the lane. The sender stops the server side.
pub(crate) fn connect(lane: &Arc<Lane>, buffer: usize) -> (DuplexStream, watch::Sender<bool>) {
    let (client, server) = duplex(buffer);
    let (stop, stopped) = watch::channel(false);
    tokio::spawn(serve_connection(Arc::clone(lane), server, Arc::default(), stopped));
    (client, stop)
}

pub(crate) fn request(path: &str, body: &Value) -> String {
    let body = body.to_string();
    format!(
        "POST {path} HTTP/1.1\r\nhost: lane\r\nconnection: close\r\ncontent-type: application/json\r\ncontent-length: {}\r\n\r\n{body}",
        body.len()
    )
}

pub(crate) fn chat(prompt: &str) -> Value {
    json!({"model": "m", "stream": true, "messages": [{"role": "user", "content": prompt}]})
}

/// Sends `body` to `path` and reads until the server closes the connection.
pub(crate) async fn ask(lane: &Arc<Lane>, path: &str, body: &Value) -> Seen {
    let (mut client, _stop) = connect(lane, 1 << 20);
    let start = Instant::now();
    client.write_all(request(path, body).as_bytes()).await.unwrap();
    let (mut reads, mut buffer) = (Vec::new(), vec![0; 1 << 16]);
    loop {
        // A broken connection ends as its client sees it: no more bytes.
        match client.read(&mut buffer).await {
            Ok(n) if n > 0 => reads.push((start.elapsed(), String::from_utf8(buffer[..n].to_vec()).unwrap())),
            _ => return Seen { reads, closed: start.elapsed() },
        }
    }
}
