//! Token counts in all the spellings that servers use, put into one shape.
//!
//! OpenAI: `prompt_tokens` (cached part included) with `prompt_tokens_details.cached_tokens`; Responses:
//! `input_tokens` with `input_tokens_details`; Anthropic: `input_tokens` *without* what was read from or written to
//! the cache; DeepSeek: `prompt_cache_hit_tokens`; Kimi: `cached_tokens` at the top; vLLM and OpenRouter: cache
//! writes inside the details. Totals run: the last report wins, nothing is added up.

use peaklane_core::record::Usage;
use serde_json::Value;

use super::answer::Answer;

fn count(value: Option<&Value>) -> Option<u64> {
    match value {
        Some(Value::Number(n)) => {
            // Some gateways report floats; a fraction or a negative count is no count.
            n.as_u64().or_else(|| n.as_f64().filter(|f| *f >= 0.0 && f.fract() == 0.0 && *f < 1e15).map(|f| f as u64))
        }
        _ => None,
    }
}

fn first(object: &Value, paths: &[&[&str]]) -> Option<u64> {
    paths.iter().find_map(|path| count(path.iter().try_fold(object, |v, key| v.get(key))))
}

/// Takes a `usage` object of OpenAI's chat completions, legacy completions or Responses.
pub(crate) fn openai(answer: &mut Answer, usage: &Value) {
    let seen = Usage {
        prompt: first(usage, &[&["prompt_tokens"], &["input_tokens"]]),
        completion: first(usage, &[&["completion_tokens"], &["output_tokens"]]),
        cached: first(
            usage,
            &[
                &["prompt_tokens_details", "cached_tokens"],
                &["input_tokens_details", "cached_tokens"],
                &["prompt_cache_hit_tokens"],
                &["cached_tokens"],
                &["cache_read_input_tokens"],
                &["num_cached_tokens"],
            ],
        ),
        cache_write: first(
            usage,
            &[
                &["prompt_tokens_details", "cache_write_tokens"],
                &["prompt_tokens_details", "created_cache_tokens"],
                &["prompt_tokens_details", "cache_creation_tokens"],
                &["input_tokens_details", "cache_write_tokens"],
                &["input_tokens_details", "created_cache_tokens"],
                &["cache_creation_input_tokens"],
            ],
        ),
        reasoning: first(
            usage,
            &[
                &["completion_tokens_details", "reasoning_tokens"],
                &["output_tokens_details", "reasoning_tokens"],
                &["reasoning_tokens"],
            ],
        ),
    };
    let kept = &mut answer.usage;
    kept.prompt = seen.prompt.or(kept.prompt);
    kept.completion = seen.completion.or(kept.completion);
    kept.cached = seen.cached.or(kept.cached);
    kept.cache_write = seen.cache_write.or(kept.cache_write);
    kept.reasoning = seen.reasoning.or(kept.reasoning);
}

/// Takes a `usage` object of Anthropic's messages: the whole prompt is input + cache read + cache write.
pub(crate) fn anthropic(answer: &mut Answer, usage: &Value) {
    let names = ["input_tokens", "cache_read_input_tokens", "cache_creation_input_tokens"];
    for (part, name) in answer.input_parts.iter_mut().zip(names) {
        *part = count(usage.get(name)).or(*part);
    }
    let [input, read, write] = answer.input_parts;
    answer.usage.prompt = input.map(|n| n + read.unwrap_or(0) + write.unwrap_or(0));
    answer.usage.cached = read;
    answer.usage.cache_write = write;
    answer.usage.completion = count(usage.get("output_tokens")).or(answer.usage.completion);
    answer.usage.reasoning =
        first(usage, &[&["output_tokens_details", "thinking_tokens"], &["thinking_tokens"]]).or(answer.usage.reasoning);
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn read(usage: Value) -> Usage {
        let mut answer = Answer::default();
        openai(&mut answer, &usage);
        answer.usage
    }

    #[test]
    fn cached_tokens_are_found_in_every_spelling() {
        for usage in [
            json!({"prompt_tokens": 30, "prompt_tokens_details": {"cached_tokens": 24}}),
            json!({"input_tokens": 30, "input_tokens_details": {"cached_tokens": 24}}),
            json!({"prompt_tokens": 30, "prompt_cache_hit_tokens": 24, "prompt_cache_miss_tokens": 6}),
            json!({"prompt_tokens": 30, "cached_tokens": 24}),
        ] {
            let seen = read(usage);
            assert_eq!((seen.prompt, seen.cached), (Some(30), Some(24)));
        }
    }

    #[test]
    fn what_is_not_reported_stays_unknown_and_a_reported_zero_is_zero() {
        assert_eq!(read(json!({"prompt_tokens": 9})).cached, None);
        assert_eq!(read(json!({"prompt_tokens": 9, "prompt_tokens_details": null})).cached, None);
        assert_eq!(read(json!({"prompt_tokens": 9, "prompt_tokens_details": {"cached_tokens": 0}})).cached, Some(0));
        assert_eq!(read(json!({"prompt_tokens": -1, "completion_tokens": 2.5})), Usage::default());
    }

    #[test]
    fn anthropic_parts_are_one_prompt_and_repeated_values_are_not_added() {
        let mut answer = Answer::default();
        anthropic(
            &mut answer,
            &json!({"input_tokens": 7, "cache_read_input_tokens": 100, "cache_creation_input_tokens": 5}),
        );
        anthropic(&mut answer, &json!({"output_tokens": 3, "input_tokens": 7, "cache_read_input_tokens": 100}));
        assert_eq!(
            (answer.usage.prompt, answer.usage.cached, answer.usage.completion),
            (Some(112), Some(100), Some(3))
        );
    }
}
