//! What broke the prefix of a session, how often, and what it cost.

use std::collections::BTreeMap;

use serde::Serialize;

use crate::call::{BreakKind, CallRecord};
use crate::prefix::blame::refilled_tokens;

/// All breaks of one sort at one place.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct BreakGroup {
    /// What sort of change it is.
    pub kind: BreakKind,
    /// The place, as a field path; places in lists that grow are written `[*]`.
    pub path: String,
    /// How often.
    pub times: u64,
    /// Bytes of former prompts behind the break, in sum.
    pub lost_bytes: u64,
    /// Tokens prefilled again because of it, estimated from the reported tokens of each prompt. `None`: none were.
    pub refilled_tokens: Option<u64>,
    /// What stood there, once.
    pub before: String,
    /// What stood there then.
    pub after: String,
}

/// Groups the breaks of calls, the costliest first.
pub(super) fn groups(calls: &[&CallRecord]) -> Vec<BreakGroup> {
    let mut groups: BTreeMap<(BreakKind, String), BreakGroup> = BTreeMap::new();
    for call in calls {
        let Some(figures) = &call.prefix else { continue };
        let (Some(found), Some(lost)) = (&figures.divergence, figures.lost_bytes()) else { continue };
        let path = general(&found.path);
        let tokens = refilled_tokens(figures, call.record.usage.prompt.or(call.estimated_prompt_tokens));
        let group = groups.entry((found.kind, path.clone())).or_insert_with(|| BreakGroup {
            kind: found.kind,
            path,
            times: 0,
            lost_bytes: 0,
            refilled_tokens: None,
            before: found.before.clone(),
            after: found.after.clone(),
        });
        group.times += 1;
        group.lost_bytes += lost;
        if let Some(tokens) = tokens {
            group.refilled_tokens = Some(group.refilled_tokens.unwrap_or(0) + tokens);
        }
    }
    let mut list: Vec<BreakGroup> = groups.into_values().collect();
    list.sort_by(|a, b| b.lost_bytes.cmp(&a.lost_bytes).then_with(|| a.path.cmp(&b.path)));
    list
}

/// A path with the places in the history made one: the message that is pruned is another one each time. The first
/// message keeps its place: it is the system text, or what stands in its stead.
fn general(path: &str) -> String {
    for field in ["messages[", "input["] {
        if let Some(rest) = path.strip_prefix(field)
            && let Some((place, rest)) = rest.split_once(']')
            && place != "0"
        {
            return format!("{field}*]{rest}");
        }
    }
    path.to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn places_in_the_history_are_one_and_the_first_is_its_own() {
        assert_eq!(general("messages[0].content"), "messages[0].content");
        assert_eq!(general("messages[17].content[0].text"), "messages[*].content[0].text");
        assert_eq!(general("input[3]"), "input[*]");
        assert_eq!(general("tools[3].function.description"), "tools[3].function.description");
    }
}
