//! Groups of sessions are paused and resumed as one, again and again.

use std::sync::Arc;

use rand::Rng;
use rand::rngs::StdRng;
use serde_json::{Value, json};

use super::{PATIENCE, World};
use crate::plan::stories::GROUPS;

pub async fn run(world: Arc<World>, mut dice: StdRng) {
    let mut number = 0_u64;
    while !world.is_over() {
        world.rest(dice.random_range(3_000..9_000)).await;
        let agent = format!("bulk-{}", dice.random_range(0..GROUPS));
        for verb in ["pause", "resume"] {
            number += 1;
            let body = json!({ "action": verb, "filter": { "agent_id": agent } });
            let key = format!("bulk-key-{number}");
            // A repeat with the same key acts on nobody twice.
            for _ in 0..if dice.random_bool(0.2) { 2 } else { 1 } {
                post(&world, &body, &key).await;
            }
            world.rest(dice.random_range(500..3_000)).await;
        }
    }
}

/// Tries until it is answered.
async fn post(world: &World, body: &Value, key: &str) {
    let started = std::time::Instant::now();
    while started.elapsed() < PATIENCE {
        let url = format!("{}/api/sessions/bulk", world.api.any());
        let request = world.api.request(reqwest::Method::POST, url).header("Idempotency-Key", key).json(body);
        match request.timeout(std::time::Duration::from_secs(30)).send().await {
            Ok(answer) if answer.status().as_u16() == 200 => return,
            Ok(answer) if answer.status().is_client_error() && answer.status().as_u16() != 429 => {
                let text = answer.text().await.unwrap_or_default();
                return world.diary.complain(format!("a bulk action was refused: {text}"));
            }
            _ => tokio::time::sleep(std::time::Duration::from_millis(300)).await,
        }
    }
    world.diary.complain(format!("a bulk action got no answer within {PATIENCE:?}"));
}
