//! `llm` with the operation `embed`: the vector of a text, by the model that memories are embedded with.

use domain::chat::ToolErrorCode;
use domain::failure::Failure;
use domain::ports::{ActionCall, ActionFailure, Embedder, Trouble};
use domain::template::Escape;
use serde::Deserialize;
use serde_json::{Value, json};

use super::template;

pub const OPERATION: &str = "embed";

#[derive(Debug, Deserialize)]
struct Settings {
    #[serde(default)]
    prompt: Option<String>,
}

pub async fn run(embedder: Option<&dyn Embedder>, call: &ActionCall) -> Result<Value, ActionFailure> {
    let Some(embedder) = embedder else { return Err(super::unavailable(call)) };
    let settings: Settings = super::settings(call)?;
    let prompt =
        settings.prompt.ok_or_else(|| ActionFailure::invalid("config.prompt is missing: the text to embed"))?;
    let text = template::text(&prompt, &template::context(call), Escape::Nothing, "prompt")?;
    if text.trim().is_empty() {
        return Err(ActionFailure::invalid("there is nothing to embed: the text is empty"));
    }
    let vectors = embedder.embed(&[text.as_str()]).await.map_err(failed)?;
    let vector = vectors.into_iter().next().unwrap_or_default();
    Ok(json!({"model": embedder.model(), "dimensions": vector.len(), "embedding": vector}))
}

/// The embedder's attempts are used up by now. Asking changes nothing, so it may be asked again.
fn failed(failure: Failure) -> ActionFailure {
    let message = format!("the text cannot be embedded: {}", failure.message);
    if failure.retriable {
        return ActionFailure::trouble(Trouble::ServerError, message, false);
    }
    ActionFailure::business(ToolErrorCode::ExecutionFailed, message)
}
