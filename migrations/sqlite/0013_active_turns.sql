-- Whether a session is at work is asked with each message to it, however many turns it has had.
CREATE INDEX turns_active ON turns (namespace, session_id) WHERE status = 'active';
