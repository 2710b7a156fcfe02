//! Zone names looked up in the zone database: the system's, or our own copy where the system has none.

use jiff::tz::{self, TimeZone};

/// A name that the zone database does not have.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the zone database knows no zone `{name}`")]
pub struct UnknownZone {
    /// What was given.
    pub name: String,
    /// The nearest name that it does have.
    pub nearest: Option<String>,
}

impl UnknownZone {
    /// The next thing to try.
    pub fn hint(&self) -> Option<String> {
        Some(match &self.nearest {
            Some(nearest) => format!("did you mean `{nearest}`?"),
            None => "write a name of the IANA zone database, such as `Europe/Berlin` or `UTC`".to_owned(),
        })
    }
}

/// The zone of that name, whatever its case.
///
/// # Errors
/// [`UnknownZone`] with the nearest name.
pub fn time_zone(name: &str) -> Result<TimeZone, UnknownZone> {
    let unknown = || UnknownZone { name: name.to_owned(), nearest: nearest(name) };
    if !is_place(name) {
        return Err(unknown());
    }
    tz::db().get(name).map_err(|_| unknown())
}

/// False for files of the system's zone folder that are no place: `localtime` is another zone on each machine, and
/// `right/...` counts leap seconds.
fn is_place(name: &str) -> bool {
    const NO_PLACE: [&str; 4] = ["localtime", "posixrules", "factory", "etc/unknown"];
    let lower = name.to_ascii_lowercase();
    !NO_PLACE.contains(&lower.as_str()) && !lower.starts_with("right/") && !lower.starts_with("posix/")
}

/// The name with the fewest edits, to the whole or to the city alone; `None` where none is near.
fn nearest(given: &str) -> Option<String> {
    let given = given.to_lowercase().replace(' ', "_");
    let city = |name: &str| name.rsplit('/').next().unwrap_or_default().to_owned();
    let ranked = tz::db().available().map(|name| name.to_string()).filter(|name| is_place(name)).map(|name| {
        let lower = name.to_lowercase();
        let whole = strsim::damerau_levenshtein(&given, &lower);
        let by_city = strsim::damerau_levenshtein(&city(&given), &city(&lower)) + 1;
        // a continent tells more than the lack of one: `Europe/Paris` goes before `Paris` of elsewhere
        (whole.min(by_city), whole, name)
    });
    let (edits, _, name) = ranked.min()?;
    (edits <= 1 + given.len() / 4).then_some(name)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn nearest_to(name: &str) -> Option<String> {
        time_zone(name).unwrap_err().nearest
    }

    #[test]
    fn a_zone_is_found_by_its_name_whatever_its_case() {
        assert_eq!(time_zone("Europe/Berlin").unwrap().iana_name(), Some("Europe/Berlin"));
        assert_eq!(time_zone("asia/kolkata").unwrap().iana_name(), Some("Asia/Kolkata"));
        assert!(time_zone("UTC").is_ok());
    }

    #[test]
    fn an_unknown_zone_is_told_with_the_nearest_name() {
        assert_eq!(nearest_to("Europe/Berln").as_deref(), Some("Europe/Berlin"));
        assert_eq!(nearest_to("Berlin").as_deref(), Some("Europe/Berlin"));
        assert_eq!(nearest_to("Germany/Berlin").as_deref(), Some("Europe/Berlin"));
        assert_eq!(nearest_to("America/New York").as_deref(), Some("America/New_York"));
        assert_eq!(nearest_to("Middle-earth/Hobbiton/Bag-End-Underhill-Lane"), None);
    }

    #[test]
    fn what_is_no_place_is_no_zone() {
        for name in ["localtime", "right/Europe/Berlin", "posix/Europe/Berlin", "Etc/Unknown", "", "../passwd"] {
            assert!(time_zone(name).is_err(), "{name}");
        }
    }
}
