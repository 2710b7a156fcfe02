//! Which dates a campaign has, and which days are working days behind it.

use std::collections::BTreeSet;

use jiff::civil::Date;

use crate::campaign::Locked;
use crate::config::{Campaign, Day};
use crate::window::{Calendar, LocalTime, PlanError};

/// The dates of a campaign, and how it goes on.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Planned {
    /// The campaign's own dates, `YYYY-MM-DD`, ascending.
    pub dates: Vec<String>,
    /// Bursts of each window.
    pub bursts_per_window: u32,
    calendar: Calendar,
}

impl Planned {
    /// The last `count` working days up to `through`, oldest first; none before the first day of the campaign.
    pub fn last_working_days(&self, through: Day, count: u32) -> Vec<String> {
        let mut days = Vec::new();
        let mut date = through.date();
        while days.len() < count as usize && date >= self.calendar.start_date {
            if self.calendar.counts(date) {
                days.push(text_of(date));
            }
            let Ok(before) = date.yesterday() else { break };
            date = before;
        }
        days.reverse();
        days
    }
}

/// The dates of what was locked.
///
/// # Errors
/// [`PlanError`] for days that are on no calendar.
pub fn planned_dates(locked: &Locked) -> Result<Planned, PlanError> {
    let campaign = &locked.campaign;
    let start = campaign.start_date.map_or(Date::ZERO, Day::date);
    let calendar = calendar(campaign, start);
    let dates = calendar.dates()?.into_iter().map(text_of).collect();
    Ok(Planned { dates, bursts_per_window: campaign.bursts_per_window, calendar })
}

/// True for a day on which the campaign would measure.
pub fn is_working_day(campaign: &Campaign, day: Day) -> bool {
    calendar(campaign, day.date()).counts(day.date())
}

fn calendar(campaign: &Campaign, start_date: Date) -> Calendar {
    Calendar {
        windows: campaign.windows_in_order().iter().map(|w| LocalTime::from(w.start.time())).collect(),
        start_date,
        days: campaign.days,
        workdays_only: campaign.workdays_only,
        weekend: campaign.weekend.clone(),
        holidays: campaign.holidays.iter().map(|day| day.date()).collect::<BTreeSet<_>>(),
    }
}

fn text_of(date: Date) -> String {
    format!("{:04}-{:02}-{:02}", date.year(), date.month(), date.day())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::parse;

    fn planned() -> Planned {
        let text = "time_zone = 'Europe/Berlin'\n[campaign]\nholidays = ['2026-12-01']\n[[lane]]\nname = 'a'\n\
                    kind = 'free-hosted'\nbase_url = 'https://a.example/v1'\nmodel = 'm'\n";
        let config = parse(text).unwrap();
        let locked = Locked::new(&config, &config.sites()[0], "2026-11-27".parse().unwrap());
        planned_dates(&locked).unwrap()
    }

    #[test]
    fn weekends_and_holidays_are_no_days_of_a_campaign() {
        assert_eq!(planned().dates, ["2026-11-27", "2026-11-30", "2026-12-02"]);
    }

    #[test]
    fn the_last_working_days_skip_the_same_and_never_go_before_the_begin() {
        let last = |day: &str, count| planned().last_working_days(day.parse().unwrap(), count);
        assert_eq!(last("2026-12-06", 3), ["2026-12-02", "2026-12-03", "2026-12-04"]);
        assert_eq!(last("2026-12-02", 2), ["2026-11-30", "2026-12-02"]);
        assert_eq!(last("2026-11-29", 3), ["2026-11-27"]);
        assert_eq!(last("2026-11-20", 3), [""; 0]);
    }
}
