//! Content codings undone as the bytes come: gzip, deflate, br, zstd.
//!
//! Each decoder is fed what arrived and gives out what that completes, so that an event keeps the arrival time of the
//! packet that carried its last byte.

use std::io::{self, Write};

/// Most bytes that one compressed body may unfold to: beyond it lies a decompression bomb, not an answer.
const MAX_UNFOLDED_BYTES: u64 = 256 << 20;

/// Bytes that are fed to a decoder at once, and most that they may unfold to: a bomb is a few bytes that unfold to
/// gigabytes, and what they unfold to is held until it is handed over.
const PORTION_BYTES: usize = 1 << 10;
/// The same for what comes out.
const MAX_PORTION_UNFOLDED_BYTES: usize = 32 << 20;

/// What comes out of a decoder, taken after each portion.
#[derive(Debug, Default)]
struct Sink {
    bytes: Vec<u8>,
    total: u64,
}

impl Write for Sink {
    fn write(&mut self, buf: &[u8]) -> io::Result<usize> {
        self.total += buf.len() as u64;
        if self.bytes.len() + buf.len() > MAX_PORTION_UNFOLDED_BYTES {
            return Err(io::Error::new(
                io::ErrorKind::InvalidData,
                "1 KiB of the compressed body unfolds to over 32 MiB",
            ));
        }
        if self.total > MAX_UNFOLDED_BYTES {
            return Err(io::Error::new(io::ErrorKind::InvalidData, "the compressed body unfolds to more than 256 MiB"));
        }
        self.bytes.extend_from_slice(buf);
        Ok(buf.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

enum Kind {
    Identity,
    Gzip(flate2::write::MultiGzDecoder<Sink>),
    Zlib(flate2::write::ZlibDecoder<Sink>),
    Deflate(flate2::write::DeflateDecoder<Sink>),
    /// `deflate` before its first byte: RFC 9110 means zlib, some servers send the bare format.
    DeflateUnknown,
    Brotli(Box<brotli::DecompressorWriter<Sink>>),
    Zstd(Box<zstd::stream::write::Decoder<'static, Sink>>),
}

/// Undoes one content coding.
pub struct Decoder {
    kind: Kind,
}

impl std::fmt::Debug for Decoder {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Decoder")
    }
}

impl Decoder {
    /// The decoder for a `Content-Encoding` value; `None` for a coding (or a chain of several) that is not known.
    pub fn for_coding(coding: Option<&str>) -> Option<Self> {
        let kind = match coding.unwrap_or_default().trim().to_ascii_lowercase().as_str() {
            "" | "identity" => Kind::Identity,
            "gzip" | "x-gzip" => Kind::Gzip(flate2::write::MultiGzDecoder::new(Sink::default())),
            "deflate" => Kind::DeflateUnknown,
            "br" => Kind::Brotli(Box::new(brotli::DecompressorWriter::new(Sink::default(), 4096))),
            "zstd" => Kind::Zstd(Box::new(zstd::stream::write::Decoder::new(Sink::default()).ok()?)),
            _ => return None,
        };
        Some(Self { kind })
    }

    /// Feeds what arrived and hands over what it completes.
    ///
    /// # Errors
    /// When the bytes are not of the promised coding, or unfold to more than 256 MiB.
    pub fn push(&mut self, bytes: &[u8], mut out: impl FnMut(&[u8])) -> io::Result<()> {
        if let (Kind::DeflateUnknown, Some(first)) = (&self.kind, bytes.first()) {
            // A zlib header has method 8 in its low four bits (RFC 1950); bare deflate practically never does.
            self.kind = if first & 0x0f == 8 {
                Kind::Zlib(flate2::write::ZlibDecoder::new(Sink::default()))
            } else {
                Kind::Deflate(flate2::write::DeflateDecoder::new(Sink::default()))
            };
        }
        if matches!(self.kind, Kind::Identity) {
            out(bytes);
            return Ok(());
        }
        for portion in bytes.chunks(PORTION_BYTES) {
            let (took, sink) = match &mut self.kind {
                Kind::Identity | Kind::DeflateUnknown => return Ok(()),
                Kind::Gzip(d) => (feed(d, portion), d.get_mut()),
                Kind::Zlib(d) => (feed(d, portion), d.get_mut()),
                Kind::Deflate(d) => (feed(d, portion), d.get_mut()),
                Kind::Brotli(d) => (feed(d, portion), d.get_mut()),
                Kind::Zstd(d) => (feed(d, portion), d.get_mut()),
            };
            // What came out before an error counts.
            if !sink.bytes.is_empty() {
                out(&sink.bytes);
                sink.bytes.clear();
            }
            took?;
        }
        Ok(())
    }
}

/// Feeds a decoder and makes it give out all that it can.
fn feed(decoder: &mut impl Write, portion: &[u8]) -> io::Result<()> {
    decoder.write_all(portion)?;
    decoder.flush()
}

#[cfg(test)]
mod tests {
    use super::*;

    const TEXT: &[u8] = b"data: one\n\ndata: two\n\n";

    fn decoded(coding: &str, bytes: &[u8]) -> Vec<u8> {
        let mut decoder = Decoder::for_coding(Some(coding)).unwrap();
        let mut seen = Vec::new();
        // One byte at a time: a decoder must not wait for a whole packet.
        for byte in bytes {
            decoder.push(std::slice::from_ref(byte), |b| seen.extend_from_slice(b)).unwrap();
        }
        seen
    }

    #[test]
    fn every_coding_gives_back_the_text() {
        let mut gzip = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
        gzip.write_all(TEXT).unwrap();
        assert_eq!(decoded("gzip", &gzip.finish().unwrap()), TEXT);
        let mut zlib = flate2::write::ZlibEncoder::new(Vec::new(), flate2::Compression::fast());
        zlib.write_all(TEXT).unwrap();
        assert_eq!(decoded("deflate", &zlib.finish().unwrap()), TEXT);
        let mut bare = flate2::write::DeflateEncoder::new(Vec::new(), flate2::Compression::fast());
        bare.write_all(TEXT).unwrap();
        assert_eq!(decoded("deflate", &bare.finish().unwrap()), TEXT);
        let mut br = brotli::CompressorWriter::new(Vec::new(), 4096, 5, 20);
        br.write_all(TEXT).unwrap();
        assert_eq!(decoded("br", &br.into_inner()), TEXT);
        assert_eq!(decoded("zstd", &zstd::encode_all(TEXT, 1).unwrap()), TEXT);
        assert_eq!(decoded("identity", TEXT), TEXT);
    }

    #[test]
    fn an_event_comes_out_when_the_server_flushed_it() {
        let mut encoder = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::default());
        encoder.write_all(b"data: one\n\n").unwrap();
        encoder.flush().unwrap();
        let first = encoder.get_ref().clone();
        let mut decoder = Decoder::for_coding(Some("gzip")).unwrap();
        let mut seen = Vec::new();
        decoder.push(&first, |b| seen.extend_from_slice(b)).unwrap();
        assert_eq!(seen, b"data: one\n\n");
    }

    #[test]
    fn what_is_not_the_promised_coding_is_an_error() {
        assert!(Decoder::for_coding(Some("compress")).is_none());
        let mut decoder = Decoder::for_coding(Some("gzip")).unwrap();
        assert!(decoder.push(b"<html>not gzip at all</html>", |_| {}).is_err());
    }
}
