//! Messages that nobody can take, on the ingress and on the queues of shards. Each has a marker, by
//! which it must be found among the dead letters.

use std::sync::Arc;

use rand::Rng;
use rand::rngs::StdRng;
use serde_json::json;

use super::World;

/// In one run.
const MESSAGES_MAX: u64 = 300;
/// More than an action may have.
const OVERSIZED: usize = (1 << 20) + 4_096;

pub async fn run(world: Arc<World>, mut dice: StdRng) {
    for number in 0..MESSAGES_MAX {
        world.rest(dice.random_range(500..4_000)).await;
        if world.is_over() {
            return;
        }
        let marker = format!("garbage-{number:04}");
        let kind = dice.random_range(0..20);
        let body = match kind {
            0 => format!("{{\"type\":\"{marker}\",\"pad\":\"{}\"}}", "x".repeat(OVERSIZED)),
            1..5 => format!("{marker} is no JSON"),
            5..9 => json!({ "type": marker }).to_string(),
            9..13 => json!({ "action_id": marker, "session_id": "nobody-knows-it", "type": "pause" }).to_string(),
            13..17 => json!({ "agent_id": marker, "payload": { "moniker": "no-such" }, "type": "create" }).to_string(),
            _ => json!([marker]).to_string(),
        };
        let shard = dice.random_range(0..world.shards.max(1));
        let lane = if dice.random_bool(0.5) { "work" } else { "control" };
        let straight = format!("stepfleet.shard.{shard}.{lane}");
        let queue = if dice.random_bool(0.6) { "stepfleet.ingress" } else { straight.as_str() };
        match world.foreign.publish(queue, &body, &marker, 1).await {
            Ok(true) => {
                if let Ok(mut garbage) = world.garbage.lock() {
                    garbage.push(marker);
                }
            }
            // Without a confirmation nobody knows.
            Ok(false) => {}
            Err(error) => return world.diary.complain(format!("{error:#}")),
        }
    }
}
