//! API tokens. Only hashes are stored.

use async_trait::async_trait;
use schemas::id::Namespace;

use crate::failure::Failure;

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Scope {
    Read,
    Act,
    Operate,
    Admin,
}

impl Scope {
    pub const ALL: [Scope; 4] = [Scope::Read, Scope::Act, Scope::Operate, Scope::Admin];

    pub fn as_str(self) -> &'static str {
        match self {
            Scope::Read => "read",
            Scope::Act => "act",
            Scope::Operate => "operate",
            Scope::Admin => "admin",
        }
    }

    pub fn parse(text: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|scope| scope.as_str() == text)
    }
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TokenRow {
    /// SHA-256 of the token's text.
    pub hash: [u8; 32],
    pub namespace: Namespace,
    pub name: String,
    pub scopes: Vec<Scope>,
}

#[async_trait]
pub trait Tokens: Send + Sync {
    async fn put(&self, token: &TokenRow) -> Result<(), Failure>;
    /// All tokens: there are few, and the gateway compares in constant time.
    async fn all(&self) -> Result<Vec<TokenRow>, Failure>;
    async fn remove(&self, name: &str) -> Result<bool, Failure>;
}
