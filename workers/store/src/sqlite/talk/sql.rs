//! The statements that add to conversations within a transaction. Those that belong together are
//! scripts, as in a commit: there, they are part of longer ones, with other parameters.

macro_rules! find_forums {
    ($keys:literal) => {
        concat!(
            "SELECT 'forum' AS done, c.namespace, c.conversation_id, c.status, c.created_at_ms, c.last_offset
            FROM json_each(",
            $keys,
            ") AS j
            CROSS JOIN conversations AS c ON c.namespace = j.value->>0 AND c.conversation_id = j.value->>1"
        )
    };
}
/// Records that are there, by their place in the list.
macro_rules! find_records {
    ($rows:literal, $texts:literal) => {
        concat!(
            "SELECT 'record' AS done, j.key AS place FROM json_each(",
            $rows,
            ") AS j
            CROSS JOIN conversation_log AS l ON l.namespace = j.value->>0 AND l.conversation_id = j.value->>1
                AND l.record_id = cast(substr(",
            $texts,
            ", j.value->>2, j.value->>3) AS TEXT)"
        )
    };
}
macro_rules! insert_log {
    ($rows:literal, $texts:literal) => {
        concat!(
            "INSERT INTO conversation_log (namespace, conversation_id, log_offset, kind, turn_id, agent_id,
                session_id, at_ms, record_id, body)
            SELECT value->>0, value->>1, value->>2, value->>3, value->>4, value->>5, value->>6, value->>7,
                cast(substr(",
            $texts,
            ", value->>8, value->>9) AS TEXT),
                cast(substr(",
            $texts,
            ", value->>10, value->>11) AS TEXT)
            FROM json_each(",
            $rows,
            ")"
        )
    };
}
macro_rules! move_ends {
    ($rows:literal) => {
        concat!(
            "UPDATE conversations SET last_offset = j.value->>2, updated_at_ms = max(updated_at_ms, j.value->>3),
                unarchived_from = coalesce(unarchived_from, archived_upto + 1)
            FROM json_each(",
            $rows,
            ") AS j
            WHERE conversations.namespace = j.value->>0 AND conversations.conversation_id = j.value->>1"
        )
    };
}
/// Sums end at `max`, which leaves room to add up those of all shards.
macro_rules! spend {
    ($rows:literal, $max:literal) => {
        concat!(
            "INSERT INTO spending (namespace, shard, tokens, cost_nanos, calls)
            SELECT value->>0, value->>1, value->>2, value->>3, value->>4 FROM json_each(",
            $rows,
            ") WHERE true
            ON CONFLICT (namespace, shard) DO UPDATE SET
                tokens = min(min(spending.tokens, ",
            $max,
            ") + excluded.tokens, ",
            $max,
            "), cost_nanos = min(min(spending.cost_nanos, ",
            $max,
            ") + excluded.cost_nanos, ",
            $max,
            "), calls = spending.calls + excluded.calls"
        )
    };
}
/// A turn stays with its session, whoever else uses its id.
macro_rules! put_turns {
    ($rows:literal, $texts:literal) => {
        concat!(
            "INSERT INTO turns (namespace, turn_id, conversation_id, session_id, status, created_at_ms, body)
            SELECT value->>0, value->>1, value->>2, value->>3, value->>4, value->>5,
                cast(substr(",
            $texts,
            ", value->>6, value->>7) AS TEXT)
            FROM json_each(",
            $rows,
            ") WHERE true
            ON CONFLICT (namespace, turn_id) DO UPDATE SET conversation_id = excluded.conversation_id,
                status = excluded.status, created_at_ms = excluded.created_at_ms, body = excluded.body
                WHERE turns.session_id = excluded.session_id"
        )
    };
}
/// What a commit says; see [`SAY`].
macro_rules! say {
    ($log:literal, $texts:literal, $ends:literal, $spent:literal, $turns:literal, $turn_texts:literal, $max:literal) => {
        concat!(
            insert_log!($log, $texts),
            ";",
            move_ends!($ends),
            ";",
            spend!($spent, $max),
            ";",
            put_turns!($turns, $turn_texts)
        )
    };
}
pub(in super::super) use {find_forums, find_records, insert_log, move_ends, put_turns, say, spend};

pub(super) const FIND_FORUMS: &str = find_forums!("$1");
/// Records, the ends of logs, what was spent, turns; and the bound of what is spent.
pub(super) const SAY: &str = say!("$1", "$2", "$3", "$4", "$5", "$6", "$7");
/// What must be known before records are numbered.
pub(super) const LOOK: &str = concat!(find_forums!("$1"), ";", find_records!("$2", "$3"));
pub(super) const FIND_SPECS: &str = "
    SELECT c.namespace, c.session_id, c.spec FROM json_each(?1) AS j
    CROSS JOIN session_specs AS c ON c.namespace = j.value->>0 AND c.session_id = j.value->>1";
pub(super) const FIND_WORKS: &str = "
    SELECT o.namespace, o.operation_id, o.session_id, o.state FROM json_each(?1) AS j
    CROSS JOIN operations AS o ON o.namespace = j.value->>0 AND o.operation_id = j.value->>1";
/// Seats of agents in conversations, in the order they joined. One without a session cannot be asked.
pub(super) const FIND_SEATS: &str = "
    SELECT p.namespace, p.conversation_id, p.agent_id, p.session_id, s.moniker FROM json_each(?1) AS j
    CROSS JOIN conversation_participants AS p ON p.namespace = j.value->>0 AND p.conversation_id = j.value->>1
        AND coalesce(p.user_id, '') = '' AND coalesce(p.agent_id, '') = j.value->>2 AND p.left_at_ms IS NULL
    CROSS JOIN sessions AS s ON s.namespace = p.namespace AND s.session_id = p.session_id
    ORDER BY p.joined_at_ms, p.participant_id";

pub(super) const OPEN: &str = "
    INSERT INTO conversations (namespace, conversation_id, created_at_ms, updated_at_ms, status, visibility,
        last_offset, created_by, subject_id, body)
    SELECT value->>0, value->>1, value->>2, value->>3, value->>4, value->>5, 0,
        cast(substr(?2, value->>6, value->>7) AS TEXT), cast(substr(?2, value->>8, value->>9) AS TEXT),
        cast(substr(?2, value->>10, value->>11) AS TEXT)
    FROM json_each(?1)";
/// A tag that is given twice is there once.
pub(super) const TAG: &str = "
    INSERT INTO conversation_tags (namespace, conversation_id, opened_at_ms, tag)
    SELECT value->>0, value->>1, value->>2, cast(substr(?2, value->>3, value->>4) AS TEXT) FROM json_each(?1)
    WHERE true ON CONFLICT DO NOTHING";
/// Whoever takes part already is left as they are; the others are told of. A session that is created takes no seat
/// again that it has lost before.
pub(super) const JOIN: &str = "
    INSERT INTO conversation_participants (namespace, conversation_id, participant_id, user_id, agent_id, session_id,
        opened_at_ms, joined_at_ms, body)
    SELECT value->>0, value->>1, value->>2, value->>3, value->>4, value->>5, value->>6, value->>7,
        cast(substr(?2, value->>8, value->>9) AS TEXT)
    FROM json_each(?1) AS j
    WHERE NOT (j.value->>10 AND EXISTS (SELECT 1 FROM conversation_participants AS p
        WHERE p.namespace = j.value->>0 AND p.conversation_id = j.value->>1 AND p.session_id = j.value->>5))
    ON CONFLICT DO NOTHING
    RETURNING namespace, conversation_id, participant_id";
/// As `domain::talk::take_state` says.
pub(super) const PUT_OPERATIONS: &str = "
    INSERT INTO operations (namespace, operation_id, conversation_id, session_id, turn_id, kind, state, attempt,
        timeout_ms, created_at_ms, due_at_ms, until_ms, wait_ms, pool, claimed_by, error, body)
    SELECT value->>0, value->>1, value->>2, value->>3, value->>4, value->>5, value->>6, value->>7, value->>8,
        value->>9, value->>10, value->>11, value->>12, cast(substr(?2, value->>13, value->>14) AS TEXT),
        cast(substr(?2, value->>15, value->>16) AS TEXT), cast(substr(?2, value->>17, value->>18) AS TEXT),
        cast(substr(?2, value->>19, value->>20) AS TEXT)
    FROM json_each(?1) WHERE true
    ON CONFLICT (namespace, operation_id) DO UPDATE SET state = excluded.state,
        error = coalesce(excluded.error, operations.error),
        claimed_by = CASE excluded.state WHEN 'running' THEN operations.claimed_by END,
        until_ms = CASE excluded.state WHEN 'running' THEN operations.until_ms END
    WHERE operations.state IN ('pending', 'running') AND excluded.state <> 'pending'";
pub(super) const END_OPERATIONS: &str = "
    UPDATE operations SET state = j.value->>2, claimed_by = NULL, until_ms = NULL FROM json_each(?1) AS j
    WHERE operations.namespace = j.value->>0 AND operations.operation_id = j.value->>1
        AND operations.state IN ('pending', 'running')";

#[cfg(test)]
pub(in super::super) const SQL: &[(&str, &str)] = &[
    ("talk::find_forums", FIND_FORUMS),
    ("talk::find_records", find_records!("$1", "$2")),
    ("talk::find_specs", FIND_SPECS),
    ("talk::find_works", FIND_WORKS),
    ("talk::find_seats", FIND_SEATS),
    ("talk::open", OPEN),
    ("talk::tag", TAG),
    ("talk::join", JOIN),
    ("talk::log", insert_log!("$1", "$2")),
    ("talk::move_ends", move_ends!("$1")),
    ("talk::spend", spend!("$1", "$2")),
    ("talk::put_turns", put_turns!("$1", "$2")),
    ("talk::put_operations", PUT_OPERATIONS),
    ("talk::end_operations", END_OPERATIONS),
];
