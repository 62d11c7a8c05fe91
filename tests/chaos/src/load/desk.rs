//! Work of agents that is done outside of the fleet: a desk claims tasks of a pool and answers them,
//! some of them twice, and now and then it forgets one.

use std::sync::Arc;
use std::time::Duration;

use rand::Rng;
use rand::rngs::StdRng;
use serde_json::{Value, json};
use tokio::sync::watch;

use super::{World, code_of, post};
use crate::fleet::agents;

/// After a claim that brought nothing.
const PAUSE: Duration = Duration::from_millis(200);

/// Until all conversations have ended.
pub async fn run(world: Arc<World>, mut dice: StdRng, open: Arc<watch::Sender<()>>) {
    tokio::select! {
        () = open.closed() => {}
        () = work(&world, &mut dice) => {}
    }
}

async fn work(world: &World, dice: &mut StdRng) {
    let claim = format!("/api/pools/{}/claim?wait_s=3", agents::POOL);
    loop {
        let task = match world.api.post(&claim, &json!({})).await {
            Ok(answer) if answer.status == 200 => answer.body,
            // Nothing to do, or nobody there. A claim whose answer was lost ends by itself.
            _ => {
                tokio::time::sleep(PAUSE).await;
                continue;
            }
        };
        world.rest(dice.random_range(0..1_500)).await;
        // Its claim ends, and it is given away once more.
        if dice.random_bool(0.05) && !world.is_over() {
            continue;
        }
        answer(world, &task, dice.random_range(0..4)).await;
    }
}

/// The first result counts: the same again is answered alike, another one is refused.
async fn answer(world: &World, task: &Value, way: u32) {
    let operation = &task["operation_id"];
    let result = |done: &str| json!({ "operation_id": operation, "result": { "found": done } });
    let Some(first) = post(world, "/api/tool-results", &result("it")).await else { return };
    if world.may_be_over(operation.as_str().unwrap_or_default(), &code_of(&first.body)) {
        return;
    }
    if first.status != 202 {
        return world.diary.complain(format!("the result of {operation} was answered with {}", first.body));
    }
    let (second, is_well): (Value, fn(&Value) -> bool) = match way {
        0 => (result("it"), |body: &Value| body["accepted"] == false),
        1 => (result("something else"), |body: &Value| code_of(body) == "no_open_operation"),
        _ => return,
    };
    let Some(again) = post(world, "/api/tool-results", &second).await else { return };
    if !is_well(&again.body) {
        let what = format!("a second result of {operation} ({second}) was answered with {}", again.body);
        world.diary.complain(what);
    }
}
