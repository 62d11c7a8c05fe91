//! One order out of three signals: likeness of meaning, matching words, and significance.
//!
//! Relevance is the weighted mean of the vectors' cosine and the words' score, both from 0 to 1; the
//! score is the weighted mean of relevance and significance (SPEC W-MEM-04). A weighted mean was
//! chosen over reciprocal rank fusion (Cormack, Clarke and Büttcher, SIGIR 2009) because ranks tell
//! nothing of distances: the best of twenty memories that have nothing to do with the text would get
//! as much as a perfect match, and significance could not be weighed against it. Bruch, Gai and Ingber
//! ("An Analysis of Fusion Functions for Hybrid Retrieval", ACM TOIS 2023) measured that a convex
//! combination also finds better, and depends little on its weights.

use serde::{Deserialize, Serialize};

/// How much each signal counts. The caller's choice: libraries decide what matters to them.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct Weights {
    /// Of the likeness of vectors within relevance, against `text`.
    pub vector: f64,
    /// Of matching words within relevance, against `vector`.
    pub text: f64,
    /// Of significance within the score, from 0 (only relevance counts) to 1.
    pub significance: f64,
}

impl Default for Weights {
    fn default() -> Self {
        Self { vector: 0.6, text: 0.4, significance: 0.2 }
    }
}

impl Weights {
    /// `similarity` is absent if the memory's vector cannot be compared: it has none, or one of
    /// another model. `by_vector` says whether the search has a vector at all; without one, words
    /// are everything.
    pub fn relevance(&self, by_vector: bool, similarity: Option<f64>, text: f64) -> f64 {
        let vector = if by_vector { self.vector.max(0.0) } else { 0.0 };
        let words = self.text.max(0.0);
        // Without a vector, words count even if their weight is 0: they are all there is.
        if vector + words <= 0.0 {
            return if by_vector { 0.0 } else { text };
        }
        (vector * similarity.unwrap_or(0.0) + words * text) / (vector + words)
    }

    pub fn score(&self, relevance: f64, significance: f64) -> f64 {
        let share = self.significance.clamp(0.0, 1.0);
        (1.0 - share) * relevance + share * significance.clamp(0.0, 1.0)
    }
}
