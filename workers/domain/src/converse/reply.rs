//! A model has replied: it is recorded, and then acted on (SPEC W-LOOP-03 to 05, K-14, K-36).

use schemas::conversation::{EventType, Message, MessageRole, SenderType, TurnError, TurnPhase};
use schemas::definition::AgentConstraints;
use schemas::id::{AgentId, DefinitionId, TurnId};
use serde_json::Value;

use super::assembly::Assembly;
use super::budget::{Found, Over};
use super::decision::TurnDecision;
use super::ids;
use super::open::{Calls, Planned};
use super::seats::Seat;
use super::state::Lane;
use super::transcript::MoveRecord;
use crate::chat::{self, ChatFailure, ChatReply, Finish, Part, ProviderCallRecord, ToolCall, ToolResult};
use crate::tool::ResolvedTool;

/// What is said when the bound on moves is reached and the model says nothing (SPEC K-14).
const NOTICE: &str = "I have used all the steps I may take for this request and have no answer. \
                      Ask again, perhaps for a smaller part of it.";

/// What a call of a model came to, with what is needed to act on it.
#[derive(Debug, Clone, PartialEq)]
pub struct Reply {
    pub reply: Option<ChatReply>,
    pub failure: Option<ChatFailure>,
    /// It was cut short: this is what it had said.
    pub cut: Option<String>,
    pub record: Option<ProviderCallRecord>,
    /// The model was not asked: a budget is used up.
    pub over: Option<Over>,
    /// What its tools may ask of models is held against this, too.
    pub found: Found,
    pub agent_name: String,
    pub tools: Vec<ResolvedTool>,
    pub constraints: AgentConstraints,
    /// Projects of the agent.
    pub project_ids: Vec<DefinitionId>,
    /// Agents that may be looped in and took part when the model was asked.
    pub seats: Vec<Seat>,
    /// Offset of the last record of the log that it was shown.
    pub seen: u64,
    /// Notes and results of work in the background that were among it.
    pub heard: u32,
    /// What the model was shown.
    pub messages: Vec<chat::Message>,
    /// Tokens of a request that is over its budget, by the estimate: the model was not asked.
    pub over_budget: Option<u64>,
    /// Its session ends: only what it says is wanted, as if it had been cut short before it called for anything.
    pub is_uncalled: bool,
}

impl Reply {
    /// What is there before the model is asked: what the context says of the agent, and how much of the turn's records
    /// the model is shown.
    pub fn blank(context: &Assembly, seen: u64, heard: u32) -> Self {
        Self {
            reply: None,
            failure: None,
            cut: None,
            record: None,
            over: None,
            found: Found::default(),
            agent_name: context.agent_name.clone(),
            tools: context.tools.clone(),
            constraints: context.constraints.clone(),
            project_ids: context.project_ids.clone(),
            seats: Vec::new(),
            seen,
            heard,
            messages: Vec::new(),
            over_budget: None,
            is_uncalled: false,
        }
    }
}

/// What becomes of a lane after a reply.
pub(super) struct Acted {
    pub record: Option<MoveRecord>,
    pub results: Vec<ToolResult>,
    /// Calls that ask for a shorter context.
    pub compacts: Vec<String>,
    pub decisions: Vec<TurnDecision>,
    /// It counts as a round: tools are carried out, or its provider wants to go on.
    pub is_round: bool,
    pub is_cut: bool,
    pub is_declined: bool,
    pub is_exhausted: bool,
}

/// Plans what a reply means. `number` is the reply's in the turn, from 1.
pub(super) fn plan(lane: &Lane, calls: &Calls<'_>, reply: &Reply) -> Acted {
    let turn = &lane.turn.turn_id;
    if let Some(text) = &reply.cut {
        return cut(turn, calls, reply, text);
    }
    let Some(said) = &reply.reply else {
        return failed(turn, reply.failure.as_ref());
    };
    let may_call = lane.rounds < lane.limits.as_ref().map_or(u32::MAX, |limits| limits.max_rounds);
    let wanted: Vec<ToolCall> = said.tool_calls().cloned().collect();
    if reply.is_uncalled && may_call && !wanted.is_empty() {
        return cut(turn, calls, reply, &said.text());
    }
    let planned = if may_call { calls.plan(&wanted) } else { Planned::default() };
    let is_round = may_call && !wanted.is_empty();
    // It may pause as often as it may call tools, for each time it is asked again.
    let is_paused = may_call && said.finish == Finish::Pause;
    let text = Some(said.text()).filter(|text| !text.trim().is_empty());
    let record = MoveRecord {
        number: calls.number,
        reasoning: text.clone(),
        tool_calls: if is_round { wanted } else { Vec::new() },
        parts: parts(said, is_round),
        finish: said.finish.as_str().to_owned(),
        cut: false,
        in_background: planned.in_background.clone(),
        seen: reply.seen,
        raw: said.raw.clone(),
    };
    let mut acted = Acted {
        record: Some(record),
        results: planned.results.clone(),
        compacts: planned.compacts.clone(),
        decisions: Vec::new(),
        is_round: is_round || is_paused,
        is_cut: is_cut(said, is_round),
        is_declined: said.finish == Finish::Refusal,
        is_exhausted: !may_call,
    };
    let notice = (!may_call && text.is_none()).then(|| NOTICE.to_owned());
    if let Some(text) = text.clone().or(notice) {
        let message = message(calls, &reply.agent_name, text, said.message_id.clone());
        acted.decisions.push(TurnDecision::AppendMessage { turn_id: turn.clone(), message: Box::new(message) });
    }
    let spoke = lane.spoke || !acted.decisions.is_empty();
    acted.decisions.extend(planned.decisions);
    // Results that are there without waiting are shown to the model, whatever it has said already.
    let answered = !planned.results.is_empty() || !planned.compacts.is_empty();
    let unheard = lane.unseen > 0 && lane.told.is_none_or(|told| reply.heard < told);
    let round = Round { is_round, is_paused, answered, unheard, waits: planned.waits, has_text: text.is_some() };
    let next = next(lane, said, &round, spoke);
    let is_done = matches!(next, TurnDecision::CompleteTurn { .. });
    acted.decisions.push(next);
    if is_done {
        acted.decisions.push(TurnDecision::WriteMemory { turn_id: turn.clone() });
    }
    acted
}

/// The tool calls of a reply, in short.
struct Round {
    is_round: bool,
    /// The provider wants to go on, and may.
    is_paused: bool,
    answered: bool,
    /// Something came for the turn that the model has not been shown.
    unheard: bool,
    waits: usize,
    has_text: bool,
}

/// Where the turn goes from here.
fn next(lane: &Lane, said: &ChatReply, round: &Round, spoke: bool) -> TurnDecision {
    let turn_id = lane.turn.turn_id.clone();
    if round.is_round && round.waits > 0 {
        return TurnDecision::MarkWaiting { turn_id, phase: TurnPhase::WaitingTool };
    }
    // Only work in the background, and the user has been told: nothing is left to say for now.
    let is_told = round.is_round && !round.answered && round.has_text;
    if (round.is_round && !is_told) || round.is_paused || round.unheard {
        return TurnDecision::ResumeFromTool { turn_id };
    }
    let pending = round.is_round || lane.open.iter().any(|open| open.is_async);
    if pending {
        return TurnDecision::MarkWaiting { turn_id, phase: TurnPhase::WaitingAsync };
    }
    if spoke {
        return TurnDecision::CompleteTurn { turn_id };
    }
    let message = match said.finish {
        Finish::Refusal => "the model declined to answer".to_owned(),
        other => format!("the model answered nothing (finish: {})", other.as_str()),
    };
    let code = if said.finish == Finish::Refusal { "content_filter" } else { "empty_reply" };
    let error = TurnError {
        code: code.to_owned(),
        message,
        provider: Some(said.provider.clone()),
        raw: said.raw_finish.clone(),
    };
    TurnDecision::FailTurn { turn_id, error, cancelled: false }
}

/// Whether more was to be said: the bound on tokens was met, or it ended for a reason that has no name here
/// (SPEC K-36). Without a word that is no response at all, and calls that came whole are carried out.
fn is_cut(said: &ChatReply, is_round: bool) -> bool {
    let is_strange = said.finish == Finish::Other && !is_round && !said.text().trim().is_empty();
    said.finish == Finish::Length || is_strange
}

/// Without a round, calls are not sent back: nobody answered them.
fn parts(said: &ChatReply, is_round: bool) -> Vec<Part> {
    said.parts.iter().filter(|part| is_round || part.as_tool_call().is_none()).cloned().collect()
}

/// What was said is kept, and the model is asked again with what came (SPEC K-23).
fn cut(turn: &TurnId, calls: &Calls<'_>, reply: &Reply, text: &str) -> Acted {
    let said = Some(text.to_owned()).filter(|text| !text.trim().is_empty());
    let record = MoveRecord {
        number: calls.number,
        reasoning: said.clone(),
        tool_calls: Vec::new(),
        parts: said.iter().map(Part::text).collect(),
        finish: "cut".to_owned(),
        cut: true,
        in_background: Vec::new(),
        seen: reply.seen,
        raw: Value::Null,
    };
    let mut decisions = Vec::new();
    if let Some(text) = said {
        let mut message = message(calls, &reply.agent_name, text, None);
        message.metadata = Some(serde_json::json!({"cut": true}));
        decisions.push(TurnDecision::AppendMessage { turn_id: turn.clone(), message: Box::new(message) });
    }
    decisions.push(TurnDecision::ResumeFromTool { turn_id: turn.clone() });
    Acted {
        record: Some(record),
        results: Vec::new(),
        compacts: Vec::new(),
        decisions,
        is_round: false,
        is_cut: false,
        is_declined: false,
        is_exhausted: false,
    }
}

/// The attempts of the call are used up (SPEC C-ERR-09).
fn failed(turn: &TurnId, failure: Option<&ChatFailure>) -> Acted {
    let error = match failure {
        Some(failure) => TurnError {
            code: failure.code.as_str().to_owned(),
            message: failure.message.clone(),
            provider: Some(failure.provider.clone()),
            raw: failure.raw.clone(),
        },
        None => TurnError {
            code: "internal".to_owned(),
            message: "the call of the model came to nothing".to_owned(),
            provider: None,
            raw: None,
        },
    };
    Acted {
        record: None,
        results: Vec::new(),
        compacts: Vec::new(),
        decisions: vec![TurnDecision::FailTurn { turn_id: turn.clone(), error, cancelled: false }],
        is_round: false,
        is_cut: false,
        is_declined: false,
        is_exhausted: false,
    }
}

fn message(calls: &Calls<'_>, name: &str, text: String, provider_message_id: Option<String>) -> Message {
    said_by(calls.agent, name, (calls.turn, calls.number), text, provider_message_id)
}

fn said_by(
    agent: &AgentId,
    name: &str,
    (turn, number): (&TurnId, u32),
    text: String,
    provider_message_id: Option<String>,
) -> Message {
    Message {
        message_id: ids::message_id(turn, number),
        turn_id: Some(turn.clone()),
        sender_type: SenderType::Agent,
        role: MessageRole::Assistant,
        user_id: None,
        agent_id: Some(agent.clone()),
        session_id: None,
        name: Some(name.to_owned()),
        text: Some(text),
        content: None,
        data: None,
        event_type: EventType::Utterance,
        reply_to_message_id: None,
        provider_message_id,
        metadata: None,
        iteration: None,
        step_token: None,
        next_step_token: None,
        status: None,
        notes: None,
    }
}
