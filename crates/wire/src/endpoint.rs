//! Where a lane's requests go: a base URL and an API become one address.

use peaklane_core::lane::Api;
use url::Url;

/// A base URL that cannot be used.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum EndpointError {
    /// Not a URL at all.
    #[error("`{base}` is no base URL: {reason}")]
    NotAUrl {
        /// What was given, credentials removed.
        base: String,
        /// What the parser said.
        reason: String,
    },
    /// A scheme other than http or https.
    #[error("`{base}` has the scheme `{scheme}`; a lane speaks http or https")]
    Scheme {
        /// What was given, credentials removed.
        base: String,
        /// Its scheme.
        scheme: String,
    },
    /// User name or password inside the URL.
    #[error("the base URL of `{host}` holds a user name or password")]
    Credentials {
        /// Its host.
        host: String,
    },
}

impl EndpointError {
    /// The next thing to try.
    pub fn hint(&self) -> Option<String> {
        Some(match self {
            Self::NotAUrl { .. } => "write it like https://api.example.com/v1".into(),
            Self::Scheme { .. } => "write it like http://127.0.0.1:8080/v1".into(),
            Self::Credentials { .. } => {
                "keep the key in an environment variable and name that variable (--api-key-env, key_env)".into()
            }
        })
    }
}

/// One address that requests are sent to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Endpoint {
    url: Url,
    host: String,
    port: u16,
}

impl Endpoint {
    /// The address of `api` under `base`.
    ///
    /// An empty path gets `/v1`; otherwise the path is used as given, a trailing slash dropped and the query kept.
    /// For [`Api::Messages`] a base with and without `/v1` both work, because Anthropic's own clients leave it out.
    /// Nothing is sent to find out.
    ///
    /// # Errors
    /// [`EndpointError`] for what is no http(s) URL or holds credentials.
    pub fn new(base: &str, api: Api) -> Result<Self, EndpointError> {
        let mut url = parse(base)?;
        let path = url.path().trim_end_matches('/').to_owned();
        let path = if path.is_empty() || (api == Api::Messages && !ends_with_version(&path)) {
            format!("{path}/v1")
        } else {
            path
        };
        url.set_path(&format!("{path}/{}", api.path()));
        url.set_fragment(None);
        Ok(Self::of(url))
    }

    /// An address beside the inference path: `models` under the same base, for instance.
    ///
    /// # Errors
    /// As [`Endpoint::new`].
    pub fn beside(base: &str, name: &str) -> Result<Self, EndpointError> {
        let mut url = parse(base)?;
        let path = url.path().trim_end_matches('/').to_owned();
        let path = if path.is_empty() { "/v1".to_owned() } else { path };
        url.set_path(&format!("{path}/{name}"));
        Ok(Self::of(url))
    }

    /// This address and no other, such as that of a webhook: nothing is put behind its path.
    ///
    /// # Errors
    /// As [`Endpoint::new`].
    pub fn exactly(url: &str) -> Result<Self, EndpointError> {
        let mut url = parse(url)?;
        url.set_fragment(None);
        Ok(Self::of(url))
    }

    fn of(url: Url) -> Self {
        let host = url.host_str().unwrap_or_default().trim_matches(['[', ']']).to_owned();
        let port = url.port_or_known_default().unwrap_or(80);
        Self { url, host, port }
    }

    /// Follows a `Location`, absolute or relative. `None` when it is no http(s) URL or would leave https.
    pub(crate) fn redirected(&self, location: &str) -> Option<Self> {
        let next = self.url.join(location).ok()?;
        let leaves_tls = self.is_tls() && next.scheme() != "https";
        (matches!(next.scheme(), "http" | "https") && next.has_host() && !leaves_tls).then(|| Self::of(next))
    }

    /// True when both are one origin, or the same host moved from plain http to https on the usual ports.
    pub(crate) fn same_host(&self, other: &Self) -> bool {
        let upgraded = !self.is_tls() && other.is_tls() && self.port == 80 && other.port == 443;
        self.host == other.host && ((self.port == other.port && self.is_tls() == other.is_tls()) || upgraded)
    }

    /// Host name or address, without brackets.
    pub fn host(&self) -> &str {
        &self.host
    }

    /// Port.
    pub fn port(&self) -> u16 {
        self.port
    }

    /// True for https.
    pub fn is_tls(&self) -> bool {
        self.url.scheme() == "https"
    }

    /// Path and query, as in a request line.
    pub fn target(&self) -> String {
        match self.url.query() {
            Some(query) => format!("{}?{query}", self.url.path()),
            None => self.url.path().to_owned(),
        }
    }

    /// Value of the `Host` header: with the port only where it is not the scheme's usual one.
    pub fn authority(&self) -> String {
        let host = self.url.host_str().unwrap_or_default();
        match self.url.port() {
            Some(port) => format!("{host}:{port}"),
            None => host.to_owned(),
        }
    }

    /// The address without its query (which may hold a key), for messages and records.
    pub fn shown(&self) -> String {
        format!("{}://{}{}", self.url.scheme(), self.authority(), self.url.path())
    }
}

fn parse(base: &str) -> Result<Url, EndpointError> {
    let url = Url::parse(base.trim()).map_err(|e| EndpointError::NotAUrl {
        // What stands before an `@` may be a password; a query may hold a key.
        base: base.split('?').next().unwrap_or_default().rsplit('@').next().unwrap_or_default().to_owned(),
        reason: e.to_string(),
    })?;
    if !matches!(url.scheme(), "http" | "https") || url.host_str().is_none_or(str::is_empty) {
        return Err(EndpointError::Scheme {
            base: url.as_str().split('?').next().unwrap_or_default().rsplit('@').next().unwrap_or_default().to_owned(),
            scheme: url.scheme().to_owned(),
        });
    }
    if !url.username().is_empty() || url.password().is_some() {
        return Err(EndpointError::Credentials { host: url.host_str().unwrap_or_default().to_owned() });
    }
    Ok(url)
}

/// Does the path end with an API version (`/v1`, `/v1beta`)?
fn ends_with_version(path: &str) -> bool {
    let last = path.rsplit('/').next().unwrap_or_default();
    last.strip_prefix('v').and_then(|rest| rest.chars().next()).is_some_and(|c| c.is_ascii_digit())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_exact_address_keeps_path_and_query_as_they_are() {
        let hook = Endpoint::exactly("https://hooks.example/T0/B1?token=x#part").unwrap();
        assert_eq!((hook.target().as_str(), hook.authority().as_str()), ("/T0/B1?token=x", "hooks.example"));
        assert!(Endpoint::exactly("ftp://hooks.example").is_err());
    }

    fn shown(base: &str, api: Api) -> String {
        Endpoint::new(base, api).unwrap().shown()
    }

    #[test]
    fn an_empty_path_gets_v1_and_any_other_is_used_as_given() {
        assert_eq!(shown("http://h:1", Api::Chat), "http://h:1/v1/chat/completions");
        assert_eq!(shown("http://h:1/", Api::Chat), "http://h:1/v1/chat/completions");
        assert_eq!(shown("http://h:1/api/", Api::Chat), "http://h:1/api/chat/completions");
        assert_eq!(shown("http://h:1/v1/v1", Api::Responses), "http://h:1/v1/v1/responses");
    }

    #[test]
    fn messages_work_with_and_without_the_version() {
        assert_eq!(shown("http://h", Api::Messages), "http://h/v1/messages");
        assert_eq!(shown("http://h/v1/", Api::Messages), "http://h/v1/messages");
        assert_eq!(shown("http://h/anthropic", Api::Messages), "http://h/anthropic/v1/messages");
    }

    #[test]
    fn the_query_is_sent_but_never_shown() {
        let endpoint = Endpoint::new("https://h/v1?api-version=2&key=s3cret", Api::Chat).unwrap();
        assert_eq!(endpoint.target(), "/v1/chat/completions?api-version=2&key=s3cret");
        assert!(!endpoint.shown().contains("s3cret"));
        assert_eq!(endpoint.port(), 443);
    }

    #[test]
    fn a_password_in_the_url_is_refused_without_repeating_it() {
        for base in ["http://user:s3cret@h/v1", "http//user:s3cret@h", "ftp://user:s3cret@h/"] {
            let error = Endpoint::new(base, Api::Chat).unwrap_err();
            assert!(!format!("{error} {error:?} {:?}", error.hint()).contains("s3cret"), "{error:?}");
        }
    }

    #[test]
    fn an_ipv6_address_is_dialled_without_its_brackets() {
        let endpoint = Endpoint::new("http://[::1]:8080/v1", Api::Chat).unwrap();
        assert_eq!((endpoint.host(), endpoint.authority().as_str()), ("::1", "[::1]:8080"));
    }

    #[test]
    fn a_redirect_may_not_leave_tls() {
        let endpoint = Endpoint::new("https://h/v1", Api::Chat).unwrap();
        assert!(endpoint.redirected("http://h/v1").is_none());
        assert_eq!(endpoint.redirected("/elsewhere").unwrap().shown(), "https://h/elsewhere");
    }
}
