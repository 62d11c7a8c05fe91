//! Calls that run beside the steps, and what steps cause besides their frames.

use schemas::action::{ActionType, NewAction, Urgency};
use schemas::frame::FrameIn;
use schemas::id::Namespace;
use schemas::json::Json;
use schemas::limits::ACTOR_BYTES_MAX;

use super::Session;
use crate::action::{SESSION_ACTOR, hash};
use crate::converse;
use crate::moniker::{Call, Emits, FollowUp, StepInput};

/// What a caller is told whose call was refused by the ledger; `None` if nobody waits for it.
pub fn refused_call(refused: &NewAction, problem: &str) -> Option<NewAction> {
    if refused.kind != ActionType::Input {
        return None;
    }
    let told = converse::unanswered(&refused.payload.to_value(), problem)?;
    Some(action_of(told, &refused.namespace, refused.actor.clone()))
}

fn action_of(follow_up: FollowUp, namespace: &Namespace, actor: String) -> NewAction {
    let FollowUp { action_id, kind, session_id, agent_id, payload, session, seat } = follow_up;
    let body = serde_json::json!({"type": kind, "session_id": session_id, "agent_id": agent_id,
                                  "payload": payload.to_value()});
    NewAction {
        namespace: namespace.clone(),
        action_id,
        kind,
        session_id: Some(session_id),
        agent_id,
        urgency: Urgency::Normal,
        actor,
        payload,
        metadata: Json::of(&serde_json::json!({})),
        body_hash: hash::sha256(&hash::canonical(&body)),
        session: session.map(|spawned| spawned.0),
        seat,
    }
}

impl Session {
    /// The calls that are to be under way now.
    pub fn calls(&self) -> Vec<Call> {
        if self.head.status == schemas::session::SessionStatus::Running {
            self.moniker.calls(&self.spec, &self.state)
        } else {
            Vec::new()
        }
    }

    /// Whether these calls may start before what is unsaved is durable: they send nothing, and find
    /// nothing else than they would after the commit.
    pub fn may_read_ahead(&self, calls: &[Call]) -> bool {
        let [call] = calls else { return false };
        call.effect.gathers_for().is_some_and(|turn| self.unsaved.only_begins(turn))
    }

    /// Whether calls are under way.
    pub fn set_calling(&mut self, is_calling: bool) {
        self.is_calling = is_calling;
    }

    /// Whether a stop waits for calls that are cut short for it.
    pub fn hold_stop(&mut self, is_held: bool) {
        self.is_stop_held = is_held;
    }

    /// Goes with the next commit.
    pub(super) fn emit(&mut self, emits: Emits, now_ms: i64) {
        let mut talk = emits.talk;
        for record in talk.log.iter_mut().filter(|record| record.at_ms == 0) {
            record.at_ms = now_ms;
        }
        for turn in &mut talk.turns {
            if turn.created_at_ms == 0 {
                turn.created_at_ms = now_ms;
            }
            if turn.completed_at_ms == Some(0) {
                turn.completed_at_ms = Some(now_ms);
            }
        }
        let follow_ups = emits.follow_ups.into_iter().map(|follow_up| self.action_of(follow_up)).collect();
        self.unsaved.talk(talk, follow_ups);
    }

    fn action_of(&self, follow_up: FollowUp) -> NewAction {
        let actor = format!("{SESSION_ACTOR}{}", self.key.session_id).chars().take(ACTOR_BYTES_MAX).collect();
        action_of(follow_up, &self.key.namespace, actor)
    }

    pub(super) fn say_farewell(&mut self, now_ms: i64) {
        let frame = FrameIn { step: self.head.next_step_token.clone(), state: self.state.clone(), guidance: None };
        let emits = self.moniker.farewell(&StepInput {
            session: &self.key,
            agent: &self.agent_id,
            frame: &frame,
            spec: &self.spec,
            arrival: None,
            answer: None,
            outcomes: &[],
        });
        if let Some(emits) = emits {
            self.emit(emits, now_ms);
        }
    }
}
