//! An archive in a directory of this machine.

use std::fs;
use std::io;
use std::path::PathBuf;
use std::sync::Arc;

use object_store::local::LocalFileSystem;
use object_store::path::Path;
use url::Url;

use super::{OpenError, Site};
use crate::failure::{brief, is_full};
use crate::fsync::{FsyncProvider, SCHEME};

/// Finds the directory, or makes it; answers it by its full path.
pub(super) async fn site(path: PathBuf, create: bool) -> Result<Site, OpenError> {
    let name = path.display().to_string();
    let failed = |why: String| OpenError::Failed { place: name.clone(), why };
    let prepared = tokio::task::spawn_blocking(move || prepare(path, create)).await;
    let path = prepared.map_err(|error| failed(error.to_string()))??;
    let url = Url::from_directory_path(&path).map_err(|()| failed("its path is no URL".into()))?;
    let url = Url::parse(&format!("{SCHEME}://{}", url.path())).map_err(|error| failed(error.to_string()))?;
    let store = LocalFileSystem::new_with_prefix(&path).map_err(|error| failed(brief(&error)))?.with_fsync(true);
    Ok(Site {
        name: path.display().to_string(),
        url,
        provider: Arc::new(FsyncProvider),
        store: Arc::new(store),
        base: Path::default(),
    })
}

fn prepare(path: PathBuf, create: bool) -> Result<PathBuf, OpenError> {
    let place = path.display().to_string();
    let unusable = |what: &'static str| {
        let place = place.clone();
        move |error: io::Error| {
            if is_full(&error) {
                return OpenError::Full(place);
            }
            OpenError::Unusable { place, what, why: error.to_string() }
        }
    };
    if create {
        fs::create_dir_all(&path).map_err(unusable("it cannot be created"))?;
    } else if !path.exists() {
        return Err(OpenError::Missing(place));
    }
    let path = path.canonicalize().map_err(unusable("it cannot be used"))?;
    fs::read_dir(&path).map_err(unusable("it cannot be read"))?;
    Ok(path)
}
