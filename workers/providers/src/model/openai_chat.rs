//! OpenAI Chat Completions, and the many servers that speak it: `POST …/chat/completions`.

pub mod reply;
mod request;
pub mod stream;
mod tool_calls;

pub use request::{image_url, result_text, wire};
