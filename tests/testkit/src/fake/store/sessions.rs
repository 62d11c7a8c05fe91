//! The `Sessions` port.

use std::collections::BTreeMap;

use async_trait::async_trait;
use domain::failure::Failure;
use domain::ports::{SessionQuery, Sessions};
use schemas::id::{AgentId, Namespace, SessionKey, Shard};
use schemas::session::{Head, SessionRow, SessionStatus};

use super::MemStore;

#[async_trait]
impl Sessions for MemStore {
    async fn session(&self, key: &SessionKey) -> Result<Option<SessionRow>, Failure> {
        Ok(self.transaction().sessions.get(key).cloned())
    }

    async fn list(&self, query: &SessionQuery) -> Result<Vec<SessionRow>, Failure> {
        let state = self.transaction();
        let mut rows: Vec<SessionRow> = state.sessions.values().filter(|row| matches(query, row)).cloned().collect();
        rows.sort_by(|a, b| place(b).cmp(&place(a)));
        if let Some((created_at_ms, session)) = &query.after {
            rows.retain(|row| place(row) < (*created_at_ms, session.as_str()));
        }
        rows.truncate(query.limit);
        Ok(rows)
    }

    async fn latest(&self, namespace: &Namespace, agent: &AgentId) -> Result<Option<SessionRow>, Failure> {
        let state = self.transaction();
        let session = state.latest.get(&(namespace.clone(), agent.clone()));
        Ok(session.and_then(|id| state.sessions.get(&SessionKey::new(namespace.clone(), id.clone()))).cloned())
    }

    async fn agents(
        &self,
        namespace: &Namespace,
        after: Option<&AgentId>,
        limit: usize,
    ) -> Result<Vec<(SessionRow, u64)>, Failure> {
        let state = self.transaction();
        let mut counts: BTreeMap<&AgentId, u64> = BTreeMap::new();
        for row in state.sessions.values().filter(|row| row.key.namespace == *namespace) {
            *counts.entry(&row.agent_id).or_default() += 1;
        }
        let page = counts.into_iter().filter(|(agent, _)| after.is_none_or(|after| *agent > after)).take(limit);
        Ok(page
            .filter_map(|(agent, count)| {
                let session = state.latest.get(&(namespace.clone(), agent.clone()))?;
                let row = state.sessions.get(&SessionKey::new(namespace.clone(), session.clone()))?;
                Some((row.clone(), count))
            })
            .collect())
    }

    async fn due(
        &self,
        shard: Shard,
        until_ms: i64,
        after: Option<(i64, SessionKey)>,
        limit: usize,
    ) -> Result<Vec<(i64, SessionKey)>, Failure> {
        let state = self.transaction();
        let mut found: Vec<(i64, SessionKey)> = state
            .sessions
            .values()
            .filter(|row| row.shard == shard)
            .filter_map(|row| Some((row.head.wake_at_ms?, row.key.clone())))
            .filter(|due| due.0 <= until_ms && after.as_ref().is_none_or(|after| due > after))
            .collect();
        found.sort();
        found.truncate(limit);
        Ok(found)
    }

    async fn heads(&self, after: Option<&SessionKey>, limit: usize) -> Result<Vec<(SessionKey, Head)>, Failure> {
        let state = self.transaction();
        let rows = state.sessions.values().filter(|row| after.is_none_or(|after| row.key > *after));
        Ok(rows.take(limit).map(|row| (row.key.clone(), row.head.clone())).collect())
    }

    async fn rearm(&self, key: &SessionKey, next_offset: u64) -> Result<bool, Failure> {
        let now = self.now_ms();
        let mut state = self.transaction();
        let Some(row) = state.sessions.get_mut(key) else { return Ok(false) };
        let head = &mut row.head;
        if head.status.is_at_rest() || head.wake_at_ms.is_some() || head.next_offset != next_offset {
            return Ok(false);
        }
        head.wake_at_ms = Some(now);
        state.rearmed.push(key.clone());
        Ok(true)
    }

    async fn count_by_status(&self) -> Result<Vec<(SessionStatus, u64)>, Failure> {
        let mut counts: BTreeMap<SessionStatus, u64> = BTreeMap::new();
        for row in self.transaction().sessions.values() {
            *counts.entry(row.head.status).or_default() += 1;
        }
        Ok(counts.into_iter().collect())
    }
}

fn place(row: &SessionRow) -> (i64, &str) {
    (row.created_at_ms, row.key.session_id.as_str())
}

fn matches(query: &SessionQuery, row: &SessionRow) -> bool {
    let filter = &query.filter;
    let prefixed = |prefix: &String| {
        row.key.session_id.as_str().starts_with(prefix.as_str()) || row.agent_id.as_str().starts_with(prefix.as_str())
    };
    row.key.namespace == query.namespace
        && filter.agent_id.as_ref().is_none_or(|agent| *agent == row.agent_id)
        && filter.moniker.as_ref().is_none_or(|moniker| *moniker == row.spec.moniker)
        && (filter.status.is_empty() || filter.status.contains(&row.head.status))
        && filter.conversation_id.as_ref().is_none_or(|id| row.spec.conversation_id.as_ref() == Some(id))
        && (filter.session_ids.is_empty() || filter.session_ids.contains(&row.key.session_id))
        && query.prefix.as_ref().is_none_or(prefixed)
}
