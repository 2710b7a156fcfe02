//! The real network: names, TCP, proxies, TLS.

use std::io::{self, Read as _};
use std::net::IpAddr;
use std::path::{Path, PathBuf};
use std::sync::{Arc, OnceLock};

use peaklane_core::record::Handshake;
use rustls::RootCertStore;
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, ServerName};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::time::Instant;

use crate::io::{Dial, DialError, Dialled, Dialling, Io};
use crate::proxy_env::{Proxies, Proxy};

/// Longest answer of a proxy to CONNECT, bytes.
const MAX_PROXY_HEAD: usize = 16 << 10;

/// Longest file of certificates that is read, bytes; bundles of whole systems have some 300 KiB.
const MAX_CA_BYTES: u64 = 4 << 20;

/// A certificate file that cannot be used.
#[derive(Debug, thiserror::Error)]
#[error("cannot read certificates from {}: {reason}", .path.display())]
pub struct CaError {
    /// The file.
    pub path: PathBuf,
    /// Why.
    pub reason: String,
}

impl CaError {
    /// The next thing to try.
    pub fn hint(&self) -> Option<String> {
        Some("give a PEM file with one or more BEGIN CERTIFICATE blocks".into())
    }
}

/// What a file of certificates holds. A device or a pipe could be read for ever.
fn read_ca_file(path: &Path) -> Result<Vec<u8>, String> {
    let about = std::fs::metadata(path).map_err(|e| e.to_string())?;
    if about.is_dir() {
        return Err("it is a folder".to_owned());
    }
    if !about.is_file() {
        return Err("it is no regular file".to_owned());
    }
    let mut pem = Vec::new();
    let file = std::fs::File::open(path).map_err(|e| e.to_string())?;
    file.take(MAX_CA_BYTES + 1).read_to_end(&mut pem).map_err(|e| e.to_string())?;
    if pem.len() as u64 > MAX_CA_BYTES {
        return Err(format!("it is longer than {MAX_CA_BYTES} bytes"));
    }
    Ok(pem)
}

/// Opens real connections.
pub struct Network {
    proxies: Proxies,
    /// Certificates of the company, beside those of the system and Mozilla's.
    extra: Vec<CertificateDer<'static>>,
    tls: OnceLock<Arc<rustls::ClientConfig>>,
    /// Offer HTTP/2 in ALPN.
    http2: bool,
}

impl std::fmt::Debug for Network {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Network").field("extra_certificates", &self.extra.len()).finish_non_exhaustive()
    }
}

impl Network {
    /// A network with the proxies of the environment and additional CA files.
    ///
    /// # Errors
    /// [`CaError`] for a file that is missing or holds no certificate.
    pub fn new(proxies: Proxies, ca_files: &[PathBuf], http2: bool) -> Result<Self, CaError> {
        let mut extra = Vec::new();
        for path in ca_files {
            let fail = |reason: String| CaError { path: path.clone(), reason };
            let pem = read_ca_file(path).map_err(&fail)?;
            let found: Vec<_> =
                CertificateDer::pem_slice_iter(&pem).collect::<Result<_, _>>().map_err(|e| fail(e.to_string()))?;
            if found.is_empty() {
                return Err(fail("it holds no certificate".into()));
            }
            for certificate in &found {
                // A certificate that no chain can end in would be left out in silence, and every lane unreachable.
                RootCertStore::empty()
                    .add(certificate.clone())
                    .map_err(|e| fail(format!("one of its certificates is none: {e}")))?;
            }
            extra.extend(found);
        }
        Ok(Self { proxies, extra, tls: OnceLock::new(), http2 })
    }

    /// The TLS configuration, made at the first https lane: reading the system's certificates takes milliseconds that
    /// a plain lane need not pay.
    fn tls(&self) -> Arc<rustls::ClientConfig> {
        Arc::clone(self.tls.get_or_init(|| {
            let mut roots = RootCertStore::empty();
            roots.extend(webpki_roots::TLS_SERVER_ROOTS.iter().cloned());
            // Certificates of the system that cannot be read are left out, as every browser does; SSL_CERT_FILE and
            // SSL_CERT_DIR are honoured in there.
            roots.add_parsable_certificates(rustls_native_certs::load_native_certs().certs);
            roots.add_parsable_certificates(self.extra.iter().cloned());
            let provider = Arc::new(rustls::crypto::ring::default_provider());
            let builder = rustls::ClientConfig::builder_with_provider(provider)
                .with_safe_default_protocol_versions()
                .expect("ring supports the default protocol versions");
            let mut config = builder.with_root_certificates(roots).with_no_client_auth();
            config.alpn_protocols =
                if self.http2 { vec![b"h2".to_vec(), b"http/1.1".to_vec()] } else { vec![b"http/1.1".to_vec()] };
            Arc::new(config)
        }))
    }

    async fn tcp(&self, host: &str, port: u16, handshake: &mut Handshake) -> Result<TcpStream, DialError> {
        let begin = Instant::now();
        let addresses: Vec<std::net::SocketAddr> = match host.parse::<IpAddr>() {
            Ok(ip) => vec![(ip, port).into()],
            Err(_) => {
                let found = tokio::net::lookup_host((host, port))
                    .await
                    .map_err(|source| DialError::Dns { host: host.to_owned(), source })?
                    .collect();
                handshake.dns_us = Some(micros(begin));
                found
            }
        };
        let begin = Instant::now();
        let mut last = io::Error::new(io::ErrorKind::NotFound, "the name has no address");
        for address in addresses {
            match TcpStream::connect(address).await {
                Ok(stream) => {
                    handshake.connect_us = Some(micros(begin));
                    // Without this the kernel holds back small writes, and the request's last byte with them.
                    let _ = stream.set_nodelay(true);
                    return Ok(stream);
                }
                Err(e) => last = e,
            }
        }
        Err(DialError::Connect { address: format!("{host}:{port}"), source: last })
    }

    async fn wrap_tls(
        &self,
        io: Box<dyn Io>,
        host: &str,
        config: Arc<rustls::ClientConfig>,
    ) -> Result<(Box<dyn Io>, bool), DialError> {
        let fail = |source: io::Error| DialError::Tls { host: host.to_owned(), source: in_words(source) };
        let name = ServerName::try_from(host.to_owned()).map_err(|e| fail(io::Error::other(e)))?;
        let connector = tokio_rustls::TlsConnector::from(config);
        let stream = connector.connect(name, io).await.map_err(fail)?;
        let http2 = stream.get_ref().1.alpn_protocol() == Some(b"h2");
        Ok((Box::new(stream), http2))
    }

    async fn through(
        &self,
        proxy: &Proxy,
        host: &str,
        port: u16,
        tls: bool,
        handshake: &mut Handshake,
    ) -> Result<Dialled, DialError> {
        let authority = if host.contains(':') { format!("[{host}]:{port}") } else { format!("{host}:{port}") };
        // Whatever fails on the way to the proxy is told as the proxy's: the lane itself was never asked.
        let failed = |error: DialError| {
            let cause = std::error::Error::source(&error).map(|c| format!(": {c}")).unwrap_or_default();
            DialError::Proxy {
                proxy: proxy.shown(),
                address: authority.clone(),
                reason: crate::failure::shorten(&format!("{error}{cause}")),
            }
        };
        let tcp = self.tcp(&proxy.host, proxy.port, handshake).await.map_err(failed)?;
        let begin = Instant::now();
        let mut io: Box<dyn Io> = Box::new(tcp);
        if proxy.tls {
            // CONNECT and absolute requests are HTTP/1.1, so nothing else is offered to the proxy.
            let mut config = (*self.tls()).clone();
            config.alpn_protocols = vec![b"http/1.1".to_vec()];
            io = self.wrap_tls(io, &proxy.host, Arc::new(config)).await.map_err(failed)?.0;
            handshake.tls_us = Some(micros(begin));
        }
        if !tls {
            return Ok(Dialled {
                io,
                handshake: *handshake,
                http2: false,
                absolute_form: true,
                proxy_authorization: proxy.authorization.clone(),
            });
        }
        connect_through(&mut io, proxy, &authority).await?;
        let (io, http2) = self.wrap_tls(io, host, self.tls()).await?;
        handshake.tls_us = Some(micros(begin));
        Ok(Dialled { io, handshake: *handshake, http2, absolute_form: false, proxy_authorization: None })
    }
}

impl Dial for Network {
    fn dial<'a>(&'a self, host: &'a str, port: u16, tls: bool) -> Dialling<'a> {
        Box::pin(async move {
            let mut handshake = Handshake::default();
            if let Some(proxy) = self.proxies.for_host(host, port, tls) {
                return self.through(proxy, host, port, tls, &mut handshake).await;
            }
            let tcp = self.tcp(host, port, &mut handshake).await?;
            let mut io: Box<dyn Io> = Box::new(tcp);
            let mut http2 = false;
            if tls {
                let begin = Instant::now();
                (io, http2) = self.wrap_tls(io, host, self.tls()).await?;
                handshake.tls_us = Some(micros(begin));
            }
            Ok(Dialled { io, handshake, http2, absolute_form: false, proxy_authorization: None })
        })
    }
}

/// `CONNECT host:port`, and the proxy's answer to it.
async fn connect_through(io: &mut Box<dyn Io>, proxy: &Proxy, authority: &str) -> Result<(), DialError> {
    let fail = |reason: String| DialError::Proxy { proxy: proxy.shown(), address: authority.to_owned(), reason };
    let authorization =
        proxy.authorization.as_ref().map(|a| format!("Proxy-Authorization: {a}\r\n")).unwrap_or_default();
    let request = format!("CONNECT {authority} HTTP/1.1\r\nHost: {authority}\r\n{authorization}\r\n");
    io.write_all(request.as_bytes()).await.map_err(|e| fail(e.to_string()))?;
    io.flush().await.map_err(|e| fail(e.to_string()))?;
    let mut head = Vec::new();
    while !head.ends_with(b"\r\n\r\n") {
        // Byte by byte: what follows the head belongs to TLS.
        let byte = io.read_u8().await.map_err(|e| fail(e.to_string()))?;
        head.push(byte);
        if head.len() > MAX_PROXY_HEAD {
            return Err(fail("an answer without end".into()));
        }
    }
    let line = String::from_utf8_lossy(&head).lines().next().unwrap_or_default().to_owned();
    let status = line.split(' ').nth(1).unwrap_or_default();
    if status.starts_with('2') {
        return Ok(());
    }
    let secret = proxy.authorization.as_deref().map(|value| value.strip_prefix("Basic ").unwrap_or(value));
    let line = secret.map_or_else(|| line.clone(), |secret| line.replace(secret, "(credentials)"));
    Err(fail(crate::failure::shorten(&line)))
}

/// Says in words what TLS says in names; its own words stay beside them.
fn in_words(error: io::Error) -> io::Error {
    use rustls::{CertificateError as Certificate, Error as Tls};
    let words = match error.get_ref().and_then(|inner| inner.downcast_ref::<Tls>()) {
        Some(Tls::InvalidCertificate(Certificate::UnknownIssuer)) => {
            "the certificate is from an issuer that is not trusted here; a company's own CA is added with `ca_file`"
        }
        Some(Tls::InvalidCertificate(Certificate::Other(_))) => "the certificate cannot be used by a server",
        Some(Tls::InvalidMessage(_)) => "what answers there speaks no TLS; plain http perhaps",
        None if error.kind() == io::ErrorKind::UnexpectedEof => "the server closed the connection during the handshake",
        _ => return error,
    };
    io::Error::new(error.kind(), format!("{words} ({error})"))
}

fn micros(since: Instant) -> u64 {
    since.elapsed().as_micros() as u64
}
