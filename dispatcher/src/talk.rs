//! How a message gets into a conversation: who is to answer is looked up, what becomes of it there is
//! decided, and message and actions are written in one transaction.

mod habit;

use domain::conversation::address::{Addressee, addressees};
use domain::conversation::deliver::{self, Delivery, Standing, Taken};
use domain::conversation::post::{self, NewPost, PostContext};
use domain::conversation::{change, ids};
use domain::moniker;
use domain::ports::{ConversationKey, News, Post, Posted, Verdict};
use domain::read;
use host::trace;
use schemas::conversation::{Busy, Message, Participant, PostAnswer};
use schemas::id::{ConversationId, MessageId, SessionKey};
use schemas::problem::{Code, Problem};
use schemas::session::{SessionRow, SessionStatus};
use schemas::telemetry::metric;
use serde_json::Value;
use tokio::time::Instant;

use crate::answer::{Answer, Refused};
use crate::api::conversations;
use crate::caller::Caller;
use crate::delegated;
use crate::gateway::Gateway;
use crate::submit;

/// Takes a message. Durable when it answers.
pub async fn post(
    gateway: &Gateway,
    caller: &Caller,
    id: ConversationId,
    idempotency_key: Option<String>,
    body: &Value,
) -> Answer<PostAnswer> {
    let fresh: MessageId = gateway.fresh_id();
    let context = PostContext {
        namespace: caller.namespace.clone(),
        conversation_id: id,
        actor: caller.name.clone(),
        user_id: ids::user_of(&caller.name),
        message_id: fresh.clone(),
        idempotency_key,
        now_ms: gateway.clock.now_ms(),
    };
    let post = post::parse(body, context)?;
    let (namespace, id) = (&post.namespace, &post.conversation_id);
    let participants = async { Ok(gateway.conversations.participants(namespace, id).await?) };
    let (row, participants) = tokio::try_join!(conversations::row(gateway, namespace, id), participants)?;
    let open = change::open(&row);
    if open.is_err() && !is_repeat(gateway, &post, &fresh).await? {
        open?;
    }
    delegated::check(gateway, namespace, &row, &participants).await?;
    let chosen = chosen(gateway, &post, &participants).await;
    // Whoever a repeat was for may have left by now; what was taken is taken.
    let is_nobody = chosen.as_ref().is_err_and(|refused| refused.0.code == Code::InvalidRequest);
    let is_gone = is_nobody && is_repeat(gateway, &post, &fresh).await?;
    let (chosen, replied_to) = if is_gone { (Vec::new(), None) } else { chosen? };
    let (mut standing, mut rows) = (Vec::with_capacity(chosen.len()), Vec::with_capacity(chosen.len()));
    for one in chosen {
        let (how, row) = stands(gateway, &post, &one).await?;
        standing.push((one, how));
        rows.extend(row.map(|row| (row, how.is_busy)));
    }
    let mut decided = deliver::deliver_reply(&post, replied_to.as_ref(), standing.clone());
    // A repeat of what was taken is no new message: how its agents stand by now does not matter.
    if decided.is_err() && is_repeat(gateway, &post, &fresh).await? {
        let alive = Standing { status: Some(SessionStatus::Running), takes_input: true, ..Standing::default() };
        decided = deliver::deliver(&post, standing.into_iter().map(|(one, _)| (one, alive)).collect());
    }
    let deliveries = decided?;
    for delivery in &deliveries {
        let Some(action) = &delivery.action else { continue };
        let found = rows.iter().find(|(row, _)| action.session_id.as_ref() == Some(&row.key.session_id));
        if let Some((row, is_busy)) = found {
            let is_fresh = post.message.message_id == fresh;
            submit::check_own(gateway, row, action, (is_fresh, *is_busy)).await?;
        }
    }
    write(gateway, post, deliveries).await
}

/// The agents that are to answer; and the message that this one replies to.
async fn chosen(
    gateway: &Gateway,
    post: &NewPost,
    participants: &[Participant],
) -> Answer<(Vec<Addressee>, Option<Message>)> {
    let replied_to = match &post.message.reply_to_message_id {
        None => None,
        Some(id) => Some(replied_to(gateway, post, id).await?),
    };
    let chosen = addressees(&post.to, replied_to.as_ref(), participants)?;
    Ok((chosen, replied_to))
}

async fn replied_to(gateway: &Gateway, post: &NewPost, id: &MessageId) -> Answer<Message> {
    let found = read::message(&*gateway.conversations, &post.namespace, &post.conversation_id, id).await?;
    found.and_then(|row| row.record.body.to::<Message>().ok()).ok_or_else(|| {
        let what = format!("{id} is no message of this conversation; leave it out");
        Refused::field("reply_to_message_id", what)
    })
}

/// Whether this very message was taken before. One with a fresh id was not.
async fn is_repeat(gateway: &Gateway, post: &NewPost, fresh: &MessageId) -> Answer<bool> {
    let id = &post.message.message_id;
    if id == fresh {
        return Ok(false);
    }
    let found = read::message(&*gateway.conversations, &post.namespace, &post.conversation_id, id).await?;
    Ok(found.is_some_and(|row| row.record.body.to_value() == post.record.body.to_value()))
}

/// How the session of an agent stands: alive, at work, and what it takes; and its row.
async fn stands(gateway: &Gateway, post: &NewPost, to: &Addressee) -> Answer<(Standing, Option<SessionRow>)> {
    let key = SessionKey::new(post.namespace.clone(), to.session_id.clone());
    // This message itself does not count: it may be a repeat.
    let own = ids::delivery(&post.namespace, &post.conversation_id, &post.message.message_id, &key.session_id);
    let busy = gateway.conversations.is_at_work(&key, &own);
    let (row, is_busy) = tokio::try_join!(gateway.sessions.session(&key), busy)?;
    let Some(row) = row else { return Ok((Standing::default(), None)) };
    let config = row.spec.config.to_value();
    let moniker = moniker::find(&row.spec.moniker);
    let mut standing = Standing {
        status: Some(row.head.status),
        takes_input: moniker.is_none_or(|moniker| moniker.takes_input()),
        has_turns: moniker.is_none_or(|moniker| moniker.talks()),
        is_busy,
        when_busy: config["busy"].as_str().and_then(Busy::parse),
    };
    // Read only where it counts: a message to an agent without work waits for no definitions.
    if is_busy && post.busy.is_none() && standing.when_busy.is_none() {
        standing.when_busy = habit::of(gateway, &post.namespace, &row.agent_id).await?;
    }
    Ok((standing, Some(row)))
}

async fn write(gateway: &Gateway, post: NewPost, deliveries: Vec<Delivery>) -> Answer<PostAnswer> {
    let (begun, started) = (trace::begin(), Instant::now());
    let (conversation_id, message_id) = (post.conversation_id.clone(), post.message.message_id.clone());
    let whole = Post {
        namespace: post.namespace.clone(),
        conversation_id: conversation_id.clone(),
        record: post.record,
        actions: deliveries.iter().filter_map(|delivery| delivery.action.clone()).collect(),
    };
    let (offset, verdicts) = match gateway.conversations.post(whole).await? {
        Posted::Done { offset, verdicts } => (offset, verdicts),
        other => return Err(not_posted(&conversation_id, &message_id, &other)),
    };
    metrics::histogram!(metric::ACCEPT_SECONDS).record(started.elapsed().as_secs_f64());
    let mut verdicts = verdicts.into_iter();
    let mut responders = Vec::with_capacity(deliveries.len());
    for delivery in &deliveries {
        let verdict = delivery.action.as_ref().and_then(|_| verdicts.next());
        let mut answer = deliver::answer(delivery, verdict.as_ref().map(taken));
        if let Some(Verdict::Refused(refusal)) = &verdict {
            answer.detail = Some(submit::with_remedy(refusal.code, &refusal.detail));
        }
        responders.push(answer);
        if let Some(Verdict::Accepted(new)) = verdict {
            submit::accepted_at(begun, &new.action, "");
            submit::publish(gateway, new.action).await;
        }
    }
    let key = ConversationKey { namespace: post.namespace, conversation_id: conversation_id.clone() };
    gateway.live.tell(&key, News::Logged);
    Ok(PostAnswer { conversation_id, message_id, offset, responders })
}

fn taken(verdict: &Verdict) -> Taken<'_> {
    match verdict {
        Verdict::Accepted(new) => Taken::New(&new.action),
        Verdict::Repeated(old) => Taken::Before(&old.action),
        Verdict::Refused(refusal) => Taken::Refused(refusal.code, &refusal.detail),
    }
}

fn not_posted(conversation: &ConversationId, message: &MessageId, posted: &Posted) -> Refused {
    let (code, detail) = match posted {
        Posted::NotFound => (Code::ConversationNotFound, format!("There is no conversation {conversation}.")),
        Posted::Closed => {
            let detail = format!("{conversation} was closed just now: nothing is said in it any more.");
            (Code::ConversationClosed, detail)
        }
        Posted::Conflict => {
            let detail = format!(
                "{message} is in {conversation} already, and is something else. Use a fresh message_id for a new message."
            );
            (Code::MessageConflict, detail)
        }
        Posted::Done { .. } => (Code::Internal, "It was posted.".to_owned()),
    };
    Problem::new(code, detail).into()
}
