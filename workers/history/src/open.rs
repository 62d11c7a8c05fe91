//! Opening an archive: where it is, whether it is ours, and its tables. All that knows of URIs.

use std::fs;
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use lancedb::{Connection, ObjectStoreRegistry, Session};
use schemas::limits;
use url::Url;

use crate::failure::{brief, is_full};
use crate::fsync::{FsyncProvider, SCHEME};
use crate::table::Table;

/// Marks a directory as ours; written before anything else.
const MARKER: &str = "stepfleet-history.json";
/// The layout of the tables. Greater than ours: written by a newer program.
const FORMAT: u64 = 1;

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
}

impl Default for OpenOptions {
    fn default() -> Self {
        Self {
            create: true,
            read_consistency: Duration::from_millis(limits::READ_CONSISTENCY_MS),
            keep_versions: Duration::from_secs(3_600),
        }
    }
}

/// Why an archive does not open, and what to do about it.
#[derive(Debug, thiserror::Error)]
pub enum OpenError {
    #[error("history URI {0:?} is not supported: give the path of a directory")]
    Scheme(String),
    #[error("history directory {}: {what} ({why}); give a directory that this user may write", .path.display())]
    Unusable { path: PathBuf, what: &'static str, why: String },
    #[error("history directory {} is not there; start the fleet once, or correct the path", .0.display())]
    Missing(PathBuf),
    #[error("history directory {} holds files of something else; give an empty or a new directory", .0.display())]
    Foreign(PathBuf),
    #[error(
        "history directory {} has format {found}, this program knows up to {FORMAT}; install the newer version",
        .path.display()
    )]
    Newer { path: PathBuf, found: u64 },
    #[error("no space is left for the history directory {}; free some and start again", .0.display())]
    Full(PathBuf),
    #[error(
        "table {table} in history directory {} is damaged ({why}); restore the directory from a copy",
        .path.display()
    )]
    Damaged { path: PathBuf, table: &'static str, why: String },
    #[error("history directory {}: {why}", .path.display())]
    Failed { path: PathBuf, why: String },
}

/// An open archive before its tables.
pub struct Place {
    path: PathBuf,
    connection: Connection,
    create: bool,
}

/// Finds the directory, checks that it is ours, and connects.
pub async fn connect(uri: &str, options: &OpenOptions) -> Result<Place, OpenError> {
    let path = local_path(uri)?;
    let create = options.create;
    let prepared = tokio::task::spawn_blocking(move || prepare(&path, create)).await;
    let path = prepared.map_err(|e| OpenError::Failed { path: uri.into(), why: e.to_string() })??;
    let failed = |why: String| OpenError::Failed { path: path.clone(), why };
    let url = Url::from_directory_path(&path).map_err(|()| failed("its path is no URL".into()))?;
    let registry = ObjectStoreRegistry::default();
    registry.insert(SCHEME, Arc::new(FsyncProvider));
    let session = Session::new(INDEX_CACHE_BYTES, METADATA_CACHE_BYTES, Arc::new(registry));
    let connection = lancedb::connect(&format!("{SCHEME}://{}", url.path()))
        .session(Arc::new(session))
        .read_consistency_interval(options.read_consistency)
        .execute()
        .await
        .map_err(|error| failed(brief(&error)))?;
    Ok(Place { path, connection, create })
}

impl Place {
    /// Opens a table, or creates it. One of another shape is refused.
    pub async fn table<R>(&self, table: &'static Table<R>) -> Result<lancedb::Table, OpenError> {
        let damaged = |why: String| OpenError::Damaged { path: self.path.clone(), table: table.name, why };
        let opened = match self.connection.open_table(table.name).execute().await {
            Err(lancedb::Error::TableNotFound { .. }) => self.create(table).await?,
            Err(error) => return Err(damaged(brief(&error))),
            Ok(opened) => opened,
        };
        let found = opened.schema().await.map_err(|error| damaged(brief(&error)))?;
        let declared = table.schema();
        for field in declared.fields() {
            let same = found.field_with_name(field.name()).is_ok_and(|f| f.data_type() == field.data_type());
            if !same {
                return Err(damaged(format!("it has no column {} of type {}", field.name(), field.data_type())));
            }
        }
        Ok(opened)
    }

    async fn create<R>(&self, table: &'static Table<R>) -> Result<lancedb::Table, OpenError> {
        if !self.create {
            return Err(OpenError::Missing(self.path.clone()));
        }
        let data = self.path.join(format!("{}.lance", table.name)).join("data");
        if fs::read_dir(&data).is_ok_and(|mut files| files.next().is_some()) {
            // Not a table any more, but it was one: an empty one in its place would hide the loss.
            let why = "its data is there, its versions are not".to_owned();
            return Err(OpenError::Damaged { path: self.path.clone(), table: table.name, why });
        }
        match self.connection.create_empty_table(table.name, table.schema()).execute().await {
            Ok(created) => Ok(created),
            // Another process was faster.
            Err(lancedb::Error::TableAlreadyExists { .. }) => {
                let opened = self.connection.open_table(table.name).execute().await;
                opened.map_err(|error| OpenError::Failed { path: self.path.clone(), why: brief(&error) })
            }
            Err(error) if is_full(&error) => Err(OpenError::Full(self.path.clone())),
            Err(error) => Err(OpenError::Failed { path: self.path.clone(), why: brief(&error) }),
        }
    }

    pub fn path(&self) -> &Path {
        &self.path
    }
}

fn local_path(uri: &str) -> Result<PathBuf, OpenError> {
    match uri.split_once("://") {
        None if !uri.is_empty() => Ok(PathBuf::from(uri)),
        Some(("file", path)) if path.starts_with('/') => Ok(PathBuf::from(path)),
        _ => Err(OpenError::Scheme(uri.to_owned())),
    }
}

/// Leaves a directory with our marker, to which this process can write; answers its full path.
fn prepare(path: &Path, create: bool) -> Result<PathBuf, OpenError> {
    let unusable = |what: &'static str| move |error: io::Error| unusable(path, what, &error);
    if create {
        fs::create_dir_all(path).map_err(unusable("it cannot be created"))?;
    } else if !path.exists() {
        return Err(OpenError::Missing(path.to_owned()));
    }
    let path = path.canonicalize().map_err(unusable("it cannot be used"))?;
    let mut entries = fs::read_dir(&path).map_err(unusable("it cannot be read"))?;
    let marker = path.join(MARKER);
    match fs::read_to_string(&marker) {
        Ok(text) => check_marker(&path, &text)?,
        Err(error) if error.kind() == io::ErrorKind::NotFound && create => {
            if entries.next().is_some() {
                return Err(OpenError::Foreign(path));
            }
        }
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Err(OpenError::Foreign(path)),
        Err(error) => return Err(unusable("its marker cannot be read")(error)),
    }
    if create {
        // Written anew each time: it also proves that the directory takes files.
        write_marker(&path, &marker).map_err(unusable("it takes no files"))?;
    }
    Ok(path)
}

fn unusable(path: &Path, what: &'static str, error: &io::Error) -> OpenError {
    if is_full(error) {
        return OpenError::Full(path.to_owned());
    }
    OpenError::Unusable { path: path.to_owned(), what, why: error.to_string() }
}

fn check_marker(path: &Path, text: &str) -> Result<(), OpenError> {
    let marker: Option<serde_json::Value> = serde_json::from_str(text).ok();
    match marker.and_then(|marker| marker.get("format")?.as_u64()) {
        Some(found) if found <= FORMAT => Ok(()),
        Some(found) => Err(OpenError::Newer { path: path.to_owned(), found }),
        None => Err(OpenError::Foreign(path.to_owned())),
    }
}

fn write_marker(path: &Path, marker: &Path) -> io::Result<()> {
    let fresh = path.join(format!("{MARKER}.new"));
    let mut file = fs::File::create(&fresh)?;
    writeln!(file, "{}", serde_json::json!({ "format": FORMAT }))?;
    file.sync_all()?;
    fs::rename(&fresh, marker)?;
    fs::File::open(path)?.sync_all()
}
