//! What is over: bursts that ended, windows that were missed, claims that others left behind.

use super::*;

impl<'a, C, G, H> Watcher<'a, C, G, H>
where
    C: WallClock + Clone + Send + Sync + 'static,
    G: Gun,
    H: Hear,
{
    /// Takes the settled ones of the decisions of a track: a running burst is asked to stop, all others are written.
    pub(super) fn over(
        &mut self,
        at: usize,
        decisions: &[Decision<SlotKey>],
        now: Timestamp,
        mut volley: Option<&mut Volley<'a>>,
    ) {
        let mut before_start = 0;
        for decision in decisions {
            let Decision::Settled { key, status } = decision else { continue };
            let running = volley.as_deref_mut().filter(|volley| volley.keys.iter().any(|(t, k)| *t == at && k == key));
            if let Some(volley) = running {
                volley.pull("asleep");
                continue;
            }
            let status = match status {
                // Bursts of another campaign of ours were in the way.
                Status::Missed(MissedReason::Stalled) if volley.is_some() => Status::Missed(MissedReason::Busy),
                other => *other,
            };
            let track = &self.tracks[at];
            let due = track.due(key).unwrap_or(now);
            let place = track.place(key);
            self.desk.settle(key.clone(), due, state_of(status, None));
            match status {
                Status::BeforeStart => before_start += 1,
                Status::Missed(reason) => {
                    self.desk.tell(now, &Note::WindowMissed { place, reason: reason.name().to_owned() });
                }
                Status::Interrupted { .. } => {
                    self.desk.tell(now, &Note::BurstInterrupted { place, reason: "abandoned".to_owned() });
                }
                Status::Run { .. } | Status::Late { .. } => {}
            }
            self.told_next = false;
        }
        if before_start > 0 {
            let name = self.tracks[at].name.clone();
            self.desk.tell(now, &Note::BeforeStart { name, bursts: before_start });
        }
    }

    /// Settles bursts that ran.
    pub(super) async fn ended(&mut self, volleys: Volleys, why: &'static str) {
        for (at, order, fired) in volleys {
            match fired {
                Ok(shortly) => self.ended_one(at, &order, shortly, why).await,
                Err(misfire) => self.misfired(at, &order, misfire).await,
            }
        }
        self.told_next = false;
    }

    async fn ended_one(&mut self, at: usize, order: &Order, shortly: Shortly, why: &'static str) {
        let now = self.clock.read().wall;
        let track = &mut self.tracks[at];
        let key = &order.key;
        let whole = matches!(shortly.state, BurstState::Complete | BurstState::Void);
        let ran = if whole { track.runtime.finish(key) } else { None };
        let place = track.place(key);
        let burst = shortly.burst.clone();
        if let Some(status) = ran {
            self.desk.settle(key.clone(), order.due, state_of(status, Some(burst.clone())));
            self.desk.tell(now, &Note::BurstEnded { place: place.clone(), shortly });
            let changes = self.desk.keeper.changes(key.clone(), burst).await;
            let changes = self.desk.read(changes).unwrap_or_default();
            if let Some((before, after)) = changes.model {
                self.desk.tell(now, &Note::ModelChanged { place: place.clone(), before, after });
            }
            if let Some((before, after)) = changes.fingerprint {
                self.desk.tell(now, &Note::FingerprintChanged { place, before, after });
            }
        } else {
            // Interrupted before, by a suspension, or now.
            track.runtime.interrupt(key);
            let status = Status::Interrupted { started: order.started };
            self.desk.settle(key.clone(), order.due, state_of(status, Some(burst)));
            let reason = if why.is_empty() { "failed" } else { why };
            self.desk.tell(now, &Note::BurstInterrupted { place, reason: reason.to_owned() });
        }
        self.desk.flush(now).await;
    }

    async fn misfired(&mut self, at: usize, order: &Order, misfire: Misfire) {
        let now = self.clock.read().wall;
        self.desk.store_failed(misfire.error);
        let key = order.key.clone();
        if misfire.unsent {
            let (taken_back, holder) = (key.clone(), self.desk.keeper.holder().to_owned());
            let back = self.desk.keeper.with(move |ledger| ledger.unclaim(&taken_back, &holder)).await;
            if matches!(back, Ok(true)) {
                self.tracks[at].runtime.give_back(&key);
                return;
            }
        }
        let track = &mut self.tracks[at];
        track.runtime.interrupt(&key);
        let place = track.place(&key);
        let status = Status::Interrupted { started: order.started };
        self.desk.settle(key, order.due, state_of(status, None));
        self.desk.tell(now, &Note::BurstInterrupted { place, reason: "failed".to_owned() });
        self.desk.flush(now).await;
    }

    /// Learns what became of the bursts of other watchers, and settles those that nobody will end.
    pub(super) async fn look_at_others(&mut self, now: Timestamp) {
        for at in 0..self.tracks.len() {
            if self.tracks[at].elsewhere.is_empty() {
                continue;
            }
            let swept = self.desk.keeper.sweep(self.tracks[at].name.campaign.clone(), now, self.on_time_s).await;
            let Some((rows, swept)) = self.desk.read(swept) else { continue };
            for one in swept.iter().filter(|one| !one.whole && self.tracks[at].due(&one.key).is_some()) {
                let place = self.tracks[at].place(&one.key);
                self.desk.tell(now, &Note::BurstInterrupted { place, reason: "abandoned".to_owned() });
            }
            let track = &mut self.tracks[at];
            for row in &rows {
                if let Some(status) = status_of(row).filter(|_| track.elsewhere.contains(&row.key)) {
                    track.runtime.learn(&row.key, Past::Settled(status));
                    track.elsewhere.remove(&row.key);
                    self.told_next = false;
                }
            }
            // What is gone from the store (somebody removed it) is nobody's.
            track.elsewhere.retain(|key| rows.iter().any(|row| row.key == *key));
        }
        let other = self.tracks.iter().find_map(|t| t.elsewhere.first().map(|key| (key.clone(), t.place(key))));
        if let Some((key, place)) = other.filter(|(key, _)| self.another.as_ref() != Some(key)) {
            self.another = Some(key);
            self.desk.tell(now, &Note::AnotherWatcher { place });
        }
    }

    /// Campaigns that were stopped meanwhile are watched no longer.
    pub(super) async fn stopped_by_others(&mut self, now: Timestamp) -> Option<Ended> {
        let campaigns = self.campaigns();
        let rows = self
            .desk
            .keeper
            .with(move |ledger| campaigns.iter().map(|id| ledger.campaign(id)).collect::<Result<Vec<_>, _>>())
            .await;
        let stopped: Vec<(String, String)> = self
            .desk
            .read(rows)?
            .into_iter()
            .flatten()
            .filter_map(|row| row.stopped.map(|(_, why)| (row.id, why)))
            .collect();
        let mut budget = false;
        for (id, why) in stopped {
            let Some(track) = self.tracks.iter().find(|track| track.name.campaign == id) else { continue };
            let name = track.name.clone();
            budget |= why == "budget";
            self.desk.tell(now, &Note::CampaignStopped { name, why });
            self.tracks.retain(|track| track.name.campaign != id);
        }
        if !self.tracks.is_empty() {
            return None;
        }
        let ended = if budget { Ended::Budget(None) } else { Ended::StoppedElsewhere };
        Some(self.end(ended).await)
    }
}
