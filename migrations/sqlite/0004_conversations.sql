-- Conversations: who talks, what was said, and the work that it caused. The row is rewritten by every
-- append to its log; `body` is the whole of it as JSON, and where a column says the same, the column
-- counts.
CREATE TABLE conversations (
    namespace       TEXT    NOT NULL,
    conversation_id TEXT    NOT NULL,
    created_at_ms   INTEGER NOT NULL,
    updated_at_ms   INTEGER NOT NULL,
    status          TEXT    NOT NULL,
    visibility      TEXT    NOT NULL,
    created_by      TEXT    NOT NULL,
    subject_id      TEXT,
    last_offset     INTEGER NOT NULL CHECK (last_offset >= 0),
    body            TEXT    NOT NULL,
    PRIMARY KEY (namespace, conversation_id)
) STRICT;

-- Delegated work makes conversations that no list shows; they may be most of all.
CREATE INDEX conversations_newest ON conversations (namespace, created_at_ms DESC, conversation_id DESC);
CREATE INDEX conversations_listed ON conversations (namespace, created_at_ms DESC, conversation_id DESC)
    WHERE visibility = 'listed';
CREATE INDEX conversations_of_subject
    ON conversations (namespace, subject_id, created_at_ms DESC, conversation_id DESC) WHERE subject_id IS NOT NULL;

-- `opened_at_ms` here and below is when the conversation was created: pages are in that order.
CREATE TABLE conversation_tags (
    namespace       TEXT    NOT NULL,
    tag             TEXT    NOT NULL,
    opened_at_ms    INTEGER NOT NULL,
    conversation_id TEXT    NOT NULL,
    PRIMARY KEY (namespace, tag, opened_at_ms, conversation_id)
) STRICT, WITHOUT ROWID;

CREATE INDEX tags_of_conversation ON conversation_tags (namespace, conversation_id);

CREATE TABLE conversation_participants (
    namespace       TEXT    NOT NULL,
    conversation_id TEXT    NOT NULL,
    participant_id  TEXT    NOT NULL,
    user_id         TEXT,
    agent_id        TEXT,
    session_id      TEXT,
    opened_at_ms    INTEGER NOT NULL,
    joined_at_ms    INTEGER NOT NULL,
    left_at_ms      INTEGER,
    body            TEXT    NOT NULL,
    PRIMARY KEY (namespace, conversation_id, participant_id)
) STRICT;

-- Nobody takes part twice at a time.
CREATE UNIQUE INDEX participants_now
    ON conversation_participants
        (namespace, conversation_id, coalesce(user_id, ''), coalesce(agent_id, ''), coalesce(session_id, ''))
    WHERE left_at_ms IS NULL;
CREATE INDEX participants_of_agent
    ON conversation_participants (namespace, agent_id, opened_at_ms DESC, conversation_id DESC)
    WHERE agent_id IS NOT NULL;
CREATE INDEX participants_of_user
    ON conversation_participants (namespace, user_id, opened_at_ms DESC, conversation_id DESC)
    WHERE user_id IS NOT NULL;

-- Append-only. Offsets of a conversation are 1, 2, 3 and so on without gaps.
CREATE TABLE conversation_log (
    namespace       TEXT    NOT NULL,
    conversation_id TEXT    NOT NULL,
    log_offset      INTEGER NOT NULL CHECK (log_offset > 0),
    record_id       TEXT    NOT NULL,
    kind            TEXT    NOT NULL,
    turn_id         TEXT,
    agent_id        TEXT,
    session_id      TEXT,
    at_ms           INTEGER NOT NULL,
    body            TEXT    NOT NULL,
    PRIMARY KEY (namespace, conversation_id, log_offset),
    UNIQUE (namespace, conversation_id, record_id)
) STRICT;

CREATE INDEX log_of_turn ON conversation_log (namespace, conversation_id, turn_id, log_offset)
    WHERE turn_id IS NOT NULL;

CREATE TABLE turns (
    namespace       TEXT    NOT NULL,
    turn_id         TEXT    NOT NULL,
    conversation_id TEXT    NOT NULL,
    session_id      TEXT    NOT NULL,
    status          TEXT    NOT NULL,
    created_at_ms   INTEGER NOT NULL,
    body            TEXT    NOT NULL,
    PRIMARY KEY (namespace, turn_id)
) STRICT;

CREATE INDEX turns_newest ON turns (namespace, created_at_ms, turn_id);
CREATE INDEX turns_of_conversation ON turns (namespace, conversation_id, created_at_ms, turn_id);
CREATE INDEX turns_of_session ON turns (namespace, session_id, created_at_ms, turn_id);
CREATE INDEX turns_open ON turns (namespace, conversation_id, created_at_ms, turn_id) WHERE status = 'active';

-- Dispatched work. Nobody may claim an operation before `due_at_ms`, which is the end of the claim
-- while somebody has it. `body` is what was dispatched; the columns say how it stands.
CREATE TABLE operations (
    namespace       TEXT    NOT NULL,
    operation_id    TEXT    NOT NULL,
    conversation_id TEXT    NOT NULL,
    session_id      TEXT    NOT NULL,
    turn_id         TEXT    NOT NULL,
    kind            TEXT    NOT NULL,
    pool            TEXT    NOT NULL,
    state           TEXT    NOT NULL,
    attempt         INTEGER NOT NULL,
    timeout_ms      INTEGER NOT NULL,
    created_at_ms   INTEGER NOT NULL,
    due_at_ms       INTEGER NOT NULL,
    claimed_by      TEXT,
    until_ms        INTEGER,
    error           TEXT,
    body            TEXT    NOT NULL,
    PRIMARY KEY (namespace, operation_id)
) STRICT;

CREATE INDEX operations_due ON operations (pool, due_at_ms, namespace, operation_id)
    WHERE kind = 'task' AND state IN ('pending', 'running');
CREATE INDEX approvals_due ON operations (until_ms, namespace, operation_id)
    WHERE kind = 'approval' AND state = 'pending';
CREATE INDEX operations_newest ON operations (namespace, created_at_ms, operation_id);
CREATE INDEX operations_of_conversation ON operations (namespace, conversation_id, created_at_ms, operation_id);
CREATE INDEX operations_of_turn ON operations (namespace, turn_id, created_at_ms, operation_id);
