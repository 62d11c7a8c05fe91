//! `POST /api/conversations`.

use axum::Json;
use axum::extract::State;
use axum::http::{HeaderMap, StatusCode};
use axum::routing::post;
use domain::conversation::create::{self, CreateContext, NewConversation};
use domain::conversation::seat::AgentSeat;
use domain::conversation::{ids, view};
use domain::ports::{ConversationKey, Inserted, News, Scope};
use schemas::conversation::{ConversationCreated, Participant};
use schemas::problem::Code;
use serde_json::json;

use crate::answer::{Answer, Refused};
use crate::caller::Caller;
use crate::extract::{JsonBody, idempotency_key};
use crate::gateway::Gateway;
use crate::routes::Route;
use crate::seats;

pub const KEY_HEADER: (&str, &str) =
    ("Idempotency-Key", "Another place for the id in the body: a repeat with it changes nothing");

pub fn routes() -> Vec<Route> {
    vec![
        Route::post("/api/conversations", post(one))
            .scope(Scope::Act)
            .summary(
                "Create a conversation; each agent that it names gets a session in it. 200: it is there already, and \
                 nothing changed.",
            )
            .header(KEY_HEADER.0, KEY_HEADER.1)
            .body("NewConversationBody")
            .answers(201, "ConversationCreated")
            .also_answers(200)
            .refuses(&[Code::InvalidRequest, Code::InvalidJson, Code::TooLarge, Code::UnknownMoniker])
            .refuses(&[Code::ConversationExists, Code::ActionConflict, Code::SessionExists, Code::StorageFull]),
    ]
}

async fn one(
    State(gateway): State<Gateway>,
    caller: Caller,
    headers: HeaderMap,
    body: JsonBody,
) -> Answer<(StatusCode, Json<ConversationCreated>)> {
    let context = CreateContext {
        namespace: caller.namespace.clone(),
        actor: caller.name.clone(),
        user_id: ids::user_of(&caller.name),
        conversation_id: gateway.fresh_id(),
        idempotency_key: idempotency_key(&headers)?,
        now_ms: gateway.clock.now_ms(),
    };
    let mut new = create::parse(&body.0.unwrap_or_else(|| json!({})), &context)?;
    seats::check(&gateway, &caller.namespace, &new.agents, |nth| format!("agents[{nth}].agent_id")).await?;
    let key = ConversationKey {
        namespace: caller.namespace.clone(),
        conversation_id: new.conversation.conversation_id.clone(),
    };
    if new.conversation.branch_context.is_none() {
        let found = seats::branch_context(&gateway, &key.namespace, &key.conversation_id, &new.participants);
        new.conversation.branch_context = found.await?;
    }
    let made = gateway.conversations.create(&key.namespace, &new.conversation, &new.participants, &new.records).await?;
    let participants = gateway.conversations.participants(&key.namespace, &key.conversation_id).await?;
    let (row, created) = match made {
        Inserted::New(row) => (row, true),
        Inserted::Existing(row) => {
            check_same(&new, &participants)?;
            (row, false)
        }
    };
    let started = seats::start(&gateway, &new.agents).await?;
    if created {
        gateway.live.tell(&key, News::Logged);
        tracing::info!(conversation = %key.conversation_id, agents = started.len(), by = %caller.name, "conversation created");
    }
    let answer = ConversationCreated {
        conversation: view::conversation(&row, &[]),
        created,
        participants: participants.iter().map(view::participant).collect(),
        started,
    };
    Ok((if created { StatusCode::CREATED } else { StatusCode::OK }, Json(answer)))
}

/// A repeat names the agents of the first time. Others would be let in by the back door.
fn check_same(new: &NewConversation, participants: &[Participant]) -> Result<(), Refused> {
    let known = |seat: &AgentSeat| participants.iter().any(|one| one.participant_id == seat.participant.participant_id);
    if new.agents.iter().all(known) {
        return Ok(());
    }
    let id = &new.conversation.conversation_id;
    let detail = format!(
        "{id} was created with other agents. Choose another conversation_id, or bring them in with \
         POST /api/conversations/{id}/participants."
    );
    Err(Refused::new(Code::ConversationExists, detail))
}
