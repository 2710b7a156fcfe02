//! The four lanes of the demo: one per rung, each on a port of its own.

use std::io;
use std::sync::Arc;

use peaklane_core::lane::Kind;

use crate::character::Character;
use crate::host::Host;
use crate::scale::Scale;
use crate::script::Moment;
use crate::server::Lane;

/// One lane of the demo, ready to be measured.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DemoLane {
    /// Name: `lane-a` to `lane-d`, from the bottom of the ladder up.
    pub name: &'static str,
    /// Its rung.
    pub kind: Kind,
    /// Where it is: `http://127.0.0.1:PORT/v1`.
    pub base_url: String,
    /// The one model that it serves: `sim-free-hosted`, ...
    pub model: String,
}

/// The lanes of the demo, being served until this is dropped.
pub struct DemoLanes {
    lanes: Vec<DemoLane>,
    served: Vec<Arc<Lane>>,
    host: Host,
}

impl DemoLanes {
    /// Starts the four lanes on loopback, in a thread of their own. One seed always gives the same lanes.
    ///
    /// # Errors
    /// When no port can be bound or no thread started.
    pub fn start(seed: u64, scale: Scale) -> io::Result<Self> {
        let names = ["lane-a", "lane-b", "lane-c", "lane-d"];
        let characters = Kind::ALL.map(|kind| Character::new(kind, seed));
        let models = characters.each_ref().map(Character::model);
        let served: Vec<Arc<Lane>> = characters.into_iter().map(|character| Lane::new(character, scale)).collect();
        let host = Host::start(served.clone())?;
        let lanes = (names.into_iter().zip(Kind::ALL).zip(models).zip(host.addresses()))
            .map(|(((name, kind), model), address)| {
                let base_url = format!("http://{address}/v1");
                DemoLane { name, kind, base_url, model }
            })
            .collect();
        Ok(Self { lanes, served, host })
    }

    /// The lanes, from the bottom of the ladder up.
    pub fn lanes(&self) -> &[DemoLane] {
        &self.lanes
    }

    /// Tells all lanes what time it is. Call it before each window, when no request is under way: attempts are numbered
    /// from 0 again, and a server that loads its model on demand is cold.
    pub fn set_moment(&self, moment: Moment) {
        self.served.iter().for_each(|lane| lane.begin(moment));
    }

    /// Stops serving; connections still busy are closed within 100 ms.
    pub fn stop(self) {
        self.host.stop();
    }
}
