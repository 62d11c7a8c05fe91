//! How a conversation stands, by one script: one message to the connection's thread.

use domain::ports::LookQuery;
use schemas::json::Json;

use super::super::writer::Statement;
use super::whole;
use crate::columns::look::kinds;
use crate::columns::talk::conversation_columns;

macro_rules! active {
    () => {
        "SELECT 'active' AS found, t.body FROM turns AS t INDEXED BY turns_open
        WHERE t.namespace = $1 AND t.conversation_id = $2 AND t.status = 'active'
        ORDER BY t.created_at_ms, t.turn_id LIMIT $7"
    };
}
macro_rules! one {
    () => {
        concat!(
            "SELECT 'conversation' AS found, ",
            conversation_columns!(),
            " FROM conversations AS c WHERE c.namespace = $1 AND c.conversation_id = $2"
        )
    };
}
/// The page ends before it has more bytes, but has at least one row.
macro_rules! page {
    () => {
        "SELECT 'record' AS found, j.* FROM (
            SELECT w.*, octet_length(w.body) AS own,
                sum(octet_length(w.body)) OVER (ORDER BY w.log_offset ROWS UNBOUNDED PRECEDING) AS taken
            FROM (SELECT l.log_offset, l.record_id, l.kind, l.turn_id, l.agent_id, l.session_id, l.at_ms, l.body
                FROM conversation_log AS l
                WHERE l.namespace = $1 AND l.conversation_id = $2 AND l.log_offset > $3
                    AND l.kind IN (SELECT value FROM json_each($4))
                ORDER BY l.log_offset LIMIT $5) AS w) AS j
        WHERE j.taken <= $6 OR j.taken = j.own"
    };
}
macro_rules! ended {
    () => {
        concat!(
            "SELECT 'ended' AS found, t.body FROM (
                SELECT value AS turn_id FROM json_each($8) UNION SELECT turn_id FROM (",
            page!(),
            ") WHERE turn_id IS NOT NULL) AS j
            CROSS JOIN turns AS t ON t.namespace = $1 AND t.turn_id = j.turn_id AND t.status <> 'active'
            ORDER BY t.created_at_ms DESC, t.turn_id DESC LIMIT $9"
        )
    };
}
const LOOK: &str = concat!(active!(), ";", one!(), ";", page!(), ";", ended!());

pub(super) fn statement(query: &LookQuery) -> Statement {
    let LookQuery { log, active_max, ended_max, followed } = query;
    sqlx::query(LOOK)
        .bind(log.namespace.to_string())
        .bind(log.conversation_id.to_string())
        .bind(whole(log.after))
        .bind(Json::of(&kinds(query)).as_str().to_owned())
        .bind(log.limit as i64)
        .bind(whole(log.bytes as u64))
        .bind(*active_max as i64)
        .bind(Json::of(followed).as_str().to_owned())
        .bind(*ended_max as i64)
}

#[cfg(test)]
pub(in super::super) const SQL: &[(&str, &str)] =
    &[("look::active", active!()), ("look::one", one!()), ("look::page", page!()), ("look::ended", ended!())];
