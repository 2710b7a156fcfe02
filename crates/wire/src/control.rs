//! The control endpoint: one request to a place that is no lane, timed beside a burst, so that one's own network is not
//! taken for the lane.

use std::time::Duration;

use peaklane_core::burst::ControlFigures;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::time::{Instant, timeout};
use url::Url;

use crate::io::{Dial, Dialled};

/// Longest time for all of it: name, connection, TLS, request, first bytes of the answer.
pub const LIMIT: Duration = Duration::from_secs(10);

/// Longest head of an answer that is looked at for its status, bytes.
const MAX_HEAD: usize = 16 << 10;

/// One GET without key, cookie or body. Redirects are not followed: the status of the first answer is as good.
///
/// * `network`: one that offers HTTP/1.1 alone.
/// * `url`: http or https, without credentials.
///
/// Whatever fails is told in [`ControlFigures::error`], with the figures that were reached before.
pub async fn probe(network: &dyn Dial, url: &str) -> ControlFigures {
    let mut figures = ControlFigures::default();
    match timeout(LIMIT, ask(network, url, &mut figures)).await {
        Ok(Ok(())) => {}
        Ok(Err(error)) => figures.error = Some(error),
        Err(_) => figures.error = Some(format!("no answer within {} s", LIMIT.as_secs())),
    }
    figures
}

async fn ask(network: &dyn Dial, url: &str, figures: &mut ControlFigures) -> Result<(), String> {
    let url = Url::parse(url).map_err(|error| error.to_string())?;
    let host = url.host_str().ok_or("the address names no host")?;
    let tls = url.scheme() == "https";
    let port = url.port_or_known_default().ok_or("the address names no port")?;
    // An IPv6 address stands in brackets in a URL and without them everywhere else.
    let name = host.trim_start_matches('[').trim_end_matches(']');
    let begin = Instant::now();
    let dialled = network.dial(name, port, tls).await.map_err(|error| error.to_string())?;
    figures.connect_us = Some(micros(begin));
    let Dialled { mut io, absolute_form, proxy_authorization, .. } = dialled;
    let request = request(&url, host, absolute_form, proxy_authorization.as_deref());
    let failed = |error: std::io::Error| error.to_string();
    io.write_all(request.as_bytes()).await.map_err(failed)?;
    io.flush().await.map_err(failed)?;
    let sent = Instant::now();
    let mut head = Vec::new();
    while head.len() < MAX_HEAD {
        if io.read_buf(&mut head).await.map_err(failed)? == 0 {
            break;
        }
        figures.first_byte_us.get_or_insert_with(|| micros(sent));
        if let Some(status) = status(&head)? {
            figures.status = Some(status);
            return Ok(());
        }
    }
    Err("the connection ended without an answer in HTTP".to_owned())
}

fn request(url: &Url, host: &str, absolute: bool, authorization: Option<&str>) -> String {
    let query = url.query().map(|query| format!("?{query}")).unwrap_or_default();
    let port = url.port().map(|port| format!(":{port}")).unwrap_or_default();
    let authority = format!("{host}{port}");
    let target = if absolute { format!("{}://{authority}", url.scheme()) } else { String::new() };
    let authorization = authorization.map(|a| format!("proxy-authorization: {a}\r\n")).unwrap_or_default();
    format!(
        "GET {target}{}{query} HTTP/1.1\r\nhost: {authority}\r\n{authorization}user-agent: peaklane/{}\r\naccept: */*\r\n\
         connection: close\r\n\r\n",
        url.path(),
        env!("CARGO_PKG_VERSION")
    )
}

/// The status, once its line is there.
fn status(head: &[u8]) -> Result<Option<u16>, String> {
    let mut headers = [httparse::EMPTY_HEADER; 100];
    let mut response = httparse::Response::new(&mut headers);
    match response.parse(head) {
        // the status is known before all headers are
        Ok(_) => Ok(response.code),
        Err(httparse::Error::TooManyHeaders) if response.code.is_some() => Ok(response.code),
        Err(error) => Err(format!("the answer is no HTTP: {error}")),
    }
}

fn micros(since: Instant) -> u64 {
    u64::try_from(since.elapsed().as_micros()).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests {
    use std::sync::Mutex;

    use peaklane_core::record::Handshake;
    use tokio::io::duplex;

    use super::*;
    use crate::io::{DialError, Dialling};

    /// Opens a pipe after 30 ms, whose other end answers with these bytes after 70 ms; `None`: never.
    struct Fake {
        answer: Option<&'static str>,
        asked: std::sync::Arc<Mutex<String>>,
    }

    impl Dial for Fake {
        fn dial<'a>(&'a self, host: &'a str, port: u16, _: bool) -> Dialling<'a> {
            Box::pin(async move {
                tokio::time::sleep(Duration::from_millis(30)).await;
                if host == "down.example" {
                    return Err(DialError::Timeout { address: format!("{host}:{port}"), limit_ms: 1 });
                }
                let (ours, mut theirs) = duplex(64 << 10);
                let (answer, asked) = (self.answer, self.asked.clone());
                tokio::spawn(async move {
                    let mut bytes = [0; 1024];
                    let n = theirs.read(&mut bytes).await.unwrap();
                    *asked.lock().unwrap() = String::from_utf8_lossy(&bytes[..n]).into_owned();
                    match answer {
                        Some(answer) => {
                            tokio::time::sleep(Duration::from_millis(70)).await;
                            theirs.write_all(answer.as_bytes()).await.unwrap();
                        }
                        None => std::future::pending().await,
                    }
                });
                let handshake = Handshake::default();
                Ok(Dialled {
                    io: Box::new(ours),
                    handshake,
                    http2: false,
                    absolute_form: false,
                    proxy_authorization: None,
                })
            })
        }
    }

    async fn probed(answer: Option<&'static str>, url: &str) -> (ControlFigures, String) {
        let asked = std::sync::Arc::new(Mutex::default());
        let figures = probe(&Fake { answer, asked: std::sync::Arc::clone(&asked) }, url).await;
        let asked = asked.lock().unwrap().clone();
        (figures, asked)
    }

    #[tokio::test(start_paused = true)]
    async fn connection_and_first_byte_are_timed_apart_and_a_redirect_is_not_followed() {
        let answer = "HTTP/1.1 302 Found\r\nlocation: http://elsewhere.example/\r\n\r\n";
        let (figures, asked) = probed(Some(answer), "http://control.example:8080/up?x=1").await;
        let us = |us: Option<u64>| us.unwrap() / 1_000;
        assert_eq!((us(figures.connect_us), us(figures.first_byte_us), figures.status), (30, 70, Some(302)));
        assert_eq!(figures.error, None);
        assert!(asked.starts_with("GET /up?x=1 HTTP/1.1\r\nhost: control.example:8080\r\n"), "{asked}");
        assert!(!asked.to_lowercase().contains("authorization"), "{asked}");
    }

    #[tokio::test(start_paused = true)]
    async fn what_fails_is_told_with_what_was_reached_before() {
        let (silent, _) = probed(None, "http://control.example/").await;
        assert_eq!((silent.error.as_deref(), silent.first_byte_us), (Some("no answer within 10 s"), None));
        assert!(silent.connect_us.is_some());
        let (down, _) = probed(None, "http://down.example/").await;
        assert!(down.error.unwrap().contains("down.example:80") && down.connect_us.is_none());
        let (other, _) = probed(Some("SSH-2.0-x\r\n\r\n"), "http://control.example/").await;
        assert!(other.error.unwrap().contains("no HTTP"));
    }
}
