//! The file that marks a place as ours; written before anything else.

use futures::TryStreamExt;
use object_store::path::Path;
use object_store::{Error, ObjectStoreExt, PutMode, PutPayload};

use super::{OpenError, Site};
use crate::failure::{brief, is_full};

const MARKER: &str = "stepfleet-history.json";
/// The layout of the tables. Greater than ours: written by a newer program.
const FORMAT: u64 = 1;

/// Leaves a place with our marker, to which this process can write if it is to create what is
/// missing. A place that holds something else is left as it is.
pub(super) async fn check(site: &Site, create: bool) -> Result<(), OpenError> {
    let marker = site.base.clone().join(MARKER);
    if let Some(text) = read(site, &marker).await? {
        is_ours(site, &text)?;
    } else if !create {
        return Err(if is_empty(site).await? { missing(site) } else { foreign(site) });
    } else if !is_empty(site).await? {
        // Or has another process just begun to create the archive? The marker comes first.
        let text = read(site, &marker).await?.ok_or_else(|| foreign(site))?;
        is_ours(site, &text)?;
    }
    if create { write(site, &marker).await } else { Ok(()) }
}

async fn read(site: &Site, marker: &Path) -> Result<Option<String>, OpenError> {
    let bytes = match site.store.get(marker).await {
        Ok(found) => found.bytes().await,
        Err(error) => Err(error),
    };
    match bytes {
        Ok(bytes) => Ok(Some(String::from_utf8_lossy(&bytes).into_owned())),
        Err(Error::NotFound { .. }) => Ok(None),
        Err(error) => Err(refused(site, "its marker cannot be read", &error)),
    }
}

async fn is_empty(site: &Site) -> Result<bool, OpenError> {
    let base = (site.base != Path::default()).then_some(&site.base);
    let first = site.store.list(base).try_next().await;
    first.map(|first| first.is_none()).map_err(|error| refused(site, "it cannot be listed", &error))
}

/// If absent, and then once more: the second attempt must be refused, or the storage would let two
/// writers make the same version of a table. It also proves that this process may write at all.
async fn write(site: &Site, marker: &Path) -> Result<(), OpenError> {
    for _ in 0..2 {
        let text = serde_json::json!({ "format": FORMAT }).to_string();
        match site.store.put_opts(marker, PutPayload::from(text), PutMode::Create.into()).await {
            Ok(_) => {}
            Err(Error::AlreadyExists { .. } | Error::Precondition { .. }) => return Ok(()),
            Err(error) => return Err(refused(site, "it takes no files", &error)),
        }
    }
    Err(OpenError::Unconditional(site.name.clone()))
}

fn is_ours(site: &Site, text: &str) -> Result<(), OpenError> {
    let marker: Option<serde_json::Value> = serde_json::from_str(text).ok();
    match marker.and_then(|marker| marker.get("format")?.as_u64()) {
        Some(found) if found <= FORMAT => Ok(()),
        Some(found) => Err(OpenError::Newer { place: site.name.clone(), found, known: FORMAT }),
        None => Err(foreign(site)),
    }
}

fn foreign(site: &Site) -> OpenError {
    OpenError::Foreign(site.name.clone())
}

fn missing(site: &Site) -> OpenError {
    OpenError::Missing(site.name.clone())
}

fn refused(site: &Site, what: &'static str, error: &Error) -> OpenError {
    let (place, why) = (site.name.clone(), brief(error));
    match error {
        error if is_full(error) => OpenError::Full(place),
        Error::PermissionDenied { .. } | Error::Unauthenticated { .. } => OpenError::Unusable { place, what, why },
        _ if site.is_remote() => OpenError::Away { place, why },
        _ => OpenError::Unusable { place, what, why },
    }
}
