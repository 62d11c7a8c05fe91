//! The end of a turn before its time (SPEC K-23).

use schemas::action::{ActionType, NewAction, Urgency};
use schemas::conversation::{Turn, TurnStatus};
use schemas::id::Namespace;
use schemas::json::Json;
use schemas::problem::{Code, Problem};
use serde_json::json;

use super::ids;
use crate::action::{MODE_NOW, hash};

/// Guidance that cancels a turn, at once: it does not wait for the reply of a model that nobody wants
/// any more.
///
/// # Errors
/// The turn has ended.
pub fn action(namespace: &Namespace, turn: &Turn, actor: &str) -> Result<NewAction, Box<Problem>> {
    let how = match (turn.status, turn.cancelled) {
        (TurnStatus::Active, _) => None,
        (TurnStatus::Completed, _) => Some("is completed"),
        (TurnStatus::Failed, true) => Some("is cancelled already"),
        (TurnStatus::Failed, false) => Some("has failed"),
    };
    if let Some(how) = how {
        let detail = format!("{} {how}, and what has ended does not change.", turn.turn_id);
        return Err(Box::new(Problem::new(Code::TurnEnded, detail)));
    }
    let payload = json!({"guidance": {"cancel_turn": turn.turn_id}, "mode": MODE_NOW});
    Ok(NewAction {
        namespace: namespace.clone(),
        action_id: ids::cancellation(namespace, &turn.turn_id),
        kind: ActionType::Interrupt,
        session_id: Some(turn.session_id.clone()),
        agent_id: None,
        urgency: Urgency::Normal,
        actor: actor.to_owned(),
        body_hash: hash::sha256(&hash::canonical(&payload)),
        payload: Json::of(&payload),
        metadata: Json::of(&json!({"conversation_id": turn.conversation_id, "turn_id": turn.turn_id})),
        session: None,
        seat: None,
    })
}
