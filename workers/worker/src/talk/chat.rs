//! One reply of a model: the turn's context as the log has it, streamed to whoever listens.

use domain::chat::{CallContext, ChatCall, RequestClass};
use domain::converse::{Assembly, Reply, message_id, request_of};
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

pub(super) async fn chat(
    deps: &TalkDeps,
    (namespace, session): (&Namespace, &SessionId),
    talk: &TalkCall,
    number: u32,
    without_tools: bool,
    cut: &Notify,
) -> Outcome {
    let rows = match rows(deps, namespace, talk).await {
        Ok(rows) => rows,
        Err(outcome) => return outcome,
    };
    let assembled = rows.iter().rev().find(|row| row.record.kind == LogKind::Assembly);
    let Some(assembly) = assembled.and_then(|row| row.record.body.to::<Assembly>().ok()) else {
        return failed(Code::Internal, format!("the context of turn {} is missing or damaged", talk.turn));
    };
    let request = request_of(&assembly, &rows, without_tools);
    let context = CallContext {
        conversation_id: talk.conversation.to_string(),
        turn_id: talk.turn.to_string(),
        agent: assembly.agent_name.clone(),
        parent_turn_id: assembly.recent_turns.last().map(|turn| turn.turn_id.to_string()),
        request_class: Some(RequestClass::Interactive),
        metadata: [("session_id".to_owned(), json!(session))].into_iter().collect(),
    };
    let messages = request.messages.clone();
    let call = ChatCall { id: format!("{}.{number}", talk.turn), target: assembly.target.clone(), request, context };
    let key = ConversationKey { namespace: namespace.clone(), conversation_id: talk.conversation.clone() };
    let sink = Streaming::new(deps.live.as_ref(), key, talk.turn.clone(), message_id(&talk.turn, number));
    let mut reply = Reply {
        reply: None,
        failure: None,
        cut: None,
        record: None,
        agent_name: assembly.agent_name,
        tools: assembly.tools,
        constraints: assembly.constraints,
        seen: rows.last().map_or(0, |row| row.offset),
        messages,
    };
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
    match serde_json::to_value(&reply) {
        Ok(value) => Outcome::Ok(value),
        Err(error) => failed(Code::Internal, error.to_string()),
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
