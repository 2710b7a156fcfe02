//! Compares what a client reported with what a case expects: the same for the client in process and for the JSON of
//! `peaklane try`.

use crate::expected::{Expected, Text, Then};
pub use crate::seen::Seen;
use crate::seen::short;

/// How exactly times have to fit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Tolerance {
    /// Paused clock: from the expected moment to 1 ms later (the grain of a timer), plus what the case allows.
    Exact,
    /// Real sockets, README of the cases: 5 ms early to 60 ms late, plus what the case allows. To be repeated when
    /// [`crate::log::Log::worst_late_ms`] is above [`SERVER_LATE_MS`].
    Socket,
}

/// A server that was later than this, milliseconds, makes a measurement over sockets worthless: repeat it.
pub const SERVER_LATE_MS: f64 = 20.0;

impl Tolerance {
    const fn band_ms(self) -> (f64, f64) {
        match self {
            Self::Exact => (0.0, 1.0),
            Self::Socket => (5.0, 60.0),
        }
    }

    /// True when a moment fits.
    pub fn fits(self, want_ms: f64, got_ms: f64, late_ok_ms: f64) -> bool {
        let (early, late) = self.band_ms();
        // a microsecond of slack for the arithmetic of floats
        got_ms >= want_ms - early - 1e-3 && got_ms <= want_ms + late + late_ok_ms + 1e-3
    }
}

/// What differs between a case and a report; empty: right. What a case does not say is not compared.
///
/// With a class of `accept_also`, `retryable` is that class's own business and is not compared.
pub fn compare(expected: &Expected, got: &Seen, tolerance: Tolerance) -> Vec<String> {
    let mut d = Differences::default();
    let alternative = expected.accept_also.contains(&got.outcome);
    if !alternative {
        d.same("outcome", &expected.outcome, &got.outcome);
    }
    let late = expected.late_ok_ms;
    d.moment("first_byte_at_ms", expected.first_byte_at_ms, got.first_byte_at_ms, tolerance, late);
    d.moment("ttft_at_ms", expected.ttft_at_ms, got.ttft_at_ms, tolerance, late);
    d.moment("first_answer_at_ms", expected.first_answer_at_ms, got.first_answer_at_ms, tolerance, late);
    // the end of a case that allows late tokens may wait for them as well
    let end_late = expected.end_late_ok_ms.max(late);
    d.moment("end_at_ms", expected.end_at_ms, got.end_at_ms, tolerance, end_late);
    d.text("content", expected.content.as_ref(), &got.content);
    d.text("reasoning", expected.reasoning.as_ref(), &got.reasoning);
    d.said("finish_reason", expected.finish_reason.as_ref(), &got.finish_reason);
    d.said("output_chunks", expected.output_chunks.as_ref(), &got.output_chunks);
    d.said("reasoning_chunks", expected.reasoning_chunks.as_ref(), &got.reasoning_chunks);
    if let Some(usage) = &expected.usage {
        d.said("usage.prompt", usage.prompt.as_ref(), &got.usage_prompt);
        d.said("usage.completion", usage.completion.as_ref(), &got.usage_completion);
        d.said("usage.cached", usage.cached.as_ref(), &got.usage_cached);
    }
    d.said("usage_reasoning", expected.usage_reasoning.as_ref(), &got.usage_reasoning);
    d.said("usage_cache_write", expected.usage_cache_write.as_ref(), &got.usage_cache_write);
    d.said("tool_calls", expected.tool_calls.as_ref(), &got.tool_calls);
    d.said("in_band", expected.in_band.as_ref(), &got.in_band);
    d.said("streamed", expected.streamed.map(Some).as_ref(), &got.streamed);
    d.said("bursty", expected.bursty.as_ref(), &got.bursty);
    if let (Some(want), Some(redirects)) = (expected.redirects, got.redirects) {
        d.same("redirects", &want, &redirects);
    }
    if !alternative {
        d.said("retryable", expected.retryable.as_ref(), &got.retryable);
    }
    if let Some(want) = expected.retry_after_ms {
        let fits = |want: Option<f64>| match (want, got.retry_after_ms) {
            (None, None) => true,
            (Some(want), Some(got)) => (want - got).abs() <= expected.after_tolerance_ms,
            _ => false,
        };
        if !fits(want) && !expected.accept_after.iter().any(|other| fits(*other)) {
            d.same("retry_after_ms", &want, &got.retry_after_ms);
        }
    }
    d.0
}

/// The same for what a client with retries reached (`then` of a case). Its times count from the first request, so the
/// first answer can only be checked to be no earlier than it is within the last try.
pub fn compare_then(then: &Then, got: &Seen) -> Vec<String> {
    let mut d = Differences::default();
    d.said("outcome", then.outcome.as_ref(), &got.outcome);
    d.text("content", then.content.as_ref(), &got.content);
    d.said("retries", then.retries.or(then.attempt.map(|a| a.saturating_sub(1))).as_ref(), &got.retries);
    match (then.first_answer_at_ms, got.first_answer_at_ms) {
        (Some(Some(want)), Some(got)) if got + 1e-3 >= want => {}
        (None, _) | (Some(None), None) => {}
        (Some(want), got) => d.same("first_answer_at_ms (at least)", &want, &got),
    }
    d.0
}

#[derive(Default)]
struct Differences(Vec<String>);

impl Differences {
    fn same<T: PartialEq + std::fmt::Debug>(&mut self, name: &str, want: &T, got: &T) {
        if want != got {
            self.0.push(format!("{name}: want {}, got {}", short(&format!("{want:?}")), short(&format!("{got:?}"))));
        }
    }

    fn said<T: PartialEq + std::fmt::Debug>(&mut self, name: &str, want: Option<&T>, got: &T) {
        if let Some(want) = want {
            self.same(name, want, got);
        }
    }

    fn text(&mut self, name: &str, want: Option<&Text>, got: &str) {
        let Some(want) = want.map(Text::whole) else { return };
        if want != got {
            let at = want.bytes().zip(got.bytes()).take_while(|(a, b)| a == b).count();
            let lengths = (want.len(), got.len());
            let (want, got) = (short(&format!("{want:?}")), short(&format!("{got:?}")));
            self.0.push(format!("{name}: want {want}, got {got} (lengths {lengths:?}, first difference at byte {at})"));
        }
    }

    fn moment(
        &mut self,
        name: &str,
        want: Option<Option<f64>>,
        got: Option<f64>,
        tolerance: Tolerance,
        late_ok_ms: f64,
    ) {
        let Some(want) = want else { return };
        let fits = match (want, got) {
            (None, None) => true,
            (Some(want), Some(got)) => tolerance.fits(want, got, late_ok_ms),
            _ => false,
        };
        if !fits {
            let allowed = if late_ok_ms > 0.0 { format!(", {late_ok_ms} ms later is allowed") } else { String::new() };
            self.0.push(format!("{name}: want {want:?}, got {got:?} ({tolerance:?}{allowed})"));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::data;
    use serde_json::Value;

    fn expected(json: &str) -> Expected {
        serde_json::from_str(json).unwrap()
    }

    /// What a client that is right in everything would report.
    fn right_answer(e: &Expected) -> Seen {
        let usage = e.usage.unwrap_or_default();
        Seen {
            outcome: e.outcome.clone(),
            first_byte_at_ms: e.first_byte_at_ms.flatten(),
            ttft_at_ms: e.ttft_at_ms.flatten(),
            first_answer_at_ms: e.first_answer_at_ms.flatten(),
            end_at_ms: e.end_at_ms.flatten(),
            content: e.content.as_ref().map(Text::whole).unwrap_or_default(),
            reasoning: e.reasoning.as_ref().map(Text::whole).unwrap_or_default(),
            finish_reason: e.finish_reason.clone().flatten(),
            output_chunks: e.output_chunks.unwrap_or_default(),
            reasoning_chunks: e.reasoning_chunks.unwrap_or_default(),
            usage_prompt: usage.prompt.flatten(),
            usage_completion: usage.completion.flatten(),
            usage_cached: usage.cached.flatten(),
            usage_reasoning: e.usage_reasoning.flatten(),
            usage_cache_write: e.usage_cache_write.flatten(),
            tool_calls: e.tool_calls.clone().unwrap_or_default(),
            in_band: e.in_band.unwrap_or_default(),
            streamed: e.streamed,
            bursty: e.bursty.unwrap_or_default(),
            redirects: e.redirects,
            retries: 0,
            retryable: e.retryable.unwrap_or_default(),
            retry_after_ms: e.retry_after_ms.flatten(),
        }
    }

    /// One change that makes a report wrong.
    type Damage = (&'static str, fn(&mut Seen));

    #[test]
    fn every_case_accepts_the_right_answer_and_refuses_each_wrong_one() {
        let damages: [Damage; 12] = [
            ("outcome", |s| s.outcome = "nonsense".to_owned()),
            ("ttft_at_ms", |s| s.ttft_at_ms = s.ttft_at_ms.map_or(Some(1.0), |_| None)),
            ("first_answer_at_ms", |s| {
                s.first_answer_at_ms = s.first_answer_at_ms.map_or(Some(0.0), |t| Some(t + 999.0))
            }),
            ("end_at_ms", |s| s.end_at_ms = s.end_at_ms.map_or(Some(0.0), |t| Some(t - 6.0))),
            ("content", |s| s.content.push('x')),
            ("reasoning", |s| s.reasoning.push('x')),
            ("finish_reason", |s| s.finish_reason = Some("other".to_owned())),
            ("output_chunks", |s| s.output_chunks += 1),
            ("reasoning_chunks", |s| s.reasoning_chunks += 1),
            ("usage.cached", |s| s.usage_cached = s.usage_cached.map_or(Some(0), |_| None)),
            ("retryable", |s| s.retryable = !s.retryable),
            ("retry_after_ms", |s| s.retry_after_ms = Some(123_456_789.0)),
        ];
        for (name, text) in data::texts("cases/stream", "json") {
            let case = crate::case::tolerant(&name, &text).unwrap_or_else(|e| panic!("{name}: {e}"));
            let raw: Value = serde_json::from_str(&text).unwrap_or_default(); // half a surrogate pair is no `Value`
            let said = |name: &str| raw.pointer(&format!("/expected/{}", name.replace('.', "/"))).is_some();
            let right = right_answer(&case.expected);
            for tolerance in [Tolerance::Exact, Tolerance::Socket] {
                assert_eq!(compare(&case.expected, &right, tolerance), Vec::<String>::new(), "{}", case.id);
                for (name, damage) in damages.iter().filter(|d| said(d.0)) {
                    let mut wrong = right.clone();
                    damage(&mut wrong);
                    let found = compare(&case.expected, &wrong, tolerance);
                    assert!(found.len() == 1 && found[0].starts_with(name), "{}: {name}: {found:?}", case.id);
                }
            }
            for class in &case.expected.accept_also {
                let other = Seen { outcome: class.clone(), retryable: !right.retryable, ..right.clone() };
                assert_eq!(compare(&case.expected, &other, Tolerance::Exact), Vec::<String>::new(), "{}", case.id);
            }
        }
    }

    #[test]
    fn a_time_fits_from_its_moment_to_a_millisecond_later_or_over_sockets_to_60() {
        let fits = |t: Tolerance, got| t.fits(100.0, got, 0.0);
        assert!(fits(Tolerance::Exact, 100.0) && fits(Tolerance::Exact, 101.0));
        assert!(!fits(Tolerance::Exact, 99.9) && !fits(Tolerance::Exact, 101.1));
        assert!(fits(Tolerance::Socket, 95.0) && fits(Tolerance::Socket, 160.0));
        assert!(!fits(Tolerance::Socket, 94.9) && !fits(Tolerance::Socket, 160.1));
        assert!(Tolerance::Exact.fits(100.0, 146.0, 45.0) && !Tolerance::Exact.fits(100.0, 146.1, 45.0));
    }

    #[test]
    fn a_retry_date_may_be_off_by_its_whole_second_and_a_null_may_be_allowed() {
        let e = expected(r#"{"outcome":"ok","retry_after_ms":20000,"after_tolerance_ms":1500,"accept_after":[null]}"#);
        let wrong = |ms: Option<f64>| {
            !compare(&e, &Seen { retry_after_ms: ms, ..right_answer(&e) }, Tolerance::Exact).is_empty()
        };
        assert!(!wrong(Some(18_500.0)) && !wrong(Some(21_500.0)) && !wrong(None));
        assert!(wrong(Some(18_499.0)) && wrong(Some(0.0)));
    }

    #[test]
    fn what_retries_reach_is_compared_with_the_last_try() {
        let then: Then = serde_json::from_str(
            r#"{"attempt":3,"outcome":"ok","content":"loaded","first_answer_at_ms":80,"retries":2}"#,
        )
        .unwrap();
        let reached = Seen {
            outcome: "ok".to_owned(),
            content: "loaded".to_owned(),
            first_answer_at_ms: Some(1_110.0),
            retries: 2,
            ..Seen::default()
        };
        assert!(compare_then(&then, &reached).is_empty());
        let early = Seen { first_answer_at_ms: Some(79.0), ..reached.clone() };
        assert_eq!(compare_then(&then, &early).len(), 1);
        assert_eq!(compare_then(&then, &Seen { retries: 3, ..reached }).len(), 1);
    }
}
