//! The same burst at several lanes, in an order in which none always goes first.

use std::sync::Arc;

use peaklane_core::config::LaneOrder;
use peaklane_wire::client::Client;
use peaklane_wire::lag::LagProbe;
use rand::SeedableRng;
use rand::seq::SliceRandom;
use rand_chacha::ChaCha8Rng;

use crate::burst::{BurstPlan, Event, Fired, LaneTarget, Stop, fire};
use crate::nonce;
use crate::recorder::{RecordError, Recorder};

/// One lane's part of a fleet.
#[derive(Clone, Debug)]
pub struct Shot {
    /// The client of the lane: lanes may differ in proxies and certificates.
    pub client: Arc<Client>,
    /// Where.
    pub lane: LaneTarget,
    /// What.
    pub plan: BurstPlan,
}

/// The order in which the lanes of a run have their turn, drawn from seed and run.
pub fn order(lanes: usize, seed: u64, run: &str) -> Vec<usize> {
    let mut order: Vec<usize> = (0..lanes).collect();
    // The mark keeps this draw apart from the nonces, which use the same seed and run.
    let mut dice = ChaCha8Rng::seed_from_u64(nonce::number(seed, run, u64::MAX / 2));
    order.shuffle(&mut dice);
    order
}

/// Fires the burst at every lane: one after the other in a drawn order, or all at once.
///
/// `on` hears of each event with the lane's place in `shots`. The results are in the order of `shots`; lanes that were
/// not reached before a stop are missing at the end.
///
/// # Errors
/// The first [`RecordError`]; nothing is fired after it.
pub async fn fire_all(
    shots: &[Shot],
    how: LaneOrder,
    recorder: &Recorder,
    lag: &LagProbe,
    stop: &Stop,
    on: impl Fn(usize, Event),
) -> Result<Vec<Option<Fired>>, RecordError> {
    let Some(first) = shots.first() else { return Ok(Vec::new()) };
    let turns = order(shots.len(), first.plan.header.seed, &first.plan.header.run);
    let mut fired: Vec<Option<Fired>> = shots.iter().map(|_| None).collect();
    match how {
        LaneOrder::Random => {
            for at in turns {
                if stop.is_pulled() {
                    break;
                }
                let Shot { client, lane, plan } = &shots[at];
                fired[at] = Some(fire(client, lane, plan, recorder, lag, stop.clone(), |e| on(at, e)).await?);
            }
        }
        LaneOrder::Interleaved => {
            // All lanes at once: their attempts take turns on the one event loop, begun in the drawn order.
            let on = &on;
            let running = turns.iter().map(|&at| {
                let Shot { client, lane, plan } = &shots[at];
                fire(client, lane, plan, recorder, lag, stop.clone(), move |e| on(at, e))
            });
            for (at, result) in turns.iter().zip(crate::burst::join_all(running).await) {
                fired[*at] = Some(result?);
            }
        }
    }
    Ok(fired)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_lane_always_goes_first_and_one_seed_gives_one_order() {
        let firsts: std::collections::HashSet<usize> = (0..40).map(|n| order(4, 7, &format!("run-{n}"))[0]).collect();
        assert_eq!(firsts.len(), 4);
        assert_eq!(order(5, 7, "run"), order(5, 7, "run"));
    }
}
