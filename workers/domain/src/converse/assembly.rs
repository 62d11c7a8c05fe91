//! The context of a turn: what its model is shown first. The built-in strategy (SPEC K-09): core
//! memory and instructions are the system prompt; working memory, a summary of what is old, and the
//! recent turns with their calls of tools are the messages.

use std::collections::HashSet;

use schemas::conversation::{LogKind, LogRow, Message};
use schemas::definition::{AgentConstraints, AssemblyMode, Budgets, CompactionSettings, PersonaBody};
use schemas::id::{AgentId, DefinitionId, MessageId, TurnId};
use serde::{Deserialize, Serialize};

use super::history::{input, newest_summary, spoken, told};
use super::summary::Known;
use super::transcript::MoveRecord;
use super::voices::Voices;
use crate::chat::{self, ChatRequest, ModelTarget, Parameters, Part, Role};
use crate::compact;
use crate::context::{ContextBudget, MemoryBlock, build_system_prompt};
use crate::effect::PendingView;
use crate::tool::{self, ResolvedTool};

/// All that was found out for a turn before its model is asked.
#[derive(Debug, Clone)]
pub struct Gathered {
    /// The turn that it is for.
    pub turn: TurnId,
    pub agent: AgentId,
    /// Name of the agent, as other participants know it.
    pub agent_name: String,
    /// Its projects.
    pub project_ids: Vec<DefinitionId>,
    pub persona: PersonaBody,
    pub target: ModelTarget,
    pub parameters: Parameters,
    /// The model's window, tokens.
    pub model_max_tokens: u64,
    /// The model that makes summaries, if it is another one.
    pub summariser: Option<Summariser>,
    pub tools: Vec<ResolvedTool>,
    /// Messages of the conversation, calls of tools with their results, and summaries, oldest first.
    pub history: Vec<LogRow>,
    /// The message that started the turn; it is in `history`, too.
    pub input: Message,
    /// What the input replies to, however old it is.
    pub replied: Option<Message>,
    /// It works for one caller alone.
    pub is_delegate: bool,
    /// Messages that other active turns are at work on.
    pub in_work: Vec<MessageId>,
    /// Those turns.
    pub active: Vec<TurnId>,
    pub recent: Vec<TurnSnapshot>,
    /// Core and working memory.
    pub blocks: Vec<MemoryBlock>,
    /// Memories that fit the input, best first.
    pub found: Vec<String>,
    pub pending: Vec<PendingView>,
    /// Guidance that came before the turn.
    pub notes: Vec<String>,
}

/// A recent turn in short (SPEC W-CTX-02).
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct TurnSnapshot {
    pub turn_id: TurnId,
    pub status: String,
    pub moves: u32,
}

/// What a turn starts from, extended by its moves; recorded once, or before each reply (SPEC K-10).
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Assembly {
    pub agent_name: String,
    pub target: ModelTarget,
    /// Whom summaries are asked of; absent: `target`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub summariser: Option<ModelTarget>,
    pub request: ChatRequest,
    pub tools: Vec<ResolvedTool>,
    pub constraints: AgentConstraints,
    /// Projects of the agent.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub project_ids: Vec<DefinitionId>,
    pub limits: Limits,
    pub recent_turns: Vec<TurnSnapshot>,
    /// The summary that is among the request's messages.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub summary: Option<Known>,
    /// Where it stands there, or would.
    #[serde(default)]
    pub summary_at: usize,
    /// Which of the request's messages may become part of a summary, oldest first.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub history: Vec<Placed>,
}

/// A message of the conversation in a request.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Placed {
    /// Its position there.
    pub at: usize,
    /// Its place in the log, and its time.
    pub offset: u64,
    pub at_ms: i64,
}

/// Bounds of one turn, and of its session.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Limits {
    /// Replies whose tool calls are carried out (SPEC K-14).
    pub max_rounds: u32,
    #[serde(default)]
    pub budgets: Budgets,
    /// When and how the context becomes shorter; absent: never.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub context: Option<Context>,
    /// The context is made anew before each reply (SPEC K-10).
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub per_call: bool,
}

/// How much a model is shown.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Context {
    /// Requests of more tokens are made shorter first.
    pub tokens: u64,
    /// Tokens that the model takes at all.
    pub window: u64,
    pub compaction: CompactionSettings,
    /// Tokens of the smaller window, where another model makes the summaries.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub summary_window: Option<u64>,
}

/// A model of its own for summaries (SPEC A-CMP-06).
#[derive(Debug, Clone, PartialEq)]
pub struct Summariser {
    pub target: ModelTarget,
    /// Tokens that it takes at all.
    pub window: u64,
}

/// Builds the context.
pub fn assemble(gathered: &Gathered) -> Assembly {
    let persona = &gathered.persona;
    let system = build_system_prompt(&persona.system_prompt, persona.instructions.as_deref(), &gathered.blocks);
    let mut messages = vec![chat::Message::text(Role::System, system)];
    let summary_at = messages.len();
    let summary = newest_summary(gathered);
    let known = summary.as_ref().map(|(_, summary)| summary);
    let spoken = spoken(gathered, known.map_or(0, |summary| summary.upto));
    let voices = Voices::of(gathered, &spoken);
    let (told, history) = told(gathered, known, (spoken, &voices), summary_at);
    messages.extend(told);
    messages.extend(aside(gathered));
    messages.push(input(gathered, &voices));
    let tools = tool::offered(&gathered.tools, &persona.constraints, &called(gathered, &messages));
    Assembly {
        agent_name: gathered.agent_name.clone(),
        target: gathered.target.clone(),
        summariser: gathered.summariser.as_ref().map(|summariser| summariser.target.clone()),
        request: ChatRequest { messages, tools, parameters: gathered.parameters.clone(), ..ChatRequest::default() },
        tools: gathered.tools.clone(),
        constraints: persona.constraints.clone(),
        project_ids: gathered.project_ids.clone(),
        limits: limits(gathered),
        recent_turns: gathered.recent.clone(),
        summary: summary.map(|(id, summary)| Known { id, upto: summary.upto }),
        summary_at,
        history,
    }
}

/// Names of the tools whose calls the model is shown: those of earlier turns are among the messages, and those of this
/// turn come behind a context that is made anew (SPEC K-10).
fn called(gathered: &Gathered, messages: &[chat::Message]) -> HashSet<String> {
    let earlier = messages.iter().flat_map(|message| &message.content).filter_map(Part::as_tool_call);
    let moves = gathered.history.iter().filter(|row| row.record.kind == LogKind::Move);
    let own = moves.filter(|row| row.record.turn_id.as_ref() == Some(&gathered.turn));
    let own = own.filter_map(|row| row.record.body.to::<MoveRecord>().ok()).flat_map(|reply| reply.tool_calls);
    earlier.map(|call| call.name.clone()).chain(own.map(|call| call.name)).collect()
}

fn limits(gathered: &Gathered) -> Limits {
    let persona = &gathered.persona;
    let (context_budget, window) = (persona.context_budget, gathered.model_max_tokens);
    let tokens = ContextBudget { context_budget, model_max_tokens: window }.tokens();
    let compaction = persona.compaction.clone().unwrap_or_else(compact::defaults);
    // What goes into a summary is a part of what the agent's own model is shown, or was.
    let summary_window = gathered.summariser.as_ref().map(|summariser| summariser.window.min(window));
    Limits {
        max_rounds: persona.constraints.max_moves_per_turn,
        budgets: persona.constraints.budgets.clone().unwrap_or_default(),
        context: compaction.enabled.then_some(Context { tokens, window, compaction, summary_window }),
        per_call: persona.assembly == AssemblyMode::PerCall,
    }
}

/// What goes on beside this turn, and guidance that waited for it.
fn aside(gathered: &Gathered) -> Option<chat::Message> {
    let mut lines: Vec<String> = gathered.notes.iter().map(|note| format!("[Note] {note}")).collect();
    let pending = gathered.pending.iter();
    lines.extend(pending.map(|one| format!("[In progress] {} (operation {})", one.tool, one.operation_id)));
    (!lines.is_empty()).then(|| chat::Message::text(Role::User, lines.join("\n")))
}
