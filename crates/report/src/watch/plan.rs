//! The plan of a campaign, burst by burst: what `watch --dry-run` shows.

use serde_json::{Value, json};

use crate::table::{Cell, Column, Table};

/// One planned burst of one lane and task class.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PlannedLine {
    /// Site, where the configuration has several.
    pub site: Option<String>,
    /// Local date, `YYYY-MM-DD`.
    pub date: String,
    /// Local begin of the window, `16:00`.
    pub window: String,
    /// Instant, `YYYY-MM-DDTHH:MM:SSZ`; `None` where there is no burst.
    pub utc: Option<String>,
    /// What is special: `gap`, `fold`, `merged`, `no_such_date`.
    pub flag: Option<&'static str>,
    /// Name of the lane.
    pub lane: String,
    /// Name of the task class.
    pub task: String,
}

/// The plan as a table. Sites have a column where there are any.
pub fn table(lines: &[PlannedLine]) -> Table {
    let sites = lines.iter().any(|line| line.site.is_some());
    let mut columns = vec![
        Column::words("date", "date"),
        Column::words("window", "window"),
        Column::words("utc", "UTC"),
        Column::words("flag", "flag"),
        Column::words("lane", "lane"),
        Column::words("task", "task"),
    ];
    if sites {
        columns.push(Column::words("site", "site"));
    }
    let mut table = Table::new(columns);
    for line in lines {
        let optional = |text: Option<&str>| text.map_or_else(Cell::absent, Cell::text);
        let mut cells = vec![
            Cell::text(&line.date),
            Cell::text(&line.window),
            optional(line.utc.as_deref()),
            line.flag.map_or_else(|| Cell::new("", Value::Null), Cell::text),
            Cell::text(&line.lane),
            Cell::text(&line.task),
        ];
        if sites {
            cells.push(optional(line.site.as_deref()));
        }
        table.row(cells);
    }
    table
}

/// The plan for programs: `{"bursts": [...]}`.
pub fn json(lines: &[PlannedLine]) -> Value {
    json!({ "bursts": table(lines).json() })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::palette::Palette;

    fn line(site: Option<&str>, utc: Option<&str>, flag: Option<&'static str>) -> PlannedLine {
        PlannedLine {
            site: site.map(str::to_owned),
            date: "2026-03-29".into(),
            window: "02:30".into(),
            utc: utc.map(str::to_owned),
            flag,
            lane: "lane-a".into(),
            task: "inline-assist".into(),
        }
    }

    #[test]
    fn a_burst_has_six_fields_and_a_seventh_only_with_sites() {
        let one = json(&[line(None, None, Some("merged"))]);
        let expected = json!({"bursts": [{"date": "2026-03-29", "window": "02:30", "utc": null, "flag": "merged",
            "lane": "lane-a", "task": "inline-assist"}]});
        assert_eq!(one, expected);
        let two = json(&[line(Some("berlin"), Some("2026-03-29T01:00:00Z"), None)]);
        assert_eq!((&two["bursts"][0]["site"], &two["bursts"][0]["flag"]), (&json!("berlin"), &Value::Null));
    }

    #[test]
    fn a_window_without_a_burst_is_told() {
        let lines = [line(None, Some("2026-03-29T01:00:00Z"), Some("gap")), line(None, None, Some("merged"))];
        insta::assert_snapshot!(table(&lines).render(100, Palette::PLAIN), @r"
        date        window  UTC                   flag    lane    task
        2026-03-29  02:30   2026-03-29T01:00:00Z  gap     lane-a  inline-assist
        2026-03-29  02:30   -                     merged  lane-a  inline-assist
        ");
    }
}
