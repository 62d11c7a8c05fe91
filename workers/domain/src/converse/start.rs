//! An input starts a turn (SPEC W-LOOP-02), and so does a message that was for turns which have ended.

use schemas::conversation::{
    Caller, EventType, Message, MessageRole, SenderType, Turn, TurnPhase, TurnStatus, TurnUsage,
};
use schemas::id::{ActionId, AgentId, ConversationId, MessageId, OperationId, SessionId, TurnId, UserId};
use serde::Deserialize;
use serde_json::{Value, json};

use super::apply::Applying;
use super::decision::TurnDecision;
use super::state::{ReplyTo, SpentTo};
use super::{guide, ids};
use crate::moniker::{Arrival, ArrivalKind};

/// Field of guidance that is a posted message: the turn that it starts if no other can take it.
pub(super) const AS_TURN: &str = "as_turn";
/// Fields of the inputs of agents that call others. Inputs of anybody else must not have them.
pub const CALL_FIELDS: [&str; 3] = ["caller", "reply_to", SPENT_TO];
/// Field of an input: where it counts what the turn uses, and what there is left for it.
pub(super) const SPENT_TO: &str = "spent_to";
/// Who asks, where an input names nobody.
pub(super) const SOMEBODY: &str = "user";
/// Field of the caller in an input: how many agents have called one another up to this turn.
pub(super) const DEPTH: &str = "depth";

/// Whose turn it is.
pub(super) struct Place<'a> {
    pub conversation: &'a ConversationId,
    pub session: &'a SessionId,
    pub agent: &'a AgentId,
}

/// Plans the start. What was not posted as a message becomes one here, under the action's id.
pub(super) fn plan(place: &Place<'_>, arrival: &Arrival) -> Vec<TurnDecision> {
    let payload = &arrival.payload;
    let posted = id(payload, "message_id").and_then(|id| MessageId::parse(id).ok());
    let turn_id = id(payload, "turn_id").and_then(|id| TurnId::parse(id).ok());
    let turn_id = turn_id.unwrap_or_else(|| TurnId::parse(arrival.action_id.as_str()).expect("both are ids"));
    let message_id = posted.clone().unwrap_or_else(|| ids::input_message_id(&arrival.action_id));
    let caller = payload.get("caller").and_then(|caller| serde_json::from_value::<Caller>(caller.clone()).ok());
    let user = id(payload, "user_id").and_then(|id| UserId::parse(id).ok());
    let caller = caller.unwrap_or_else(|| Caller::User {
        user_id: user.clone().unwrap_or_else(|| UserId::parse(SOMEBODY).expect("an id")),
    });
    let asker = match &caller {
        Caller::Agent { agent_id, .. } => Some(agent_id.clone()),
        Caller::User { .. } | Caller::Workflow { .. } => None,
    };
    let reply_to_message = id(payload, "reply_to_message_id").and_then(|id| MessageId::parse(id).ok());
    let turn = Turn {
        turn_id: turn_id.clone(),
        conversation_id: place.conversation.clone(),
        session_id: place.session.clone(),
        agent_id: place.agent.clone(),
        trigger_type: trigger(&caller).to_owned(),
        caller,
        input_message_id: message_id.clone(),
        reply_to_message_id: reply_to_message.clone(),
        status: TurnStatus::Active,
        phase: TurnPhase::Assembling,
        cancelled: false,
        context_assembly_run_id: None,
        memory_extraction_run_id: None,
        issues: Default::default(),
        error: None,
        moves: 0,
        usage: TurnUsage::default(),
        pending_operations: 0,
        metadata: payload.get("metadata").filter(|metadata| metadata.is_object()).cloned(),
        created_at_ms: arrival.accepted_at_ms,
        completed_at_ms: None,
    };
    let depth = payload.get("caller").and_then(|caller| caller.get(DEPTH)).and_then(Value::as_u64).unwrap_or(0);
    let (turn, reply_to, spent_to) = (Box::new(turn), reply_to(payload), spent_to(payload));
    let mut decisions = vec![TurnDecision::StartTurn { turn, reply_to, spent_to, depth }];
    if posted.is_none() {
        let message = said(payload, (message_id, turn_id.clone()), (user, asker), reply_to_message);
        decisions.push(TurnDecision::AppendMessage { turn_id, message: Box::new(message) });
    }
    decisions
}

/// Plans the turn of a posted message that came as guidance, as its input would have started it; `None` if the
/// guidance is nothing of the kind.
pub(super) fn plan_posted(place: &Place<'_>, guidance: &Value) -> Option<Vec<TurnDecision>> {
    let turn = guidance.get(AS_TURN)?;
    let message_id = MessageId::parse(id(guidance, "message_id")?).ok()?;
    let turn_id = TurnId::parse(id(turn, "turn_id")?).ok()?;
    let payload = json!({
        "message_id": message_id,
        "turn_id": turn_id,
        "user_id": turn.get("user_id"),
        "reply_to_message_id": turn.get("reply_to_message_id"),
        "metadata": turn.get("metadata"),
    });
    let arrival = Arrival {
        action_id: ActionId::parse(turn_id.as_str()).ok()?,
        kind: ArrivalKind::Input,
        payload,
        accepted_at_ms: turn.get("at_ms")?.as_i64()?,
    };
    Some(plan(place, &arrival))
}

/// Begins a turn as planned; `false` if one of its id is active, or no other can be. One that was cancelled before ends as it begins.
pub(super) fn begin(step: &mut Applying, decisions: Vec<TurnDecision>) -> bool {
    let turn_id = decisions.iter().find_map(|decision| match decision {
        TurnDecision::StartTurn { turn, .. } => Some(turn.turn_id.clone()),
        _ => None,
    });
    let can_begin = |turn_id: &TurnId| step.state.lane(turn_id).is_none() && step.state.has_room(0);
    let Some(turn_id) = turn_id.filter(can_begin) else { return false };
    step.emits.turn = Some(turn_id.clone());
    step.apply(decisions);
    if step.state.cancelled.contains(&turn_id) {
        guide::cancel(step, turn_id);
    }
    true
}

fn id<'p>(payload: &'p Value, name: &str) -> Option<&'p str> {
    payload.get(name).and_then(Value::as_str)
}

fn trigger(caller: &Caller) -> &'static str {
    match caller {
        Caller::User { .. } => "user_message",
        Caller::Workflow { .. } => "workflow_call",
        Caller::Agent { .. } => "agent_call",
    }
}

pub(super) fn reply_to(payload: &Value) -> Option<ReplyTo> {
    let to = payload.get("reply_to")?;
    Some(ReplyTo {
        session_id: SessionId::parse(id(to, "session_id")?).ok()?,
        operation_id: OperationId::parse(id(to, "operation_id")?).ok()?,
    })
}

fn spent_to(payload: &Value) -> Option<Box<SpentTo>> {
    SpentTo::deserialize(payload.get(SPENT_TO)?).ok().map(Box::new)
}

/// The input as a message of the transcript. Whoever asks has said it, also an agent; to the model that is to answer,
/// it is a user's either way (SPEC K-07).
fn said(
    payload: &Value,
    (message_id, turn_id): (MessageId, TurnId),
    (user_id, agent_id): (Option<UserId>, Option<AgentId>),
    reply_to_message_id: Option<MessageId>,
) -> Message {
    let text = payload.get("text").and_then(Value::as_str).or_else(|| payload.as_str()).map(str::to_owned);
    let content = payload.get("content").filter(|content| content.is_array()).cloned();
    Message {
        message_id,
        turn_id: Some(turn_id),
        sender_type: if agent_id.is_some() { SenderType::Agent } else { SenderType::User },
        role: MessageRole::User,
        user_id,
        agent_id,
        session_id: None,
        name: id(payload, "name").map(str::to_owned),
        // An input of another shape is shown as it is.
        data: (text.is_none() && content.is_none()).then(|| payload.clone()),
        text,
        content,
        event_type: EventType::Utterance,
        reply_to_message_id,
        provider_message_id: None,
        metadata: payload.get("metadata").cloned(),
        iteration: None,
        step_token: None,
        next_step_token: None,
        status: None,
        notes: None,
    }
}
