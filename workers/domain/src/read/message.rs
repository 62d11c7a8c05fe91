//! One message of a conversation by its id.

use schemas::conversation::{LogKind, LogRow};
use schemas::id::{ConversationId, MessageId, Namespace};

use crate::failure::Failure;
use crate::ports::Conversations;

/// The message, however old it is; `None` also if the id is that of another record.
pub async fn message(
    conversations: &dyn Conversations,
    namespace: &Namespace,
    conversation: &ConversationId,
    id: &MessageId,
) -> Result<Option<LogRow>, Failure> {
    let row = conversations.record(namespace, conversation, id.as_str()).await?;
    Ok(row.filter(|row| row.record.kind == LogKind::Message))
}
