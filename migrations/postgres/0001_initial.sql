-- The store of an installation: ledger, session registry, journal, ownership, tokens.
-- Times are milliseconds since the Unix epoch. Ids are unique within a namespace only, and are
-- compared byte by byte, as the program compares them, whatever the database's own collation.

-- One row: what was fixed when the store was created.
CREATE TABLE meta (
    id            INTEGER PRIMARY KEY CHECK (id = 1),
    shards        INTEGER NOT NULL CHECK (shards BETWEEN 1 AND 1024),
    version       TEXT    NOT NULL,
    created_at_ms BIGINT  NOT NULL
);

-- Ownership, and the ends of each shard's journal. Every commit rewrites a row: with free space in
-- the page, that touches no index.
CREATE TABLE shards (
    shard          INTEGER PRIMARY KEY,
    owner          TEXT COLLATE "C",
    epoch          BIGINT NOT NULL DEFAULT 0,
    lease_until_ms BIGINT NOT NULL DEFAULT 0,
    seq            BIGINT NOT NULL DEFAULT 0,
    archived_seq   BIGINT NOT NULL DEFAULT 0 CHECK (archived_seq <= seq)
) WITH (fillfactor = 10, autovacuum_vacuum_threshold = 1000, autovacuum_vacuum_scale_factor = 0.0);

-- The backend is the connection that a worker's process keeps open while it lives.
CREATE TABLE workers (
    worker_id       TEXT COLLATE "C" PRIMARY KEY,
    host            TEXT    NOT NULL,
    version         TEXT    NOT NULL,
    roles           TEXT    NOT NULL,
    draining        BOOLEAN NOT NULL,
    heartbeat_at_ms BIGINT  NOT NULL,
    backend_pid     INTEGER NOT NULL,
    backend_start   TIMESTAMPTZ NOT NULL
) WITH (fillfactor = 50);

-- The hot row of a session: rewritten by every commit, so it stays small. `head` is the whole
-- head as JSON; the columns beside it are what SQL filters on or guards with. Of these, commits of a
-- running session change only what no index holds: `wake_at_ms` is left alone while a session is
-- due before and after. A row is then replaced within its page.
CREATE TABLE sessions (
    namespace       TEXT COLLATE "C" NOT NULL,
    session_id      TEXT COLLATE "C" NOT NULL,
    agent_id        TEXT COLLATE "C" NOT NULL,
    shard           INTEGER NOT NULL,
    moniker         TEXT    NOT NULL,
    conversation_id TEXT COLLATE "C",
    created_at_ms   BIGINT  NOT NULL,
    status          TEXT COLLATE "C" NOT NULL,
    steps           BIGINT  NOT NULL,
    next_offset     BIGINT  NOT NULL,
    wake_at_ms      BIGINT,
    control_seq     BIGINT  NOT NULL,
    work_seq        BIGINT  NOT NULL,
    head            TEXT    NOT NULL
) WITH (fillfactor = 50, autovacuum_vacuum_scale_factor = 0.05, autovacuum_vacuum_cost_delay = 0);

CREATE INDEX sessions_wake ON sessions (shard, wake_at_ms, namespace, session_id) WHERE wake_at_ms IS NOT NULL;
CREATE INDEX sessions_newest ON sessions (namespace, created_at_ms DESC, session_id DESC);
CREATE INDEX sessions_of_agent ON sessions (namespace, agent_id, created_at_ms DESC, session_id DESC);
CREATE INDEX sessions_status ON sessions (namespace, status, created_at_ms DESC, session_id DESC);
-- The last index: as long as a table has no statistics, the planner takes the newest of those that
-- serve equally well.
ALTER TABLE sessions ADD PRIMARY KEY (namespace, session_id);

-- The cold part of a session: up to a megabyte that never changes, kept out of the hot row. It is
-- written with its session, in one statement.
CREATE TABLE session_specs (
    namespace  TEXT COLLATE "C" NOT NULL,
    session_id TEXT COLLATE "C" NOT NULL,
    spec       TEXT NOT NULL,
    PRIMARY KEY (namespace, session_id)
);

-- The ledger. A row without session_id was refused before a session was found.
CREATE TABLE actions (
    namespace       TEXT COLLATE "C" NOT NULL,
    action_id       TEXT COLLATE "C" NOT NULL,
    type            TEXT COLLATE "C" NOT NULL,
    session_id      TEXT COLLATE "C",
    agent_id        TEXT COLLATE "C",
    shard           INTEGER,
    lane            TEXT COLLATE "C" NOT NULL,
    session_seq     BIGINT,
    accepted_at_ms  BIGINT  NOT NULL,
    published_at_ms BIGINT,
    processed_at_ms BIGINT,
    outcome         TEXT,
    code            TEXT,
    error           TEXT,
    urgency         TEXT    NOT NULL,
    actor           TEXT    NOT NULL,
    body_hash       BYTEA   NOT NULL CHECK (length(body_hash) = 32),
    payload         TEXT    NOT NULL,
    metadata        TEXT    NOT NULL,
    PRIMARY KEY (namespace, action_id),
    CHECK ((processed_at_ms IS NULL) = (outcome IS NULL)),
    CHECK (processed_at_ms IS NOT NULL OR (session_id IS NOT NULL AND shard IS NOT NULL AND session_seq > 0))
) WITH (fillfactor = 80, autovacuum_vacuum_scale_factor = 0.02, autovacuum_vacuum_cost_delay = 0);

-- Partial, so that finished work costs nothing: the scans see only what is left to do.
CREATE INDEX actions_pending ON actions (shard, namespace, session_id, lane, session_seq) WHERE processed_at_ms IS NULL;
CREATE INDEX actions_unpublished ON actions (accepted_at_ms, session_seq)
    WHERE processed_at_ms IS NULL AND published_at_ms IS NULL;
CREATE INDEX actions_processed ON actions (processed_at_ms) WHERE processed_at_ms IS NOT NULL;

-- Committed entries that history does not have yet, plus a grace period.
CREATE TABLE journal (
    shard           INTEGER NOT NULL,
    seq             BIGINT  NOT NULL,
    namespace       TEXT COLLATE "C" NOT NULL,
    session_id      TEXT COLLATE "C" NOT NULL,
    first_offset    BIGINT  NOT NULL,
    last_offset     BIGINT  NOT NULL,
    committed_at_ms BIGINT  NOT NULL,
    body            TEXT    NOT NULL,
    PRIMARY KEY (shard, seq)
) WITH (autovacuum_vacuum_scale_factor = 0.05, autovacuum_vacuum_cost_delay = 0);

CREATE INDEX journal_of_session ON journal (namespace, session_id, last_offset, seq);

-- Effects that must never be repeated blindly.
CREATE TABLE effects (
    namespace     TEXT COLLATE "C" NOT NULL,
    session_id    TEXT COLLATE "C" NOT NULL,
    effect_key    TEXT COLLATE "C" NOT NULL,
    class         TEXT NOT NULL,
    state         TEXT NOT NULL,
    what          TEXT NOT NULL,
    settled_at_ms BIGINT,
    PRIMARY KEY (namespace, session_id, effect_key)
) WITH (fillfactor = 80, autovacuum_vacuum_scale_factor = 0.05);

CREATE INDEX effects_settled ON effects (settled_at_ms) WHERE settled_at_ms IS NOT NULL;

CREATE TABLE tokens (
    namespace TEXT COLLATE "C" NOT NULL,
    name      TEXT COLLATE "C" NOT NULL,
    hash      BYTEA NOT NULL UNIQUE CHECK (length(hash) = 32),
    scopes    TEXT  NOT NULL,
    PRIMARY KEY (namespace, name)
);
