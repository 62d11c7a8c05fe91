//! Proof of one session's history: no gap, no duplicate, one chain of tokens (invariants S2, S4, J1).
//!
//! [`check::Checker`] is pure and takes the history piece by piece, so that a session of any length
//! is checked in constant memory. [`verify_all`] walks all sessions and reads journal and archive
//! apart: the union that readers get would hide what is doubled.

pub mod check;
mod memories;
mod past;
#[cfg(test)]
mod tests;
mod transcripts;
mod walk;

pub use memories::{MemoryVerdict, verify_memories};
pub use past::common_past;
pub use transcripts::{TranscriptVerdict, verify_transcripts};
pub use walk::{Progress, Verdict, verify_all, verify_session};
