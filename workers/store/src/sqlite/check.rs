//! The file's own consistency, for the doctor.

use domain::failure::Failure;

use super::SqliteStore;
use super::failure::failure;

/// Reads every page, without comparing indexes row by row.
const CHECK: &str = "PRAGMA quick_check(1)";

impl SqliteStore {
    /// Whether the file is sound, as SQLite sees it. Takes as long as reading the file; writers
    /// go on meanwhile.
    pub async fn quick_check(&self) -> Result<(), Failure> {
        let found: String = sqlx::query_scalar(CHECK).fetch_one(&self.0.readers).await.map_err(failure)?;
        if found == "ok" {
            return Ok(());
        }
        Err(Failure::internal(format!("the store's file is damaged; stop, and restore it from a copy: {found}")))
    }
}
