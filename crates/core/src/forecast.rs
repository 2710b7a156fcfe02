//! What a campaign will use up, told before it starts: requests, tokens, money, and each lane's share of its stated quota.

use std::collections::{BTreeMap, BTreeSet};

use jiff::Timestamp;
use jiff::tz::TimeZone;
use serde::Serialize;

use crate::budget::{Used, estimated_tokens, price_of};
use crate::config::{Config, Lane, Task};

/// Zones by name, for prices with hours of their own.
pub type Zones<'a> = &'a dyn Fn(&str) -> Option<TimeZone>;

/// What one burst will use up.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Need {
    /// Requests without any retry, warm-up included. Of a stretch: as many as its floor asks for, and one for each that is in
    /// flight; nobody knows beforehand how many there will be.
    pub requests: u64,
    /// Requests when every attempt needs all its retries.
    pub requests_at_most: u64,
    /// Tokens without any retry: prompts estimated from their bytes ([`estimated_tokens`]), answers that use up their budget.
    pub tokens: u64,
    /// Price of these tokens at that hour, micro-dollars; `None` where no price is stated.
    pub micro_usd: Option<u64>,
}

impl Need {
    /// What a budget counts before there is any experience.
    pub fn used(&self) -> Used {
        Used { requests: self.requests_at_most, tokens: self.tokens, micro_usd: self.micro_usd.unwrap_or(0) }
    }
}

/// What a burst of a task class at a lane will use up if it begins at `at`.
pub fn need(config: &Config, lane: &Lane, task: &Task, at: Timestamp, zones: Zones<'_>) -> Need {
    let attempts = match task.sustained_stretch() {
        None => u64::from(config.burst.attempts),
        Some(stretch) => {
            let by_floor = u64::from(task.tasks_per_hour.unwrap_or(0)).saturating_mul(stretch.as_us());
            by_floor.div_ceil(3_600_000_000).max(u64::from(task.in_flight(&config.burst).unwrap_or(1)))
        }
    };
    let requests = attempts + u64::from(config.burst.warmup);
    let bytes = [&task.prompt, &task.system].into_iter().flatten().map(String::len).sum::<usize>() as u64;
    let prompt = requests.saturating_mul(estimated_tokens(bytes));
    let answer = requests.saturating_mul(u64::from(task.max_tokens));
    let row = lane.price.as_ref().and_then(|price| price.at(at, zones));
    let price = row.map(|row| {
        let input = price_of(prompt, row.input_usd_per_mtok.micro_usd());
        input.saturating_add(price_of(answer, row.output_usd_per_mtok.micro_usd()))
    });
    Need {
        requests,
        requests_at_most: requests.saturating_mul(1 + u64::from(config.retry.max)),
        tokens: prompt.saturating_add(answer),
        micro_usd: price,
    }
}

/// What a campaign will use up.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Forecast {
    /// Bursts.
    pub bursts: u64,
    /// Requests without any retry.
    pub requests: u64,
    /// Requests when every attempt needs all its retries.
    pub requests_at_most: u64,
    /// Tokens without any retry, prompts estimated, answers that use up their budget.
    pub tokens_estimated: u64,
    /// Their price, micro-dollars, of the lanes that state one; `None` where none does.
    pub micro_usd_estimated: Option<u64>,
    /// Lanes without a price by token.
    pub unpriced: Vec<String>,
    /// Each lane on its fullest day.
    pub lanes: Vec<LaneForecast>,
}

/// One lane on its fullest day, without any retry.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct LaneForecast {
    /// Name.
    pub lane: String,
    /// Requests of that day.
    pub requests_a_day: u64,
    /// Requests a day that the lane states.
    pub requests_a_day_stated: Option<u64>,
    /// Tokens of that day, estimated.
    pub tokens_a_day_estimated: u64,
    /// Tokens a day that the lane states.
    pub tokens_a_day_stated: Option<u64>,
}

impl Forecast {
    /// Sums the planned bursts: lane, task class, local date, instant. Names that the configuration does not have are left
    /// out.
    pub fn of<'a>(
        config: &Config,
        planned: impl IntoIterator<Item = (&'a str, &'a str, String, Timestamp)>,
        zones: Zones<'_>,
    ) -> Self {
        let mut sum = Self::default();
        let mut unpriced = BTreeSet::new();
        let mut days: BTreeMap<(String, String), (u64, u64)> = BTreeMap::new();
        for (lane, task, date, at) in planned {
            let (Some(lane), Some(task)) = (config.lane(lane), config.task(task)) else { continue };
            let need = need(config, lane, task, at, zones);
            sum.bursts += 1;
            sum.requests += need.requests;
            sum.requests_at_most += need.requests_at_most;
            sum.tokens_estimated = sum.tokens_estimated.saturating_add(need.tokens);
            match need.micro_usd {
                Some(price) => {
                    sum.micro_usd_estimated = Some(sum.micro_usd_estimated.unwrap_or(0).saturating_add(price))
                }
                None => {
                    unpriced.insert(lane.name.clone());
                }
            }
            let day = days.entry((lane.name.clone(), date)).or_default();
            *day = (day.0 + need.requests, day.1.saturating_add(need.tokens));
        }
        sum.unpriced = unpriced.into_iter().collect();
        let fullest = config.lanes.iter().filter_map(|lane| {
            let of_lane = days.iter().filter(|((name, _), _)| *name == lane.name).map(|(_, day)| *day);
            let (requests, tokens) = of_lane.reduce(|a, b| (a.0.max(b.0), a.1.max(b.1)))?;
            Some(LaneForecast {
                lane: lane.name.clone(),
                requests_a_day: requests,
                requests_a_day_stated: lane.limits.requests_per_day,
                tokens_a_day_estimated: tokens,
                tokens_a_day_stated: lane.limits.tokens_per_day,
            })
        });
        sum.lanes = fullest.collect();
        sum
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::parse_checked;

    #[test]
    fn a_campaign_is_added_up_with_the_price_of_each_hour_and_the_fullest_day_of_each_lane() {
        let config = parse_checked(
            "[burst]\nattempts = 8\nwarmup = 1\n[retry]\nmax = 2\n\
             [[lane]]\nname = 'a'\nkind = 'paid-hosted'\nbase_url = 'https://a.example/v1'\nmodel = 'm'\n\
             [lane.limits]\nrequests_per_day = 100\n\
             [lane.price]\ninput_usd_per_mtok = 1\noutput_usd_per_mtok = 4\n\
             hours = [{ from = '16:00', to = '17:00', zone = 'UTC', input_usd_per_mtok = 2, output_usd_per_mtok = 8 }]\n\
             [[lane]]\nname = 'b'\nkind = 'free-hosted'\nbase_url = 'https://b.example/v1'\nmodel = 'm'\n\
             [[task]]\nname = 't'\nprompt = '12345678'\nmax_tokens = 100\n",
        )
        .unwrap();
        let utc = |_: &str| Some(TimeZone::UTC);
        let at = |text: &str| text.parse::<Timestamp>().unwrap();
        let planned = [
            ("a", "t", "2026-12-01".to_owned(), at("2026-12-01T09:00:00Z")),
            ("a", "t", "2026-12-01".to_owned(), at("2026-12-01T16:00:00Z")),
            ("b", "t", "2026-12-01".to_owned(), at("2026-12-01T16:00:00Z")),
            ("gone", "t", "2026-12-01".to_owned(), at("2026-12-01T16:00:00Z")),
        ];
        let forecast = Forecast::of(&config, planned, &utc);
        // 9 requests each; at most 27 each; 9 x (8 bytes / 4 + 100) = 918 tokens each
        assert_eq!((forecast.bursts, forecast.requests, forecast.requests_at_most), (3, 27, 81));
        assert_eq!(forecast.tokens_estimated, 3 * 918);
        // 18 x 1 + 900 x 4 = 3,618 micro-dollars at 09:00, twice that at 16:00
        assert_eq!(forecast.micro_usd_estimated, Some(3_618 * 3));
        assert_eq!(forecast.unpriced, ["b"]);
        assert_eq!((forecast.lanes[0].requests_a_day, forecast.lanes[0].requests_a_day_stated), (18, Some(100)));
        assert_eq!(forecast.lanes[1].requests_a_day_stated, None);
    }

    #[test]
    fn a_stretch_is_estimated_by_its_floor() {
        let config = parse_checked(
            "[burst]\nwarmup = 0\n[[lane]]\nname = 'a'\nkind = 'free-hosted'\nbase_url = 'https://a.example/v1'\nmodel = 'm'\n\
             [[task]]\nname = 'n'\nprompt = 'p'\ntasks_per_hour = 120\nstretch = '10m'\n",
        )
        .unwrap();
        let one = need(&config, &config.lanes[0], &config.tasks[0], Timestamp::UNIX_EPOCH, &|_| None);
        // 120 an hour are 20 in ten minutes
        assert_eq!(one.requests, 20);
    }
}
