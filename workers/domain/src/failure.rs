//! Failures say whether the thing may have happened and what the caller should do.

use schemas::problem::Code;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Certainty {
    DidNotHappen,
    MayHaveHappened,
}

/// What an adapter reports when the world does not cooperate.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{code}: {message}", code = .code.as_str())]
pub struct Failure {
    pub code: Code,
    pub certainty: Certainty,
    /// Worth trying again without a person's help.
    pub retriable: bool,
    pub message: String,
}

impl Failure {
    /// A service is away; nothing happened.
    pub fn unavailable(message: impl Into<String>) -> Self {
        Self { code: Code::Unavailable, certainty: Certainty::DidNotHappen, retriable: true, message: message.into() }
    }

    /// The answer was lost; it may have happened.
    pub fn in_doubt(message: impl Into<String>) -> Self {
        Self { certainty: Certainty::MayHaveHappened, ..Self::unavailable(message) }
    }

    /// A person must look: bad data, a bug.
    pub fn internal(message: impl Into<String>) -> Self {
        Self { code: Code::Internal, certainty: Certainty::DidNotHappen, retriable: false, message: message.into() }
    }

    /// No space is left; nothing happened.
    pub fn storage_full(message: impl Into<String>) -> Self {
        Self { code: Code::StorageFull, ..Self::unavailable(message) }
    }

    /// The answer would be too large; ask for less.
    pub fn too_large(message: impl Into<String>) -> Self {
        Self { code: Code::TooLarge, ..Self::internal(message) }
    }
}
