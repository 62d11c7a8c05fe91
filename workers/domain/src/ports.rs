//! What the decisions need from the world, as small traits with their contracts. Adapters
//! implement them; `tests/testkit` has faithful fakes; one contract suite per port runs on both.
//!
//! Only this module of the crate has `async`, and no decision module may import it.

pub mod actions;
pub mod archive;
pub mod clock;
pub mod commits;
pub mod conversations;
pub mod dead;
pub mod definitions;
pub mod effects;
pub mod embedder;
pub mod journal;
pub mod kept;
pub mod leases;
pub mod ledger;
pub mod library;
pub mod live;
pub mod memories;
pub mod models;
pub mod operations;
pub mod queue;
pub mod sessions;
pub mod tasks;
pub mod tokens;
pub mod transcripts;

pub use actions::{ActionCall, ActionFailure, ActionRunner, Bill, Probe, Trouble};
pub use archive::{Archive, ArchiveBatch, EventRow, StepPlace, StepQuery, Watermarks};
pub use clock::Clock;
pub use commits::Commits;
pub use conversations::{
    ConversationChange, ConversationQuery, Conversations, Inserted, LogQuery, Look, LookQuery, Post, Posted, TurnPlace,
    TurnQuery,
};
pub use dead::{DeadLetter, DeadLetters, Deed, Sweep, Swept, Told};
pub use definitions::{
    Defined, DefinitionHead, DefinitionKey, DefinitionPage, DefinitionQuery, DefinitionRow, DefinitionVersion,
    Definitions,
};
pub use effects::Effects;
pub use embedder::Embedder;
pub use journal::{Journal, JournalLag};
pub use kept::{MemoryArchive, MemoryTail, ModelOf, Revision, TailRow};
pub use leases::{Heard, Lease, Leases, RoleInfo, ShardInfo, WorkerInfo};
pub use ledger::{Accepted, Ledger, LedgerStats, Pending, Refusal, Verdict};
pub use live::{ConversationKey, Listening, Live, News, Notice, Subscription};
pub use memories::{Memories, MemoryListQuery, MemoryPage, Remembered, Unembedded};
pub use models::{DeltaSink, Models, Unheard};
pub use operations::{Claim, Ended, Ending, Hold, OperationQuery, OperationRow, Operations};
pub use queue::{Content, Deliveries, Delivery, Foreign, Queue};
pub use sessions::{SessionQuery, Sessions};
pub use tasks::TaskQueue;
pub use tokens::{Scope, TokenRow, Tokens};
pub use transcripts::{TranscriptArchive, TranscriptTail, UnarchivedRow};
