//! What is written down about a call: for turns, costs and operators. Times are epoch milliseconds.

use schemas::problem::Code;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};

use super::context::CallContext;
use super::reply::ChatReply;
use super::usage::Usage;

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Operation {
    Chat,
    Embedding,
    Other,
}

/// Why a call failed (SPEC C-PRV-09).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ErrorCategory {
    /// Timeouts, broken connections and streams, errors of the provider itself.
    Transient,
    RateLimit,
    /// The request is refused as it is.
    Validation,
    Auth,
    /// The model or a filter declined.
    Safety,
    /// Nothing is left on the account; seconds do not help.
    Quota,
    Unknown,
}

impl ErrorCategory {
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Transient => "transient",
            Self::RateLimit => "rate_limit",
            Self::Validation => "validation",
            Self::Auth => "auth",
            Self::Safety => "safety",
            Self::Quota => "quota",
            Self::Unknown => "unknown",
        }
    }

    /// Infrastructure (SPEC W-ERR-01): worth trying again without changing anything.
    pub fn is_infrastructure(self) -> bool {
        matches!(self, Self::Transient | Self::RateLimit)
    }
}

/// How a call ended, all attempts together.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct RequestOutcome {
    pub ok: bool,
    /// HTTP status of the last attempt, if one came.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub status: Option<u16>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub error_category: Option<ErrorCategory>,
    /// Attempts made, from 1.
    pub attempts: u32,
    pub started_at_ms: i64,
    pub finished_at_ms: i64,
}

/// How many calls a record has besides its own.
const ADDED: &str = "added_calls";
/// What attempts have used that brought no reply.
pub const LOST_ATTEMPTS: &str = "lost_attempts";

/// What shortens a record, one after the other.
const SHORTENINGS: [fn(&mut ProviderCallRecord); 4] = [
    |record| record.request_metadata.clear(),
    |record| {
        if let Some(usage) = &mut record.usage {
            usage.breakdown = None;
        }
    },
    |record| {
        if let Some(Value::String(error)) = record.response_metadata.get_mut("error") {
            *error = error.chars().take(ERROR_KEPT_CHARS).collect();
        }
    },
    |record| {
        // What is billed stays.
        record.response_metadata.retain(|name, _| [ADDED, LOST_ATTEMPTS].contains(&name.as_str()));
        record.request_id = None;
    },
];
/// Of an error that is too long.
const ERROR_KEPT_CHARS: usize = 200;

/// One call of a provider (SPEC C-PRV-08). Holds no key and no text of the conversation.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ProviderCallRecord {
    pub id: String,
    pub conversation_id: String,
    pub turn_id: String,
    pub provider: String,
    pub model: String,
    pub operation: Operation,
    /// The provider's id of the request.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub request_id: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub correlation_id: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub parent_correlation_id: Option<String>,
    /// Never sent to the provider: the caller's notes under `metadata`, the `agent_context`, and
    /// the `extensions`.
    #[serde(default, skip_serializing_if = "Map::is_empty")]
    pub request_metadata: Map<String, Value>,
    /// `finish`, `raw_finish`, `message_id`, `model`; or the `error` in words. `lost_attempts`: of those that
    /// brought no reply and may be billed, what they used, and whether that is `estimated`.
    #[serde(default, skip_serializing_if = "Map::is_empty")]
    pub response_metadata: Map<String, Value>,
    /// Of all attempts.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub usage: Option<Usage>,
    /// In the currency of the profile's prices; absent when prices or usage are not known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cost: Option<f64>,
    /// Absent while the call is under way.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub outcome: Option<RequestOutcome>,
    pub started_at_ms: i64,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub finished_at_ms: Option<i64>,
}

impl ProviderCallRecord {
    /// The record of a chat call that begins now (epoch milliseconds).
    pub fn open(
        id: &str,
        context: &CallContext,
        provider: &str,
        model: &str,
        streaming: bool,
        started_at_ms: i64,
    ) -> Self {
        let mut request_metadata = Map::new();
        if !context.metadata.is_empty() {
            request_metadata.insert("metadata".to_owned(), context.metadata.clone().into());
        }
        request_metadata.insert("agent_context".to_owned(), json!(context.agent_context(provider, model)));
        let extensions = context.extensions(provider, model, streaming);
        request_metadata.insert("extensions".to_owned(), extensions.into());
        Self {
            id: id.to_owned(),
            conversation_id: context.conversation_id.clone(),
            turn_id: context.turn_id.clone(),
            provider: provider.to_owned(),
            model: model.to_owned(),
            operation: Operation::Chat,
            request_id: None,
            correlation_id: Some(context.run_id()),
            parent_correlation_id: context.parent_run_id(),
            request_metadata,
            response_metadata: Map::new(),
            usage: None,
            cost: None,
            outcome: None,
            started_at_ms,
            finished_at_ms: None,
        }
    }

    /// The same in so many bytes of JSON: providers may say a lot beside their figures, which are what counts. What is
    /// least missed goes first, and what is billed never.
    pub fn within(mut self, bytes_max: usize) -> Self {
        for shorten in SHORTENINGS {
            if json!(self).to_string().len() <= bytes_max {
                break;
            }
            shorten(&mut self);
        }
        self
    }

    /// Adds what another call has used, for which there is no room of its own. `added_calls` counts them.
    pub fn add(&mut self, other: &Self) {
        self.usage = match (self.usage.take(), &other.usage) {
            (Some(own), Some(others)) => Some(own.plus(others)),
            (own, others) => own.or_else(|| others.clone()),
        };
        self.cost = match (self.cost, other.cost) {
            (Some(own), Some(others)) => Some(own + others),
            (own, others) => own.or(others),
        };
        let added = self.response_metadata.get(ADDED).and_then(Value::as_u64).unwrap_or(0);
        self.response_metadata.insert(ADDED.to_owned(), (added + 1).into());
    }
}

/// A call whose attempts are used up.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ChatFailure {
    pub category: ErrorCategory,
    pub code: Code,
    /// What happened, and the remedy if there is one. Never holds a key.
    pub message: String,
    pub provider: String,
    /// The provider's own word for it, as in `overloaded_error`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub raw: Option<String>,
    /// Infrastructure: the same call may work later.
    pub retriable: bool,
    /// The provider may have begun to answer it, and charge for it.
    pub may_have_happened: bool,
}

/// The end of a call: its record, and what it was for.
#[derive(Debug, Clone, PartialEq)]
pub struct ChatOutcome {
    pub record: ProviderCallRecord,
    pub result: Result<ChatReply, ChatFailure>,
}
