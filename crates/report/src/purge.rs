//! What `data purge` removed, or would remove.

use serde_json::{Value, json};

use crate::notes::{self, Note};
use crate::palette::{Palette, Tone};
use crate::table::{Cell, Column, Table};
use crate::units::{count, counted, one_line};
use crate::words::list;

/// A purge, done or only counted.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PurgeView {
    /// The store.
    pub store: String,
    /// First local date that stays, `YYYY-MM-DD`; `None` where a session goes.
    pub before: Option<String>,
    /// The session whose calls go.
    pub session: Option<String>,
    /// IANA zone in which that date begins.
    pub zone: Option<String>,
    /// Nothing was removed.
    pub dry_run: bool,
    /// Records by what they are, in the order of the table: `bursts`, `attempts`, ...
    pub removed: Vec<(&'static str, u64)>,
    /// Removed documents as kind and id.
    pub documents: Vec<(String, String)>,
    /// Older bursts that stay, since they have no end.
    pub unfinished_bursts_kept: u64,
    /// Documents that stay without their evidence: kind, id and how many of its bursts are gone.
    pub losing_evidence: Vec<(String, String, u64)>,
    /// The file was written anew, so that the bytes are gone; `None` where nothing was removed.
    pub compacted: Option<bool>,
}

impl PurgeView {
    /// True when there is nothing older.
    pub fn is_empty(&self) -> bool {
        self.removed.iter().all(|(_, n)| *n == 0)
    }

    fn headline(&self) -> String {
        let store = &self.store;
        // Names of sessions come from clients.
        let session = self.session.as_deref().map(one_line);
        let (nothing, all) = match (&self.before, session) {
            (Some(before), _) => (format!("is older than {before}"), format!("everything before {before}")),
            (None, session) => {
                let name = session.unwrap_or_default();
                (format!("is of a session `{name}`"), format!("the session `{name}`"))
            }
        };
        match (self.is_empty(), self.dry_run) {
            (true, _) => format!("nothing in {store} {nothing}"),
            (false, true) => format!("would be removed from {store}: {all}"),
            (false, false) => format!("removed from {store}: {all}"),
        }
    }
}

/// Headline, counts, and what else is to be known.
pub fn render(view: &PurgeView, width: usize, palette: Palette) -> String {
    let mut out = format!("{}\n", palette.paint(Tone::Strong, &view.headline()));
    if !view.is_empty() {
        for line in table(view).render(width.saturating_sub(2), palette).lines().skip(1) {
            out.push_str(&format!("  {line}\n"));
        }
    }
    out + &notes::render(&told(view), width, palette)
}

/// The same as Markdown.
pub fn markdown(view: &PurgeView) -> String {
    format!("{}\n\n{}\n{}", view.headline(), table(view).markdown(), notes::markdown(&told(view)))
}

/// One row per sort of record.
pub fn table(view: &PurgeView) -> Table {
    let mut table = Table::new(vec![Column::words("records", "records"), Column::figures("removed", "number")]);
    for (name, n) in &view.removed {
        table.row(vec![Cell::text(name), Cell::new(count(*n), *n)]);
    }
    table
}

/// All of it for programs.
pub fn json(view: &PurgeView) -> Value {
    let removed: serde_json::Map<String, Value> =
        view.removed.iter().map(|(name, n)| ((*name).to_owned(), json!(n))).collect();
    let named = |(kind, id): &(String, String)| json!({"kind": kind, "id": id});
    let losing = |(kind, id, bursts): &(String, String, u64)| json!({"kind": kind, "id": id, "bursts": bursts});
    json!({
        "store": view.store,
        "before": view.before,
        "session": view.session,
        "zone": view.zone,
        "dry_run": view.dry_run,
        "removed": removed,
        "documents": view.documents.iter().map(named).collect::<Vec<_>>(),
        "unfinished_bursts_kept": view.unfinished_bursts_kept,
        "documents_losing_evidence": view.losing_evidence.iter().map(losing).collect::<Vec<_>>(),
        "compacted": view.compacted,
    })
}

fn told(view: &PurgeView) -> Vec<Note> {
    let mut notes = Vec::new();
    if !view.documents.is_empty() {
        let names: Vec<String> = view.documents.iter().map(|(kind, id)| format!("{kind} {id}")).collect();
        notes.push(Note::plain("documents", list(&names)));
    }
    for (kind, id, bursts) in &view.losing_evidence {
        let lost = counted(*bursts, "burst");
        notes.push(Note::warning("evidence", format!("{kind} {id} stays and loses {lost} that it rests on")));
    }
    if view.unfinished_bursts_kept > 0 {
        let kept = counted(view.unfinished_bursts_kept, "older burst");
        let text = format!("{kept} without an end: under way, or killed (`--killed` removes those)");
        notes.push(Note::plain("kept", text));
    }
    if view.compacted == Some(false) {
        let text = "the records are gone from the store, but the file still holds their bytes, since another program has \
                    it open: close that and run the same command again";
        notes.push(Note::warning("file", text));
    }
    notes
}

#[cfg(test)]
mod tests {
    use super::*;

    fn view() -> PurgeView {
        PurgeView {
            store: "team.db".into(),
            before: Some("2026-11-30".into()),
            session: None,
            zone: Some("Europe/Berlin".into()),
            dry_run: false,
            removed: vec![("bursts", 96), ("attempts", 1_068), ("events", 0), ("documents", 1)],
            documents: vec![("decision".into(), "decision-2026-11-02".into())],
            unfinished_bursts_kept: 1,
            losing_evidence: vec![("decision".into(), "decision-2026-11-30".into(), 36)],
            compacted: Some(true),
        }
    }

    #[test]
    fn counts_come_first_and_what_a_kept_decision_loses_is_said() {
        insta::assert_snapshot!(render(&view(), 90, Palette::PLAIN), @r"
        removed from team.db: everything before 2026-11-30
          bursts         96
          attempts    1,068
          events          0
          documents       1
        documents    decision decision-2026-11-02
        evidence     decision decision-2026-11-30 stays and loses 36 bursts that it rests on
        kept         1 older burst without an end: under way, or killed (`--killed` removes those)
        ");
    }

    #[test]
    fn nothing_to_remove_is_one_line() {
        let nothing = PurgeView {
            removed: vec![("bursts", 0)],
            documents: Vec::new(),
            unfinished_bursts_kept: 0,
            losing_evidence: Vec::new(),
            compacted: None,
            ..view()
        };
        assert_eq!(render(&nothing, 90, Palette::PLAIN), "nothing in team.db is older than 2026-11-30\n");
        assert_eq!(json(&nothing)["compacted"], Value::Null);
    }

    #[test]
    fn a_session_is_named_in_one_line_whatever_its_name_is() {
        let session = PurgeView {
            before: None,
            session: Some("run-1\n\u{1b}[2J".into()),
            removed: vec![("calls", 12)],
            documents: Vec::new(),
            unfinished_bursts_kept: 0,
            losing_evidence: Vec::new(),
            ..view()
        };
        let text = render(&session, 90, Palette::PLAIN);
        assert!(text.starts_with("removed from team.db: the session `run-1") && !text.contains('\u{1b}'), "{text}");
        assert_eq!(text.lines().count(), 2, "{text}");
        let nothing = PurgeView { removed: vec![("calls", 0)], session: Some("run-1".into()), ..session };
        assert_eq!(render(&nothing, 90, Palette::PLAIN), "nothing in team.db is of a session `run-1`\n");
    }

    #[test]
    fn a_file_that_could_not_be_written_anew_is_told() {
        let kept = PurgeView { compacted: Some(false), ..view() };
        assert!(render(&kept, 90, Palette::PLAIN).contains("still holds their bytes"));
        assert!(markdown(&kept).contains("| attempts | 1,068 |"));
    }
}
