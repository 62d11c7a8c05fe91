//! Reads of the archive: filter, then order, then offset and limit.

use domain::ports::{EventRow, StepQuery};
use schemas::id::SessionKey;
use schemas::record::StoredStep;

pub fn steps(rows: &[StoredStep], query: &StepQuery) -> Vec<StoredStep> {
    let mut found: Vec<StoredStep> = rows.iter().filter(|row| query.matches(row)).cloned().collect();
    found.sort_by(|a, b| query.compare(a, b));
    found.into_iter().skip(query.offset).take(query.limit).collect()
}

pub fn events(rows: &[EventRow], key: &SessionKey, after: u64, limit: usize) -> Vec<EventRow> {
    let wanted = |row: &&EventRow| row.key == *key && row.event.offset > after;
    let mut found: Vec<EventRow> = rows.iter().filter(wanted).cloned().collect();
    found.sort_by_key(|row| row.event.offset);
    found.truncate(limit);
    found
}

pub fn steps_after_offset(rows: &[StoredStep], key: &SessionKey, after: u64, limit: usize) -> Vec<StoredStep> {
    let wanted = |row: &&StoredStep| row.key == *key && row.step.offset > after;
    let mut found: Vec<StoredStep> = rows.iter().filter(wanted).cloned().collect();
    found.sort_by_key(|row| row.step.offset);
    found.truncate(limit);
    found
}
