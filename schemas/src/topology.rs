//! Names on the broker (frozen, DESIGN 3), in one place, and what marks a message as the fleet's.

use crate::action::Lane;
use crate::id::Shard;

pub const EXCHANGE_ACTIONS: &str = "stepfleet.actions";
pub const EXCHANGE_EVENTS: &str = "stepfleet.events";
pub const QUEUE_INGRESS: &str = "stepfleet.ingress";
pub const QUEUE_DEAD: &str = "stepfleet.dead";

/// `app_id` of everything that the fleet itself publishes.
pub const APP_ID: &str = "stepfleet";
/// `type` of an action on the queue: JSON of [`crate::action::Action`]. The number changes with its shape.
pub const TYPE_ACTION: &str = "action.v1";
/// `type` of a task for workers of others: JSON of [`crate::api::TaskBody`].
pub const TYPE_TASK: &str = "task.v1";
/// `type` of live hints: JSON of [`crate::hint::Hints`].
pub const TYPE_HINTS: &str = "hints.v1";
/// `type` of news of conversations: JSON `[sender, [[conversation, news or null], …]]`, where null
/// says that some were lost.
pub const TYPE_NEWS: &str = "news.v1";

/// Hints travel in this many parts, so that a gateway is told only of what somebody watches; and
/// so do news.
pub const EVENT_PARTS: u16 = 64;

/// Queue and routing key of one lane of a shard.
pub fn shard_queue(shard: Shard, lane: Lane) -> String {
    format!("stepfleet.shard.{shard}.{}", lane.as_str())
}

/// Queue of the tasks of an executor pool.
pub fn task_queue(pool: &str) -> String {
    format!("stepfleet.tasks.{pool}")
}

/// Routing key of the hints of one part.
pub fn event_key(part: u16) -> String {
    format!("part.{part}")
}

/// Routing key of the news of one part.
pub fn news_key(part: u16) -> String {
    format!("talk.{part}")
}
