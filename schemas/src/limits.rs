//! A maximum for everything, with units in the names. Configuration may lower a limit, never
//! raise it (invariant Q1).

pub const ID_BYTES_MAX: usize = 128;
/// Longest step token (`step`, `next_step`).
pub const TOKEN_BYTES_MAX: usize = 256;

/// Longest name of who acts.
pub const ACTOR_BYTES_MAX: usize = 128;
/// Bounds of what a create action may ask for.
pub const STEPS_MAX: u64 = 1_000_000_000_000;
/// Ten years.
pub const RUNTIME_S_MAX: u64 = 315_360_000;
/// Thirty days.
pub const LOOP_INTERVAL_MS_MAX: u64 = 2_592_000_000;

/// Largest request body of the gateway, and so of an action.
pub const ACTION_BYTES_MAX: usize = 1 << 20;
/// Largest `state` that a step may leave behind.
pub const STATE_BYTES_MAX: usize = 4 << 20;
/// Largest `text` of a step.
pub const TEXT_BYTES_MAX: usize = 1 << 20;
/// Largest `data` of a step.
pub const DATA_BYTES_MAX: usize = 4 << 20;
/// Longest free-text error kept on a row.
pub const ERROR_CHARS_MAX: usize = 2_000;

pub const SHARDS_DEFAULT: u16 = 32;
pub const SHARDS_MAX: u16 = 1024;

/// How many steps a session may run ahead of its commits (DESIGN 5, pipelining).
pub const RUN_AHEAD_STEPS_MAX: usize = 64;
/// How many bytes of steps a session may run ahead of its commits.
pub const RUN_AHEAD_BYTES_MAX: usize = 1 << 20;
/// Actions of one session and lane held in memory; the rest waits in the ledger.
pub const INBOX_ACTIONS_MAX: usize = 1_024;
/// Unprocessed control actions of one session from which on guidance is refused. Well below what
/// an owner holds: a resume must never be hidden behind guidance that waits for it.
pub const GUIDANCE_WAITING_MAX: usize = 512;
const _: () = assert!(2 * GUIDANCE_WAITING_MAX <= INBOX_ACTIONS_MAX);
/// Deliveries in flight per shard and lane.
pub const DELIVERIES_MAX: usize = 1024;
/// Sessions that one worker keeps in memory.
pub const LIVE_SESSIONS_MAX: usize = 16_384;
/// Heavy decisions of one worker at a time, each on a thread of its own; more of them wait.
pub const HEAVY_DECISIONS_MAX: usize = 4;
/// An idle session leaves memory after this time.
pub const IDLE_EVICT_MS: u64 = 5_000;

/// Commits of one group transaction, and their bytes; keeps a pause quick under load.
pub const COMMIT_BATCH_MAX: usize = 1024;
pub const COMMIT_BATCH_BYTES_MAX: usize = 8 << 20;
/// Actions settled by one transaction: each is a row to find and to rewrite, and a pause waits for it.
pub const COMMIT_SETTLED_MAX: usize = 128;
/// A commit of at most so many steps and settled actions is light: it goes before those of sessions
/// that work through a backlog, which bring many.
pub const COMMIT_LIGHT_MAX: usize = 4;
/// Actions accepted in one group transaction.
pub const ACCEPT_BATCH_MAX: usize = 512;

/// Bound on how late a worker notices an action whose delivery was lost (DESIGN 3).
pub const LEDGER_POLL_MS: u64 = 1_000;
const _: () = assert!(LEDGER_POLL_MS <= 2_000);

/// How long a shard stays with a worker that nobody hears of: one that is frozen or cut off. Of a
/// process that has ended the database knows at once ([`LEASE_LOOK_MS`] later its shards move).
/// Longer than any stall of a healthy database, or the fleet would reshuffle itself when it is slow.
pub const LEASE_MS: u64 = 6_000;
/// One statement for all shards of a worker.
pub const LEASE_RENEW_MS: u64 = 1_000;
/// How often a worker looks who came, who is gone and what is free: three small reads.
pub const LEASE_LOOK_MS: u64 = 250;
/// Without a renewal for this long, a worker starts no effect and no commit.
pub const LEASE_STOP_MS: u64 = LEASE_MS / 2;
const _: () = assert!(LEASE_RENEW_MS < LEASE_STOP_MS && LEASE_STOP_MS < LEASE_MS);

/// How often the auditor looks at the next few thousand sessions.
pub const AUDIT_MS: u64 = 2_000;

/// Of a role that a fleet needs once, the archivist's say: two renewals may fail before it is lost.
pub const ROLE_LEASE_MS: u64 = 10_000;
pub const ROLE_RENEW_MS: u64 = 3_000;
const _: () = assert!(3 * ROLE_RENEW_MS < ROLE_LEASE_MS);

/// From `stopping` to `stopped`, whatever the moniker does (SPEC Q-LIF-05).
pub const DESTROY_GRACE_MS: u64 = 5_000;
/// Longest single effect of a step.
pub const EFFECT_MS_MAX: u64 = 600_000;

pub const ARCHIVE_INTERVAL_MS: u64 = 1_000;
pub const ARCHIVE_ROWS_MAX: usize = 10_000;
pub const ARCHIVE_BYTES_MAX: usize = 64 << 20;
/// How long a reader may hold an older version of a LanceDB table.
pub const READ_CONSISTENCY_MS: u64 = 1_000;
/// Archived journal rows stay readable this long.
pub const JOURNAL_GRACE_MS: u64 = 15_000;
const _: () = assert!(JOURNAL_GRACE_MS > 2 * READ_CONSISTENCY_MS);

/// Processed actions are kept, and so recognised as repeats, for a week.
pub const LEDGER_RETENTION_MS: u64 = 7 * 24 * 3_600 * 1_000;

pub const PAGE_DEFAULT: usize = 100;
pub const PAGE_SINCE_DEFAULT: usize = 500;
pub const PAGE_LATEST_DEFAULT: usize = 20;
pub const PAGE_MAX: usize = 1_000;
/// Texts and JSON of one page of steps; a page ends early rather than exceed it.
pub const PAGE_BYTES_MAX: usize = 32 << 20;
/// Rows that a page may skip; cursors go further.
pub const PAGE_OFFSET_MAX: usize = 10_000;
/// Events buffered for one client before it is sent to its cursor.
pub const STREAM_BUFFER_MAX: usize = 1_024;
pub const STREAMS_MAX: usize = 10_000;
/// A silent stream says that it is alive this often.
pub const STREAM_HEARTBEAT_MS: u64 = 15_000;
/// Bound on how late a stream notices a commit whose notice was lost.
pub const STREAM_POLL_MS: u64 = 5_000;
/// A client that takes nothing for this long is sent away; it comes back with its cursor.
pub const STREAM_STALL_MS: u64 = 30_000;
/// How long a client may take to send the head of a request, and how long a connection may stay
/// without one. Bodies and answers have the bound of their request.
pub const HEADER_READ_MS_MAX: u64 = 30_000;
/// Open connections of the gateway; more wait to be let in.
pub const CONNECTIONS_MAX: usize = 16_384;
const _: () = assert!(STREAMS_MAX < CONNECTIONS_MAX);
/// Longest handling of a request that is not a stream.
pub const REQUEST_MS_MAX: u64 = 30_000;

/// Content of one definition, as it is stored.
pub const DEFINITION_BYTES_MAX: usize = 128 << 10;
/// Definitions of one write: they are one transaction.
pub const DEFINITIONS_MAX: usize = 200;
/// Name of a definition.
pub const NAME_BYTES_MAX: usize = 128;
pub const DESCRIPTION_BYTES_MAX: usize = 4_096;
/// Prompts and templates.
pub const PROMPT_BYTES_MAX: usize = 64 << 10;
/// Expressions of mappings and conditions (SPEC 4.4).
pub const EXPRESSION_CHARS_MAX: usize = 10_000;
/// Entries of a list or mapping within a definition.
pub const ENTRIES_MAX: usize = 100;
/// Steps of one task.
pub const TASK_STEPS_MAX: usize = 100;
/// JSON Schemas: nesting, and schemas within a schema.
pub const SCHEMA_DEPTH_MAX: usize = 32;
pub const SCHEMA_NODES_MAX: usize = 2_000;
pub const PATTERN_CHARS_MAX: usize = 1_000;
/// Tries of an operation, and the longest waits between and for them.
pub const ATTEMPTS_MAX: u64 = 20;
pub const RETRY_DELAY_MS_MAX: u64 = 3_600_000;
/// One day.
pub const OPERATION_MS_MAX: u64 = 86_400_000;
/// Thirty days.
pub const APPROVAL_S_MAX: u64 = 2_592_000;

/// Largest answer of a model API, streamed or not.
pub const MODEL_ANSWER_BYTES_MAX: usize = 16 << 20;
/// Largest request to a model API: what the providers take, images included.
pub const MODEL_REQUEST_BYTES_MAX: usize = 32 << 20;
/// Longest line of an event stream; a whole answer may be one line.
pub const SSE_LINE_BYTES_MAX: usize = 8 << 20;
/// Largest event of a stream, all its data lines together.
pub const SSE_EVENT_BYTES_MAX: usize = 8 << 20;
const _: () = assert!(SSE_EVENT_BYTES_MAX <= MODEL_ANSWER_BYTES_MAX);
/// Messages of one request to a model.
pub const CHAT_MESSAGES_MAX: usize = 10_000;
/// Tools of one request to a model.
pub const CHAT_TOOLS_MAX: usize = 512;
/// Parts of one reply of a model: texts, tool calls, thoughts.
pub const CHAT_PARTS_MAX: usize = 4_096;
/// Longest wait that a model API may ask for; a longer one ends the attempts.
pub const RETRY_AFTER_MS_MAX: u64 = 30_000;
