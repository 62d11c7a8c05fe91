//! A store for local directories that is durable when a write returns: LanceDB's own does not fsync.

use std::collections::HashMap;
use std::sync::Arc;

use async_trait::async_trait;
use lance_io::object_store::{ObjectStore, ObjectStoreParams, ObjectStoreProvider};
use object_store::local::LocalFileSystem;
use url::Url;

/// LanceDB knows this scheme and commits to it with put-if-absent. A scheme it does not know gets
/// no concurrency control at all, so the name must not be another.
pub const SCHEME: &str = "file-object-store";

const BLOCK_BYTES: usize = 4 << 10;
const IO_PARALLELISM: usize = 8;
const DOWNLOAD_RETRIES: usize = 3;

/// Makes stores over the whole file system that fsync each file and its directory.
#[derive(Debug)]
pub struct FsyncProvider;

#[async_trait]
impl ObjectStoreProvider for FsyncProvider {
    async fn new_store(&self, base: Url, _: &ObjectStoreParams) -> lance_core::Result<ObjectStore> {
        let store = LocalFileSystem::new().with_fsync(true);
        Ok(ObjectStore::new(
            Arc::new(store),
            base,
            Some(BLOCK_BYTES),
            None,
            false,
            false,
            IO_PARALLELISM,
            DOWNLOAD_RETRIES,
            None,
        ))
    }

    fn calculate_object_store_prefix(
        &self,
        url: &Url,
        _: Option<&HashMap<String, String>>,
    ) -> lance_core::Result<String> {
        // One store serves every path.
        Ok(url.scheme().to_owned())
    }
}
