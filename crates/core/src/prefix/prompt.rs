//! The prompt as the model sees it: tools, system text, messages, one segment each, as canonical text.

use std::fmt;
use std::ops::Range;

use super::scan::{Scan, ScanError, Where};
use crate::lane::Api;

/// Longest role or type that is kept of a message, bytes.
const MAX_ROLE_BYTES: usize = 40;
/// Longest name of a model or a session that is kept, bytes.
const MAX_NAME_BYTES: usize = 200;

/// A body that holds no prompt.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum PromptError {
    /// Not UTF-8.
    #[error("the body is no text")]
    NoText,
    /// Not JSON.
    #[error(transparent)]
    Json(#[from] ScanError),
    /// JSON of another shape.
    #[error("the body has neither `messages` nor `input` nor `prompt`")]
    NoPrompt,
}

/// What a segment is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Part {
    /// One offered tool.
    Tool,
    /// System text (`system`, `instructions`, a leading system or developer message).
    System,
    /// A message or input item.
    Message,
    /// The text of a legacy completions request.
    Text,
}

/// One piece of a prompt.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Segment {
    /// What it is.
    pub part: Part,
    /// Its place in the array it stands in; `None` where it stands alone.
    pub index: Option<u32>,
    /// Role, or type where there is no role; empty for tools and system text.
    pub role: String,
    /// Field of the body that it comes from: `tools`, `messages`, `input`, `system`, ...
    pub field: &'static str,
    /// Where it ends in the text; it begins where the one before ends.
    pub end: usize,
}

impl fmt::Display for Segment {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let index = self.index.unwrap_or_default();
        match self.part {
            Part::Tool => write!(f, "tool[{index}]"),
            // Messages that lead a chat count as one system text; only a list of system texts has places.
            Part::System if self.field == "system" && self.index.is_some() => write!(f, "system[{index}]"),
            Part::System => f.write_str("system"),
            Part::Message => write!(f, "msg[{index}]/{}", self.role),
            Part::Text => f.write_str("prompt"),
        }
    }
}

/// What a body says besides its prompt.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Asked {
    /// `model`.
    pub model: Option<String>,
    /// `stream`.
    pub stream: bool,
    /// Tools offered.
    pub tools: u32,
    /// A field that names the session: `prompt_cache_key`, then `metadata`'s session or user, then `user`.
    pub session: Option<String>,
}

/// A prompt in its canonical form.
///
/// Segments stand in the order in which chat templates lay them out: tools, system text, messages. Each is compact JSON
/// with sorted keys and ends with one newline byte. What the model never sees is left out: `cache_control`, and `id`,
/// `status` and `encrypted_content` of Responses items.
#[derive(Clone, PartialEq, Eq)]
pub struct Prompt {
    /// The canonical text.
    pub text: Vec<u8>,
    /// Its segments, in order; together they are the whole text.
    pub segments: Vec<Segment>,
    /// The rest of the body.
    pub asked: Asked,
}

impl fmt::Debug for Prompt {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // Never the text: it is somebody's code.
        write!(f, "Prompt({} bytes, {} segments)", self.text.len(), self.segments.len())
    }
}

impl Prompt {
    /// Reads a request body.
    ///
    /// # Errors
    /// [`PromptError`] for what is no JSON object with a prompt in it.
    pub fn from_body(api: Api, body: &[u8]) -> Result<Self, PromptError> {
        let text = std::str::from_utf8(body).map_err(|_| PromptError::NoText)?;
        let mut parts = Parts::default();
        let mut scan = Scan::new(text, true);
        scan.object(|scan, key| parts.member(scan, api, key))?;
        scan.finish()?;
        parts.together(text.len())
    }

    /// Where the segment at `n` lies in the text.
    pub fn range(&self, n: usize) -> Range<usize> {
        let from = n.checked_sub(1).and_then(|before| self.segments.get(before)).map_or(0, |s| s.end);
        from..self.segments.get(n).map_or(from, |s| s.end)
    }

    /// The text of a segment, newline included.
    pub fn segment(&self, n: usize) -> &[u8] {
        &self.text[self.range(n)]
    }

    /// Number of the segment that holds the byte at `at`.
    pub fn segment_at(&self, at: usize) -> Option<usize> {
        let n = self.segments.partition_point(|s| s.end <= at);
        (n < self.segments.len()).then_some(n)
    }

    /// Where the tools end and where the system text ends.
    pub fn borders(&self) -> (usize, usize) {
        let end_of =
            |parts: &[Part]| self.segments.iter().take_while(|s| parts.contains(&s.part)).last().map_or(0, |s| s.end);
        (end_of(&[Part::Tool]), end_of(&[Part::Tool, Part::System]))
    }
}

/// The parts as they come, in whatever order the body has them.
#[derive(Default)]
struct Parts {
    tools: Piece,
    system: Piece,
    messages: Piece,
    found: bool,
    asked: Asked,
    sessions: [Option<String>; 3],
}

#[derive(Default)]
struct Piece {
    text: Vec<u8>,
    segments: Vec<Segment>,
}

impl Piece {
    fn end(&mut self, part: Part, index: Option<u32>, role: String, field: &'static str) {
        self.text.push(b'\n');
        self.segments.push(Segment { part, index, role, field, end: self.text.len() });
    }
}

impl Parts {
    fn member(&mut self, scan: &mut Scan<'_>, api: Api, key: &[u8]) -> Result<(), PromptError> {
        match (api, key) {
            (_, b"tools") => self.tools(scan, "tools")?,
            (Api::Chat, b"functions") if self.tools.segments.is_empty() => self.tools(scan, "functions")?,
            (Api::Messages, b"system") => self.system(scan, "system")?,
            (Api::Responses, b"instructions") => self.system(scan, "instructions")?,
            (Api::Chat | Api::Messages, b"messages") => self.messages(scan, api, "messages")?,
            (Api::Responses, b"input") => self.messages(scan, api, "input")?,
            (Api::Completions, b"prompt") => {
                self.found = true;
                self.messages = Piece::default();
                scan.value(&mut self.messages.text)?;
                self.messages.end(Part::Text, None, String::new(), "prompt");
            }
            (_, b"model") => self.asked.model = name(scan)?,
            (_, b"stream") => {
                let mut value = Vec::new();
                scan.value(&mut value)?;
                self.asked.stream = value == b"true";
            }
            (_, b"prompt_cache_key") => self.sessions[0] = name(scan)?,
            (_, b"metadata") => self.sessions[1] = metadata(scan)?,
            (_, b"user") => self.sessions[2] = name(scan)?,
            _ => scan.skip()?,
        }
        Ok(())
    }

    fn tools(&mut self, scan: &mut Scan<'_>, field: &'static str) -> Result<(), PromptError> {
        if scan.peek()? != b'[' {
            return Ok(scan.skip()?);
        }
        self.tools = Piece::default();
        scan.array(|scan| {
            scan.value(&mut self.tools.text)?;
            let index = self.tools.segments.len() as u32;
            self.tools.end(Part::Tool, Some(index), String::new(), field);
            Ok(())
        })
    }

    fn system(&mut self, scan: &mut Scan<'_>, field: &'static str) -> Result<(), PromptError> {
        self.system = Piece::default();
        match scan.peek()? {
            b'n' => scan.skip()?,
            b'[' => scan.array(|scan| {
                scan.value(&mut self.system.text)?;
                let index = self.system.segments.len() as u32;
                self.system.end(Part::System, Some(index), String::new(), field);
                Ok::<(), ScanError>(())
            })?,
            _ => {
                scan.value(&mut self.system.text)?;
                self.system.end(Part::System, None, String::new(), field);
            }
        }
        Ok(())
    }

    fn messages(&mut self, scan: &mut Scan<'_>, api: Api, field: &'static str) -> Result<(), PromptError> {
        self.found = true;
        self.messages = Piece::default();
        let piece = &mut self.messages;
        if scan.peek()? != b'[' {
            // A bare text is what the user says.
            scan.value(&mut piece.text)?;
            piece.end(Part::Message, Some(0), "user".into(), field);
            return Ok(());
        }
        // They are nearly all of a body: a buffer that grows would copy them several times.
        piece.text.reserve(scan.left());
        let mut leading = api == Api::Chat;
        scan.array(|scan| {
            let (mut role, mut kind) = (None, None);
            if scan.peek()? == b'{' {
                scan.members(&mut piece.text, &mut |key, at| match at {
                    Where::Key => api != Api::Responses || !matches!(key, b"id" | b"status" | b"encrypted_content"),
                    Where::Value(value) => {
                        match key {
                            b"role" => role = word(value),
                            b"type" => kind = word(value),
                            _ => {}
                        }
                        true
                    }
                })?;
            } else {
                scan.value(&mut piece.text)?;
            }
            let role = role.or(kind).unwrap_or_default();
            leading &= matches!(&*role, "system" | "developer");
            let part = if leading { Part::System } else { Part::Message };
            let index = piece.segments.len() as u32;
            piece.end(part, Some(index), role, field);
            Ok(())
        })
    }

    fn together(mut self, capacity: usize) -> Result<Prompt, PromptError> {
        if !self.found {
            return Err(PromptError::NoPrompt);
        }
        self.asked.tools = self.tools.segments.len() as u32;
        self.asked.session = self.sessions.into_iter().flatten().next();
        let mut text = Vec::new();
        let mut segments = Vec::with_capacity(64);
        let total = self.tools.text.len() + self.system.text.len() + self.messages.text.len();
        for piece in [self.tools, self.system, self.messages] {
            let from = text.len();
            if text.is_empty() && piece.text.capacity() >= total {
                text = piece.text;
            } else {
                text.reserve(total.min(2 * capacity).saturating_sub(from));
                text.extend_from_slice(&piece.text);
            }
            segments.extend(piece.segments.into_iter().map(|s| Segment { end: from + s.end, ..s }));
        }
        Ok(Prompt { text, segments, asked: self.asked })
    }
}

/// A string value, cut; `None` for any other.
fn name(scan: &mut Scan<'_>) -> Result<Option<String>, ScanError> {
    if scan.peek()? != b'"' {
        scan.skip()?;
        return Ok(None);
    }
    let mut value = Vec::new();
    scan.value(&mut value)?;
    Ok(plain(&value, MAX_NAME_BYTES))
}

fn word(value: &[u8]) -> Option<String> {
    plain(value, MAX_ROLE_BYTES)
}

/// The text of a written string. `None` for what is no string, or an empty one.
fn plain(written: &[u8], limit: usize) -> Option<String> {
    let inner = written.strip_prefix(b"\"")?.strip_suffix(b"\"")?;
    let mut text = String::from_utf8_lossy(inner).into_owned();
    while text.len() > limit {
        text.pop();
    }
    (!text.is_empty()).then_some(text)
}

/// The session, or the user, that `metadata` names.
fn metadata(scan: &mut Scan<'_>) -> Result<Option<String>, ScanError> {
    if scan.peek()? != b'{' {
        scan.skip()?;
        return Ok(None);
    }
    let (mut session, mut user) = (None, None);
    scan.object(|scan, key| {
        match key {
            b"session_id" | b"sessionId" | b"conversation_id" => session = name(scan)?,
            b"user_id" => user = user_id(scan)?,
            _ => scan.skip()?,
        }
        Ok::<(), ScanError>(())
    })?;
    Ok(session.or(user))
}

/// Most bytes of a `user_id` that are looked at for a session.
const MAX_USER_ID_BYTES: usize = 4_096;

/// The session that a `metadata.user_id` holds, else the user. Claude Code puts its session there: as the end of
/// `user_HASH_account_ID_session_ID`, from 2.1.78 on as `session_id` of an object that is written into the string.
fn user_id(scan: &mut Scan<'_>) -> Result<Option<String>, ScanError> {
    if scan.peek()? != b'"' {
        scan.skip()?;
        return Ok(None);
    }
    let mut written = Vec::new();
    scan.value(&mut written)?;
    if written.len() <= MAX_USER_ID_BYTES
        && let Ok(text) = serde_json::from_slice::<String>(&written)
    {
        if let Ok(serde_json::Value::Object(fields)) = serde_json::from_str(&text) {
            let session = fields.get("session_id").and_then(|value| value.as_str()).map(|id| cut(id.to_owned()));
            return Ok(session.filter(|id| !id.is_empty()));
        }
        if let Some((_, session)) = text.split_once("_session_")
            && !session.is_empty()
        {
            return Ok(Some(cut(session.to_owned())));
        }
    }
    Ok(plain(&written, MAX_NAME_BYTES))
}

fn cut(mut name: String) -> String {
    while name.len() > MAX_NAME_BYTES {
        name.pop();
    }
    name
}

#[cfg(test)]
mod tests {
    use super::*;

    fn prompt(api: Api, body: &str) -> Prompt {
        Prompt::from_body(api, body.as_bytes()).unwrap()
    }

    fn shown(prompt: &Prompt) -> Vec<(String, String)> {
        let text = |n| String::from_utf8(prompt.segment(n).to_vec()).unwrap();
        (0..prompt.segments.len()).map(|n| (prompt.segments[n].to_string(), text(n))).collect()
    }

    fn names(prompt: &Prompt) -> Vec<String> {
        prompt.segments.iter().map(Segment::to_string).collect()
    }

    #[test]
    fn a_chat_has_tools_first_then_leading_system_messages_then_the_rest() {
        let prompt = prompt(
            Api::Chat,
            r#"{"model":"m","messages":[{"role":"developer","content":"be brief"},{"role":"user","content":"hi"},
                {"content":null,"role":"assistant"},{"role":"system","content":"late"}],"stream":true,
                "tools":[{"type":"function","function":{"name":"f","cache_control":{"type":"ephemeral"}}}]}"#,
        );
        assert_eq!(
            shown(&prompt),
            [
                ("tool[0]", "{\"function\":{\"name\":\"f\"},\"type\":\"function\"}\n"),
                ("system", "{\"content\":\"be brief\",\"role\":\"developer\"}\n"),
                ("msg[1]/user", "{\"content\":\"hi\",\"role\":\"user\"}\n"),
                ("msg[2]/assistant", "{\"content\":null,\"role\":\"assistant\"}\n"),
                ("msg[3]/system", "{\"content\":\"late\",\"role\":\"system\"}\n"),
            ]
            .map(|(a, b)| (a.to_owned(), b.to_owned()))
        );
        assert_eq!(prompt.asked, Asked { model: Some("m".into()), stream: true, tools: 1, session: None });
        assert_eq!(prompt.borders(), (44, 44 + 42));
    }

    #[test]
    fn a_responses_body_leaves_out_what_the_model_never_sees() {
        let prompt = prompt(
            Api::Responses,
            r#"{"input":[{"type":"message","role":"developer","content":"d","id":"x"},
                {"type":"reasoning","encrypted_content":"zzz","summary":[],"id":"r"},
                {"type":"function_call","status":"completed","name":"f","arguments":"{}","call_id":"c"}],
                "instructions":"i","prompt_cache_key":"s-1"}"#,
        );
        assert_eq!(names(&prompt), ["system", "msg[0]/developer", "msg[1]/reasoning", "msg[2]/function_call"]);
        assert_eq!(prompt.segment(0), b"\"i\"\n");
        assert_eq!(prompt.segment(2), b"{\"summary\":[],\"type\":\"reasoning\"}\n");
        assert_eq!(prompt.asked.session.as_deref(), Some("s-1"));
        let bare = Prompt::from_body(Api::Responses, br#"{"input":"hello"}"#).unwrap();
        assert_eq!(shown(&bare), [("msg[0]/user".to_owned(), "\"hello\"\n".to_owned())]);
    }

    #[test]
    fn a_messages_body_names_the_places_of_a_list_of_system_texts() {
        let body = r#"{"messages":[{"role":"user","content":[{"type":"text","text":"x","cache_control":{}}]}],
            "system":[{"type":"text","text":"a"},{"type":"text","text":"b"}],
            "metadata":{"user_id":"user_1_account_2_session_abc"}}"#;
        let list = prompt(Api::Messages, body);
        assert_eq!(names(&list), ["system[0]", "system[1]", "msg[0]/user"]);
        assert_eq!(list.asked.session.as_deref(), Some("abc"));
        assert_eq!(list.segment(2), b"{\"content\":[{\"text\":\"x\",\"type\":\"text\"}],\"role\":\"user\"}\n");
        let one = prompt(Api::Messages, r#"{"system":"s","messages":[]}"#);
        assert_eq!(names(&one), ["system"]);
    }

    #[test]
    fn the_order_of_keys_changes_nothing() {
        let a =
            prompt(Api::Chat, r#"{"messages":[{"role":"user","content":"x"}],"tools":[{"a":1,"b":{"d":1,"c":2}}]}"#);
        let b =
            prompt(Api::Chat, r#"{"tools":[{"b":{"c":2,"d":1},"a":1}],"messages":[{"content":"x","role":"user"}]}"#);
        assert_eq!(a.text, b.text);
    }

    #[test]
    fn what_holds_no_prompt_is_told() {
        let error = |body: &[u8]| Prompt::from_body(Api::Chat, body).unwrap_err();
        assert_eq!(error(b"{\"model\":\"m\"}"), PromptError::NoPrompt);
        assert_eq!(error(b"\xff"), PromptError::NoText);
        assert!(matches!(error(b"[1]"), PromptError::Json(_)));
        assert!(matches!(error(b"{\"messages\":["), PromptError::Json(ScanError::Cut)));
        assert_eq!(prompt(Api::Completions, r#"{"prompt":"once"}"#).segment(0), b"\"once\"\n");
    }

    #[test]
    fn a_session_in_an_object_in_the_user_id_is_the_session_and_nothing_else_of_it_is_kept() {
        let session = |user_id: &str| {
            let body = serde_json::json!({"messages": [], "user": "me", "metadata": {"user_id": user_id}});
            prompt(Api::Messages, &body.to_string()).asked.session
        };
        let id = r#"{"device_id":"d1","account_uuid":"a1","session_id":"s-1"}"#;
        assert_eq!(session(id).as_deref(), Some("s-1"));
        // Without a session there: what else names one.
        assert_eq!(session(r#"{"device_id":"d1","account_uuid":"a1"}"#).as_deref(), Some("me"));
        assert_eq!(session("user_1_account__session_s-2").as_deref(), Some("s-2"));
        assert_eq!(session("someone").as_deref(), Some("someone"));
    }
}
