//! One reply of a model: the turn's context as the log has it, streamed to whoever listens.

use domain::chat::{CallContext, ChatCall, ChatRequest, RequestClass};
use domain::context::estimate_request;
use domain::converse::{Assembly, Checks, Over, Reply, Shown, Summary, message_id};
use domain::effect::{Outcome, TalkCall};
use domain::ports::{ConversationKey, LogQuery};
use schemas::conversation::{LogKind, LogRow};
use schemas::id::{Epoch, Namespace, SessionId};
use schemas::limits::MODEL_REQUEST_BYTES_MAX;
use schemas::problem::Code;
use serde_json::json;
use tokio::sync::Notify;

use super::stream::Streaming;
use super::{TalkDeps, failed, stored};

/// Records of one turn that its model is shown.
const ROWS_MAX: usize = 10_000;
const KINDS: [LogKind; 6] =
    [LogKind::Assembly, LogKind::Move, LogKind::ToolResult, LogKind::AsyncResult, LogKind::Note, LogKind::Summary];

/// What is asked for.
pub(super) struct Asked<'a> {
    /// Of the reply in its turn.
    pub number: u32,
    pub without_tools: bool,
    /// Record of the newest summary.
    pub summary: Option<&'a str>,
    /// Whether a context that is over its budget is made shorter instead.
    pub may_compact: bool,
    /// What must hold for the model to be asked.
    pub checks: &'a Checks,
    /// Of whoever asks.
    pub epoch: Epoch,
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
    let over = over(deps, namespace, asked.checks).await?;
    let rows = rows(deps, namespace, talk).await?;
    let assembly = assembly_of(&rows, talk)?;
    let newest = newest_summary(deps, namespace, talk, asked.summary).await?;
    let shown = Shown::of(&assembly, newest.as_ref(), &rows);
    let request = shown.request(asked.without_tools);
    let over_budget = tokens_over_budget(&assembly, &shown, &request, talk).filter(|_| asked.may_compact);
    let context = context(&assembly, talk, session);
    let call = ChatCall { id: format!("{}.{number}", talk.turn), target: assembly.target.clone(), request, context };
    let key = ConversationKey { namespace: namespace.clone(), conversation_id: talk.conversation.clone() };
    let message = message_id(&talk.turn, number);
    let sink = Streaming::new(deps.live.as_ref(), key, talk.turn.clone(), message, asked.epoch);
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
        messages: Vec::new(),
        over_budget,
    };
    if reply.over.is_some() || over_budget.is_some() {
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
    reply.messages = call.request.messages;
    Ok(reply)
}

/// What only a clock and the store know of budgets.
async fn over(deps: &TalkDeps, namespace: &Namespace, checks: &Checks) -> Result<Option<Over>, Outcome> {
    let now_ms = deps.clock.now_ms();
    let Some(budget) = deps.budgets.get(namespace) else { return Ok(checks.over(now_ms, None)) };
    let spent = stored(|| deps.conversations.spent(namespace)).await?;
    Ok(checks.over(now_ms, Some((budget, &spent))))
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

/// How large a request is that can, and should, be smaller.
fn tokens_over_budget(assembly: &Assembly, shown: &Shown<'_>, request: &ChatRequest, talk: &TalkCall) -> Option<u64> {
    let limits = assembly.limits.context.as_ref()?;
    let tokens = estimate_request(request);
    let is_over = tokens > limits.tokens && shown.due((&talk.conversation, &talk.turn), limits, false).is_some();
    is_over.then_some(tokens)
}

/// The context that the turn began with.
pub(super) fn assembly_of(rows: &[LogRow], talk: &TalkCall) -> Result<Assembly, Outcome> {
    let assembled = rows.iter().rev().find(|row| row.record.kind == LogKind::Assembly);
    let missing = || failed(Code::Internal, format!("the context of turn {} is missing or damaged", talk.turn));
    assembled.and_then(|row| row.record.body.to::<Assembly>().ok()).ok_or_else(missing)
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

/// The records of the turn that its context is made of, in the order of the log.
pub(super) async fn rows(deps: &TalkDeps, namespace: &Namespace, talk: &TalkCall) -> Result<Vec<LogRow>, Outcome> {
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
