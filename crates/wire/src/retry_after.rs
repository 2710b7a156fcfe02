//! How long a server asks to wait, in all the forms that servers use.
//!
//! In order of precedence: `retry-after-ms`; `Retry-After` in seconds or as an HTTP date (RFC 9110, section 10.2.3);
//! Google's `RetryInfo.retryDelay` in the body; the reset time of an *exhausted* budget in `x-ratelimit-*` and
//! `anthropic-ratelimit-*` headers; "try again in 7.66s" in the message. What cannot be read is `None` (the own
//! back-off decides), never a guess; a moment in the past is 0.

use serde_json::Value;

use crate::headers::Headers;

/// Longest wait that is believed, milliseconds: 31 days, the longest quota period. Beyond it lies a wrong unit.
const LONGEST_MS: f64 = 31.0 * 86_400_000.0;

/// What the server asked for, milliseconds. `now_unix_ms` is our wall clock; a `Date` header takes its place, because
/// an HTTP date is told in the server's time.
pub fn retry_after_ms(headers: &Headers, body: Option<&Value>, now_unix_ms: i64) -> Option<u64> {
    let now = headers.get("date").and_then(http_date_ms).unwrap_or(now_unix_ms);
    if let Some(ms) = headers.get("retry-after-ms").and_then(number).and_then(bounded) {
        return Some(ms);
    }
    if let Some(text) = headers.get("retry-after") {
        // A malformed value says nothing; the weaker forms below would be a guess about what it meant.
        return match number(text) {
            Some(seconds) => bounded(seconds * 1e3),
            None => http_date_ms(text).map(|at| until(at, now)),
        };
    }
    body.and_then(retry_info).or_else(|| exhausted_budget(headers, now)).or_else(|| {
        let message = body.and_then(crate::failure::message_of)?;
        try_again_in(&message)
    })
}

fn number(text: &str) -> Option<f64> {
    // Only digits and a point: "1e9", "inf", "-3" and "+3" are no delays.
    let plain = !text.is_empty() && text.bytes().all(|b| b.is_ascii_digit() || b == b'.');
    if plain { text.parse().ok() } else { None }
}

fn bounded(ms: f64) -> Option<u64> {
    (ms.is_finite() && (0.0..=LONGEST_MS).contains(&ms)).then(|| ms.round() as u64)
}

/// From `now` to a moment; 0 for one in the past. Not bounded: a date has no unit to be wrong in.
fn until(at_ms: i64, now_ms: i64) -> u64 {
    u64::try_from(at_ms.saturating_sub(now_ms)).unwrap_or(0)
}

fn http_date_ms(text: &str) -> Option<i64> {
    let at = httpdate::parse_http_date(text).ok()?;
    let since = at.duration_since(std::time::UNIX_EPOCH).ok()?;
    i64::try_from(since.as_millis()).ok()
}

/// `{"error": {"details": [{"retryDelay": "38s"}]}}`, anywhere in the body.
fn retry_info(body: &Value) -> Option<u64> {
    match body {
        Value::Object(map) => match map.get("retryDelay") {
            Some(Value::String(text)) => duration_ms(text),
            _ => map.values().find_map(retry_info),
        },
        Value::Array(items) => items.iter().find_map(retry_info),
        _ => None,
    }
}

/// The longest reset among budgets of which nothing remains.
fn exhausted_budget(headers: &Headers, now_unix_ms: i64) -> Option<u64> {
    headers
        .iter()
        .filter_map(|(name, value)| {
            // x-ratelimit-remaining-requests -> x-ratelimit-reset-requests; anthropic-ratelimit-tokens-remaining -> ...-reset
            let reset = name.contains("ratelimit").then(|| name.replace("remaining", "reset"))?;
            let exhausted = reset != name && number(value).is_some_and(|left| left <= 0.0);
            exhausted.then(|| headers.get(&reset)).flatten().and_then(|text| reset_ms(text, now_unix_ms))
        })
        .max()
}

/// A reset as duration ("1m30.5s", "250ms"), seconds, Unix time in seconds or milliseconds, or RFC 3339.
fn reset_ms(text: &str, now_unix_ms: i64) -> Option<u64> {
    if let Some(value) = number(text) {
        // Larger than a year of seconds: a point in time; larger than 10^11: in milliseconds.
        return if value > 1e11 {
            bounded((value - now_unix_ms as f64).max(0.0))
        } else if value > 3.2e7 {
            bounded((value * 1e3 - now_unix_ms as f64).max(0.0))
        } else {
            bounded(value * 1e3)
        };
    }
    duration_ms(text).or_else(|| rfc3339_ms(text).map(|at| until(at, now_unix_ms)))
}

/// "1m30.5s", "250ms", "38s", "1h2m", "2d": numbers each followed by its unit.
pub(crate) fn duration_ms(text: &str) -> Option<u64> {
    let mut rest = text.trim();
    let mut total = 0.0;
    if rest.is_empty() {
        return None;
    }
    while !rest.is_empty() {
        let digits = rest.find(|c: char| !c.is_ascii_digit() && c != '.').filter(|n| *n > 0)?;
        let value: f64 = rest[..digits].parse().ok()?;
        rest = &rest[digits..];
        let letters = rest.find(|c: char| !c.is_ascii_alphabetic()).unwrap_or(rest.len());
        total += value
            * match &rest[..letters] {
                "ms" => 1.0,
                "s" => 1e3,
                "m" => 6e4,
                "h" => 3.6e6,
                "d" => 8.64e7,
                _ => return None,
            };
        rest = rest[letters..].trim_start();
    }
    bounded(total)
}

/// `2026-11-30T16:00:20Z`, with fraction or offset. Days from the civil calendar after Howard Hinnant,
/// "chrono-Compatible Low-Level Date Algorithms".
fn rfc3339_ms(text: &str) -> Option<i64> {
    let (date, time) = text.split_once(['T', 't', ' '])?;
    let mut parts = date.split('-').map(|p| p.parse::<i64>().ok());
    let (year, month, day) = (parts.next()??, parts.next()??, parts.next()??);
    let (clock, offset_min) = match time.find(['Z', 'z', '+', '-']) {
        Some(at) if matches!(&time[at..at + 1], "Z" | "z") => (&time[..at], 0),
        Some(at) => {
            let (h, m) = time[at + 1..].split_once(':')?;
            let minutes = i64::from(h.parse::<u8>().ok()?) * 60 + i64::from(m.parse::<u8>().ok()?);
            (&time[..at], if &time[at..=at] == "-" { -minutes } else { minutes })
        }
        None => return None,
    };
    let mut hms = clock.split(':');
    let (h, m, s) =
        (hms.next()?.parse::<i64>().ok()?, hms.next()?.parse::<i64>().ok()?, hms.next()?.parse::<f64>().ok()?);
    // Four digits of year (RFC 3339, section 5.6) also keep what follows far from overflowing.
    if !(1970..=9999).contains(&year) || offset_min.abs() > 24 * 60 {
        return None;
    }
    if !(1..=12).contains(&month) || !(1..=31).contains(&day) || h > 24 || m > 59 || !(0.0..62.0).contains(&s) {
        return None;
    }
    let y = if month <= 2 { year - 1 } else { year };
    let era = y.div_euclid(400);
    let yoe = y.rem_euclid(400);
    let doy = (153 * ((month + 9) % 12) + 2) / 5 + day - 1;
    let days = era * 146_097 + yoe * 365 + yoe / 4 - yoe / 100 + doy - 719_468;
    Some(((days * 24 + h) * 60 + m - offset_min) * 60_000 + (s * 1e3).round() as i64)
}

/// "Please try again in 7.66s", "Please retry after 20 seconds".
fn try_again_in(message: &str) -> Option<u64> {
    let lower = message.to_ascii_lowercase();
    let at = ["try again in ", "retry after ", "retry in "].iter().find_map(|p| lower.find(p).map(|i| i + p.len()))?;
    let rest = &lower[at..];
    let compact: String = rest.chars().take_while(|c| c.is_ascii_alphanumeric() || *c == '.').collect();
    if let Some(ms) = duration_ms(compact.trim_end_matches('.')) {
        return Some(ms);
    }
    let mut words = rest.split_whitespace();
    let value = number(words.next()?)?;
    let unit = words.next()?.trim_end_matches(['.', ',', '!']);
    let factor = match unit.trim_end_matches('s') {
        "millisecond" => 1.0,
        "second" | "sec" => 1e3,
        "minute" | "min" => 6e4,
        "hour" => 3.6e6,
        _ => return None,
    };
    bounded(value * factor)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    /// 2026-11-30T16:00:00Z, by `date -u -d 2026-11-30T16:00:00Z +%s`.
    const NOW: i64 = 1_796_054_400_000;

    fn asked(pairs: &[(&str, &str)]) -> Option<u64> {
        let mut headers = Headers::default();
        for (name, value) in pairs {
            headers.push(name, *value);
        }
        retry_after_ms(&headers, None, NOW)
    }

    #[test]
    fn milliseconds_win_over_seconds_and_seconds_may_have_a_fraction() {
        assert_eq!(asked(&[("Retry-After", "2"), ("retry-after-ms", "1500")]), Some(1500));
        assert_eq!(asked(&[("Retry-After", "2.5")]), Some(2500));
    }

    #[test]
    fn what_is_no_delay_is_none_and_a_past_date_is_now() {
        for bad in ["-3", "soon", "", "inf", "1e9", "99999999999"] {
            assert_eq!(asked(&[("Retry-After", bad)]), None, "{bad}");
        }
        assert_eq!(asked(&[("Retry-After", "Wed, 21 Oct 2015 07:28:00 GMT")]), Some(0));
    }

    #[test]
    fn a_date_is_told_in_the_servers_time() {
        let hour_ahead = ("Date", "Mon, 30 Nov 2026 17:00:00 GMT");
        assert_eq!(asked(&[hour_ahead, ("Retry-After", "Mon, 30 Nov 2026 17:00:20 GMT")]), Some(20_000));
        assert_eq!(asked(&[("Retry-After", "Mon, 30 Nov 2026 16:00:20 GMT")]), Some(20_000));
    }

    #[test]
    fn a_reset_at_no_moment_of_this_world_tells_no_wait() {
        for bad in [
            "99999999999999999-01-01T00:00:00Z",
            "2026-11-30T16:00:12+9223372036854775807:00",
            "2026-11-30T16:00:12+99:00",
            "2026-13-30T16:00:12Z",
            "-2026-11-30T16:00:12Z",
        ] {
            let reset = ("anthropic-ratelimit-tokens-reset", bad);
            assert_eq!(asked(&[("anthropic-ratelimit-tokens-remaining", "0"), reset]), None, "{bad}");
        }
    }

    #[test]
    fn only_an_exhausted_budget_tells_a_wait() {
        let full = [("x-ratelimit-remaining-requests", "3"), ("x-ratelimit-reset-requests", "8s")];
        assert_eq!(asked(&full), None);
        let two = [
            ("x-ratelimit-remaining-requests", "0"),
            ("x-ratelimit-reset-requests", "1m30.5s"),
            ("x-ratelimit-remaining-tokens", "0"),
            ("x-ratelimit-reset-tokens", "250ms"),
        ];
        assert_eq!(asked(&two), Some(90_500));
        let anthropic = [
            ("anthropic-ratelimit-tokens-remaining", "0"),
            ("anthropic-ratelimit-tokens-reset", "2026-11-30T16:00:12Z"),
        ];
        assert_eq!(asked(&anthropic), Some(12_000));
        assert_eq!(asked(&[("x-ratelimit-remaining", "0"), ("x-ratelimit-reset", "1796054405")]), Some(5_000));
        assert_eq!(asked(&[("x-ratelimit-remaining", "0"), ("x-ratelimit-reset", "1796054405000")]), Some(5_000));
    }

    #[test]
    fn bodies_and_messages_are_read_last() {
        let none = Headers::default();
        let google = json!([{"error": {"details": [{"retryDelay": "38s"}]}}]);
        assert_eq!(retry_after_ms(&none, Some(&google), NOW), Some(38_000));
        let words = json!({"error": {"message": "Rate limit reached. Please try again in 7.66s. Visit"}});
        assert_eq!(retry_after_ms(&none, Some(&words), NOW), Some(7_660));
        let long = json!({"error": {"message": "Please retry after 20 seconds."}});
        assert_eq!(retry_after_ms(&none, Some(&long), NOW), Some(20_000));
    }

    #[test]
    fn offsets_and_leap_days_of_rfc_3339_are_understood() {
        assert_eq!(rfc3339_ms("1970-01-01T00:00:00Z"), Some(0));
        assert_eq!(rfc3339_ms("2024-02-29T12:00:00.250+02:00"), Some(1_709_200_800_250));
        assert_eq!(rfc3339_ms("2026-13-01T00:00:00Z"), None);
    }
}
