//! The archive of messages and moves: each once.

use async_trait::async_trait;
use domain::conversation::kept::{KeptRecords, LogPlace, RecordIds};
use domain::failure::Failure;
use domain::ports::TranscriptArchive;

use super::MemArchive;

#[async_trait]
impl TranscriptArchive for MemArchive {
    async fn add_records(&self, records: KeptRecords) -> Result<(), Failure> {
        append(&mut self.lock().records.messages, &records.messages);
        self.between_tables().await?;
        append(&mut self.lock().records.moves, &records.moves);
        // Whoever is told that it failed may find the records there.
        self.between_tables().await
    }

    async fn record_ids(&self, after: &LogPlace, upto: u64) -> Result<RecordIds, Failure> {
        let mut records = self.all_records();
        let is_asked =
            |place: &LogPlace| place.is_in_log_of(after) && place.offset > after.offset && place.offset <= upto;
        records.messages.retain(|kept| is_asked(&kept.place));
        records.moves.retain(|kept| is_asked(&kept.place));
        let mut ids = records.ids();
        ids.messages.sort();
        ids.moves.sort();
        Ok(ids)
    }
}

impl MemArchive {
    /// Every message and move, as stored.
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
