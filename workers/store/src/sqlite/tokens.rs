//! API tokens, as hashes.

use async_trait::async_trait;
use domain::failure::Failure;
use domain::ports::{Scope, TokenRow, Tokens};
use schemas::json::Json;

use super::SqliteStore;
use super::failure::failure;
use super::rows::{get, id, json};
use crate::columns::bad_value;

const PUT: &str = "
    INSERT INTO tokens (namespace, name, hash, scopes) VALUES (?1, ?2, ?3, ?4)
    ON CONFLICT (namespace, name) DO UPDATE SET hash = excluded.hash, scopes = excluded.scopes";
const ALL: &str = "SELECT namespace, name, hash, scopes FROM tokens ORDER BY namespace, name";
const REMOVE: &str = "DELETE FROM tokens WHERE name = ?1";

#[cfg(test)]
pub(super) const SQL: &[(&str, &str)] = &[("tokens::put", PUT), ("tokens::all", ALL), ("tokens::remove", REMOVE)];

#[async_trait]
impl Tokens for SqliteStore {
    async fn put(&self, token: &TokenRow) -> Result<(), Failure> {
        let scopes: Vec<&str> = token.scopes.iter().map(|scope| scope.as_str()).collect();
        let query = sqlx::query(PUT)
            .bind(token.namespace.to_string())
            .bind(token.name.clone())
            .bind(token.hash.to_vec())
            .bind(Json::of(&scopes).as_str().to_owned());
        self.0.writer.execute(query).await.map(drop)
    }

    async fn all(&self) -> Result<Vec<TokenRow>, Failure> {
        let rows = sqlx::query(ALL).fetch_all(&mut *self.0.readers.lend().await?).await.map_err(failure)?;
        let token = |row| {
            let names: Vec<String> = json(row, "scopes")?;
            let scope = |name: &String| Scope::parse(name).ok_or_else(|| bad_value("scopes", name));
            let hash: &[u8] = get(row, "hash")?;
            Ok(TokenRow {
                hash: hash.try_into().map_err(|error| bad_value("hash", error))?,
                namespace: id(row, "namespace")?,
                name: get(row, "name")?,
                scopes: names.iter().map(scope).collect::<Result<_, Failure>>()?,
            })
        };
        rows.iter().map(token).collect()
    }

    async fn remove(&self, name: &str) -> Result<bool, Failure> {
        let removed = self.0.writer.execute(sqlx::query(REMOVE).bind(name.to_owned())).await?;
        Ok(removed > 0)
    }
}
