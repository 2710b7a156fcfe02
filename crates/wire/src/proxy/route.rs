//! Where a request goes: session and lane in front of its path, the path at the upstream, what is spoken there.

use peaklane_core::lane::Api;

/// Longest name of a session, bytes.
const MAX_SESSION_BYTES: usize = 80;

/// What a request's path says.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Route<'a> {
    /// `/s/<session>/...`
    pub(crate) session: Option<&'a str>,
    /// `/lane/<name>/...`
    pub(crate) lane: Option<&'a str>,
    /// The rest, with its query; begins with a slash.
    pub(crate) target: &'a str,
}

/// Takes the proxy's own parts off the front of a request target, in either order.
///
/// # Errors
/// A session name that is empty, too long, or has other characters than letters, digits and `-_.~`.
pub(crate) fn route(target: &str) -> Result<Route<'_>, String> {
    let mut route = Route { session: None, lane: None, target };
    loop {
        if route.session.is_none()
            && let Some(rest) = route.target.strip_prefix("/s/")
        {
            let (name, rest) = cut(rest);
            check_session(name)?;
            (route.session, route.target) = (Some(name), rest);
        } else if route.lane.is_none()
            && let Some(rest) = route.target.strip_prefix("/lane/")
        {
            let (name, rest) = cut(rest);
            (route.lane, route.target) = (Some(name), rest);
        } else {
            return Ok(route);
        }
    }
}

/// The first part of a path and what follows it, which begins with a slash or a question mark or is `/`.
fn cut(rest: &str) -> (&str, &str) {
    match rest.find(['/', '?']) {
        Some(at) => (&rest[..at], &rest[at..]),
        None => (rest, "/"),
    }
}

/// Can this be the name of a session? It stands in an address, so it needs no escapes.
///
/// # Errors
/// In words, what is wrong with it.
pub fn check_session(name: &str) -> Result<(), String> {
    if name.is_empty() {
        return Err("the session in the address is empty: write /s/<session>/v1/...".into());
    }
    if name.len() > MAX_SESSION_BYTES {
        return Err(format!("a session's name has at most {MAX_SESSION_BYTES} characters"));
    }
    if name.bytes().all(|b| b == b'.') {
        // A client may take it for a step up before it sends it.
        return Err("a session's name needs a letter or a digit".into());
    }
    if !name.bytes().all(|b| b.is_ascii_alphanumeric() || b"-_.~".contains(&b)) {
        return Err("a session's name has letters, digits and - _ . ~ only".into());
    }
    Ok(())
}

/// The target at an upstream whose address has the path `base`.
///
/// A base that ends in a version (`/v1`) takes the place of the version in the request, so that both ways of writing a
/// base URL work; any other base stands in front of the whole path.
pub(crate) fn at_upstream(base: &str, target: &str) -> String {
    let base = base.trim_end_matches('/');
    let rest = if ends_with_version(base) { without_version(target) } else { target };
    if rest.starts_with('/') || rest.starts_with('?') { format!("{base}{rest}") } else { format!("{base}/{rest}") }
}

fn is_version(part: &str) -> bool {
    part.strip_prefix('v').and_then(|rest| rest.chars().next()).is_some_and(|c| c.is_ascii_digit())
}

fn ends_with_version(base: &str) -> bool {
    is_version(base.rsplit('/').next().unwrap_or_default())
}

fn without_version(target: &str) -> &str {
    let Some(rest) = target.strip_prefix('/') else { return target };
    let (first, rest) = cut(rest);
    if is_version(first) { rest } else { target }
}

/// What is spoken at a path (its query aside); `None` for what is no inference.
pub(crate) fn api_of(target: &str) -> Option<Api> {
    let path = target.split('?').next().unwrap_or_default().trim_end_matches('/');
    // `chat/completions` ends in `completions` too, so it is asked for first: the order of `ALL`.
    Api::ALL.into_iter().find(|api| path.strip_suffix(api.path()).is_some_and(|before| before.ends_with('/')))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn session_and_lane_stand_in_front_in_either_order() {
        let both = Route { session: Some("run-1"), lane: Some("a"), target: "/v1/messages?beta=1" };
        assert_eq!(route("/s/run-1/lane/a/v1/messages?beta=1"), Ok(both.clone()));
        assert_eq!(route("/lane/a/s/run-1/v1/messages?beta=1"), Ok(both));
        assert_eq!(route("/v1/models"), Ok(Route { session: None, lane: None, target: "/v1/models" }));
        assert_eq!(route("/s/x").map(|r| r.target), Ok("/"));
        assert!(route("/s//v1/models").is_err());
        assert!(route("/s/a%2fb/v1/models").is_err());
        assert!(route("/s/../v1/models").is_err());
    }

    #[test]
    fn a_base_with_a_version_takes_the_place_of_the_requests_own() {
        assert_eq!(at_upstream("", "/v1/models"), "/v1/models");
        assert_eq!(at_upstream("/", "/metrics"), "/metrics");
        assert_eq!(at_upstream("/case/x/v1", "/v1/chat/completions?a=b"), "/case/x/v1/chat/completions?a=b");
        assert_eq!(at_upstream("/case/x/v1", "/chat/completions"), "/case/x/v1/chat/completions");
        assert_eq!(at_upstream("/anthropic", "/v1/messages"), "/anthropic/v1/messages");
        assert_eq!(at_upstream("/v1", "/v1"), "/v1/");
    }

    #[test]
    fn only_paths_of_inference_have_an_api() {
        assert_eq!(api_of("/v1/chat/completions?x=1"), Some(Api::Chat));
        assert_eq!(api_of("/openai/deployments/d/completions"), Some(Api::Completions));
        assert_eq!(api_of("/v1/messages/"), Some(Api::Messages));
        assert_eq!(api_of("/v1/responses"), Some(Api::Responses));
        assert_eq!(api_of("/v1/messages/count_tokens"), None);
        assert_eq!(api_of("/v1/models"), None);
        assert_eq!(api_of("/v1/mycompletions"), None);
    }
}
