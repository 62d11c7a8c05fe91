//! One reply of a model: the turn's context as the log has it, streamed to whoever listens.

use std::sync::Arc;

use domain::chat::{CallContext, ChatCall, RequestClass};
use domain::context::estimate_request;
use domain::converse::{self, Assembly, Checks, Found, Reply, Seat, Shown, Summary, message_id};
use domain::effect::{AtHand, Outcome, TalkCall};
use domain::ports::{ConversationKey, LogQuery};
use domain::spending::Spent;
use domain::tool::{self, ResolvedTool};
use futures::FutureExt;
use schemas::conversation::LogKind;
use schemas::id::{Epoch, Namespace, SessionId, SessionKey};
use schemas::problem::Code;
use serde_json::json;
use tokio::sync::Notify;

use super::budgets::Allowance;
use super::moves::{BOUNDS, TurnLog, of_turn, turn_log};
use super::stream::{Numbers, Place, Streaming};
use super::{TalkDeps, failed, stored};

/// What is asked for.
pub(super) struct Asked<'a> {
    /// Of the reply in its turn.
    pub number: u32,
    /// Record of the newest context, where the turn has several.
    pub assembly: Option<&'a str>,
    pub without_tools: bool,
    /// Record of the newest summary.
    pub summary: Option<&'a str>,
    /// Whether a context that is over its budget is made shorter instead.
    pub may_compact: bool,
    /// What must hold for the model to be asked.
    pub checks: &'a Checks,
    /// Of whoever asks.
    pub epoch: Epoch,
    /// Of the attempts that it has told of.
    pub numbers: &'a Numbers,
}

pub(super) async fn chat(
    deps: &TalkDeps,
    place: (&Namespace, &SessionId),
    talk: &TalkCall,
    asked: Asked<'_>,
    cut: &Notify,
) -> Outcome {
    reply(deps, place, talk, asked, cut).await.map_or_else(|outcome| outcome, Outcome::from)
}

async fn reply(
    deps: &TalkDeps,
    (namespace, session): (&Namespace, &SessionId),
    talk: &TalkCall,
    asked: Asked<'_>,
    cut: &Notify,
) -> Result<Reply, Outcome> {
    let number = asked.number;
    let ((assembly, log), newest, allowance) = tokio::try_join!(
        context(deps, namespace, talk, asked.assembly),
        newest_summary(deps, namespace, talk, asked.summary),
        Allowance::read(deps, namespace, asked.checks),
    )?;
    let shown = Shown::of(&assembly, newest.as_ref(), &log);
    let mut reply = Reply { failure: shown.problem(), ..Reply::blank(&assembly, log.seen(), log.heard()) };
    if reply.failure.is_some() {
        return Ok(reply);
    }
    let request = shown.request(asked.without_tools);
    let tokens = estimate_request(&request);
    let is_long = asked.may_compact && is_over_context(&assembly, &shown, tokens, talk);
    // A request that is made shorter first is not the next one.
    let next = (!is_long).then_some((&assembly.target, tokens));
    reply.over = allowance.over(Spent::default(), next);
    reply.over_budget = is_long.then_some(tokens);
    if reply.over.is_some() || is_long {
        return Ok(reply);
    }
    let context = addressed(&assembly, talk, session);
    let id = format!("{}.{number}", talk.turn);
    let call = ChatCall { id, target: assembly.target.clone(), request, context, once: false };
    let conversation = ConversationKey { namespace: namespace.clone(), conversation_id: talk.conversation.clone() };
    let place = Place { conversation, message_id: message_id(&talk.turn, number) };
    let sink = Streaming::new(deps.live.as_ref(), place, talk.turn.clone(), asked.numbers, asked.epoch);
    // Not afterwards: what was paid for is not held up.
    reply.seats = seats(deps, namespace, talk, &reply.tools).await?;
    if cut.notified().now_or_never().is_some() {
        // Nobody was asked, so nothing was used.
        reply.cut = Some(String::new());
        return Ok(reply);
    }
    tokio::select! {
        biased;
        outcome = deps.models.chat(&call, Some(&sink)) => {
            reply.record = Some(outcome.record);
            match outcome.result {
                Ok(answer) => reply.reply = Some(answer),
                Err(failure) => reply.failure = Some(failure),
            }
        }
        // By now the call is dropped.
        () = cut.notified() => (reply.cut, reply.record) = (Some(sink.said()), sink.used()),
    }
    reply.messages = call.request.messages;
    // What was spent by then is not read anew: what was paid for is not held up.
    let namespace = allowance.namespace.map(|(budget, spent)| (budget.clone(), spent));
    reply.found = Found { at_ms: deps.clock.now_ms(), namespace };
    Ok(reply)
}

/// Agents that take part already, where the model may ask for them.
async fn seats(
    deps: &TalkDeps,
    namespace: &Namespace,
    talk: &TalkCall,
    tools: &[ResolvedTool],
) -> Result<Vec<Seat>, Outcome> {
    let mut found: Vec<Seat> = Vec::new();
    if tool::may_join(tools).is_empty() {
        return Ok(found);
    }
    let here = stored(|| deps.conversations.participants(namespace, &talk.conversation)).await?;
    for seat in converse::seats(&here, tools) {
        if found.iter().any(|known| known.agent_id == seat.agent_id) {
            continue;
        }
        let key = SessionKey::new(namespace.clone(), seat.session_id.clone());
        let row = stored(|| deps.sessions.session(&key)).await?;
        if row.is_some_and(|row| converse::can_be_asked(&row.spec.moniker, row.head.status)) {
            found.push(seat);
        }
    }
    Ok(found)
}

fn addressed(assembly: &Assembly, talk: &TalkCall, session: &SessionId) -> CallContext {
    CallContext {
        conversation_id: talk.conversation.to_string(),
        turn_id: talk.turn.to_string(),
        agent: assembly.agent_name.clone(),
        parent_turn_id: talk.parent.as_ref().map(ToString::to_string),
        request_class: Some(RequestClass::Interactive),
        metadata: [("session_id".to_owned(), json!(session))].into_iter().collect(),
    }
}

/// Whether a request can, and should, be smaller.
fn is_over_context(assembly: &Assembly, shown: &Shown<'_>, tokens: u64, talk: &TalkCall) -> bool {
    let place = (&talk.conversation, &talk.turn);
    let limits = assembly.limits.context.as_ref();
    limits.is_some_and(|limits| tokens > limits.tokens && shown.due(place, limits, false).is_some())
}

/// The context that the turn began with, or the one that was made anew; and the turn's records.
pub(super) async fn context(
    deps: &TalkDeps,
    namespace: &Namespace,
    talk: &TalkCall,
    newest: Option<&str>,
) -> Result<(Arc<Assembly>, TurnLog), Outcome> {
    let log = turn_log(deps, namespace, talk, BOUNDS);
    match &talk.at_hand {
        Some(AtHand { context, is_all: true }) => Ok((context.clone(), TurnLog::default())),
        Some(AtHand { context, is_all: false }) => Ok((context.clone(), log.await?)),
        None => tokio::try_join!(assembly(deps, namespace, talk, newest), log),
    }
}

/// The context as the log has it. Those before it may be large, and many.
async fn assembly(
    deps: &TalkDeps,
    namespace: &Namespace,
    talk: &TalkCall,
    newest: Option<&str>,
) -> Result<Arc<Assembly>, Outcome> {
    let row = match newest {
        Some(id) => stored(|| deps.conversations.record(namespace, &talk.conversation, id)).await?,
        None => {
            let of_turn = of_turn(namespace, talk, &[LogKind::Assembly]);
            let query = LogQuery { descending: true, limit: 1, ..of_turn };
            stored(|| deps.conversations.log(&query)).await?.pop()
        }
    };
    let missing = || failed(Code::Internal, format!("the context of turn {} is missing or damaged", talk.turn));
    row.and_then(|row| row.record.body.to::<Assembly>().ok()).map(Arc::new).ok_or_else(missing)
}

/// The newest summary of the conversation.
pub(super) async fn newest_summary(
    deps: &TalkDeps,
    namespace: &Namespace,
    talk: &TalkCall,
    id: Option<&str>,
) -> Result<Option<Summary>, Outcome> {
    let Some(id) = id else { return Ok(None) };
    let row = stored(|| deps.conversations.record(namespace, &talk.conversation, id)).await?;
    let missing = || failed(Code::Internal, format!("the summary {id} is missing or damaged"));
    row.and_then(|row| row.record.body.to::<Summary>().ok()).map(Some).ok_or_else(missing)
}
