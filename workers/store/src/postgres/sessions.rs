//! Reads of the session registry, and what its auditor mends.

use async_trait::async_trait;
use domain::failure::Failure;
use domain::ports::{SessionQuery, Sessions};
use schemas::id::{AgentId, Namespace, SessionKey, Shard};
use schemas::session::{Head, SessionRow, SessionStatus};
use sqlx::postgres::PgRow;

use super::rows::{clean, count, get, json, key, name, now, session_columns, session_row};
use super::{PostgresStore, lookup, scan};

macro_rules! specs {
    () => {
        " JOIN session_specs AS c ON c.namespace = s.namespace AND c.session_id = s.session_id "
    };
}

const NEWEST: &str = concat!(
    "SELECT ",
    session_columns!(),
    " FROM (SELECT * FROM sessions AS n WHERE n.namespace = $1 AND n.agent_id = $2
        ORDER BY n.created_at_ms DESC, n.session_id DESC LIMIT 1) AS s",
    specs!()
);
/// Planned for what is asked: conditions that do not apply vanish, and the narrowest index leads.
const LIST: &str = concat!(
    "SELECT ",
    session_columns!(),
    " FROM (SELECT * FROM sessions AS s
        WHERE s.namespace = $1 AND (s.created_at_ms, s.session_id) < ($2, $3)
            AND ($4::text IS NULL OR s.agent_id = $4)
            AND ($5::text IS NULL OR s.moniker = $5)
            AND ($6::text[] IS NULL OR s.status = ANY ($6))
            AND ($7::text IS NULL OR s.conversation_id = $7)
            AND ($8::text[] IS NULL OR s.session_id = ANY ($8))
            AND ($9::text IS NULL OR starts_with(s.session_id, $9) OR starts_with(s.agent_id, $9))
        ORDER BY s.created_at_ms DESC, s.session_id DESC LIMIT $10) AS s",
    specs!(),
    "ORDER BY s.created_at_ms DESC, s.session_id DESC"
);
/// Steps from agent to agent over the index, however many sessions each one has.
const AGENTS: &str = concat!(
    "WITH RECURSIVE walk (agent_id, place) AS (
        (SELECT a.agent_id, 1 FROM sessions AS a
        WHERE a.namespace = $1 AND a.agent_id > $2 ORDER BY a.agent_id LIMIT 1)
        UNION ALL
        SELECT n.agent_id, w.place + 1 FROM walk AS w CROSS JOIN LATERAL (
            SELECT a.agent_id FROM sessions AS a
            WHERE a.namespace = $1 AND a.agent_id > w.agent_id ORDER BY a.agent_id LIMIT 1) AS n
        WHERE w.place < $3
    )
    SELECT ",
    session_columns!(),
    ", (SELECT count(*) FROM sessions AS n WHERE n.namespace = $1 AND n.agent_id = w.agent_id) AS sessions
    FROM walk AS w CROSS JOIN LATERAL (
        SELECT * FROM sessions AS n WHERE n.namespace = $1 AND n.agent_id = w.agent_id
        ORDER BY n.created_at_ms DESC, n.session_id DESC LIMIT 1) AS s",
    specs!(),
    "WHERE w.place <= $3 ORDER BY w.place"
);
const COUNT_BY_STATUS: &str = "SELECT status, count(*) AS sessions FROM sessions GROUP BY status";
/// Walks the key: no other index says of which sessions nobody thinks.
const HEADS: &str = "
    SELECT namespace, session_id, wake_at_ms, head FROM sessions
    WHERE (namespace, session_id) > ($1, $2) ORDER BY namespace, session_id LIMIT $3";
const REARM: &str = concat!(
    "UPDATE sessions SET wake_at_ms = ",
    now!(),
    " WHERE namespace = $1 AND session_id = $2 AND next_offset = $3 AND wake_at_ms IS NULL
        AND status NOT IN ('stopped', 'completed', 'error')"
);

#[cfg(test)]
pub(super) const SQL: &[(&str, &str)] = &[
    ("sessions::newest", NEWEST),
    ("sessions::list", LIST),
    ("sessions::agents", AGENTS),
    ("sessions::count_by_status", COUNT_BY_STATUS),
    ("sessions::heads", HEADS),
    ("sessions::rearm", REARM),
];

#[async_trait]
impl Sessions for PostgresStore {
    async fn session(&self, key: &SessionKey) -> Result<Option<SessionRow>, Failure> {
        self.0.lookups.call(lookup::Call(key.clone())).await
    }

    async fn list(&self, query: &SessionQuery) -> Result<Vec<SessionRow>, Failure> {
        let filter = &query.filter;
        let (before_ms, before_id) =
            query.after.as_ref().map_or((i64::MAX, ""), |(created_at_ms, id)| (*created_at_ms, id.as_str()));
        let statuses: Vec<&str> = filter.status.iter().map(|status| status.as_str()).collect();
        let ids: Vec<&str> = filter.session_ids.iter().map(|id| id.as_str()).collect();
        let query = sqlx::query(LIST)
            .bind(query.namespace.as_str())
            .bind(before_ms)
            .bind(before_id)
            .bind(filter.agent_id.as_ref().map(|id| id.as_str()))
            .bind(filter.moniker.as_deref().map(clean))
            .bind((!statuses.is_empty()).then_some(statuses))
            .bind(filter.conversation_id.as_ref().map(|id| id.as_str()))
            .bind((!ids.is_empty()).then_some(ids))
            .bind(query.prefix.as_deref().map(clean))
            .bind(query.limit as i64);
        self.0.pool.fetch_all(query).await?.iter().map(session_row).collect()
    }

    async fn latest(&self, namespace: &Namespace, agent: &AgentId) -> Result<Option<SessionRow>, Failure> {
        self.one(NEWEST, namespace, agent.as_str()).await
    }

    async fn agents(
        &self,
        namespace: &Namespace,
        after: Option<&AgentId>,
        limit: usize,
    ) -> Result<Vec<(SessionRow, u64)>, Failure> {
        let query = sqlx::query(AGENTS)
            .bind(namespace.as_str())
            .bind(after.map_or("", |agent| agent.as_str()))
            .bind(limit as i64);
        let agent = |row: &PgRow| Ok((session_row(row)?, count(row, "sessions")?));
        self.0.pool.fetch_all(query).await?.iter().map(agent).collect()
    }

    async fn due(
        &self,
        shard: Shard,
        until_ms: i64,
        after: Option<(i64, SessionKey)>,
        limit: usize,
    ) -> Result<Vec<(i64, SessionKey)>, Failure> {
        self.0.due.call(scan::Call(scan::Due { shard, until_ms, after, limit })).await
    }

    async fn heads(&self, after: Option<&SessionKey>, limit: usize) -> Result<Vec<(SessionKey, Head)>, Failure> {
        let (namespace, session) = after.map_or(("", ""), |key| (key.namespace.as_str(), key.session_id.as_str()));
        let query = sqlx::query(HEADS).bind(namespace).bind(session).bind(limit as i64);
        self.0.pool.fetch_all(query).await?.iter().map(walked).collect()
    }

    async fn rearm(&self, key: &SessionKey, next_offset: u64) -> Result<bool, Failure> {
        let query = || {
            sqlx::query(REARM)
                .bind(key.namespace.as_str())
                .bind(key.session_id.as_str())
                .bind(i64::try_from(next_offset).unwrap_or(i64::MAX))
        };
        Ok(self.0.by_key.execute(query).await? > 0)
    }

    async fn count_by_status(&self) -> Result<Vec<(SessionStatus, u64)>, Failure> {
        let rows = self.0.pool.fetch_all(sqlx::query(COUNT_BY_STATUS)).await?;
        rows.iter().map(|row| Ok((name(row, "status", SessionStatus::parse)?, count(row, "sessions")?))).collect()
    }
}

/// Whether a session is due is said by the column; since when, by the head, if it knows: the column
/// keeps an earlier time while a session stays due.
fn walked(row: &PgRow) -> Result<(SessionKey, Head), Failure> {
    let mut head: Head = json(row, "head")?;
    head.wake_at_ms = get::<Option<i64>>(row, "wake_at_ms")?.map(|at| head.wake_at_ms.unwrap_or(at));
    Ok((key(row)?, head))
}

impl PostgresStore {
    async fn one(&self, sql: &'static str, namespace: &Namespace, id: &str) -> Result<Option<SessionRow>, Failure> {
        let row = self.0.by_key.fetch_optional(sqlx::query(sql).bind(namespace.as_str()).bind(id)).await?;
        row.as_ref().map(session_row).transpose()
    }
}
