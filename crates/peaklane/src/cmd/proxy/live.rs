//! What is shown while calls pass: a line for each, or a table of sessions that is renewed.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use peaklane_core::call::CallRecord;
use peaklane_report::calls::{LiveSession, line, live_table};
use peaklane_report::palette::Palette;
use peaklane_run::proxy::Finished;

use crate::globals::Globals;
use crate::out;

/// The table is drawn at most this often.
const DRAW_EVERY: Duration = Duration::from_millis(250);
/// Sessions in the table: those that were used last.
const MOST_SHOWN: usize = 15;
/// Sessions that are remembered for it.
const MOST_KEPT: usize = 500;

/// The terminal, while a table is drawn on it.
pub(super) struct Screen {
    drawing: bool,
}

impl Screen {
    /// A table needs a terminal; elsewhere there are lines.
    pub(super) fn new(wished: bool, globals: &Globals) -> Self {
        Self { drawing: wished && globals.progress }
    }

    /// Leaves the last table where it is.
    pub(super) fn end(&self) {
        if self.drawing {
            out::say("\n");
        }
    }
}

/// Shows finished calls.
pub(super) struct Live {
    drawing: bool,
    quiet: bool,
    palette: Palette,
    width: usize,
    state: Arc<Mutex<State>>,
}

#[derive(Default)]
struct State {
    sessions: BTreeMap<String, LiveSession>,
    drawn_lines: usize,
    drawn: Option<Instant>,
}

impl Live {
    pub(super) fn new(screen: &Screen, globals: &Globals) -> Self {
        Self {
            drawing: screen.drawing,
            quiet: globals.quiet,
            palette: globals.stderr_palette,
            width: globals.width,
            state: Arc::default(),
        }
    }

    /// Told of each call, on the recorder's thread.
    pub(super) fn finished(self) -> Finished {
        Box::new(move |call| self.call(call))
    }

    fn call(&self, call: &CallRecord) {
        if self.quiet {
            return;
        }
        if !self.drawing {
            out::say(&format!("{}\n", line(call, self.palette)));
            return;
        }
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        if state.sessions.len() >= MOST_KEPT && !state.sessions.contains_key(&call.session) {
            let oldest = state.sessions.iter().min_by_key(|(_, s)| s.last_unix_us).map(|(name, _)| name.clone());
            oldest.and_then(|name| state.sessions.remove(&name));
        }
        state.sessions.entry(call.session.clone()).or_default().take(call);
        if state.drawn.is_none_or(|at| at.elapsed() >= DRAW_EVERY) {
            self.draw(&mut state);
        }
    }

    /// Draws over the table before.
    fn draw(&self, state: &mut State) {
        let mut newest: Vec<(&String, &LiveSession)> = state.sessions.iter().collect();
        newest.sort_by_key(|(_, s)| std::cmp::Reverse(s.last_unix_us));
        newest.truncate(MOST_SHOWN);
        let text = live_table(&newest, self.width, self.palette);
        // Up to the first line of the former table, and clear from there.
        let up = if state.drawn_lines > 0 { format!("\x1b[{}A\x1b[J", state.drawn_lines) } else { String::new() };
        state.drawn_lines = text.lines().count();
        state.drawn = Some(Instant::now());
        out::say(&format!("{up}{text}"));
    }
}
