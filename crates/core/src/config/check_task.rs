//! The rules of one task class: one prompt, one way to be judged.

use super::check::Found;
use super::micros::Micros;
use super::task::{LEAST_STRETCH, MOST_STRETCH, Task, TaskKind};

const MAX_TEXT: usize = 1024 * 1024;

pub(super) fn check(task: &Task, index: usize, total: Micros, found: &mut Found) {
    let key = |name: &str| vec!["task".into(), index.into(), name.into()];
    match (&task.prompt, &task.prompt_file) {
        (None, None) => {
            let what = format!("task `{}` has no prompt", task.name);
            found.table(vec!["task".into(), index.into()], what, "add `prompt = \"...\"` or `prompt_file = \"PATH\"`");
        }
        (Some(_), Some(_)) => {
            let what = format!("task `{}` has both `prompt` and `prompt_file`", task.name);
            found.key(key("prompt_file"), what, "leave one out");
        }
        (Some(prompt), None) if prompt.trim().is_empty() => {
            found.key(
                key("prompt"),
                format!("`prompt` of task `{}` is blank", task.name),
                "write what the lane is to do",
            );
        }
        _ => {}
    }
    for (name, text) in [("prompt", &task.prompt), ("system", &task.system)] {
        if text.as_ref().is_some_and(|text| text.len() > MAX_TEXT) {
            found.key(key(name), format!("`{name}` of task `{}` is longer than 1 MiB", task.name), "shorten it");
        }
    }
    if task.floor.is_some_and(Micros::is_zero) {
        found.key(
            key("floor"),
            format!("`floor` of task `{}` is no time at all", task.name),
            "write a floor such as \"25s\"",
        );
    }
    match (task.judged_by(), task.tasks_per_hour, task.floor) {
        (TaskKind::Batch, None, _) => {
            let what = format!("task `{}` is of kind batch but names no `tasks_per_hour`", task.name);
            found.key(key("kind"), what, "add `tasks_per_hour = N`");
        }
        (TaskKind::Batch, Some(_), Some(_)) => {
            let what = format!("batch task `{}` has a latency `floor`", task.name);
            found.key(
                key("floor"),
                what,
                "it is judged by `tasks_per_hour` alone: leave `floor` out, or make two task classes",
            );
        }
        (TaskKind::Latency, Some(_), _) => {
            let what = format!("task `{}` is of kind latency but names `tasks_per_hour`", task.name);
            found.key(key("tasks_per_hour"), what, "write `kind = \"batch\"` or leave `tasks_per_hour` out");
        }
        _ => {}
    }
    if let Some(rate) = task.tasks_per_hour {
        found.range(key("tasks_per_hour"), "tasks_per_hour", rate.into(), 1..=1_000_000);
    }
    throughput(task, index, found);
    if let Some(floor) = task.latency_floor()
        && floor > total
    {
        let what = format!("floor {floor} of task `{}` is longer than the total timeout {total}", task.name);
        found.key(key("floor"), what, format!("raise `total` in [timeouts] to at least {floor}, or lower the floor"));
    }
    found.range(key("max_tokens"), "max_tokens", task.max_tokens.into(), 1..=1_000_000);
    if !(0.0..=2.0).contains(&task.temperature) {
        found.key(key("temperature"), format!("`temperature` is {}", task.temperature), "write a number from 0 to 2");
    }
}

/// How a batch class is worked on. A latency class has attempts of a burst and nothing else.
fn throughput(task: &Task, index: usize, found: &mut Found) {
    let key = |name: &str| vec!["task".into(), index.into(), name.into()];
    if task.judged_by() == TaskKind::Latency {
        let place = |name: &str| match name {
            "concurrency" => "write it in [burst], or make it a batch task with `tasks_per_hour`",
            _ => "leave it out, or make it a batch task with `tasks_per_hour`",
        };
        for (name, written) in [("stretch", task.stretch.is_some()), ("concurrency", task.concurrency.is_some())] {
            if written {
                let what = format!("task `{}` is of kind latency but names `{name}`", task.name);
                found.key(key(name), what, place(name));
            }
        }
        return;
    }
    if let Some(stretch) = task.stretch.filter(|stretch| !(LEAST_STRETCH..=MOST_STRETCH).contains(stretch)) {
        found.key(
            key("stretch"),
            format!("`stretch` is {stretch}"),
            format!("write {LEAST_STRETCH} to {MOST_STRETCH}"),
        );
    }
    if let Some(concurrency) = task.concurrency {
        found.range(key("concurrency"), "concurrency", concurrency.into(), 1..=10_000);
    }
}

#[cfg(test)]
mod tests {
    use super::super::check::tests::{LANE, TASK, problem, problems};

    #[test]
    fn a_stretch_lasts_from_a_second_to_four_hours_with_a_bounded_number_in_flight() {
        let batch = |keys: &str| format!("{LANE}{TASK}tasks_per_hour = 60\n{keys}\n");
        for fine in ["stretch = '1s'", "stretch = '4h'", "concurrency = 1", "concurrency = 10000"] {
            assert_eq!(problems(&batch(fine)), [""; 0], "{fine}");
        }
        assert!(problem(&batch("stretch = '999ms'")).starts_with("`stretch` is 999ms in [[task]] 1: write 1s to 4h"));
        assert!(problem(&batch("stretch = '241min'")).starts_with("`stretch` is 4h1m"));
        assert!(problem(&batch("concurrency = 0")).starts_with("`concurrency` is 0 in [[task]] 1"));
        assert!(problem(&batch("concurrency = 10001")).starts_with("`concurrency` is 10001"));
    }

    #[test]
    fn a_latency_class_has_no_stretch_and_takes_its_concurrency_from_the_burst() {
        let told = problem(&format!("{LANE}{TASK}stretch = '10m'\n"));
        assert!(told.starts_with("task `t` is of kind latency but names `stretch`"), "{told}");
        let told = problem(&format!("{LANE}{TASK}concurrency = 4\n"));
        assert!(
            told.contains("names `concurrency`") && told.ends_with("make it a batch task with `tasks_per_hour`"),
            "{told}"
        );
    }
}
