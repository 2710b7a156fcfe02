//! One step of an answer: bytes and their moment, in the several ways in which a case may write them.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD as BASE64;
use serde::Deserialize;
use serde::de::{Deserializer, Visitor};

/// One piece of a body and its moment.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(try_from = "RawStep")]
pub struct Step {
    /// Milliseconds after the last byte of the request.
    pub at_ms: f64,
    /// What goes out, without framing.
    pub bytes: Vec<u8>,
}

impl Step {
    /// A step of text.
    pub fn new(at_ms: f64, text: &str) -> Self {
        Self { at_ms, bytes: text.as_bytes().to_vec() }
    }
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct RawStep {
    at_ms: f64,
    #[serde(default)]
    text: Option<WireText>,
    #[serde(default)]
    b64: Option<String>,
    #[serde(default)]
    parts: Option<Vec<RawPart>>,
    #[serde(default)]
    rep: Option<usize>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct RawPart {
    #[serde(default)]
    text: Option<WireText>,
    #[serde(default)]
    b64: Option<String>,
    #[serde(default)]
    parts: Option<Vec<RawPart>>,
    #[serde(default)]
    rep: Option<usize>,
}

impl RawPart {
    /// As the reference server does: `parts` wins and is not repeated, then `b64`, then `text`; `rep` repeats a piece.
    fn bytes(self) -> Result<Vec<u8>, String> {
        if let Some(parts) = self.parts {
            return parts.into_iter().map(Self::bytes).collect::<Result<Vec<_>, _>>().map(|p| p.concat());
        }
        let piece = match (self.b64, self.text) {
            (Some(b64), _) => BASE64.decode(b64.as_bytes()).map_err(|e| format!("step with bad base64: {e}"))?,
            (None, text) => text.unwrap_or_default().0,
        };
        Ok(piece.repeat(self.rep.unwrap_or(1)))
    }
}

impl TryFrom<RawStep> for Step {
    type Error = String;
    fn try_from(raw: RawStep) -> Result<Self, String> {
        let RawStep { at_ms, text, b64, parts, rep } = raw;
        Ok(Self { at_ms, bytes: RawPart { text, b64, parts, rep }.bytes()? })
    }
}

/// Text of a step as bytes: a case may hold half a surrogate pair, which no `String` can.
#[derive(Default)]
struct WireText(Vec<u8>);

impl<'de> Deserialize<'de> for WireText {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Bytes;
        impl Visitor<'_> for Bytes {
            type Value = WireText;
            fn expecting(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                f.write_str("text")
            }
            fn visit_bytes<E>(self, v: &[u8]) -> Result<WireText, E> {
                Ok(WireText(v.to_vec()))
            }
            fn visit_str<E>(self, v: &str) -> Result<WireText, E> {
                Ok(WireText(v.as_bytes().to_vec()))
            }
        }
        deserializer.deserialize_bytes(Bytes)
    }
}
