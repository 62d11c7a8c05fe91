//! Commits at a known version only: compare-and-swap on the version of a table.
//!
//! What a writer knows of a table, its watermark above all, holds for one version. LanceDB carries
//! a commit over to whatever version is the newest by then: a writer that was stopped and is
//! replaced meanwhile would append, when it wakes up, rows that are there already. So a commit is
//! refused unless it makes the version that follows the known one. That no two writers make the
//! same version is up to the store's put-if-absent, so the lease of the writer need not be trusted.
//!
//! The bound of this: the name of a pruned version is free again. A writer that is stopped within a
//! commit for longer than old versions are kept (`OpenOptions::keep_versions`) is not refused.

use std::sync::atomic::{AtomicU64, Ordering};

use async_trait::async_trait;
use lance_io::object_store::ObjectStore;
use lance_table::format::{IndexMetadata, Manifest, Transaction};
use lance_table::io::commit::{
    CommitError, CommitHandler, ConditionalPutCommitHandler, ManifestLocation, ManifestNamingScheme, ManifestWriter,
};
use object_store::path::Path;

/// The commits of one table by this process. Takes none before a version is known.
#[derive(Debug)]
pub struct StrictCommits {
    /// 0 = none; a table's first version is 1.
    known: AtomicU64,
    store: ConditionalPutCommitHandler,
}

impl StrictCommits {
    pub fn new() -> Self {
        Self { known: AtomicU64::new(0), store: ConditionalPutCommitHandler }
    }

    /// The version that was looked at last, or made by a commit since.
    pub fn known(&self) -> u64 {
        self.known.load(Ordering::Relaxed)
    }

    /// From here on, a commit must make the version after this one.
    pub fn follow(&self, version: u64) {
        self.known.store(version, Ordering::Relaxed);
    }
}

#[async_trait]
impl CommitHandler for StrictCommits {
    fn is_version_not_found_definitive(&self) -> bool {
        self.store.is_version_not_found_definitive()
    }

    fn propagate_commit_error_after_success(&self) -> bool {
        self.store.propagate_commit_error_after_success()
    }

    async fn commit(
        &self,
        manifest: &mut Manifest,
        indices: Option<Vec<IndexMetadata>>,
        base_path: &Path,
        object_store: &ObjectStore,
        manifest_writer: ManifestWriter,
        naming_scheme: ManifestNamingScheme,
        transaction: Option<Transaction>,
    ) -> Result<ManifestLocation, CommitError> {
        let (known, version) = (self.known(), manifest.version);
        if version != known + 1 {
            let why = format!("another writer was faster: this one knows version {known} and would make {version}");
            return Err(CommitError::OtherError(lance::Error::commit_conflict_source(version, why.into())));
        }
        let made = self
            .store
            .commit(manifest, indices, base_path, object_store, manifest_writer, naming_scheme, transaction)
            .await?;
        self.follow(version);
        Ok(made)
    }
}
