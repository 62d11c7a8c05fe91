//! One piece of what is old becomes a summary: a model is asked, the batch is archived, and only then is
//! the step told, which takes the messages out of the context (SPEC A-CMP-05).

use domain::chat::{
    CallContext, ChatCall, ChatFailure, ChatReply, ChatRequest, ErrorCategory, Finish, Message, ProviderCallRecord,
    RequestClass,
};
use domain::context::estimate_request;
use domain::converse::{Assembly, Checks, Compacted, Extent, Shown, Summarised, Summary};
use domain::effect::{Outcome, TalkCall};
use domain::memory::{MemoryKey, NewMemory};
use domain::recall;
use domain::spending::Spent;
use schemas::id::{MemoryId, Namespace, SessionId};
use schemas::memory::{MemoryChange, MemoryOwner};
use schemas::problem::Code;
use tokio::sync::Notify;

use super::budgets::Allowance;
use super::chat::{context, newest_summary};
use super::{TalkDeps, ask_until_cut, failed, stored};

/// Ids that are tried for a batch of which somebody has deleted an earlier copy.
const IDS_TRIED: u32 = 8;

/// What is asked for.
pub(super) struct Asked<'a> {
    /// Of the piece in its turn.
    pub number: u32,
    /// Record of the newest context, where the turn has several.
    pub assembly: Option<&'a str>,
    /// Record of the newest summary.
    pub summary: Option<&'a str>,
    /// By a tool call: as much as there is.
    pub by_tool: bool,
    pub without_model: bool,
    /// What must hold for the model to be asked.
    pub checks: &'a Checks,
    /// Whose summary it becomes.
    pub session: &'a SessionId,
}

pub(super) async fn compact(
    deps: &TalkDeps,
    namespace: &Namespace,
    talk: &TalkCall,
    asked: Asked<'_>,
    cut: &Notify,
) -> Outcome {
    piece(deps, namespace, talk, &asked, cut).await.map_or_else(|outcome| outcome, Outcome::from)
}

async fn piece(
    deps: &TalkDeps,
    namespace: &Namespace,
    talk: &TalkCall,
    asked: &Asked<'_>,
    cut: &Notify,
) -> Result<Compacted, Outcome> {
    let (assembly, rows) = context(deps, namespace, talk, asked.assembly).await?;
    let newest = newest_summary(deps, namespace, talk, asked.summary).await?;
    let owner = MemoryOwner { namespace: namespace.clone(), agent_id: talk.agent.clone() };
    forget(deps, &owner, newest.as_ref()).await?;
    let shown = Shown::of(&assembly, newest.as_ref(), &rows);
    forget(deps, &owner, shown.turn_summary()).await?;
    let request = shown.request(false);
    let mut compacted = Compacted { tokens: estimate_request(&request), ..Compacted::default() };
    let place = (&talk.conversation, &talk.turn);
    let Some(limits) = &assembly.limits.context else { return Ok(compacted) };
    let Some(due) = shown.due(place, limits, asked.by_tool) else { return Ok(compacted) };
    let due = match due.scope {
        // A turn is of one session.
        Extent::Turn => due,
        Extent::Conversation => {
            let here = stored(|| deps.conversations.participants(namespace, &talk.conversation)).await?;
            due.of_session((&talk.agent, asked.session), &here)
        }
    };
    // Without the summary that stands behind it: that is told as what there is.
    let persona = request.messages.first().map(Message::plain_text).unwrap_or_default();
    let job = due.job(&talk.conversation, limits, &persona);
    let Some(piece) = job.next() else { return Ok(compacted) };
    let summary = if asked.without_model {
        job.extract(piece)
    } else {
        let call = summary_call(talk, &assembly, job.request(piece), asked.number);
        let asking = Asking { deps, allowance: Allowance::read(deps, namespace, asked.checks).await?, cut };
        let text = asking.summarise(call, job.answer_tokens_max(), &mut compacted).await;
        match text {
            Some(text) => text,
            // A piece can do without a model, so nobody is asked for more.
            None if compacted.over.is_some() => job.extract(piece),
            None => return Ok(compacted),
        }
    };
    match job.close(piece, &summary) {
        Err(blank) => compacted.failure = Some(blank.to_string()),
        Ok(made) => {
            archive(deps, &owner, &made.archive).await?;
            let base = asked.summary.map(str::to_owned);
            let summary = Summary::after(due.scope, due.upto, &made, &limits.compaction);
            compacted.made = Some(Summarised { summary, base, messages: made.messages });
        }
    }
    Ok(compacted)
}

/// How the model of a piece is asked.
struct Asking<'a> {
    deps: &'a TalkDeps,
    allowance: Allowance<'a>,
    cut: &'a Notify,
}

impl Asking<'_> {
    /// Asks the agent's model, or the one that its persona has for summaries. `None`: there is no summary, and
    /// `compacted` says why. A model that takes no temperature is asked once more without one, and one whose thoughts
    /// took all the room that its text should have had, with four times as much, up to `most` tokens.
    async fn summarise(&self, mut call: ChatCall, most: u32, compacted: &mut Compacted) -> Option<String> {
        let mut result = self.ask(&call, compacted).await?;
        if result.as_ref().is_err_and(|failure| refuses_sampling(failure, compacted.record.as_ref())) {
            (call.request.parameters.temperature, call.request.parameters.top_p) = (None, None);
            result = self.ask(&call, compacted).await?;
        }
        let bound = call.request.parameters.max_tokens;
        let wider = bound.map(|bound| bound.saturating_mul(4).min(most)).filter(|wider| Some(*wider) > bound);
        let is_all_thoughts = |reply: &ChatReply| reply.finish == Finish::Length && reply.text().trim().is_empty();
        if wider.is_some() && result.as_ref().is_ok_and(is_all_thoughts) {
            call.request.parameters.max_tokens = wider;
            result = self.ask(&call, compacted).await?;
        }
        match result {
            Ok(reply) => Some(reply.text()),
            Err(failure) => {
                compacted.failure = Some(failure.message);
                None
            }
        }
    }

    /// Makes one call, and counts it. `None`: a budget is used up, or the call was cut short.
    async fn ask(&self, call: &ChatCall, compacted: &mut Compacted) -> Option<Result<ChatReply, ChatFailure>> {
        // What was spent by others meanwhile is not read anew: what was paid for is not held up.
        let request = (&call.target, estimate_request(&call.request));
        compacted.over = self.allowance.over(unrecorded(compacted), Some(request));
        if compacted.over.is_some() {
            return None;
        }
        match ask_until_cut(self.deps, call, self.cut).await {
            Ok(outcome) => {
                count(compacted, Some(outcome.record));
                Some(outcome.result)
            }
            Err(record) => {
                compacted.cut = true;
                count(compacted, record);
                None
            }
        }
    }
}

/// What earlier calls for the same piece have used. They are one call with it: their record is one.
fn unrecorded(compacted: &Compacted) -> Spent {
    let spent = compacted.record.as_ref().map(Spent::of_call).unwrap_or_default();
    Spent { calls: 0, ..spent }
}

/// Whether a model takes the request but for how it is to choose its words: those that think know no temperature.
fn refuses_sampling(failure: &ChatFailure, record: Option<&ProviderCallRecord>) -> bool {
    let status = record.and_then(|record| record.outcome.as_ref()?.status);
    let is_named = ["temperature", "top_p"].iter().any(|name| failure.message.contains(name));
    failure.category == ErrorCategory::Validation && status == Some(400) && is_named
}

/// A piece has one record, that of its last call; what calls before it used is added.
fn count(compacted: &mut Compacted, record: Option<ProviderCallRecord>) {
    let before = compacted.record.take();
    compacted.record = match (record, before) {
        (Some(mut record), Some(before)) => {
            record.add(&before);
            Some(record)
        }
        (record, before) => record.or(before),
    };
}

/// As work that nobody waits for.
fn summary_call(talk: &TalkCall, assembly: &Assembly, request: ChatRequest, number: u32) -> ChatCall {
    let context = CallContext {
        conversation_id: talk.conversation.to_string(),
        turn_id: talk.turn.to_string(),
        agent: assembly.agent_name.clone(),
        request_class: Some(RequestClass::Background),
        ..CallContext::default()
    };
    let target = assembly.summariser.as_ref().unwrap_or(&assembly.target).clone();
    ChatCall { id: format!("{}.compact.{number}", talk.turn), target, request, context, once: false }
}

/// Durable when it returns.
async fn archive(deps: &TalkDeps, owner: &MemoryOwner, memory: &NewMemory) -> Result<(), Outcome> {
    for n in 0..IDS_TRIED {
        let again = MemoryId::parse(&format!("{}-{n}", memory.id)).ok().filter(|_| n > 0);
        let memory = NewMemory { id: again.unwrap_or_else(|| memory.id.clone()), ..memory.clone() };
        let write = || recall::keep(deps.memories.as_ref(), deps.embedder.as_ref(), owner, memory.clone());
        let kept = stored(write).await?;
        if let Some(failure) = kept.not_embedded {
            tracing::warn!(%failure, "a summary could not be embedded; it is found by words alone");
        }
        // An id that was deleted is not written again; the text still has to be there.
        if kept.value.change != MemoryChange::Gone {
            return Ok(());
        }
    }
    Err(failed(Code::Internal, format!("the summary {} cannot be archived: it is deleted again and again", memory.id)))
}

/// Deletes batches that others stand for. The record that says so is there, so nothing is lost.
async fn forget(deps: &TalkDeps, owner: &MemoryOwner, summary: Option<&Summary>) -> Result<(), Outcome> {
    for label in summary.iter().flat_map(|summary| &summary.forget) {
        let key = MemoryKey::Label(label.clone());
        stored(|| deps.memories.delete(owner, &key)).await?;
    }
    Ok(())
}
