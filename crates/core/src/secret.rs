//! A key that cannot be printed by accident.

use std::fmt;

/// An API key or token. Debug and Display show a placeholder, it cannot be serialised, and only
/// [`Secret::expose`] gives the text, at the place where a request is written.
#[derive(Clone, PartialEq, Eq)]
pub struct Secret(String);

/// A text that cannot be a key. Holds nothing of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum SecretError {
    /// Nothing but white space.
    #[error("the key is empty")]
    Empty,
    /// A line break, another control character or a character beyond ASCII: it cannot stand in a header.
    #[error("the key holds a line break or another character that cannot stand in a header")]
    NotAHeader,
}

impl Secret {
    /// Takes a key; white space around it is cut off.
    ///
    /// # Errors
    /// [`SecretError`] for what is empty or cannot stand in an HTTP header.
    pub fn new(text: &str) -> Result<Self, SecretError> {
        let text = text.trim();
        if text.is_empty() {
            return Err(SecretError::Empty);
        }
        if !text.bytes().all(|b| (0x20..0x7f).contains(&b)) {
            return Err(SecretError::NotAHeader);
        }
        Ok(Self(text.to_owned()))
    }

    /// The text itself, for the header that carries it.
    pub fn expose(&self) -> &str {
        &self.0
    }
}

impl fmt::Debug for Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Secret(hidden)")
    }
}

impl fmt::Display for Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("(hidden)")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_key_shows_itself_nowhere_but_where_it_is_asked_for() {
        let key = Secret::new(" sk-s3cret \n").unwrap();
        assert_eq!(key.expose(), "sk-s3cret");
        assert!(!format!("{key} {key:?}").contains("s3cret"));
    }

    #[test]
    fn what_cannot_stand_in_a_header_is_no_key() {
        assert_eq!(Secret::new(" \n"), Err(SecretError::Empty));
        assert_eq!(Secret::new("a\r\nx-evil: 1"), Err(SecretError::NotAHeader));
        assert_eq!(Secret::new("schlüssel"), Err(SecretError::NotAHeader));
    }
}
