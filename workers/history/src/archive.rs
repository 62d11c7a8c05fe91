//! The archive as one value: its tables, and what its writer knows.

use std::sync::Arc;
use std::time::{Duration, Instant};

use async_trait::async_trait;
use domain::conversation::kept::{KeptMessage, KeptMove, KeptRecord};
use domain::failure::Failure;
use domain::memory::kept::KeptMemory;
use domain::ports::{Archive, ArchiveBatch, EventRow, StepQuery, Watermarks};
use lance::Dataset;
use schemas::id::SessionKey;
use schemas::record::{Snapshot, StoredStep};
use tokio::sync::Mutex;

use crate::failure::{of_lance, of_lancedb};
use crate::maintain::Upkeep;
use crate::marks::Marks;
use crate::open::{OpenError, OpenOptions, Place, connect};
use crate::strict::StrictCommits;
use crate::table::Table;
use crate::table::events::{EVENTS, LogRow};
use crate::table::memories::MEMORIES;
use crate::table::messages::MESSAGES;
use crate::table::moves::MOVES;
use crate::table::records::RECORDS;
use crate::table::state::{STATE, StateRow};
use crate::table::steps::{STEPS, StepRow};
use crate::transcripts::Ends;

/// LanceDB behind the port. Cheap to clone; clones are the same archive.
#[derive(Clone)]
pub struct LanceArchive(pub(crate) Arc<Tables>);

pub(crate) struct Tables {
    pub steps: Handle<StepRow>,
    pub events: Handle<LogRow>,
    pub state: Handle<StateRow>,
    pub memories: Handle<KeptMemory>,
    pub messages: Handle<KeptMessage>,
    pub moves: Handle<KeptMove>,
    pub records: Handle<KeptRecord>,
    /// One writer at a time in this process; between processes, commits that are not on top of what
    /// their writer knows are refused.
    pub writer: Mutex<Writer>,
    pub keep_versions: Duration,
}

/// An open table with its declaration.
pub(crate) struct Handle<R: 'static> {
    pub declared: &'static Table<R>,
    pub table: lancedb::Table,
    pub commits: Arc<StrictCommits>,
    /// How old a reader's view may be.
    pub read_consistency: Duration,
    /// When the newest version was last asked for, by a reader.
    pub looked: Mutex<Option<Instant>>,
}

/// What the writer knows of each table.
#[derive(Default)]
pub(crate) struct Writer {
    pub steps: Written,
    pub events: Written,
    pub state: Written,
    pub memories: Written,
    pub messages: Written,
    pub moves: Written,
    pub records: Written,
}

#[derive(Default)]
pub(crate) struct Written {
    /// As of the version that the table's commits follow; `None` = not read yet, or a commit ended
    /// unknown.
    pub marks: Option<Marks>,
    /// Of logs that are in the table: as of that version, too.
    pub ends: Ends,
    pub upkeep: Upkeep,
}

impl LanceArchive {
    /// Opens the archive at a path or in a bucket, or creates it there. Any number of processes may
    /// do so at the same time.
    ///
    /// # Errors
    /// See [`OpenError`]; [`OpenError::may_pass`] tells which are worth another attempt.
    pub async fn open(uri: &str, options: OpenOptions) -> Result<Self, OpenError> {
        let place = connect(uri, &options).await?;
        let tables = Tables::open(&place, options.keep_versions).await?;
        tracing::debug!(place = place.name(), "archive open");
        Ok(Self(Arc::new(tables)))
    }

    /// Runs a write to its end even if the caller goes away: half a commit is then no concern of
    /// the next writer in this process.
    pub(crate) async fn to_the_end<T: Send + 'static>(
        write: impl Future<Output = Result<T, Failure>> + Send + 'static,
    ) -> Result<T, Failure> {
        match tokio::spawn(write).await {
            Ok(done) => done,
            Err(error) => Err(Failure::in_doubt(format!("the archive's writer ended: {error}"))),
        }
    }
}

impl Tables {
    pub async fn open(place: &Place, keep_versions: Duration) -> Result<Self, OpenError> {
        Ok(Self {
            steps: place.table(&STEPS).await?,
            events: place.table(&EVENTS).await?,
            state: place.table(&STATE).await?,
            memories: place.table(&MEMORIES).await?,
            messages: place.table(&MESSAGES).await?,
            moves: place.table(&MOVES).await?,
            records: place.table(&RECORDS).await?,
            writer: Mutex::default(),
            keep_versions,
        })
    }
}

impl<R> Handle<R> {
    pub fn name(&self) -> &'static str {
        self.declared.name
    }

    /// Lets reads see a version that is at most as old as they allow. The age counts from when the
    /// version was asked for, not from when the answer came: journal rows are trimmed on the promise
    /// that no reader is further behind, however slow the storage is.
    pub async fn look(&self) -> Result<(), Failure> {
        let mut looked = self.looked.lock().await;
        if looked.is_none_or(|at| at.elapsed() >= self.read_consistency) {
            let now = Instant::now();
            self.newest().await?;
            *looked = Some(now);
        }
        Ok(())
    }

    /// The table as of the newest version that this handle knows.
    pub async fn dataset(&self) -> Result<Arc<Dataset>, Failure> {
        let wrapper = self.table.dataset().ok_or_else(|| Failure::internal("the table is not a local one"))?;
        wrapper.get().await.map_err(|error| of_lancedb(self.name(), &error))
    }

    /// The table as of its newest version.
    pub async fn newest(&self) -> Result<Arc<Dataset>, Failure> {
        self.table.checkout_latest().await.map_err(|error| of_lancedb(self.name(), &error))?;
        self.dataset().await
    }

    /// Lets readers of this handle see a version that was committed without it.
    pub fn adopt(&self, dataset: Dataset) {
        if let Some(wrapper) = self.table.dataset() {
            wrapper.update(dataset);
        }
    }
}

#[async_trait]
impl Archive for LanceArchive {
    async fn append(&self, batch: &ArchiveBatch) -> Result<(), Failure> {
        let rows = crate::append::in_order(batch)?;
        let tables = self.0.clone();
        Self::to_the_end(async move { tables.append(rows).await }).await
    }

    async fn watermarks(&self) -> Result<Watermarks, Failure> {
        // Snapshots are written last, and every row has one; rows without a step or without an event leave
        // no mark in the other tables.
        let mut writer = self.0.writer.lock().await;
        Ok(self.0.state.marks(&mut writer.state).await?.into_watermarks())
    }

    async fn steps(&self, query: &StepQuery) -> Result<Vec<StoredStep>, Failure> {
        self.0.steps(query).await
    }

    async fn events(&self, key: &SessionKey, after: u64, limit: usize) -> Result<Vec<EventRow>, Failure> {
        self.0.events(key, after, limit).await
    }

    async fn steps_after_offset(&self, key: &SessionKey, after: u64, limit: usize) -> Result<Vec<StoredStep>, Failure> {
        self.0.steps_after_offset(key, after, limit).await
    }

    async fn snapshot(&self, key: &SessionKey) -> Result<Option<Snapshot>, Failure> {
        self.0.snapshot(key).await
    }

    async fn maintain(&self) -> Result<(), Failure> {
        let tables = self.0.clone();
        Self::to_the_end(async move { tables.maintain().await }).await
    }

    async fn ping(&self) -> Result<(), Failure> {
        let tables = &self.0;
        let (steps, events) = (tables.steps.dataset().await?, tables.events.dataset().await?);
        let (state, memories) = (tables.state.dataset().await?, tables.memories.dataset().await?);
        let (messages, moves) = (tables.messages.dataset().await?, tables.moves.dataset().await?);
        let records = tables.records.dataset().await?;
        for dataset in [steps, events, state, memories, messages, moves, records] {
            dataset.latest_version_id().await.map_err(|error| of_lance("looking at the archive", &error))?;
        }
        Ok(())
    }
}
