//! The statements that add to conversations within a transaction.

use super::super::rows::now;

/// Sums end at the bound, which leaves room to add up those of all shards.
macro_rules! add_spent {
    ($bound:literal) => {
        concat!(
            "ON CONFLICT (namespace, shard) DO UPDATE SET
                tokens = least(least(spending.tokens, ",
            $bound,
            "::int8) + excluded.tokens, ",
            $bound,
            "::int8),
                cost_nanos = least(least(spending.cost_nanos, ",
            $bound,
            "::int8) + excluded.cost_nanos, ",
            $bound,
            "::int8),
                calls = spending.calls + excluded.calls"
        )
    };
}
pub(in super::super) use add_spent;

/// A turn stays with its session, whoever else uses its id.
macro_rules! keep_turn {
    () => {
        "ON CONFLICT (namespace, turn_id) DO UPDATE SET conversation_id = excluded.conversation_id,
            status = excluded.status, created_at_ms = excluded.created_at_ms, body = excluded.body
        WHERE turns.session_id = excluded.session_id"
    };
}
pub(in super::super) use keep_turn;

macro_rules! operation_columns {
    () => {
        "namespace, operation_id, conversation_id, session_id, turn_id, kind, pool, state, attempt, timeout_ms,
        created_at_ms, due_at_ms, claimed_by, until_ms, error, body, wait_ms"
    };
}
pub(in super::super) use operation_columns;

/// As `domain::talk::take_state` says.
macro_rules! take_state {
    () => {
        "ON CONFLICT (namespace, operation_id) DO UPDATE SET state = excluded.state,
            error = coalesce(excluded.error, operations.error),
            claimed_by = CASE excluded.state WHEN 'running' THEN operations.claimed_by END,
            until_ms = CASE excluded.state WHEN 'running' THEN operations.until_ms END
        WHERE operations.state IN ('pending', 'running') AND excluded.state <> 'pending'"
    };
}
pub(in super::super) use take_state;

pub(super) const NOW: &str = concat!("SELECT ", now!(), " AS now_ms");
/// Locks the conversations, in the order of their ids, and so the ends of their logs.
pub(super) const LOCK_FORUMS: &str = "
    SELECT c.namespace, c.conversation_id, c.status, c.created_at_ms, c.last_offset
    FROM (SELECT DISTINCT * FROM unnest($1::text[], $2::text[]) AS j (namespace, conversation_id)) AS j
    JOIN conversations AS c ON c.namespace = j.namespace AND c.conversation_id = j.conversation_id
    ORDER BY c.namespace, c.conversation_id FOR NO KEY UPDATE OF c";
/// The database's time, once for each of the records that are there, by its place in the list; and once if none is.
/// Asked after the lock, or it would not see what was written before the lock was free.
pub(super) const FIND_RECORDS: &str = concat!(
    "SELECT n.now_ms, f.place FROM (SELECT ",
    now!(),
    " AS now_ms) AS n LEFT JOIN (
        SELECT j.place FROM unnest($1::text[], $2::text[], $3::text[])
            WITH ORDINALITY AS j (namespace, conversation_id, record_id, place)
        JOIN conversation_log AS l ON l.namespace = j.namespace AND l.conversation_id = j.conversation_id
            AND l.record_id = j.record_id) AS f ON true"
);
pub(super) const FIND_SPECS: &str = "
    SELECT c.namespace, c.session_id, c.spec FROM unnest($1::text[], $2::text[]) AS j (namespace, session_id)
    JOIN session_specs AS c ON c.namespace = j.namespace AND c.session_id = j.session_id";
/// Says for which sessions these operations are, which never changes.
pub(super) const FIND_WORKS: &str = "
    SELECT o.namespace, o.operation_id, o.session_id, o.state
    FROM unnest($1::text[], $2::text[]) AS j (namespace, operation_id)
    JOIN operations AS o ON o.namespace = j.namespace AND o.operation_id = j.operation_id";
/// Locks the operations, in the order of their ids.
pub(super) const LOCK_WORKS: &str = "
    SELECT o.namespace, o.operation_id, o.session_id, o.state
    FROM (SELECT DISTINCT * FROM unnest($1::text[], $2::text[]) AS j (namespace, operation_id)) AS j
    JOIN operations AS o ON o.namespace = j.namespace AND o.operation_id = j.operation_id
    ORDER BY o.namespace, o.operation_id FOR NO KEY UPDATE OF o";
/// Seats of agents in conversations, in the order they joined. One without a session cannot be asked.
pub(super) const FIND_SEATS: &str = "
    SELECT j.namespace, j.conversation_id, j.agent_id, p.session_id, s.moniker
    FROM unnest($1::text[], $2::text[], $3::text[]) AS j (namespace, conversation_id, agent_id)
    CROSS JOIN LATERAL (
        SELECT n.session_id, n.joined_at_ms, n.participant_id FROM conversation_participants AS n
        WHERE n.namespace = j.namespace AND n.conversation_id = j.conversation_id AND coalesce(n.user_id, '') = ''
            AND coalesce(n.agent_id, '') = j.agent_id AND n.left_at_ms IS NULL OFFSET 0) AS p
    CROSS JOIN LATERAL (
        SELECT k.moniker FROM sessions AS k
        WHERE k.namespace = j.namespace AND k.session_id = p.session_id OFFSET 0) AS s
    ORDER BY p.joined_at_ms, p.participant_id";

pub(super) const OPEN: &str = "
    INSERT INTO conversations (namespace, conversation_id, created_at_ms, updated_at_ms, status, visibility,
        created_by, subject_id, last_offset, body)
    SELECT namespace, conversation_id, created_at_ms, updated_at_ms, status, visibility, created_by, subject_id, 0, body
    FROM unnest($1::text[], $2::text[], $3::int8[], $4::int8[], $5::text[], $6::text[], $7::text[], $8::text[], $9::text[])
        AS j (namespace, conversation_id, created_at_ms, updated_at_ms, status, visibility, created_by, subject_id, body)";
/// A tag that is given twice is there once.
pub(super) const TAG: &str = "
    INSERT INTO conversation_tags (namespace, conversation_id, opened_at_ms, tag)
    SELECT * FROM unnest($1::text[], $2::text[], $3::int8[], $4::text[]) ON CONFLICT DO NOTHING";
/// Whoever takes part already is left as they are; the others are told of. A session that is created takes no seat
/// again that it has lost before.
pub(super) const JOIN: &str = "
    INSERT INTO conversation_participants (namespace, conversation_id, participant_id, user_id, agent_id, session_id,
        opened_at_ms, joined_at_ms, body)
    SELECT j.namespace, j.conversation_id, j.participant_id, j.user_id, j.agent_id, j.session_id, j.opened_at_ms,
        j.joined_at_ms, j.body
    FROM unnest($1::text[], $2::text[], $3::text[], $4::text[], $5::text[], $6::text[], $7::int8[], $8::int8[],
        $9::text[], $10::bool[]) AS j (namespace, conversation_id, participant_id, user_id, agent_id, session_id,
        opened_at_ms, joined_at_ms, body, at_creation)
    WHERE NOT j.at_creation OR (SELECT p.participant_id FROM conversation_participants AS p
        WHERE p.namespace = j.namespace AND p.conversation_id = j.conversation_id AND p.session_id = j.session_id
        LIMIT 1) IS NULL
    ON CONFLICT DO NOTHING
    RETURNING namespace, conversation_id, participant_id";
/// What is said, in one statement: records ($1 to $10), the ends of logs ($11 to $13) with the time ($14), what was
/// spent ($15 to $19) with its bound ($20), turns ($21 to $27). Parts without rows change nothing.
///
/// Of one row of `spending`, no two transactions are in here: whoever adds to it has its shard.
pub(super) const SAY: &str = concat!(
    "WITH records AS (
        INSERT INTO conversation_log (namespace, conversation_id, log_offset, kind, turn_id, agent_id, session_id,
            at_ms, record_id, body)
        SELECT * FROM unnest($1::text[], $2::text[], $3::int8[], $4::text[], $5::text[], $6::text[], $7::text[],
            $8::int8[], $9::text[], $10::text[])
    ), ends AS (
        UPDATE conversations AS c SET last_offset = j.last_offset, updated_at_ms = greatest(c.updated_at_ms, $14::int8),
            unarchived_from = coalesce(c.unarchived_from, c.archived_upto + 1)
        FROM unnest($11::text[], $12::text[], $13::int8[]) AS j (namespace, conversation_id, last_offset)
        WHERE c.namespace = j.namespace AND c.conversation_id = j.conversation_id
    ), spent AS (
        INSERT INTO spending (namespace, shard, tokens, cost_nanos, calls)
        SELECT * FROM unnest($15::text[], $16::int4[], $17::int8[], $18::int8[], $19::int8[])
        ",
    add_spent!("$20"),
    "
    )
    INSERT INTO turns (namespace, turn_id, conversation_id, session_id, status, created_at_ms, body)
    SELECT * FROM unnest($21::text[], $22::text[], $23::text[], $24::text[], $25::text[], $26::int8[], $27::text[]) ",
    keep_turn!()
);
pub(super) const PUT_OPERATIONS: &str = concat!(
    "INSERT INTO operations (",
    operation_columns!(),
    ")
    SELECT * FROM unnest($1::text[], $2::text[], $3::text[], $4::text[], $5::text[], $6::text[], $7::text[], $8::text[],
        $9::int8[], $10::int8[], $11::int8[], $12::int8[], $13::text[], $14::int8[], $15::text[], $16::text[],
        $17::int8[]) ",
    take_state!()
);
pub(super) const END_OPERATIONS: &str = "
    UPDATE operations AS o SET state = j.state, claimed_by = NULL, until_ms = NULL
    FROM unnest($1::text[], $2::text[], $3::text[]) AS j (namespace, operation_id, state)
    WHERE o.namespace = j.namespace AND o.operation_id = j.operation_id AND (o.state IN ('pending', 'running')) IS TRUE";

#[cfg(test)]
pub(in super::super) const SQL: &[(&str, &str)] = &[
    ("talk::now", NOW),
    ("talk::lock_forums", LOCK_FORUMS),
    ("talk::find_records", FIND_RECORDS),
    ("talk::find_specs", FIND_SPECS),
    ("talk::find_works", FIND_WORKS),
    ("talk::lock_works", LOCK_WORKS),
    ("talk::find_seats", FIND_SEATS),
    ("talk::open", OPEN),
    ("talk::tag", TAG),
    ("talk::join", JOIN),
    ("talk::say", SAY),
    ("talk::put_operations", PUT_OPERATIONS),
    ("talk::end_operations", END_OPERATIONS),
];
