//! The newest snapshot of a session: from its newest journal entry, else from the archive.

use schemas::id::SessionKey;
use schemas::json::Json;
use schemas::record::{JournalRow, Snapshot, StepRecord};
use schemas::session::{Head, SessionRow};

use super::ENTRIES_AT_A_TIME;
use crate::failure::Failure;
use crate::ports::{Archive, Journal, StepQuery};

/// `None`: nothing was committed for the session when its row was read.
pub async fn snapshot(
    journal: &dyn Journal,
    archive: &dyn Archive,
    session: &SessionRow,
) -> Result<Option<Snapshot>, Failure> {
    let key = &session.key;
    let Some(row) = journal.latest(key).await? else {
        // What is yet to begin is looked at a lot, and the archive may be slow, or away.
        return if is_untouched(&session.head) { Ok(None) } else { archive.snapshot(key).await };
    };
    let result = match (row.entry.steps.last(), row.entry.head.iteration()) {
        (Some(step), _) => step_result(step),
        (None, None) => None,
        (None, Some(iteration)) => earlier_result(journal, archive, key, iteration).await?,
    };
    Ok(Some(of_row(row, result)))
}

/// Nothing is committed before the create action is applied.
fn is_untouched(head: &Head) -> bool {
    head.started_at_ms.is_none() && head.next_offset == 1
}

/// What a step answered: its text, else its data.
pub fn step_result(step: &StepRecord) -> Option<Json> {
    step.text.as_ref().map(Json::of).or_else(|| step.data.clone())
}

fn of_row(row: JournalRow, result: Option<Json>) -> Snapshot {
    Snapshot {
        key: row.key,
        agent_id: row.entry.agent_id,
        moniker: row.entry.moniker,
        conversation_id: row.entry.conversation_id,
        head: row.entry.head,
        state: row.entry.state,
        result,
    }
}

/// The newest entry has no step (a pause, say): its last step is further back.
async fn earlier_result(
    journal: &dyn Journal,
    archive: &dyn Archive,
    key: &SessionKey,
    iteration: u64,
) -> Result<Option<Json>, Failure> {
    // Step n has an offset greater than n: entries from there on include it, if it is still here.
    let mut after = iteration;
    loop {
        let rows = journal.entries(key, after, ENTRIES_AT_A_TIME).await?;
        for row in &rows {
            if let Some(step) = row.entry.steps.iter().find(|step| step.iteration == iteration) {
                return Ok(step_result(step));
            }
        }
        match rows.last() {
            Some(last) if rows.len() == ENTRIES_AT_A_TIME => after = last.entry.head.next_offset.saturating_sub(1),
            _ => break,
        }
    }
    let query = StepQuery {
        namespace: Some(key.namespace.clone()),
        session: Some(key.clone()),
        min_iteration: Some(iteration),
        max_iteration: Some(iteration),
        limit: 1,
        ..StepQuery::default()
    };
    Ok(archive.steps(&query).await?.first().and_then(|stored| step_result(&stored.step)))
}
