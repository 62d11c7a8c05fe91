//! Documents: files, folders and web pages, one after the other in the order of their names.

mod corpus;
pub mod glob;
mod html;
mod load;
mod roots;
mod text;
mod web;

use std::collections::VecDeque;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use domain::effect::{EffectFailure, Outcome};
use schemas::problem::Code;
use serde_json::{Value, json};
use tokio::time::Instant;

use corpus::{Corpus, Entry, Place};
use glob::Glob;
use roots::Roots;

use crate::net::Net;

/// Bytes read of one document; the rest of a larger one is left out.
pub const DOCUMENT_BYTES_MAX: usize = 2 << 20;
/// How long a listing serves: long enough for thousands of steps, short enough to see new files.
const LISTING_MS: u64 = 10_000;
/// Listings kept, one per corpus in work.
const LISTINGS_MAX: usize = 16;

/// Reads documents.
#[derive(Debug)]
pub struct Documents {
    roots: Arc<Roots>,
    listings: Mutex<VecDeque<Listing>>,
}

#[derive(Debug, Clone)]
struct Listing {
    paths: Vec<String>,
    glob: Option<String>,
    made: Instant,
    corpus: Arc<Corpus>,
}

/// What reading gave.
pub(crate) enum Read {
    Text {
        text: String,
        bytes: u64,
        truncated: bool,
    },
    /// Why there is no text, in words that follow "skipped".
    Skipped {
        reason: String,
        bytes: u64,
    },
}

impl Documents {
    /// # Errors
    /// When an allowed folder does not exist.
    pub fn new(allow_paths: Option<&[PathBuf]>) -> Result<Self, Vec<String>> {
        Ok(Self { roots: Arc::new(Roots::new(allow_paths)?), listings: Mutex::default() })
    }

    /// The document after `after`. A document that cannot be read is told with the reason; only a
    /// corpus that cannot be listed fails.
    pub(crate) async fn next(&self, net: &Net, paths: &[String], glob: Option<&str>, after: Option<&str>) -> Outcome {
        let corpus = match self.listing(net, paths, glob).await {
            Ok(corpus) => corpus,
            Err(message) => return failed(message),
        };
        let total = corpus.entries.len();
        // By name, not by number: files may come and go between two steps.
        let index = after.map_or(0, |after| corpus.entries.partition_point(|entry| entry.name.as_str() <= after));
        let Some(entry) = corpus.entries.get(index) else {
            return Outcome::Ok(json!({"done": true, "total": total}));
        };
        let read = match &entry.place {
            Place::Refused(reason) => Read::Skipped { reason: reason.clone(), bytes: 0 },
            Place::Web(url) => web::load(net, url).await,
            Place::File(path) => {
                let (path, roots) = (path.clone(), Arc::clone(&self.roots));
                match tokio::task::spawn_blocking(move || load::load(&path, &roots)).await {
                    Ok(read) => read,
                    Err(error) => return failed(format!("{}: reading it broke off: {error}", entry.name)),
                }
            }
        };
        Outcome::Ok(answer(entry, index, total, read))
    }

    async fn listing(&self, net: &Net, paths: &[String], glob: Option<&str>) -> Result<Arc<Corpus>, String> {
        let same = |l: &Listing| l.paths == paths && l.glob.as_deref() == glob;
        if let Some(found) =
            self.kept().iter().find(|l| same(l) && l.made.elapsed() < Duration::from_millis(LISTING_MS))
        {
            return Ok(Arc::clone(&found.corpus));
        }
        let pattern = glob.map(Glob::path).transpose().map_err(|problem| format!("payload.config.glob: {problem}"))?;
        let (own_paths, roots, net) = (paths.to_vec(), Arc::clone(&self.roots), net.clone());
        let listed = tokio::task::spawn_blocking(move || {
            corpus::list(&own_paths, pattern.as_ref(), &roots, |text| net.address(text).map_err(|error| error.message))
        });
        let corpus = Arc::new(listed.await.map_err(|error| format!("listing broke off: {error}"))??);
        let mut kept = self.kept();
        kept.retain(|l| !same(l));
        if kept.len() == LISTINGS_MAX {
            kept.pop_front();
        }
        let listing = Listing {
            paths: paths.to_vec(),
            glob: glob.map(str::to_owned),
            made: Instant::now(),
            corpus: Arc::clone(&corpus),
        };
        kept.push_back(listing);
        Ok(corpus)
    }

    fn kept(&self) -> std::sync::MutexGuard<'_, VecDeque<Listing>> {
        self.listings.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn answer(entry: &Entry, index: usize, total: usize, read: Read) -> Value {
    let mut value = json!({"done": false, "name": entry.name, "index": index + 1, "total": total});
    match read {
        Read::Text { text, bytes, truncated } => {
            value["text"] = text.into();
            value["bytes"] = bytes.into();
            value["truncated"] = truncated.into();
        }
        Read::Skipped { reason, bytes } => {
            value["skipped"] = reason.into();
            value["bytes"] = bytes.into();
        }
    }
    value
}

fn failed(message: String) -> Outcome {
    Outcome::Failed(EffectFailure { code: Code::ReadFailed, message, retriable: false, may_have_happened: false })
}

#[cfg(test)]
mod tests;
