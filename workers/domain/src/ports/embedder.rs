//! Vectors of texts: what memory search compares.

use async_trait::async_trait;

use crate::failure::Failure;

#[async_trait]
pub trait Embedder: Send + Sync {
    /// Names the model and its revision: the same name is the same vector for the same text, in the
    /// same number of dimensions. Stored with every vector.
    fn model(&self) -> &str;

    /// One vector for each text, in their order; at most `limits::EMBEDDING_TEXTS_MAX` texts. Of a
    /// text that is longer than the model takes, the beginning is embedded. A text in which the model
    /// knows nothing may get a vector of zeros, or of no numbers, which is like nothing. Bounded
    /// attempts are made within; dropping the future cancels the call.
    async fn embed(&self, texts: &[&str]) -> Result<Vec<Vec<f32>>, Failure>;
}
