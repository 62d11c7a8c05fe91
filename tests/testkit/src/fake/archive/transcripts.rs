//! The archive of messages, moves and records: each once.

use async_trait::async_trait;
use domain::conversation::kept::{KeptBody, KeptRecord, KeptRecords, LogPlace, RecordIds};
use domain::failure::Failure;
use domain::ports::TranscriptArchive;

use super::MemArchive;

#[async_trait]
impl TranscriptArchive for MemArchive {
    async fn add_records(&self, records: KeptRecords) -> Result<(), Failure> {
        append(&mut self.lock().records.messages, &records.messages);
        self.between_tables().await?;
        append(&mut self.lock().records.moves, &records.moves);
        self.between_tables().await?;
        append(&mut self.lock().records.records, &records.records);
        // Whoever is told that it failed may find the records there.
        self.between_tables().await
    }

    async fn record_ids(&self, after: &LogPlace, upto: u64) -> Result<RecordIds, Failure> {
        let mut records = self.all_records();
        let is_asked =
            |place: &LogPlace| place.is_in_log_of(after) && place.offset > after.offset && place.offset <= upto;
        records.messages.retain(|kept| is_asked(&kept.place));
        records.moves.retain(|kept| is_asked(&kept.place));
        records.records.retain(|kept| is_asked(&kept.place));
        let mut ids = records.ids();
        ids.messages.sort();
        ids.moves.sort();
        ids.records.sort();
        Ok(ids)
    }

    async fn bodies(&self, log: &LogPlace, offsets: &[u64]) -> Result<Vec<KeptBody>, Failure> {
        let mut records = self.all_records().records;
        records.retain(|kept| kept.place.is_in_log_of(log) && offsets.contains(&kept.place.offset));
        let body =
            |kept: KeptRecord| KeptBody { offset: kept.place.offset, id: kept.record.id, body: kept.record.body };
        Ok(records.into_iter().map(body).collect())
    }
}

impl MemArchive {
    /// Every message, move and record, as stored.
    pub fn all_records(&self) -> KeptRecords {
        self.lock().records.clone()
    }
}

fn append<R: Clone + PartialEq>(there: &mut Vec<R>, records: &[R]) {
    for record in records {
        if !there.contains(record) {
            there.push(record.clone());
        }
    }
}
