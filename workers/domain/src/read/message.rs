//! One message of a conversation by its id.

use schemas::conversation::{LogKind, LogRow};
use schemas::id::{ConversationId, MessageId, Namespace};
use schemas::limits::{PAGE_BYTES_MAX, REPLY_REACH_MAX};

use crate::failure::Failure;
use crate::ports::{Conversations, LogQuery};

/// Messages read at a time: what is replied to is mostly among the newest.
const PAGE: usize = 200;

/// The message, if it is among the newest [`REPLY_REACH_MAX`] that lie before an offset.
pub async fn message(
    conversations: &dyn Conversations,
    namespace: &Namespace,
    conversation: &ConversationId,
    id: &MessageId,
    before: Option<u64>,
) -> Result<Option<LogRow>, Failure> {
    let mut query = LogQuery {
        namespace: namespace.clone(),
        conversation_id: conversation.clone(),
        kinds: vec![LogKind::Message],
        turn_id: None,
        after: 0,
        before,
        since_ms: None,
        descending: true,
        limit: PAGE,
        bytes: PAGE_BYTES_MAX,
    };
    let mut seen = 0;
    while seen < REPLY_REACH_MAX {
        let rows = conversations.log(&query).await?;
        let Some(last) = rows.last().map(|row| row.offset) else { return Ok(None) };
        seen += rows.len();
        if let Some(found) = rows.into_iter().find(|row| row.record.id == id.as_str()) {
            return Ok(Some(found));
        }
        query.before = Some(last);
    }
    Ok(None)
}
