//! Figures as a person reads them: durations, rates, intervals, bytes, counts, money.
//!
//! Two rules hold everywhere. Rounding never carries a figure across a threshold that decides something (25.04 s does
//! not read "25.0 s" beside a floor of 25 s; 89.95 % does not read "90 %"): decimals are added until what is shown
//! compares to the threshold as the exact figure does. And a text from outside is cleaned before it reaches a terminal.

use std::num::NonZeroU32;

use peaklane_core::stats::percent_text;
use peaklane_core::summary::Quantile;

/// Shown where there is nothing to show: a figure that was not measured is a blank of this form, never 0.
pub const ABSENT: &str = "-";

/// A duration with about three figures: `640 µs`, `12.5 ms`, `850 ms`, `14.2 s`, `16 min 40 s`.
///
/// * `us`: microseconds.
pub fn duration(us: u64) -> String {
    rounded_duration(us, None)
}

/// The same, with as many decimals as keep it on the right side of `floor_us`: with a floor of 25 s, 25.04 s reads
/// `25.04 s`.
///
/// * `us`, `floor_us`: microseconds.
pub fn duration_against(us: u64, floor_us: u64) -> String {
    rounded_duration(us, Some(floor_us))
}

/// A limit or floor, exact and without idle zeros: `25 s`, `1.5 s`, `600 ms`, `90 min`.
///
/// * `us`: microseconds.
pub fn limit(us: u64) -> String {
    const MINUTE: u64 = 60_000_000;
    match us {
        0 => "0 s".to_owned(),
        _ if us > MINUTE * 2 && us.is_multiple_of(MINUTE) => format!("{} min", us / MINUTE),
        _ if us >= 1_000_000 => format!("{} s", exact_decimal(us, 1_000_000)),
        _ if us >= 1_000 => format!("{} ms", exact_decimal(us, 1_000)),
        _ => format!("{us} µs"),
    }
}

/// A quantile of latencies: `14.2 s`, or `> 60 s` where its rank falls on an attempt that never finished; `-` without
/// any.
///
/// * `floor_us`: microseconds; keeps rounding from crossing the floor.
pub fn quantile(quantile: Option<Quantile>, floor_us: u64) -> String {
    match quantile {
        None => ABSENT.to_owned(),
        Some(Quantile::Value(us)) => duration_against(us, floor_us),
        // Rounded down: "more than" stays true.
        Some(Quantile::Exceeds(us)) if us >= 1_000_000 => format!("> {}", limit(us / 100_000 * 100_000)),
        Some(Quantile::Exceeds(us)) => format!("> {}", limit(us)),
    }
}

/// A rate in percent without its counts: `96 %`, and `89.9 %` for 179 of 199 beside a threshold of 90 (see
/// [`percent_text`]). `-` for nothing out of nothing.
///
/// * `thresholds`: percent.
pub fn percent(part: u32, of: u32, thresholds: &[u32]) -> String {
    NonZeroU32::new(of).map_or_else(|| ABSENT.to_owned(), |of| percent_text(part, of, thresholds))
}

/// An interval of shares in percent: `80-99 %`. Each end gets decimals where rounding would carry it across 0, 100 or a
/// threshold; `-` without one.
///
/// * `interval`: shares, 0 to 1, low end first.
/// * `thresholds`: percent.
pub fn interval(interval: Option<(f64, f64)>, thresholds: &[u32]) -> String {
    match interval {
        Some((low, high)) => format!("{}-{} %", share(low, thresholds), share(high, thresholds)),
        None => ABSENT.to_owned(),
    }
}

/// One share in percent without the sign: `80`, `99.6`.
///
/// * `share`: 0 to 1.
/// * `thresholds`: percent.
pub fn share(share: f64, thresholds: &[u32]) -> String {
    // Whole billionths: floats of an interval are good to about 1e-12, so that this loses nothing that was known.
    let billionths = (share.clamp(0.0, 1.0) * 1e9).round() as u32;
    percent(billionths, 1_000_000_000, thresholds).trim_end_matches(" %").to_owned()
}

/// A count with its thousands apart: `12,345`.
pub fn count(n: u64) -> String {
    let digits = n.to_string();
    let mut text = String::with_capacity(digits.len() + digits.len() / 3);
    for (at, digit) in digits.chars().enumerate() {
        if at > 0 && (digits.len() - at).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    text
}

/// A count with its noun: `1 attempt`, `8 attempts`.
pub fn counted(n: u64, noun: &str) -> String {
    format!("{} {noun}{}", count(n), if n == 1 { "" } else { "s" })
}

/// A size: `812 B`, `1.5 KiB`, `28.9 GiB`.
pub fn bytes(n: u64) -> String {
    const UNITS: [&str; 5] = ["KiB", "MiB", "GiB", "TiB", "PiB"];
    if n < 1024 {
        return format!("{n} B");
    }
    let mut unit = 0;
    let mut size = 1024_u64;
    // 1023.95 KiB would round to "1024.0 KiB": it is told as 1.0 MiB.
    while unit + 1 < UNITS.len() && u128::from(n) * 20 >= u128::from(size) * (1024 * 20 - 1) {
        unit += 1;
        size *= 1024;
    }
    let tenths = (u128::from(n) * 20 + u128::from(size)) / (u128::from(size) * 2);
    format!("{} {}", decimal(tenths, 1), UNITS[unit])
}

/// Money: `$0.61`, `$1,234.50`; below a cent as many decimals as two figures need (`$0.0042`).
///
/// * `micro_usd`: millionths of a dollar.
pub fn money(micro_usd: u64) -> String {
    match micro_usd {
        0 => "$0".to_owned(),
        1..10_000 => {
            let text = format!("{micro_usd:06}");
            let first = text.find(|c| c != '0').unwrap_or(0);
            // Two figures; what follows is rounded off.
            let kept = (first + 2).min(6);
            let scale = 10_u64.pow(6 - kept as u32);
            let rounded = (micro_usd + scale / 2) / scale * scale;
            let text = format!("{rounded:06}");
            format!("$0.{}", text.trim_end_matches('0'))
        }
        _ => {
            let cents = micro_usd / 10_000 + u64::from(micro_usd % 10_000 >= 5_000);
            format!("${}.{:02}", count(cents / 100), cents % 100)
        }
    }
}

/// Milliseconds with three decimals, as JSON carries them.
///
/// * `us`: microseconds.
pub fn ms(us: u64) -> f64 {
    us as f64 / 1000.0
}

/// A text from outside on one line of a terminal: control characters (line breaks, escape sequences) become spaces, so
/// that a server's message can neither break a table nor drive a terminal.
pub fn one_line(text: &str) -> String {
    let mut line = String::with_capacity(text.len());
    for c in text.trim().chars() {
        match c {
            c if c.is_control()
                || matches!(c, '\u{2028}' | '\u{2029}' | '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}') =>
            {
                if !line.ends_with(' ') {
                    line.push(' ');
                }
            }
            c => line.push(c),
        }
    }
    line
}

/// The first `most` characters, with an ellipsis where something was cut.
pub fn shortened(text: &str, most: usize) -> String {
    match text.char_indices().nth(most) {
        None => text.to_owned(),
        Some(_) => {
            let cut: String = text.chars().take(most.saturating_sub(1)).collect();
            format!("{}…", cut.trim_end())
        }
    }
}

/// `us` over `unit`, exact, without idle zeros.
fn exact_decimal(us: u64, unit: u64) -> String {
    let decimals = unit.ilog10();
    let text = decimal(u128::from(us), decimals);
    if text.contains('.') { text.trim_end_matches('0').trim_end_matches('.').to_owned() } else { text }
}

/// `scaled` / 10^`decimals`, written out.
fn decimal(scaled: u128, decimals: u32) -> String {
    if decimals == 0 {
        return scaled.to_string();
    }
    let scale = 10_u128.pow(decimals);
    format!("{}.{:0width$}", scaled / scale, scaled % scale, width = decimals as usize)
}

/// The units that durations are told in: from here up (microseconds), unit length, decimals, name.
const DURATION_UNITS: [(u64, u64, u32, &str); 6] = [
    (0, 1, 0, "µs"),
    (1_000, 1_000, 2, "ms"),
    (10_000, 1_000, 1, "ms"),
    (100_000, 1_000, 0, "ms"),
    (1_000_000, 1_000_000, 1, "s"),
    (100_000_000, 1_000_000, 0, "s"),
];

/// From here on durations are told in minutes and seconds, microseconds.
const MINUTES_FROM: u64 = 600_000_000;

fn rounded_duration(us: u64, floor_us: Option<u64>) -> String {
    let same_side = |shown_us: u64| floor_us.is_none_or(|floor| shown_us.cmp(&floor) == us.cmp(&floor));
    if us >= MINUTES_FROM {
        let seconds = (us + 500_000) / 1_000_000;
        if same_side(seconds * 1_000_000) {
            return format!("{} min {} s", seconds / 60, seconds % 60);
        }
    }
    let mut row = DURATION_UNITS.iter().rposition(|(from, ..)| us >= *from).unwrap_or(0);
    loop {
        let (_, unit, decimals, name) = DURATION_UNITS[row];
        // A decimal more for as long as rounding crosses the floor; a microsecond is the finest there is.
        for more in decimals..=unit.ilog10() {
            let step = unit / 10_u64.pow(more);
            let shown = (us + step / 2) / step;
            if let Some((next, ..)) = DURATION_UNITS.get(row + 1)
                && more == decimals
                && shown * step >= *next
                && same_side(shown * step)
            {
                break; // 999.6 ms is told as 1.0 s
            }
            if same_side(shown * step) {
                return format!("{} {name}", decimal(u128::from(shown), more));
            }
        }
        row += 1;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn a_duration_has_about_three_figures_and_carries_into_the_next_unit() {
        for (us, text) in [
            (0, "0 µs"),
            (640, "640 µs"),
            (999, "999 µs"),
            (1_000, "1.00 ms"),
            (1_254, "1.25 ms"),
            (9_994, "9.99 ms"),
            (9_996, "10.0 ms"),
            (12_540, "12.5 ms"),
            (99_960, "100 ms"),
            (850_000, "850 ms"),
            (999_499, "999 ms"),
            (999_500, "1.0 s"),
            (1_840_000, "1.8 s"),
            (14_200_000, "14.2 s"),
            (99_949_999, "99.9 s"),
            (99_950_000, "100 s"),
            (599_000_000, "599 s"),
            (600_000_000, "10 min 0 s"),
            (1_000_000_000, "16 min 40 s"),
        ] {
            assert_eq!(duration(us), text, "{us} µs");
        }
    }

    #[test]
    fn rounding_never_carries_a_latency_across_its_floor() {
        let floor = 25_000_000;
        assert_eq!(duration_against(25_000_000, floor), "25.0 s");
        assert_eq!(duration_against(25_000_001, floor), "25.000001 s");
        assert_eq!(duration_against(25_040_000, floor), "25.04 s");
        assert_eq!(duration_against(24_960_000, floor), "24.96 s");
        assert_eq!(duration_against(24_000_000, floor), "24.0 s");
        assert_eq!(duration_against(999_600, 1_000_000), "999.6 ms");
        assert_eq!(duration_against(600_400_000, 600_000_000), "600.4 s");
    }

    #[test]
    fn a_limit_is_exact() {
        for (us, text) in [
            (0, "0 s"),
            (250, "250 µs"),
            (600_000, "600 ms"),
            (1_500_000, "1.5 s"),
            (25_000_000, "25 s"),
            (60_000_000, "60 s"),
            (120_000_000, "120 s"),
            (5_400_000_000, "90 min"),
            (25_000_001, "25.000001 s"),
        ] {
            assert_eq!(limit(us), text);
        }
    }

    #[test]
    fn a_quantile_beyond_the_last_finished_attempt_says_what_it_exceeds() {
        assert_eq!(quantile(Some(Quantile::Exceeds(60_000_000)), 25_000_000), "> 60 s");
        assert_eq!(quantile(Some(Quantile::Exceeds(25_197_342)), 25_000_000), "> 25.1 s");
        assert_eq!(quantile(Some(Quantile::Value(14_234_000)), 25_000_000), "14.2 s");
        assert_eq!(quantile(None, 25_000_000), "-");
    }

    #[test]
    fn a_rate_has_as_many_decimals_as_keep_it_on_its_side() {
        for (part, of, text) in [
            (23, 24, "96 %"),
            (22, 24, "92 %"),
            (0, 24, "0 %"),
            (24, 24, "100 %"),
            (1, 300, "0.3 %"),
            (1, 201, "0.5 %"),
            (1, 1000, "0.1 %"),
            (1, 10_000, "0.01 %"),
            (999, 1000, "99.9 %"),
            (179, 199, "89.9 %"),
            (8_996, 10_000, "89.96 %"),
            (9, 10, "90 %"),
            (9_004, 10_000, "90.04 %"),
            (0, 0, "-"),
        ] {
            assert_eq!(percent(part, of, &[90]), text, "{part} of {of}");
        }
    }

    #[test]
    fn no_decision_case_shows_a_rate_on_the_wrong_side_of_90() {
        let mut seen = 0;
        for (name, case) in peaklane_testkit::data::cases("cases/stats") {
            let Some(windows) = case["input"]["windows"].as_object() else { continue };
            for (window, counts) in windows {
                let (Some(passed), Some(n)) = (counts["passed"].as_u64(), counts["n"].as_u64()) else { continue };
                let shown: f64 = percent(passed as u32, n as u32, &[90]).trim_end_matches(" %").parse().unwrap();
                assert_eq!(shown >= 90.0, passed * 100 >= 90 * n, "{name} {window}: {passed}/{n} shown as {shown}");
                seen += 1;
            }
        }
        assert!(seen > 0, "no case has windows");
    }

    #[test]
    fn an_interval_names_both_ends_and_100_only_when_it_is_reached() {
        // Wilson 95 %, worked out by hand: 23/24, 22/24, 12/24, 24/24.
        assert_eq!(interval(Some((0.7975, 0.9926)), &[90]), "80-99 %");
        assert_eq!(interval(Some((0.7415, 0.9768)), &[90]), "74-98 %");
        assert_eq!(interval(Some((0.3143, 0.6857)), &[90]), "31-69 %");
        assert_eq!(interval(Some((0.8620, 1.0)), &[90]), "86-100 %");
        assert_eq!(interval(Some((0.8998, 0.9963)), &[90]), "89.98-99.6 %");
        assert_eq!(interval(None, &[90]), "-");
    }

    #[test]
    fn sizes_counts_and_money_carry_their_units() {
        for (n, text) in [
            (0, "0 B"),
            (1023, "1023 B"),
            (1024, "1.0 KiB"),
            (1536, "1.5 KiB"),
            (1_048_575, "1.0 MiB"),
            (31_031_138_714, "28.9 GiB"),
        ] {
            assert_eq!(bytes(n), text);
        }
        for (n, text) in [(0, "0"), (999, "999"), (1000, "1,000"), (1_234_567, "1,234,567")] {
            assert_eq!(count(n), text);
        }
        assert_eq!((counted(1, "attempt"), counted(8, "attempt")), ("1 attempt".to_owned(), "8 attempts".to_owned()));
        for (micro, text) in [
            (0, "$0"),
            (1, "$0.000001"),
            (4_249, "$0.0042"),
            (9_960, "$0.01"),
            (610_000, "$0.61"),
            (1_234_500_000, "$1,234.50"),
            (1_999_995_000, "$2,000.00"),
        ] {
            assert_eq!(money(micro), text, "{micro}");
        }
    }

    #[test]
    fn a_message_from_a_server_cannot_drive_the_terminal() {
        assert_eq!(one_line("bad\r\n\tluck \u{1b}[31mred\u{202e}"), "bad luck [31mred ");
        assert_eq!(shortened("abcdef", 4), "abc…");
        assert_eq!(shortened("abcd", 4), "abcd");
    }

    proptest! {
        #[test]
        fn every_duration_is_told_and_stays_on_its_side(us in 0_u64..4_000_000_000, floor in 1_u64..4_000_000_000) {
            let text = duration_against(us, floor);
            if let Some(seconds) = text.strip_suffix(" s").filter(|t| !t.contains("min")) {
                let shown: f64 = seconds.parse().unwrap();
                prop_assert_eq!(shown > floor as f64 / 1e6, us > floor);
            }
            prop_assert!(text.len() <= 20, "{}", text);
        }
    }
}
