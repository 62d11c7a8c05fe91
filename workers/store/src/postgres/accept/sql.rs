//! The statements of acceptance: one that looks, one that writes.

use super::super::rows::{action_columns, now};

/// What is known of the actions ($1, $2), the sessions ($3, $4) and the newest sessions of the agents
/// ($5, $6) that a batch names, and the time. The sessions are locked, in the order of their ids.
pub(super) const FIND: &str = concat!(
    "WITH newest AS MATERIALIZED (
        SELECT n.namespace, n.session_id FROM unnest($5::text[], $6::text[]) AS j (namespace, agent_id)
        CROSS JOIN LATERAL (
            SELECT s.namespace, s.session_id FROM sessions AS s
            WHERE s.namespace = j.namespace AND s.agent_id = j.agent_id
            ORDER BY s.created_at_ms DESC, s.session_id DESC LIMIT 1) AS n
    ), wanted AS MATERIALIZED (
        SELECT w.namespace, w.session_id, bool_or(w.is_newest) AS is_newest FROM (
            SELECT namespace, session_id, false AS is_newest FROM unnest($3::text[], $4::text[]) AS j (namespace, session_id)
            UNION ALL SELECT namespace, session_id, true FROM newest) AS w
        GROUP BY w.namespace, w.session_id
    ), locked AS MATERIALIZED (
        SELECT s.namespace, s.session_id, s.agent_id, s.conversation_id, s.shard, s.status, s.created_at_ms,
            s.control_seq, s.work_seq, w.is_newest
        FROM wanted AS w JOIN sessions AS s ON s.namespace = w.namespace AND s.session_id = w.session_id
        ORDER BY s.namespace, s.session_id FOR NO KEY UPDATE OF s
    )
    SELECT 'session' AS found, namespace, session_id, agent_id, conversation_id, shard, status, created_at_ms,
        control_seq, work_seq, is_newest FROM locked
    UNION ALL
    SELECT 'action', a.namespace, a.action_id, NULL, NULL, 0, NULL, 0, 0, 0, false
    FROM unnest($1::text[], $2::text[]) AS j (namespace, action_id)
    JOIN actions AS a ON a.namespace = j.namespace AND a.action_id = j.action_id
    UNION ALL
    SELECT 'now', NULL, NULL, NULL, NULL, 0, NULL, ",
    now!(),
    ", 0, 0, false"
);

/// Actions that were there before, whole.
pub(super) const FIND_ACTIONS: &str = concat!(
    "SELECT ",
    action_columns!(),
    " FROM unnest($1::text[], $2::text[]) AS j (namespace, action_id)
    JOIN actions AS a ON a.namespace = j.namespace AND a.action_id = j.action_id
    LEFT JOIN sessions AS s ON s.namespace = a.namespace AND s.session_id = a.session_id"
);

/// Sessions ($1 to $11) with their specs ($12), counters ($13 to $16) and actions ($17 to $34).
///
/// A new session is newer than all that its agent had. Those of a batch follow each other, from $35
/// on, as if the agent had none; one that it had after that moves them behind it.
pub(super) const WRITE: &str = "
    WITH created AS (
        INSERT INTO sessions (namespace, session_id, agent_id, shard, moniker, conversation_id, created_at_ms, status,
            steps, next_offset, control_seq, work_seq, head)
        SELECT namespace, session_id, agent_id, shard, moniker, conversation_id,
            greatest(created_at_ms, created_at_ms - $35::int8 + 1 + (
                SELECT n.created_at_ms FROM sessions AS n WHERE n.namespace = j.namespace AND n.agent_id = j.agent_id
                ORDER BY n.created_at_ms DESC, n.session_id DESC LIMIT 1)),
            status, 0, 1, control_seq, work_seq, head
        FROM unnest($1::text[], $2::text[], $3::text[], $4::int4[], $5::text[], $6::text[], $7::int8[], $8::text[],
            $9::int8[], $10::int8[], $11::text[])
            AS j (namespace, session_id, agent_id, shard, moniker, conversation_id, created_at_ms, status, control_seq,
                work_seq, head)
    ), specified AS (
        INSERT INTO session_specs (namespace, session_id, spec)
        SELECT namespace, session_id, spec FROM unnest($1::text[], $2::text[], $12::text[]) AS j (namespace, session_id, spec)
    ), counted AS (
        UPDATE sessions AS s SET control_seq = j.control_seq, work_seq = j.work_seq
        FROM unnest($13::text[], $14::text[], $15::int8[], $16::int8[]) AS j (namespace, session_id, control_seq, work_seq)
        WHERE s.namespace = j.namespace AND s.session_id = j.session_id
    )
    INSERT INTO actions (namespace, action_id, type, session_id, agent_id, shard, lane, session_seq, accepted_at_ms,
        processed_at_ms, outcome, code, error, urgency, actor, body_hash, payload, metadata)
    SELECT * FROM unnest($17::text[], $18::text[], $19::text[], $20::text[], $21::text[], $22::int4[], $23::text[],
        $24::int8[], $25::int8[], $26::int8[], $27::text[], $28::text[], $29::text[], $30::text[], $31::text[],
        $32::bytea[], $33::text[], $34::text[])";

/// Of sessions that a transaction will touch later on, in the order of their ids.
pub(super) const LOCK_SESSIONS: &str = "
    SELECT 1 FROM (SELECT DISTINCT * FROM unnest($1::text[], $2::text[]) AS j (namespace, session_id)) AS j
    JOIN sessions AS s ON s.namespace = j.namespace AND s.session_id = j.session_id
    ORDER BY s.namespace, s.session_id FOR NO KEY UPDATE OF s";

#[cfg(test)]
pub(in super::super) const SQL: &[(&str, &str)] = &[
    ("accept::find", FIND),
    ("accept::find_actions", FIND_ACTIONS),
    ("accept::write", WRITE),
    ("accept::lock_sessions", LOCK_SESSIONS),
];
