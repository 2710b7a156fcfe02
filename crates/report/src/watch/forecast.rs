//! What a campaign will cost, in a few lines before it starts.

use peaklane_core::budget::{Caps, Used};
use peaklane_core::forecast::{Forecast, LaneForecast};

use crate::notes::Note;
use crate::units::{count, counted, money, percent};

/// The lines: what it uses up, what each lane's stated quota leaves, and whether a cap would stop it.
pub fn notes(forecast: &Forecast, caps: Caps) -> Vec<Note> {
    let mut text = format!(
        "{}: {}, at most {} with all retries; about {} at most, prompts estimated by their bytes, answers by their budget",
        counted(forecast.bursts, "burst"),
        counted(forecast.requests, "request"),
        count(forecast.requests_at_most),
        counted(forecast.tokens_estimated, "token"),
    );
    if let Some(price) = forecast.micro_usd_estimated {
        text.push_str(&format!("; about {} at most", money(price)));
        if !forecast.unpriced.is_empty() {
            text.push_str(&format!(" and what {} costs, which states no price", forecast.unpriced.join(", ")));
        }
    }
    let mut notes = vec![Note::plain("cost", text)];
    notes.extend(forecast.lanes.iter().flat_map(quota));
    let most = Used {
        requests: forecast.requests_at_most,
        tokens: forecast.tokens_estimated,
        micro_usd: forecast.micro_usd_estimated.unwrap_or(0),
    };
    if let Some(exceeded) = caps.exceeded(Used::default(), most) {
        let key = if exceeded.what == "micro_usd" { "budget_usd" } else { &format!("budget_{}", exceeded.what) };
        let text =
            format!("`{key}` may stop the campaign before its end: it allows less than the most that it can use");
        notes.push(Note::warning("budget", text));
    }
    notes
}

fn quota(lane: &LaneForecast) -> Vec<Note> {
    let share = |used: u64, stated: Option<u64>, what: &str| {
        let stated = stated?;
        let figures = format!("{}: {} of {} {what} a day", lane.lane, count(used), count(stated));
        let note = if used > stated {
            Note::warning("quota", format!("{figures} are planned: more than the lane states"))
        } else {
            let small = |n: u64| u32::try_from(n).unwrap_or(u32::MAX);
            Note::plain("quota", format!("{figures} ({}) before any retry", percent(small(used), small(stated), &[])))
        };
        Some(note)
    };
    let requests = share(lane.requests_a_day, lane.requests_a_day_stated, "stated requests");
    let tokens = share(lane.tokens_a_day_estimated, lane.tokens_a_day_stated, "stated tokens");
    [requests, tokens].into_iter().flatten().collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::notes::render;
    use crate::palette::Palette;

    #[test]
    fn the_cost_of_a_campaign_is_told_with_quotas_and_caps() {
        let lane = |lane: &str, stated| LaneForecast {
            lane: lane.into(),
            requests_a_day: 36,
            requests_a_day_stated: stated,
            tokens_a_day_estimated: 40_000,
            tokens_a_day_stated: None,
        };
        let forecast = Forecast {
            bursts: 24,
            requests: 216,
            requests_at_most: 648,
            tokens_estimated: 230_000,
            micro_usd_estimated: Some(310_000),
            unpriced: vec!["lane-a".into()],
            lanes: vec![lane("lane-a", Some(50)), lane("lane-b", Some(30)), lane("lane-c", None)],
        };
        let caps = Caps { requests: Some(400), ..Caps::default() };
        insta::assert_snapshot!(render(&notes(&forecast, caps), 100, Palette::PLAIN), @r"
        cost         24 bursts: 216 requests, at most 648 with all retries; about 230,000 tokens at most,
                     prompts estimated by their bytes, answers by their budget; about $0.31 at most and what
                     lane-a costs, which states no price
        quota        lane-a: 36 of 50 stated requests a day (72 %) before any retry
        quota        lane-b: 36 of 30 stated requests a day are planned: more than the lane states
        budget       `budget_requests` may stop the campaign before its end: it allows less than the most
                     that it can use
        ");
    }
}
