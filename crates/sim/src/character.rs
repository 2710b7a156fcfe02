//! Four lanes with honest characters, one per rung, as pure functions of a seed.
//!
//! What the eight attempts of a burst get is a *deck* of eight fates, drawn once per lane and moment and dealt by slot:
//! any eight attempts in a row get each card once, a warm-up before them changes nothing, and no arrival order, late
//! wake-up or busy machine can change the counts. Different seeds draw different decks of the same shape.
//!
//! Passes stay below half of [`FLOOR`] and slow answers above twice of it (all in simulated time), so that a client that
//! is late by a quarter of a second at [`crate::scale::Scale::DEMO`] still reads the same verdict.

use std::num::NonZeroUsize;
use std::time::Duration;

use peaklane_core::lane::Kind;

use crate::draw::Dice;
use crate::plan::{Answer, End, Finish, Piece, Plan, RateLimit, Refusal, Reply};
use crate::script::{Ask, LaneScript, Moment, Ticket};

/// The floor that the characters are drawn for, simulated time.
pub const FLOOR: Duration = Duration::from_secs(25);

/// A total limit of one try that none of the characters reaches, simulated time. A client with a shorter one turns the
/// slow answers into timeouts.
pub const TOTAL_LIMIT: Duration = Duration::from_secs(120);

/// What every whole answer says.
pub const ANSWER: &str = "This is a simulated answer. Keep both counts, so that no rate loses its sample size: \
    ```rust\nfn pass_rate(passed: u32, of: u32) -> f64 { f64::from(passed) / f64::from(of) }\n```";

/// A piece of [`ANSWER`] that a check can look for.
pub const ANSWER_CONTAINS: &str = "fn pass_rate";

/// Fates in a deck: the attempts of a burst, by default.
pub const DECK: usize = 8;

/// Days over which rare misses are dealt, so that none of them lands on every day of a three-day campaign.
const BLOCK_DAYS: u32 = 3;

/// A lane of one rung, with the load and the troubles that are typical of it.
#[derive(Clone, Debug)]
pub struct Character {
    kind: Kind,
    seed: u64,
}

/// What an attempt is dealt.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Card {
    /// A whole answer well within the floor.
    Fine,
    /// Refused once with 429, then fine.
    LimitedOnce,
    /// Refused with 429 at each try.
    Limited,
    /// Queues for longer than twice the floor.
    Slow,
    /// The stream ends in the middle, at each try.
    Cut,
    /// The gateway before the box gives up, at each try.
    GatewayTimeout,
}

impl Character {
    /// The character of `kind`; equal seeds give equal lanes.
    pub fn new(kind: Kind, seed: u64) -> Self {
        Self { kind, seed }
    }

    /// Model name of the lane: says that it is simulated.
    pub fn model(&self) -> String {
        format!("sim-{}", self.kind)
    }

    /// What the request with this ticket gets.
    pub fn plan_for(&self, ticket: Ticket) -> Plan {
        let card = self.deck(ticket.moment)[ticket.slot as usize % DECK];
        let mut dice = self.dice(ticket.moment, &[1, u64::from(ticket.slot), u64::from(ticket.retry)]);
        let mut plan = match card {
            Card::LimitedOnce if ticket.retry == 0 => limited(2),
            Card::Limited => limited(4),
            Card::GatewayTimeout => gateway_timeout(),
            Card::Cut => cut(&mut dice),
            Card::Slow => {
                let ttft = dice.between(51_000, 54_000);
                answer(ttft, ttft + dice.between(3_000, 6_000))
            }
            Card::Fine | Card::LimitedOnce => self.fine(ticket, &mut dice),
        };
        if self.kind == Kind::FreeServer && ticket.slot == 0 && ticket.retry == 0 {
            plan = loading();
        }
        if self.kind == Kind::FreeHosted {
            let limit: u32 = 20;
            let refused = matches!(plan.reply, Reply::Refusal(_));
            let remaining = if refused { 0 } else { limit.saturating_sub(ticket.slot + 1) };
            plan.rate_limit = Some(RateLimit { limit, remaining });
        }
        plan
    }

    fn fine(&self, ticket: Ticket, dice: &mut Dice) -> Plan {
        let mut between = |low, high| dice.between(low, high);
        match self.kind {
            // Behind a refusal there is less time left until the floor, and less of a queue.
            Kind::FreeHosted if crowded(ticket.moment) && ticket.retry > 0 => {
                answer(between(3_000, 4_000), between(6_000, 8_000))
            }
            Kind::FreeHosted if crowded(ticket.moment) => answer(between(5_000, 8_000), between(9_500, 11_500)),
            Kind::FreeHosted => answer(between(600, 1_800), between(5_000, 9_000)),
            Kind::FreeServer => {
                // What comes while the model loads is held until it is there.
                let held = match (ticket.slot, ticket.warm) {
                    (0, _) => 1_000,
                    (_, false) => 3_000,
                    (_, true) => 0,
                };
                answer(held + between(2_000, 3_200), held + between(6_000, 8_000))
            }
            Kind::PaidHosted => answer(between(350, 600), between(2_500, 3_500)),
            Kind::SelfHosted => answer(between(500, 800), between(3_800, 4_600)),
        }
    }

    /// The eight fates of a burst.
    fn deck(&self, moment: Moment) -> [Card; DECK] {
        let mut dice = self.dice(moment, &[0]);
        let mut deck = [Card::Fine; DECK];
        match self.kind {
            Kind::FreeHosted if crowded(moment) => {
                let passes = dice.between(2, 4) as usize;
                let cut = self.rare_days(moment, 1, 2)[(moment.day() % BLOCK_DAYS) as usize];
                let slow = dice.between(1, 2) as usize;
                deck[passes..].fill(Card::Limited);
                deck[passes..passes + slow].fill(Card::Slow);
                if cut {
                    deck[passes + slow] = Card::Cut;
                }
                deck[0] = Card::LimitedOnce;
            }
            Kind::FreeHosted => {
                if self.rare_days(moment, 0, 2)[(moment.day() % BLOCK_DAYS) as usize] {
                    deck[0] = if dice.between(0, 1) == 0 { Card::Limited } else { Card::Slow };
                }
            }
            Kind::FreeServer => {
                if self.rare_days(moment, 0, 1)[(moment.day() % BLOCK_DAYS) as usize] {
                    deck[0] = Card::GatewayTimeout;
                }
            }
            Kind::PaidHosted | Kind::SelfHosted => {}
        }
        dice.shuffle(&mut deck);
        deck
    }

    /// On which days of this block something rare happens in this window: on `low` to `high` of the three.
    fn rare_days(&self, moment: Moment, low: u64, high: u64) -> [bool; BLOCK_DAYS as usize] {
        let block = u64::from(moment.day() / BLOCK_DAYS);
        let mut dice = Dice::new(&[self.seed, self.kind as u64, 2, block, u64::from(moment.minute())]);
        let mut days = [false; BLOCK_DAYS as usize];
        let count = dice.between(low, high) as usize;
        days[..count].fill(true);
        dice.shuffle(&mut days);
        days
    }

    fn dice(&self, moment: Moment, about: &[u64]) -> Dice {
        let mut key = vec![self.seed, self.kind as u64, u64::from(moment.day()), u64::from(moment.minute())];
        key.extend_from_slice(about);
        Dice::new(&key)
    }
}

impl LaneScript for Character {
    fn models(&self) -> Vec<String> {
        vec![self.model()]
    }

    fn plan(&self, ask: &Ask<'_>) -> Plan {
        self.plan_for(ask.ticket)
    }

    fn slots(&self) -> Option<NonZeroUsize> {
        // A small box decodes four requests at once; the other half of a burst of eight waits its turn.
        (self.kind == Kind::SelfHosted).then_some(NonZeroUsize::MIN.saturating_add(3))
    }
}

/// When the shared lane is crowded: 15:00 to 18:30, whatever the day.
fn crowded(moment: Moment) -> bool {
    (15 * 60..18 * 60 + 30).contains(&moment.minute())
}

/// An answer whose first piece comes after `ttft_ms` and whose end after `total_ms`, evenly paced.
fn answer(ttft_ms: u64, total_ms: u64) -> Plan {
    let texts: Vec<&str> = ANSWER.split_inclusive(' ').collect();
    let steps = texts.len() as u64;
    let at = |i: u64| Duration::from_micros(ttft_ms * 1000 + total_ms.saturating_sub(ttft_ms) * 1000 * i / steps);
    let pieces = (0..steps).zip(texts).map(|(i, text)| Piece { at: at(i), text: text.to_owned(), reasoning: false });
    let answer = Answer { pieces: pieces.collect(), finish: Finish::Stop, end_at: at(steps), end: End::Whole };
    // The head leaves when the queue is behind the request; the first piece follows the prefill.
    Plan::new(Duration::from_millis(ttft_ms * 3 / 4), Reply::Answer(answer))
}

fn cut(dice: &mut Dice) -> Plan {
    let mut plan = answer(dice.between(3_000, 4_000), 10_000);
    if let Reply::Answer(answer) = &mut plan.reply {
        let kept = dice.between(3, answer.pieces.len() as u64 / 2) as usize;
        answer.end_at = answer.pieces[kept].at;
        answer.pieces.truncate(kept);
        answer.end = End::Cut;
    }
    plan
}

fn refusal(
    at_ms: u64,
    status: u16,
    kind: &'static str,
    code: &'static str,
    message: &str,
    retry_s: Option<u64>,
) -> Plan {
    let retry_after = retry_s.map(Duration::from_secs);
    let refusal = Refusal { status, kind, code, message: message.to_owned(), retry_after };
    Plan::new(Duration::from_millis(at_ms), Reply::Refusal(refusal))
}

fn limited(retry_s: u64) -> Plan {
    let message = "Rate limit reached for requests per minute. Please try again later.";
    refusal(100, 429, "requests", "rate_limit_exceeded", message, Some(retry_s))
}

fn loading() -> Plan {
    // The words of llama.cpp's server while it reads the weights.
    refusal(50, 503, "unavailable_error", "unavailable", "Loading model", Some(3))
}

fn gateway_timeout() -> Plan {
    refusal(10_000, 504, "server_error", "gateway_timeout", "The upstream server did not answer in time.", None)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ledger::Ledger;
    use proptest::prelude::*;

    const WINDOWS: [&str; 4] = ["09:00", "12:30", "16:00", "21:00"];
    const RETRIES: u32 = 2;

    /// How one attempt ended: class of the last try, latency in simulated time, retries.
    type Ended = (&'static str, Duration, u32);

    /// The attempts of a burst of eight, all let in before the first ends; `order` picks who comes next (also among the
    /// retries). A warm-up attempt may come first. The waits are those that the lane asks for, else a second.
    fn burst(lane: &Character, moment: Moment, order: &[usize], warm_up: bool) -> Vec<Ended> {
        let mut book = Ledger::default();
        book.begin(moment);
        if warm_up {
            run(lane, &mut book, &mut vec![(999, Duration::ZERO)], &[0]);
        }
        let mut pending: Vec<(u64, Duration)> = (0..DECK as u64).map(|prompt| (prompt, Duration::ZERO)).collect();
        run(lane, &mut book, &mut pending, order)
    }

    fn run(lane: &Character, book: &mut Ledger, pending: &mut Vec<(u64, Duration)>, order: &[usize]) -> Vec<Ended> {
        let mut ended = Vec::new();
        let mut picks = order.iter().cycle();
        while !pending.is_empty() {
            let (prompt, spent) = pending.swap_remove(picks.next().unwrap() % pending.len());
            let admission = book.admit(prompt);
            let ticket = admission.ticket;
            let plan = lane.plan_for(ticket);
            book.ended(admission, plan.whole());
            // A box with slots serves the second half of a burst after the first half.
            let waves = lane.slots().map_or(0, |slots| ticket.slot as usize % DECK / slots.get());
            let took = plan.ends_at().unwrap() * (1 + waves as u32);
            let (class, wait) = match &plan.reply {
                Reply::Answer(answer) if answer.end == End::Whole => ("ok", None),
                Reply::Answer(_) => ("cut", Some(Duration::from_secs(1))),
                Reply::Refusal(r) => (r.code, Some(r.retry_after.unwrap_or(Duration::from_secs(1)))),
                other => panic!("no character does {other:?}"),
            };
            match wait {
                Some(wait) if ticket.retry < RETRIES => pending.push((prompt, spent + took + wait)),
                _ => ended.push((class, spent + took, ticket.retry)),
            }
        }
        ended
    }

    /// What the demo promises to be the same: classes with retries, `ok` split at the floor, sorted.
    fn counts(ended: &[Ended]) -> Vec<(&'static str, u32)> {
        let mut counts: Vec<_> = (ended.iter())
            .map(|(class, latency, retries)| {
                (if *class == "ok" && *latency > FLOOR { "too_slow" } else { class }, *retries)
            })
            .collect();
        counts.sort_unstable();
        counts
    }

    fn passes(ended: &[Ended]) -> usize {
        ended.iter().filter(|(class, latency, _)| *class == "ok" && *latency <= FLOOR).count()
    }

    fn in_order() -> Vec<usize> {
        vec![0]
    }

    /// Passes of the three days of a campaign in one window.
    fn passes_of_three_days(lane: &Character, window: &str) -> usize {
        (0..3).map(|day| passes(&burst(lane, Moment::parse(day, window).unwrap(), &in_order(), false))).sum()
    }

    #[test]
    fn the_free_hosted_lane_collapses_at_16_00_and_only_then() {
        for seed in 0..300 {
            let lane = Character::new(Kind::FreeHosted, seed);
            let peak = passes_of_three_days(&lane, "16:00");
            assert!((6..=12).contains(&peak), "seed {seed}: {peak} of 24 is not 25 % to 50 %");
            for quiet in ["09:00", "12:30", "21:00"] {
                let passed = passes_of_three_days(&lane, quiet);
                assert!(passed >= 22, "seed {seed}: {passed} of 24 at {quiet} is below 90 %");
            }
        }
    }

    #[test]
    fn the_collapse_shows_refusals_and_slow_answers_each_day_and_a_cut_stream_on_at_least_one() {
        for seed in 0..300 {
            let lane = Character::new(Kind::FreeHosted, seed);
            let days =
                (0..3).map(|day| counts(&burst(&lane, Moment::parse(day, "16:00").unwrap(), &in_order(), false)));
            let mut cuts = 0;
            for day in days {
                let count = |class: &str, retries| day.iter().filter(|c| **c == (class, retries)).count();
                assert!(count("rate_limit_exceeded", RETRIES) >= 1, "seed {seed}: {day:?}");
                assert!(count("too_slow", 0) >= 1, "seed {seed}: {day:?}");
                assert_eq!(count("ok", 1), 1, "seed {seed}: {day:?}");
                cuts += count("cut", RETRIES);
            }
            assert!((1..=2).contains(&cuts), "seed {seed}: {cuts} cut streams");
        }
    }

    #[test]
    fn the_other_lanes_hold_in_every_window() {
        for seed in 0..300 {
            for (kind, least) in [(Kind::FreeServer, 23), (Kind::PaidHosted, 24), (Kind::SelfHosted, 24)] {
                for window in WINDOWS {
                    let passed = passes_of_three_days(&Character::new(kind, seed), window);
                    assert!(passed >= least, "seed {seed}: {kind} passes {passed} of 24 at {window}");
                }
            }
        }
    }

    #[test]
    fn no_verdict_stands_within_a_factor_of_two_of_the_floor() {
        for seed in 0..100 {
            for kind in Kind::ALL {
                for (day, window) in (0..3).flat_map(|day| WINDOWS.map(|window| (day, window))) {
                    let ended =
                        burst(&Character::new(kind, seed), Moment::parse(day, window).unwrap(), &in_order(), false);
                    for (class, latency, _) in ended.into_iter().filter(|(class, ..)| *class == "ok") {
                        let clear = latency * 2 <= FLOOR || (latency >= FLOOR * 2 && latency * 3 / 2 < TOTAL_LIMIT);
                        assert!(clear, "seed {seed}: {kind} day {day} {window}: {class} after {latency:?}");
                    }
                }
            }
        }
    }

    #[test]
    fn a_server_that_was_idle_says_loading_to_its_first_request_only() {
        let lane = Character::new(Kind::FreeServer, 5);
        let ticket = |slot, retry| Ticket { moment: Moment::default(), slot, retry, warm: false };
        let loading = |ticket| matches!(lane.plan_for(ticket).reply, Reply::Refusal(r) if r.message == "Loading model");
        assert!(loading(ticket(0, 0)));
        assert!(!loading(ticket(0, 1)) && !loading(ticket(1, 0)));
    }

    #[test]
    fn other_seeds_give_other_counts() {
        let campaign = |seed| -> Vec<_> {
            let lane = Character::new(Kind::FreeHosted, seed);
            let moments = (0..3).flat_map(|day| WINDOWS.map(|w| Moment::parse(day, w).unwrap()));
            moments.map(|moment| counts(&burst(&lane, moment, &in_order(), false))).collect()
        };
        let seen: std::collections::HashSet<_> = (0..100).map(campaign).collect();
        assert!(seen.len() >= 97, "only {} of 100 seeds differ", seen.len());
    }

    proptest! {
        #[test]
        fn counts_do_not_depend_on_who_arrives_first(
            seed in any::<u64>(), kind in 0..4usize, day in 0..3u32, window in 0..4usize,
            order in prop::collection::vec(0..8usize, 1..40),
        ) {
            let lane = Character::new(Kind::ALL[kind], seed);
            let moment = Moment::parse(day, WINDOWS[window]).unwrap();
            prop_assert_eq!(
                counts(&burst(&lane, moment, &order, false)),
                counts(&burst(&lane, moment, &in_order(), false))
            );
            prop_assert_eq!(
                counts(&burst(&lane, moment, &order, true)),
                counts(&burst(&lane, moment, &in_order(), true))
            );
        }

        #[test]
        fn a_warm_up_takes_the_cold_start_and_changes_no_verdict(
            seed in any::<u64>(), kind in 0..4usize, day in 0..3u32, window in 0..4usize,
        ) {
            let lane = Character::new(Kind::ALL[kind], seed);
            let moment = Moment::parse(day, WINDOWS[window]).unwrap();
            let (cold, warm) = (burst(&lane, moment, &in_order(), false), burst(&lane, moment, &in_order(), true));
            prop_assert_eq!(passes(&cold), passes(&warm));
            // The demo retries enough that a cold start is no miss, only a retry.
            let retries = |ended: &[Ended]| ended.iter().map(|(.., retries)| *retries).sum::<u32>();
            let saved = retries(&cold) - retries(&warm);
            prop_assert!(saved == 0 || (saved == 1 && lane.kind == Kind::FreeServer));
        }
    }
}
