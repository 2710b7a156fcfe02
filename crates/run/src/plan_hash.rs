//! The hash of what is asked and how it is judged: bursts with other hashes do not mix.

use peaklane_core::config::{Task, TaskKind};
use sha2::{Digest, Sha256};

/// Sixteen hexadecimal digits over prompt, system text, parameters, check and floor of a task, and streaming. Reason,
/// author and date of the floor are commentary and no part of it.
pub fn plan_hash(task: &Task, stream: bool) -> String {
    let mut hash = Sha256::new();
    let mut part = |name: &str, value: &str| {
        // Lengths keep neighbours apart: ("ab", "c") is not ("a", "bc").
        hash.update(format!("{name}:{}:{value};", value.len()));
    };
    part("prompt", task.prompt.as_deref().unwrap_or_default());
    part("system", task.system.as_deref().unwrap_or_default());
    part("max_tokens", &task.max_tokens.to_string());
    part("temperature", &task.temperature.to_string());
    part("check", &serde_json::to_string(&task.check).unwrap_or_default());
    part("floor_us", &task.latency_floor().map(|f| f.as_us()).unwrap_or_default().to_string());
    part("tasks_per_hour", &task.tasks_per_hour.unwrap_or_default().to_string());
    if let TaskKind::Batch = task.judged_by() {
        part("stretch_us", &task.sustained_stretch().map(|s| s.as_us()).unwrap_or_default().to_string());
        part("concurrency", &task.concurrency.unwrap_or_default().to_string());
    }
    part("accept_budget_stop", &task.accept_budget_stop.to_string());
    part("stream", &stream.to_string());
    hash.finalize().iter().take(8).map(|b| format!("{b:02x}")).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn another_prompt_is_another_series_and_another_author_is_not() {
        let task = Task::inline_assist();
        let base = plan_hash(&task, true);
        assert_eq!(base.len(), 16);
        let mut other = task.clone();
        other.floor_author = Some("somebody".into());
        assert_eq!(plan_hash(&other, true), base);
        other.prompt = Some("another".into());
        assert_ne!(plan_hash(&other, true), base);
        assert_ne!(plan_hash(&task, false), base);
        let batch = |stretch_s| {
            let stretch = Some(peaklane_core::config::Micros::from_secs(stretch_s));
            plan_hash(&Task { tasks_per_hour: Some(60), stretch, ..task.clone() }, true)
        };
        assert_ne!(batch(60), batch(61));
    }
}
