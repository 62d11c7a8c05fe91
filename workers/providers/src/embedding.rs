//! Vectors of texts, for memory search: a static model that is compiled in, or an embeddings API.

mod characters;
mod files;
mod openai;
mod static_model;
mod tokenizer;

#[cfg(test)]
mod tests;

use std::sync::Arc;

use domain::ports::Embedder;

use crate::config::{ConfigProblems, EmbedderChoice, ProvidersConfig};
use crate::net::Net;
use openai::ApiEmbedder;
pub use static_model::{STATIC_MODEL, StaticEmbedder};

/// The embedder that the configuration names; the static one if it names none.
///
/// # Errors
/// All problems of its settings. Nobody is called.
pub fn embedder(config: &ProvidersConfig) -> Result<Arc<dyn Embedder>, ConfigProblems> {
    match config.choose_embedder().map_err(ConfigProblems)? {
        EmbedderChoice::Static => Ok(Arc::new(StaticEmbedder::load())),
        EmbedderChoice::Api { endpoint, dimensions } => {
            let net = Net::new(config.allow_private).map_err(|problem| ConfigProblems(vec![problem]))?;
            Ok(Arc::new(ApiEmbedder::new(net, *endpoint, dimensions)))
        }
    }
}
