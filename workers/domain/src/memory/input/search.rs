//! `memory.search`.

use schemas::limits::{MEMORY_HITS_DEFAULT, MEMORY_HITS_MAX, MEMORY_QUERY_BYTES_MAX};
use schemas::problem::FieldProblem;
use serde_json::Value;

use super::{FILTERS, checked, filter, prose, share};
use crate::action::fields::{Object, Problems};
use crate::memory::{Embedding, MemoryFilter, MemoryQuery, Weights};

const FIELDS: &[&str] = &["query", "limit", "weights", "min_relevance"];
const WEIGHTS: &[&str] = &["vector", "text", "significance"];

/// A search without problems.
#[derive(Debug, Clone, PartialEq)]
pub struct MemorySearch {
    pub text: String,
    pub filter: MemoryFilter,
    pub weights: Weights,
    pub min_relevance: f64,
    pub limit: usize,
}

impl MemorySearch {
    /// # Errors
    /// Everything that is wrong with the input.
    pub fn check(input: &Value) -> Result<Self, Vec<FieldProblem>> {
        let known = [FIELDS, &FILTERS].concat();
        checked(input, &known, |object, problems| {
            if !object.has("query") {
                problems.add("query", "is missing; give the text to look for");
            }
            let text = prose(object, "query", MEMORY_QUERY_BYTES_MAX, "the text to look for", problems);
            let limit = object.whole("limit", 1, MEMORY_HITS_MAX as u64, problems);
            let search = Self {
                text: String::new(),
                filter: filter(object, problems),
                weights: weights(object, problems),
                min_relevance: share(object, "min_relevance", problems).unwrap_or(0.0),
                limit: limit.map_or(MEMORY_HITS_DEFAULT, |limit| limit as usize),
            };
            text.map(|text| Self { text, ..search })
        })
    }

    pub fn into_query(self, embedding: Option<Embedding>) -> MemoryQuery {
        MemoryQuery {
            text: self.text,
            embedding,
            filter: self.filter,
            weights: self.weights,
            min_relevance: self.min_relevance,
            limit: self.limit,
        }
    }
}

fn weights(object: &Object<'_>, problems: &mut Problems) -> Weights {
    let given = object.object("weights", problems);
    given.refuse_unknown(WEIGHTS, problems);
    let usual = Weights::default();
    let weights = Weights {
        vector: share(&given, "vector", problems).unwrap_or(usual.vector),
        text: share(&given, "text", problems).unwrap_or(usual.text),
        significance: share(&given, "significance", problems).unwrap_or(usual.significance),
    };
    if weights.vector + weights.text <= 0.0 {
        problems.add(object.path("weights"), "vector and text are both 0; then nothing could be found");
    }
    weights
}
