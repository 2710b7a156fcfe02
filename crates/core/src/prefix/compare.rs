//! Two prompts of one lineage, compared byte by byte.

use super::prompt::Prompt;

/// Size of the blocks in which engines cache, in bytes of canonical text: 16 tokens of some four bytes.
pub const BLOCK_BYTES: usize = 64;

/// Length of the beginning that both share.
pub fn common(a: &[u8], b: &[u8]) -> usize {
    // Whole slices are compared at the speed of memory; only the block with the difference is looked at by bytes.
    const STEP: usize = 4 << 10;
    let shorter = a.len().min(b.len());
    let mut at = 0;
    while at < shorter {
        let to = (at + STEP).min(shorter);
        if a[at..to] != b[at..to] {
            let same = a[at..to].iter().zip(&b[at..to]).take_while(|(x, y)| x == y).count();
            return at + same;
        }
        at = to;
    }
    shorter
}

/// The same when the system text stands before the tools, as some chat templates have it.
pub fn common_other_order(a: &Prompt, b: &Prompt) -> usize {
    let parts = |p: &Prompt| {
        let (tools, system) = p.borders();
        [tools..system, 0..tools, system..p.text.len()]
    };
    let (a_parts, b_parts) = (parts(a), parts(b));
    // The parts are joined by their bytes, not by their borders: one that is longer runs into what follows in the other.
    let pieces = |p: &Prompt, parts: [std::ops::Range<usize>; 3]| -> Vec<u8> {
        parts.into_iter().flat_map(|range| p.text[range].iter().copied()).collect()
    };
    if a_parts[0].is_empty() && b_parts[0].is_empty() || a_parts[1].is_empty() && b_parts[1].is_empty() {
        return common(&a.text, &b.text);
    }
    // System and tools are small beside the messages; those are compared in place if all before them is the same.
    let (a_head, b_head) = (a_parts[2].start, b_parts[2].start);
    let heads = |p: &Prompt, parts: &[std::ops::Range<usize>; 3]| pieces(p, [parts[0].clone(), parts[1].clone(), 0..0]);
    let (a_bytes, b_bytes) = (heads(a, &a_parts), heads(b, &b_parts));
    if a_bytes == b_bytes {
        return a_head + common(&a.text[a_head..], &b.text[b_head..]);
    }
    if a_head == b_head {
        return common(&a_bytes, &b_bytes);
    }
    common(&pieces(a, a_parts), &pieces(b, b_parts))
}

/// Name of the segment of the former prompt in which the first difference lies; `None` when it is repeated whole.
pub fn place(former: &Prompt, common: usize) -> Option<String> {
    former.segment_at(common).map(|n| former.segments[n].to_string())
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::lane::Api;

    fn prompt(tools: &str, system: &str, user: &str) -> Prompt {
        let body = serde_json::json!({
            "tools": [{ "name": tools }],
            "messages": [{ "role": "system", "content": system }, { "role": "user", "content": user }],
        });
        Prompt::from_body(Api::Chat, body.to_string().as_bytes()).unwrap()
    }

    #[test]
    fn a_change_in_the_tools_costs_less_where_they_stand_behind_the_system_text() {
        let (a, b) = (prompt("aaaa", "system", "user"), prompt("aabb", "system", "user"));
        // {"name":"aa...
        assert_eq!(common(&a.text, &b.text), 11);
        assert_eq!(place(&a, 11).as_deref(), Some("tool[0]"));
        let system = "{\"content\":\"system\",\"role\":\"system\"}\n".len();
        assert_eq!(common_other_order(&a, &b), system + 11);
    }

    #[test]
    fn a_prompt_that_goes_on_repeats_the_former_whole() {
        let (a, b) = (prompt("t", "s", "u"), prompt("t", "s", "u"));
        assert_eq!((common(&a.text, &b.text), common_other_order(&a, &b)), (a.text.len(), a.text.len()));
        assert_eq!(place(&a, a.text.len()), None);
    }

    proptest! {
        #[test]
        fn common_is_the_longest_shared_beginning(shared in prop::collection::vec(any::<u8>(), 0..9_000), a in 0u8..4, b in 4u8..8) {
            let with = |last: u8| [&shared[..], &[last]].concat();
            prop_assert_eq!(common(&with(a), &with(b)), shared.len());
            prop_assert_eq!(common(&shared, &with(b)), shared.len());
        }
    }
}
