-- Roles that one worker of a fleet holds at a time, the archivist's first.
CREATE TABLE roles (
    role           TEXT PRIMARY KEY,
    owner          TEXT,
    epoch          INTEGER NOT NULL,
    lease_until_ms INTEGER NOT NULL
) STRICT, WITHOUT ROWID;
