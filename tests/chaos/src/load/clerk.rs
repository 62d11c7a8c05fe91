//! A person whom agents ask before they do something: who says yes to most of it, and means it.

use std::sync::Arc;
use std::time::Duration;

use rand::Rng;
use rand::rngs::StdRng;
use serde_json::{Value, json};
use tokio::sync::watch;

use super::{World, code_of, post};
use crate::seen::talk::Verdict;

/// Between two looks at what is asked.
const PAUSE: Duration = Duration::from_millis(400);
const PATIENCE: Duration = Duration::from_secs(10);
const QUESTIONS: &str = "/api/operations?kind=approval&state=pending&limit=100";

/// Until all conversations have ended.
pub async fn run(world: Arc<World>, mut dice: StdRng, open: Arc<watch::Sender<()>>) {
    tokio::select! {
        () = open.closed() => {}
        () = work(&world, &mut dice) => {}
    }
}

async fn work(world: &World, dice: &mut StdRng) {
    loop {
        let page = world.api.must_get(QUESTIONS, PATIENCE).await.unwrap_or_default();
        for question in page["items"].as_array().into_iter().flatten() {
            answer(world, question, dice.random_bool(0.7)).await;
        }
        tokio::time::sleep(PAUSE).await;
    }
}

/// What was said once is said again for as long as nobody has heard it, and nothing else.
async fn answer(world: &World, question: &Value, is_yes: bool) {
    let Some(id) = question["operation_id"].as_str() else { return };
    let unheard = Verdict { approved: is_yes, heard: false };
    // Noted first: what nobody answers may have been taken.
    let known = world.verdicts.lock().ok().map(|mut all| all.entry(id.to_owned()).or_insert(unheard).clone());
    let Some(Verdict { approved, .. }) = known else { return };
    let verb = if approved { "approve" } else { "deny" };
    let body = json!({ "arguments_hash": question["approval"]["arguments_hash"], "reason": "chaos" });
    let Some(answer) = post(world, &format!("/api/operations/{id}/{verb}"), &body).await else { return };
    let code = code_of(&answer.body);
    if answer.status == 202 {
        if let Ok(mut all) = world.verdicts.lock()
            && let Some(verdict) = all.get_mut(id)
        {
            verdict.heard = true;
        }
    } else if !world.may_be_over(id, &code) {
        world.diary.complain(format!("{verb} of {id} was answered with {}", answer.body));
    }
}
