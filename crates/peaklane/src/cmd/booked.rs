//! A burst by hand that is booked under a window of the campaign, because it runs while that window is open.

use jiff::civil::DateTime;
use jiff::{SignedDuration, Timestamp};
use peaklane_core::config::{ClockTime, Config, SiteCampaign};

use super::shots::Occasion;
use crate::exit::Exit;
use crate::failure::Failure;
use crate::load::time_zone;

/// Books an occasion under the window that begins at `start`: at the first site where it is open now.
///
/// # Errors
/// [`Failure`] with exit code 2 where no site has such a window, or where it is closed now: a burst outside of it would tell of
/// another hour.
pub(super) fn book(occasion: &mut Occasion, config: &Config, start: ClockTime) -> Result<(), Failure> {
    let sites = config.sites();
    let known: Vec<String> =
        sites.iter().flat_map(|s| s.campaign.windows_in_order()).map(|w| w.start.to_string()).collect();
    if known.is_empty() {
        return Err(Failure::usage("`--window` books a burst under a window of the campaign, and there is none")
            .with_hint("add a [campaign] with windows"));
    }
    let mut times = Vec::new();
    for site in &sites {
        let Some(span) = site.campaign.windows_in_order().into_iter().find(|w| w.start == start) else { continue };
        let zone = time_zone(&site.time_zone).map_err(|e| Failure::of(Exit::Usage, &e, e.hint()))?;
        let now = Timestamp::from_microsecond(occasion.started_unix_us)
            .map_err(|e| Failure::of(Exit::Usage, &e, None))?
            .to_zoned_datetime(zone)
            .datetime();
        let length = SignedDuration::try_from(span.length.as_duration()).unwrap_or(SignedDuration::ZERO);
        if let Some(begin) = open_since(now, start, length) {
            booked(occasion, site, begin, start);
            return Ok(());
        }
        times.push(format!(
            "{} for {} in {}, where it is {}",
            start,
            span.length,
            site.time_zone,
            now.strftime("%H:%M")
        ));
    }
    let failure = match times.is_empty() {
        true => {
            Failure::usage(format!("no window begins at {start}")).with_hint(format!("there are {}", known.join(", ")))
        }
        false => Failure::usage(format!("the window {start} is closed now"))
            .with_hint(format!("it is open from {}", times.join("; "))),
    };
    Err(failure)
}

fn booked(occasion: &mut Occasion, site: &SiteCampaign, begin: DateTime, start: ClockTime) {
    // A window over midnight is one of the day on which it began.
    occasion.date = begin.date().to_string();
    occasion.window = Some(start.to_string());
    occasion.zone = Some(site.time_zone.clone());
    occasion.site.clone_from(&site.name);
}

/// When the window began that is open at the local time `now`: today, or yesterday for one over midnight.
fn open_since(now: DateTime, start: ClockTime, length: SignedDuration) -> Option<DateTime> {
    let today = now.date().to_datetime(start.time());
    let days = [Some(today), now.date().yesterday().ok().map(|day| day.to_datetime(start.time()))];
    days.into_iter().flatten().find(|begin| *begin <= now && now.duration_since(*begin) < length)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_window_is_open_from_its_begin_to_its_end_also_over_midnight() {
        let since = |now: &str, start: &str| {
            let length = SignedDuration::from_mins(90);
            open_since(now.parse().unwrap(), start.parse().unwrap(), length).map(|at| at.to_string())
        };
        assert_eq!(since("2026-12-01T16:00:00", "16:00").as_deref(), Some("2026-12-01T16:00:00"));
        assert_eq!(since("2026-12-01T17:29:59", "16:00").as_deref(), Some("2026-12-01T16:00:00"));
        assert_eq!(since("2026-12-01T17:30:00", "16:00"), None);
        assert_eq!(since("2026-12-01T15:59:59", "16:00"), None);
        assert_eq!(since("2026-12-02T00:15:00", "23:30").as_deref(), Some("2026-12-01T23:30:00"));
    }
}
