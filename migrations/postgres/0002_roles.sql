-- Roles that one worker of a fleet holds at a time, the archivist's first.
CREATE TABLE roles (
    role           TEXT COLLATE "C" PRIMARY KEY,
    owner          TEXT COLLATE "C",
    epoch          BIGINT NOT NULL,
    lease_until_ms BIGINT NOT NULL
) WITH (fillfactor = 50);
