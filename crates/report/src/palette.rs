//! Colour that only adds: every line is clear without it. Whether there is any is the caller's to decide (`NO_COLOR`, a
//! pipe); the texts here are the same either way, but for the escape sequences.

use anstyle::{AnsiColor, Style};

/// What a piece of text wants to say by its colour, beside its words.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Tone {
    /// Nothing.
    #[default]
    Plain,
    /// It holds.
    Good,
    /// It does not.
    Bad,
    /// Worth a look.
    Warn,
    /// Needed, but not first.
    Dim,
    /// Read this first.
    Strong,
}

/// How text is painted.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Palette {
    /// Escape sequences are written; without them `paint` gives the text back as it is.
    pub colour: bool,
}

impl Palette {
    /// No colour at all.
    pub const PLAIN: Self = Self { colour: false };
    /// The sixteen colours of every terminal, so that its own theme decides how they look.
    pub const COLOUR: Self = Self { colour: true };

    /// `text` in the style of its tone.
    pub fn paint(self, tone: Tone, text: &str) -> String {
        let style = match tone {
            Tone::Plain => return text.to_owned(),
            Tone::Good => Style::new().fg_color(Some(AnsiColor::Green.into())),
            Tone::Bad => Style::new().fg_color(Some(AnsiColor::Red.into())),
            Tone::Warn => Style::new().fg_color(Some(AnsiColor::Yellow.into())),
            Tone::Dim => Style::new().dimmed(),
            Tone::Strong => Style::new().bold(),
        };
        if !self.colour || text.trim().is_empty() {
            return text.to_owned();
        }
        format!("{style}{text}{style:#}")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn colour_adds_nothing_but_escape_sequences() {
        let tones = [Tone::Plain, Tone::Good, Tone::Bad, Tone::Warn, Tone::Dim, Tone::Strong];
        for tone in tones {
            assert_eq!(Palette::PLAIN.paint(tone, "7/8"), "7/8");
            let painted = Palette::COLOUR.paint(tone, "7/8");
            assert_eq!(painted.starts_with('\u{1b}'), tone != Tone::Plain);
            assert!(painted.contains("7/8"));
        }
        assert_eq!(Palette::COLOUR.paint(Tone::Bad, "7/8"), "\u{1b}[31m7/8\u{1b}[0m");
    }
}
