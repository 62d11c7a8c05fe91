//! People beside the worker: they answer what is asked, and they speak. They do not crash with it.

use std::time::Duration;

use domain::conversation::address::addressees;
use domain::conversation::deliver::{Standing, deliver};
use domain::conversation::post::PostContext;
use domain::conversation::{approval, ids, post};
use domain::ports::{Clock, Conversations, Ledger, OperationQuery, Operations, Post, Posted, Queue, Sessions, Verdict};
use schemas::conversation::{Busy, OperationKind, OperationState};
use schemas::id::{MessageId, Namespace, SessionKey};
use serde_json::json;
use testkit::contract::words::{conversation_id, operation_query, user_id};

use super::place::Place;
use super::script::CONVERSATION;
use crate::world::World;

pub const NAME: &str = "ada";
/// Why she says no.
pub const REASON: &str = "too dear";
/// How often people look for questions, and whether it is time to speak.
const LOOK: Duration = Duration::from_millis(20);

/// Nobody is there.
pub async fn nobody(_: Place) {}

/// Says yes to whatever is asked.
pub async fn says_yes(place: Place) {
    answers(place.world, |_| Some(true)).await;
}

/// Answers what is asked of a tool, as a gateway passes it on; or does not.
pub async fn answers(world: World, verdict: fn(&str) -> Option<bool>) {
    let (kind, state) = (Some(OperationKind::Approval), Some(OperationState::Pending));
    let asked = OperationQuery { kind, state, ..operation_query() };
    loop {
        tokio::time::sleep(LOOK).await;
        for row in world.store.operations(&asked).await.expect("no faults are scripted") {
            let Some(is_yes) = verdict(&row.operation.tool) else { continue };
            let hash = row.operation.approval.as_ref().map(|asked| asked.arguments_hash.as_str());
            let mut body = json!({ "arguments_hash": hash });
            if !is_yes {
                body["reason"] = REASON.into();
            }
            let answer = approval::parse(&body, is_yes, NAME).expect("a whole answer");
            let action = approval::result(&row.namespace, &row.operation, &answer).expect("it waits for a person");
            let verdicts = world.store.accept(vec![action]).await.expect("no faults are scripted");
            publish(&world, verdicts).await;
        }
    }
}

/// Returns once something is so.
pub async fn until(is_so: impl Fn() -> bool) {
    while !is_so() {
        tokio::time::sleep(LOOK).await;
    }
}

/// Posts a message, as a gateway does: what becomes of it hangs on what its agents are at.
pub async fn posts(world: &World, id: &str, text: &str, busy: Busy) {
    let (namespace, conversation) = (Namespace::default_ns(), conversation_id(CONVERSATION));
    let context = PostContext {
        namespace: namespace.clone(),
        conversation_id: conversation.clone(),
        actor: NAME.to_owned(),
        user_id: user_id(NAME),
        message_id: MessageId::parse(id).expect("an id"),
        idempotency_key: None,
        now_ms: world.clock.now_ms(),
    };
    let post = post::parse(&json!({"text": text, "busy": busy}), context).expect("a whole message");
    let here = world.store.participants(&namespace, &conversation).await.expect("no faults are scripted");
    let mut standing = Vec::new();
    for one in addressees(&post.to, None, &here).expect("somebody is there") {
        let key = SessionKey::new(namespace.clone(), one.session_id.clone());
        let own = ids::delivery(&namespace, &conversation, &post.message.message_id, &one.session_id);
        let is_busy = world.store.is_at_work(&key, &own).await.expect("no faults are scripted");
        let row = world.store.session(&key).await.expect("no faults are scripted");
        let status = row.map(|row| row.head.status);
        standing.push((one, Standing { status, takes_input: true, has_turns: true, is_busy, when_busy: None }));
    }
    let deliveries = deliver(&post, standing).expect("somebody takes it");
    let actions = deliveries.into_iter().filter_map(|delivery| delivery.action).collect();
    let whole = Post { namespace, conversation_id: conversation, record: post.record, actions };
    let posted = world.store.post(whole).await.expect("no faults are scripted");
    let Posted::Done { verdicts, .. } = posted else { panic!("{id} is not posted: {posted:?}") };
    publish(world, verdicts).await;
}

async fn publish(world: &World, verdicts: Vec<Verdict>) {
    for verdict in verdicts {
        let Verdict::Accepted(accepted) = verdict else { panic!("what {NAME} says is not taken: {verdict:?}") };
        world.queue.publish(&[accepted.action]).await.expect("no faults are scripted");
    }
}
