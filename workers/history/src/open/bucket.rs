//! An archive in a bucket of S3, or of a store that speaks its protocol.

use std::sync::Arc;

use object_store::path::Path;
use url::Url;

use super::{OpenError, Site, shown};
use crate::s3::{S3Provider, S3Settings};

/// `rest` is `bucket` or `bucket/prefix`.
pub(super) fn site(rest: &str, settings: &S3Settings) -> Result<Site, OpenError> {
    let (bucket, prefix) = rest.split_once('/').unwrap_or((rest, ""));
    let bad = || OpenError::Uri(shown(&format!("s3://{rest}")));
    let is_plain = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | '.');
    // What has a meaning in a URL, a password or a query, is no part of a name.
    if bucket.is_empty() || !bucket.chars().all(is_plain) || !prefix.chars().all(|c| is_plain(c) || c == '/') {
        return Err(bad());
    }
    let base = Path::parse(prefix.trim_matches('/')).map_err(|_| bad())?;
    let name = format!("s3://{bucket}/{base}");
    let url = Url::parse(&name).map_err(|_| bad())?;
    let store = settings.store(bucket).map_err(|(name, why)| OpenError::Setting {
        place: format!("s3://{bucket}/{base}"),
        name,
        why,
    })?;
    Ok(Site { name, url, provider: Arc::new(S3Provider(store.clone())), store, base })
}
