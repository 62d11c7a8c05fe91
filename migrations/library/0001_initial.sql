-- Conversations of the library `engine`, in a file of their own. What is looked for has a column; all
-- the rest is the record itself, as JSON.
CREATE TABLE conversations (
    id    TEXT PRIMARY KEY NOT NULL,
    value TEXT NOT NULL
) STRICT, WITHOUT ROWID;

-- `position` is the order in which they came. Nothing is ever deleted, so no number is used twice.
CREATE TABLE messages (
    position        INTEGER PRIMARY KEY,
    id              TEXT    NOT NULL UNIQUE,
    conversation_id TEXT    NOT NULL REFERENCES conversations (id),
    at_ms           INTEGER NOT NULL,
    value           TEXT    NOT NULL
) STRICT;

CREATE INDEX messages_of_conversation ON messages (conversation_id, at_ms, position);

CREATE TABLE turns (
    position        INTEGER PRIMARY KEY,
    id              TEXT    NOT NULL UNIQUE,
    conversation_id TEXT    NOT NULL REFERENCES conversations (id),
    at_ms           INTEGER NOT NULL,
    value           TEXT    NOT NULL
) STRICT;

CREATE INDEX turns_of_conversation ON turns (conversation_id, at_ms, position);
