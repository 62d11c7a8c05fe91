//! Messages, moves and records in the archive: appended once, whoever brings them and however often.
//!
//! There is no watermark over all logs, and a merge would read the keys of a table that only grows. So a
//! writer looks up, by the index on conversations, which records are there, and its commit is taken only on
//! top of the version that it looked at (`strict.rs`).
//!
//! A look at a log costs what there is of it. So it is done once: from then on the writer knows where that
//! log ends in the table, until somebody else has committed or a commit of its own went wrong.

use std::collections::{HashMap, HashSet};

use async_trait::async_trait;
use domain::conversation::kept::{KeptBody, KeptRecord, KeptRecords, LogPlace, RecordIds};
use domain::failure::Failure;
use domain::ports::TranscriptArchive;
use schemas::id::{ConversationId, Namespace};
use schemas::json::Json;

use crate::append::encode;
use crate::archive::{Handle, LanceArchive, Tables, Written};
use crate::predicate::{ascending, at_offsets, of_log, of_logs};
use crate::query::{Page, fetch};

/// Logs looked up by one predicate.
const LOGS_AT_A_TIME: usize = 500;
/// Logs whose ends are known at a time; before there are more, all are forgotten.
const ENDS_MAX: usize = 50_000;

/// A row of a log, in whichever table.
pub trait Logged {
    /// The column of ids, which are unique within a conversation.
    const ID: &'static str;

    fn place(&self) -> &LogPlace;
    fn id(&self) -> &str;
}

pub type Log = (Namespace, ConversationId);
/// Of logs: nothing behind this offset is in the table.
pub type Ends = HashMap<Log, u64>;

fn log(row: &impl Logged) -> Log {
    let LogPlace { namespace, conversation_id, .. } = row.place();
    (namespace.clone(), conversation_id.clone())
}

fn key(row: &impl Logged) -> (Log, String) {
    (log(row), row.id().to_owned())
}

#[async_trait]
impl TranscriptArchive for LanceArchive {
    async fn add_records(&self, records: KeptRecords) -> Result<(), Failure> {
        let tables = self.0.clone();
        Self::to_the_end(async move { tables.add_records(records).await }).await
    }

    async fn record_ids(&self, after: &LogPlace, upto: u64) -> Result<RecordIds, Failure> {
        let messages = self.0.messages.record_ids(after, upto).await?;
        let moves = self.0.moves.record_ids(after, upto).await?;
        Ok(RecordIds { messages, moves, records: self.0.records.record_ids(after, upto).await? })
    }

    async fn bodies(&self, log: &LogPlace, offsets: &[u64]) -> Result<Vec<KeptBody>, Failure> {
        if offsets.is_empty() {
            return Ok(Vec::new());
        }
        self.0.records.bodies(log, offsets).await
    }
}

impl Tables {
    async fn add_records(&self, records: KeptRecords) -> Result<(), Failure> {
        let mut writer = self.writer.lock().await;
        let writer = &mut *writer;
        self.messages.append_new(&mut writer.messages, records.messages).await?;
        self.moves.append_new(&mut writer.moves, records.moves).await?;
        self.records.append_new(&mut writer.records, records.records).await
    }
}

impl Handle<KeptRecord> {
    async fn bodies(&self, log: &LogPlace, offsets: &[u64]) -> Result<Vec<KeptBody>, Failure> {
        let filter = Some(at_offsets(log, offsets));
        let columns = ["log_offset", KeptRecord::ID, "payload"];
        let mut found = Vec::new();
        fetch(self, Page { filter, columns: &columns, order: None, offset: 0, limit: None }, |cells| {
            for row in 0..cells.rows() {
                let (id, body) = (cells.text(KeptRecord::ID, row)?, cells.text("payload", row)?);
                found.push(KeptBody {
                    offset: cells.count("log_offset", row)?,
                    id: id.unwrap_or_default().to_owned(),
                    body: Json::lenient(body.unwrap_or_default()),
                });
            }
            Ok(())
        })
        .await?;
        Ok(found)
    }
}

impl<R: Logged + Send + Sync> Handle<R> {
    async fn append_new(&self, written: &mut Written, mut rows: Vec<R>) -> Result<(), Failure> {
        if rows.is_empty() {
            return Ok(());
        }
        // There are no marks to be had; but commits follow the version that is looked at here.
        let marks = self.marks(written).await?;
        // Kept again once all is well: what becomes of a commit that fails is not known.
        let mut ends = std::mem::take(&mut written.ends);
        if ends.len() > ENDS_MAX {
            ends.clear();
        }
        let mut present = self.present(&rows, &mut ends).await?;
        rows.retain(|row| present.insert(key(row)));
        if !rows.is_empty() {
            rows.sort_by(|a, b| a.place().cmp(b.place()));
            self.add(encode(self.declared, &rows)?, &marks).await?;
            written.upkeep.commits += 1;
            written.upkeep.rows += rows.len();
        }
        rows.iter().for_each(|row| reach(&mut ends, log(row), row.place().offset));
        written.ends = ends;
        Ok(())
    }

    /// Which of these records are there; notes the ends of their logs. What is behind the end of a log that is
    /// known is not looked up.
    async fn present(&self, rows: &[R], ends: &mut Ends) -> Result<HashSet<(Log, String)>, Failure> {
        let (mut firsts, mut wanted) = (HashMap::<Log, u64>::new(), HashSet::new());
        for row in rows {
            let (log, offset) = (log(row), row.place().offset);
            if ends.get(&log).is_none_or(|end| offset <= *end) {
                wanted.insert(key(row));
                firsts.entry(log).and_modify(|first| *first = offset.min(*first)).or_insert(offset);
            }
        }
        // Neighbours by offset: of long logs, a predicate then finds few rows too many.
        let mut firsts: Vec<(Log, u64)> = firsts.into_iter().collect();
        firsts.sort_by_key(|(_, first)| *first);
        let columns = ["namespace", "conversation_id", "log_offset", R::ID];
        let mut present = HashSet::new();
        for some in firsts.chunks(LOGS_AT_A_TIME) {
            let logs: HashSet<&Log> = some.iter().map(|(log, _)| log).collect();
            some.iter().for_each(|(log, first)| reach(ends, log.clone(), first.saturating_sub(1)));
            let page = Page { filter: Some(of_logs(some)), columns: &columns, order: None, offset: 0, limit: None };
            fetch(self, page, |cells| {
                for row in 0..cells.rows() {
                    let log: Log = (cells.id("namespace", row)?, cells.id("conversation_id", row)?);
                    // The same name in another namespace was not asked for.
                    if !logs.contains(&log) {
                        continue;
                    }
                    reach(ends, log.clone(), cells.count("log_offset", row)?);
                    let key = (log, cells.text(R::ID, row)?.unwrap_or_default().to_owned());
                    if wanted.contains(&key) {
                        present.insert(key);
                    }
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

/// Notes that the end of a log is not before this offset.
fn reach(ends: &mut Ends, log: Log, offset: u64) {
    let end = ends.entry(log).or_default();
    *end = offset.max(*end);
}
