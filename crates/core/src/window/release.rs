//! Which zone database to believe: governments change clocks a few times a year, and an old machine's files are as
//! likely to be stale as an old binary's. The newer of the two is right.

use std::fmt;
use std::str::FromStr;

use thiserror::Error;

/// A release of the IANA tz database: `2026b`. Later releases compare as greater.
///
/// Releases of one year are `a` to `z`, then (it has not happened yet) `za` to `zz`, then `zza`, so longer letters are
/// later ones.
///
/// Source: the tz project's `tz-link.html`, "Version numbers".
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Release {
    year: u16,
    // the order of the fields is the order of comparison
    letters_len: usize,
    letters: String,
}

/// A text that names no release.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error("`{0}` names no release of the tz database")]
pub struct BadRelease(pub String);

/// Where zones are to be taken from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Source {
    /// The machine's own files.
    System,
    /// The copy inside the binary.
    Bundled,
}

impl Release {
    /// Finds the release in the first line of a `tzdata.zi` (`# version 2026b`), or in a `+VERSION` or `version` file
    /// (`2026b`). `None` when the text names none.
    pub fn from_first_line(text: &str) -> Option<Self> {
        let line = text.lines().next()?.trim();
        line.strip_prefix("# version").unwrap_or(line).trim().parse().ok()
    }
}

impl FromStr for Release {
    type Err = BadRelease;

    /// Reads `2026b`. What a distribution adds after a `-` or a `+` (`2026b-dirty`) does not count.
    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let bad = || BadRelease(text.to_owned());
        let plain = text.split(['-', '+']).next().unwrap_or_default();
        let (year, letters) = plain.split_at_checked(4).ok_or_else(bad)?;
        let well_formed = year.bytes().all(|b| b.is_ascii_digit())
            && !letters.is_empty()
            && letters.bytes().all(|b| b.is_ascii_lowercase());
        match year.parse() {
            Ok(year) if well_formed => Ok(Self { year, letters_len: letters.len(), letters: letters.to_owned() }),
            _ => Err(bad()),
        }
    }
}

impl fmt::Display for Release {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:04}{}", self.year, self.letters)
    }
}

/// The newer database; the machine's own on a tie, because an administrator may have patched it. A system whose
/// release is not known (files without a version, or no files) gives way to the bundled copy.
pub fn newer(system: Option<&Release>, bundled: &Release) -> Source {
    match system {
        Some(system) if system >= bundled => Source::System,
        _ => Source::Bundled,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn release(text: &str) -> Release {
        text.parse().unwrap()
    }

    #[test]
    fn the_newer_database_is_believed_and_the_system_on_a_tie() {
        assert_eq!(newer(Some(&release("2025b")), &release("2026f")), Source::Bundled);
        assert_eq!(newer(Some(&release("2027a")), &release("2026f")), Source::System);
        assert_eq!(newer(Some(&release("2026f")), &release("2026f")), Source::System);
        assert_eq!(newer(None, &release("2026f")), Source::Bundled);
    }

    #[test]
    fn releases_are_ordered_by_year_and_then_by_letters() {
        let mut given = ["2026a", "2025z", "2025za", "2026b", "2025b"].map(release);
        given.sort();
        assert_eq!(given.map(|r| r.to_string()), ["2025b", "2025z", "2025za", "2026a", "2026b"]);
    }

    #[test]
    fn a_release_is_found_in_the_files_that_systems_keep() {
        assert_eq!(Release::from_first_line("# version 2025b\n# This zic input file\n"), Some(release("2025b")));
        assert_eq!(Release::from_first_line("2026a\n"), Some(release("2026a")));
        assert_eq!(Release::from_first_line("2026a-dirty"), Some(release("2026a")));
        for text in ["", "# version\n", "2026", "26b", "2026B", "unknown", "２026b"] {
            assert_eq!(Release::from_first_line(text), None, "{text}");
        }
    }
}
