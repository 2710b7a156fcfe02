//! The rules of one lane: a usable address, a key that does not stand in the file, one price.

use url::Url;

use super::check::Found;
use super::check_price;
use super::error::KeyPath;
use super::lane::Lane;

const MAX_HEADERS: usize = 32;
const MAX_LIMIT: u64 = 1_000_000_000_000;
/// More than a dozen people's whole time.
const MAX_OPS_HOURS: f64 = 10_000.0;

/// Header names that the client sets itself; a second value would break the request.
const OWN_HEADERS: [&str; 7] =
    ["host", "content-length", "content-type", "transfer-encoding", "connection", "accept-encoding", "upgrade"];

/// Keys of the body that have a place of their own in the configuration, and that place.
const OWN_BODY: [(&str, &str); 12] = [
    ("model", "`model` of the lane"),
    ("messages", "`prompt` of the task"),
    ("prompt", "`prompt` of the task"),
    ("input", "`prompt` of the task"),
    ("system", "`system` of the task"),
    ("instructions", "`system` of the task"),
    ("stream", "the command"),
    ("temperature", "`temperature` of the task"),
    ("seed", "`seed` of [burst]"),
    ("max_tokens", "`max_tokens` of the task"),
    ("max_completion_tokens", "`max_tokens` of the task and `max_tokens_field` of the lane"),
    ("max_output_tokens", "`max_tokens` of the task"),
];

pub(super) fn check(lane: &Lane, index: usize, found: &mut Found) {
    let key = |name: &str| vec!["lane".into(), index.into(), name.into()];
    address(&lane.base_url, "base_url", key("base_url"), found);
    if lane.model.trim().is_empty() {
        found.key(key("model"), "`model` is blank", "name the model as the lane spells it");
    }
    if let Some(price) = &lane.price {
        check_price::check(price, &key("price"), found);
    }
    if lane.price.is_some() && lane.rent_usd_per_hour.is_some() {
        let what = format!("lane `{}` has both `price` and `rent_usd_per_hour`", lane.name);
        found.key(key("rent_usd_per_hour"), what, "a lane is paid by token or by time: leave one out");
    }
    keys(lane, index, found);
    headers(lane, index, found);
    for name in lane.extra_body.keys() {
        if let Some((_, place)) = OWN_BODY.iter().find(|(own, _)| own == name) {
            let path = [key("extra_body"), vec![name.as_str().into()]].concat();
            found.key(path, format!("`extra_body` sets `{name}`"), format!("leave it to {place}"));
        }
    }
    let limits = [
        ("requests_per_minute", lane.limits.requests_per_minute),
        ("requests_per_day", lane.limits.requests_per_day),
        ("tokens_per_minute", lane.limits.tokens_per_minute),
        ("tokens_per_day", lane.limits.tokens_per_day),
        ("concurrency", lane.limits.concurrency),
    ];
    for (name, limit) in limits {
        if let Some(limit) = limit {
            found.range([key("limits"), vec![name.into()]].concat(), name, limit, 1..=MAX_LIMIT);
        }
    }
    if let Some(terms) = &lane.terms_url {
        address(terms, "terms_url", key("terms_url"), found);
    }
    if let Some(proxy) = &lane.proxy {
        address(proxy, "proxy", key("proxy"), found);
        if Url::parse(proxy).is_ok_and(|url| url.scheme() != "http") {
            found.key(key("proxy"), "`proxy` is no http proxy", "write http://HOST:PORT");
        }
    }
    if let Some(hours) = lane.ops_hours_per_month.filter(|hours| !(0.0..=MAX_OPS_HOURS).contains(hours)) {
        let next = format!("write a number from 0 to {MAX_OPS_HOURS}");
        found.key(key("ops_hours_per_month"), format!("`ops_hours_per_month` is {hours}"), next);
    }
    for (name, text) in [
        ("owner", &lane.owner),
        ("region", &lane.region),
        ("affiliation", &lane.affiliation),
        ("ca_file", &lane.ca_file),
        ("key_file", &lane.key_file),
    ] {
        found.blank(key(name), name, text.as_ref());
    }
}

/// An address must be http or https, name a host, and carry no credentials. The address is not repeated: whatever is
/// wrong with it may be a key.
pub(super) fn address(text: &str, name: &str, path: KeyPath, found: &mut Found) {
    let example = "write it like https://lane-a.example/v1";
    match Url::parse(text) {
        Err(error) => found.key(path, format!("`{name}` is no address ({error})"), example),
        Ok(url) if !matches!(url.scheme(), "http" | "https") => {
            found.key(path, format!("`{name}` is neither http nor https"), example);
        }
        Ok(url) if !url.username().is_empty() || url.password().is_some() => {
            let next = "take them out: a key comes from `key_env` or `key_file`, a proxy's from HTTPS_PROXY";
            found.key(path, format!("`{name}` carries credentials"), next);
        }
        Ok(url) if url.fragment().is_some() => {
            found.key(path, format!("`{name}` has a `#` part"), "leave it out: it is never sent")
        }
        Ok(_) => {}
    }
}

fn keys(lane: &Lane, index: usize, found: &mut Found) {
    let key = |name: &str| vec!["lane".into(), index.into(), name.into()];
    if lane.key_env.is_some() && lane.key_file.is_some() {
        let what = format!("lane `{}` has both `key_env` and `key_file`", lane.name);
        found.key(key("key_file"), what, "leave one out");
    }
    // neither text is repeated: it may be the key itself
    if lane.key_file.as_ref().is_some_and(|path| looks_like_a_key(path)) {
        let next = "write the PATH of a file that holds it, and take the key out of the configuration";
        found.key(key("key_file"), "`key_file` looks like the key itself", next);
    }
    if lane.key_env.as_ref().is_some_and(|variable| !may_name_a_variable(variable)) {
        let next = "write the NAME of an environment variable that holds the key (letters, digits and _), never the key itself";
        found.key(key("key_env"), "`key_env` is no name of a variable, or looks like the key itself", next);
    }
}

/// True for the name of an environment variable as a shell accepts it; false also for what looks like a key in its place.
/// Ask before a name is repeated in a message.
pub fn may_name_a_variable(text: &str) -> bool {
    text.len() <= 128
        && text.starts_with(|c: char| c.is_ascii_alphabetic() || c == '_')
        && text.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'_')
        && !looks_like_a_key(text)
}

/// Begins as keys do, or is long with small letters and digits and nothing of a path: names are hardly ever so, keys
/// nearly always are.
fn looks_like_a_key(text: &str) -> bool {
    let has = |test: fn(&u8) -> bool| text.bytes().any(|b| test(&b));
    let is_long_mix = text.len() >= 20 && has(u8::is_ascii_lowercase) && has(u8::is_ascii_digit);
    text.starts_with("sk-") || is_long_mix && !text.contains(['/', '.'])
}

fn headers(lane: &Lane, index: usize, found: &mut Found) {
    let key = |name: &str| vec!["lane".into(), index.into(), "headers".into(), name.into()];
    if lane.headers.len() > MAX_HEADERS {
        let what = format!("lane `{}` has {} headers", lane.name, lane.headers.len());
        found.key(vec!["lane".into(), index.into(), "headers".into()], what, format!("name at most {MAX_HEADERS}"));
    }
    for (name, value) in &lane.headers {
        let lower = name.to_ascii_lowercase();
        let is_token =
            !name.is_empty() && name.bytes().all(|b| b.is_ascii_alphanumeric() || b"!#$%&'*+-.^_`|~".contains(&b));
        if !is_token {
            found.key(key(name), format!("{name:?} is no name of a header"), "use letters, digits and `-`");
        } else if carries_a_secret(&lower, value) {
            let next = "headers in the file are for what is no secret: the key comes from `key_env` or `key_file`";
            found.key(key(name), format!("header `{name}` looks like a key"), next);
        } else if OWN_HEADERS.contains(&lower.as_str()) {
            found.key(key(name), format!("header `{name}` is set by the client"), "leave it out");
        } else if !value.bytes().all(|b| (b' '..=b'~').contains(&b)) {
            found.key(
                key(name),
                format!("header `{name}` has characters that no header may have"),
                "use printable ASCII",
            );
        }
    }
}

fn carries_a_secret(lower_name: &str, value: &str) -> bool {
    const NAMES: [&str; 5] = ["authorization", "api-key", "apikey", "cookie", "secret"];
    const VALUES: [&str; 3] = ["bearer ", "basic ", "sk-"];
    let value = value.trim_start().to_ascii_lowercase();
    NAMES.iter().any(|secret| lower_name.contains(secret))
        || lower_name.ends_with("token")
        || VALUES.iter().any(|secret| value.starts_with(secret))
}
