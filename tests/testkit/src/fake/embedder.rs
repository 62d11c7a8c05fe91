//! An embedder of which every vector can be told in advance: texts are as alike as the words that they
//! share. It can be told to fail, and keeps what it was asked.

use std::sync::{Mutex, PoisonError};

use async_trait::async_trait;
use domain::failure::Failure;
use domain::ports::Embedder;

const DIMENSIONS: usize = 1_024;

#[derive(Debug, Default)]
struct State {
    failure: Option<Failure>,
    asked: Vec<String>,
}

#[derive(Debug)]
pub struct WordEmbedder {
    model: String,
    state: Mutex<State>,
}

impl WordEmbedder {
    pub fn new(model: &str) -> Self {
        Self { model: model.to_owned(), state: Mutex::default() }
    }

    /// From now on every call fails like this; `None`: no more.
    pub fn fail(&self, failure: Option<Failure>) {
        self.state().failure = failure;
    }

    /// All texts so far.
    pub fn asked(&self) -> Vec<String> {
        self.state().asked.clone()
    }

    fn state(&self) -> std::sync::MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The words counted, each at a place of its own as far as there are places. The model shifts the
    /// places: vectors of two models look alike and mean nothing to each other.
    pub fn vector(&self, text: &str) -> Vec<f32> {
        let mut vector = vec![0.0; DIMENSIONS];
        for word in text.split(|c: char| !c.is_alphanumeric()).filter(|word| !word.is_empty()) {
            let hash =
                self.model.bytes().chain(word.to_lowercase().bytes()).fold(0xcbf2_9ce4_8422_2325u64, |hash, byte| {
                    (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3)
                });
            vector[(hash % DIMENSIONS as u64) as usize] += 1.0;
        }
        vector
    }
}

#[async_trait]
impl Embedder for WordEmbedder {
    fn model(&self) -> &str {
        &self.model
    }

    async fn embed(&self, texts: &[&str]) -> Result<Vec<Vec<f32>>, Failure> {
        let mut state = self.state();
        state.asked.extend(texts.iter().map(|text| (*text).to_owned()));
        match &state.failure {
            Some(failure) => Err(failure.clone()),
            None => Ok(texts.iter().map(|text| self.vector(text)).collect()),
        }
    }
}
