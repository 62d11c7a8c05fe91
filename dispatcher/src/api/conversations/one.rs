//! `GET` and `PATCH /api/conversations/{id}`.

use axum::Json;
use axum::extract::State;
use axum::routing::{get, patch};
use domain::conversation::change::{self, Change};
use domain::conversation::{create, view};
use domain::ports::{ConversationChange, ConversationKey, News, Post, Posted, Scope};
use schemas::conversation::{Conversation, ConversationDetail, ConversationStatus, ConversationView};
use schemas::id::ConversationId;
use schemas::problem::Code;
use serde_json::json;

use super::{active, row};
use crate::answer::{Answer, Refused};
use crate::caller::Caller;
use crate::extract::{JsonBody, PathId};
use crate::gateway::Gateway;
use crate::routes::Route;

pub fn routes() -> Vec<Route> {
    vec![
        Route::get("/api/conversations/{id}", get(one))
            .summary("One conversation, who takes part, and the turns that are under way.")
            .answers(200, "ConversationDetail")
            .refuses(&[Code::InvalidRequest, Code::ConversationNotFound]),
        Route::patch("/api/conversations/{id}", patch(update))
            .scope(Scope::Act)
            .summary("Change title, tags, metadata or branch_context; or complete it, for good.")
            .body("ConversationPatch")
            .answers(200, "ConversationView")
            .refuses(&[Code::InvalidRequest, Code::InvalidJson, Code::TooLarge, Code::ConversationNotFound])
            .refuses(&[Code::ConversationClosed, Code::StorageFull]),
    ]
}

async fn one(
    State(gateway): State<Gateway>,
    caller: Caller,
    PathId(id): PathId<ConversationId>,
) -> Answer<Json<ConversationDetail>> {
    let row = row(&gateway, &caller.namespace, &id).await?;
    let participants = gateway.conversations.participants(&caller.namespace, &id).await?;
    let turns = active(&gateway, &caller.namespace, &id).await?;
    Ok(Json(ConversationDetail {
        conversation: view::conversation(&row, &turns),
        participants: participants.iter().map(view::participant).collect(),
        active_turns: turns.iter().map(view::turn).collect(),
    }))
}

async fn update(
    State(gateway): State<Gateway>,
    caller: Caller,
    PathId(id): PathId<ConversationId>,
    body: JsonBody,
) -> Answer<Json<ConversationView>> {
    let change = change::parse(&body.required()?)?;
    let before = row(&gateway, &caller.namespace, &id).await?;
    if change.complete {
        say_farewell(&gateway, &caller, &before).await?;
    }
    let after = gateway.conversations.change(&caller.namespace, &id, &to_write(change)).await?;
    let after =
        after.ok_or_else(|| Refused::new(Code::ConversationNotFound, format!("There is no conversation {id}.")))?;
    gateway
        .live
        .tell(&ConversationKey { namespace: caller.namespace.clone(), conversation_id: id.clone() }, News::Logged);
    let turns = active(&gateway, &caller.namespace, &id).await?;
    Ok(Json(view::conversation(&after, &turns)))
}

fn to_write(change: Change) -> ConversationChange {
    ConversationChange {
        title: change.title,
        status: change.complete.then_some(ConversationStatus::Completed),
        tags: change.tags,
        metadata: change.metadata,
        branch_context: change.branch_context,
        first_branch_context: None,
    }
}

/// Notes in the log that it ends, while it still takes records. Once is enough.
async fn say_farewell(gateway: &Gateway, caller: &Caller, row: &Conversation) -> Answer<()> {
    if row.status == ConversationStatus::Failed {
        change::open(row)?;
    }
    let name = "conversation_ended";
    let body = json!({"type": name, "conversation_id": row.conversation_id, "by": caller.name});
    let post = Post {
        namespace: caller.namespace.clone(),
        conversation_id: row.conversation_id.clone(),
        record: create::event(name, body, gateway.clock.now_ms()),
        actions: Vec::new(),
    };
    match gateway.conversations.post(post).await? {
        // Completed before, or by somebody else just now: what is asked for is so already.
        Posted::Done { .. } | Posted::Closed | Posted::Conflict => Ok(()),
        Posted::NotFound => {
            let detail = format!("There is no conversation {}.", row.conversation_id);
            Err(Refused::new(Code::ConversationNotFound, detail))
        }
    }
}
