//! How a conversation gets out: one pump per client, whatever the transport. Committed frames once and
//! in order from any cursor; pieces of replies as they come, as far as the client keeps up.

mod pump;
mod pieces;

use axum::http::HeaderMap;
use domain::ports::ConversationKey;
use schemas::conversation::{ConversationFrame, FrameBody};
use schemas::id::ConversationId;
use schemas::json::Json;

use crate::answer::Answer;
use crate::api::conversations;
use crate::caller::Caller;
use crate::gateway::Gateway;
use crate::params::Params;
use crate::stream::{Stream, cursor};

/// Frames between the pump and the socket.
const BUFFER: usize = 64;

/// One frame, ready to be sent.
#[derive(Debug, Clone)]
pub struct Line {
    /// Of what is committed: the cursor to come back with.
    pub offset: Option<u64>,
    pub name: &'static str,
    /// JSON of a [`ConversationFrame`], on one line.
    pub json: String,
    pub is_end: bool,
}

impl Line {
    pub fn of(frame: &ConversationFrame) -> Self {
        // Stored JSON may have line breaks between its tokens; within strings they are escaped.
        let json = Json::of(frame).as_str().replace(['\r', '\n'], " ");
        let is_end = matches!(frame.body, FrameBody::End(_));
        Self { offset: frame.offset, name: frame.body.name(), json, is_end }
    }
}

/// Opens a stream of a conversation of the caller's namespace, behind the cursor of the request.
pub async fn open(
    gateway: &Gateway,
    caller: &Caller,
    id: ConversationId,
    headers: &HeaderMap,
    mut params: Params,
) -> Answer<Stream<Line>> {
    let after = cursor(headers, &mut params)?;
    conversations::row(gateway, &caller.namespace, &id).await?;
    let (sender, stream) = Stream::begin(gateway, caller, BUFFER)?;
    let key = ConversationKey { namespace: caller.namespace.clone(), conversation_id: id };
    tokio::spawn(pump::run(gateway.clone(), key, after, sender));
    Ok(stream)
}
