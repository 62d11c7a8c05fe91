-- Definitions: what agents are made of. One small row for each, as it is now.
CREATE TABLE definitions (
    namespace     TEXT COLLATE "C" NOT NULL,
    kind          TEXT COLLATE "C" NOT NULL,
    id            TEXT COLLATE "C" NOT NULL,
    version       BIGINT NOT NULL CHECK (version > 0),
    name          TEXT   NOT NULL,
    library_id    TEXT COLLATE "C",
    project_ids   JSONB  NOT NULL,
    bytes         BIGINT NOT NULL,
    created_at_ms BIGINT NOT NULL,
    PRIMARY KEY (namespace, kind, id)
);

-- Their contents. Kinds that are updated in place have one row, the others one for each version.
CREATE TABLE definition_versions (
    namespace     TEXT COLLATE "C" NOT NULL,
    kind          TEXT COLLATE "C" NOT NULL,
    id            TEXT COLLATE "C" NOT NULL,
    version       BIGINT NOT NULL,
    content_hash  BYTEA  NOT NULL CHECK (length(content_hash) = 32),
    content       TEXT   NOT NULL,
    created_at_ms BIGINT NOT NULL,
    PRIMARY KEY (namespace, kind, id, version)
);
