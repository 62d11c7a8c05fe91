-- Whether a session is at work is asked with each message to it, however many turns it has had. The second condition
-- is always true, and keeps those who do not ask for a session from this index.
CREATE INDEX turns_active ON turns (namespace, session_id) WHERE status = 'active' AND session_id IS NOT NULL;
