//! What requests cost at a lane, and what waiting in vain costs.

use jiff::Timestamp;
use jiff::tz::TimeZone;

use crate::attempt::Verdict;
use crate::burst::AttemptFigures;
use crate::config::{Config, Price};

/// Hours of a mean month: 365.25 days of 24 hours, by twelve.
pub const HOURS_A_MONTH: f64 = 730.5;

/// Waiting in vain, in a month of the team. Every figure rests on the assumptions of `[cost]`.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct WaitingCost {
    /// Requests of the team in a month.
    pub requests: u64,
    /// Hours of developers.
    pub hours: f64,
    /// What these hours cost, micro-dollars; `None` without a price of the hour.
    pub micro_usd: Option<u64>,
}

/// Price of 1,000 requests, micro-dollars: 1,000 x the mean over the attempts that reported prompt and completion tokens of
///
/// (prompt - cached) x input + cached x cached input + completion x output, at the price of the hour in which each began.
///
/// `None` without such an attempt, without a known start, or where a zone of the hours is unknown. Rounded to the nearest.
pub fn price_of_1000<'a>(
    figures: impl Iterator<Item = &'a AttemptFigures>,
    price: &Price,
    zones: &dyn Fn(&str) -> Option<TimeZone>,
) -> Option<u64> {
    // A token at a price for a million of them costs that many millionths of a micro-dollar.
    let (mut pico_usd, mut attempts) = (0_u128, 0_u128);
    for figure in figures {
        let (Some(prompt), Some(completion)) = (figure.prompt_tokens, figure.completion_tokens) else { continue };
        let row = match figure.intended_unix_us {
            Some(us) => price.at(Timestamp::from_microsecond(us).ok()?, zones)?,
            None if price.hours.is_empty() => price.other_hours(),
            None => continue,
        };
        let cached = figure.cached_tokens.unwrap_or(0).min(prompt);
        let part = |tokens: u64, usd: crate::config::Usd| u128::from(tokens) * u128::from(usd.micro_usd());
        pico_usd += part(prompt - cached, row.input_usd_per_mtok)
            + part(cached, row.cached_input_usd_per_mtok)
            + part(completion, row.output_usd_per_mtok);
        attempts += 1;
    }
    if attempts == 0 {
        return None;
    }
    let divisor = attempts * 1_000;
    u64::try_from((pico_usd + divisor / 2) / divisor).ok()
}

/// Waited in vain for attempts that missed, microseconds for each attempt made. `None` without attempts.
pub(super) fn waited_us<'a>(figures: impl Iterator<Item = &'a AttemptFigures>) -> Option<u64> {
    let (mut waited, mut attempts) = (0_u128, 0_u128);
    for figure in figures {
        attempts += 1;
        if figure.verdict != Verdict::Pass {
            waited += u128::from(figure.latency_us);
        }
    }
    waited.checked_div(attempts).and_then(|us| u64::try_from(us).ok())
}

/// The mean of what is known of every window. `None` where one window is unknown, or there is none.
pub(super) fn mean(values: &[Option<u64>]) -> Option<u64> {
    let known: Vec<u64> = values.iter().copied().collect::<Option<_>>()?;
    let sum: u128 = known.iter().copied().map(u128::from).sum();
    sum.checked_div(known.len() as u128).and_then(|us| u64::try_from(us).ok())
}

/// Requests of the team in a month, by the assumptions of `[cost]`. `None` where one is missing.
pub(super) fn requests_a_month(config: &Config) -> Option<u64> {
    let each = config.cost.requests_per_developer_per_day?;
    let developers = config.cost_developers()?;
    Some(u64::from(each) * u64::from(developers) * u64::from(config.cost.working_days_per_month))
}

/// Waiting in vain in a month.
pub(super) fn waiting(waited_us: u64, config: &Config) -> Option<WaitingCost> {
    let requests = requests_a_month(config)?;
    let hours = waited_us as f64 / 3.6e9 * requests as f64;
    let micro_usd = config.cost.developer_usd_per_hour.map(|usd| (usd.micro_usd() as f64 * hours).round() as u64);
    Some(WaitingCost { requests, hours, micro_usd })
}

/// Rent of a machine for 1,000 requests, micro-dollars, where it stands all month for the requests of the team.
pub(super) fn rent_of_1000(rent_micro_usd_per_hour: u64, requests_a_month: u64) -> Option<u64> {
    (requests_a_month > 0).then(|| {
        let month = rent_micro_usd_per_hour as f64 * HOURS_A_MONTH;
        (month * 1_000.0 / requests_a_month as f64).round() as u64
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::outcome::Outcome;

    fn figure(verdict: Verdict, latency_us: u64, tokens: Option<(u64, u64, u64)>, at: &str) -> AttemptFigures {
        AttemptFigures {
            intended_unix_us: Some(at.parse::<Timestamp>().unwrap().as_microsecond()),
            latency_us,
            verdict,
            outcome: Outcome::Ok,
            retries: 0,
            ttft_us: None,
            first_answer_us: None,
            prompt_tokens: tokens.map(|t| t.0),
            cached_tokens: tokens.map(|t| t.1),
            completion_tokens: tokens.map(|t| t.2),
        }
    }

    fn price(hours: &str) -> Price {
        let text = format!(
            "input_usd_per_mtok = 1\ncached_input_usd_per_mtok = 0.1\noutput_usd_per_mtok = 4\nhours = [{hours}]"
        );
        toml::from_str(&text).unwrap()
    }

    #[test]
    fn the_price_of_1000_requests_is_that_of_paper_and_pencil() {
        // 400 fresh tokens at $1 and 100 cached at $0.1 and 50 out at $4, for a million: 400 + 10 + 200 micro-dollars.
        let one = figure(Verdict::Pass, 1, Some((500, 100, 50)), "2026-11-30T10:00:00Z");
        let silent = figure(Verdict::Failed, 1, None, "2026-11-30T10:00:00Z");
        let zones = |_: &str| Some(TimeZone::UTC);
        assert_eq!(price_of_1000([one, silent].iter(), &price(""), &zones), Some(610_000));
        assert_eq!(price_of_1000([silent].iter(), &price(""), &zones), None);
    }

    #[test]
    fn the_price_is_that_of_the_hour() {
        let hours = "{ from = '16:00', to = '20:00', zone = 'UTC', input_usd_per_mtok = 2, output_usd_per_mtok = 8 }";
        let at = |when: &str| [figure(Verdict::Pass, 1, Some((1_000, 0, 0)), when)];
        let zones = |_: &str| Some(TimeZone::UTC);
        assert_eq!(price_of_1000(at("2026-11-30T15:59:59Z").iter(), &price(hours), &zones), Some(1_000_000));
        assert_eq!(price_of_1000(at("2026-11-30T16:00:00Z").iter(), &price(hours), &zones), Some(2_000_000));
        assert_eq!(price_of_1000(at("2026-11-30T16:00:00Z").iter(), &price(hours), &|_| None), None);
    }

    #[test]
    fn waiting_counts_the_attempts_that_missed_over_all_attempts() {
        let now = "2026-11-30T10:00:00Z";
        let all = [figure(Verdict::Pass, 9_000_000, None, now), figure(Verdict::TooSlow, 40_000_000, None, now)];
        assert_eq!(waited_us(all.iter()), Some(20_000_000));
        assert_eq!(waited_us([].iter()), None);
        let mut config = Config::default();
        assert_eq!(waiting(20_000_000, &config), None);
        config.cost.developers = Some(10);
        config.cost.requests_per_developer_per_day = Some(60);
        // 10 x 60 x 21 = 12,600 requests of 20 s: 70 hours
        let told = waiting(20_000_000, &config).unwrap();
        assert_eq!((told.requests, told.hours.round() as u64, told.micro_usd), (12_600, 70, None));
        config.cost.developer_usd_per_hour = "80".parse().ok();
        assert_eq!(waiting(20_000_000, &config).unwrap().micro_usd, Some(5_600_000_000));
    }

    #[test]
    fn a_mean_of_what_is_not_known_is_not_known() {
        assert_eq!((mean(&[Some(2), Some(4)]), mean(&[Some(2), None]), mean(&[])), (Some(3), None, None));
        // $1 an hour is $730.50 a month; for 7,305 requests that is $100 a thousand
        assert_eq!((rent_of_1000(1_000_000, 7_305), rent_of_1000(1, 0)), (Some(100_000_000), None));
    }
}
