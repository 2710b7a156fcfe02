//! Forwarding proxies by the usual environment variables: `HTTPS_PROXY`, `HTTP_PROXY`, `ALL_PROXY`, `NO_PROXY`, in
//! upper or lower case (lower case wins, as with curl).
//!
//! Loopback addresses never go through a proxy: a lane on this machine is not what the proxy was set for.

use std::net::IpAddr;

use base64::Engine;
use url::Url;

/// A proxy that cannot be used.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{variable} is no proxy that can be used: {reason}")]
pub struct ProxyError {
    /// The variable (its value may hold a password and is not repeated).
    pub variable: String,
    /// Why.
    pub reason: String,
}

impl ProxyError {
    /// The next thing to try.
    pub fn hint(&self) -> Option<String> {
        Some("write it like http://proxy.example.com:3128, or list the lane's host in NO_PROXY".into())
    }
}

/// One forwarding proxy.
#[derive(Clone, PartialEq, Eq)]
pub(crate) struct Proxy {
    pub(crate) host: String,
    pub(crate) port: u16,
    pub(crate) tls: bool,
    pub(crate) authorization: Option<String>,
}

impl Proxy {
    pub(crate) fn shown(&self) -> String {
        format!("{}:{}", self.host, self.port)
    }
}

impl std::fmt::Debug for Proxy {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.shown())
    }
}

/// Which requests go through which proxy.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Proxies {
    http: Option<Proxy>,
    https: Option<Proxy>,
    exempt: Vec<String>,
}

impl Proxies {
    /// No proxy at all.
    pub fn none() -> Self {
        Self::default()
    }

    /// Reads the variables through `get`.
    ///
    /// # Errors
    /// [`ProxyError`] for a value that is no http(s) URL, naming the variable and not its value.
    pub fn from_env(get: impl Fn(&str) -> Option<String>) -> Result<Self, ProxyError> {
        let find = |names: &[&str]| {
            names.iter().find_map(|name| get(name).filter(|v| !v.trim().is_empty()).map(|v| ((*name).to_owned(), v)))
        };
        let read = |names: &[&str]| find(names).map(|(name, value)| parse(&name, &value)).transpose();
        // In a CGI program a request header can set HTTP_PROXY ("httpoxy"); such a process has REQUEST_METHOD.
        let plain: &[&str] = if get("REQUEST_METHOD").is_some() {
            &["http_proxy", "all_proxy", "ALL_PROXY"]
        } else {
            &["http_proxy", "HTTP_PROXY", "all_proxy", "ALL_PROXY"]
        };
        let exempt = find(&["no_proxy", "NO_PROXY"]).map(|(_, v)| v).unwrap_or_default();
        Ok(Self {
            http: read(plain)?,
            https: read(&["https_proxy", "HTTPS_PROXY", "all_proxy", "ALL_PROXY"])?,
            exempt: exempt.split([',', ' ']).map(|e| e.trim().to_ascii_lowercase()).filter(|e| !e.is_empty()).collect(),
        })
    }

    pub(crate) fn for_host(&self, host: &str, port: u16, tls: bool) -> Option<&Proxy> {
        let proxy = if tls { self.https.as_ref() } else { self.http.as_ref() }?;
        (!is_loopback(host) && !self.exempt.iter().any(|rule| matches(rule, host, port))).then_some(proxy)
    }
}

fn is_loopback(host: &str) -> bool {
    host.eq_ignore_ascii_case("localhost") || host.parse::<IpAddr>().is_ok_and(|ip| ip.is_loopback())
}

fn matches(rule: &str, host: &str, port: u16) -> bool {
    let host = host.to_ascii_lowercase();
    if rule == "*" {
        return true;
    }
    if let (Some((net, bits)), Ok(ip)) = (rule.split_once('/'), host.parse::<IpAddr>()) {
        return in_network(ip, net, bits);
    }
    let (rule, wanted) = match rule.rsplit_once(':') {
        Some((name, digits)) if !name.contains(':') && digits.parse::<u16>().is_ok() => (name, digits.parse().ok()),
        _ => (rule, None),
    };
    if wanted.is_some_and(|p: u16| p != port) {
        return false;
    }
    let name = rule.trim_start_matches("*.").trim_start_matches('.');
    host == name || host.strip_suffix(name).is_some_and(|front| front.ends_with('.') && !name.is_empty())
}

fn in_network(ip: IpAddr, net: &str, bits: &str) -> bool {
    let (Ok(net), Ok(bits)) = (net.parse::<IpAddr>(), bits.parse::<u32>()) else { return false };
    let same = |a: u128, b: u128, width: u32| bits <= width && (bits == 0 || (a ^ b) >> (width - bits) == 0);
    match (ip, net) {
        (IpAddr::V4(a), IpAddr::V4(b)) => same(u32::from(a).into(), u32::from(b).into(), 32),
        (IpAddr::V6(a), IpAddr::V6(b)) => same(a.into(), b.into(), 128),
        _ => false,
    }
}

fn parse(variable: &str, value: &str) -> Result<Proxy, ProxyError> {
    let fail = |reason: &str| ProxyError { variable: variable.to_owned(), reason: reason.to_owned() };
    let value = value.trim();
    let url = if value.contains("://") { Url::parse(value) } else { Url::parse(&format!("http://{value}")) };
    let url = url.map_err(|_| fail("not a URL"))?;
    if !matches!(url.scheme(), "http" | "https") {
        return Err(fail(&format!("the scheme `{}` is not supported", url.scheme())));
    }
    let host = url.host_str().filter(|h| !h.is_empty()).ok_or_else(|| fail("no host"))?;
    let authorization = (!url.username().is_empty()).then(|| {
        let user = decode(url.username());
        let password = decode(url.password().unwrap_or_default());
        format!("Basic {}", base64::engine::general_purpose::STANDARD.encode(format!("{user}:{password}")))
    });
    Ok(Proxy {
        host: host.trim_matches(['[', ']']).to_owned(),
        port: url.port_or_known_default().unwrap_or(3128),
        tls: url.scheme() == "https",
        authorization,
    })
}

/// Undoes percent encoding; what is no valid escape stays as it is.
fn decode(text: &str) -> String {
    let bytes = text.as_bytes();
    let mut out = Vec::with_capacity(bytes.len());
    let mut i = 0;
    while i < bytes.len() {
        let escaped = (bytes[i] == b'%').then(|| text.get(i + 1..i + 3)).flatten();
        match escaped.and_then(|hex| u8::from_str_radix(hex, 16).ok()) {
            Some(byte) => {
                out.push(byte);
                i += 3;
            }
            None => {
                out.push(bytes[i]);
                i += 1;
            }
        }
    }
    String::from_utf8_lossy(&out).into_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn proxies(pairs: &[(&str, &str)]) -> Proxies {
        let pairs: Vec<(String, String)> = pairs.iter().map(|(a, b)| ((*a).into(), (*b).into())).collect();
        Proxies::from_env(move |name| pairs.iter().find(|(n, _)| n == name).map(|(_, v)| v.clone())).unwrap()
    }

    #[test]
    fn the_scheme_chooses_the_variable_and_loopback_is_never_proxied() {
        let p = proxies(&[("HTTPS_PROXY", "http://u:p%40ss@proxy:3128"), ("http_proxy", "other:8080")]);
        let https = p.for_host("api.example.com", 443, true).unwrap();
        assert_eq!((https.host.as_str(), https.port), ("proxy", 3128));
        assert_eq!(https.authorization.as_deref(), Some("Basic dTpwQHNz"));
        assert_eq!(p.for_host("api.example.com", 80, false).unwrap().host, "other");
        for host in ["localhost", "127.0.0.1", "::1"] {
            assert_eq!(p.for_host(host, 80, false), None);
        }
    }

    #[test]
    fn no_proxy_knows_names_suffixes_ports_and_networks() {
        let p = proxies(&[("ALL_PROXY", "http://proxy:1"), ("NO_PROXY", "a.com,.b.com, 10.0.0.0/8,c.com:8080")]);
        let direct = |host: &str, port: u16| p.for_host(host, port, true).is_none();
        assert!(direct("a.com", 443) && direct("x.a.com", 443) && direct("x.b.com", 443) && direct("10.9.8.7", 443));
        assert!(direct("c.com", 8080) && !direct("c.com", 443) && !direct("nota.com", 443) && !direct("11.0.0.1", 443));
        assert!(proxies(&[("ALL_PROXY", "http://p:1"), ("NO_PROXY", "*")]).for_host("z", 1, true).is_none());
    }

    #[test]
    fn a_bad_proxy_is_named_by_its_variable_and_its_password_never_shown() {
        let error = Proxies::from_env(|n| (n == "HTTPS_PROXY").then(|| "socks5://u:s3cret@h:1".into())).unwrap_err();
        assert!(error.to_string().contains("HTTPS_PROXY") && !format!("{error:?}{error}").contains("s3cret"));
        let p = proxies(&[("HTTPS_PROXY", "http://u:s3cret@proxy:3128")]);
        assert!(!format!("{p:?}").contains("s3cret"));
    }
}
