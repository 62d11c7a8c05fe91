//! What an agent remembers, on its way into a context and out of a turn (SPEC 1.22, 1.23). The
//! built-in strategies: core and working memory always, what fits the input by search; and a short
//! note of each turn.

use std::sync::{LazyLock, Mutex, PoisonError};
use std::time::Duration;

use domain::context::MemoryBlock;
use domain::effect::{Outcome, TalkCall};
use domain::failure::Failure;
use domain::memory::input::{MemorySearch, MemoryWrite};
use domain::memory::kept::lacks_content;
use domain::memory::{MemoryFilter, MemoryKey, blocks};
use domain::outage::Seldom;
use domain::ports::{LogQuery, MemoryListQuery};
use domain::recall;
use schemas::conversation::{LogKind, Message, MessageRole};
use schemas::id::{MemoryId, Namespace};
use schemas::limits::{MEMORY_HITS_MAX, MEMORY_INLINE_BYTES_MAX, MEMORY_PAGE_MAX, PAGE_BYTES_MAX};
use schemas::memory::{Memory, MemoryOwner, MemoryTier};
use serde_json::json;
use tokio::time::{Instant, timeout};

use super::hooks::{self, TurnPlace};
use super::{TalkDeps, attempts, persona, stored};

/// Pages of a tier that are read: what is significant may be old.
const TIER_PAGES_MAX: usize = 5;
/// Memories that are shown because they fit the input.
const FOUND_MAX: usize = 5;
/// Hits that have less to do with the input are not shown.
const RELEVANCE_MIN: f64 = 0.35;
/// Of the input, so much is searched for.
const QUERY_CHARS_MAX: usize = 2_000;
/// How long a turn waits for a search, each of two times.
const SEARCH_MAX: Duration = Duration::from_secs(10);
/// Messages of one turn that are looked at.
const SAID_MAX: usize = 1_000;
/// Of each side of a turn, so much is remembered: about 1 KB in all (SPEC W-MEM-08).
const SAID_CHARS_MAX: usize = 480;
/// A turn is worth less than what the agent itself found worth keeping.
const TURN_SIGNIFICANCE: f64 = 0.2;

/// What an agent remembers for a turn.
#[derive(Debug, Clone, Default, PartialEq)]
pub(super) struct Recalled {
    /// Core and working memory.
    pub blocks: Vec<MemoryBlock>,
    /// What fits the input, best first.
    pub found: Vec<String>,
}

pub(super) async fn recalled(
    deps: &TalkDeps,
    namespace: &Namespace,
    talk: &TalkCall,
    input: &Message,
) -> Result<Recalled, Outcome> {
    let owner = MemoryOwner { namespace: namespace.clone(), agent_id: talk.agent.clone() };
    // One tier at a time: a list of one has an index, and does not pass by all that is archival.
    let (mut kept, working, found) = tokio::try_join!(
        tier(deps, &owner, MemoryTier::Core),
        tier(deps, &owner, MemoryTier::Working),
        found(deps, &owner, talk, input),
    )?;
    kept.extend(working);
    Ok(Recalled { blocks: blocks::select(&kept), found })
}

async fn tier(deps: &TalkDeps, owner: &MemoryOwner, tier: MemoryTier) -> Result<Vec<Memory>, Outcome> {
    let filter = MemoryFilter { tiers: vec![tier], ..MemoryFilter::default() };
    let mut query = MemoryListQuery { filter, after: None, limit: MEMORY_PAGE_MAX };
    let mut rows = Vec::new();
    for _ in 0..TIER_PAGES_MAX {
        let page = stored(|| deps.memories.list(owner, &query)).await?;
        rows.extend(page.rows);
        query.after = page.next;
        if query.after.is_none() {
            break;
        }
    }
    // A list leaves out what overflowed.
    for id in blocks::lacking(&rows) {
        let Some(at) = rows.iter().position(|row| row.id == id) else { continue };
        match whole(deps, owner, id).await {
            Read::Whole(memory) => rows[at] = blocks::cut(*memory),
            Read::Gone => _ = rows.remove(at),
            Read::Failed => {}
        }
    }
    Ok(rows)
}

/// What became of reading one memory by its id.
enum Read {
    Whole(Box<Memory>),
    Gone,
    /// It is shown without its content, and how to read it: no turn waits or fails for one memory.
    Failed,
}

async fn whole(deps: &TalkDeps, owner: &MemoryOwner, id: MemoryId) -> Read {
    match deps.memories.read(owner, &MemoryKey::Id(id.clone())).await {
        Ok(Some(memory)) => Read::Whole(Box::new(memory)),
        Ok(None) => Read::Gone,
        Err(failure) => {
            tracing::warn!(%failure, memory = %id, "a large memory cannot be read; the model is told how to");
            Read::Failed
        }
    }
}

/// While an archive or an embedder is away, it is so of every turn.
static ENDLESS: LazyLock<(Instant, Mutex<Seldom>)> = LazyLock::new(|| (Instant::now(), Mutex::default()));

fn tell_endless(talk: &TalkCall) {
    let (begun, told) = &*ENDLESS;
    let line = told.lock().unwrap_or_else(PoisonError::into_inner).see(begun.elapsed());
    let what = "a search of memories does not end; the model is shown none that it would find";
    match line {
        Some(left_out) => tracing::warn!(turn = %talk.turn, left_out, "{what}"),
        None => tracing::debug!(turn = %talk.turn, "{what}"),
    }
}

/// A search may need the archive, or an embedder elsewhere. No turn fails, or waits for long, because these are away:
/// it does without what they would have found. Time in which the store is away does not count.
async fn found(deps: &TalkDeps, owner: &MemoryOwner, talk: &TalkCall, input: &Message) -> Result<Vec<String>, Outcome> {
    let text: String = input.text.iter().flat_map(|text| text.chars()).take(QUERY_CHARS_MAX).collect();
    // Notes of this conversation fit best, and are not shown: there must be others behind them. All are ranked in any
    // case, so more hits only cost reading their rows.
    let asked = json!({"query": text, "limit": MEMORY_HITS_MAX, "tiers": ["archival"], "min_relevance": RELEVANCE_MIN});
    // A text without a word finds nothing.
    let Ok(search) = MemorySearch::check(&asked) else { return Ok(Vec::new()) };
    let search = || recall::search(deps.memories.as_ref(), deps.embedder.as_ref(), owner, search.clone());
    let mut searched = timeout(SEARCH_MAX, stored(search)).await;
    if searched.is_err() {
        // Answered by the store alone, as soon as it is there.
        tier(deps, owner, MemoryTier::Core).await?;
        searched = timeout(SEARCH_MAX, stored(search)).await;
    }
    let Ok(recalled) = searched else {
        tell_endless(talk);
        return Ok(Vec::new());
    };
    let recalled = recalled?;
    if let Some(failure) = recalled.not_embedded {
        tracing::warn!(%failure, "an input could not be embedded; memories are found by words alone");
    }
    // What was said here is in the context already.
    let here = json!(talk.conversation);
    let hits = recalled.value.hits.into_iter().map(|hit| hit.memory);
    let others = hits.filter(|memory| memory.metadata.get("conversation_id") != Some(&here));
    let mut others: Vec<Memory> = others.take(FOUND_MAX).collect();
    for memory in others.iter_mut().filter(|memory| lacks_content(memory)) {
        match whole(deps, owner, memory.id.clone()).await {
            Read::Whole(read) => *memory = *read,
            Read::Gone => memory.content_ref = None,
            Read::Failed => {}
        }
    }
    let shown = others.iter().map(|memory| blocks::shown(memory, MEMORY_INLINE_BYTES_MAX));
    Ok(shown.filter(|text| !text.is_empty()).collect())
}

/// Notes what a completed turn was about. Failing never fails the turn.
pub(super) async fn extract(deps: &TalkDeps, namespace: &Namespace, talk: &TalkCall) -> Outcome {
    let turn = TurnPlace { deps, namespace, talk };
    let hooks = match persona::of(deps, namespace, &talk.agent).await {
        Ok(persona) => hooks::of(
            persona.and_then(|body| body.memory_extraction_workflow_id).as_ref(),
            "memory_extraction_workflow_id",
        ),
        Err(outcome) => Err(outcome),
    };
    match hooks {
        Ok(hooks) => attempts::extract(hooks, turn).await,
        Err(outcome) => outcome,
    }
}

/// The built-in strategy.
pub(super) async fn remember(deps: &TalkDeps, namespace: &Namespace, talk: &TalkCall) -> Result<u32, Failure> {
    let said = said(deps, namespace, talk).await?;
    let Some(text) = note(&said) else { return Ok(0) };
    let owner = MemoryOwner { namespace: namespace.clone(), agent_id: talk.agent.clone() };
    let body = json!({"content": text, "type": "turn", "significance": TURN_SIGNIFICANCE,
                      "metadata": {"conversation_id": talk.conversation, "turn_id": talk.turn}});
    let write = MemoryWrite::check(&body).map_err(|problems| {
        Failure::internal(problems.iter().map(|one| format!("{}: {}", one.field, one.message)).collect::<String>())
    })?;
    // The turn's id: extracting twice is writing once.
    let id = MemoryId::parse(talk.turn.as_str()).map_err(|error| Failure::internal(error.to_string()))?;
    recall::write(deps.memories.as_ref(), deps.embedder.as_ref(), &owner, write, id).await?;
    Ok(1)
}

/// The messages of the turn, and the one that started it.
async fn said(deps: &TalkDeps, namespace: &Namespace, talk: &TalkCall) -> Result<Vec<Message>, Failure> {
    let turn = deps.conversations.turn(namespace, &talk.turn).await?;
    let mut rows = Vec::new();
    if let Some(turn) = turn {
        // Not by its turn: a message that starts several names none of them.
        let id = turn.input_message_id.as_str();
        rows.extend(deps.conversations.record(namespace, &talk.conversation, id).await?);
    }
    let query = LogQuery {
        namespace: namespace.clone(),
        conversation_id: talk.conversation.clone(),
        kinds: vec![LogKind::Message],
        turn_id: Some(talk.turn.clone()),
        after: 0,
        before: None,
        since_ms: None,
        descending: false,
        limit: SAID_MAX,
        bytes: PAGE_BYTES_MAX,
    };
    rows.extend(deps.conversations.log(&query).await?);
    Ok(rows.iter().filter_map(|row| row.record.body.to().ok()).collect())
}

/// What was asked, and what was answered last; nothing if either is missing.
fn note(said: &[Message]) -> Option<String> {
    let clip = |message: &Message| -> Option<String> {
        Some(message.text.as_ref()?.chars().take(SAID_CHARS_MAX).collect()).filter(|text: &String| !text.is_empty())
    };
    // Agents ask, too.
    let asked = said.iter().find(|message| message.role == MessageRole::User).and_then(clip)?;
    let answered = said.iter().rev().find(|message| message.role == MessageRole::Assistant).and_then(clip)?;
    Some(format!("Asked: {asked}\nAnswered: {answered}"))
}
