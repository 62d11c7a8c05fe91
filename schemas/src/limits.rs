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
/// A create that is older may have been applied by now: its session is read. Less than it takes for the ledger to be
/// polled, or for a shard to be taken over.
pub const FRESH_MS: i64 = 250;
/// A larger payload takes its time anyway: what it opens is read, not sent along.
pub const OPENS_BYTES_MAX: usize = 4 << 10;

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
/// News of a conversation kept for a stream that is slow to take them; one that lags more is told
/// so, and reads the log.
pub const NEWS_KEPT_MAX: usize = 1_024;
/// How long a client may take to send the head of a request, and how long a connection may stay
/// without one. Bodies and answers have the bound of their request.
pub const HEADER_READ_MS_MAX: u64 = 30_000;
/// Open connections of the gateway; more wait to be let in.
pub const CONNECTIONS_MAX: usize = 16_384;
const _: () = assert!(STREAMS_MAX < CONNECTIONS_MAX);
/// Longest handling of a request that is not a stream.
pub const REQUEST_MS_MAX: u64 = 30_000;

/// Participants of one conversation, those who left included, that a list shows.
pub const PARTICIPANTS_MAX: usize = 1_000;

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
/// Nesting of JSON that comes from outside. What is made of it is nested deeper, and must still be read:
/// the reader takes 127 levels.
pub const JSON_DEPTH_MAX: usize = 64;
/// JSON Schemas: nesting, and schemas within a schema.
pub const SCHEMA_DEPTH_MAX: usize = 32;
pub const SCHEMA_NODES_MAX: usize = 2_000;
pub const PATTERN_CHARS_MAX: usize = 1_000;
/// Tries of an operation, and the longest waits between and for them.
pub const ATTEMPTS_MAX: u64 = 20;
pub const RETRY_DELAY_MS_MAX: u64 = 3_600_000;
/// One day.
pub const OPERATION_MS_MAX: u64 = 86_400_000;
/// How long a called agent has to answer unless its tool says otherwise: agents wait for people.
pub const AGENT_MS_DEFAULT: u64 = OPERATION_MS_MAX;
/// Thirty days.
pub const APPROVAL_S_MAX: u64 = 2_592_000;

/// As above, in milliseconds: the longest wait of a task for somebody who takes it.
pub const OPERATION_WAIT_MS_MAX: u64 = APPROVAL_S_MAX * 1_000;

/// Result of one tool call; with what surrounds it, it is an action.
pub const TOOL_RESULT_BYTES_MAX: usize = 768 << 10;
const _: () = assert!(TOOL_RESULT_BYTES_MAX + (16 << 10) <= ACTION_BYTES_MAX);
/// What a person answers to an agent.
pub const APPROVAL_ANSWER_BYTES_MAX: usize = 256 << 10;
const _: () = assert!(APPROVAL_ANSWER_BYTES_MAX <= TOOL_RESULT_BYTES_MAX);
/// The part of the history that a tool is given, if it asks for it.
pub const TOOL_MESSAGES_BYTES_MAX: usize = 256 << 10;
/// Definitions of the tools that a program is given along.
pub const TOOLBOX_BYTES_MAX: usize = 256 << 10;
/// What an action over HTTP may answer, and an MCP server in one message.
pub const TOOL_ANSWER_BYTES_MAX: usize = 4 << 20;
/// Text that templates of one action may become.
pub const RENDERED_BYTES_MAX: usize = 1 << 20;
/// Code of one call of `execute_code`, its output, its time and its calls of tools (SPEC A-RT-02).
pub const CODE_BYTES_MAX: usize = 51_200;
pub const CODE_OUTPUT_BYTES_MAX: usize = 1 << 20;
/// What the files of a program may take of the disk of its executor.
pub const CODE_FILES_BYTES_MAX: u64 = 64 << 20;
pub const CODE_MS_MAX: u64 = 60_000;
pub const CODE_CALLS_MAX: usize = 25;
/// What such a program gives a tool, at most.
pub const CODE_CALL_BYTES_MAX: usize = 1 << 20;
/// Operations that one executor runs at a time.
pub const OPERATIONS_RUNNING_MAX: usize = 64;
/// How often an idle executor looks for work that nobody told it of.
pub const OPERATION_POLL_MS: u64 = 200;
/// How long an operation stays claimed without a word of its executor, which extends the claim three
/// times as often: work of a process that died waits no longer than this.
pub const OPERATION_CLAIM_MS: u64 = 10_000;
const _: () = assert!(OPERATION_CLAIM_MS > LEASE_STOP_MS);
/// Work of others, who say nothing before they are done, stays claimed so long beyond its timeout.
pub const OPERATION_GRACE_MS: u64 = 15_000;
/// How often an operation is run again because its executor died or was stopped; from then on, that counts like
/// a failure. Many, because a long operation may see many deploys.
pub const OPERATION_LOST_MAX: u32 = 20;
/// How often approvals and tasks are looked for whose time has come.
pub const DEADLINE_LOOK_MS: u64 = 1_000;
/// How long a task waits for somebody else's worker, in seconds, unless its action says otherwise;
/// at most [`APPROVAL_S_MAX`].
pub const TASK_UNTAKEN_S_DEFAULT: u64 = 3_600;
/// Longest wait of somebody else's worker for a task: less than a request may take.
pub const TASK_WAIT_S_DEFAULT: u64 = 20;
pub const TASK_WAIT_S_MAX: u64 = 25;
const _: () = assert!(TASK_WAIT_S_DEFAULT <= TASK_WAIT_S_MAX && TASK_WAIT_S_MAX * 1_000 < REQUEST_MS_MAX);
/// Name of a pool of workers.
pub const POOL_BYTES_MAX: usize = 64;

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
/// One message of a conversation, as JSON; images in base64 are the large ones.
pub const MESSAGE_BYTES_MAX: usize = 8 << 20;
const _: () = assert!(MESSAGE_BYTES_MAX <= MODEL_REQUEST_BYTES_MAX);
/// Newest messages of a conversation that one turn looks at.
pub const TURN_MESSAGES_MAX: usize = CHAT_MESSAGES_MAX;
/// Answers with tool calls that one message of a user may lead to.
pub const TOOL_ROUNDS_MAX: u32 = 1_000;
/// Tool calls of one answer of a model that are carried out.
pub const TOOL_CALLS_MAX: usize = 128;
/// Longest wait that a model API may ask for; a longer one ends the attempts. Limits per minute ask for up to one.
pub const RETRY_AFTER_MS_MAX: u64 = 60_000;
/// Tokens that one call of a model adds to what is spent, whatever its provider says of it.
pub const CALL_TOKENS_MAX: u64 = 1_000_000_000_000;
/// The same for its cost, in billionths of the operator's currency.
pub const CALL_COST_NANOS_MAX: u64 = 1_000_000_000_000_000;
/// Of the record of one call of a model, where it travels with something else.
pub const PROVIDER_CALL_BYTES_MAX: usize = 4 << 10;
/// Tokens, and billionths, that one shard counts for a namespace: there is room to add up those of all.
pub const SPENT_OF_SHARD_MAX: u64 = 8_000_000_000_000_000;
const _: () = assert!(SPENT_OF_SHARD_MAX <= i64::MAX as u64 / SHARDS_MAX as u64);
const _: () = assert!(CALL_TOKENS_MAX <= SPENT_OF_SHARD_MAX && CALL_COST_NANOS_MAX <= SPENT_OF_SHARD_MAX);

/// Title of a conversation.
pub const TITLE_BYTES_MAX: usize = 512;
/// Tags of a conversation, and the length of each.
pub const TAGS_MAX: usize = 32;
pub const TAG_BYTES_MAX: usize = 128;
/// Canonical JSON of `metadata` or `branch_context`.
pub const METADATA_BYTES_MAX: usize = 64 << 10;
/// Agents and users that one request brings into a conversation.
pub const NEW_PARTICIPANTS_MAX: usize = 64;
/// Messages that a conversation begins with.
pub const FIRST_MESSAGES_MAX: usize = 100;
/// Names under which a message says who should answer.
pub const RECIPIENTS_MAX: usize = 64;
/// Agents that one message sets to work: their actions are accepted with it, in one transaction.
pub const RESPONDERS_MAX: usize = 64;
/// Parts of a message.
pub const CONTENT_PARTS_MAX: usize = 256;
/// Active turns that a page of conversations looks at.
pub const OPEN_TURNS_MAX: usize = 10_000;
/// Active turns of one conversation that a stream follows.
pub const TURNS_FOLLOWED_MAX: usize = 256;
/// Turns of one session, active ones and inputs that wait, from which on gateways take no more inputs for it: its
/// state has each turn until it has ended.
pub const SESSION_TURNS_MAX: usize = 256;
/// A gateway looks before it writes, so others may come at that moment. The session itself takes so many.
pub const SESSION_TURNS_HELD_MAX: usize = 2 * SESSION_TURNS_MAX;
/// `metadata` of those turns, together.
pub const SESSION_METADATA_BYTES_MAX: usize = 512 << 10;
/// Notes that wait for the next turn of a session.
pub const SESSION_NOTES_BYTES_MAX: usize = 256 << 10;
/// Calls of tools of one session that have not ended.
pub const SESSION_CALLS_MAX: usize = 512;
/// What is done once people have said yes to it: the state has it until then.
pub const SESSION_APPROVED_BYTES_MAX: usize = 1_536 << 10;
const _: () = assert!(METADATA_BYTES_MAX <= SESSION_METADATA_BYTES_MAX);
// Long ids of a turn are 2 KiB, those of a call 1 KiB.
const _: () = assert!(
    (SESSION_TURNS_HELD_MAX << 11)
        + (SESSION_CALLS_MAX << 10)
        + SESSION_METADATA_BYTES_MAX
        + SESSION_NOTES_BYTES_MAX
        + SESSION_APPROVED_BYTES_MAX
        < STATE_BYTES_MAX
);
const _: () = assert!(RESPONDERS_MAX <= ACCEPT_BATCH_MAX && RECIPIENTS_MAX <= PARTICIPANTS_MAX);
/// Content of a memory that lies in its own row; what is larger overflows (SPEC W-MEM-02).
pub const MEMORY_INLINE_BYTES_MAX: usize = 4_096;
/// Content of one memory. About 1 KB is a good size; much more belongs into a document.
pub const MEMORY_CONTENT_BYTES_MAX: usize = 256 << 10;
const _: () = assert!(MEMORY_INLINE_BYTES_MAX <= MEMORY_CONTENT_BYTES_MAX);
/// Metadata of one memory, as canonical JSON.
pub const MEMORY_METADATA_BYTES_MAX: usize = 8 << 10;
/// Room for the label of a compaction: a conversation's id, a time, and words around them.
pub const MEMORY_LABEL_BYTES_MAX: usize = 256;
pub const MEMORY_TYPE_BYTES_MAX: usize = 128;
/// The text that a search looks for.
pub const MEMORY_QUERY_BYTES_MAX: usize = 32 << 10;
/// Different words of a search text that are looked for as words.
pub const MEMORY_QUERY_TERMS_MAX: usize = 64;
pub const MEMORY_HITS_DEFAULT: usize = 10;
pub const MEMORY_HITS_MAX: usize = 100;
pub const MEMORY_PAGE_DEFAULT: usize = 50;
pub const MEMORY_PAGE_MAX: usize = 200;
/// Memories that one search or list looks at: the newest of the agent. What lies beyond is still
/// read by id and by label.
pub const MEMORIES_SCANNED_MAX: usize = 50_000;
/// Rows of a scan that are in memory at a time.
pub const MEMORY_SCAN_PAGE: usize = 500;
/// An agent with at most so many memories is searched in SQL alone, row by row: some ten microseconds
/// each, which is less than any query of the archive takes.
pub const MEMORIES_NEAR_MAX: usize = 500;
/// Memories of the archive that one search ranks: so many of the nearest, and so many that fit the words
/// best. An agent with fewer has all of them ranked.
pub const MEMORY_CANDIDATES_MAX: usize = 512;
const _: () = assert!(MEMORY_HITS_MAX < MEMORY_CANDIDATES_MAX);
/// Memories that move to the archive in one commit, and that are read at a time for it.
pub const MEMORIES_MOVED_MAX: usize = 5_000;
pub const MEMORY_MOVE_PAGE: usize = 250;
/// Records of conversations that are archived in one commit of a table, and that are read at a time for it.
pub const RECORDS_ARCHIVED_MAX: usize = 5_000;
pub const RECORDS_PAGE: usize = 500;
/// Bodies of those: as values, they take several times as much memory as their texts.
pub const RECORDS_ARCHIVED_BYTES_MAX: usize = 16 << 20;
pub const RECORDS_PAGE_BYTES_MAX: usize = 4 << 20;
/// What models and tools made of a turn stays whole in SQL for a day: turns in work, and those that follow each other,
/// need no look at the archive. After that it alone has the bodies.
pub const RECORDS_WHOLE_MS: u64 = 24 * 3_600 * 1_000;
/// Bodies up to this size stay for good: the rest of their rows is larger.
pub const RECORD_LIGHT_BYTES_MIN: usize = 256;
/// Records that one transaction takes the bodies of, and how often such records are looked for.
pub const RECORDS_LIGHTENED_MAX: usize = 1_000;
pub const RECORDS_LIGHTEN_INTERVAL_MS: u64 = 60_000;
/// Whoever becomes archivist looks for the first ones after this time: a deploy is over by then, and with it the
/// releases that do not look for bodies in the archive.
pub const RECORDS_LIGHTEN_AFTER_MS: u64 = 600_000;
/// How often memories and records are: each time is a commit, and a part more that searches look at until
/// upkeep.
pub const MEMORY_MOVE_INTERVAL_MS: u64 = 2_000;
/// Vectors of so many models, and numbers of dimensions, are kept.
pub const EMBEDDING_COLUMNS_MAX: usize = 32;
/// How often an update is tried that others keep overtaking.
pub const MEMORY_UPDATE_TRIES_MAX: usize = 8;
/// Blocks of core or of working memory that go into a request, and their bytes.
pub const MEMORY_BLOCKS_MAX: usize = 64;
pub const MEMORY_BLOCKS_BYTES_MAX: usize = 64 << 10;
/// Of a block whose content overflowed, so many bytes are shown; a tool reads the rest.
pub const MEMORY_SHOWN_BYTES_MAX: usize = 16 << 10;
const _: () = assert!(MEMORY_INLINE_BYTES_MAX < MEMORY_SHOWN_BYTES_MAX);
const _: () = assert!(MEMORY_SHOWN_BYTES_MAX < MEMORY_BLOCKS_BYTES_MAX);

/// Of a longer text, so many characters from its beginning are embedded.
pub const EMBEDDING_TEXT_CHARS_MAX: usize = 32_768;
/// As above, for models behind an API: they take about 8,000 tokens, and a character may be one.
pub const EMBEDDING_API_CHARS_MAX: usize = 8_000;
/// Texts of one request to an embedding API.
pub const EMBEDDING_BATCH_MAX: usize = 128;
/// Texts of one call of an embedder.
pub const EMBEDDING_TEXTS_MAX: usize = 2_048;
/// Agents whose memories one round of re-embedding takes.
pub const REEMBED_AGENTS_MAX: usize = 16;
/// Between two rounds, milliseconds: whoever writes and searches meanwhile needs embedder and database, too.
pub const REEMBED_INTERVAL_MS: u64 = 1_000;
/// After a walk that found nothing more, until the next, milliseconds.
pub const REEMBED_REST_MS: u64 = 60_000;
/// Numbers of one vector.
pub const EMBEDDING_DIMENSIONS_MAX: usize = 8_192;

/// Messages that one compaction summarises: the oldest. The next one goes on from there.
pub const COMPACT_MESSAGES_MAX: usize = 2_000;
/// Of one message, so many characters are shown to the model that summarises.
pub const COMPACT_MESSAGE_CHARS_MAX: usize = 8_000;
/// Longest summary that is kept.
pub const COMPACT_SUMMARY_BYTES_MAX: usize = 32 << 10;
const _: () = assert!(COMPACT_SUMMARY_BYTES_MAX < MEMORY_CONTENT_BYTES_MAX);
