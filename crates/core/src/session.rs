//! A session: the calls of one agent at one task, reduced to figures.

mod breaks;
mod spans;

use std::cmp::Reverse;
use std::collections::BTreeMap;

use jiff::Timestamp;
use jiff::tz::TimeZone;
use serde::Serialize;

pub use breaks::BreakGroup;
pub use spans::{Split, split};

use crate::call::{CallRecord, Delivery, SessionBy};
use crate::config::Price;
use crate::prefix::Blame;
use crate::prefix::blame::blame;
use crate::summary::MissCount;

/// Tokens of several calls; what the servers reported and what had to be estimated are kept apart.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Tokens {
    /// Calls whose server reported a prompt.
    pub reported_calls: u64,
    /// Prompt tokens, cached ones included.
    pub prompt: u64,
    /// Of these, read from a prefix cache. `None`: no server said.
    pub cached: Option<u64>,
    /// Of these, written to a prefix cache. `None`: no server said.
    pub cache_write: Option<u64>,
    /// Generated tokens, reasoning included.
    pub completion: u64,
    /// Of these, reasoning. `None`: no server said.
    pub reasoning: Option<u64>,
    /// Calls that were answered without a report, so that tokens of the prompt, the answer or both are estimated.
    pub estimated_calls: u64,
    /// Prompt tokens of calls whose server said nothing, estimated.
    pub estimated_prompt: Option<u64>,
    /// Their generated tokens, estimated.
    pub estimated_completion: Option<u64>,
}

/// Which side lost a cached prefix, in calls.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Blames {
    /// The prompt did not go on from the former one.
    pub harness: u64,
    /// It did, and the server served less of it than it could have.
    pub server: u64,
    /// Both at once.
    pub both: u64,
}

/// One session in figures.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct SessionSummary {
    /// Its name.
    pub session: String,
    /// How its calls were known to belong to it, the least sure way.
    pub session_by: Option<SessionBy>,
    /// The harness, as it names itself.
    pub harness: Option<String>,
    /// Lanes that it used.
    pub lanes: Vec<String>,
    /// Models that it asked for.
    pub models: Vec<String>,
    /// Begin of the first call, microseconds since the Unix epoch (UTC).
    pub started_unix_us: i64,
    /// Requests that passed, repeats included.
    pub calls: u64,
    /// The same with repeats of one prompt counted once.
    pub logical_calls: u64,
    /// Requests that repeat the one before: retries by the harness.
    pub repeats: u64,
    /// Calls beside the main lineage.
    pub helper_calls: u64,
    /// Calls that got no whole answer although the client waited for it.
    pub failed: u64,
    /// These by class, the most frequent first.
    pub failures: Vec<MissCount>,
    /// Calls that the client left before their end.
    pub left: u64,
    /// Calls whose prompt was not measured.
    pub unmeasured: u64,
    /// Tools that the model called.
    pub tool_calls: u64,
    /// Where the time went.
    pub time: Split,
    /// Tokens.
    pub tokens: Tokens,
    /// Cached tokens as a share of the prompt tokens of the calls that reported both: the server's own figure.
    pub hit_rate: Option<f64>,
    /// The same as it could have been: bytes that prompts share with the former one of their lineage, as a share of all
    /// prompt bytes.
    pub warm_share: Option<f64>,
    /// Pairs of calls, each going on from the one before.
    pub pairs: u64,
    /// Pairs whose former prompt is repeated whole.
    pub append_only_pairs: u64,
    /// Lowest share of a former prompt that was repeated.
    pub reuse_min: Option<f64>,
    /// Mean of these shares.
    pub reuse_mean: Option<f64>,
    /// What broke the prefix, the costliest first.
    pub breaks: Vec<BreakGroup>,
    /// Tokens prefilled again because of these, estimated. `None` where no prompt tokens are known.
    pub refilled_tokens: Option<u64>,
    /// Who lost it.
    pub blame: Blames,
    /// What the session cost at its lanes' prices, micro-dollars. `None` where a call's price or tokens are not known.
    pub micro_usd: Option<u64>,
    /// The same for the calls of which both are known.
    pub known_micro_usd: Option<u64>,
}

/// Prices by lane, and zones of their hours.
pub struct Prices<'a> {
    /// The price of a lane; `None` as its name where upstreams have no names.
    pub of_lane: &'a dyn Fn(Option<&str>) -> Option<Price>,
    /// Looks a zone up by its name.
    pub zones: &'a dyn Fn(&str) -> Option<TimeZone>,
}

/// Reduces the calls of one session, in whatever order they come. `None` without calls.
pub fn summary(calls: &[CallRecord], prices: &Prices<'_>) -> Option<SessionSummary> {
    let mut calls: Vec<&CallRecord> = calls.iter().collect();
    calls.sort_by(|a, b| (a.started_unix_us, &a.id).cmp(&(b.started_unix_us, &b.id)));
    let first = calls.first()?;
    let names = |of: &dyn Fn(&CallRecord) -> Option<String>| {
        let mut list: Vec<String> = Vec::new();
        for name in calls.iter().filter_map(|c| of(c)) {
            if !list.contains(&name) {
                list.push(name);
            }
        }
        list
    };
    let count = |what: &dyn Fn(&CallRecord) -> bool| calls.iter().filter(|c| what(c)).count() as u64;
    let repeats = count(&|c| c.retry > 0);
    let figures: Vec<_> = calls.iter().filter_map(|c| c.prefix.as_ref()).collect();
    let reuses: Vec<f64> = figures.iter().filter_map(|f| f.reuse()).collect();
    let prompt_bytes: u64 = figures.iter().filter(|f| !f.helper).map(|f| f.prompt_bytes).sum();
    let warm_bytes: u64 = figures.iter().filter_map(|f| f.common_bytes).sum();
    let blames = calls.iter().filter_map(|c| blame(c.prefix.as_ref()?, &c.record.usage));
    let mut blamed = Blames::default();
    for side in blames {
        match side {
            Blame::Nobody => {}
            Blame::Harness => blamed.harness += 1,
            Blame::Server => blamed.server += 1,
            Blame::Both => blamed.both += 1,
        }
    }
    let breaks = breaks::groups(&calls);
    let refilled = breaks.iter().filter_map(|b| b.refilled_tokens).reduce(|a, b| a + b);
    let (micro_usd, known_micro_usd) = cost(&calls, prices);
    Some(SessionSummary {
        session: first.session.clone(),
        session_by: calls
            .iter()
            .map(|c| c.session_by)
            .filter(|by| *by != SessionBy::New)
            .max()
            .or(Some(first.session_by)),
        harness: calls.iter().find_map(|c| c.harness.clone()),
        lanes: names(&|c| c.lane.clone()),
        models: names(&|c| c.model.clone().or_else(|| c.record.model.clone())),
        started_unix_us: first.started_unix_us,
        calls: calls.len() as u64,
        logical_calls: calls.len() as u64 - repeats,
        repeats,
        helper_calls: count(&|c| c.prefix.as_ref().is_some_and(|p| p.helper)),
        failed: count(&failed),
        failures: failures(&calls),
        left: count(&|c| matches!(c.delivery, Delivery::ClientLeft | Delivery::Drained)),
        unmeasured: count(&|c| c.gap.is_some()),
        tool_calls: calls.iter().map(|c| c.record.tool_calls.len() as u64).sum(),
        time: split(&calls),
        tokens: tokens(&calls),
        hit_rate: hit_rate(&calls),
        warm_share: (prompt_bytes > 0 && !reuses.is_empty()).then(|| warm_bytes as f64 / prompt_bytes as f64),
        pairs: reuses.len() as u64,
        append_only_pairs: figures.iter().filter(|f| f.lost_bytes() == Some(0)).count() as u64,
        reuse_min: reuses.iter().copied().reduce(f64::min),
        reuse_mean: (!reuses.is_empty()).then(|| reuses.iter().sum::<f64>() / reuses.len() as f64),
        refilled_tokens: if breaks.is_empty() { Some(0) } else { refilled },
        breaks,
        blame: blamed,
        micro_usd,
        known_micro_usd,
    })
}

/// True for a call that got no whole answer although the client waited for it.
fn failed(call: &CallRecord) -> bool {
    !call.record.outcome.is_ok() && call.delivery != Delivery::ClientLeft
}

fn failures(calls: &[&CallRecord]) -> Vec<MissCount> {
    let mut counts: BTreeMap<&'static str, u32> = BTreeMap::new();
    for call in calls.iter().filter(|call| failed(call)) {
        *counts.entry(call.record.outcome.name()).or_default() += 1;
    }
    let mut list: Vec<MissCount> =
        counts.into_iter().map(|(class, count)| MissCount { class: class.to_owned(), count }).collect();
    // Stable: those of one count stay in the order of their names.
    list.sort_by_key(|one| Reverse(one.count));
    list
}

fn tokens(calls: &[&CallRecord]) -> Tokens {
    let mut sum = Tokens::default();
    let add = |to: &mut Option<u64>, tokens: Option<u64>| {
        if let Some(tokens) = tokens {
            *to = Some(to.unwrap_or(0).saturating_add(tokens));
        }
    };
    for call in calls {
        let usage = &call.record.usage;
        sum.reported_calls += u64::from(usage.prompt.is_some());
        sum.prompt = sum.prompt.saturating_add(usage.prompt.unwrap_or(0));
        sum.completion = sum.completion.saturating_add(usage.completion.unwrap_or(0));
        add(&mut sum.cached, usage.cached);
        add(&mut sum.cache_write, usage.cache_write);
        add(&mut sum.reasoning, usage.reasoning);
        let estimated = call.estimated_prompt_tokens.or(call.estimated_completion_tokens);
        sum.estimated_calls += u64::from(estimated.is_some());
        add(&mut sum.estimated_prompt, call.estimated_prompt_tokens);
        add(&mut sum.estimated_completion, call.estimated_completion_tokens);
    }
    sum
}

fn hit_rate(calls: &[&CallRecord]) -> Option<f64> {
    let both = calls.iter().filter_map(|c| Some((c.record.usage.cached?, c.record.usage.prompt?)));
    let (cached, prompt) = both.fold((0u64, 0u64), |(a, b), (cached, prompt)| (a + cached.min(prompt), b + prompt));
    (prompt > 0).then(|| cached as f64 / prompt as f64)
}

/// What the calls cost: all of them, and those of which price and tokens are known. A call that got no answer and of
/// which no tokens were reported cost nothing that anybody can know, so it leaves the first one open.
fn cost(calls: &[&CallRecord], prices: &Prices<'_>) -> (Option<u64>, Option<u64>) {
    let (mut pico_usd, mut known, mut all) = (0u128, 0u64, true);
    for call in calls {
        let usage = &call.record.usage;
        let row = || {
            let price = (prices.of_lane)(call.lane.as_deref())?;
            price.at(Timestamp::from_microsecond(call.started_unix_us).ok()?, prices.zones)
        };
        let (Some(prompt), Some(completion)) = (usage.prompt, usage.completion) else {
            // An error that was answered without tokens is free everywhere.
            all &= call.record.http_status.is_some_and(|status| status >= 400);
            continue;
        };
        let Some(row) = row() else {
            all = false;
            continue;
        };
        let cached = usage.cached.unwrap_or(0).min(prompt);
        let part = |tokens: u64, usd: crate::config::Usd| u128::from(tokens) * u128::from(usd.micro_usd());
        pico_usd += part(prompt - cached, row.input_usd_per_mtok)
            + part(cached, row.cached_input_usd_per_mtok)
            + part(completion, row.output_usd_per_mtok);
        known += 1;
    }
    // A token at a price for a million of them costs that many millionths of a micro-dollar.
    let sum = u64::try_from((pico_usd + 500_000) / 1_000_000).ok().filter(|_| known > 0);
    (sum.filter(|_| all), sum)
}

#[cfg(test)]
mod tests;
