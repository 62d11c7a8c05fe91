//! The `Tokens` port.

use async_trait::async_trait;
use domain::failure::Failure;
use domain::ports::{TokenRow, Tokens};

use super::MemStore;

#[async_trait]
impl Tokens for MemStore {
    async fn put(&self, token: &TokenRow) -> Result<(), Failure> {
        self.transaction().tokens.insert(token.name.clone(), token.clone());
        Ok(())
    }

    async fn all(&self) -> Result<Vec<TokenRow>, Failure> {
        Ok(self.transaction().tokens.values().cloned().collect())
    }

    async fn remove(&self, name: &str) -> Result<bool, Failure> {
        Ok(self.transaction().tokens.remove(name).is_some())
    }
}
