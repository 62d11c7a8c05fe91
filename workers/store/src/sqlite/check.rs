//! The file's own consistency, for the doctor.

use domain::failure::Failure;

use super::SqliteStore;
use super::failure::failure;
use super::rows::get;
use crate::open::Versions;

/// Reads every page, without comparing indexes row by row.
const CHECK: &str = "PRAGMA quick_check(1)";
const VERSIONS: &str = "SELECT sqlite_version() AS library, (SELECT max(version) FROM _sqlx_migrations) AS schema";

#[cfg(test)]
pub(super) const SQL: &[(&str, &str)] = &[("check::versions", VERSIONS)];

impl SqliteStore {
    /// Whether the file is sound, as SQLite sees it. Takes as long as reading the file; writers
    /// go on meanwhile.
    pub async fn quick_check(&self) -> Result<(), Failure> {
        let found: String =
            sqlx::query_scalar(CHECK).fetch_one(&mut *self.0.readers.lend().await?).await.map_err(failure)?;
        if found == "ok" {
            return Ok(());
        }
        Err(Failure::internal(format!("the store's file is damaged; stop, and restore it from a copy: {found}")))
    }

    /// What the store runs on.
    ///
    /// # Errors
    /// The file cannot be read.
    pub async fn versions(&self) -> Result<Versions, Failure> {
        let query = sqlx::query(VERSIONS);
        let row = query.fetch_one(&mut *self.0.readers.lend().await?).await.map_err(failure)?;
        let library: String = get(&row, "library")?;
        let schema: Option<i64> = get(&row, "schema")?;
        Ok(Versions { database: format!("SQLite {library}"), schema: schema.unwrap_or(0) })
    }
}
