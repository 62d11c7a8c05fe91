//! OpenAI Responses: `POST …/responses`.

pub mod reply;
mod request;
pub mod stream;

pub use request::wire;
