//! Conversations with models, as data: what is asked, what comes back, what is written down about
//! it. One shape for all providers (SPEC 1.16); the adapters translate.

mod context;
mod delta;
mod headers;
mod message;
mod native;
mod profile;
mod record;
mod reply;
mod request;
#[cfg(test)]
mod tests;
mod tool_result;
mod usage;

pub use context::{AgentContext, CallContext, ChatCall, RequestClass};
pub use delta::ChatDelta;
pub use headers::{EXTRA_HEADERS, extra_header};
pub use message::{ImageSource, Message, Part, Reasoning, Role, ToolCall};
pub use native::{NativeRequest, model_in_address};
pub use profile::{ModelProfile, ModelTarget};
pub use record::{
    ChatFailure, ChatOutcome, ErrorCategory, LOST_ATTEMPTS, Operation, ProviderCallRecord, RequestOutcome,
};
pub use reply::{ChatReply, Finish};
pub use request::{ChatRequest, Parameters, ToolChoice, ToolSpec};
pub use tool_result::{ToolError, ToolErrorCode, ToolResult};
pub use usage::{Prices, Usage};

/// What ids begin with that we made because the provider gave none.
const MADE_ID: &str = "made_";

/// The id of the `n`th tool call of a reply whose provider gives no ids: the same for the same
/// call, another for any other. Short and plain enough for every provider.
pub fn made_id(call_id: &str, n: usize) -> String {
    format!("{MADE_ID}{:016x}_{n}", xxhash_rust::xxh3::xxh3_64(call_id.as_bytes()))
}

/// Whether [`made_id`] made it, so that its provider does not know it.
pub fn is_made_id(id: &str) -> bool {
    id.starts_with(MADE_ID)
}
