//! Decisions become state, records, operations and follow-up actions. Nothing is decided here.

use schemas::conversation::{
    Caller, LogKind, LogRecord, Message, MessageRole, Operation, OperationKind, OperationState, Turn, TurnError,
    TurnPhase, TurnStatus, TurnUsage,
};
use schemas::definition::{EffectClass, InvocationMode};
use schemas::id::{AgentId, ConversationId, OperationId, SessionId, TurnId};
use schemas::json::Json;
use serde::Serialize;
use serde_json::{Value, json};

use super::agents::{self, AgentCall};
use super::decision::TurnDecision;
use super::state::{Joined, Lane, Open, ReplyTo, SpentTo, Stage, TalkState};
use super::transcript::LateResult;
use super::{budget, guests, ids};
use crate::action::hash;
use crate::chat::{ToolError, ToolErrorCode, ToolResult};
use crate::moniker::Emits;

/// Turns that are at work at a time, so no more models are asked at once; others wait in line. A turn that waits for
/// a tool, a person or another agent takes nobody's place (SPEC W-TRN-06).
const LANES_MAX: usize = 16;
/// Why a turn fails whose session ends before it.
pub(super) const SESSION_ENDED: &str = "session_ended";
/// Agents that were looped in and are told of pauses: the newest.
const JOINED_MAX: usize = 256;

/// A step in the making: the state it leaves, and what it causes.
pub(super) struct Applying {
    pub state: TalkState,
    pub emits: Emits,
    pub names: Vec<&'static str>,
    /// What was said to people in this step.
    pub said: Option<String>,
    conversation: ConversationId,
    session: SessionId,
    agent: AgentId,
    depth: u64,
    iteration_token: String,
    before: Vec<Turn>,
}

impl Applying {
    pub fn new(
        state: TalkState,
        (conversation, session, agent): (ConversationId, SessionId, AgentId),
        depth: u64,
        step_token: &str,
    ) -> Self {
        let before = state.lanes.iter().map(|lane| lane.turn.clone()).collect();
        Self {
            state,
            emits: Emits::default(),
            names: Vec::new(),
            said: None,
            conversation,
            session,
            agent,
            depth,
            iteration_token: step_token.to_owned(),
            before,
        }
    }

    pub fn apply(&mut self, decisions: Vec<TurnDecision>) {
        for decision in decisions {
            self.names.push(decision.name());
            self.apply_one(decision);
        }
    }

    fn apply_one(&mut self, decision: TurnDecision) {
        match decision {
            TurnDecision::StartTurn { turn, reply_to, spent_to, depth } => {
                self.start(*turn, (reply_to, spent_to), depth);
            }
            TurnDecision::CompleteTurn { turn_id } => self.complete(&turn_id),
            TurnDecision::FailTurn { turn_id, error, cancelled } => self.fail(&turn_id, &error, cancelled),
            TurnDecision::AppendMessage { turn_id, message } => self.append(&turn_id, *message),
            TurnDecision::DispatchTask { turn_id, operation, is_async, number, asks_model } => {
                let open = Open { asks_model, ..open_of(&operation, is_async, number) };
                self.track(&turn_id, open, *operation);
            }
            TurnDecision::DispatchAgent { turn_id, call, number } => self.call_agent(&turn_id, &call, number),
            TurnDecision::AskApproval { turn_id, operation, open } => self.track(&turn_id, *open, *operation),
            TurnDecision::AsyncOperationCompleted { turn_id, operation_id, result } => {
                self.late(&turn_id, operation_id, *result);
            }
            TurnDecision::MarkWaiting { turn_id, phase } => {
                let stage = if phase == TurnPhase::WaitingAsync { Stage::WaitAsync } else { Stage::Wait };
                self.set_stage(&turn_id, stage);
            }
            TurnDecision::ResumeFromTool { turn_id } => self.resume(&turn_id),
            TurnDecision::WriteMemory { turn_id } => self.set_stage(&turn_id, Stage::Extract),
            // Its operation is tracked by the decision that dispatches it.
            TurnDecision::TrackAsyncOperation { .. } => {}
        }
    }

    /// A record of the conversation's log; one id is written once.
    pub fn record(&mut self, kind: LogKind, turn: &TurnId, id: String, body: &impl Serialize) {
        self.emits.talk.log.push(LogRecord {
            kind,
            id,
            turn_id: Some(turn.clone()),
            agent_id: Some(self.agent.clone()),
            session_id: Some(self.session.clone()),
            at_ms: 0,
            body: Json::of(body),
        });
    }

    /// Something that happened, by its name (SPEC K-30).
    pub fn event(&mut self, turn: &TurnId, name: ids::Word, mut detail: Value) {
        detail["type"] = name.as_str().into();
        detail["turn_id"] = json!(turn);
        self.record(LogKind::Event, turn, ids::record_id(turn, name), &detail);
    }

    fn start(&mut self, mut turn: Turn, (reply_to, spent_to): (Option<ReplyTo>, Option<Box<SpentTo>>), depth: u64) {
        let turn_id = turn.turn_id.clone();
        let has_place = self.places() > 0;
        // Only what was posted comes so far: its message has them as well.
        if !self.state.has_room(turn.metadata.as_ref().map_or(0, hash::size)) {
            turn.metadata = None;
        }
        let detail = json!({"type": ids::STARTED});
        self.record(LogKind::Event, &turn_id, ids::STARTED.to_owned(), &detail);
        let is_users = matches!(turn.caller, Caller::User { .. });
        let name = if is_users { ids::CONVERSATION_TURN } else { ids::AGENT_CALL_STARTED };
        self.event(&turn_id, name, json!({"caller": turn.caller, "input_message_id": turn.input_message_id}));
        self.state.turns_started += 1;
        self.state.since_ms.get_or_insert(turn.created_at_ms);
        let parent = self.state.last_turn.replace(turn_id);
        self.state.lanes.push(Lane {
            turn,
            stage: if has_place { Stage::Assemble } else { Stage::Queued },
            parent,
            depth,
            joins: 0,
            rounds: 0,
            open: Vec::new(),
            unseen: 0,
            told: Some(0),
            limits: None,
            notes: Vec::new(),
            allowance: 1,
            since_ms: None,
            reply_to,
            spent_to,
            last_text: None,
            spoke: false,
            declined: false,
            compaction: None,
            compactions: 0,
            compacted_for: None,
        });
    }

    fn append(&mut self, turn_id: &TurnId, mut message: Message) {
        message.step_token = Some(self.iteration_token.clone());
        // An agent that asks speaks, too; but it is not the one whose turn this is.
        let is_answer = message.role == MessageRole::Assistant;
        if is_answer {
            message.session_id = Some(self.session.clone());
            self.said = match (self.said.take(), &message.text) {
                (Some(before), Some(text)) => Some(format!("{before}\n{text}")),
                (before, text) => before.or_else(|| text.clone()),
            };
        }
        if let Some(lane) = self.state.lane_mut(turn_id).filter(|_| is_answer) {
            lane.spoke = true;
            if lane.reply_to.is_some() {
                lane.last_text.clone_from(&message.text);
            }
        }
        let id = message.message_id.to_string();
        self.record(LogKind::Message, turn_id, id, &message);
    }

    fn track(&mut self, turn_id: &TurnId, open: Open, mut operation: Operation) {
        operation.session_id = self.session.clone();
        operation.conversation_id = self.conversation.clone();
        self.emits.talk.operations.push(operation);
        if let Some(lane) = self.state.lane_mut(turn_id) {
            lane.open.push(open);
        }
    }

    fn call_agent(&mut self, turn_id: &TurnId, call: &AgentCall, number: Option<u32>) {
        let lane = self.state.lane(turn_id);
        let from = agents::From {
            conversation: &self.conversation,
            session: &self.session,
            agent: &self.agent,
            turn: turn_id,
            depth: lane.map_or(self.depth, |lane| lane.depth.max(self.depth)),
        };
        let left = lane.map(|lane| budget::left(lane, &self.state)).unwrap_or_default();
        let actions = agents::actions(call, &from, (lane, left));
        self.emits.follow_ups.extend(actions);
        if call.mode == InvocationMode::LoopIn {
            self.state.joins += 1;
            self.state.joined.push(Joined {
                session_id: call.child(),
                turn_id: call.child_turn(),
                by: turn_id.clone(),
                agent_id: Some(call.agent_id.clone()),
                number: self.state.joins,
                was_there: call.seated.is_some(),
            });
            let excess = self.state.joined.len().saturating_sub(JOINED_MAX);
            self.state.joined.drain(..excess);
            return;
        }
        let mut operation = stub(turn_id, &call.operation_id, OperationKind::Agent, OperationState::Pending);
        operation.tool_call_id.clone_from(&call.call_id);
        operation.tool.clone_from(&call.tool);
        operation.is_async = call.is_async;
        operation.timeout_ms = call.timeout_ms;
        operation.request = agents::request(call);
        let mut open = open_of(&operation, call.is_async, number);
        open.child = Some(call.child());
        self.track(turn_id, open, operation);
    }

    fn late(&mut self, turn_id: &TurnId, operation_id: OperationId, result: ToolResult) {
        let Some(lane) = self.state.lane_mut(turn_id) else { return };
        let open = lane.open.iter().find(|open| open.operation_id == operation_id);
        let (tool, number) = open.map(|open| (open.tool.clone(), open.number)).unwrap_or_default();
        lane.open.retain(|open| open.operation_id != operation_id);
        lane.unseen += 1;
        lane.tell();
        let id = ids::record_id_of(turn_id, ids::LATE, &operation_id);
        let late = LateResult { operation_id, number, tool, result };
        self.record(LogKind::AsyncResult, turn_id, id, &late);
    }

    fn set_stage(&mut self, turn_id: &TurnId, stage: Stage) {
        if let Some(lane) = self.state.lane_mut(turn_id) {
            lane.stage = stage;
        }
    }

    /// How many more turns may be at work.
    fn places(&self) -> usize {
        let at_work = self.state.lanes.iter().filter(|lane| lane.stage.is_at_work()).count();
        LANES_MAX.saturating_sub(at_work)
    }

    /// Its model is asked (again). Who is at work keeps the place; who comes back from waiting needs one.
    fn resume(&mut self, turn_id: &TurnId) {
        let (joins, has_place) = (self.state.joins, self.places() > 0);
        let Some(lane) = self.state.lane_mut(turn_id) else { return };
        if lane.stage.is_at_work() || has_place {
            lane.go_on(joins);
        } else {
            lane.stage = Stage::Queued;
        }
    }

    /// The user has seen the response; extraction comes after (SPEC K-11), as a decision of its own.
    fn complete(&mut self, turn_id: &TurnId) {
        let Some(lane) = self.state.lane_mut(turn_id) else { return };
        lane.turn.status = TurnStatus::Completed;
        lane.turn.completed_at_ms = Some(0);
        let (issues, declined) = (lane.turn.issues.clone(), lane.declined);
        let is_called = !matches!(lane.turn.caller, Caller::User { .. });
        let (reply_to, text, usage) = (lane.reply_to.take(), lane.last_text.take(), lane.turn.usage);
        let spent_to = lane.spent_to.take();
        self.event(turn_id, ids::TURN_COMPLETED, json!({ "issues": issues }));
        if is_called {
            let outcome = if declined { "declined" } else { "completed" };
            self.event(turn_id, ids::AGENT_CALL_COMPLETED, json!({ "outcome": outcome }));
        }
        if let Some(to) = reply_to {
            let text = text.unwrap_or_default();
            let outcome = if declined {
                Err(ToolError { code: ToolErrorCode::AgentDeclined, message: text, retriable: false })
            } else {
                Ok(json!({ "text": text }))
            };
            self.emits.follow_ups.push(agents::answer(&to, outcome, usage));
        }
        self.emits.follow_ups.extend(spent_to.and_then(|to| guests::told(&to, usage)));
    }

    /// The turn is completed already; only its issues may change (SPEC K-11). `failure`: its code and message.
    pub fn extracted(&mut self, mut lane: Lane, failure: Option<(&str, &str)>) {
        let turn_id = lane.turn.turn_id.clone();
        lane.turn.memory_extraction_run_id = Some(ids::record_id(&turn_id, ids::EXTRACT));
        lane.turn.phase = lane.phase();
        lane.turn.pending_operations = 0;
        if let Some((code, message)) = failure {
            lane.turn.issues.memory_extraction_failed = true;
            self.event(&turn_id, ids::EXTRACTION_FAILED, json!({"code": code, "message": message}));
        }
        self.emits.talk.turns.push(lane.turn);
    }

    fn fail(&mut self, turn_id: &TurnId, error: &TurnError, cancelled: bool) {
        let Some(at) = self.state.lanes.iter().position(|lane| lane.turn.turn_id == *turn_id) else { return };
        let mut lane = self.state.lanes.remove(at);
        if lane.stage == Stage::Extract {
            // It is completed, whatever becomes of its memories.
            return self.extracted(lane, Some((error.code.as_str(), error.message.as_str())));
        }
        // A question about a budget may be others' as well.
        let is_others = |open: &Open| self.state.lane_of(&open.operation_id).is_some();
        for open in lane.open.iter().filter(|open| !is_others(open)) {
            let operation = stub(turn_id, &open.operation_id, open.kind, OperationState::Cancelled);
            self.emits.talk.operations.push(operation);
            self.emits.follow_ups.extend(open.child.as_ref().map(|child| agents::stop(&open.operation_id, child)));
        }
        for open in lane.open.iter().filter(|open| open.child.is_some()) {
            self.state.note_stopped(turn_id, &open.operation_id);
        }
        if cancelled {
            let joined = self.state.joined.iter().filter(|joined| joined.by == *turn_id);
            self.emits.follow_ups.extend(joined.flat_map(|joined| agents::cancel(joined, &self.conversation)));
        }
        lane.turn.phase = lane.phase();
        lane.turn.status = TurnStatus::Failed;
        lane.turn.cancelled = cancelled;
        lane.turn.error = Some(error.clone());
        lane.turn.pending_operations = 0;
        lane.turn.completed_at_ms = Some(0);
        let used = lane.turn.usage;
        let is_called = !matches!(lane.turn.caller, Caller::User { .. });
        self.emits.talk.turns.push(lane.turn);
        self.event(turn_id, ids::TURN_FAILED, json!({"error": error, "cancelled": cancelled}));
        if is_called {
            let outcome = if cancelled { "cancelled" } else { "failed" };
            self.event(turn_id, ids::AGENT_CALL_COMPLETED, json!({ "outcome": outcome }));
        }
        if let Some(to) = lane.reply_to {
            let message = format!("Turn failed during execution: {}", error.message);
            let failure = ToolError { code: ToolErrorCode::ExecutionFailed, message, retriable: !cancelled };
            self.emits.follow_ups.push(agents::answer(&to, Err(failure), used));
            if error.code == SESSION_ENDED && used != TurnUsage::default() {
                self.emits.follow_ups.push(agents::spent(&to, used));
            }
        }
        self.emits.follow_ups.extend(lane.spent_to.and_then(|to| guests::told(&to, used)));
    }

    /// Gives the places that are free to turns in line, the oldest first, and writes the rows of turns that have
    /// changed.
    pub fn finish(&mut self) {
        let (joins, places) = (self.state.joins, self.places());
        for lane in self.state.lanes.iter_mut().filter(|lane| lane.stage == Stage::Queued).take(places) {
            lane.go_on(joins);
        }
        for lane in &mut self.state.lanes {
            lane.turn.phase = lane.phase();
            lane.turn.pending_operations = u32::try_from(lane.open.len()).unwrap_or(u32::MAX);
            if !self.before.contains(&lane.turn) {
                self.emits.talk.turns.push(lane.turn.clone());
            }
        }
    }

    /// A step that only ends things: what it causes.
    pub fn into_emits(mut self) -> Emits {
        self.finish();
        self.emits
    }
}

fn open_of(operation: &Operation, is_async: bool, number: Option<u32>) -> Open {
    Open {
        operation_id: operation.operation_id.clone(),
        call_id: operation.tool_call_id.clone(),
        tool: operation.tool.clone(),
        kind: operation.kind,
        is_async,
        child: None,
        approved: None,
        number,
        asks_model: false,
    }
}

/// An operation that nobody of the fleet's executors runs, or one that only takes another state.
pub(super) fn stub(turn: &TurnId, id: &OperationId, kind: OperationKind, state: OperationState) -> Operation {
    Operation {
        operation_id: id.clone(),
        session_id: SessionId::parse("none").expect("an id"),
        conversation_id: ConversationId::parse("none").expect("an id"),
        turn_id: turn.clone(),
        tool_call_id: String::new(),
        tool: String::new(),
        kind,
        pool: String::new(),
        state,
        request: Json::of(&json!({})),
        approval: None,
        effect_class: EffectClass::AtMostOnce,
        attempt: 0,
        lost: 0,
        max_attempts: 1,
        backoff_ms: 0,
        timeout_ms: 0,
        wait_ms: None,
        is_async: false,
        created_at_ms: 0,
        due_at_ms: 0,
        claimed_by: None,
        until_ms: None,
        error: None,
    }
}
