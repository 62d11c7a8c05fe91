-- How long a task may wait for somebody's worker; without it, for ever: the fleet's own executors take it.
ALTER TABLE operations ADD COLUMN wait_ms BIGINT;

-- When a wait is over, as `domain::talk::deadline` says.
CREATE INDEX operations_waiting ON operations
    (((CASE state WHEN 'pending' THEN created_at_ms ELSE due_at_ms END) + wait_ms), namespace, operation_id)
    WHERE kind = 'task' AND state IN ('pending', 'running') AND wait_ms IS NOT NULL;

-- What calls of models have used. By shard: a commit adds to it under its shard's lock, so that sessions
-- of other shards do not wait for it. Costs are billionths, which add up without rounding.
CREATE TABLE spending (
    namespace  TEXT COLLATE "C" NOT NULL,
    shard      INTEGER NOT NULL,
    tokens     BIGINT NOT NULL,
    cost_nanos BIGINT NOT NULL,
    calls      BIGINT NOT NULL
) WITH (fillfactor = 80, autovacuum_vacuum_scale_factor = 0.05);

-- Last, as in the first migration.
ALTER TABLE spending ADD PRIMARY KEY (namespace, shard);
