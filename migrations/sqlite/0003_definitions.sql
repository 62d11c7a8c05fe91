-- Definitions: what agents are made of. One small row for each, as it is now.
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

-- Their contents. Kinds that are updated in place have one row, the others one for each version.
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
