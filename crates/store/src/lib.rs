//! Records on disk: a SQLite store with format numbers and one writer thread, and CSV files that need no store.
//!
//! A record counts once it is committed: `kill -9` at any moment loses no committed attempt and doubles none. How the
//! tables look, what the bounds are and which columns a CSV file has is told in `docs/store.md`.

mod calls;
pub mod csv;
mod error;
mod format;
mod ledger;
mod queue;
mod read;
mod rows;
mod store;
mod writer;

pub use calls::{CallFilter, CallWriter, SessionRow};
pub use error::StoreError;
pub use format::{APPLICATION_ID, BUSY_LIMIT, FORMAT};
pub use ledger::{
    AnsweredBy, CampaignRow, Claim, DocumentName, DocumentRow, EventRow, Ledger, LosesEvidence, PurgeBound, Purged,
    SlotKey, SlotRow, SlotState, SpentRow,
};
pub use queue::{BurstKey, GATHER, QUEUE_LIMIT};
pub use read::{BurstFilter, StoreReader, StoredBurst};
pub use rows::TEXT_LIMIT_BYTES;
pub use store::{AttemptSink, Store};
