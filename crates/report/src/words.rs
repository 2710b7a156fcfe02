//! Sentences and hints: what a class of failure is called, and what to try next.

use peaklane_core::outcome::Outcome;
use peaklane_core::record::TryRecord;
use peaklane_core::summary::MissCount;

use crate::units::{duration, limit};

/// A class of miss in words: `rate limited`, `too slow`, `wrong answer`.
///
/// * `class`: its stable name. One that this version does not know is shown with spaces for underscores.
pub fn miss(class: &str) -> String {
    class.parse::<Outcome>().map_or_else(|_| class.replace('_', " "), |outcome| outcome.words().to_owned())
}

/// Misses in words: `7 rate limited, 5 too slow`; empty without any.
pub fn misses(misses: &[MissCount]) -> String {
    misses.iter().map(|m| format!("{} {}", m.count, miss(&m.class))).collect::<Vec<_>>().join(", ")
}

/// `a` or `an` before a number that is read aloud: an 84, an 8, an 11, an 18, a 72.
pub fn article(number: u64) -> &'static str {
    let mut leading = number;
    while leading >= 1000 {
        leading /= 1000;
    }
    if matches!(leading, 8 | 11 | 18 | 80..=89 | 800..=899) { "an" } else { "a" }
}

/// `a`, `a and b`, `a, b and c`.
pub fn list(items: &[String]) -> String {
    match items {
        [] => String::new(),
        [one] => one.clone(),
        [front @ .., last] => format!("{} and {last}", front.join(", ")),
    }
}

/// The next thing to try after a failure, if there is an obvious one.
///
/// `None` for a whole answer, and where only the lane can do something about it.
pub fn hint(record: &TryRecord) -> Option<String> {
    let asked = record.retry_after_ms.map(|ms| limit(ms.saturating_mul(1000)));
    let text = match record.outcome {
        Outcome::Ok | Outcome::ServerError | Outcome::Truncated | Outcome::ConnReset => return None,
        Outcome::RateLimited => match asked {
            Some(wait) => format!("the lane asks to wait {wait}; fewer attempts at once stay below its limit"),
            None => "fewer attempts at once, or a wait, stay below the lane's limit".to_owned(),
        },
        Outcome::QuotaExhausted => "the quota comes back with the next day or month, or with a paid plan".to_owned(),
        Outcome::Overloaded => match asked {
            Some(wait) => format!("the lane asks to wait {wait}"),
            None => return None,
        },
        Outcome::Loading => match asked {
            Some(wait) => {
                format!("the model is being loaded, the lane asks to wait {wait}; a warm-up attempt keeps this apart")
            }
            None => "the model is being loaded: a warm-up attempt keeps this apart".to_owned(),
        },
        Outcome::GatewayTimeout => "a gateway in between gave up first: streaming keeps it waiting for less".to_owned(),
        Outcome::Auth => "check that the variable or file that names the key holds a live one for this lane".to_owned(),
        Outcome::NotFound => "check the model's name and the base URL; most end in /v1".to_owned(),
        Outcome::BadRequest => "the message names what was refused; leave it out or change its value".to_owned(),
        Outcome::ContextLength => "a shorter prompt, fewer answer tokens, or a model with more context".to_owned(),
        Outcome::ContentFilter => "another prompt: this one is filtered by the lane".to_owned(),
        Outcome::NoAnswer if record.reasoning_chunks > 0 || !record.reasoning.is_empty() => {
            "the model only reasoned: a larger token budget leaves room for an answer".to_owned()
        }
        Outcome::NoAnswer => return None,
        Outcome::BadBody => "check that the base URL is the API's and not a web page's; most end in /v1".to_owned(),
        Outcome::Unreachable => "check host, port and proxy variables; nothing was sent".to_owned(),
        Outcome::TimeoutFirstByte => "the lane had not begun to answer; `--first-byte-timeout` waits longer".to_owned(),
        Outcome::TimeoutIdle => match record.last_token_us.or(record.last_byte_us) {
            Some(at) => format!("the answer stalled after {}; `--idle-timeout` waits longer", duration(at)),
            None => "the answer stalled; `--idle-timeout` waits longer".to_owned(),
        },
        Outcome::TimeoutTotal => "the answer had not ended; `--total-timeout` waits longer".to_owned(),
        Outcome::RedirectRefused => "use the address that the lane redirects to as the base URL".to_owned(),
    };
    Some(text)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn misses_are_told_in_words_with_their_counts() {
        let counts = [("rate_limited", 7), ("too_slow", 5), ("wrong_answer", 1), ("new_class", 1)];
        let counts = counts.map(|(class, count)| MissCount { class: class.to_owned(), count });
        assert_eq!(misses(&counts), "7 rate limited, 5 too slow, 1 wrong answer, 1 new class");
        assert_eq!(misses(&[]), "");
    }

    #[test]
    fn the_article_fits_the_number_as_it_is_read() {
        for number in [8, 11, 18, 80, 84, 89, 800, 8_000, 11_000] {
            assert_eq!(article(number), "an", "{number}");
        }
        for number in [0, 1, 7, 9, 12, 17, 72, 100, 108, 180, 1_100] {
            assert_eq!(article(number), "a", "{number}");
        }
    }

    #[test]
    fn a_list_reads_like_one() {
        let items = ["a", "b", "c"].map(str::to_owned);
        assert_eq!(
            (list(&items[..1]), list(&items[..2]), list(&items)),
            ("a".into(), "a and b".into(), "a, b and c".into())
        );
    }

    #[test]
    fn a_hint_names_the_wait_that_the_lane_asked_for() {
        let mut record = TryRecord::new(Outcome::RateLimited);
        record.retry_after_ms = Some(1_500);
        assert!(hint(&record).unwrap().contains("wait 1.5 s"));
        record.outcome = Outcome::NoAnswer;
        assert_eq!(hint(&record), None);
        record.reasoning_chunks = 3;
        assert!(hint(&record).unwrap().contains("budget"));
    }

    #[test]
    fn no_hint_is_given_for_a_whole_answer_and_each_other_one_is_a_single_line() {
        for outcome in Outcome::ALL {
            let text = hint(&TryRecord::new(outcome));
            assert!(!outcome.is_ok() || text.is_none());
            assert!(text.is_none_or(|t| !t.contains('\n') && t.len() < 120), "{outcome}");
        }
    }
}
