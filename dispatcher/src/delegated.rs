//! Conversations of calls: a delegate works alone in one that was opened for it, and answers its caller (SPEC K-19,
//! W-INV-03). Whoever is looped in there comes by a commit of its agent, and not by way of a gateway.

use domain::conversation::join;
use schemas::conversation::{Conversation, Participant, Visibility};
use schemas::id::{ConversationId, Namespace, SessionId, SessionKey};
use schemas::problem::Problem;
use schemas::session::SessionRow;

use crate::answer::Answer;
use crate::gateway::Gateway;

/// Whether clients may join a conversation and speak there. `participants`: of it, those who left included.
///
/// # Errors
/// It belongs to a call.
pub async fn check(
    gateway: &Gateway,
    namespace: &Namespace,
    conversation: &Conversation,
    participants: &[Participant],
) -> Answer<()> {
    let objection = objection(gateway, namespace, conversation, participants).await?;
    objection.map_or(Ok(()), |problem| Err(problem.into()))
}

/// Why they may not, where the conversation may not be there yet.
pub async fn objection_at(
    gateway: &Gateway,
    namespace: &Namespace,
    id: &ConversationId,
) -> Answer<Option<Box<Problem>>> {
    let found = gateway.conversations.conversation(namespace, id).await?;
    let Some(conversation) = found.filter(|row| row.visibility == Visibility::Internal) else { return Ok(None) };
    let participants = gateway.conversations.participants(namespace, id).await?;
    objection(gateway, namespace, &conversation, &participants).await
}

async fn objection(
    gateway: &Gateway,
    namespace: &Namespace,
    conversation: &Conversation,
    participants: &[Participant],
) -> Answer<Option<Box<Problem>>> {
    let Some(session) = join::opener(conversation, participants) else { return Ok(None) };
    let opener = row(gateway, namespace, session).await?;
    let Some(caller) = opener.and_then(|row| row.spec.parent) else { return Ok(None) };
    let place = row(gateway, namespace, &caller).await?.and_then(|row| row.spec.conversation_id);
    Ok(Some(join::of_a_call(&conversation.conversation_id, &caller, place.as_ref())))
}

async fn row(gateway: &Gateway, namespace: &Namespace, session: &SessionId) -> Answer<Option<SessionRow>> {
    Ok(gateway.sessions.session(&SessionKey::new(namespace.clone(), session.clone())).await?)
}
