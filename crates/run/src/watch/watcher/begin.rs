//! From "due" to bursts under way: turn, budget, claim.

use super::*;

impl<'a, C, G, H> Watcher<'a, C, G, H>
where
    C: WallClock + Clone + Send + Sync + 'static,
    G: Gun,
    H: Hear,
{
    /// Begins the burst whose turn it is; interleaved, those of all lanes of its window.
    pub(super) async fn begin(&mut self, mut due: Vec<(usize, SlotKey)>) -> Began<'a> {
        due.sort_by_cached_key(|(at, key)| (self.tracks[*at].turn(key), *at));
        let Some((_, first)) = due.first().cloned() else { return Began::Nothing };
        let together = |key: &SlotKey| SlotKey { lane: String::new(), ..key.clone() };
        due.retain(|(_, key)| match self.plan.order {
            LaneOrder::Random => *key == first,
            LaneOrder::Interleaved => together(key) == together(&first),
        });
        match self.over_budget(&due).await {
            Ok(None) => {}
            Ok(Some(exceeded)) => return Began::Ended(self.budget_stop(exceeded).await),
            Err(()) => return Began::Nothing,
        }
        let mut orders = Vec::new();
        let mut learnt = false;
        for (at, key) in due {
            match self.claim(at, &key).await {
                Claimed::Ours(order) => orders.push((at, *order)),
                Claimed::Learnt => learnt = true,
                Claimed::Not => {}
            }
        }
        if !orders.is_empty() {
            return Began::Volley(self.volley(orders));
        }
        if learnt { Began::Again } else { Began::Nothing }
    }

    async fn claim(&mut self, at: usize, key: &SlotKey) -> Claimed {
        let now = self.clock.read().wall;
        let track = &mut self.tracks[at];
        let Some(status) = track.runtime.begin(key, now) else { return Claimed::Not };
        let Some(order) = track.order(key, now) else { return Claimed::Not };
        let claim = self.desk.keeper.claim(key.clone(), order.due, now, order.burst()).await;
        let track = &mut self.tracks[at];
        match self.desk.ok(claim) {
            None => {
                track.runtime.give_back(key);
                Claimed::Not
            }
            Some(Claim::Ours) => {
                let (place, burst) = (track.place(key), order.burst());
                let late_s = status.late_s().unwrap_or(0);
                self.desk.tell(now, &Note::BurstBegun { place, burst, late_s });
                Claimed::Ours(Box::new(order))
            }
            Some(Claim::Taken(row)) => {
                match status_of(&row) {
                    Some(status) => track.runtime.learn(key, Past::Settled(status)),
                    None => {
                        track.runtime.learn(key, Past::Elsewhere);
                        track.elsewhere.insert(key.clone());
                    }
                }
                Claimed::Learnt
            }
        }
    }

    fn volley(&self, orders: Vec<(usize, Order)>) -> Volley<'a> {
        let (pull, stop) = Stop::pair();
        let gun = self.gun;
        let keys = orders.iter().map(|(at, order)| (*at, order.key.clone())).collect();
        let fired = orders.into_iter().map(move |(at, order)| {
            let stop = stop.clone();
            async move {
                let fired = gun.fire(&order, stop).await;
                (at, order, fired)
            }
        });
        let mut lease = tokio::task::JoinSet::new();
        let (keeper, clock, campaigns, mode) =
            (self.desk.keeper.clone(), self.clock.clone(), self.campaigns(), self.mode);
        lease.spawn(async move {
            loop {
                clock.nap(Duration::from_secs(LEASE_S.unsigned_abs() / 3)).await;
                // A store that does not take it is told when the burst is settled.
                let _ = keeper.renew(clock.read().wall, campaigns.clone(), mode).await;
            }
        });
        Volley { keys, pull, why: "", future: Box::pin(join_all(fired)), _lease: lease }
    }

    /// The cap that these bursts would pass. `Err`: the store does not tell what was used.
    async fn over_budget(&mut self, due: &[(usize, SlotKey)]) -> Result<Option<Exceeded>, ()> {
        if self.plan.caps.is_empty() {
            return Ok(None);
        }
        let spent = self.desk.keeper.spent(self.campaigns()).await;
        let rows = self.desk.read(spent).ok_or(())?;
        let (mut used, mut largest) = (Used::default(), Largest::new());
        for row in &rows {
            let one = Used {
                requests: row.requests,
                tokens: row.input_tokens + row.cached_tokens + row.output_tokens,
                micro_usd: self.gun.price(row).unwrap_or(0),
            };
            used = used.and(one);
            let entry = largest.entry((row.lane.clone(), row.task.clone())).or_default();
            *entry = entry.at_least(one);
        }
        let now = self.clock.read().wall;
        let need = due.iter().map(|(_, key)| {
            let most = self.gun.need(&key.lane, &key.task, now);
            match largest.get(&(key.lane.clone(), key.task.clone())) {
                // Requests are bounded beforehand; tokens and money are as measured where they were.
                Some(seen) => Used { requests: most.requests.max(seen.requests), ..*seen },
                None => most,
            }
        });
        Ok(self.plan.caps.exceeded(used, need.fold(Used::default(), Used::and)))
    }

    async fn budget_stop(&mut self, exceeded: Exceeded) -> Ended {
        let now = self.clock.read().wall;
        self.desk.tell(now, &Note::BudgetStop { exceeded });
        let campaigns = self.campaigns();
        let stopped = self
            .desk
            .keeper
            .with(move |ledger| {
                campaigns.iter().try_for_each(|id| ledger.stop_campaign(id, now.as_microsecond(), "budget").map(|_| ()))
            })
            .await;
        self.desk.ok(stopped);
        self.end(Ended::Budget(Some(exceeded))).await
    }
}

enum Claimed {
    Ours(Box<Order>),
    /// Another process had it first, or it is over.
    Learnt,
    /// Too late meanwhile, or the store does not answer.
    Not,
}
