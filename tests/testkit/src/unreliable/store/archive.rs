//! The archive through faults.

use async_trait::async_trait;
use domain::failure::Failure;
use domain::ports::{Archive, ArchiveBatch, EventRow, StepQuery, Watermarks};
use schemas::id::SessionKey;
use schemas::record::{Snapshot, StoredStep};

use crate::unreliable::{Port, Unreliable};

#[async_trait]
impl<P: Archive + ?Sized> Archive for Unreliable<P> {
    async fn append(&self, batch: &ArchiveBatch) -> Result<(), Failure> {
        self.faults.call(Port::Archive, "archive.append", self.inner.append(batch)).await
    }

    async fn watermarks(&self) -> Result<Watermarks, Failure> {
        self.faults.call(Port::Archive, "archive.watermarks", self.inner.watermarks()).await
    }

    async fn steps(&self, query: &StepQuery) -> Result<Vec<StoredStep>, Failure> {
        self.faults.call(Port::Archive, "archive.steps", self.inner.steps(query)).await
    }

    async fn events(&self, key: &SessionKey, after: u64, limit: usize) -> Result<Vec<EventRow>, Failure> {
        self.faults.call(Port::Archive, "archive.events", self.inner.events(key, after, limit)).await
    }

    async fn steps_after_offset(&self, key: &SessionKey, after: u64, limit: usize) -> Result<Vec<StoredStep>, Failure> {
        let found = self.inner.steps_after_offset(key, after, limit);
        self.faults.call(Port::Archive, "archive.steps_after_offset", found).await
    }

    async fn snapshot(&self, key: &SessionKey) -> Result<Option<Snapshot>, Failure> {
        self.faults.call(Port::Archive, "archive.snapshot", self.inner.snapshot(key)).await
    }

    async fn maintain(&self) -> Result<(), Failure> {
        self.faults.call(Port::Archive, "archive.maintain", self.inner.maintain()).await
    }

    async fn ping(&self) -> Result<(), Failure> {
        self.faults.call(Port::Archive, "archive.ping", self.inner.ping()).await
    }
}
