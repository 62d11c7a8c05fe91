//! Messages and moves in the archive: appended once, whoever brings them and however often.
//!
//! There is no watermark over all logs, and a merge would read the keys of a table that only grows. So a
//! writer looks up, by the index on conversations, which records are there, and its commit is taken only on
//! top of the version that it looked at (`strict.rs`).

use std::collections::HashSet;

use async_trait::async_trait;
use domain::conversation::kept::{KeptRecords, LogPlace, RecordIds};
use domain::failure::Failure;
use domain::ports::TranscriptArchive;
use schemas::id::{ConversationId, Namespace};

use crate::append::encode;
use crate::archive::{Handle, LanceArchive, Tables, Written};
use crate::predicate::{ascending, of_log, of_logs};
use crate::query::{Page, fetch};

/// Rows looked up by one predicate.
const ROWS_AT_A_TIME: usize = 500;

/// A row of a log, in whichever table.
pub trait Logged {
    /// The column of ids, which are unique within a conversation.
    const ID: &'static str;

    fn place(&self) -> &LogPlace;
    fn id(&self) -> &str;
}

type Key = (Namespace, ConversationId, String);

fn key(row: &impl Logged) -> Key {
    let LogPlace { namespace, conversation_id, .. } = row.place();
    (namespace.clone(), conversation_id.clone(), row.id().to_owned())
}

#[async_trait]
impl TranscriptArchive for LanceArchive {
    async fn add_records(&self, records: &KeptRecords) -> Result<(), Failure> {
        let (tables, records) = (self.0.clone(), records.clone());
        Self::to_the_end(async move { tables.add_records(records).await }).await
    }

    async fn record_ids(&self, after: &LogPlace, upto: u64) -> Result<RecordIds, Failure> {
        let messages = self.0.messages.record_ids(after, upto).await?;
        Ok(RecordIds { messages, moves: self.0.moves.record_ids(after, upto).await? })
    }
}

impl Tables {
    async fn add_records(&self, records: KeptRecords) -> Result<(), Failure> {
        let mut writer = self.writer.lock().await;
        let writer = &mut *writer;
        self.messages.append_new(&mut writer.messages, records.messages).await?;
        self.moves.append_new(&mut writer.moves, records.moves).await
    }
}

impl<R: Logged + Send + Sync> Handle<R> {
    async fn append_new(&self, written: &mut Written, mut rows: Vec<R>) -> Result<(), Failure> {
        if rows.is_empty() {
            return Ok(());
        }
        // There are no marks to be had; but commits follow the version that is looked at here.
        let marks = self.marks(written).await?;
        let mut present = self.present(&rows).await?;
        rows.retain(|row| present.insert(key(row)));
        if rows.is_empty() {
            return Ok(());
        }
        rows.sort_by(|a, b| a.place().cmp(b.place()));
        self.add(encode(self.declared, &rows)?, &marks).await?;
        written.upkeep.commits += 1;
        written.upkeep.rows += rows.len();
        Ok(())
    }

    /// Which records of these stretches of logs are there.
    async fn present(&self, rows: &[R]) -> Result<HashSet<Key>, Failure> {
        let mut places: Vec<&LogPlace> = rows.iter().map(Logged::place).collect();
        // Neighbours by offset: of long logs, a predicate then reads no more than it must.
        places.sort_by_key(|place| place.offset);
        let columns = ["namespace", "conversation_id", R::ID];
        let mut present = HashSet::new();
        for some in places.chunks(ROWS_AT_A_TIME) {
            let page = Page { filter: Some(of_logs(some)), columns: &columns, order: None, offset: 0, limit: None };
            fetch(self, page, |cells| {
                for row in 0..cells.rows() {
                    let id = cells.text(R::ID, row)?.unwrap_or_default().to_owned();
                    present.insert((cells.id("namespace", row)?, cells.id("conversation_id", row)?, id));
                }
                Ok(())
            })
            .await?;
        }
        Ok(present)
    }

    async fn record_ids(&self, after: &LogPlace, upto: u64) -> Result<Vec<(u64, String)>, Failure> {
        // Not of a moment ago: what SQL knows to be here must be found.
        self.newest().await?;
        let columns = ["log_offset", R::ID];
        let filter = Some(of_log(after, upto));
        let order = Some(ascending("log_offset"));
        let mut found = Vec::new();
        fetch(self, Page { filter, columns: &columns, order, offset: 0, limit: None }, |cells| {
            for row in 0..cells.rows() {
                found.push((cells.count("log_offset", row)?, cells.text(R::ID, row)?.unwrap_or_default().to_owned()));
            }
            Ok(())
        })
        .await?;
        Ok(found)
    }
}
