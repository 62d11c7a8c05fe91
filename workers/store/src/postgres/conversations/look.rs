//! How a conversation stands, by one statement: one way to the database and back.

use domain::ports::LookQuery;

use super::super::pool::Statement;
use super::{at, whole};
use crate::columns::look::kinds;

/// The page ends before it has more bytes, but has at least one row.
pub(super) const LOOK: &str = "
    WITH page AS MATERIALIZED (
        SELECT * FROM (
            SELECT p.*, octet_length(p.body) AS own,
                sum(octet_length(p.body)) OVER (ORDER BY p.log_offset ROWS UNBOUNDED PRECEDING) AS taken
            FROM (SELECT * FROM conversation_log AS l
                WHERE l.namespace = $1 AND l.conversation_id = $2 AND l.log_offset > $3 AND l.kind = ANY ($4::text[])
                ORDER BY l.log_offset LIMIT $5) AS p) AS c
        WHERE c.taken <= $6 OR c.taken = c.own
    ), active AS (
        SELECT t.body FROM turns AS t
        WHERE t.namespace = $1 AND t.conversation_id = $2 AND t.status = 'active'
        ORDER BY t.created_at_ms, t.turn_id LIMIT $7
    ), ended AS (
        SELECT t.body FROM (SELECT unnest($8::text[]) AS turn_id UNION SELECT turn_id FROM page) AS j
        CROSS JOIN LATERAL (SELECT * FROM turns AS k WHERE k.namespace = $1 AND k.turn_id = j.turn_id OFFSET 0) AS t
        WHERE t.status <> 'active' ORDER BY t.created_at_ms DESC, t.turn_id DESC LIMIT $9
    )
    SELECT 'conversation' AS found, c.body, c.status, c.last_offset, c.created_at_ms, c.updated_at_ms,
        NULL::int8 AS log_offset, NULL::text AS record_id, NULL::text AS kind, NULL::text AS turn_id,
        NULL::text AS agent_id, NULL::text AS session_id, NULL::int8 AS at_ms
    FROM conversations AS c WHERE c.namespace = $1 AND c.conversation_id = $2
    UNION ALL
    SELECT 'record', p.body, NULL, NULL, NULL, NULL, p.log_offset, p.record_id, p.kind, p.turn_id, p.agent_id,
        p.session_id, p.at_ms FROM page AS p
    UNION ALL
    SELECT 'active', a.body, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL FROM active AS a
    UNION ALL
    SELECT 'ended', e.body, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL FROM ended AS e";

pub(super) fn statement(query: &LookQuery) -> Statement {
    let LookQuery { log, active_max, ended_max, followed } = query;
    at(LOOK, &log.namespace, &log.conversation_id)
        .bind(whole(log.after))
        .bind(kinds(query))
        .bind(log.limit as i64)
        .bind(whole(log.bytes as u64))
        .bind(*active_max as i64)
        .bind(followed.iter().map(|id| id.as_str()).collect::<Vec<_>>())
        .bind(*ended_max as i64)
}
