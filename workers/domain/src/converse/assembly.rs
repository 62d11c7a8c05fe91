//! The context of a turn: what its model is shown first. The built-in strategy (SPEC K-09): core
//! memory and instructions are the system prompt; working memory, a summary of what is old, and the
//! recent turns are the messages.

use schemas::conversation::{LogKind, LogRow, Message, MessageRole, SenderType};
use schemas::definition::{AgentConstraints, Budgets, PersonaBody};
use schemas::id::{AgentId, MessageId, TurnId};
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::chat::{self, ChatRequest, ModelTarget, Parameters, Part, Role};
use crate::context::{MemoryBlock, build_messages, build_system_prompt};
use crate::effect::PendingView;
use crate::tool::{self, ResolvedTool};

/// All that was found out for a turn before its model is asked.
#[derive(Debug, Clone)]
pub struct Gathered {
    pub agent: AgentId,
    /// Name of the agent, as other participants know it.
    pub agent_name: String,
    pub persona: PersonaBody,
    pub target: ModelTarget,
    pub parameters: Parameters,
    /// The model's window, tokens.
    pub model_max_tokens: u64,
    pub tools: Vec<ResolvedTool>,
    /// Messages and summaries of the conversation, oldest first.
    pub history: Vec<LogRow>,
    /// The message that started the turn; it is in `history`, too.
    pub input: Message,
    /// Messages that other active turns are at work on.
    pub in_work: Vec<MessageId>,
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

/// What a turn starts from; recorded once, and extended by its moves (SPEC K-10).
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Assembly {
    pub agent_name: String,
    pub target: ModelTarget,
    pub request: ChatRequest,
    pub tools: Vec<ResolvedTool>,
    pub constraints: AgentConstraints,
    pub limits: Limits,
    pub recent_turns: Vec<TurnSnapshot>,
}

/// Bounds of one turn, and of its session.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Limits {
    /// Replies whose tool calls are carried out (SPEC K-14).
    pub max_rounds: u32,
    #[serde(default)]
    pub budgets: Budgets,
}

/// Builds the context.
pub fn assemble(gathered: &Gathered) -> Assembly {
    let persona = &gathered.persona;
    let system = build_system_prompt(&persona.system_prompt, persona.instructions.as_deref(), &gathered.blocks);
    let mut messages = vec![chat::Message::text(Role::System, system)];
    let mut history = history(gathered);
    if !gathered.found.is_empty() {
        let found = gathered.found.join("\n- ");
        history.insert(0, chat::Message::text(Role::User, format!("[Memories that may help]\n- {found}")));
    }
    messages.extend(build_messages(&gathered.blocks, &history));
    messages.extend(aside(gathered));
    messages.push(input(gathered));
    Assembly {
        agent_name: gathered.agent_name.clone(),
        target: gathered.target.clone(),
        request: ChatRequest {
            messages,
            tools: tool::specs(&gathered.tools),
            parameters: gathered.parameters.clone(),
            ..ChatRequest::default()
        },
        tools: gathered.tools.clone(),
        constraints: persona.constraints.clone(),
        limits: Limits {
            max_rounds: persona.constraints.max_moves_per_turn,
            budgets: persona.constraints.budgets.clone().unwrap_or_default(),
        },
        recent_turns: gathered.recent.clone(),
    }
}

/// What was said before, from the newest summary on.
fn history(gathered: &Gathered) -> Vec<chat::Message> {
    let summary = gathered.history.iter().rev().find(|row| row.record.kind == LogKind::Summary);
    let body = summary.map(|row| row.record.body.to_value());
    let upto = body.as_ref().and_then(|body| body.get("upto")).and_then(Value::as_u64).unwrap_or(0);
    let text = body.as_ref().and_then(|body| body.get("text")).and_then(Value::as_str);
    let mut messages: Vec<chat::Message> = text.map(|text| chat::Message::text(Role::User, text)).into_iter().collect();
    let rows = gathered.history.iter().filter(|row| row.record.kind == LogKind::Message && row.offset > upto);
    for message in rows.filter_map(|row| row.record.body.to::<Message>().ok()) {
        let is_other = message.message_id != gathered.input.message_id;
        if is_other && !gathered.in_work.contains(&message.message_id) {
            messages.push(as_chat(&message, &gathered.agent));
        }
    }
    messages
}

/// How a model is shown what somebody said: the words of other agents come as a user's, by name.
fn as_chat(message: &Message, me: &AgentId) -> chat::Message {
    let text = message.text.clone().unwrap_or_default();
    match (message.sender_type, &message.agent_id) {
        (SenderType::Agent, Some(agent)) if agent == me => chat::Message::text(Role::Assistant, text),
        (SenderType::Agent, agent) => {
            let name = message.name.clone().or_else(|| agent.as_ref().map(ToString::to_string));
            chat::Message::text(Role::User, format!("[{}]: {text}", name.unwrap_or_else(|| "agent".to_owned())))
        }
        (SenderType::System, _) if message.role == MessageRole::System => chat::Message::text(Role::System, text),
        (SenderType::User | SenderType::System, _) => {
            chat::Message { name: message.name.clone(), ..chat::Message::new(Role::User, parts(message)) }
        }
    }
}

fn input(gathered: &Gathered) -> chat::Message {
    let mut shown = as_chat(&gathered.input, &gathered.agent);
    if shown.role != Role::User {
        shown = chat::Message::text(Role::User, gathered.input.text.clone().unwrap_or_default());
    }
    if let Some(replied) = gathered.input.reply_to_message_id.as_ref().and_then(|id| said(gathered, id)) {
        let quote: String = replied.chars().take(500).collect();
        shown.content.insert(0, Part::text(format!("[In reply to: {quote}]\n")));
    }
    shown
}

fn said(gathered: &Gathered, id: &MessageId) -> Option<String> {
    let row = gathered.history.iter().find(|row| row.record.id == id.as_str())?;
    row.record.body.to::<Message>().ok()?.text
}

/// A message's parts; a text is one part.
fn parts(message: &Message) -> Vec<Part> {
    let structured = message.content.clone().and_then(|content| serde_json::from_value::<Vec<Part>>(content).ok());
    structured.filter(|parts| !parts.is_empty()).unwrap_or_else(|| {
        let data = message.data.as_ref().map(Value::to_string);
        vec![Part::text(message.text.clone().or(data).unwrap_or_default())]
    })
}

/// What goes on beside this turn, and guidance that waited for it.
fn aside(gathered: &Gathered) -> Option<chat::Message> {
    let mut lines: Vec<String> = gathered.notes.iter().map(|note| format!("[Note] {note}")).collect();
    let pending = gathered.pending.iter();
    lines.extend(pending.map(|one| format!("[In progress] {} (operation {})", one.tool, one.operation_id)));
    (!lines.is_empty()).then(|| chat::Message::text(Role::User, lines.join("\n")))
}
