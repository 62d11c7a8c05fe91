//! Merging snapshots: one live row per session, replaced by the newest of a batch.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use domain::failure::Failure;
use domain::read::step_result;
use schemas::id::SessionKey;
use schemas::json::Json;

use crate::append::{Rows, encode};
use crate::archive::{Tables, Written};
use crate::merge::Merging;
use crate::predicate::of_sessions;
use crate::query::{Page, fetch};
use crate::table::state::{KEY, STATE, StateRow};

/// A snapshot never gives way to an older one, whoever writes it.
const MERGING: Merging = Merging { key: &KEY, newer: "target.seq < source.seq" };
/// Sessions named in one predicate.
const SESSIONS_AT_A_TIME: usize = 500;

impl Tables {
    pub async fn merge_snapshots(&self, written: &mut Written, rows: &Rows) -> Result<(), Failure> {
        let marks = self.state.marks(written).await?;
        let fresh: Rows = rows.iter().filter(|row| !marks.covers(row)).cloned().collect();
        let reached = marks.with_rows(fresh.iter().map(Arc::as_ref));
        let newest = self.newest_of(&fresh).await?;
        if !newest.is_empty() {
            let merged = self.state.merge(&MERGING, encode(&STATE, &newest)?, &reached).await;
            self.state.settle(written, merged, &reached).await?;
            written.upkeep.commits += 1;
            written.upkeep.rows += newest.len();
        }
        // Merged: after a refused commit, another writer's marks are there, and may be higher.
        written.marks.get_or_insert_default().merge(&reached);
        Ok(())
    }

    /// The newest row of each session, with the result of its last step.
    async fn newest_of(&self, rows: &Rows) -> Result<Vec<StateRow>, Failure> {
        let mut by_session: HashMap<&SessionKey, StateRow> = HashMap::new();
        for row in rows {
            let state = by_session.entry(&row.key).or_insert_with(|| StateRow { row: row.clone(), result: None });
            state.row = row.clone();
            if let Some(step) = row.entry.steps.last() {
                state.result = step_result(step);
            }
        }
        // A session whose rows here have no step keeps the result it has.
        let stepped: HashSet<&SessionKey> =
            rows.iter().filter(|row| !row.entry.steps.is_empty()).map(|row| &row.key).collect();
        let older: Vec<&SessionKey> = by_session
            .iter()
            .filter(|(key, state)| !stepped.contains(*key) && state.row.entry.head.steps > 0)
            .map(|(key, _)| *key)
            .collect();
        let mut results = self.results_of(&older).await?;
        for (key, state) in &mut by_session {
            if let Some(result) = results.remove(*key) {
                state.result = result;
            }
        }
        let mut newest: Vec<StateRow> = by_session.into_values().collect();
        newest.sort_by(|a, b| a.order().cmp(&b.order()));
        Ok(newest)
    }

    async fn results_of(&self, keys: &[&SessionKey]) -> Result<HashMap<SessionKey, Option<Json>>, Failure> {
        let mut results = HashMap::new();
        for some in keys.chunks(SESSIONS_AT_A_TIME) {
            let page = Page {
                filter: Some(of_sessions(some.iter().copied())),
                columns: &["namespace", "session_id", "result"],
                order: None,
                offset: 0,
                limit: None,
            };
            fetch(&self.state, page, |cells| {
                for row in 0..cells.rows() {
                    if let Some(key) = cells.key(row)? {
                        results.insert(key, cells.text("result", row)?.map(Json::lenient));
                    }
                }
                Ok(())
            })
            .await?;
        }
        Ok(results)
    }
}
