//! `llm` with `native`: the whole request in the provider's own shape, filled in and sent as it is (SPEC K-31,
//! W-PRV-14).

use domain::chat::{ChatFailure, ChatRequest, ErrorCategory, NativeRequest};
use domain::ports::{ActionCall, ActionFailure};
use schemas::problem::Code;
use serde::Deserialize;

use super::template;

/// What of the answer is the result.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Output {
    /// Its texts, as for prompts.
    #[default]
    Text,
    /// The provider's own JSON, as it came.
    Raw,
}

/// # Errors
/// `INVALID_INPUT`: a template cannot be filled in, or what became of `model` is no name of one.
pub fn request(call: &ActionCall, native: NativeRequest) -> Result<ChatRequest, ActionFailure> {
    let body = template::json_of(&native.body, &template::context(call), "native.body")?;
    let native = NativeRequest { body, ..native };
    let invalid = |why: String| ActionFailure::invalid(format!("native.body.model {why}"));
    // The profile's is asked where the body names none.
    let model = native.model().map_err(invalid)?.map(str::to_owned);
    Ok(ChatRequest { model, native: Some(native), ..ChatRequest::default() })
}

/// What was refused before anything was sent is the author's to mend: above all, a profile of another provider.
/// `None` for all else, which ends as with prompts.
pub fn refused(failure: &ChatFailure) -> Option<ActionFailure> {
    let is_of_request = failure.category == ErrorCategory::Validation && failure.code != Code::ProviderMissing;
    (is_of_request && !failure.may_have_happened)
        .then(|| ActionFailure::invalid(format!("native cannot be sent: {}", failure.message)))
}
