//! The worker process: runner (owns shards, runs sessions), executor (runs tools) and archivist
//! (moves history).
//! Everything it needs from the world comes as a port.

pub mod archivist;
pub mod executor;
pub mod presence;
pub mod runner;
pub mod step_log;
pub mod talk;
mod actor;
mod auditor;
#[cfg(test)]
mod fakes;
mod heartbeat;
mod outgoing;
mod shard_task;
mod schedule;
mod lease;
mod till;
