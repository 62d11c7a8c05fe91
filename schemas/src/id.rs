//! Typed ids. Server ids are ULIDs; clients may bring their own of a safe alphabet (SPEC K-33).

use std::fmt;
use std::sync::Arc;

use serde::{Deserialize, Deserializer, Serialize, Serializer};

use crate::limits::ID_BYTES_MAX;

/// Why a text is no id.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum IdError {
    #[error("must not be empty; send letters, digits and . _ : -")]
    Empty,
    #[error("is {0} bytes long; at most {ID_BYTES_MAX} are allowed")]
    TooLong(usize),
    #[error("contains {0:?}; allowed are letters, digits and . _ : -")]
    BadChar(char),
}

fn check(text: &str) -> Result<(), IdError> {
    if text.is_empty() {
        return Err(IdError::Empty);
    }
    if text.len() > ID_BYTES_MAX {
        return Err(IdError::TooLong(text.len()));
    }
    match text.chars().find(|c| !(c.is_ascii_alphanumeric() || matches!(c, '.' | '_' | ':' | '-'))) {
        Some(c) => Err(IdError::BadChar(c)),
        None => Ok(()),
    }
}

macro_rules! id_type {
    ($(#[$doc:meta])* $name:ident) => {
        $(#[$doc])*
        #[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub struct $name(Arc<str>);

        impl $name {
            /// Checks length and alphabet.
            pub fn parse(text: &str) -> Result<Self, IdError> {
                check(text).map(|()| Self(text.into()))
            }

            pub fn as_str(&self) -> &str {
                &self.0
            }
        }

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str(&self.0)
            }
        }

        impl fmt::Debug for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                write!(f, "{:?}", &self.0)
            }
        }

        impl From<ulid::Ulid> for $name {
            fn from(ulid: ulid::Ulid) -> Self {
                Self(ulid.to_string().into())
            }
        }

        impl std::str::FromStr for $name {
            type Err = IdError;
            fn from_str(text: &str) -> Result<Self, IdError> {
                Self::parse(text)
            }
        }

        impl Serialize for $name {
            fn serialize<S: Serializer>(&self, s: S) -> Result<S::Ok, S::Error> {
                s.serialize_str(&self.0)
            }
        }

        impl<'de> Deserialize<'de> for $name {
            fn deserialize<D: Deserializer<'de>>(d: D) -> Result<Self, D::Error> {
                let text = std::borrow::Cow::<'de, str>::deserialize(d)?;
                Self::parse(&text).map_err(serde::de::Error::custom)
            }
        }

        impl utoipa::PartialSchema for $name {
            fn schema() -> utoipa::openapi::RefOr<utoipa::openapi::schema::Schema> {
                String::schema()
            }
        }
        impl utoipa::ToSchema for $name {}
    };
}

id_type!(
    /// A tenant. Every row, query and token is bound to one.
    Namespace
);
id_type!(
    /// One running instance of an agent.
    SessionId
);
id_type!(
    /// An identity that sessions run for.
    AgentId
);
id_type!(
    /// A command on the queue; also its idempotency key.
    ActionId
);
id_type!(
    /// A collaboration space of users and agents.
    ConversationId
);
id_type!(
    /// One utterance in a conversation.
    MessageId
);
id_type!(
    /// One unit of an agent's work in a conversation.
    TurnId
);
id_type!(
    /// Work that a turn has dispatched and that ends with a `tool_result` action.
    OperationId
);
id_type!(
    /// A user or agent in a conversation.
    ParticipantId
);
id_type!(
    /// A person, as the application that talks to us knows them.
    UserId
);
id_type!(
    /// A definition of one kind: a persona, a tool and so on.
    DefinitionId
);
id_type!(
    /// Something that an agent remembers; unique among the memories of its agent.
    MemoryId
);
id_type!(
    /// One process start of a worker. A restart is another worker (DESIGN 4).
    WorkerId
);

impl SessionId {
    /// Names that stand in the place of a session's id in the paths of the API: a session of such a
    /// name could never be read.
    pub const RESERVED: &[&str] = &["bulk"];

    pub fn is_reserved(&self) -> bool {
        Self::RESERVED.contains(&self.as_str())
    }
}

impl Namespace {
    /// The namespace of a fresh installation.
    pub fn default_ns() -> Self {
        Self("default".into())
    }
}

/// Where a session lives: ids are unique within a namespace only.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Serialize, Deserialize)]
pub struct SessionKey {
    pub namespace: Namespace,
    pub session_id: SessionId,
}

impl SessionKey {
    pub fn new(namespace: Namespace, session_id: SessionId) -> Self {
        Self { namespace, session_id }
    }
}

impl fmt::Display for SessionKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", self.namespace, self.session_id)
    }
}

/// A partition of all sessions, the unit of ownership.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Serialize, Deserialize, utoipa::ToSchema)]
#[serde(transparent)]
pub struct Shard(pub u16);

impl fmt::Display for Shard {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.0)
    }
}

/// The fencing token of a shard; grows at each change of owner.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Serialize, Deserialize, utoipa::ToSchema)]
#[serde(transparent)]
pub struct Epoch(pub i64);

impl fmt::Display for Epoch {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "e{}", self.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hostile_ids_are_refused() {
        for bad in ["", "a b", "a'b", "a\"b", "ü", "a/b", "a\0b", "a\nb", "..;--"] {
            assert!(SessionId::parse(bad).is_err(), "{bad:?}");
        }
        assert_eq!(SessionId::parse(&"x".repeat(129)), Err(IdError::TooLong(129)));
        for good in ["a", "A-1_b.c:d", &"x".repeat(128), "550e8400-e29b-41d4-a716-446655440000"] {
            assert!(SessionId::parse(good).is_ok(), "{good:?}");
        }
    }

    #[test]
    fn reading_checks_too() {
        assert!(serde_json::from_str::<SessionId>("\"a b\"").is_err());
        assert_eq!(serde_json::from_str::<SessionId>("\"ab\"").unwrap().as_str(), "ab");
    }
}
