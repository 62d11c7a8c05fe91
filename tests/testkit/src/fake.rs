//! In-memory implementations of all ports, faithful to the contracts in their documentation.
//! They outlive the simulated workers that use them, and show their insides to an oracle.

pub mod archive;
pub mod breakage;
pub mod clock;
pub mod dead;
pub mod effects;
pub mod embedder;
pub mod live;
pub mod models;
pub mod queue;
pub mod store;
pub mod tools;

pub use archive::MemArchive;
pub use breakage::{Breakage, Breakages};
pub use clock::SimClock;
pub use dead::MemDeadLetters;
pub use effects::{Performed, ScriptedEffects};
pub use embedder::WordEmbedder;
pub use live::LocalLive;
pub use models::ScriptedModels;
pub use queue::{FaultyQueue, QueueFaults};
pub use store::MemStore;
pub use tools::ScriptedTools;
