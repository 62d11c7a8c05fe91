//! Anthropic Messages: `POST /v1/messages`.

pub mod reply;
mod request;
pub mod stream;

pub use request::wire;
