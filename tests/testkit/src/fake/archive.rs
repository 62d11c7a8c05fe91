//! The archive in memory: three append-only tables, each with its own watermark, written one after
//! the other, so that a crash can strike between them.

mod memories;
mod read;
mod transcripts;

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use async_trait::async_trait;
use domain::conversation::kept::KeptRecords;
use domain::failure::Failure;
use domain::memory::kept::KeptMemory;
use domain::ports::{Archive, ArchiveBatch, EventRow, StepQuery, Watermarks};
use schemas::id::{MemoryId, SessionKey, Shard};
use schemas::json::Json;
use schemas::memory::MemoryOwner;
use schemas::record::{JournalRow, Snapshot, StoredStep};

use crate::dice::Dice;
use crate::fake::breakage::{Breakage, Breakages};

/// Cheap to clone; clones are the same archive.
#[derive(Clone, Default)]
pub struct MemArchive {
    tables: Arc<Mutex<Tables>>,
    breakages: Breakages,
    cuts: Option<Cuts>,
}

/// Makes appends end between two tables, with the given probability.
#[derive(Clone)]
struct Cuts {
    dice: Dice,
    probability: f64,
}

#[derive(Default)]
struct Tables {
    steps: Table<StoredStep>,
    events: Table<EventRow>,
    snapshots: BTreeMap<SessionKey, Snapshot>,
    snapshot_marks: Watermarks,
    memories: BTreeMap<(MemoryOwner, MemoryId), KeptMemory>,
    records: KeptRecords,
    appends: u64,
}

struct Table<R> {
    rows: Vec<R>,
    marks: Watermarks,
}

impl<R> Default for Table<R> {
    fn default() -> Self {
        Self { rows: Vec::new(), marks: Watermarks::new() }
    }
}

impl MemArchive {
    pub fn with_faults(dice: Dice, cut_probability: f64, breakages: Breakages) -> Self {
        Self { tables: Arc::default(), breakages, cuts: Some(Cuts { dice, probability: cut_probability }) }
    }

    /// Every step row, as stored: a duplicate would show.
    pub fn all_steps(&self) -> Vec<StoredStep> {
        self.lock().steps.rows.clone()
    }

    /// Every event row, as stored.
    pub fn all_events(&self) -> Vec<EventRow> {
        self.lock().events.rows.clone()
    }

    pub fn all_snapshots(&self) -> Vec<Snapshot> {
        self.lock().snapshots.values().cloned().collect()
    }

    fn lock(&self) -> MutexGuard<'_, Tables> {
        self.tables.lock().unwrap_or_else(PoisonError::into_inner)
    }

    async fn between_tables(&self) -> Result<(), Failure> {
        tokio::time::sleep(Duration::from_millis(1)).await;
        match &self.cuts {
            Some(cuts) if cuts.dice.chance(cuts.probability) => Err(Failure::in_doubt("the append ended half way")),
            _ => Ok(()),
        }
    }
}

#[async_trait]
impl Archive for MemArchive {
    async fn append(&self, batch: &ArchiveBatch) -> Result<(), Failure> {
        in_order(batch)?;
        let twice = self.breakages.on(Breakage::ArchiveTwice);
        let rows: Vec<&JournalRow> =
            batch.rows.iter().filter(|_| !self.breakages.strikes(Breakage::ArchiveLosesRow)).collect();
        {
            let tables = &mut *self.lock();
            tables.appends += 1;
            for row in fresh(&tables.steps.marks, &rows, twice) {
                tables.steps.rows.extend(steps_of(row));
            }
            advance(&mut tables.steps.marks, &batch.rows);
        }
        self.between_tables().await?;
        {
            let tables = &mut *self.lock();
            for row in fresh(&tables.events.marks, &rows, twice) {
                let events = row.entry.events.iter();
                tables.events.rows.extend(events.map(|e| EventRow { key: row.key.clone(), event: e.clone() }));
            }
            advance(&mut tables.events.marks, &batch.rows);
        }
        self.between_tables().await?;
        let tables = &mut *self.lock();
        for row in fresh(&tables.snapshot_marks, &rows, twice) {
            let snapshot = snapshot_of(row, tables.snapshots.get(&row.key));
            tables.snapshots.insert(row.key.clone(), snapshot);
        }
        advance(&mut tables.snapshot_marks, &batch.rows);
        Ok(())
    }

    async fn watermarks(&self) -> Result<Watermarks, Failure> {
        let tables = self.lock();
        let others = [&tables.events.marks, &tables.snapshot_marks];
        let least = |(shard, seq): (&Shard, &u64)| {
            let lowest = others.iter().map(|marks| marks.get(shard).copied().unwrap_or(0)).min().unwrap_or(0);
            (*shard, lowest.min(*seq))
        };
        Ok(tables.steps.marks.iter().map(least).collect())
    }

    async fn steps(&self, query: &StepQuery) -> Result<Vec<StoredStep>, Failure> {
        Ok(read::steps(&self.lock().steps.rows, query))
    }

    async fn events(&self, key: &SessionKey, after: u64, limit: usize) -> Result<Vec<EventRow>, Failure> {
        Ok(read::events(&self.lock().events.rows, key, after, limit))
    }

    async fn steps_after_offset(&self, key: &SessionKey, after: u64, limit: usize) -> Result<Vec<StoredStep>, Failure> {
        Ok(read::steps_after_offset(&self.lock().steps.rows, key, after, limit))
    }

    async fn snapshot(&self, key: &SessionKey) -> Result<Option<Snapshot>, Failure> {
        Ok(self.lock().snapshots.get(key).cloned())
    }

    async fn maintain(&self) -> Result<(), Failure> {
        Ok(())
    }

    async fn ping(&self) -> Result<(), Failure> {
        Ok(())
    }
}

/// The port promises batches ascending and gapless per shard; the fake insists.
fn in_order(batch: &ArchiveBatch) -> Result<(), Failure> {
    for pair in batch.rows.windows(2) {
        let follows =
            if pair[0].shard == pair[1].shard { pair[1].seq == pair[0].seq + 1 } else { pair[0].shard < pair[1].shard };
        if !follows {
            let places = [(pair[0].shard, pair[0].seq), (pair[1].shard, pair[1].seq)];
            return Err(Failure::internal(format!("the batch is out of order: {places:?}")));
        }
    }
    Ok(())
}

fn fresh<'r>(marks: &Watermarks, rows: &[&'r JournalRow], all: bool) -> Vec<&'r JournalRow> {
    let known = |row: &JournalRow| marks.get(&row.shard).is_some_and(|seq| row.seq <= *seq);
    rows.iter().copied().filter(|row| all || !known(row)).collect()
}

fn advance(marks: &mut Watermarks, rows: &[JournalRow]) {
    for row in rows {
        let mark = marks.entry(row.shard).or_default();
        *mark = (*mark).max(row.seq);
    }
}

fn steps_of(row: &JournalRow) -> impl Iterator<Item = StoredStep> {
    row.entry.steps.iter().map(|step| StoredStep {
        key: row.key.clone(),
        agent_id: row.entry.agent_id.clone(),
        conversation_id: row.entry.conversation_id.clone(),
        step: step.clone(),
    })
}

fn snapshot_of(row: &JournalRow, before: Option<&Snapshot>) -> Snapshot {
    let entry = &row.entry;
    let result = match entry.steps.last() {
        Some(step) => step.text.as_deref().map(Json::of).or_else(|| step.data.clone()),
        None => before.and_then(|snapshot| snapshot.result.clone()),
    };
    Snapshot {
        key: row.key.clone(),
        agent_id: entry.agent_id.clone(),
        moniker: entry.moniker.clone(),
        conversation_id: entry.conversation_id.clone(),
        head: entry.head.clone(),
        state: entry.state.clone(),
        result,
    }
}
