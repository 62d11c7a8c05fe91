//! The adapters on bodies and streams as the providers document them: what is sent, what is read,
//! how errors are classed. The streams are in `samples/`.

mod errors;
mod fuzz;
mod replies;
mod requests;
mod samples;

use serde_json::json;

use super::*;
use crate::config::Secret;

fn endpoint(vendor: Vendor, base_url: &str) -> Endpoint {
    Endpoint::new(vendor, "m-1", base_url, Secret::new("sk-hidden"))
}

fn reading() -> Reading<'static> {
    Reading { call_id: "call-of-the-test", original: true }
}

fn read(vendor: Vendor, body: Value) -> Result<ChatReply, CallError> {
    reply(vendor, reading(), body)
}
