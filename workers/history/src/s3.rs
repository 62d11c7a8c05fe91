//! The store for buckets: the settings it is reached by, and how LanceDB gets it.
//!
//! LanceDB's own would bring the vendor's whole SDK along; the store itself is the same.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use lance_io::object_store::{ObjectStore, ObjectStoreParams, ObjectStoreProvider};
use object_store::aws::{AmazonS3, AmazonS3Builder, AmazonS3ConfigKey, S3ConditionalPut};
use object_store::{ClientOptions, RetryConfig};
use url::Url;

use crate::failure::brief;

const CONNECT_TIMEOUT: Duration = Duration::from_secs(5);
/// Of one request, its data included: files go in parts of some megabytes.
const REQUEST_TIMEOUT: Duration = Duration::from_secs(30);
/// Of one request with its repeats.
const RETRIES_MAX: usize = 5;
const RETRY_TIMEOUT: Duration = Duration::from_secs(60);

/// Reads nearer to each other than this are one request.
const BLOCK_BYTES: usize = 64 << 10;
const IO_PARALLELISM: usize = 32;
const DOWNLOAD_RETRIES: usize = 3;

/// How buckets are reached: the usual variables, `AWS_ACCESS_KEY_ID`, `AWS_SECRET_ACCESS_KEY`,
/// `AWS_SESSION_TOKEN`, `AWS_REGION`, `AWS_ENDPOINT_URL`, `AWS_ALLOW_HTTP` and the like.
#[derive(Clone, Default)]
pub struct S3Settings(BTreeMap<String, String>);

impl S3Settings {
    /// What this process was given.
    pub fn from_env() -> Self {
        let texts = |(name, value): (std::ffi::OsString, std::ffi::OsString)| {
            name.into_string().ok().zip(value.into_string().ok())
        };
        Self::of(std::env::vars_os().filter_map(texts))
    }

    /// Those of the variables that speak of S3. An empty one counts as not given.
    pub fn of(variables: impl IntoIterator<Item = (String, String)>) -> Self {
        let ours = |(name, value): &(String, String)| name.starts_with("AWS_") && !value.is_empty();
        Self(variables.into_iter().filter(ours).map(|(name, value)| (name.to_ascii_lowercase(), value)).collect())
    }

    /// The store of a bucket. The error is a variable's name and what is wrong with it.
    pub(crate) fn store(&self, bucket: &str) -> Result<Arc<AmazonS3>, (&'static str, String)> {
        self.check_endpoint()?;
        // Its HTTP client has no TLS of its own. An error: somebody has set one already.
        let _ = rustls::crypto::ring::default_provider().install_default();
        let client = ClientOptions::new().with_connect_timeout(CONNECT_TIMEOUT).with_timeout(REQUEST_TIMEOUT);
        let mut builder = AmazonS3Builder::new().with_client_options(client).with_retry(RetryConfig {
            max_retries: RETRIES_MAX,
            retry_timeout: RETRY_TIMEOUT,
            ..RetryConfig::default()
        });
        for (name, value) in &self.0 {
            if let Ok(key) = name.parse::<AmazonS3ConfigKey>() {
                builder = builder.with_config(key, value);
            }
        }
        let store = builder.with_bucket_name(bucket).with_conditional_put(S3ConditionalPut::ETagMatch).build();
        store.map(Arc::new).map_err(|error| ("the AWS_* variables", format!("are not right: {}", brief(&error))))
    }

    fn check_endpoint(&self) -> Result<(), (&'static str, String)> {
        let name = "AWS_ENDPOINT_URL";
        let Some(text) = self.0.get("aws_endpoint_url_s3").or_else(|| self.0.get("aws_endpoint_url")) else {
            return Ok(());
        };
        let url = Url::parse(text).map_err(|error| (name, format!("is no URL: {error}")))?;
        if !url.username().is_empty() || url.password().is_some() {
            return Err((name, "must not hold a password; use AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY".into()));
        }
        let is_allowed = self.0.get("aws_allow_http").is_some_and(|value| matches!(value.as_str(), "true" | "1"));
        match url.scheme() {
            "https" => Ok(()),
            "http" if is_allowed => Ok(()),
            "http" => Err((name, "is plain http; set AWS_ALLOW_HTTP=true, or use https".into())),
            other => Err((name, format!("has the scheme {other}; use https, or http with AWS_ALLOW_HTTP=true"))),
        }
    }
}

/// Names only: the values are secrets.
impl fmt::Debug for S3Settings {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_set().entries(self.0.keys()).finish()
    }
}

/// Hands LanceDB the one store that an archive has.
pub struct S3Provider(pub Arc<AmazonS3>);

#[async_trait]
impl ObjectStoreProvider for S3Provider {
    async fn new_store(&self, base: Url, _: &ObjectStoreParams) -> lance_core::Result<ObjectStore> {
        // Parts of one size: not every store takes others, and no file of ours is too large for them.
        let (constant_parts, ordered_lists) = (true, true);
        Ok(ObjectStore::new(
            self.0.clone(),
            base,
            Some(BLOCK_BYTES),
            None,
            constant_parts,
            ordered_lists,
            IO_PARALLELISM,
            DOWNLOAD_RETRIES,
            None,
        ))
    }
}

/// Without the store, which has the keys.
impl fmt::Debug for S3Provider {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("S3Provider").finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn settings(of: &[(&str, &str)]) -> S3Settings {
        S3Settings::of(of.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())))
    }

    #[test]
    fn values_are_not_shown() {
        let secret = settings(&[("AWS_SECRET_ACCESS_KEY", "hush"), ("AWS_ACCESS_KEY_ID", "hush"), ("PATH", "hush")]);
        assert_eq!(format!("{secret:?}"), "{\"aws_access_key_id\", \"aws_secret_access_key\"}");
        let provider = S3Provider(secret.store("bucket").expect("a store"));
        assert!(!format!("{provider:?}").contains("hush"));
    }

    #[test]
    fn an_endpoint_is_checked_before_use() {
        let refused = |url: &str, http: &str| {
            let answer = settings(&[("AWS_ENDPOINT_URL", url), ("AWS_ALLOW_HTTP", http)]).store("bucket");
            answer.err().map(|(name, why)| format!("{name} {why}"))
        };
        assert_eq!(refused("https://store:9000", ""), None);
        assert_eq!(refused("http://store:9000", "true"), None);
        assert!(refused("http://store:9000", "").is_some_and(|why| why.contains("AWS_ALLOW_HTTP")));
        assert!(refused("ftp://store", "true").is_some_and(|why| why.contains("https")));
        assert!(refused("nonsense", "").is_some_and(|why| why.contains("no URL")));
        let with_password = refused("https://me:hush@store", "").expect("a refusal");
        assert!(with_password.contains("password") && !with_password.contains("hush"));
    }
}
