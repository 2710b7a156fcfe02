//! Token counts on the client's behalf: `stream_options.include_usage` put into a request, and the chunk that it brings
//! taken out of the answer again.

use serde::Deserialize;
use serde::de::IgnoredAny;
use serde_json::Value;

/// Longest event that is looked into, bytes; a longer one is no chunk of counts and passes as it is.
const MAX_EVENT_BYTES: usize = 64 << 10;

/// Puts the option into the body of a chat or legacy completions request. `None` where there is nothing to do: no
/// stream, an option of the client's own, no JSON object.
pub(crate) fn inject(body: &[u8]) -> Option<Vec<u8>> {
    #[derive(Deserialize)]
    struct Asked {
        stream: Option<bool>,
        stream_options: Option<IgnoredAny>,
    }
    let asked: Asked = serde_json::from_slice(body).ok()?;
    if asked.stream != Some(true) || asked.stream_options.is_some() {
        return None;
    }
    // Behind the brace, so that not one byte of the prompt moves within its own text.
    let brace = body.iter().position(|b| *b == b'{')?;
    let (before, after) = body.split_at(brace + 1);
    let option = br#""stream_options":{"include_usage":true},"#;
    Some([before, option, after].concat())
}

/// Takes the chunk of counts out of an event stream.
#[derive(Debug, Default)]
pub(crate) struct Strip {
    /// The event at hand, not over yet.
    held: Vec<u8>,
    /// It was too long to be held: its rest passes.
    passing: bool,
}

impl Strip {
    /// Takes data of the stream and hands on whole events.
    pub(crate) fn push(&mut self, data: &[u8], out: &mut Vec<u8>) {
        for byte in data {
            self.held.push(*byte);
            let over = self.held.ends_with(b"\n\n") || self.held.ends_with(b"\r\n\r\n") || self.held.ends_with(b"\r\r");
            if over {
                if self.passing || !is_counts(&self.held) {
                    out.extend_from_slice(&self.held);
                }
                self.passing = false;
                self.held.clear();
            } else if self.passing && self.held.len() > 4 {
                // The last bytes stay, to see the end of the event.
                let at = self.held.len() - 3;
                out.extend(self.held.drain(..at));
            } else if self.held.len() > MAX_EVENT_BYTES {
                self.passing = true;
            }
        }
    }

    /// The stream is over: what is left passes.
    pub(crate) fn finish(&mut self, out: &mut Vec<u8>) {
        out.append(&mut self.held);
    }
}

/// Is this event nothing but counts: no choices, and a usage that is no null?
fn is_counts(event: &[u8]) -> bool {
    let Ok(text) = std::str::from_utf8(event) else { return false };
    let mut data = text.lines().filter_map(|line| line.strip_prefix("data:"));
    let (Some(data), None) = (data.next(), data.next()) else { return false };
    let Ok(Value::Object(chunk)) = serde_json::from_str::<Value>(data.trim()) else { return false };
    let no_choices = chunk.get("choices").and_then(Value::as_array).is_some_and(Vec::is_empty);
    no_choices && chunk.get("usage").is_some_and(Value::is_object)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn stripped(pieces: &[&str]) -> String {
        let (mut strip, mut out) = (Strip::default(), Vec::new());
        for piece in pieces {
            strip.push(piece.as_bytes(), &mut out);
        }
        strip.finish(&mut out);
        String::from_utf8(out).unwrap()
    }

    #[test]
    fn the_option_is_put_in_only_where_a_stream_says_nothing_of_it() {
        let text = |body: &str| inject(body.as_bytes()).map(|b| String::from_utf8(b).unwrap());
        assert_eq!(
            text(r#" {"stream":true,"m":1}"#).as_deref(),
            Some(r#" {"stream_options":{"include_usage":true},"stream":true,"m":1}"#)
        );
        assert_eq!(text(r#"{"stream":false}"#), None);
        assert_eq!(text(r#"{}"#), None);
        assert_eq!(text(r#"{"stream":true,"stream_options":{"include_usage":false}}"#), None);
        assert_eq!(text("[1]"), None);
    }

    #[test]
    fn only_the_chunk_of_counts_is_taken_out_wherever_the_stream_is_cut() {
        let stream = ": hi\n\ndata: {\"choices\":[{\"delta\":{}}],\"usage\":null}\n\n\
            data: {\"choices\":[],\"usage\":{\"prompt_tokens\":3}}\n\ndata: [DONE]\n\n";
        let want = ": hi\n\ndata: {\"choices\":[{\"delta\":{}}],\"usage\":null}\n\ndata: [DONE]\n\n";
        assert_eq!(stripped(&[stream]), want);
        for at in 0..stream.len() {
            assert_eq!(stripped(&[&stream[..at], &stream[at..]]), want, "cut at {at}");
        }
    }

    #[test]
    fn other_line_ends_and_long_events_and_a_cut_one_pass_as_they_are() {
        let odd = "data: {\"choices\":[],\"usage\":{}}\r\n\r\ndata: x\r\n\r\n";
        assert_eq!(stripped(&[odd]), "data: x\r\n\r\n");
        let long = format!("data: {}\n\ndata: y", "z".repeat(2 * MAX_EVENT_BYTES));
        assert_eq!(stripped(&[&long]), long);
    }
}
