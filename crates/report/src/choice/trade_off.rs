//! The trade-off table: one row for each signal, one column for each lane. What is not known stays blank.

use peaklane_core::choice::{Choice, ColdStart, LaneFigures};
use unicode_width::UnicodeWidthStr;

use super::usd;
use crate::decision::need_words;
use crate::palette::Palette;
use crate::table::{Align, Cell, Column, Table};
use crate::units::{ABSENT, count, counted, duration, money, one_line, quantile};
use crate::words::{list, misses};

/// Columns that the last lane should have when lanes stand side by side.
const LAST_COLUMN: usize = 24;

/// Cold starts in words.
pub struct Cold<'a>(pub &'a ColdStart);

impl std::fmt::Display for Cold<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let cold = self.0;
        match (cold.median_us, cold.slowest_us) {
            (Some(median), Some(slowest)) => {
                write!(f, "median {}, slowest {} of {}", duration(median), duration(slowest), cold.attempts)?;
            }
            _ => write!(f, "none answered of {}", cold.attempts)?,
        }
        if cold.failed > 0 && cold.median_us.is_some() { write!(f, ", {} failed", cold.failed) } else { Ok(()) }
    }
}

/// The table for a terminal: side by side where that fits, else one lane below the other.
pub(super) fn text(choice: &Choice, width: usize, palette: Palette) -> String {
    let table = trade_off(choice);
    // The last column wraps; the others do not.
    let front = choice.lanes.len().min(table.rows().first().map_or(0, Vec::len));
    let widest = |column: usize| table.rows().iter().map(|row| row[column].as_text().width()).max().unwrap_or(0);
    if (0..front).map(|column| widest(column) + 2).sum::<usize>() + LAST_COLUMN <= width {
        return table.render(width, palette);
    }
    let one = |at: usize| {
        let name = one_line(&choice.lanes[at].lane);
        let mut own = Table::new(vec![Column::shown(name, Align::Left), Column::shown("at the peak", Align::Left)]);
        for row in table.rows() {
            own.row(vec![row[0].clone(), row[at + 1].clone()]);
        }
        own.render(width, palette)
    };
    (0..choice.lanes.len()).map(one).collect::<Vec<_>>().join("\n")
}

/// Signal at the peak x lane.
pub fn trade_off(choice: &Choice) -> Table {
    let mut columns = vec![Column::shown("at the peak", Align::Left)];
    columns.extend(choice.lanes.iter().map(|lane| Column::shown(one_line(&lane.lane), Align::Left)));
    let mut table = Table::new(columns);
    let mut row = |signal: &str, tell: &dyn Fn(&LaneFigures) -> Option<String>| {
        let cells: Vec<Option<String>> = choice.lanes.iter().map(tell).collect();
        if cells.iter().any(Option::is_some) {
            let told = cells.into_iter().map(|cell| cell.map_or_else(Cell::absent, Cell::text));
            table.row([Cell::text(signal)].into_iter().chain(told).collect());
        }
    };
    row("kind", &|lane| Some(lane.kind.name().to_owned()));
    row("p90", &|lane| Some(quantile(lane.deciding_window()?.p90, choice.floor_us)).filter(|t| t != ABSENT));
    row("misses", &|lane| {
        let at = lane.deciding_window()?;
        Some(if at.misses.is_empty() { "none".to_owned() } else { misses(&at.misses) })
    });
    row("retries", &|lane| {
        let bars = [choice.thresholds.retry_below_percent];
        let at = lane.deciding_window()?.retries.rate()?;
        Some(format!("{} of the campaign, {} at the peak", lane.retries.rate()?.text(&bars), at.text(&bars)))
    });
    row("cold start", &|lane| lane.cold.as_ref().map(|cold| Cold(cold).to_string()));
    row("operations", &|lane| {
        let hours = lane.stated.ops_hours_per_month.map(|hours| format!("{hours} h a month"));
        let owner = lane.stated.owner.as_deref().map(|name| {
            let patched = lane.stated.patched.map(|day| format!(", patched {day}")).unwrap_or_default();
            format!("{}{patched}", one_line(name))
        });
        let parts: Vec<String> = hours.into_iter().chain(owner).collect();
        (!parts.is_empty()).then(|| parts.join("; "))
    });
    row("1,000 requests", &|lane| match (lane.micro_usd_per_1000, lane.stated.rent_micro_usd_per_hour) {
        (Some(micro), _) => {
            let peak = lane.deciding_window().and_then(|w| w.micro_usd_per_1000).filter(|peak| *peak != micro);
            Some(match peak {
                Some(peak) => format!("{}, {} at the peak", money(micro), money(peak)),
                None => money(micro),
            })
        }
        (None, Some(rent)) => Some(format!("rent {} an hour", money(rent))),
        (None, None) => None,
    });
    row("waiting in vain", &|lane| {
        let waited_us = lane.waited_us?;
        if waited_us == 0 {
            return Some("none".to_owned());
        }
        let each = duration(waited_us);
        Some(match lane.waiting {
            Some(month) => {
                let price = month.micro_usd.map(|usd| format!(" = {}", money(usd))).unwrap_or_default();
                format!("{each} a request, {:.1} developer hours a month{price}", month.hours)
            }
            None => format!("{each} a request"),
        })
    });
    row("terms", &|lane| {
        let url = lane.stated.terms_url.as_deref().map(one_line);
        let checked = lane.stated.terms_checked.map(|day| format!("checked {day}"));
        let parts: Vec<String> = url.into_iter().chain(checked).collect();
        (!parts.is_empty()).then(|| parts.join(", "))
    });
    row("limits stated", &|lane| Some(stated(lane)).filter(|text| !text.is_empty()));
    row("limits observed", &|lane| (lane.observed.attempts > 0).then(|| observed(lane)));
    row("needs", &|lane| {
        let all = lane.needs.iter().map(|check| {
            let answer = match check.met() {
                Some(true) => "met",
                Some(false) => "not met",
                None => "unknown",
            };
            format!("{} {}: {answer}", count(check.needed), need_words(check.need))
        });
        let all: Vec<String> = all.collect();
        (!all.is_empty()).then(|| all.join(", "))
    });
    row("affiliation", &|lane| lane.stated.affiliation.as_deref().map(one_line));
    row("expires", &|_| choice.expires.map(|day| day.to_string()));
    table
}

/// The limits that terms state, in words; empty where they state none.
pub(super) fn stated(lane: &LaneFigures) -> String {
    let limits = &lane.stated.limits;
    let all = [
        (limits.requests_per_minute, "requests a minute"),
        (limits.requests_per_day, "requests a day"),
        (limits.tokens_per_minute, "tokens a minute"),
        (limits.tokens_per_day, "tokens a day"),
        (limits.concurrency, "at once"),
    ];
    let told: Vec<String> = all.into_iter().filter_map(|(n, what)| Some(format!("{} {what}", count(n?)))).collect();
    told.join(", ")
}

/// What was met of limits, in words.
pub(super) fn observed(lane: &LaneFigures) -> String {
    let seen = &lane.observed;
    let limited = format!("{} of {} rate limited", seen.rate_limited, counted(seen.attempts.into(), "attempt"));
    let flight = seen.in_flight.map(|n| format!("{n} at once without one"));
    let headers: Vec<String> =
        seen.headers.iter().map(|(name, value)| format!("{} {}", one_line(name), one_line(value))).collect();
    let headers = (!headers.is_empty()).then(|| list(&headers));
    [Some(limited), flight, headers].into_iter().flatten().collect::<Vec<_>>().join(", ")
}

/// Dollars of a month of waiting, for programs.
pub(super) fn waiting_usd(lane: &LaneFigures) -> Option<f64> {
    lane.waiting.and_then(|w| w.micro_usd).map(usd)
}
