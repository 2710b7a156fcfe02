//! What fires the bursts of a watcher: lanes of the configuration, records in the store, the control endpoint beside.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use jiff::Timestamp;
use jiff::tz::TimeZone;
use peaklane_core::budget::{Used, price_of};
use peaklane_core::config::{Config, TaskKind};
use peaklane_core::forecast::need;
use peaklane_core::summary::Quantile;
use peaklane_core::watch::Shortly;
use peaklane_run::burst::{Fired, Stop, fire};
use peaklane_run::recorder::Recorder;
use peaklane_run::watch::{Gun, Misfire, Order};
use peaklane_store::{SpentRow, Store};
use peaklane_wire::control::probe;
use peaklane_wire::lag::LagProbe;
use peaklane_wire::net::Network;
use peaklane_wire::proxy_env::Proxies;
use tokio::sync::oneshot;

use crate::cmd::lanes::limits;
use crate::cmd::shots::{Mould, Occasion, Pace};
use crate::exit::Exit;
use crate::failure::Failure;
use crate::load::{Environment as _, ProcessEnvironment, time_zone};

/// The gun of `watch`.
pub(super) struct StoreGun<'a> {
    config: &'a Config,
    store: PathBuf,
    lag: Arc<LagProbe>,
    /// The control endpoint and a network for it.
    control: Option<(Arc<Network>, String)>,
}

impl<'a> StoreGun<'a> {
    /// A gun that records into the store at `store`. Nothing is opened or sent yet. Inside of an event loop.
    ///
    /// # Errors
    /// [`Failure`] with exit code 2 for a proxy that cannot be used.
    pub(super) fn new(config: &'a Config, store: &Path) -> Result<Self, Failure> {
        let control = match &config.control {
            Some(control) => {
                let variable =
                    |name: &str| ProcessEnvironment.variable(name).and_then(|value| value.into_string().ok());
                let proxies = Proxies::from_env(variable).map_err(|e| Failure::of(Exit::Usage, &e, e.hint()))?;
                let network = Network::new(proxies, &[], false).map_err(|e| Failure::of(Exit::Usage, &e, e.hint()))?;
                Some((Arc::new(network), control.url.clone()))
            }
            None => None,
        };
        Ok(Self { config, store: store.to_owned(), lag: Arc::new(LagProbe::start()), control })
    }

    fn mould(&self, task: &'a peaklane_core::config::Task) -> Mould<'a> {
        let batch = task.judged_by() == TaskKind::Batch;
        Mould {
            config: self.config,
            task,
            limits: limits(self.config),
            stream: true,
            batch,
            pace: Pace::of(self.config, task),
        }
    }

    /// Looks whether every lane can be fired at: keys, certificates, addresses. Nothing is sent.
    ///
    /// # Errors
    /// The first [`Failure`], with exit code 2.
    pub(super) fn check(&self) -> Result<(), Failure> {
        let Some(task) = self.config.tasks.first() else { return Ok(()) };
        let occasion = Occasion::now(None, 0);
        self.config.lanes.iter().try_for_each(|lane| self.mould(task).shot(lane, &occasion, &self.lag).map(|_| ()))
    }
}

impl Gun for StoreGun<'_> {
    async fn fire(&self, order: &Order, stop: Stop) -> Result<Shortly, Misfire> {
        let unsent = |error: String| Misfire { error, unsent: true };
        let key = &order.key;
        let (Some(lane), Some(task)) = (self.config.lane(&key.lane), self.config.task(&key.task)) else {
            return Err(unsent(format!("`{}` and `{}` are not both in the configuration", key.lane, key.task)));
        };
        let occasion = Occasion {
            run: order.run.clone(),
            mark: order.mark.clone(),
            started_unix_us: order.started.as_microsecond(),
            seed: order.seed,
            date: key.date.clone(),
            window: Some(key.window.clone()),
            zone: Some(order.zone.clone()),
            campaign: Some(key.campaign.clone()),
            site: order.site.clone(),
        };
        let shot = self.mould(task).shot(lane, &occasion, &self.lag).map_err(|failure| unsent(failure.message))?;
        let path = self.store.clone();
        let opened = tokio::task::spawn_blocking(move || Store::open(&path)).await;
        let store = opened.map_err(|e| unsent(e.to_string()))?.map_err(|e| unsent(e.to_string()))?;
        let mut recorder = Recorder::nowhere().keeping_texts(self.config.privacy.texts).with_store(store.sink());
        if let Some((network, url)) = self.control.clone() {
            let (told, figures) = oneshot::channel();
            recorder = recorder.with_control(figures);
            // Ends by itself within its limit; nobody listens where the burst failed.
            tokio::spawn(async move {
                let _ = told.send(probe(network.as_ref(), &url).await);
            });
        }
        let fired = fire(&shot.client, &shot.lane, &shot.plan, &recorder, &self.lag, stop, |_| {}).await;
        drop(recorder);
        let closed = tokio::task::spawn_blocking(move || store.close()).await;
        let sent = |error: String| Misfire { error, unsent: false };
        let fired = fired.map_err(|error| sent(error.to_string()))?;
        closed.map_err(|e| sent(e.to_string()))?.map_err(|e| sent(e.to_string()))?;
        Ok(shortly(&fired))
    }

    fn need(&self, lane: &str, task: &str, at: Timestamp) -> Used {
        let (Some(lane), Some(task)) = (self.config.lane(lane), self.config.task(task)) else { return Used::default() };
        need(self.config, lane, task, at, &zone).used()
    }

    fn price(&self, spent: &SpentRow) -> Option<u64> {
        let price = self.config.lane(&spent.lane)?.price.as_ref()?;
        let row = price.at(Timestamp::from_microsecond(spent.started_unix_us).ok()?, &zone)?;
        let parts = [
            price_of(spent.input_tokens, row.input_usd_per_mtok.micro_usd()),
            price_of(spent.cached_tokens, row.cached_input_usd_per_mtok.micro_usd()),
            price_of(spent.output_tokens, row.output_usd_per_mtok.micro_usd()),
        ];
        Some(parts.into_iter().fold(0, u64::saturating_add))
    }
}

/// A zone by its name, for prices with hours.
pub(super) fn zone(name: &str) -> Option<TimeZone> {
    time_zone(name).ok()
}

fn shortly(fired: &Fired) -> Shortly {
    let summary = &fired.summary;
    let (p90_us, p90_exceeds) = match summary.p90 {
        Some(Quantile::Value(us)) => (Some(us), false),
        Some(Quantile::Exceeds(us)) => (Some(us), true),
        None => (None, false),
    };
    Shortly {
        burst: fired.header.id.clone(),
        state: fired.end.state,
        passed: summary.passed,
        n: summary.n,
        retried: summary.retried,
        p90_us,
        p90_exceeds,
        miss: summary.misses.first().map(|miss| miss.class.clone()),
        finding: fired.end.finding.clone(),
    }
}
