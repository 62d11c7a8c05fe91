//! Opening an archive: where it is, whether it is ours, and its tables. All that knows of URIs.

mod bucket;
mod directory;
mod marker;

use std::error::Error;
use std::sync::Arc;
use std::time::Duration;

use futures::TryStreamExt;
use lance::dataset::{ReadParams, WriteParams};
use lance_io::object_store::ObjectStoreProvider;
use lance_table::io::commit::CommitHandler;
use lancedb::table::WriteOptions;
use lancedb::{Connection, ObjectStoreRegistry, Session};
use object_store::ObjectStore;
use object_store::path::Path;
use schemas::limits;
use tokio::sync::Mutex;
use url::Url;

use crate::archive::Handle;
use crate::failure::{brief, is_full, is_of_storage};
use crate::s3::S3Settings;
use crate::strict::StrictCommits;
use crate::table::Table;

/// Bounds of the caches of one process; LanceDB's own would be 7 GiB a connection.
const INDEX_CACHE_BYTES: usize = 128 << 20;
const METADATA_CACHE_BYTES: usize = 64 << 20;

#[derive(Debug, Clone)]
pub struct OpenOptions {
    /// Create what is missing. Otherwise that is an error, and nothing is written.
    pub create: bool,
    /// How old a reader's view may be.
    pub read_consistency: Duration,
    /// Old versions of tables are kept this long: longer than any query runs.
    pub keep_versions: Duration,
    /// How buckets are reached; by default as the environment says.
    pub s3: S3Settings,
}

impl Default for OpenOptions {
    fn default() -> Self {
        Self {
            create: true,
            read_consistency: Duration::from_millis(limits::READ_CONSISTENCY_MS),
            keep_versions: Duration::from_secs(3_600),
            s3: S3Settings::from_env(),
        }
    }
}

/// Why an archive does not open, and what to do about it. A place is the path of a directory, or
/// `s3://bucket/prefix`.
#[derive(Debug, thiserror::Error)]
pub enum OpenError {
    #[error("history URI {0:?} is not supported: give the path of a directory, or s3://bucket/prefix")]
    Uri(String),
    #[error("history in {place}: {name} {why}")]
    Setting { place: String, name: &'static str, why: String },
    #[error("history in {place}: {what} ({why}); give a place that this process may write")]
    Unusable { place: String, what: &'static str, why: String },
    #[error("history in {place} cannot be reached ({why}); start its storage, or correct the endpoint and the bucket")]
    Away { place: String, why: String },
    #[error("history in {0} is not there; start the fleet once, or correct the place")]
    Missing(String),
    #[error("{0} holds files of something else; give an empty or a new place for the history")]
    Foreign(String),
    #[error("history in {place} has format {found}, this program knows up to {known}; install the newer version")]
    Newer { place: String, found: u64, known: u64 },
    #[error(
        "the storage of {0} ignores conditional writes (If-None-Match), so two archivists could overwrite each \
         other's history; use one that honours them, and no gateway that drops that header"
    )]
    Unconditional(String),
    #[error("no space is left for the history in {0}; free some and start again")]
    Full(String),
    #[error("table {table} of the history in {place} is damaged ({why}); restore the history from a copy")]
    Damaged { place: String, table: &'static str, why: String },
    #[error("history in {place}: {why}")]
    Failed { place: String, why: String },
}

impl OpenError {
    /// Whether waiting may help: the storage is away, or another process has yet to create the archive.
    pub fn may_pass(&self) -> bool {
        matches!(self, Self::Away { .. } | Self::Missing(_) | Self::Full(_))
    }
}

/// Where an archive is, before anything is known of it.
struct Site {
    /// For people.
    name: String,
    /// For LanceDB.
    url: Url,
    provider: Arc<dyn ObjectStoreProvider>,
    store: Arc<dyn ObjectStore>,
    /// The archive in `store`.
    base: Path,
}

/// An open archive before its tables.
pub struct Place {
    site: Site,
    connection: Connection,
    options: OpenOptions,
}

/// Finds the place, checks that it is ours, and connects.
pub async fn connect(uri: &str, options: &OpenOptions) -> Result<Place, OpenError> {
    let site = match uri.split_once("://") {
        None if !uri.is_empty() => directory::site(uri.into(), options.create).await?,
        Some(("file", path)) if path.starts_with('/') => directory::site(path.into(), options.create).await?,
        Some(("s3", rest)) => bucket::site(rest, &options.s3)?,
        _ => return Err(OpenError::Uri(shown(uri))),
    };
    marker::check(&site, options.create).await?;
    let registry = ObjectStoreRegistry::default();
    registry.insert(site.url.scheme(), site.provider.clone());
    let session = Session::new(INDEX_CACHE_BYTES, METADATA_CACHE_BYTES, Arc::new(registry));
    // No interval of consistency: reads ask for the newest version themselves (`Handle::look`).
    let connection = lancedb::connect(site.url.as_str()).session(Arc::new(session)).execute().await;
    let connection = connection.map_err(|error| site.failed(&error))?;
    Ok(Place { site, connection, options: options.clone() })
}

impl Place {
    /// Opens a table, or creates it. One of another shape is refused.
    pub async fn table<R>(&self, declared: &'static Table<R>) -> Result<Handle<R>, OpenError> {
        let commits = Arc::new(StrictCommits::new());
        let damaged = |why: String| self.site.damaged(declared.name, why);
        let table = match self.open(declared, commits.clone()).await? {
            Some(table) => table,
            None => {
                self.create(declared, commits.clone()).await?;
                let created = self.open(declared, commits.clone()).await?;
                created.ok_or_else(|| damaged("it was created, and is not there".into()))?
            }
        };
        let found = table.schema().await.map_err(|error| damaged(brief(&error)))?;
        for field in declared.schema().fields() {
            let same = found.field_with_name(field.name()).is_ok_and(|f| f.data_type() == field.data_type());
            if !same {
                return Err(damaged(format!("it has no column {} of type {}", field.name(), field.data_type())));
            }
        }
        let (read_consistency, looked) = (self.options.read_consistency, Mutex::default());
        Ok(Handle { declared, table, commits, read_consistency, looked })
    }

    /// `None`: there is no such table.
    pub async fn open<R>(
        &self,
        declared: &'static Table<R>,
        commits: Arc<dyn CommitHandler>,
    ) -> Result<Option<lancedb::Table>, OpenError> {
        let params = ReadParams { commit_handler: Some(commits), ..ReadParams::default() };
        match self.connection.open_table(declared.name).lance_read_params(params).execute().await {
            Ok(table) => Ok(Some(table)),
            Err(lancedb::Error::TableNotFound { .. }) => Ok(None),
            Err(error) if self.site.is_away(&error) => Err(self.site.failed(&error)),
            Err(error) => Err(self.site.damaged(declared.name, brief(&error))),
        }
    }

    async fn create<R>(&self, declared: &'static Table<R>, commits: Arc<dyn CommitHandler>) -> Result<(), OpenError> {
        if !self.options.create {
            return Err(OpenError::Missing(self.site.name.clone()));
        }
        let data = self.site.base.clone().join(format!("{}.lance", declared.name)).join("data");
        let first = self.site.store.list(Some(&data)).try_next().await.map_err(|error| self.site.away(&error))?;
        // Or has another process just made the table, and written to it?
        if first.is_some() && self.open(declared, commits.clone()).await?.is_none() {
            // Not a table any more, but it was one: an empty one in its place would hide the loss.
            return Err(self.site.damaged(declared.name, "its data is there, its versions are not".into()));
        }
        // As its first version and no other: LanceDB would put an empty table over one that another
        // process made in the meantime, and over the rows in it.
        let first = WriteParams { commit_handler: Some(Arc::new(StrictCommits::new())), ..WriteParams::default() };
        let created = self
            .connection
            .create_empty_table(declared.name, declared.schema())
            .write_options(WriteOptions { lance_write_params: Some(first) })
            .execute()
            .await;
        match created {
            Ok(_) | Err(lancedb::Error::TableAlreadyExists { .. }) => Ok(()),
            // Another process was faster.
            Err(_) if self.open(declared, commits).await?.is_some() => Ok(()),
            Err(error) => Err(self.site.failed(&error)),
        }
    }

    pub fn name(&self) -> &str {
        &self.site.name
    }
}

impl Site {
    fn damaged(&self, table: &'static str, why: String) -> OpenError {
        OpenError::Damaged { place: self.name.clone(), table, why }
    }

    fn away(&self, error: &dyn Error) -> OpenError {
        OpenError::Away { place: self.name.clone(), why: brief(error) }
    }

    fn failed(&self, error: &lancedb::Error) -> OpenError {
        if is_full(error) {
            return OpenError::Full(self.name.clone());
        }
        if self.is_away(error) {
            return self.away(error);
        }
        OpenError::Failed { place: self.name.clone(), why: brief(error) }
    }

    /// Whether it is the network that failed.
    fn is_away(&self, error: &lancedb::Error) -> bool {
        self.is_remote() && is_of_storage(error)
    }

    fn is_remote(&self) -> bool {
        self.url.scheme() == "s3"
    }
}

/// A URI without what may be a password in it.
fn shown(uri: &str) -> String {
    match (uri.split_once("://"), uri.rsplit_once('@')) {
        (Some((scheme, _)), Some((_, rest))) => format!("{scheme}://...@{rest}"),
        _ => uri.to_owned(),
    }
}
