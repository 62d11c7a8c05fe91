//! Conversations: one file per subject. What all of them need is here.

mod create;
mod events;
mod list;
mod messages;
mod one;
mod participants;
mod socket;
mod turns;

use domain::ports::TurnQuery;
use schemas::conversation::{Conversation, Turn, TurnStatus};
use schemas::id::{ConversationId, Namespace};
use schemas::limits::TURNS_FOLLOWED_MAX;
use schemas::problem::Code;

use crate::answer::{Answer, Refused};
use crate::gateway::Gateway;
use crate::routes::Route;
pub use list::read_cursor;

pub fn routes() -> Vec<Route> {
    [
        create::routes(),
        list::routes(),
        one::routes(),
        participants::routes(),
        messages::routes(),
        turns::routes(),
        events::routes(),
        socket::routes(),
    ]
    .into_iter()
    .flatten()
    .collect()
}

/// The row of a conversation of the caller's namespace.
pub async fn row(gateway: &Gateway, namespace: &Namespace, id: &ConversationId) -> Answer<Conversation> {
    let found = gateway.conversations.conversation(namespace, id).await?;
    found.ok_or_else(|| {
        let detail = format!("There is no conversation {id}. GET /api/conversations lists those there are.");
        Refused::new(Code::ConversationNotFound, detail)
    })
}

/// What is under way in a conversation.
pub async fn active(gateway: &Gateway, namespace: &Namespace, id: &ConversationId) -> Answer<Vec<Turn>> {
    let query = TurnQuery {
        namespace: namespace.clone(),
        conversation_id: Some(id.clone()),
        session_id: None,
        status: Some(TurnStatus::Active),
        after: None,
        descending: false,
        limit: TURNS_FOLLOWED_MAX,
    };
    Ok(gateway.conversations.turns(&query).await?)
}
