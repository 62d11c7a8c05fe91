//! Messages as they are kept (SPEC C-MSG-04, K-07, K-08).

use schemas::id::{ConversationId, MessageId, TurnId};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use super::content::Content;
use crate::chat::{ChatReply, Message, Part, Role};

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum MessageRole {
    System,
    User,
    Assistant,
    Tool,
    /// Something of the world outside. A model is told it like a user's message: it is no instruction.
    Other,
}

impl MessageRole {
    pub fn as_str(self) -> &'static str {
        match self {
            Self::System => "system",
            Self::User => "user",
            Self::Assistant => "assistant",
            Self::Tool => "tool",
            Self::Other => "other",
        }
    }

    /// The role that a model is told.
    pub fn for_model(self) -> Role {
        match self {
            Self::System => Role::System,
            Self::User | Self::Other => Role::User,
            Self::Assistant => Role::Assistant,
            Self::Tool => Role::Tool,
        }
    }
}

impl From<Role> for MessageRole {
    fn from(role: Role) -> Self {
        match role {
            Role::System => Self::System,
            Role::User => Self::User,
            Role::Assistant => Self::Assistant,
            Role::Tool => Self::Tool,
        }
    }
}

/// What kind of event a message is. A transcript shows utterances only.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum MessageKind {
    #[default]
    Utterance,
    /// An answer of a model that calls tools; it may say something as well.
    ToolCall,
    ToolResult,
    /// Stands for older messages, which a model is no longer shown.
    Summary,
    /// For people only: no model is shown it.
    Status,
}

/// One message of a conversation. Never changed, never removed.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ConversationMessage {
    pub id: MessageId,
    pub conversation_id: ConversationId,
    /// The turn that made it; absent on what came from outside.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub turn_id: Option<TurnId>,
    pub role: MessageRole,
    #[serde(rename = "event_type", default)]
    pub kind: MessageKind,
    pub content: Content,
    /// Who speaks: an agent, a tool, a user.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    #[serde(rename = "created_at", with = "super::stamp")]
    pub created_at_ms: i64,
    /// The provider's own id of it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub provider_message_id: Option<String>,
    /// Of a summary: the newest of the messages that it stands for.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub compacts_through: Option<MessageId>,
    /// For higher layers; never shown to a model.
    #[serde(default, skip_serializing_if = "Map::is_empty")]
    pub metadata: Map<String, Value>,
}

impl ConversationMessage {
    /// As a model is shown it.
    pub fn for_model(&self) -> Message {
        Message { role: self.role.for_model(), content: self.content.parts(), name: self.name.clone() }
    }

    /// Bytes as JSON, metadata included.
    pub fn size(&self) -> usize {
        serde_json::to_string(self).map_or(usize::MAX, |text| text.len())
    }
}

/// A message that is still to be stored: whoever stores it gives it what it has not.
#[derive(Debug, Clone, PartialEq)]
pub struct NewMessage {
    /// The writer's own, to notice a repetition by.
    pub id: Option<MessageId>,
    pub role: MessageRole,
    pub kind: MessageKind,
    pub content: Content,
    pub name: Option<String>,
    pub created_at_ms: Option<i64>,
    pub provider_message_id: Option<String>,
    pub compacts_through: Option<MessageId>,
    pub metadata: Map<String, Value>,
}

impl NewMessage {
    pub fn new(role: MessageRole, content: impl Into<Content>) -> Self {
        Self {
            id: None,
            role,
            kind: MessageKind::default(),
            content: content.into(),
            name: None,
            created_at_ms: None,
            provider_message_id: None,
            compacts_through: None,
            metadata: Map::new(),
        }
    }

    pub fn system(content: impl Into<Content>) -> Self {
        Self::new(MessageRole::System, content)
    }

    pub fn user(content: impl Into<Content>) -> Self {
        Self::new(MessageRole::User, content)
    }

    pub fn assistant(content: impl Into<Content>) -> Self {
        Self::new(MessageRole::Assistant, content)
    }

    /// Complete, at this time unless it has one of its own.
    pub fn complete(self, conversation_id: &ConversationId, id: MessageId, at_ms: i64) -> ConversationMessage {
        ConversationMessage {
            id: self.id.unwrap_or(id),
            conversation_id: conversation_id.clone(),
            turn_id: None,
            role: self.role,
            kind: self.kind,
            content: self.content,
            name: self.name,
            created_at_ms: self.created_at_ms.unwrap_or(at_ms),
            provider_message_id: self.provider_message_id,
            compacts_through: self.compacts_through,
            metadata: self.metadata,
        }
    }
}

impl From<Message> for NewMessage {
    /// A single text is kept as a text.
    fn from(message: Message) -> Self {
        let has = |wanted: fn(&Part) -> bool| message.content.iter().any(wanted);
        let kind = if has(|part| matches!(part, Part::ToolCall(_))) {
            MessageKind::ToolCall
        } else if has(|part| matches!(part, Part::ToolResult { .. })) {
            MessageKind::ToolResult
        } else {
            MessageKind::Utterance
        };
        let content = match message.content.as_slice() {
            [Part::Text { text, signature: None }] => Content::Text(text.clone()),
            _ => Content::Parts(message.content),
        };
        Self { kind, name: message.name, ..Self::new(message.role.into(), content) }
    }
}

impl From<&ChatReply> for NewMessage {
    fn from(reply: &ChatReply) -> Self {
        Self { provider_message_id: reply.message_id.clone(), ..Self::from(reply.message()) }
    }
}
