//! Logs on their way to the archive.

use async_trait::async_trait;
use domain::conversation::kept::{KINDS, LogPlace, Stretch};
use domain::failure::Failure;
use domain::ports::{TranscriptTail, UnarchivedRow};
use schemas::conversation::{LogRecord, LogRow};
use schemas::id::{ConversationId, Namespace};
use schemas::json::Json;

use super::MemStore;

#[async_trait]
impl TranscriptTail for MemStore {
    async fn unarchived(
        &self,
        after: Option<&LogPlace>,
        limit: usize,
        bytes: usize,
    ) -> Result<Vec<UnarchivedRow>, Failure> {
        let state = self.transaction();
        let logs = state.conversations.iter();
        let waiting = logs.flat_map(|(key, rec)| {
            let rows = rec.log.iter().filter(move |row| row.offset > rec.archived);
            rows.map(move |row| (at(key, row.offset), row))
        });
        let (mut page, mut taken) = (Vec::new(), 0_usize);
        for (place, row) in waiting.filter(|(place, _)| after.is_none_or(|after| place > after)).take(limit) {
            let is_wanted = KINDS.contains(&row.record.kind);
            let body = if is_wanted { row.record.body.clone() } else { Json::null() };
            taken = taken.saturating_add(body.as_str().len());
            if taken > bytes && !page.is_empty() {
                break;
            }
            let record = LogRecord { body, ..row.record.clone() };
            page.push((place, Ok(LogRow { offset: row.offset, record })));
        }
        Ok(page)
    }

    async fn record_archived(&self, stretches: &[Stretch]) -> Result<(), Failure> {
        let mut state = self.transaction();
        for Stretch { first, upto } in stretches {
            let key = (first.namespace.clone(), first.conversation_id.clone());
            if let Some(rec) = state.conversations.get_mut(&key)
                && first.offset <= rec.archived + 1
            {
                rec.archived = rec.archived.max((*upto).min(rec.conversation.last_offset));
            }
        }
        Ok(())
    }

    async fn archived_ends(&self, after: Option<&LogPlace>, limit: usize) -> Result<Vec<LogPlace>, Failure> {
        let state = self.transaction();
        let ends = state.conversations.iter().map(|(key, rec)| at(key, rec.archived));
        let is_behind = |end: &LogPlace| after.is_none_or(|after| end > after && !end.is_in_log_of(after));
        Ok(ends.filter(is_behind).take(limit).collect())
    }
}

fn at((namespace, conversation_id): &(Namespace, ConversationId), offset: u64) -> LogPlace {
    LogPlace { namespace: namespace.clone(), conversation_id: conversation_id.clone(), offset }
}
