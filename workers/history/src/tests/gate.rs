//! An archive whose writer is held up before one of its commits, as a process that is stopped there.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use async_trait::async_trait;
use futures::future::BoxFuture;
use lance_io::object_store::ObjectStore;
use lance_table::format::{IndexMetadata, Manifest, Transaction};
use lance_table::io::commit::{CommitError, CommitHandler, ManifestLocation, ManifestNamingScheme, ManifestWriter};
use object_store::path::Path;
use tokio::sync::Mutex;

use crate::archive::{Handle, Tables};
use crate::open::{Place, connect};
use crate::strict::StrictCommits;
use crate::{LanceArchive, OpenOptions};

/// What happens before the commit of a number, counted over all tables from when it was armed.
#[derive(Clone, Default)]
pub struct Gate(Arc<Inner>);

#[derive(Default)]
struct Inner {
    commits: AtomicUsize,
    armed: Mutex<Option<(usize, BoxFuture<'static, ()>)>>,
}

impl Gate {
    pub async fn arm(&self, point: usize, act: impl Future<Output = ()> + Send + 'static) {
        self.0.commits.store(0, Ordering::Relaxed);
        *self.0.armed.lock().await = Some((point, Box::pin(act)));
    }

    /// Whether the point was reached.
    pub async fn has_opened(&self) -> bool {
        self.0.armed.lock().await.is_none()
    }

    async fn pass(&self) {
        let number = self.0.commits.fetch_add(1, Ordering::Relaxed);
        let mut armed = self.0.armed.lock().await;
        if armed.as_ref().is_some_and(|(point, _)| *point == number)
            && let Some((_, act)) = armed.take()
        {
            drop(armed);
            act.await;
        }
    }

    /// Opens an archive whose commits pass through this gate.
    pub async fn open(&self, uri: &str, options: &OpenOptions) -> LanceArchive {
        let place = connect(uri, options).await.expect("a place");
        let mut tables = Tables::open(&place, options.keep_versions).await.expect("tables");
        self.put_before(&place, &mut tables.steps).await;
        self.put_before(&place, &mut tables.events).await;
        self.put_before(&place, &mut tables.state).await;
        self.put_before(&place, &mut tables.memories).await;
        self.put_before(&place, &mut tables.messages).await;
        self.put_before(&place, &mut tables.moves).await;
        self.put_before(&place, &mut tables.records).await;
        LanceArchive(Arc::new(tables))
    }

    async fn put_before<R>(&self, place: &Place, handle: &mut Handle<R>) {
        let gated = Gated { gate: self.clone(), commits: handle.commits.clone() };
        handle.table = place.open(handle.declared, Arc::new(gated)).await.expect("a table").expect("one");
    }
}

struct Gated {
    gate: Gate,
    commits: Arc<StrictCommits>,
}

impl std::fmt::Debug for Gated {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Gated").finish_non_exhaustive()
    }
}

#[async_trait]
impl CommitHandler for Gated {
    fn is_version_not_found_definitive(&self) -> bool {
        self.commits.is_version_not_found_definitive()
    }

    fn propagate_commit_error_after_success(&self) -> bool {
        self.commits.propagate_commit_error_after_success()
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
        self.gate.pass().await;
        let commits = &self.commits;
        commits.commit(manifest, indices, base_path, object_store, manifest_writer, naming_scheme, transaction).await
    }
}
