//! What happened beside the measurements: a lane that answers with another model, a budget that was used up, a clock that
//! was set.

use serde_json::{Value, json};

use crate::palette::Palette;
use crate::table::{Cell, Column, Table};
use crate::units::one_line;

/// One event.
#[derive(Clone, Debug, PartialEq)]
pub struct Happened {
    /// When, UTC; `None` for a moment beyond the calendar.
    pub utc: Option<String>,
    /// When, in the reader's zone, to the minute.
    pub local: Option<String>,
    /// Campaign that it concerns.
    pub campaign: Option<String>,
    /// Lane that it concerns.
    pub lane: Option<String>,
    /// Task class that it concerns.
    pub task: Option<String>,
    /// A stable word: `model_changed`.
    pub kind: String,
    /// What was noted of it.
    pub detail: Value,
}

/// One line per event, or that there was none.
pub fn render(happened: &[Happened], width: usize, palette: Palette) -> String {
    if happened.is_empty() {
        return "nothing happened beside the measurements\n".to_owned();
    }
    table(happened).render(width, palette)
}

/// One row per event, oldest first.
pub fn table(happened: &[Happened]) -> Table {
    let mut table = Table::new(vec![
        Column::words("local", "when"),
        Column::data("utc"),
        Column::words("lane", "lane"),
        Column::data("task"),
        Column::data("campaign"),
        Column::words("event", "event"),
        Column::words("detail", "detail"),
    ]);
    for one in happened {
        let text = |text: &Option<String>| Cell::new(text.as_deref().unwrap_or_default(), text.clone());
        table.row(vec![
            text(&one.local),
            Cell::value(one.utc.clone()),
            text(&one.lane),
            Cell::value(one.task.clone()),
            Cell::value(one.campaign.clone()),
            Cell::new(one.kind.replace('_', " "), one.kind.clone()),
            Cell::new(words(&one.detail), one.detail.to_string()),
        ]);
    }
    table
}

/// All of it for programs.
pub fn json(happened: &[Happened]) -> Value {
    let one = |h: &Happened| {
        json!({
            "utc": h.utc, "local": h.local, "campaign": h.campaign, "lane": h.lane, "task": h.task, "event": h.kind,
            "detail": h.detail,
        })
    };
    json!({ "events": happened.iter().map(one).collect::<Vec<_>>() })
}

/// `from a, to b`: the keys of an object with their values; what is null says nothing.
fn words(detail: &Value) -> String {
    let value = |value: &Value| value.as_str().map_or_else(|| value.to_string(), one_line);
    match detail.as_object() {
        Some(map) => {
            let told = map.iter().filter(|(_, v)| !v.is_null());
            told.map(|(key, v)| format!("{} {}", one_line(key).replace('_', " "), value(v)))
                .collect::<Vec<_>>()
                .join(", ")
        }
        None => value(detail),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_event_is_told_in_one_line() {
        let event = |kind: &str, lane: Option<&str>, detail: Value| Happened {
            utc: Some("2026-12-01T15:00:02Z".into()),
            local: Some("2026-12-01 16:00".into()),
            campaign: Some("7f3a9c01b2d4-2026-11-30".into()),
            lane: lane.map(str::to_owned),
            task: None,
            kind: kind.into(),
            detail,
        };
        let all = [
            event("campaign_begun", None, json!({"site": null})),
            event("model_changed", Some("lane-a"), json!({"from": "small-1", "to": "small-2"})),
        ];
        insta::assert_snapshot!(render(&all, 90, Palette::PLAIN), @r"
        when              lane    event           detail
        2026-12-01 16:00          campaign begun
        2026-12-01 16:00  lane-a  model changed   from small-1, to small-2
        ");
        assert_eq!(json(&all)["events"][1]["detail"]["to"], "small-2");
        assert!(render(&[], 90, Palette::PLAIN).starts_with("nothing happened"));
    }
}
