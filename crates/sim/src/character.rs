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
                answer(held + between(2_000, 3_200), held + between(6_500, 8_500))
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
