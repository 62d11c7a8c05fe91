//! Logs on their way to the archive.

use async_trait::async_trait;
use domain::conversation::kept::{HEAVY, LogPlace, Stretch};
use domain::failure::Failure;
use domain::ports::{TranscriptTail, UnarchivedRow};
use schemas::conversation::{LogRecord, LogRow};
use schemas::id::{ConversationId, Namespace};
use schemas::json::Json;

use super::MemStore;
use super::conversations::ConversationRec;

#[async_trait]
impl TranscriptTail for MemStore {
    async fn unarchived(
        &self,
        after: Option<&LogPlace>,
        limit: usize,
        bytes: usize,
    ) -> Result<Vec<UnarchivedRow>, Failure> {
        let state = self.transaction();
        let waiting = state.conversations.iter().flat_map(|(key, rec)| {
            let rows = rec.log.iter().filter(move |row| row.offset > rec.archived);
            rows.map(move |row| (at(key, row.offset), row.clone()))
        });
        Ok(page(waiting, after, limit, bytes))
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

    async fn heavy_records(
        &self,
        older_than_ms: u64,
        after: Option<&LogPlace>,
        limit: usize,
        bytes: usize,
    ) -> Result<Vec<UnarchivedRow>, Failure> {
        let before_ms = self.bound_ms(older_than_ms);
        let state = self.transaction();
        let heavy = state.conversations.iter().flat_map(|(key, rec)| {
            let old = rec.log.iter().filter(move |row| row.offset > rec.light);
            let old = old.take_while(move |row| row.offset <= rec.archived && row.record.at_ms < before_ms);
            old.map(move |row| (at(key, row.offset), wanted(row)))
        });
        Ok(page(heavy, after, limit, bytes))
    }

    async fn lighten_records(&self, stretches: &[Stretch]) -> Result<(), Failure> {
        let mut state = self.transaction();
        for Stretch { first, upto } in stretches {
            let key = (first.namespace.clone(), first.conversation_id.clone());
            let lightens =
                |rec: &&mut ConversationRec| (first.offset..=*upto).contains(&(rec.light + 1)) && *upto <= rec.archived;
            if let Some(rec) = state.conversations.get_mut(&key).filter(lightens) {
                rec.light = *upto;
            }
        }
        Ok(())
    }
}

/// The record without a body that stays.
fn wanted(row: &LogRow) -> LogRow {
    let body = if HEAVY.contains(&row.record.kind) { row.record.body.clone() } else { Json::null() };
    LogRow { offset: row.offset, record: LogRecord { body, ..row.record.clone() } }
}

/// What follows a place, up to so many rows and bytes of bodies; one row at least.
fn page(
    rows: impl Iterator<Item = (LogPlace, LogRow)>,
    after: Option<&LogPlace>,
    limit: usize,
    bytes: usize,
) -> Vec<UnarchivedRow> {
    let (mut page, mut taken) = (Vec::new(), 0_usize);
    for (place, row) in rows.filter(|(place, _)| after.is_none_or(|after| place > after)).take(limit) {
        taken = taken.saturating_add(row.record.body.as_str().len());
        if taken > bytes && !page.is_empty() {
            break;
        }
        page.push((place, Ok(row)));
    }
    page
}

fn at((namespace, conversation_id): &(Namespace, ConversationId), offset: u64) -> LogPlace {
    LogPlace { namespace: namespace.clone(), conversation_id: conversation_id.clone(), offset }
}
