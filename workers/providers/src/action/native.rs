//! `llm` with `native`: the whole request in the provider's own shape, filled in and sent as it is (SPEC K-31,
//! W-PRV-14).

use domain::chat::{ChatFailure, ChatReply, ChatRequest, ErrorCategory, Finish, NativeRequest, ToolErrorCode};
use domain::ports::{ActionCall, ActionFailure};
use schemas::definition::EffectClass;
use schemas::problem::Code;
use serde::Deserialize;

use super::{llm, template};

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

/// Whether a body that may have arrived is not sent again. It may have tools that the provider runs, with effects, and
/// no provider can be asked whether they ran.
pub fn is_once(call: &ActionCall) -> bool {
    matches!(call.effect_class, EffectClass::Probeable | EffectClass::AtMostOnce)
}

/// As with prompts, with two differences. What was refused before anything was sent is the author's to mend: above all,
/// a profile of another provider. And what was sent may have had an effect, unless it was turned away.
pub fn failed(failure: ChatFailure) -> ActionFailure {
    let is_of_request = failure.category == ErrorCategory::Validation && failure.code != Code::ProviderMissing;
    if is_of_request && !failure.may_have_happened {
        return ActionFailure::invalid(format!("native cannot be sent: {}", failure.message));
    }
    ActionFailure { may_have_happened: failure.may_have_happened, ..llm::failed(failure) }
}

/// An answer whose text is not what was asked for: the model would go on, or waits for tools that nobody runs here.
pub fn unfinished(reply: &ChatReply) -> Option<ActionFailure> {
    let is_finished = match reply.finish {
        Finish::Pause => false,
        Finish::ToolUse => !reply.text().trim().is_empty(),
        Finish::Stop | Finish::Length | Finish::Refusal | Finish::Other => true,
    };
    // Some providers stop with the same word whether there are calls or not.
    let said = reply.raw_finish.as_deref().filter(|_| reply.finish == Finish::Pause);
    let why = said.unwrap_or(reply.finish.as_str());
    (!is_finished).then(|| {
        let what = format!("the answer is not finished ({why}); take output: raw");
        ActionFailure::business(ToolErrorCode::ExecutionFailed, what)
    })
}
