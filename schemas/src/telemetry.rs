//! Names of metrics and log fields, each named once.

/// Fields of spans and log lines.
pub mod field {
    pub const SESSION: &str = "session.id";
    pub const ACTION: &str = "action.id";
    pub const SHARD: &str = "shard";
    pub const EPOCH: &str = "epoch";
}

/// Metrics: name, kind and help are registered together by `host::metrics`.
pub mod metric {
    pub const ACTIONS_ACCEPTED: &str = "stepfleet_actions_accepted_total";
    pub const ACTIONS_REFUSED: &str = "stepfleet_actions_refused_total";
    pub const ACTIONS_PROCESSED: &str = "stepfleet_actions_processed_total";
    pub const ACCEPT_SECONDS: &str = "stepfleet_accept_seconds";
    pub const STEPS: &str = "stepfleet_steps_total";
    pub const STEP_SECONDS: &str = "stepfleet_step_seconds";
    pub const COMMIT_SECONDS: &str = "stepfleet_commit_seconds";
    pub const COMMIT_BATCH: &str = "stepfleet_commit_batch_size";
    pub const COMMITS_FENCED: &str = "stepfleet_commits_fenced_total";
    pub const SESSIONS_LIVE: &str = "stepfleet_sessions_live";
    pub const SESSIONS_ACTIVE: &str = "stepfleet_sessions_active";
    pub const QUEUE_LAG_SECONDS: &str = "stepfleet_queue_lag_seconds";
    pub const OPERATIONS_LAG_SECONDS: &str = "stepfleet_operations_lag_seconds";
    pub const QUEUE_DEPTH: &str = "stepfleet_queue_depth";
    pub const JOURNAL_LAG_ROWS: &str = "stepfleet_journal_lag_rows";
    pub const ARCHIVED_ROWS: &str = "stepfleet_archived_rows_total";
    pub const ARCHIVE_SECONDS: &str = "stepfleet_archive_seconds";
    pub const SHARDS_OWNED: &str = "stepfleet_shards_owned";
    pub const LEASE_CHANGES: &str = "stepfleet_lease_changes_total";
    pub const STREAMS_OPEN: &str = "stepfleet_streams_open";
    pub const EFFECT_SECONDS: &str = "stepfleet_effect_seconds";
    pub const OPERATION_SECONDS: &str = "stepfleet_operation_seconds";
    pub const EMBEDDING_TOKENS: &str = "stepfleet_embedding_tokens_total";
    pub const MEMORIES_EMBEDDED: &str = "stepfleet_memories_embedded_total";
    pub const SESSIONS_WITHOUT_CAUSE: &str = "stepfleet_sessions_without_cause";
    pub const SESSIONS_OVERDUE: &str = "stepfleet_sessions_overdue";
    pub const SESSIONS_HEALED: &str = "stepfleet_sessions_healed_total";
    pub const OPERATIONS_WITHOUT_EXECUTOR: &str = "stepfleet_operations_without_executor";
    pub const SERVICE_FAILURES: &str = "stepfleet_service_failures_total";
    pub const INVARIANT_BROKEN: &str = "stepfleet_invariant_broken_total";
}
