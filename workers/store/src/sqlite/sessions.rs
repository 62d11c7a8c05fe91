//! Reads of the session registry.

use async_trait::async_trait;
use domain::failure::Failure;
use domain::ports::{SessionQuery, Sessions};
use schemas::id::{AgentId, Namespace, SessionKey, Shard};
use schemas::json::Json;
use schemas::session::{Head, SessionRow, SessionStatus};
use sqlx::sqlite::SqliteRow;

use super::SqliteStore;
use super::failure::failure;
use super::rows::{count, get, key, name, session_columns, session_row};

macro_rules! specs {
    () => {
        " CROSS JOIN session_specs AS c ON c.namespace = s.namespace AND c.session_id = s.session_id "
    };
}

const SESSION: &str = concat!(
    "SELECT ",
    session_columns!(),
    " FROM sessions AS s",
    specs!(),
    "WHERE s.namespace = ?1 AND s.session_id = ?2"
);
const NEWEST: &str = concat!(
    "SELECT ",
    session_columns!(),
    " FROM sessions AS s INDEXED BY sessions_of_agent",
    specs!(),
    "WHERE s.namespace = ?1 AND s.agent_id = ?2 ORDER BY s.created_at_ms DESC, s.session_id DESC LIMIT 1"
);

/// The pages of a list differ in the index that leads; all conditions are in each of them.
macro_rules! list {
    ($from:literal, $condition:literal) => {
        concat!(
            "SELECT ",
            session_columns!(),
            $from,
            specs!(),
            "WHERE s.namespace = ?1 AND (s.created_at_ms, s.session_id) < (?2, ?3)
                AND (?4 IS NULL OR s.agent_id = ?4)
                AND (?5 IS NULL OR s.moniker = ?5)
                AND (?6 IS NULL OR s.status IN (SELECT value FROM json_each(?6)))
                AND (?7 IS NULL OR s.conversation_id = ?7)
                AND (?8 IS NULL OR s.session_id IN (SELECT value FROM json_each(?8)))
                AND (?9 IS NULL OR substr(s.session_id, 1, length(?9)) = ?9 OR substr(s.agent_id, 1, length(?9)) = ?9)",
            $condition,
            " ORDER BY s.created_at_ms DESC, s.session_id DESC LIMIT ?10"
        )
    };
}

const LIST: &str = list!(" FROM sessions AS s INDEXED BY sessions_newest", "");
const LIST_OF_AGENT: &str = list!(" FROM sessions AS s INDEXED BY sessions_of_agent", " AND s.agent_id = ?4");
const LIST_OF_STATUS: &str = list!(" FROM sessions AS s INDEXED BY sessions_status", " AND s.status = ?6->>0");
const LIST_OF_IDS: &str = list!(
    " FROM json_each(?8) AS j
    CROSS JOIN sessions AS s ON s.namespace = ?1 AND s.session_id = j.value",
    ""
);
/// Steps from agent to agent over the index, however many sessions each one has.
const AGENTS: &str = concat!(
    "WITH RECURSIVE walk (agent_id) AS (
        SELECT * FROM (
            SELECT a.agent_id FROM sessions AS a INDEXED BY sessions_of_agent
            WHERE a.namespace = ?1 AND a.agent_id > ?2 ORDER BY a.agent_id LIMIT 1)
        UNION ALL
        SELECT (SELECT a.agent_id FROM sessions AS a INDEXED BY sessions_of_agent
            WHERE a.namespace = ?1 AND a.agent_id > walk.agent_id ORDER BY a.agent_id LIMIT 1)
        FROM walk WHERE walk.agent_id IS NOT NULL
        LIMIT ?3
    )
    SELECT ",
    session_columns!(),
    ", (SELECT count(*) FROM sessions AS n INDEXED BY sessions_of_agent
        WHERE n.namespace = ?1 AND n.agent_id = walk.agent_id) AS sessions
    FROM walk CROSS JOIN sessions AS s ON s.namespace = ?1 AND s.session_id = (
        SELECT n.session_id FROM sessions AS n INDEXED BY sessions_of_agent
        WHERE n.namespace = ?1 AND n.agent_id = walk.agent_id
        ORDER BY n.created_at_ms DESC, n.session_id DESC LIMIT 1)",
    specs!(),
    "WHERE walk.agent_id IS NOT NULL"
);
const DUE: &str = "
    SELECT wake_at_ms, namespace, session_id FROM sessions INDEXED BY sessions_wake
    WHERE shard = ?1 AND wake_at_ms IS NOT NULL AND wake_at_ms <= ?2
        AND (wake_at_ms, namespace, session_id) > (?3, ?4, ?5)
    ORDER BY wake_at_ms, namespace, session_id LIMIT ?6";
const COUNT_BY_STATUS: &str =
    "SELECT status, count(*) AS sessions FROM sessions INDEXED BY sessions_status GROUP BY status";

#[cfg(test)]
pub(super) const SQL: &[(&str, &str)] = &[
    ("sessions::session", SESSION),
    ("sessions::newest", NEWEST),
    ("sessions::list", LIST),
    ("sessions::list_of_agent", LIST_OF_AGENT),
    ("sessions::list_of_status", LIST_OF_STATUS),
    ("sessions::list_of_ids", LIST_OF_IDS),
    ("sessions::agents", AGENTS),
    ("sessions::due", DUE),
    ("sessions::count_by_status", COUNT_BY_STATUS),
];

/// The statement whose index narrows the query most.
fn list_statement(query: &SessionQuery) -> &'static str {
    let filter = &query.filter;
    if !filter.session_ids.is_empty() {
        LIST_OF_IDS
    } else if filter.agent_id.is_some() {
        LIST_OF_AGENT
    } else if filter.status.len() == 1 {
        LIST_OF_STATUS
    } else {
        LIST
    }
}

#[async_trait]
impl Sessions for SqliteStore {
    async fn session(&self, key: &SessionKey) -> Result<Option<SessionRow>, Failure> {
        self.one(SESSION, &key.namespace, key.session_id.as_str()).await
    }

    async fn list(&self, query: &SessionQuery) -> Result<Vec<SessionRow>, Failure> {
        let filter = &query.filter;
        let (before_ms, before_id) =
            query.after.as_ref().map_or((i64::MAX, ""), |(created_at_ms, id)| (*created_at_ms, id.as_str()));
        let statuses: Vec<&str> = filter.status.iter().map(|status| status.as_str()).collect();
        let mut ids = filter.session_ids.clone();
        ids.sort();
        ids.dedup();
        let rows = sqlx::query(list_statement(query))
            .bind(query.namespace.as_str())
            .bind(before_ms)
            .bind(before_id)
            .bind(filter.agent_id.as_ref().map(|id| id.as_str()))
            .bind(filter.moniker.as_deref())
            .bind((!statuses.is_empty()).then(|| Json::of(&statuses).as_str().to_owned()))
            .bind(filter.conversation_id.as_ref().map(|id| id.as_str()))
            .bind((!ids.is_empty()).then(|| Json::of(&ids).as_str().to_owned()))
            .bind(query.prefix.as_deref())
            .bind(query.limit as i64)
            .fetch_all(&mut *self.0.readers.lend().await?)
            .await
            .map_err(failure)?;
        rows.iter().map(session_row).collect()
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
        let rows = sqlx::query(AGENTS)
            .bind(namespace.as_str())
            .bind(after.map_or("", |agent| agent.as_str()))
            .bind(limit as i64)
            .fetch_all(&mut *self.0.readers.lend().await?)
            .await
            .map_err(failure)?;
        let agent = |row: &SqliteRow| Ok((session_row(row)?, count(row, "sessions")?));
        rows.iter().map(agent).collect()
    }

    async fn due(
        &self,
        shard: Shard,
        until_ms: i64,
        after: Option<(i64, SessionKey)>,
        limit: usize,
    ) -> Result<Vec<(i64, SessionKey)>, Failure> {
        let (wake_at_ms, namespace, session) = after.as_ref().map_or((i64::MIN, "", ""), |(wake_at_ms, key)| {
            (*wake_at_ms, key.namespace.as_str(), key.session_id.as_str())
        });
        let rows = sqlx::query(DUE)
            .bind(i64::from(shard.0))
            .bind(until_ms)
            .bind(wake_at_ms)
            .bind(namespace)
            .bind(session)
            .bind(limit as i64)
            .fetch_all(&mut *self.0.readers.lend().await?)
            .await
            .map_err(failure)?;
        rows.iter().map(|row| Ok((get(row, "wake_at_ms")?, key(row)?))).collect()
    }

    async fn heads(&self, after: Option<&SessionKey>, limit: usize) -> Result<Vec<(SessionKey, Head)>, Failure> {
        self.walk_heads(after, limit).await
    }

    async fn rearm(&self, key: &SessionKey, next_offset: u64) -> Result<bool, Failure> {
        self.set_due(key, next_offset).await
    }

    async fn count_by_status(&self) -> Result<Vec<(SessionStatus, u64)>, Failure> {
        let rows = sqlx::query(COUNT_BY_STATUS).fetch_all(&mut *self.0.readers.lend().await?).await.map_err(failure)?;
        rows.iter().map(|row| Ok((name(row, "status", SessionStatus::parse)?, count(row, "sessions")?))).collect()
    }
}

impl SqliteStore {
    async fn one(&self, sql: &'static str, namespace: &Namespace, id: &str) -> Result<Option<SessionRow>, Failure> {
        let row = sqlx::query(sql)
            .bind(namespace.as_str())
            .bind(id)
            .fetch_optional(&mut *self.0.readers.lend().await?)
            .await
            .map_err(failure)?;
        row.as_ref().map(session_row).transpose()
    }
}
