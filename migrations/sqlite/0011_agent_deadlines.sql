-- When an agent's answer is overdue, as `domain::talk::deadline` says. Calls of earlier releases have no such time.
CREATE INDEX agents_due ON operations (until_ms, namespace, operation_id)
    WHERE kind = 'agent' AND state = 'pending';
