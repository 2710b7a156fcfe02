//! The begin: which campaigns go on or begin, which lanes they have, what the store says about their bursts.

use super::*;
use jiff::tz::TimeZone;
use peaklane_core::watch::CampaignName;
use peaklane_store::EventRow;

use crate::watch::Site;
use crate::watch::resolve::{Resolved, resolve};

pub(super) enum Opened {
    /// Campaigns to watch.
    Tracks(Vec<Track>),
    /// Nothing is left to watch.
    Over(Ended),
}

/// Opens every site.
///
/// # Errors
/// [`WatchError`] for a store that cannot be opened, and for a plan that cannot be made.
pub(super) async fn open<C: WallClock, H: Hear>(
    plan: &Plan,
    clock: &C,
    desk: &mut Desk<'_, H>,
    on_time_s: u32,
) -> Result<Opened, WatchError> {
    let mut tracks = Vec::new();
    let mut over = Ended::Finished;
    for site in &plan.sites {
        let now = clock.read().wall;
        let candidate = site.candidate.clone();
        let resolved = desk.keeper.with(move |ledger| resolve(ledger, &candidate, now.as_microsecond())).await?;
        let name = CampaignName { campaign: resolved.row.id.clone(), site: resolved.row.site.clone() };
        for (former, changed) in &resolved.replaced {
            let (former, changed) = (former.clone(), changed.clone());
            desk.tell(now, &Note::CampaignReplaced { name: name.clone(), former, changed });
        }
        if let Some((_, why)) = &resolved.row.stopped {
            over = if why == "budget" { Ended::Budget(None) } else { Ended::StoppedElsewhere };
            desk.tell(now, &Note::CampaignStopped { name, why: why.clone() });
            continue;
        }
        tracks.extend(tracks_of(site, &resolved, &name, now, desk, on_time_s).await?);
    }
    desk.set_campaigns(tracks.iter().map(|track: &Track| track.name.campaign.clone()).collect());
    desk.flush(clock.read().wall).await;
    Ok(if tracks.is_empty() { Opened::Over(over) } else { Opened::Tracks(tracks) })
}

async fn tracks_of<H: Hear>(
    site: &Site,
    resolved: &Resolved,
    name: &CampaignName,
    now: Timestamp,
    desk: &mut Desk<'_, H>,
    on_time_s: u32,
) -> Result<Vec<Track>, WatchError> {
    let (rows, swept) = desk.keeper.sweep(name.campaign.clone(), now, on_time_s).await?;
    let id = name.campaign.clone();
    let events = desk.keeper.with(move |ledger| ledger.events(0)).await?;
    let known = |kind: &str, lane: &str| {
        let ours =
            |e: &&EventRow| e.kind == kind && e.campaign.as_ref() == Some(&id) && e.lane.as_deref() == Some(lane);
        events.iter().rev().find(ours).map(|event| event.unix_us)
    };
    let asked: Vec<String> = site.candidate.locked.lanes.iter().map(|lane| lane.name.clone()).collect();
    let (mine, gone): (Vec<String>, Vec<String>) =
        resolved.locked.lanes.iter().map(|lane| lane.name.clone()).partition(|lane| asked.contains(lane));
    let joined = asked.iter().filter(|lane| resolved.locked.lane(lane).is_none());

    let policy = Policy {
        late_tolerance_s: u32::try_from(resolved.locked.campaign.late_tolerance.as_us() / 1_000_000)
            .unwrap_or(u32::MAX),
        on_time_s,
    };
    let zone: TimeZone = site.zone.clone();
    let make = |lanes: Vec<String>, begun: Timestamp| {
        Track::new(name.clone(), resolved.locked.clone(), zone.clone(), lanes, (begun, policy), &rows)
    };
    let begun = Timestamp::from_microsecond(resolved.row.started_unix_us).unwrap_or(now);
    let mut tracks = vec![make(mine, begun)?];
    for lane in joined {
        let since = known("lane_joined", lane);
        let note = Note::LaneJoined { name: name.clone(), lane: lane.clone() };
        if since.is_none() {
            desk.tell(now, &note)
        }
        let since = since.and_then(|us| Timestamp::from_microsecond(us).ok()).unwrap_or(now);
        tracks.push(make(vec![lane.clone()], since)?);
    }
    tell_begin(resolved, name, &tracks, rows.len() as u64, now, desk);
    for lane in gone {
        let note = Note::LaneGone { name: name.clone(), lane: lane.clone() };
        if known("lane_gone", &lane).is_some() { desk.tell_again(&note) } else { desk.tell(now, &note) }
    }
    for one in swept.iter().filter(|one| !one.whole) {
        let place = tracks[0].place(&one.key);
        desk.tell(now, &Note::BurstInterrupted { place, reason: "abandoned".to_owned() });
    }
    tracks.retain(|track| !track.lanes().is_empty());
    Ok(tracks)
}

fn tell_begin<H: Hear>(
    resolved: &Resolved,
    name: &CampaignName,
    tracks: &[Track],
    over: u64,
    now: Timestamp,
    desk: &mut Desk<'_, H>,
) {
    let Some(track) = tracks.first() else { return };
    let (name, bursts) = (name.clone(), tracks.iter().map(Track::planned).sum());
    let (first_date, last_date) = (track.dates.0.to_string(), track.dates.1.to_string());
    desk.tell(
        now,
        &if resolved.new {
            Note::CampaignBegun { name, first_date, last_date, bursts }
        } else {
            Note::CampaignContinued { name, first_date, last_date, bursts, over }
        },
    );
}
