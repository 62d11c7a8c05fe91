//! The state of a conversing session: its lanes, and nothing that the log has.

use schemas::conversation::{Operation, OperationKind, Turn, TurnPhase, TurnUsage};
use schemas::id::{AgentId, OperationId, SessionId, TurnId};
use serde::{Deserialize, Serialize};

use super::assembly::Limits;
use super::budget::Scope;
use super::ids;
use super::summary::{Compacting, Known};
use crate::chat::ToolResult;

#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct TalkState {
    /// Active turns, oldest first.
    #[serde(default)]
    pub lanes: Vec<Lane>,
    /// Guidance that came while no turn was active: the next turn is told (SPEC K-23).
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub notes: Vec<String>,
    /// Counts guidance, so that each note has an id of its own.
    #[serde(default)]
    pub notes_taken: u64,
    #[serde(default)]
    pub turns_started: u64,
    /// Agents that were looped in, oldest first.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub joined: Vec<Joined>,
    /// Counts them.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub joins: u64,
    /// Turns that were cancelled and are not active: one that has not begun ends as it begins.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub cancelled: Vec<TurnId>,
    /// What its turns have used, and those of agents they called.
    #[serde(default)]
    pub used: TurnUsage,
    /// Calls of agents that were ended before they were answered, oldest first: what they used may still be told.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub stopped: Vec<Stopped>,
    /// Replies of models, and calls of models by tools (`max_moves_per_session`).
    #[serde(default)]
    pub moves: u64,
    /// When its first input was accepted.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub since_ms: Option<i64>,
    #[serde(default)]
    pub raised: Raised,
    /// Counts questions about budgets.
    #[serde(default)]
    pub asked: u64,
    /// The turn that started last: the next one goes on from it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub last_turn: Option<TurnId>,
    /// The newest summary of the conversation.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub summary: Option<Known>,
}

/// One active turn.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Lane {
    /// Its row, as it was written last.
    pub turn: Turn,
    pub stage: Stage,
    /// The turn of its session that started before it (SPEC C-PRV-11).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub parent: Option<TurnId>,
    /// How many agents have called one another up to this turn, if more than up to its session.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub depth: u64,
    /// How many agents had been looped in when its model was asked last.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub joins: u64,
    /// Replies whose tool calls were carried out, or which their provider paused: never more than the limit
    /// (invariant T1).
    #[serde(default)]
    pub rounds: u32,
    /// Tool calls that have not ended, and those of the last reply that have.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub open: Vec<Open>,
    /// Results and notes that came while its model was to be asked, or was being asked.
    #[serde(default)]
    pub unseen: u32,
    /// Notes and results of work in the background that the log has of it; not known of a turn that was worked on
    /// by a build which does not count them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub told: Option<u32>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub limits: Option<Limits>,
    /// Guidance that came before the turn, for a context that is made anew.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub notes: Vec<String>,
    /// How many times over the budget is allowed.
    #[serde(default = "one")]
    pub allowance: u32,
    /// Since when its time counts, if not from its beginning: since it was allowed more.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub since_ms: Option<i64>,
    /// Who waits for this turn's end.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reply_to: Option<ReplyTo>,
    /// Who is told what it has used when it ends, and had so much left for it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub spent_to: Option<Box<SpentTo>>,
    /// What it said last, for whom it replies to.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub last_text: Option<String>,
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub spoke: bool,
    /// The reply before was cut to make room for guidance, or paused by its provider.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub declined: bool,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub compaction: Option<Compacting>,
    /// Pieces of compactions that have been answered.
    #[serde(default)]
    pub compactions: u32,
    /// The reply before which the context was made as short as it gets.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub compacted_for: Option<u32>,
}

/// What a lane does next, or waits for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Stage {
    /// Too many turns are at work: it waits in line, to begin or to go on.
    Queued,
    Assemble,
    /// Old messages become a summary, before its model is asked again.
    Compact,
    Think,
    /// For results without which its model is not asked again.
    Wait,
    /// It has said what it had to say, and other work goes on.
    WaitAsync,
    /// It is completed; memories are extracted.
    Extract,
}

impl Stage {
    /// Whether a call is under way for it, or due.
    pub fn is_at_work(self) -> bool {
        matches!(self, Self::Assemble | Self::Compact | Self::Think | Self::Extract)
    }
}

/// A tool call on its way.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Open {
    pub operation_id: OperationId,
    pub call_id: String,
    pub tool: String,
    pub kind: OperationKind,
    pub is_async: bool,
    /// The session that works on it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub child: Option<SessionId>,
    /// What is done once a person has said yes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub approved: Option<Approved>,
    /// Number of the reply that called; not known of calls that an earlier release has planned.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub number: Option<u32>,
    /// What is called may ask a model.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub asks_model: bool,
}

/// How often a person allowed the budgets beyond a turn once more.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Raised {
    #[serde(default)]
    pub session: u32,
    /// Since when the session's time counts.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub session_since_ms: Option<i64>,
    #[serde(default)]
    pub namespace: u32,
}

/// An agent that was looped in: it stays in the conversation, and works for its caller.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Joined {
    /// There is none of this id if others looped the agent in first: its seat takes what is for it.
    pub session_id: SessionId,
    /// What it was asked for.
    pub turn_id: TurnId,
    /// The turn that asked.
    pub by: TurnId,
    /// Who it is.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub agent_id: Option<AgentId>,
    /// Of all that joined, from 1.
    #[serde(default)]
    pub number: u64,
    /// It took part before it was asked: it is not its caller's to pause.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub was_there: bool,
}

/// A call of an agent that nobody waits for any more.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Stopped {
    pub operation_id: OperationId,
    /// The turn that called.
    pub turn_id: TurnId,
}

/// Work behind an approval. (Tagged from outside: raw JSON within survives no other way.)
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Approved {
    Task {
        operation: Box<Operation>,
    },
    Agent {
        call: Box<super::agents::AgentCall>,
    },
    /// The answer itself is the result: a person was asked for nothing else.
    Answer,
    /// A budget may be used once more, or as often as it takes for the next request to fit.
    Budget {
        scope: Scope,
        #[serde(default = "once")]
        times: u32,
    },
}

fn once() -> u32 {
    1
}

/// Where the result of a delegated turn goes.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ReplyTo {
    pub session_id: SessionId,
    pub operation_id: OperationId,
}

/// Where it is counted what the turn of an agent that was looped in has used.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct SpentTo {
    pub session_id: SessionId,
    /// The call that it was looped in by.
    pub operation_id: OperationId,
    /// The turn that it adds up to.
    pub turn_id: TurnId,
    /// Who is told next if that turn has ended by then.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub then: Option<Box<SpentTo>>,
    /// What the budgets there had left when it was called.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tokens_left: Option<u64>,
    /// In billionths of the operator's currency.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cost_nanos_left: Option<u64>,
}

/// Stopped calls that are remembered: of more, the oldest are forgotten.
const STOPPED_MAX: usize = 64;

impl TalkState {
    /// Counts what a turn, or an agent that it called, has used.
    pub fn spend(&mut self, turn: &TurnId, used: TurnUsage) {
        add(&mut self.used, used);
        if let Some(lane) = self.lane_mut(turn) {
            add(&mut lane.turn.usage, used);
        }
    }

    /// Remembers a call whose session was told to end.
    pub fn note_stopped(&mut self, turn: &TurnId, operation: &OperationId) {
        self.stopped.push(Stopped { operation_id: operation.clone(), turn_id: turn.clone() });
        let excess = self.stopped.len().saturating_sub(STOPPED_MAX);
        self.stopped.drain(..excess);
    }

    /// Counts what a stopped call has used, once, and says whose turn it was; `None` if the call is not known, or
    /// was counted.
    pub fn spend_stopped(&mut self, operation: &OperationId, used: TurnUsage) -> Option<TurnId> {
        let at = self.stopped.iter().position(|one| one.operation_id == *operation)?;
        let Stopped { turn_id, .. } = self.stopped.remove(at);
        self.spend(&turn_id, used);
        Some(turn_id)
    }

    /// Sessions that work for this one.
    pub fn children(&self) -> Vec<SessionId> {
        let called = self.lanes.iter().flat_map(|lane| &lane.open).filter_map(|open| open.child.clone());
        let joined = self.joined.iter().filter(|joined| !joined.was_there);
        called.chain(joined.map(|joined| joined.session_id.clone())).collect()
    }

    pub fn lane(&self, turn: &TurnId) -> Option<&Lane> {
        self.lanes.iter().find(|lane| lane.turn.turn_id == *turn)
    }

    pub fn lane_mut(&mut self, turn: &TurnId) -> Option<&mut Lane> {
        self.lanes.iter_mut().find(|lane| lane.turn.turn_id == *turn)
    }

    /// The lane that waits for an operation.
    pub fn lane_of(&self, operation: &OperationId) -> Option<(&Lane, &Open)> {
        self.lanes.iter().find_map(|lane| Some((lane, lane.open.iter().find(|o| o.operation_id == *operation)?)))
    }
}

impl Lane {
    /// Number of the reply that comes next.
    pub fn next_reply(&self) -> u32 {
        self.turn.moves + 1
    }

    /// Counts a note, or a result of work in the background.
    pub fn tell(&mut self) {
        self.told = self.told.map(|told| told.saturating_add(1));
    }

    /// Whether its context is made anew before each reply.
    pub fn per_call(&self) -> bool {
        self.limits.as_ref().is_some_and(|limits| limits.per_call)
    }

    /// Its next call is due, and will know what has come by now. `joins`: agents that were looped in so far.
    pub fn go_on(&mut self, joins: u64) {
        self.stage = self.resumed();
        self.unseen = 0;
        self.joins = joins;
    }

    /// What it does once nothing keeps it from its next reply.
    fn resumed(&self) -> Stage {
        let newest = ids::assembly_id(&self.turn.turn_id, self.turn.moves);
        let is_newest = self.turn.context_assembly_run_id.as_ref() == Some(&newest);
        if self.compaction.is_some() {
            Stage::Compact
        } else if !self.has_begun() || (self.per_call() && !is_newest) {
            Stage::Assemble
        } else {
            Stage::Think
        }
    }

    /// Whether it has had a context: what comes beside it from then on is told behind that.
    fn has_begun(&self) -> bool {
        self.turn.context_assembly_run_id.is_some()
    }

    /// Whether its model is still to be told what comes beside it. Who has not begun will find it in the context.
    pub fn is_told(&self) -> bool {
        match self.stage {
            Stage::Extract => false,
            Stage::Queued => self.has_begun(),
            Stage::Assemble | Stage::Compact | Stage::Think | Stage::Wait | Stage::WaitAsync => true,
        }
    }

    /// The phase that its stage and its open work amount to (SPEC K-02).
    pub fn phase(&self) -> TurnPhase {
        let waits_for = |kind| self.open.iter().any(|open| !open.is_async && open.kind == kind);
        match self.stage {
            Stage::Queued => TurnPhase::Queued,
            Stage::Assemble | Stage::Compact => TurnPhase::Assembling,
            Stage::Think => TurnPhase::Thinking,
            Stage::Wait if waits_for(OperationKind::Approval) => TurnPhase::WaitingApproval,
            Stage::Wait if waits_for(OperationKind::Agent) => TurnPhase::WaitingAgent,
            Stage::Wait => TurnPhase::WaitingTool,
            Stage::WaitAsync => TurnPhase::WaitingAsync,
            Stage::Extract => TurnPhase::Responding,
        }
    }
}

/// The result of an operation as its action brings it.
#[derive(Debug, Clone, PartialEq)]
pub struct Ended {
    pub operation_id: OperationId,
    pub result: ToolResult,
    /// The whole payload, for what only some kinds of operations have.
    pub payload: serde_json::Value,
}

fn one() -> u32 {
    1
}

fn is_zero(number: &u64) -> bool {
    *number == 0
}

fn add(usage: &mut TurnUsage, used: TurnUsage) {
    usage.input_tokens = usage.input_tokens.saturating_add(used.input_tokens);
    usage.output_tokens = usage.output_tokens.saturating_add(used.output_tokens);
    usage.cost += used.cost;
}
