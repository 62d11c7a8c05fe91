-- Conversations: who talks, what was said, and the work that it caused. The row is rewritten by every
-- append to its log; `body` is the whole of it as JSON, and where a column says the same, the column
-- counts.
CREATE TABLE conversations (
    namespace       TEXT COLLATE "C" NOT NULL,
    conversation_id TEXT COLLATE "C" NOT NULL,
    created_at_ms   BIGINT NOT NULL,
    updated_at_ms   BIGINT NOT NULL,
    status          TEXT COLLATE "C" NOT NULL,
    visibility      TEXT COLLATE "C" NOT NULL,
    created_by      TEXT COLLATE "C" NOT NULL,
    subject_id      TEXT COLLATE "C",
    last_offset     BIGINT NOT NULL CHECK (last_offset >= 0),
    body            TEXT NOT NULL
) WITH (fillfactor = 80, autovacuum_vacuum_scale_factor = 0.05);

-- Delegated work makes conversations that no list shows; they may be most of all.
CREATE INDEX conversations_newest ON conversations (namespace, created_at_ms DESC, conversation_id DESC);
CREATE INDEX conversations_listed ON conversations (namespace, created_at_ms DESC, conversation_id DESC)
    WHERE visibility = 'listed';
CREATE INDEX conversations_of_subject
    ON conversations (namespace, subject_id, created_at_ms DESC, conversation_id DESC) WHERE subject_id IS NOT NULL;
-- Last, as in the first migration.
ALTER TABLE conversations ADD PRIMARY KEY (namespace, conversation_id);

-- `opened_at_ms` here and below is when the conversation was created: pages are in that order.
CREATE TABLE conversation_tags (
    namespace       TEXT COLLATE "C" NOT NULL,
    tag             TEXT COLLATE "C" NOT NULL,
    opened_at_ms    BIGINT NOT NULL,
    conversation_id TEXT COLLATE "C" NOT NULL,
    PRIMARY KEY (namespace, tag, opened_at_ms, conversation_id)
);

CREATE INDEX tags_of_conversation ON conversation_tags (namespace, conversation_id);

CREATE TABLE conversation_participants (
    namespace       TEXT COLLATE "C" NOT NULL,
    conversation_id TEXT COLLATE "C" NOT NULL,
    participant_id  TEXT COLLATE "C" NOT NULL,
    user_id         TEXT COLLATE "C",
    agent_id        TEXT COLLATE "C",
    session_id      TEXT COLLATE "C",
    opened_at_ms    BIGINT NOT NULL,
    joined_at_ms    BIGINT NOT NULL,
    left_at_ms      BIGINT,
    body            TEXT NOT NULL
);

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
-- Last, as in the first migration.
ALTER TABLE conversation_participants ADD PRIMARY KEY (namespace, conversation_id, participant_id);

-- Append-only. Offsets of a conversation are 1, 2, 3 and so on without gaps.
CREATE TABLE conversation_log (
    namespace       TEXT COLLATE "C" NOT NULL,
    conversation_id TEXT COLLATE "C" NOT NULL,
    log_offset      BIGINT NOT NULL CHECK (log_offset > 0),
    record_id       TEXT COLLATE "C" NOT NULL,
    kind            TEXT COLLATE "C" NOT NULL,
    turn_id         TEXT COLLATE "C",
    agent_id        TEXT COLLATE "C",
    session_id      TEXT COLLATE "C",
    at_ms           BIGINT NOT NULL,
    body            TEXT NOT NULL,
    PRIMARY KEY (namespace, conversation_id, log_offset),
    UNIQUE (namespace, conversation_id, record_id)
);

CREATE INDEX log_of_turn ON conversation_log (namespace, conversation_id, turn_id, log_offset)
    WHERE turn_id IS NOT NULL;

CREATE TABLE turns (
    namespace       TEXT COLLATE "C" NOT NULL,
    turn_id         TEXT COLLATE "C" NOT NULL,
    conversation_id TEXT COLLATE "C" NOT NULL,
    session_id      TEXT COLLATE "C" NOT NULL,
    status          TEXT COLLATE "C" NOT NULL,
    created_at_ms   BIGINT NOT NULL,
    body            TEXT NOT NULL
) WITH (fillfactor = 80, autovacuum_vacuum_scale_factor = 0.05);

CREATE INDEX turns_newest ON turns (namespace, created_at_ms, turn_id);
CREATE INDEX turns_of_conversation ON turns (namespace, conversation_id, created_at_ms, turn_id);
CREATE INDEX turns_of_session ON turns (namespace, session_id, created_at_ms, turn_id);
CREATE INDEX turns_open ON turns (namespace, conversation_id, created_at_ms, turn_id) WHERE status = 'active';
-- Last, as in the first migration.
ALTER TABLE turns ADD PRIMARY KEY (namespace, turn_id);

-- Dispatched work. Nobody may claim an operation before `due_at_ms`, which is the end of the claim
-- while somebody has it. `body` is what was dispatched; the columns say how it stands.
CREATE TABLE operations (
    namespace       TEXT COLLATE "C" NOT NULL,
    operation_id    TEXT COLLATE "C" NOT NULL,
    conversation_id TEXT COLLATE "C" NOT NULL,
    session_id      TEXT COLLATE "C" NOT NULL,
    turn_id         TEXT COLLATE "C" NOT NULL,
    kind            TEXT COLLATE "C" NOT NULL,
    pool            TEXT COLLATE "C" NOT NULL,
    state           TEXT COLLATE "C" NOT NULL,
    attempt         BIGINT NOT NULL,
    timeout_ms      BIGINT NOT NULL,
    created_at_ms   BIGINT NOT NULL,
    due_at_ms       BIGINT NOT NULL,
    claimed_by      TEXT,
    until_ms        BIGINT,
    error           TEXT,
    body            TEXT NOT NULL
) WITH (fillfactor = 80, autovacuum_vacuum_scale_factor = 0.05, autovacuum_vacuum_cost_delay = 0);

CREATE INDEX operations_due ON operations (pool, due_at_ms, namespace, operation_id)
    WHERE kind = 'task' AND state IN ('pending', 'running');
CREATE INDEX approvals_due ON operations (until_ms, namespace, operation_id)
    WHERE kind = 'approval' AND state = 'pending';
CREATE INDEX operations_newest ON operations (namespace, created_at_ms, operation_id);
CREATE INDEX operations_of_conversation ON operations (namespace, conversation_id, created_at_ms, operation_id);
CREATE INDEX operations_of_turn ON operations (namespace, turn_id, created_at_ms, operation_id);
-- Last, as in the first migration.
ALTER TABLE operations ADD PRIMARY KEY (namespace, operation_id);
