//! Gathers what a turn's context is made of. The built-in strategy: what the agent is, what was said
//! and done in the recent turns, and what goes on beside.

use std::sync::Arc;
use std::time::Duration;

use domain::converse::{Assembly, Gathered, Settings, TurnSnapshot};
use domain::effect::{Outcome, PendingView, TalkCall};
use domain::ports::{ConversationKey, TurnQuery};
use schemas::conversation::{LogRow, Message, Turn, TurnStatus};
use schemas::id::{MessageId, Namespace};
use schemas::json::Json;
use schemas::problem::Code;
use serde::Deserialize;
use tokio::time::timeout;

use super::history::history;
use super::hooks::{self, TurnPlace};
use super::memory::Recalled;
use super::persona::{self, Resolved};
use super::{TalkDeps, attempts, failed, memory, stored};

/// How long what came before is waited for ahead of who the agent is.
const AHEAD_MAX: Duration = Duration::from_secs(5);
/// Active turns whose messages are left to them.
const ACTIVE_MAX: usize = 200;

/// What the moniker says beside the session's settings.
#[derive(Deserialize)]
struct Asked {
    #[serde(flatten)]
    settings: Settings,
    #[serde(default)]
    notes: Vec<String>,
    /// Record of the newest summary that the session knows of.
    #[serde(default)]
    summary: Option<String>,
    input_message_id: MessageId,
}

/// What is known of a turn before its context is made.
#[derive(Clone)]
pub(super) struct Start {
    pub resolved: Resolved,
    pub notes: Vec<String>,
    /// Record of the newest summary.
    pub summary: Option<String>,
    /// The message that started the turn.
    pub input: Message,
    pub recalled: Recalled,
    /// Its agent works for one caller alone.
    pub is_delegate: bool,
    /// What goes on beside and came before, where it is known how far back the agent looks.
    pub lately: Option<Arc<Lately>>,
    pub pending: Vec<PendingView>,
}

/// What goes on beside a turn, and what came before it.
pub(super) struct Lately {
    /// Turns that it goes back.
    recent: usize,
    turns: Vec<Turn>,
    active: Vec<Turn>,
    history: Vec<LogRow>,
}

/// Who the agent is decides who makes its context.
pub(super) async fn assemble(
    deps: &TalkDeps,
    namespace: &Namespace,
    talk: &TalkCall,
    settings: &Json,
    pending: &[PendingView],
) -> Outcome {
    let turn = TurnPlace { deps, namespace, talk };
    assembled(turn, settings, pending).await.map_or_else(|outcome| outcome, Outcome::from)
}

async fn assembled(turn: TurnPlace<'_>, settings: &Json, pending: &[PendingView]) -> Result<Assembly, Outcome> {
    let asked: Asked = settings.to().map_err(|error| failed(Code::Internal, error.to_string()))?;
    // What is remembered hangs on the input alone, and an agent looks as far back as it did last: nobody waits for
    // who the agent is before that is read.
    let (resolved, (input, recalled, lately)) = tokio::try_join!(
        persona::resolve(turn.deps, turn.namespace, &turn.talk.agent, &asked.settings),
        remembered(turn, &asked),
    )?;
    let workflow = resolved.persona.context_assembly_workflow_id.clone();
    let hooks = hooks::of(workflow.as_ref(), "context_assembly_workflow_id")?;
    let Asked { settings, notes, summary, .. } = asked;
    let (is_delegate, pending) = (settings.single_turn, pending.to_vec());
    let start = Start { resolved, notes, summary, input, recalled, is_delegate, lately, pending };
    attempts::assemble(hooks, turn, start).await
}

/// All that the built-in strategy makes a context of.
pub(super) async fn gather(turn: TurnPlace<'_>, start: Start) -> Result<Gathered, Outcome> {
    let talk = turn.talk;
    let Start { resolved, notes, summary, input, recalled, is_delegate, lately, pending } = start;
    let recent_limit = usize::try_from(resolved.persona.recent_turns_limit).unwrap_or(usize::MAX);
    let lately = match lately.filter(|lately| lately.recent == recent_limit) {
        Some(lately) => lately,
        None => Arc::new(look_back(turn, recent_limit, summary.as_deref()).await?),
    };
    let Lately { turns, active, history, .. } = &*lately;
    let replied = replied(turn, &input, history).await?;
    let Recalled { blocks, found } = recalled;
    Ok(Gathered {
        turn: talk.turn.clone(),
        agent: talk.agent.clone(),
        agent_name: resolved.name,
        project_ids: resolved.project_ids,
        persona: resolved.persona,
        target: resolved.target,
        parameters: resolved.parameters,
        model_max_tokens: resolved.model_max_tokens,
        summariser: resolved.summariser,
        tools: resolved.tools,
        history: history.clone(),
        input,
        replied,
        is_delegate,
        in_work: active.iter().map(|turn| turn.input_message_id.clone()).collect(),
        active: active.iter().map(|turn| turn.turn_id.clone()).collect(),
        recent: recent(turns, talk, recent_limit),
        blocks,
        found,
        pending: pending.into_iter().filter(|one| one.turn_id != talk.turn).collect(),
        notes,
    })
}

/// What the input replies to: that may lie far before all that the turn looks at. One that is not there is not quoted.
async fn replied(turn: TurnPlace<'_>, input: &Message, history: &[LogRow]) -> Result<Option<Message>, Outcome> {
    let Some(id) = &input.reply_to_message_id else { return Ok(None) };
    if let Some(row) = history.iter().rev().find(|row| row.record.id == id.as_str()) {
        return Ok(row.record.body.to::<Message>().ok());
    }
    let TurnPlace { deps, namespace, talk } = turn;
    let row = stored(|| deps.conversations.record(namespace, &talk.conversation, id.as_str())).await?;
    Ok(row.and_then(|row| row.record.body.to::<Message>().ok()))
}

/// The turns before this one, oldest first. Its own may be among them, or not yet.
fn recent(turns: &[Turn], talk: &TalkCall, limit: usize) -> Vec<TurnSnapshot> {
    let others = turns.iter().filter(|turn| turn.turn_id != talk.turn).take(limit);
    let mut others: Vec<TurnSnapshot> = others.map(snapshot).collect();
    others.reverse();
    others
}

fn snapshot(turn: &Turn) -> TurnSnapshot {
    TurnSnapshot { turn_id: turn.turn_id.clone(), status: turn.status.as_str().to_owned(), moves: turn.moves }
}

async fn turns(
    deps: &TalkDeps,
    namespace: &Namespace,
    talk: &TalkCall,
    status: Option<TurnStatus>,
    limit: usize,
) -> Result<Vec<Turn>, Outcome> {
    let query = TurnQuery {
        namespace: namespace.clone(),
        conversation_id: Some(talk.conversation.clone()),
        session_id: None,
        status,
        after: None,
        descending: true,
        limit,
    };
    stored(|| deps.conversations.turns(&query)).await
}

/// Other turns of the agent that are not over.
async fn turns_in_work(deps: &TalkDeps, namespace: &Namespace, talk: &TalkCall) -> Result<Vec<Turn>, Outcome> {
    let mut active = turns(deps, namespace, talk, Some(TurnStatus::Active), ACTIVE_MAX).await?;
    active.retain(|turn| turn.turn_id != talk.turn && turn.agent_id == talk.agent);
    Ok(active)
}

async fn look_back(turn: TurnPlace<'_>, recent: usize, summary: Option<&str>) -> Result<Lately, Outcome> {
    let TurnPlace { deps, namespace, talk } = turn;
    let history = history(deps, namespace, talk, recent, summary);
    let ((turns, active), history) = tokio::try_join!(others(turn, recent), history)?;
    Ok(Lately { recent, turns, active, history })
}

/// Turns of the conversation, newest first, and those of the agent that are not over.
async fn others(turn: TurnPlace<'_>, recent: usize) -> Result<(Vec<Turn>, Vec<Turn>), Outcome> {
    let TurnPlace { deps, namespace, talk } = turn;
    let newest = turns(deps, namespace, talk, None, recent.saturating_add(1));
    tokio::try_join!(newest, turns_in_work(deps, namespace, talk))
}

type Remembered = (Message, Recalled, Option<Arc<Lately>>);

/// The message that started the turn, what is remembered of its kind, and what came before it, as far back as
/// the last turn here has looked.
async fn remembered(turn: TurnPlace<'_>, asked: &Asked) -> Result<Remembered, Outcome> {
    let TurnPlace { deps, namespace, talk } = turn;
    let id = &asked.input_message_id;
    let key = ConversationKey { namespace: namespace.clone(), conversation_id: talk.conversation.clone() };
    let Some(recent) = deps.ends.recent(&key) else {
        let input = input(deps, namespace, talk, id).await?;
        let recalled = memory::recalled(deps, namespace, talk, &input).await?;
        return Ok((input, recalled, None));
    };
    // What does not come soon is read again by the attempts at the context, which have bounds of their own.
    let said = async {
        let history = history(deps, namespace, talk, recent, asked.summary.as_deref());
        let history = timeout(AHEAD_MAX, history).await.ok().transpose()?;
        let input = match history.iter().flatten().rev().find(|row| row.record.id == id.as_str()) {
            Some(row) => message_of(row, id)?,
            None => input(deps, namespace, talk, id).await?,
        };
        let recalled = memory::recalled(deps, namespace, talk, &input).await?;
        Ok((history, input, recalled))
    };
    let beside = async { timeout(AHEAD_MAX, others(turn, recent)).await.ok().transpose() };
    let ((history, input, recalled), beside) = tokio::try_join!(said, beside)?;
    let lately = history.zip(beside);
    let lately = lately.map(|(history, (turns, active))| Arc::new(Lately { recent, turns, active, history }));
    Ok((input, recalled, lately))
}

/// The message that started the turn, however old it is: much may be said while a turn is queued.
async fn input(deps: &TalkDeps, namespace: &Namespace, talk: &TalkCall, id: &MessageId) -> Result<Message, Outcome> {
    // Not by its turn: a message that starts several names none of them.
    let row = stored(|| deps.conversations.record(namespace, &talk.conversation, id.as_str())).await?;
    let missing = || failed(Code::Internal, format!("the message {id} that started the turn is not found"));
    message_of(&row.ok_or_else(missing)?, id)
}

fn message_of(row: &LogRow, id: &MessageId) -> Result<Message, Outcome> {
    let damaged = |error| failed(Code::Internal, format!("the message {id} that started the turn is damaged: {error}"));
    row.record.body.to::<Message>().map_err(damaged)
}
