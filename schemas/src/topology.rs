//! Names on the broker (frozen, DESIGN 3), in one place.

use crate::action::Lane;
use crate::id::Shard;

pub const EXCHANGE_ACTIONS: &str = "stepfleet.actions";
pub const EXCHANGE_EVENTS: &str = "stepfleet.events";
pub const QUEUE_INGRESS: &str = "stepfleet.ingress";
pub const QUEUE_DEAD: &str = "stepfleet.dead";

/// Queue and routing key of one lane of a shard.
pub fn shard_queue(shard: Shard, lane: Lane) -> String {
    format!("stepfleet.shard.{shard}.{}", lane.as_str())
}

/// Queue of the tasks of an executor pool.
pub fn task_queue(pool: &str) -> String {
    format!("stepfleet.tasks.{pool}")
}
