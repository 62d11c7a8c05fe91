//! The statements of a commit, and the scripts they form: a script is one message to the
//! connection's thread, and waking that thread costs more than most statements do.

use super::super::talk::{find_forums, find_records, insert_log, move_ends, put_turns, say_script, spend};

/// Fences and reserves places at once: a shard that is not ours is not returned.
macro_rules! reserve {
    () => {
        "UPDATE shards SET seq = shards.seq + (j.value->>3) FROM json_each($1) AS j
        WHERE shards.shard = j.value->>0 AND shards.owner = j.value->>1 AND shards.epoch = j.value->>2
        RETURNING 'shard' AS done, shard, owner, epoch, seq"
    };
}
/// Of commits without steps and events, those whose head is there already, byte by byte.
macro_rules! find_kept {
    () => {
        "SELECT 'kept' AS done, s.namespace, s.session_id FROM json_each($4) AS j CROSS JOIN sessions AS s
            ON s.namespace = j.value->>0 AND s.session_id = j.value->>1
        WHERE s.steps = j.value->>2 AND s.next_offset = j.value->>3
            AND s.head = cast(substr($5, j.value->>4, j.value->>5) AS TEXT)"
    };
}
/// Replaces the heads that are as expected, of shards that are ours; returns whose.
macro_rules! replace_heads {
    () => {
        "UPDATE sessions SET status = j.value->>5, steps = j.value->>6, next_offset = j.value->>7,
            wake_at_ms = j.value->>8, head = cast(substr($3, j.value->>11, j.value->>12) AS TEXT)
        FROM json_each($2) AS j
        WHERE sessions.namespace = j.value->>0 AND sessions.session_id = j.value->>1
            AND sessions.shard = j.value->>2 AND sessions.steps = j.value->>3 AND sessions.next_offset = j.value->>4
            AND EXISTS (SELECT 1 FROM shards AS h
                WHERE h.shard = j.value->>2 AND h.owner = j.value->>9 AND h.epoch = j.value->>10)
        RETURNING 'head' AS done, namespace, session_id"
    };
}
macro_rules! insert_journal {
    () => {
        "INSERT INTO journal (shard, seq, namespace, session_id, first_offset, last_offset, committed_at_ms, body)
        SELECT value->>0, value->>1, value->>2, value->>3, value->>4, value->>5, value->>6,
            cast(substr($2, value->>7, value->>8) AS TEXT)
        FROM json_each($1)"
    };
}
macro_rules! settle_actions {
    () => {
        "UPDATE actions SET processed_at_ms = j.value->>3, outcome = j.value->>4, code = j.value->>5,
            error = cast(substr($4, j.value->>6, j.value->>7) AS TEXT)
        FROM json_each($3) AS j
        WHERE actions.namespace = j.value->>0 AND actions.action_id = j.value->>1
            AND actions.session_id = j.value->>2 AND actions.processed_at_ms IS NULL"
    };
}
/// A settled effect stays settled (invariant E2).
macro_rules! write_effects {
    () => {
        "INSERT INTO effects (namespace, session_id, class, state, settled_at_ms, effect_key, what)
        SELECT value->>0, value->>1, value->>2, value->>3, value->>4, cast(substr($6, value->>5, value->>6) AS TEXT),
            cast(substr($6, value->>7, value->>8) AS TEXT)
        FROM json_each($5) WHERE true
        ON CONFLICT (namespace, session_id, effect_key) DO UPDATE
            SET state = excluded.state, settled_at_ms = excluded.settled_at_ms WHERE effects.state <> 'settled'"
    };
}

pub(super) const BEGIN_AND_REPLACE: &str =
    concat!("BEGIN IMMEDIATE;", find_kept!(), ";", reserve!(), ";", replace_heads!());
/// The same, and a look at the conversations that the batch says something in.
pub(super) const BEGIN_REPLACE_AND_LOOK: &str = concat!(
    "BEGIN IMMEDIATE;",
    find_kept!(),
    ";",
    reserve!(),
    ";",
    replace_heads!(),
    ";",
    find_forums!("$6"),
    ";",
    find_records!("$7", "$8")
);
pub(super) const WRITE_AND_COMMIT: &str =
    concat!(insert_journal!(), ";", settle_actions!(), ";", write_effects!(), ";COMMIT");
pub(super) const WRITE_AND_SAY: &str = concat!(
    insert_journal!(),
    ";",
    settle_actions!(),
    ";",
    write_effects!(),
    ";",
    say_script!("$7", "$8", "$9", "$10", "$11", "$12", "$13")
);
pub(super) const WRITE_SAY_AND_COMMIT: &str = concat!(
    insert_journal!(),
    ";",
    settle_actions!(),
    ";",
    write_effects!(),
    ";",
    say_script!("$7", "$8", "$9", "$10", "$11", "$12", "$13"),
    ";COMMIT"
);
pub(super) const GIVE_BACK: &str = "
    UPDATE shards SET seq = shards.seq - (j.value->>1) FROM json_each($1) AS j WHERE shards.shard = j.value->>0";

#[cfg(test)]
pub(in super::super) const SQL: &[(&str, &str)] = &[
    ("commit::find_kept", find_kept!()),
    ("commit::reserve", reserve!()),
    ("commit::replace_heads", replace_heads!()),
    ("commit::insert_journal", insert_journal!()),
    ("commit::settle_actions", settle_actions!()),
    ("commit::write_effects", write_effects!()),
    ("commit::give_back", GIVE_BACK),
];
