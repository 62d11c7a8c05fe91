//! The one way to read history: journal ∪ archive, each row once, ordered, then limited.
//!
//! The journal is always read first. A row that leaves the journal between the two reads is in the
//! archive already, so nothing is missed; a row that is in both is told by its identity, so nothing
//! is seen twice (invariant J1). Where the journal has all that is asked for, the archive is not asked
//! at all (`stretch`). This module asks ports; what it decides is in [`order`], [`merge`] and `stretch`,
//! which are pure. Of logs of conversations SQL has the rows and the archive the bodies
//! ([`ArchivedConversations`]).

mod events;
pub mod merge;
mod message;
pub mod order;
mod records;
mod snapshot;
mod steps;
mod stretch;
#[cfg(test)]
mod tests;
pub mod view;

pub use events::{EventsPage, StreamItem, events};
pub use message::message;
pub use records::ArchivedConversations;
pub use snapshot::{snapshot, step_result};
pub use steps::{StepsOf, StepsPage, StepsQuery, steps};

/// Journal entries fetched at a time; each holds up to `limits::RUN_AHEAD_STEPS_MAX` steps.
const ENTRIES_AT_A_TIME: usize = 64;
