//! What holds for every command: the form of the output, store, configuration, colours, how much is said.

use std::ffi::{OsStr, OsString};
use std::io::{self, IsTerminal as _};
use std::path::{Path, PathBuf};

use anstream::{AutoStream, ColorChoice};
use clap::{Args, ValueEnum};
use peaklane_report::palette::Palette;

use crate::failure::Failure;

/// The store where none is named.
pub const DEFAULT_STORE: &str = "peaklane.db";

/// Columns where no terminal says how many there are.
const DEFAULT_WIDTH: usize = 100;

/// Widths that tables can be laid out for; a terminal outside is treated as the nearest one.
const WIDTHS: std::ops::RangeInclusive<usize> = 40..=500;

/// The options of every command, as they are written.
#[derive(Args, Clone, Debug, Default)]
#[command(next_help_heading = "Options of every command")]
pub struct GlobalArgs {
    /// Form of the result on standard output: `json` carries everything that the table shows, `csv` has one line per row,
    /// `md` is Markdown. Default: `table`. Example: `--format json`
    #[arg(
        long,
        global = true,
        value_enum,
        value_name = "FORM",
        default_value_t,
        hide_default_value = true,
        hide_possible_values = true
    )]
    pub format: Format,

    /// Where measurements are kept: a SQLite file. Default: `sqlite:peaklane.db` in the current folder. Example:
    /// `--store sqlite:/var/lib/peaklane/team.db`
    // Read as plain text and parsed later: clap would repeat a refused URL, and that may hold a password.
    #[arg(long, global = true, value_name = "URL")]
    pub store: Option<OsString>,

    /// Configuration file. Default: `peaklane.toml` in the current folder; without that file the variables LLM_BASE_URL,
    /// LLM_MODEL, LLM_API_KEY and LLM_API make one lane. Example: `--config team.toml`
    #[arg(long, global = true, value_name = "FILE")]
    pub config: Option<PathBuf>,

    /// Colours: `auto` (on a terminal, unless NO_COLOR is set), `always` or `never`. Default: `auto`. Example:
    /// `--color never`
    #[arg(
        long,
        global = true,
        value_enum,
        value_name = "WHEN",
        default_value_t,
        hide_default_value = true,
        hide_possible_values = true
    )]
    pub color: Color,

    /// Say less: no progress and no remarks on standard error. Warnings and errors stay. Default: off. Example: `-q`
    #[arg(short, long, global = true, conflicts_with = "verbose")]
    pub quiet: bool,

    /// Say more on standard error; twice for every detail. Default: off. Example: `-v`
    #[arg(short, long, global = true, action = clap::ArgAction::Count)]
    pub verbose: u8,
}

/// Form of the result on standard output.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub enum Format {
    /// Aligned text for people.
    #[default]
    Table,
    /// JSON: a stable contract, see `schema/output`.
    Json,
    /// CSV with a header.
    Csv,
    /// Markdown.
    Md,
}

/// When there are colours.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub enum Color {
    /// On a terminal, unless `NO_COLOR` is set.
    #[default]
    Auto,
    /// Always, also into a pipe.
    Always,
    /// Never.
    Never,
}

/// Where measurements are kept.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum StoreUrl {
    /// A SQLite file.
    Sqlite(PathBuf),
}

/// A text that names no store. Never repeats the text: a URL may hold a password.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum BadStoreUrl {
    /// PostgreSQL.
    #[error("`--store` names a PostgreSQL database, which this version cannot use yet")]
    NotYet,
    /// Another scheme.
    #[error("`--store` has the scheme `{0}`, which names no store that peaklane knows")]
    Scheme(String),
    /// No file at all.
    #[error("`--store` names no file")]
    NoFile,
    /// A database in memory.
    #[error("`--store` names a database in memory, which would be gone with the command")]
    InMemory,
}

impl BadStoreUrl {
    /// What works.
    pub fn hint(&self) -> Option<String> {
        Some("name a SQLite file: `--store sqlite:PATH`, for example `--store sqlite:./peaklane.db`".to_owned())
    }
}

impl From<BadStoreUrl> for Failure {
    fn from(error: BadStoreUrl) -> Self {
        Self::of(crate::exit::Exit::Usage, &error, error.hint())
    }
}

impl Default for StoreUrl {
    fn default() -> Self {
        Self::Sqlite(PathBuf::from(DEFAULT_STORE))
    }
}

impl StoreUrl {
    /// Reads `sqlite:PATH` or a plain path. A file whose name looks like a scheme can be written `./a:b`.
    ///
    /// # Errors
    /// [`BadStoreUrl`], which holds nothing of the text but its scheme.
    pub fn parse(text: &OsStr) -> Result<Self, BadStoreUrl> {
        let path = match text.to_str().and_then(|text| Some((scheme(text)?, text))) {
            None => PathBuf::from(text),
            Some(("sqlite", text)) => {
                let rest = &text["sqlite:".len()..];
                PathBuf::from(rest.strip_prefix("//").unwrap_or(rest))
            }
            Some(("postgres" | "postgresql", _)) => return Err(BadStoreUrl::NotYet),
            Some((other, _)) => return Err(BadStoreUrl::Scheme(other.to_owned())),
        };
        match path.as_os_str().as_encoded_bytes() {
            b"" => Err(BadStoreUrl::NoFile),
            b":memory:" => Err(BadStoreUrl::InMemory),
            _ => Ok(Self::Sqlite(path)),
        }
    }

    /// The file.
    pub fn path(&self) -> &Path {
        match self {
            Self::Sqlite(path) => path,
        }
    }
}

/// `postgres` of `postgres://...`: letters in lower case before the first colon, two or more, so that a drive is none.
fn scheme(text: &str) -> Option<&str> {
    let (scheme, _) = text.split_once(':')?;
    (scheme.len() >= 2 && scheme.bytes().all(|b| b.is_ascii_lowercase() || b.is_ascii_digit() || b == b'+'))
        .then_some(scheme)
}

/// What holds for every command, ready to use.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Globals {
    /// Form of the result on standard output.
    pub format: Format,
    /// Where measurements are kept.
    pub store: StoreUrl,
    /// The configuration file that was named; `None` for `peaklane.toml` here, or the environment. For
    /// [`crate::load::load`].
    pub config: Option<PathBuf>,
    /// Colours of standard output.
    pub palette: Palette,
    /// Colours of standard error.
    pub stderr_palette: Palette,
    /// Columns of the terminal, 40 to 500; 100 where there is none.
    pub width: usize,
    /// No progress, no remarks.
    pub quiet: bool,
    /// 0: as usual; 1: more; 2: every detail.
    pub verbose: u8,
    /// A live progress line can be drawn: standard error is a terminal and nobody asked for quiet.
    pub progress: bool,
}

impl Globals {
    /// Takes the options apart and looks at the terminal.
    ///
    /// # Errors
    /// [`Failure`] with exit code 2 for a store that cannot be used.
    pub fn new(args: &GlobalArgs) -> Result<Self, Failure> {
        let store = args.store.as_deref().map(StoreUrl::parse).transpose()?.unwrap_or_default();
        Ok(Self {
            format: args.format,
            store,
            config: args.config.clone(),
            palette: palette(AutoStream::choice(&io::stdout()), args.color),
            stderr_palette: palette(AutoStream::choice(&io::stderr()), args.color),
            width: width(),
            quiet: args.quiet,
            verbose: args.verbose,
            progress: !args.quiet && io::stderr().is_terminal(),
        })
    }
}

/// What standard error is painted with before the options could be read.
pub fn stderr_palette(color: Color) -> Palette {
    palette(AutoStream::choice(&io::stderr()), color)
}

fn palette(automatic: ColorChoice, color: Color) -> Palette {
    let colour = match color {
        Color::Auto => !matches!(automatic, ColorChoice::Never),
        Color::Always => true,
        Color::Never => false,
    };
    Palette { colour }
}

/// `COLUMNS` where it is set to a number, else the terminal's own width.
fn width() -> usize {
    let given = std::env::var("COLUMNS").ok().and_then(|columns| columns.trim().parse().ok());
    let seen = || terminal_size::terminal_size_of(io::stdout()).map(|(width, _)| usize::from(width.0));
    let columns: usize = given.or_else(seen).unwrap_or(DEFAULT_WIDTH);
    columns.clamp(*WIDTHS.start(), *WIDTHS.end())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(text: &str) -> Result<String, BadStoreUrl> {
        StoreUrl::parse(OsStr::new(text)).map(|url| url.path().display().to_string())
    }

    #[test]
    fn a_store_is_a_sqlite_url_or_a_plain_path() {
        for (given, path) in [
            ("sqlite:team.db", "team.db"),
            ("sqlite:/var/team.db", "/var/team.db"),
            ("sqlite:///var/team.db", "/var/team.db"),
            ("team.db", "team.db"),
            ("./a:b", "./a:b"),
            ("C:\\team.db", "C:\\team.db"),
        ] {
            assert_eq!(parse(given).as_deref(), Ok(path), "{given}");
        }
        assert_eq!(StoreUrl::default().path(), Path::new("peaklane.db"));
    }

    #[test]
    fn what_is_no_store_is_refused_with_what_works_and_without_its_password() {
        for (given, error) in [
            ("postgres://team:s3cret@db/x", BadStoreUrl::NotYet),
            ("postgresql://team:s3cret@db/x", BadStoreUrl::NotYet),
            ("mysql://team:s3cret@db/x", BadStoreUrl::Scheme("mysql".to_owned())),
            ("sqlite:", BadStoreUrl::NoFile),
            ("", BadStoreUrl::NoFile),
            ("sqlite::memory:", BadStoreUrl::InMemory),
        ] {
            let refused = parse(given).unwrap_err();
            assert_eq!(refused, error, "{given}");
            let told = Failure::from(refused).render(Palette::PLAIN);
            assert!(told.contains("sqlite:PATH") && !told.contains("s3cret"), "{told}");
        }
    }

    #[test]
    fn what_the_user_says_about_colour_goes_before_what_the_terminal_says() {
        let colour = |automatic, color| palette(automatic, color).colour;
        assert!(colour(ColorChoice::Never, Color::Always));
        assert!(!colour(ColorChoice::Always, Color::Never));
        assert!(colour(ColorChoice::Always, Color::Auto));
        assert!(!colour(ColorChoice::Never, Color::Auto));
    }
}
