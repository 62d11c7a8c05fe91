-- What stands for older messages is looked for behind any number of them.
CREATE INDEX log_summaries ON conversation_log (namespace, conversation_id, log_offset) WHERE kind = 'summary';
