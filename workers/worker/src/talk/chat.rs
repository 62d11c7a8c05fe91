//! One reply of a model: the turn's context as the log has it, streamed to whoever listens.

use domain::chat::{CallContext, ChatCall, RequestClass};
use domain::converse::{Assembly, Checks, Over, Reply, message_id, request_of};
use domain::effect::{Outcome, TalkCall};
use domain::ports::{ConversationKey, LogQuery};
use schemas::conversation::{LogKind, LogRow};
use schemas::id::{Namespace, SessionId};
use schemas::limits::MODEL_REQUEST_BYTES_MAX;
use schemas::problem::Code;
use serde_json::json;
use tokio::sync::Notify;

use super::stream::Streaming;
use super::{TalkDeps, failed, stored};

/// Records of one turn that its model is shown.
const ROWS_MAX: usize = 10_000;
const KINDS: [LogKind; 5] =
    [LogKind::Assembly, LogKind::Move, LogKind::ToolResult, LogKind::AsyncResult, LogKind::Note];

/// Which reply is wanted.
pub(super) struct Wanted<'w> {
    pub number: u32,
    pub without_tools: bool,
    /// What must hold for the model to be asked.
    pub checks: &'w Checks,
}

pub(super) async fn chat(
    deps: &TalkDeps,
    place: (&Namespace, &SessionId),
    talk: &TalkCall,
    wanted: &Wanted<'_>,
    cut: &Notify,
) -> Outcome {
    let reply = match over(deps, place.0, wanted.checks).await {
        Ok(over) => replied(deps, place, talk, (wanted, over), cut).await,
        Err(outcome) => Err(outcome),
    };
    match reply.map(|reply| serde_json::to_value(&reply)) {
        Ok(Ok(value)) => Outcome::Ok(value),
        Ok(Err(error)) => failed(Code::Internal, error.to_string()),
        Err(outcome) => outcome,
    }
}

/// What only a clock and the store know of budgets.
async fn over(deps: &TalkDeps, namespace: &Namespace, checks: &Checks) -> Result<Option<Over>, Outcome> {
    let now_ms = deps.clock.now_ms();
    let Some(budget) = deps.budgets.get(namespace) else { return Ok(checks.over(now_ms, None)) };
    let spent = stored(|| deps.conversations.spent(namespace)).await?;
    Ok(checks.over(now_ms, Some((budget, &spent))))
}

async fn replied(
    deps: &TalkDeps,
    (namespace, session): (&Namespace, &SessionId),
    talk: &TalkCall,
    (wanted, over): (&Wanted<'_>, Option<Over>),
    cut: &Notify,
) -> Result<Reply, Outcome> {
    let number = wanted.number;
    let rows = rows(deps, namespace, talk).await?;
    let assembled = rows.iter().rev().find(|row| row.record.kind == LogKind::Assembly);
    let Some(assembly) = assembled.and_then(|row| row.record.body.to::<Assembly>().ok()) else {
        return Err(failed(Code::Internal, format!("the context of turn {} is missing or damaged", talk.turn)));
    };
    let request = request_of(&assembly, &rows, wanted.without_tools);
    let context = context(&assembly, talk, session);
    let messages = request.messages.clone();
    let call = ChatCall { id: format!("{}.{number}", talk.turn), target: assembly.target.clone(), request, context };
    let key = ConversationKey { namespace: namespace.clone(), conversation_id: talk.conversation.clone() };
    let sink = Streaming::new(deps.live.as_ref(), key, talk.turn.clone(), message_id(&talk.turn, number));
    let mut reply = Reply {
        reply: None,
        failure: None,
        cut: None,
        record: None,
        over,
        agent_name: assembly.agent_name,
        tools: assembly.tools,
        constraints: assembly.constraints,
        seen: rows.last().map_or(0, |row| row.offset),
        messages,
    };
    if reply.over.is_some() {
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
        () = cut.notified() => reply.cut = Some(sink.said()),
    }
    Ok(reply)
}

fn context(assembly: &Assembly, talk: &TalkCall, session: &SessionId) -> CallContext {
    CallContext {
        conversation_id: talk.conversation.to_string(),
        turn_id: talk.turn.to_string(),
        agent: assembly.agent_name.clone(),
        parent_turn_id: assembly.recent_turns.last().map(|turn| turn.turn_id.to_string()),
        request_class: Some(RequestClass::Interactive),
        metadata: [("session_id".to_owned(), json!(session))].into_iter().collect(),
    }
}

async fn rows(deps: &TalkDeps, namespace: &Namespace, talk: &TalkCall) -> Result<Vec<LogRow>, Outcome> {
    let query = LogQuery {
        namespace: namespace.clone(),
        conversation_id: talk.conversation.clone(),
        kinds: KINDS.to_vec(),
        turn_id: Some(talk.turn.clone()),
        after: 0,
        before: None,
        since_ms: None,
        descending: false,
        limit: ROWS_MAX,
        bytes: MODEL_REQUEST_BYTES_MAX,
    };
    stored(|| deps.conversations.log(&query)).await
}
