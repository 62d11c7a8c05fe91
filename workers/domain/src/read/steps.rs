//! Steps of a session or of an agent (SPEC Q-TAB-06 to Q-TAB-08, S-34).

use std::collections::BTreeSet;

use schemas::api::SessionFilter;
use schemas::id::{AgentId, Namespace, SessionId, SessionKey};
use schemas::limits::{PAGE_BYTES_MAX, PAGE_MAX, PAGE_OFFSET_MAX};
use schemas::problem::Code;
use schemas::record::{StepStatus, StoredStep};

use super::ENTRIES_AT_A_TIME;
use super::merge::{Best, steps_of, union_steps};
use super::order::step_bytes;
use super::stretch::Stretch;
use crate::failure::Failure;
use crate::ports::{Archive, Journal, SessionQuery, Sessions, StepPlace, StepQuery};

/// Whose steps are asked for.
#[derive(Debug, Clone, PartialEq)]
pub enum StepsOf {
    Session(SessionKey),
    /// All sessions of an agent.
    Agent(Namespace, AgentId),
}

/// All given conditions must hold; then order, then offset and limit.
#[derive(Debug, Clone, PartialEq)]
pub struct StepsQuery {
    pub of: StepsOf,
    pub min_iteration: Option<u64>,
    pub max_iteration: Option<u64>,
    /// Strictly greater (SPEC Q-TAB-07).
    pub after_iteration: Option<u64>,
    pub since_ms: Option<i64>,
    pub status: Option<StepStatus>,
    pub descending: bool,
    /// The newest steps, newest first (SPEC Q-TAB-08): by iteration within a session, by time over
    /// the sessions of an agent.
    pub latest: bool,
    /// Where the page before ended.
    pub cursor: Option<StepPlace>,
    /// At most `limits::PAGE_OFFSET_MAX`.
    pub offset: usize,
    /// Between 1 and `limits::PAGE_MAX`.
    pub limit: usize,
}

impl StepsQuery {
    pub fn new(of: StepsOf, limit: usize) -> Self {
        Self {
            of,
            min_iteration: None,
            max_iteration: None,
            after_iteration: None,
            since_ms: None,
            status: None,
            descending: false,
            latest: false,
            cursor: None,
            offset: 0,
            limit,
        }
    }

    /// The query for one source: no offset, because only the union can skip rows.
    fn for_source(&self) -> StepQuery {
        let (session, agent_id, namespace) = match &self.of {
            StepsOf::Session(key) => (Some(key.clone()), None, key.namespace.clone()),
            StepsOf::Agent(namespace, agent) => (None, Some(agent.clone()), namespace.clone()),
        };
        StepQuery {
            namespace: Some(namespace),
            by_time: self.latest && agent_id.is_some(),
            session,
            agent_id,
            min_iteration: self.min_iteration.max(self.after_iteration.map(|n| n.saturating_add(1))),
            max_iteration: self.max_iteration,
            since_ms: self.since_ms,
            status: self.status,
            after: self.cursor.clone(),
            descending: self.descending || self.latest,
            offset: 0,
            limit: 0,
        }
    }
}

/// A page of steps.
#[derive(Debug, Clone, PartialEq)]
pub struct StepsPage {
    pub items: Vec<StoredStep>,
    /// Where to go on; `None` on the last page.
    pub next: Option<StepPlace>,
}

/// Reads a page of steps. It is shorter than asked for, with a cursor, where the full page would
/// exceed `limits::PAGE_BYTES_MAX`.
pub async fn steps(
    journal: &dyn Journal,
    archive: &dyn Archive,
    sessions: &dyn Sessions,
    query: &StepsQuery,
) -> Result<StepsPage, Failure> {
    let offset = query.offset.min(PAGE_OFFSET_MAX);
    let mut limit = query.limit.clamp(1, PAGE_MAX);
    loop {
        match page(journal, archive, sessions, query, offset, limit).await {
            Err(failure) if failure.code == Code::TooLarge && limit > 1 => limit = (limit / 4).max(1),
            answer => return answer,
        }
    }
}

async fn page(
    journal: &dyn Journal,
    archive: &dyn Archive,
    sessions: &dyn Sessions,
    query: &StepsQuery,
    offset: usize,
    limit: usize,
) -> Result<StepsPage, Failure> {
    // Whatever is among the first n of the union is among the first n of its source. One more
    // tells whether another page follows.
    let wanted = offset + limit + 1;
    let mut source = query.for_source();
    // Of a session, before its journal: what is committed after this look only adds to the end.
    let row = match &query.of {
        StepsOf::Session(key) => sessions.session(key).await?,
        StepsOf::Agent(..) => None,
    };
    if let Some(row) = &row {
        narrow(&mut source, row.head.steps, wanted);
    }
    let mut best = Best::new(&source, wanted);
    let is_whole = match &query.of {
        StepsOf::Session(key) => {
            let steps = row.as_ref().map(|row| row.head.steps);
            from_journal(journal, key, steps.unwrap_or(0), &mut best, &source).await? && steps.is_some()
        }
        StepsOf::Agent(namespace, agent) => {
            from_journals(journal, sessions, (namespace, agent), &mut best, &source).await?
        }
    };
    let tail = best.finish();
    if is_whole {
        // The archive has nothing to add, and need not answer.
        return Ok(cut(tail, offset, limit));
    }
    source.limit = wanted;
    let archived = archive.steps(&source).await?;
    let union = union_steps(&source, tail, archived);
    Ok(cut(union, offset, limit))
}

/// The last steps of a session, which has so many, are those with the highest iterations: saying so spares the
/// archive from ordering all of a long history.
fn narrow(source: &mut StepQuery, steps: u64, wanted: usize) {
    if !source.descending || source.status.is_some() || source.since_ms.is_some() {
        return;
    }
    // One past the highest iteration that may be on the page.
    let below = [
        Some(steps),
        source.max_iteration.map(|max| max.saturating_add(1)),
        source.after.as_ref().map(|place| place.iteration),
    ];
    let end = below.into_iter().flatten().min().unwrap_or(0);
    let lowest = end.saturating_sub(wanted as u64);
    source.min_iteration = Some(source.min_iteration.map_or(lowest, |min| min.max(lowest)));
}

/// Shows the steps of an agent's journals to `best`. Answers whether the archive has nothing to add.
async fn from_journals(
    journal: &dyn Journal,
    sessions: &dyn Sessions,
    (namespace, agent): (&Namespace, &AgentId),
    best: &mut Best<'_>,
    query: &StepQuery,
) -> Result<bool, Failure> {
    let (mut after, mut is_whole) = (None, true);
    loop {
        let listed = sessions.list(&sessions_of(namespace, agent, after)).await?;
        // Most sessions of an agent with many have nothing there any more: one question finds those.
        let ids: Vec<SessionId> = listed.iter().map(|row| row.key.session_id.clone()).collect();
        let holding: BTreeSet<SessionId> = journal.holding(namespace, &ids).await?.into_iter().collect();
        for row in &listed {
            is_whole &= match holding.contains(&row.key.session_id) {
                true => from_journal(journal, &row.key, row.head.steps, best, query).await?,
                false => Stretch::new(query, row.head.steps).is_whole(false),
            };
        }
        match listed.last() {
            Some(last) if listed.len() == PAGE_MAX => {
                after = Some((last.created_at_ms, last.key.session_id.clone()));
            }
            _ => return Ok(is_whole),
        }
    }
}

fn sessions_of(namespace: &Namespace, agent: &AgentId, after: Option<(i64, SessionId)>) -> SessionQuery {
    SessionQuery {
        namespace: namespace.clone(),
        filter: SessionFilter { agent_id: Some(agent.clone()), ..SessionFilter::default() },
        prefix: None,
        after,
        limit: PAGE_MAX,
    }
}

/// Shows the steps of a session's journal to `best`, in the order of the query, until enough match. The session
/// had so many `steps` before this read. Answers whether the archive has nothing to add.
async fn from_journal(
    journal: &dyn Journal,
    key: &SessionKey,
    steps: u64,
    best: &mut Best<'_>,
    query: &StepQuery,
) -> Result<bool, Failure> {
    let wanted = best.limit();
    let mut stretch = Stretch::new(query, steps);
    let mut matched = 0;
    // Step n has an offset greater than n, so everything up to there can be passed over.
    let mut forward = query.min_iteration.unwrap_or(0);
    let mut backward = u64::MAX;
    while matched < wanted && backward > 0 {
        let mut rows = if query.descending {
            journal.entries_back(key, backward, ENTRIES_AT_A_TIME).await?
        } else {
            journal.entries(key, forward, ENTRIES_AT_A_TIME).await?
        };
        let more = rows.len() == ENTRIES_AT_A_TIME;
        let Some(last) = rows.last() else { break };
        // The last offset of a row; the first of it for the way back.
        let next_offset = last.entry.head.next_offset;
        forward = next_offset.saturating_sub(1);
        // An entry may have neither step nor event; the way back must make progress all the same.
        backward = first_offset(last).unwrap_or(next_offset).min(backward - 1);
        if query.descending {
            rows.iter_mut().for_each(|row| row.entry.steps.reverse());
        }
        for step in rows.into_iter().flat_map(steps_of) {
            stretch.see(step.step.iteration);
            matched += usize::from(query.matches(&step));
            best.offer(step)?;
        }
        if !more {
            break;
        }
    }
    Ok(stretch.is_whole(matched >= wanted))
}

fn first_offset(row: &schemas::record::JournalRow) -> Option<u64> {
    let steps = row.entry.steps.iter().map(|step| step.offset);
    steps.chain(row.entry.events.iter().map(|event| event.offset)).min()
}

fn cut(union: Vec<StoredStep>, offset: usize, limit: usize) -> StepsPage {
    let mut bytes = 0;
    let mut rest = union.into_iter().skip(offset).peekable();
    let mut items: Vec<StoredStep> = Vec::new();
    while items.len() < limit {
        let Some(next) = rest.peek() else { break };
        bytes += step_bytes(&next.step);
        if bytes > PAGE_BYTES_MAX && !items.is_empty() {
            break;
        }
        items.extend(rest.next());
    }
    let next = items.last().filter(|_| rest.peek().is_some()).map(StepPlace::of);
    StepsPage { items, next }
}
