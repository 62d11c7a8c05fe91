//! Gemini: `POST /v1beta/models/<model>:generateContent` and `:streamGenerateContent`.

pub mod reply;
mod request;
pub mod stream;

pub use request::wire;
