//! The invariants of DESIGN 10, one id from document to test to metric.

/// What always holds. `ARCHITECTURE.md` explains each.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Invariant {
    S1,
    S2,
    S3,
    S4,
    A1,
    A2,
    E1,
    E2,
    J1,
    L1,
    T1,
    C1,
    N1,
    Q1,
}

impl Invariant {
    pub const ALL: [Invariant; 14] = [
        Self::S1,
        Self::S2,
        Self::S3,
        Self::S4,
        Self::A1,
        Self::A2,
        Self::E1,
        Self::E2,
        Self::J1,
        Self::L1,
        Self::T1,
        Self::C1,
        Self::N1,
        Self::Q1,
    ];

    pub fn text(self) -> &'static str {
        match self {
            Self::S1 => "one live owner per shard and epoch",
            Self::S2 => "iteration grows by exactly one",
            Self::S3 => "a step exists if and only if its commit does",
            Self::S4 => "next_step_token of a step is step_token of the next",
            Self::A1 => "an accepted action is applied exactly once or rejected with a recorded outcome",
            Self::A2 => "actions of one session and lane apply in session_seq order",
            Self::E1 => "nothing leaves before its commit",
            Self::E2 => "a settled effect is never repeated",
            Self::J1 => "history is journal plus archive without gap or duplicate",
            Self::L1 => "every session that is not at rest has a cause",
            Self::T1 => "tool rounds never exceed the limit",
            Self::C1 => "what is left out of a context is in the archive before",
            Self::N1 => "no row crosses a namespace",
            Self::Q1 => "every loop, queue, buffer, retry and payload has a maximum",
        }
    }
}

/// A broken invariant, with the evidence.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("invariant {invariant:?} ({}) is broken: {evidence}", .invariant.text())]
pub struct Broken {
    pub invariant: Invariant,
    pub evidence: String,
}

/// `Err` with the evidence unless the condition holds.
pub fn check(invariant: Invariant, holds: bool, evidence: impl FnOnce() -> String) -> Result<(), Broken> {
    if holds { Ok(()) } else { Err(Broken { invariant, evidence: evidence() }) }
}
