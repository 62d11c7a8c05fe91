//! Keeps the requests that the scripted provider got: the latest in memory, all in a file.

use std::collections::VecDeque;
use std::fs::{File, OpenOptions};
use std::io::Write;
use std::path::Path;
use std::sync::{Mutex, PoisonError};

use serde::Serialize;

use super::asked::Asked;

/// Requests kept in memory.
const REQUESTS_MAX: usize = 1_000;

/// A request as it came.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Request {
    /// Number of the request, from 1.
    pub n: u64,
    /// Id of the call; of a step's, the idempotency key: session, iteration, index.
    pub key: String,
    pub profile: Option<String>,
    pub system: String,
    pub prompt: String,
    pub max_tokens: Option<u32>,
    /// Texts of the tool results that are new to the model.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub results: String,
    /// Messages in the history.
    pub messages: usize,
    pub streaming: bool,
    /// `<conversation>:<turn>` that it was made for.
    pub run_id: String,
    /// Number of the rule that answered, from 0; absent when none did.
    pub rule: Option<usize>,
}

#[derive(Debug)]
pub struct Recorder {
    kept: Mutex<Kept>,
}

#[derive(Debug, Default)]
struct Kept {
    count: u64,
    latest: VecDeque<Request>,
    file: Option<File>,
}

impl Recorder {
    pub fn new(path: Option<&Path>) -> Result<Self, String> {
        let open = |path: &Path| {
            let file = OpenOptions::new().create(true).append(true).open(path);
            file.map_err(|error| format!("{}: {error}", path.display()))
        };
        let file = path.map(open).transpose()?;
        Ok(Self { kept: Mutex::new(Kept { file, ..Kept::default() }) })
    }

    pub fn record(&self, asked: &Asked, rule: Option<Option<usize>>) {
        let mut kept = self.kept.lock().unwrap_or_else(PoisonError::into_inner);
        kept.count += 1;
        let request = Request {
            n: kept.count,
            key: asked.key.clone(),
            profile: asked.profile.clone(),
            system: asked.system.clone(),
            prompt: asked.prompt.clone(),
            max_tokens: asked.max_tokens,
            results: asked.results.clone(),
            messages: asked.messages,
            streaming: asked.streaming,
            run_id: asked.run_id.clone(),
            rule: rule.flatten(),
        };
        if let Some(file) = &mut kept.file {
            let line = serde_json::to_string(&request).map(|line| line + "\n").unwrap_or_default();
            if let Err(error) = file.write_all(line.as_bytes()) {
                tracing::warn!(%error, "cannot record a scripted request; recording ends");
                kept.file = None;
            }
        }
        if kept.latest.len() == REQUESTS_MAX {
            kept.latest.pop_front();
        }
        kept.latest.push_back(request);
    }

    pub fn requests(&self) -> Vec<Request> {
        self.kept.lock().unwrap_or_else(PoisonError::into_inner).latest.iter().cloned().collect()
    }
}
