//! Effects: the only vocabulary in which a step asks for something of the world, and the answers.

use std::sync::Arc;

use schemas::id::{AgentId, ConversationId, Epoch, OperationId, SessionKey, TurnId};
use schemas::json::Json;
use schemas::problem::Code;
use schemas::session::ModelUse;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::chat::ProviderCallRecord;
use crate::converse::{Assembly, Checks, Compacted, Over, Reply};
use crate::spending::Spent;

/// What may be done after a crash between sending and settling (DESIGN 5, effects ledger).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum EffectClass {
    /// Reads only; repeat at will.
    Pure,
    /// Repeat with the same key.
    Idempotent,
    /// Never repeat blindly: surfaces as in doubt.
    AtMostOnce,
}

impl EffectClass {
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Pure => "pure",
            Self::Idempotent => "idempotent",
            Self::AtMostOnce => "at_most_once",
        }
    }

    pub fn parse(text: &str) -> Option<Self> {
        [Self::Pure, Self::Idempotent, Self::AtMostOnce].into_iter().find(|c| c.as_str() == text)
    }
}

/// A request to the world, as data. It leaves no choice to the performer.
#[derive(Debug, Clone, PartialEq)]
pub enum Effect {
    /// One answer of a model to a prompt. Outcome: an [`Asked`], or its value alone: `{text, provider, model, usage}`.
    Model(ModelRequest),
    /// POST a JSON body, expect a JSON answer. Outcome value: the answer.
    HttpPost { url: String, body: Value, timeout_ms: u64, class: EffectClass },
    /// The next document of a corpus after `after`, in path order. Outcome value:
    /// `{done: true, total}` or `{done: false, name, text, bytes, index, total, truncated}`; a document
    /// that cannot be read has `skipped` (the reason, in words) instead of `text`.
    NextDocument { paths: Vec<String>, glob: Option<String>, after: Option<String> },
    /// One piece of a conversation's work; see [`crate::converse`].
    Talk(Box<TalkCall>),
}

/// What a turn asks for. The performer reads what it needs from the conversation's log.
#[derive(Debug, Clone, PartialEq)]
pub struct TalkCall {
    pub conversation: ConversationId,
    pub agent: AgentId,
    pub turn: TurnId,
    /// The turn of the session that started before it.
    pub parent: Option<TurnId>,
    /// What whoever makes the call has at hand of what is in the log.
    pub at_hand: Option<AtHand>,
    pub what: TalkWork,
}

#[derive(Debug, Clone, PartialEq)]
pub struct AtHand {
    /// The newest context of the turn.
    pub context: Arc<Assembly>,
    /// Nothing else has come to the turn that its model is shown.
    pub is_all: bool,
}

#[derive(Debug, Clone, PartialEq)]
pub enum TalkWork {
    /// Find out who the agent is and what its model is shown first. Outcome: an
    /// [`Assembly`].
    Assemble { settings: Json, pending: Vec<PendingView> },
    /// Ask the model for the turn's next reply. Outcome: a [`Reply`]. `assembly` is the record of the newest
    /// context where the turn has several, and `summary` that of the newest summary; `may_compact`: the model
    /// is not asked if the context is over its budget and can be made shorter.
    Chat {
        number: u32,
        assembly: Option<String>,
        without_tools: bool,
        summary: Option<String>,
        may_compact: bool,
        checks: Checks,
    },
    /// Make one piece of what is old a summary, and archive it. `asked`: by a tool call. Where `checks` do not hold,
    /// no model is asked for it. Outcome: a [`Compacted`].
    Compact {
        number: u32,
        assembly: Option<String>,
        summary: Option<String>,
        asked: bool,
        without_model: bool,
        checks: Checks,
    },
    /// Write down what is worth remembering of the turn. Outcome value: `{written}`.
    Extract,
}

/// Work that is under way in some turn of the session, as its model is told (SPEC W-ASY-02).
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct PendingView {
    pub turn_id: TurnId,
    pub operation_id: OperationId,
    pub tool: String,
}

impl Effect {
    pub fn class(&self) -> EffectClass {
        match self {
            Self::Model(_) => EffectClass::Idempotent,
            Self::HttpPost { class, .. } => *class,
            Self::NextDocument { .. } => EffectClass::Pure,
            // An unrecorded reply is asked for again; memories are written under derived ids.
            Self::Talk(_) => EffectClass::Idempotent,
        }
    }

    /// The turn that a context is made for: nothing but that, which only reads.
    pub fn gathers_for(&self) -> Option<&TurnId> {
        match self {
            Self::Talk(call) if matches!(call.what, TalkWork::Assemble { .. }) => Some(&call.turn),
            _ => None,
        }
    }

    /// A short name for logs, metrics and `why`.
    pub fn kind(&self) -> &'static str {
        match self {
            Self::Model(_) => "model",
            Self::HttpPost { .. } => "http",
            Self::NextDocument { .. } => "document",
            Self::Talk(call) => match call.what {
                TalkWork::Assemble { .. } => "assemble",
                TalkWork::Chat { .. } => "chat",
                TalkWork::Compact { .. } => "compact",
                TalkWork::Extract => "extract",
            },
        }
    }
}

#[derive(Debug, Clone, PartialEq)]
pub struct ModelRequest {
    /// Who asks, as its provider is told (SPEC C-PRV-10).
    pub agent: AgentId,
    /// Where the asking session takes part, if anywhere.
    pub conversation: Option<ConversationId>,
    /// A model profile that is defined, or else one of the configuration; absent = the default one.
    pub profile: Option<String>,
    pub system: String,
    pub prompt: String,
    pub max_tokens: u32,
    /// The answer must be one JSON object.
    pub json: bool,
    /// What the session's steps have used so far. This and what follows is filled in by `Session::bill`.
    pub used: ModelUse,
    /// Since when the session's time counts (epoch milliseconds).
    pub since_ms: i64,
    /// What earlier calls of the same step have used: it is in no record yet.
    pub unrecorded: Spent,
}

/// What came of asking a model for a step.
#[derive(Debug, Clone, PartialEq)]
pub struct Asked {
    /// `{text, provider, model, finish, usage}`, with `tool_calls` if there are any.
    pub answer: Result<Value, EffectFailure>,
    /// Of the call; absent if nobody was asked.
    pub record: Option<ProviderCallRecord>,
    /// The budget because of which nobody was asked.
    pub over: Option<Over>,
}

/// An effect with its address.
#[derive(Debug, Clone, PartialEq)]
pub struct EffectCall {
    pub session: SessionKey,
    /// Of the shard's owner who makes the call. A repeat after a crash has a later one.
    pub epoch: Epoch,
    /// Derived from session, iteration and index: the same after a crash.
    pub key: String,
    pub effect: Effect,
}

/// The key of the `index`th effect of a step, sent along as idempotency key.
pub fn effect_key(session: &SessionKey, iteration: u64, index: usize) -> String {
    format!("{}:{}:{iteration}:{index}", session.namespace, session.session_id)
}

/// The world's answer.
#[derive(Debug, Clone, PartialEq)]
pub enum Outcome {
    Ok(Value),
    // Answers to talk never leave the process, so they need not be JSON: contexts are long.
    Assembly(Arc<Assembly>),
    Reply(Box<Reply>),
    Compacted(Box<Compacted>),
    Asked(Box<Asked>),
    Failed(EffectFailure),
}

impl Outcome {
    /// Nothing is to follow from what a model said: nobody is called, and no tool runs.
    pub fn leave_uncalled(&mut self) {
        if let Self::Reply(reply) = self {
            reply.is_uncalled = true;
        }
    }

    /// # Errors
    /// The failure, or that the answer is not JSON.
    pub fn json(&self) -> Result<&Value, EffectFailure> {
        match self {
            Self::Ok(value) => Ok(value),
            Self::Asked(asked) => asked.answer.as_ref().map_err(Clone::clone),
            other => Err(other.failure()),
        }
    }

    /// What came of asking a model, if a step did.
    pub fn asked(&self) -> Option<&Asked> {
        match self {
            Self::Asked(asked) => Some(asked),
            _ => None,
        }
    }

    /// # Errors
    /// The failure, or that the answer is another.
    pub fn assembly(&self) -> Result<&Arc<Assembly>, EffectFailure> {
        match self {
            Self::Assembly(assembly) => Ok(assembly),
            other => Err(other.failure()),
        }
    }

    /// # Errors
    /// The failure, or that the answer is another.
    pub fn reply(&self) -> Result<&Reply, EffectFailure> {
        match self {
            Self::Reply(reply) => Ok(reply),
            other => Err(other.failure()),
        }
    }

    /// # Errors
    /// The failure, or that the answer is another.
    pub fn compacted(&self) -> Result<&Compacted, EffectFailure> {
        match self {
            Self::Compacted(compacted) => Ok(compacted),
            other => Err(other.failure()),
        }
    }

    /// Why there is not the answer that was asked for.
    fn failure(&self) -> EffectFailure {
        match self {
            Self::Failed(failure) => failure.clone(),
            _ => EffectFailure {
                code: Code::Internal,
                message: "the answer is not of the kind that was asked for".to_owned(),
                retriable: false,
                may_have_happened: true,
            },
        }
    }
}

impl From<Assembly> for Outcome {
    fn from(answer: Assembly) -> Self {
        Self::Assembly(Arc::new(answer))
    }
}

impl From<Reply> for Outcome {
    fn from(answer: Reply) -> Self {
        Self::Reply(Box::new(answer))
    }
}

impl From<Asked> for Outcome {
    fn from(answer: Asked) -> Self {
        Self::Asked(Box::new(answer))
    }
}

impl From<Compacted> for Outcome {
    fn from(answer: Compacted) -> Self {
        Self::Compacted(Box::new(answer))
    }
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct EffectFailure {
    pub code: Code,
    pub message: String,
    /// Infrastructure: may be tried again later. Otherwise business: the caller must change something.
    pub retriable: bool,
    /// The call may have reached the other side.
    pub may_have_happened: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum EffectState {
    /// Committed before the call is made.
    Sent,
    /// The answer is part of a committed step.
    Settled,
}

impl EffectState {
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Sent => "sent",
            Self::Settled => "settled",
        }
    }

    pub fn parse(text: &str) -> Option<Self> {
        [Self::Sent, Self::Settled].into_iter().find(|s| s.as_str() == text)
    }
}

/// A row of the effects ledger. Only [`EffectClass::AtMostOnce`] effects need one.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct EffectRow {
    pub key: String,
    pub class: EffectClass,
    pub state: EffectState,
    pub what: String,
}
