//! Where a fleet keeps what it knows.

use std::fmt;
use std::path::PathBuf;

use url::Url;

use crate::secret::Secret;

/// The SQL store.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Database {
    Sqlite(PathBuf),
    /// The URL, which may hold a password.
    Postgres(Secret),
}

/// The LanceDB tables.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum History {
    Directory(PathBuf),
    /// `s3://bucket/prefix`.
    Bucket(String),
}

impl Database {
    pub(super) fn parse(text: &str) -> Result<Self, String> {
        if let Some(path) = text.strip_prefix("sqlite:") {
            let path = path.strip_prefix("//").unwrap_or(path);
            if path.is_empty() {
                return Err("names no file; use sqlite://path/to/ledger.db".into());
            }
            return Ok(Self::Sqlite(path.into()));
        }
        if text.starts_with("postgres://") || text.starts_with("postgresql://") {
            let url = Url::parse(text).map_err(|error| format!("is no URL: {error}"))?;
            if url.path().trim_matches('/').is_empty() {
                return Err("names no database; use postgres://user:password@host/database".into());
            }
            return Ok(Self::Postgres(Secret::new(text)));
        }
        Err("use sqlite://path/to/ledger.db or postgres://user:password@host/database".into())
    }

    /// Whether other processes can share it.
    pub fn is_shared(&self) -> bool {
        matches!(self, Self::Postgres(_))
    }
}

impl History {
    pub(super) fn parse(text: &str) -> Result<Self, String> {
        match text.split_once("://") {
            None if text.is_empty() => Err("is empty; use the path of a directory, or s3://bucket/prefix".into()),
            None => Ok(Self::Directory(text.into())),
            Some(("file", path)) if path.starts_with('/') => Ok(Self::Directory(path.into())),
            Some(("s3", rest)) if !rest.is_empty() && !rest.starts_with('/') => Ok(Self::Bucket(text.into())),
            Some((scheme, _)) => {
                Err(format!("{scheme} is not supported; use the path of a directory, or s3://bucket/prefix"))
            }
        }
    }
}

/// The broker's URL; its password stays hidden.
pub(super) fn amqp(text: &str) -> Result<Secret, String> {
    let url = Url::parse(text).map_err(|error| format!("is no URL: {error}"))?;
    if matches!(url.scheme(), "amqp" | "amqps") && url.host_str().is_some() {
        return Ok(Secret::new(text));
    }
    Err("use amqp://user:password@host/vhost, or amqps with TLS".into())
}

impl fmt::Display for Database {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Sqlite(path) => write!(f, "{}", path.display()),
            Self::Postgres(url) => f.write_str(&without_password(url)),
        }
    }
}

impl fmt::Display for History {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Directory(path) => write!(f, "{}", path.display()),
            Self::Bucket(uri) => f.write_str(uri),
        }
    }
}

/// A URL as it may be shown: host, port and path.
pub fn without_password(url: &Secret) -> String {
    let Ok(url) = Url::parse(url.expose()) else { return "<hidden>".into() };
    let host = url.host_str().unwrap_or("localhost");
    let port = url.port().map(|port| format!(":{port}")).unwrap_or_default();
    format!("{}://{host}{port}{}", url.scheme(), url.path())
}
