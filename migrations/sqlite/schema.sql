CREATE TABLE actions (
    id              INTEGER PRIMARY KEY,
    namespace       TEXT    NOT NULL,
    action_id       TEXT    NOT NULL,
    type            TEXT    NOT NULL,
    session_id      TEXT,
    agent_id        TEXT,
    shard           INTEGER,
    lane            TEXT    NOT NULL,
    session_seq     INTEGER,
    accepted_at_ms  INTEGER NOT NULL,
    published_at_ms INTEGER,
    processed_at_ms INTEGER,
    outcome         TEXT,
    code            TEXT,
    error           TEXT,
    urgency         TEXT    NOT NULL,
    actor           TEXT    NOT NULL,
    body_hash       BLOB    NOT NULL CHECK (length(body_hash) = 32),
    payload         TEXT    NOT NULL,
    metadata        TEXT    NOT NULL,
    UNIQUE (namespace, action_id),
    CHECK ((processed_at_ms IS NULL) = (outcome IS NULL)),
    CHECK (processed_at_ms IS NOT NULL OR (session_id IS NOT NULL AND shard IS NOT NULL AND session_seq > 0))
) STRICT;

CREATE TABLE blobs (
    namespace     TEXT    NOT NULL,
    blob_id       TEXT    NOT NULL,
    content       TEXT    NOT NULL,
    created_at_ms INTEGER NOT NULL,
    PRIMARY KEY (namespace, blob_id)
) STRICT;

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

CREATE TABLE conversation_tags (
    namespace       TEXT    NOT NULL,
    tag             TEXT    NOT NULL,
    opened_at_ms    INTEGER NOT NULL,
    conversation_id TEXT    NOT NULL,
    PRIMARY KEY (namespace, tag, opened_at_ms, conversation_id)
) STRICT, WITHOUT ROWID;

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
    body            TEXT    NOT NULL, unarchived_from INTEGER, archived_upto INTEGER NOT NULL DEFAULT 0, light_upto INTEGER NOT NULL DEFAULT 0,
    PRIMARY KEY (namespace, conversation_id)
) STRICT;

CREATE TABLE definition_versions (
    namespace     TEXT    NOT NULL,
    kind          TEXT    NOT NULL,
    id            TEXT    NOT NULL,
    version       INTEGER NOT NULL,
    content_hash  BLOB    NOT NULL CHECK (length(content_hash) = 32),
    content       TEXT    NOT NULL,
    created_at_ms INTEGER NOT NULL,
    PRIMARY KEY (namespace, kind, id, version)
) STRICT;

CREATE TABLE definitions (
    namespace     TEXT    NOT NULL,
    kind          TEXT    NOT NULL,
    id            TEXT    NOT NULL,
    version       INTEGER NOT NULL CHECK (version > 0),
    name          TEXT    NOT NULL,
    library_id    TEXT,
    project_ids   TEXT    NOT NULL,
    bytes         INTEGER NOT NULL,
    created_at_ms INTEGER NOT NULL,
    PRIMARY KEY (namespace, kind, id)
) STRICT, WITHOUT ROWID;

CREATE TABLE effects (
    namespace     TEXT NOT NULL,
    session_id    TEXT NOT NULL,
    effect_key    TEXT NOT NULL,
    class         TEXT NOT NULL,
    state         TEXT NOT NULL,
    what          TEXT NOT NULL,
    settled_at_ms INTEGER,
    PRIMARY KEY (namespace, session_id, effect_key)
) STRICT, WITHOUT ROWID;

CREATE TABLE journal (
    id              INTEGER PRIMARY KEY,
    shard           INTEGER NOT NULL,
    seq             INTEGER NOT NULL,
    namespace       TEXT    NOT NULL,
    session_id      TEXT    NOT NULL,
    first_offset    INTEGER NOT NULL,
    last_offset     INTEGER NOT NULL,
    committed_at_ms INTEGER NOT NULL,
    body            TEXT    NOT NULL,
    UNIQUE (shard, seq)
) STRICT;

CREATE TABLE "memories" (
    namespace       TEXT    NOT NULL,
    agent_id        TEXT    NOT NULL,
    id              TEXT    NOT NULL,
    version         INTEGER NOT NULL CHECK (version > 0),
    label           TEXT,
    tier            TEXT    NOT NULL,
    type            TEXT    NOT NULL,
    significance    REAL    NOT NULL,
    metadata        TEXT    NOT NULL,
    -- All of it, or the beginning of what lies in blobs or in the archive.
    content         TEXT    NOT NULL,
    content_ref     TEXT,
    content_hash    BLOB    NOT NULL CHECK (length(content_hash) = 32),
    body_hash       BLOB    NOT NULL CHECK (length(body_hash) = 32),
    -- Numbers of four bytes, little-endian.
    embedding       BLOB,
    embedding_model TEXT,
    created_at_ms   INTEGER NOT NULL,
    updated_at_ms   INTEGER NOT NULL,
    deleted_at_ms   INTEGER,
    revision        INTEGER NOT NULL DEFAULT 1,
    kept_at_ms      INTEGER,
    is_light        INTEGER NOT NULL DEFAULT 0,
    CHECK ((embedding IS NULL) = (embedding_model IS NULL) OR is_light AND embedding IS NULL)
) STRICT;

CREATE TABLE meta (
    id            INTEGER PRIMARY KEY CHECK (id = 1),
    shards        INTEGER NOT NULL CHECK (shards BETWEEN 1 AND 1024),
    version       TEXT    NOT NULL,
    created_at_ms INTEGER NOT NULL
) STRICT;

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
    body            TEXT    NOT NULL, wait_ms INTEGER, lost INTEGER NOT NULL DEFAULT 0,
    PRIMARY KEY (namespace, operation_id)
) STRICT;

CREATE TABLE roles (
    role           TEXT PRIMARY KEY,
    owner          TEXT,
    epoch          INTEGER NOT NULL,
    lease_until_ms INTEGER NOT NULL
) STRICT, WITHOUT ROWID;

CREATE TABLE session_specs (
    namespace  TEXT NOT NULL,
    session_id TEXT NOT NULL,
    spec       TEXT NOT NULL,
    PRIMARY KEY (namespace, session_id),
    FOREIGN KEY (namespace, session_id) REFERENCES sessions (namespace, session_id)
) STRICT;

CREATE TABLE sessions (
    namespace       TEXT    NOT NULL,
    session_id      TEXT    NOT NULL,
    agent_id        TEXT    NOT NULL,
    shard           INTEGER NOT NULL,
    moniker         TEXT    NOT NULL,
    conversation_id TEXT,
    created_at_ms   INTEGER NOT NULL,
    status          TEXT    NOT NULL,
    steps           INTEGER NOT NULL,
    next_offset     INTEGER NOT NULL,
    wake_at_ms      INTEGER,
    control_seq     INTEGER NOT NULL,
    work_seq        INTEGER NOT NULL,
    head            TEXT    NOT NULL,
    PRIMARY KEY (namespace, session_id)
) STRICT, WITHOUT ROWID;

CREATE TABLE shards (
    shard          INTEGER PRIMARY KEY,
    owner          TEXT,
    epoch          INTEGER NOT NULL DEFAULT 0,
    lease_until_ms INTEGER NOT NULL DEFAULT 0,
    seq            INTEGER NOT NULL DEFAULT 0,
    archived_seq   INTEGER NOT NULL DEFAULT 0 CHECK (archived_seq <= seq)
) STRICT;

CREATE TABLE spending (
    namespace  TEXT    NOT NULL,
    shard      INTEGER NOT NULL,
    tokens     INTEGER NOT NULL,
    cost_nanos INTEGER NOT NULL,
    calls      INTEGER NOT NULL,
    PRIMARY KEY (namespace, shard)
) STRICT, WITHOUT ROWID;

CREATE TABLE tokens (
    namespace TEXT NOT NULL,
    name      TEXT NOT NULL,
    hash      BLOB NOT NULL UNIQUE CHECK (length(hash) = 32),
    scopes    TEXT NOT NULL,
    PRIMARY KEY (namespace, name)
) STRICT, WITHOUT ROWID;

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

CREATE TABLE workers (
    worker_id       TEXT PRIMARY KEY,
    host            TEXT    NOT NULL,
    version         TEXT    NOT NULL,
    roles           TEXT    NOT NULL,
    draining        INTEGER NOT NULL,
    heartbeat_at_ms INTEGER NOT NULL
) STRICT, WITHOUT ROWID;

CREATE INDEX actions_pending
    ON actions (shard, namespace, session_id, lane, session_seq, accepted_at_ms, processed_at_ms)
    WHERE processed_at_ms IS NULL;

CREATE INDEX actions_processed ON actions (processed_at_ms) WHERE processed_at_ms IS NOT NULL;

CREATE INDEX actions_unpublished ON actions (accepted_at_ms) WHERE processed_at_ms IS NULL AND published_at_ms IS NULL;

CREATE INDEX agents_due ON operations (until_ms, namespace, operation_id)
    WHERE kind = 'agent' AND state = 'pending';

CREATE INDEX approvals_due ON operations (until_ms, namespace, operation_id)
    WHERE kind = 'approval' AND state = 'pending';

CREATE UNIQUE INDEX conversations_heavy ON conversations (namespace, conversation_id)
    WHERE light_upto < archived_upto;

CREATE INDEX conversations_listed ON conversations (namespace, created_at_ms DESC, conversation_id DESC)
    WHERE visibility = 'listed';

CREATE INDEX conversations_newest ON conversations (namespace, created_at_ms DESC, conversation_id DESC);

CREATE INDEX conversations_of_subject
    ON conversations (namespace, subject_id, created_at_ms DESC, conversation_id DESC) WHERE subject_id IS NOT NULL;

CREATE UNIQUE INDEX conversations_unarchived ON conversations (namespace, conversation_id)
    WHERE unarchived_from IS NOT NULL;

CREATE INDEX effects_settled ON effects (settled_at_ms) WHERE settled_at_ms IS NOT NULL;

CREATE INDEX journal_of_session ON journal (namespace, session_id, last_offset, seq);

CREATE INDEX log_of_turn ON conversation_log (namespace, conversation_id, turn_id, log_offset)
    WHERE turn_id IS NOT NULL;

CREATE INDEX log_summaries ON conversation_log (namespace, conversation_id, log_offset) WHERE kind = 'summary';

CREATE INDEX memories_far ON memories (namespace, agent_id) WHERE embedding IS NULL AND embedding_model IS NOT NULL;

CREATE UNIQUE INDEX memories_id ON memories (namespace, agent_id, id);

CREATE INDEX memories_kept ON memories (kept_at_ms) WHERE is_light = 0 AND kept_at_ms IS NOT NULL;

CREATE UNIQUE INDEX memories_label ON memories (namespace, agent_id, label) WHERE label IS NOT NULL;

CREATE INDEX memories_model ON memories (coalesce(embedding_model, ''), namespace, agent_id, id)
    WHERE deleted_at_ms IS NULL;

CREATE INDEX memories_recent ON memories (namespace, agent_id, updated_at_ms DESC, id DESC)
    WHERE deleted_at_ms IS NULL;

CREATE INDEX memories_tail ON memories (namespace, agent_id, id) WHERE is_light = 0;

CREATE INDEX memories_tier ON memories (namespace, agent_id, tier, updated_at_ms DESC, id DESC)
    WHERE deleted_at_ms IS NULL;

CREATE INDEX memories_type ON memories (namespace, agent_id, type, updated_at_ms DESC, id DESC)
    WHERE deleted_at_ms IS NULL;

CREATE INDEX memories_waiting ON memories (namespace, agent_id, id) WHERE kept_at_ms IS NULL;

CREATE INDEX operations_due ON operations (pool, due_at_ms, namespace, operation_id)
    WHERE kind = 'task' AND state IN ('pending', 'running');

CREATE INDEX operations_newest ON operations (namespace, created_at_ms, operation_id);

CREATE INDEX operations_of_conversation ON operations (namespace, conversation_id, created_at_ms, operation_id);

CREATE INDEX operations_of_turn ON operations (namespace, turn_id, created_at_ms, operation_id);

CREATE INDEX operations_waiting ON operations
    ((CASE state WHEN 'pending' THEN created_at_ms ELSE due_at_ms END) + wait_ms, namespace, operation_id)
    WHERE kind = 'task' AND state IN ('pending', 'running') AND wait_ms IS NOT NULL;

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

CREATE INDEX sessions_newest ON sessions (namespace, created_at_ms DESC, session_id DESC);

CREATE INDEX sessions_of_agent ON sessions (namespace, agent_id, created_at_ms DESC, session_id DESC);

CREATE INDEX sessions_status ON sessions (namespace, status, created_at_ms DESC, session_id DESC);

CREATE INDEX sessions_wake ON sessions (shard, wake_at_ms, namespace, session_id) WHERE wake_at_ms IS NOT NULL;

CREATE INDEX tags_of_conversation ON conversation_tags (namespace, conversation_id);

CREATE INDEX turns_active ON turns (namespace, session_id) WHERE status = 'active';

CREATE INDEX turns_newest ON turns (namespace, created_at_ms, turn_id);

CREATE INDEX turns_of_conversation ON turns (namespace, conversation_id, created_at_ms, turn_id);

CREATE INDEX turns_of_session ON turns (namespace, session_id, created_at_ms, turn_id);

CREATE INDEX turns_open ON turns (namespace, conversation_id, created_at_ms, turn_id) WHERE status = 'active';
