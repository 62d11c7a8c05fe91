//! Attempts at a hook: three, of thirty seconds each, with waits between them (SPEC W-CTX-07 and W-EXT-02; not
//! configurable).

use std::time::Duration;

use domain::converse::Assembly;
use domain::effect::{EffectFailure, Outcome};
use schemas::problem::Code;
use serde_json::json;
use tokio::time::timeout;

use super::assemble::Start;
use super::failed;
use super::hooks::{Hooks, TurnPlace};

const ATTEMPTS: u32 = 3;
const FIRST_WAIT_MS: u64 = 100;
const TIMEOUT: Duration = Duration::from_secs(30);
const TOO_LONG: &str = "it took longer than 30 s";
/// A store that takes longer to give one row is away.
const ANSWER_MAX: Duration = Duration::from_secs(5);

/// The context of a turn. What fails is decided, and not tried again; what hangs is. While the store itself is
/// away no attempt counts: nothing could be recorded of a failure either, and what is only late is not lost.
pub(super) async fn assemble(hooks: &dyn Hooks, turn: TurnPlace<'_>, start: Start) -> Result<Assembly, Outcome> {
    let mut attempt = 1;
    loop {
        if let Ok(outcome) = timeout(TIMEOUT, hooks.assemble(turn, start.clone())).await {
            return outcome;
        }
        if !store_answers(turn, &start).await {
            continue;
        }
        if attempt == ATTEMPTS {
            let message = format!("the context could not be made in {ATTEMPTS} attempts: {TOO_LONG}");
            tracing::warn!(turn = %turn.talk.turn, error = %message, "a turn fails");
            return Err(failed(Code::StepFailed, message));
        }
        pause_after(attempt).await;
        attempt += 1;
    }
}

async fn store_answers(turn: TurnPlace<'_>, start: &Start) -> bool {
    let (namespace, conversation) = (turn.namespace, &turn.talk.conversation);
    let row = turn.deps.conversations.record(namespace, conversation, start.input.message_id.as_str());
    matches!(timeout(ANSWER_MAX, row).await, Ok(Ok(_)))
}

/// Writes memories of a turn; every failure is tried again.
pub(super) async fn extract(hooks: &dyn Hooks, turn: TurnPlace<'_>) -> Outcome {
    let mut message = String::new();
    for attempt in 1..=ATTEMPTS {
        match timeout(TIMEOUT, hooks.extract(turn)).await {
            Ok(Ok(written)) => return Outcome::Ok(json!({ "written": written })),
            Ok(Err(failed)) => message = failed.to_string(),
            Err(_) => TOO_LONG.clone_into(&mut message),
        }
        if attempt < ATTEMPTS {
            pause_after(attempt).await;
        }
    }
    tracing::warn!(turn = %turn.talk.turn, error = %message, "memories of a turn could not be extracted");
    Outcome::Failed(EffectFailure { code: Code::StepFailed, message, retriable: false, may_have_happened: true })
}

async fn pause_after(attempt: u32) {
    tokio::time::sleep(Duration::from_millis(FIRST_WAIT_MS << (attempt - 1))).await;
}
