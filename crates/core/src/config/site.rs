//! `[[site]]`: places where the team works, each with its zone and, where they differ, its own windows and days.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::Config;
use super::calendar::{ClockTime, Day};
use super::campaign::{Campaign, Window};

/// A place where the team works. What it does not say is as in `[campaign]`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Site {
    /// Name, unique: letters, digits, `-`, `_` and `.`, at most 64, a letter or digit first.
    pub name: String,
    /// IANA zone of the site's local times.
    pub time_zone: String,
    /// Local windows of the site.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub windows: Option<Vec<Window>>,
    /// Begin of the window with the site's own peak.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub peak: Option<ClockTime>,
    /// Measure on the site's working days only.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub workdays_only: Option<bool>,
    /// Days of the week without work at the site, as ISO numbers: 1 is Monday, 7 is Sunday.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub weekend: Option<Vec<u8>>,
    /// Dates without work at the site, at most 1,000.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub holidays: Option<Vec<Day>>,
    /// Names of the lanes that are measured from the site. Without it all.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub lanes: Option<Vec<String>>,
}

/// The campaign as it runs at one site, with nothing left to look up.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SiteCampaign {
    /// Name of the site; `None` where the configuration has no `[[site]]`.
    pub name: Option<String>,
    /// Zone of its local times.
    pub time_zone: String,
    /// Days and windows.
    pub campaign: Campaign,
    /// Names of its lanes, in the order in which they are written.
    pub lanes: Vec<String>,
}

impl Site {
    /// The campaign as it runs here: what the site says goes before what `[campaign]` says.
    pub fn campaign(&self, shared: &Campaign) -> Campaign {
        let mut here = shared.clone();
        if let Some(windows) = &self.windows {
            here.windows.clone_from(windows);
        }
        here.peak = self.peak.or(shared.peak);
        here.workdays_only = self.workdays_only.unwrap_or(shared.workdays_only);
        if let Some(weekend) = &self.weekend {
            here.weekend.clone_from(weekend);
        }
        if let Some(holidays) = &self.holidays {
            here.holidays.clone_from(holidays);
        }
        here
    }

    /// True for a lane that is measured from here.
    pub fn measures(&self, lane: &str) -> bool {
        self.lanes.as_ref().is_none_or(|lanes| lanes.iter().any(|name| name == lane))
    }
}

impl Config {
    /// The campaign of every site, in the order in which they are written; one without a name where there is no `[[site]]`.
    /// Empty without a `[campaign]`, and without any zone (which [`Config::check`] refuses).
    pub fn sites(&self) -> Vec<SiteCampaign> {
        let Some(shared) = &self.campaign else { return Vec::new() };
        let names = |chosen: &dyn Fn(&str) -> bool| {
            let lanes = self.lanes.iter().map(|lane| lane.name.clone());
            lanes.filter(|name| chosen(name)).collect::<Vec<String>>()
        };
        if self.sites.is_empty() {
            let only = self.time_zone.clone().map(|time_zone| SiteCampaign {
                name: None,
                time_zone,
                campaign: shared.clone(),
                lanes: names(&|_| true),
            });
            return only.into_iter().collect();
        }
        let sites = self.sites.iter().map(|site| SiteCampaign {
            name: Some(site.name.clone()),
            time_zone: site.time_zone.clone(),
            campaign: site.campaign(shared),
            lanes: names(&|lane| site.measures(lane)),
        });
        sites.collect()
    }
}

#[cfg(test)]
mod tests {
    use crate::config::{Config, parse_checked};

    const LANES: &str = "[[lane]]\nname = 'a'\nkind = 'free-hosted'\nbase_url = 'https://a.example/v1'\nmodel = 'm'\n\
                         [[lane]]\nname = 'b'\nkind = 'free-hosted'\nbase_url = 'https://b.example/v1'\nmodel = 'm'\n";

    fn config(text: &str) -> Config {
        parse_checked(&format!("{text}\n{LANES}")).unwrap_or_else(|error| panic!("{error}"))
    }

    #[test]
    fn without_sites_the_campaign_has_one_place_without_a_name() {
        let config = config("time_zone = 'Europe/Berlin'\n[campaign]\ndays = 2");
        let sites = config.sites();
        let [only] = sites.as_slice() else { panic!("one site") };
        assert_eq!((only.name.as_deref(), only.time_zone.as_str()), (None, "Europe/Berlin"));
        assert_eq!(Some(&only.campaign), config.campaign.as_ref());
        assert_eq!(only.lanes, ["a", "b"]);
        assert!(self::config("time_zone = 'Europe/Berlin'").sites().is_empty(), "without a campaign there is none");
    }

    #[test]
    fn a_site_overrides_what_it_says_and_shares_the_rest() {
        let text = "[campaign]\ndays = 5\nwindows = ['09:00', '16:00']\npeak = '16:00'\nholidays = ['2026-12-25']\n\
                    [[site]]\nname = 'pune'\ntime_zone = 'Asia/Kolkata'\nwindows = ['11:00', '17:00']\npeak = '17:00'\n\
                    weekend = [7]\nholidays = []\nworkdays_only = false\nlanes = ['b']\n\
                    [[site]]\nname = 'berlin'\ntime_zone = 'Europe/Berlin'\n";
        let config = config(text);
        let sites = config.sites();
        let [pune, berlin] = sites.as_slice() else { panic!("two sites") };
        let starts =
            |at: usize| sites[at].campaign.windows_in_order().iter().map(|w| w.start.to_string()).collect::<Vec<_>>();
        assert_eq!((pune.name.as_deref(), pune.time_zone.as_str()), (Some("pune"), "Asia/Kolkata"));
        assert_eq!((starts(0), pune.campaign.days), (vec!["11:00".to_owned(), "17:00".to_owned()], 5));
        assert_eq!(pune.campaign.declared_peak().map(|p| p.to_string()).as_deref(), Some("17:00"));
        assert_eq!((pune.campaign.weekend.as_slice(), pune.campaign.workdays_only), ([7].as_slice(), false));
        assert!(pune.campaign.holidays.is_empty());
        assert_eq!(pune.lanes, ["b"]);
        assert_eq!(Some(&berlin.campaign), config.campaign.as_ref());
        assert_eq!(berlin.lanes, ["a", "b"]);
    }
}
