//! What is kept, and what goes when there is no more room.

use super::Sessions;
use super::lineage::{Lineage, MOST_LINEAGES, Session};

impl Sessions {
    /// Takes a session out for the time of a call; a new one where there is none of the name.
    pub(super) fn take_session(&mut self, name: &str) -> Session {
        let Some(session) = self.named.remove(name) else { return Session::default() };
        self.used.remove(&session.tick);
        self.hash_bytes -= session.hash_bytes();
        self.text_bytes -= session.text_bytes();
        session
    }

    /// Puts it back, and makes room.
    pub(super) fn put_session(&mut self, name: String, mut session: Session, tick: u64) {
        session.tick = tick;
        self.hash_bytes += session.hash_bytes();
        self.text_bytes += session.text_bytes();
        self.used.insert(tick, name.clone());
        self.named.insert(name, session);
        while self.text_bytes > self.bounds.text_bytes {
            let Some((tick, name)) = self.texts.pop_first() else { break };
            let Some(session) = self.named.get_mut(&name) else { continue };
            if let Some(line) = session.lineages.iter_mut().find(|l| l.tick == tick) {
                self.text_bytes -= line.text_bytes();
                line.prompt = None;
            }
        }
        // The newest stays, however large it is: without it nothing could be said at all.
        while self.named.len() > 1
            && (self.hash_bytes > self.bounds.hash_bytes || self.named.len() > self.bounds.sessions)
        {
            let Some((_, oldest)) = self.used.pop_first() else { break };
            self.drop_session(&oldest);
        }
    }

    fn drop_session(&mut self, name: &str) {
        let Some(session) = self.named.remove(name) else { return };
        self.hash_bytes -= session.hash_bytes();
        self.text_bytes -= session.text_bytes();
        for line in &session.lineages {
            self.forget(line, name);
        }
    }

    /// Takes a prompt in as the newest of its lineage.
    pub(super) fn keep(
        &mut self,
        session: &mut Session,
        name: &str,
        former: Option<usize>,
        mut line: Lineage,
        tick: u64,
        unnamed: bool,
    ) {
        let gone = match former {
            Some(n) => Some(n),
            None if session.lineages.len() < MOST_LINEAGES => None,
            None => (0..session.lineages.len()).min_by_key(|n| session.lineages[*n].seq),
        };
        if let Some(n) = gone {
            let old = session.lineages.swap_remove(n);
            session.leave(&old.chain, old.chain.common_blocks(&line.chain), old.seq);
            self.forget(&old, name);
        }
        line.tick = tick;
        if let (Some(hash), true, false) = (line.last_message, unnamed, line.helper) {
            self.by_last.insert(hash, name.to_owned());
        }
        self.texts.insert(tick, name.to_owned());
        session.lineages.push(line);
    }

    fn forget(&mut self, line: &Lineage, name: &str) {
        self.texts.remove(&line.tick);
        if let Some(hash) = line.last_message
            && self.by_last.get(&hash).is_some_and(|of| of == name)
        {
            self.by_last.remove(&hash);
        }
    }
}
