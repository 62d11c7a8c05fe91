//! The statements of acceptance, and the two scripts they form: a script is one message to the
//! connection's thread, and waking that thread costs more than most statements do.

use super::super::talk::{find_forums, insert_log, move_ends, put_turns, say_script, spend};

use super::super::rows::action_columns;

macro_rules! find_actions {
    () => {
        concat!(
            "SELECT 'action' AS found, ",
            action_columns!(),
            " FROM json_each($1) AS j
            CROSS JOIN actions AS a ON a.namespace = j.value->>0 AND a.action_id = j.value->>1
            LEFT JOIN sessions AS s ON s.namespace = a.namespace AND s.session_id = a.session_id"
        )
    };
}
macro_rules! find_sessions {
    () => {
        "SELECT 'session' AS found, s.namespace, s.session_id, s.agent_id, s.conversation_id, s.shard, s.status,
            s.created_at_ms, s.control_seq, s.work_seq
        FROM json_each($2) AS j
        CROSS JOIN sessions AS s ON s.namespace = j.value->>0 AND s.session_id = j.value->>1"
    };
}
macro_rules! find_newest {
    () => {
        "SELECT 'newest' AS found, s.namespace, s.session_id, s.agent_id, s.conversation_id, s.shard, s.status,
            s.created_at_ms, s.control_seq, s.work_seq
        FROM json_each($3) AS j
        CROSS JOIN sessions AS s ON s.namespace = j.value->>0 AND s.session_id = (
            SELECT n.session_id FROM sessions AS n INDEXED BY sessions_of_agent
            WHERE n.namespace = j.value->>0 AND n.agent_id = j.value->>1
            ORDER BY n.created_at_ms DESC, n.session_id DESC LIMIT 1)"
    };
}
macro_rules! insert_sessions {
    () => {
        "INSERT INTO sessions (namespace, session_id, agent_id, shard, conversation_id, created_at_ms, control_seq,
            work_seq, status, steps, next_offset, moniker, head)
        SELECT value->>0, value->>1, value->>2, value->>3, value->>4, value->>5, value->>6, value->>7, value->>8,
            value->>9, value->>10, cast(substr($2, value->>11, value->>12) AS TEXT),
            cast(substr($2, value->>13, value->>14) AS TEXT)
        FROM json_each($1)"
    };
}
macro_rules! insert_specs {
    () => {
        "INSERT INTO session_specs (namespace, session_id, spec)
        SELECT value->>0, value->>1, cast(substr($4, value->>2, value->>3) AS TEXT) FROM json_each($3)"
    };
}
macro_rules! update_counters {
    () => {
        "UPDATE sessions SET control_seq = j.value->>2, work_seq = j.value->>3 FROM json_each($5) AS j
        WHERE sessions.namespace = j.value->>0 AND sessions.session_id = j.value->>1"
    };
}
macro_rules! insert_actions {
    () => {
        "INSERT INTO actions (namespace, action_id, type, session_id, agent_id, shard, lane, session_seq,
            accepted_at_ms, processed_at_ms, outcome, code, urgency, error, actor, body_hash, payload, metadata)
        SELECT value->>0, value->>1, value->>2, value->>3, value->>4, value->>5, value->>6, value->>7, value->>8,
            value->>9, value->>10, value->>11, value->>12, cast(substr($7, value->>13, value->>14) AS TEXT),
            cast(substr($7, value->>15, value->>16) AS TEXT), substr($7, value->>17, value->>18),
            cast(substr($7, value->>19, value->>20) AS TEXT), cast(substr($7, value->>21, value->>22) AS TEXT)
        FROM json_each($6)"
    };
}

/// What is known of the actions, the sessions and the agents that a batch names.
pub(super) const FIND: &str = concat!(find_actions!(), ";", find_sessions!(), ";", find_newest!());
pub(super) const BEGIN_AND_FIND: &str =
    concat!("BEGIN IMMEDIATE;", find_actions!(), ";", find_sessions!(), ";", find_newest!());
pub(super) const WRITE: &str =
    concat!(insert_sessions!(), ";", insert_specs!(), ";", update_counters!(), ";", insert_actions!());
pub(super) const WRITE_AND_COMMIT: &str =
    concat!(insert_sessions!(), ";", insert_specs!(), ";", update_counters!(), ";", insert_actions!(), ";COMMIT");

/// The conversation of a post, and its record if the log has it already.
pub(super) const BEGIN_FIND_AND_LOOK: &str = concat!(
    "BEGIN IMMEDIATE;",
    find_actions!(),
    ";",
    find_sessions!(),
    ";",
    find_newest!(),
    ";",
    find_forums!("$4"),
    ";",
    "SELECT 'said' AS done, l.log_offset, l.record_id, l.kind, l.turn_id, l.agent_id, l.session_id, l.at_ms, l.body
    FROM conversation_log AS l WHERE l.namespace = $5 AND l.conversation_id = $6 AND l.record_id = $7"
);
pub(super) const WRITE_SAY_AND_COMMIT: &str = concat!(
    insert_sessions!(),
    ";",
    insert_specs!(),
    ";",
    update_counters!(),
    ";",
    insert_actions!(),
    ";",
    say_script!("$8", "$9", "$10", "$11", "$12", "$13", "$14"),
    ";COMMIT"
);

#[cfg(test)]
pub(in super::super) const SQL: &[(&str, &str)] = &[
    ("accept::find_actions", find_actions!()),
    ("accept::find_sessions", find_sessions!()),
    ("accept::find_newest", find_newest!()),
    ("accept::insert_sessions", insert_sessions!()),
    ("accept::insert_specs", insert_specs!()),
    ("accept::update_counters", update_counters!()),
    ("accept::insert_actions", insert_actions!()),
];
