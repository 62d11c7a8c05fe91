//! Schema versions, forward only, embedded in the program.

use std::borrow::Cow;

use sqlx::migrate::{MigrateError, Migration, MigrationType, Migrator};
use sqlx::{AssertSqlSafe, SqlSafeStr};

use crate::open::OpenError;

/// Version, name and text, in order of the version. Landed ones never change: their checksums are in the
/// stores, and in `migrations/SHA256SUMS`, which `cargo xtask tidy` checks.
pub(crate) struct Migrations(pub(crate) &'static [(i64, &'static str, &'static str)]);

impl Migrations {
    pub(crate) fn migrator(&self) -> Migrator {
        let migration = |&(version, name, sql): &(i64, &'static str, &'static str)| {
            let sql = AssertSqlSafe(sql).into_sql_str();
            Migration::new(version, Cow::Borrowed(name), MigrationType::Simple, sql, false)
        };
        Migrator::with_migrations(self.0.iter().map(migration).collect())
    }

    /// The newest version that this program knows.
    pub(crate) fn newest(&self) -> i64 {
        self.0.iter().map(|(version, ..)| *version).max().unwrap_or(0)
    }

    /// The version that a store has, if this program does not know it.
    pub(crate) fn newer(&self, found: i64) -> Option<i64> {
        (found > self.newest()).then_some(found)
    }

    /// Why a store could not be migrated; `of_database` says it of a failed statement.
    pub(crate) fn open_error(
        &self,
        place: String,
        error: MigrateError,
        of_database: impl FnOnce(sqlx::Error) -> OpenError,
    ) -> OpenError {
        match error {
            MigrateError::Execute(error) | MigrateError::ExecuteMigration(error, _) => of_database(error),
            MigrateError::VersionMissing(found) => OpenError::NewerSchema { place, found, known: self.newest() },
            MigrateError::VersionMismatch(version) => OpenError::ForeignSchema { place, version },
            other => OpenError::Refused { place, detail: other.to_string() },
        }
    }
}

#[cfg(test)]
mod tests {
    #[test]
    fn both_databases_have_the_same_versions() {
        let names = |migrations: super::Migrations| {
            migrations.0.iter().map(|(version, name, _)| (*version, *name)).collect::<Vec<_>>()
        };
        assert_eq!(names(crate::sqlite::MIGRATIONS), names(crate::postgres::MIGRATIONS));
        for folder in ["sqlite", "postgres"] {
            let path = format!("{}/../../migrations/{folder}", env!("CARGO_MANIFEST_DIR"));
            let files = std::fs::read_dir(&path).expect("a folder").map(|entry| entry.expect("an entry").file_name());
            let mut files: Vec<String> = files.map(|name| name.to_string_lossy().into_owned()).collect();
            files.retain(|name| name != "schema.sql");
            files.sort();
            let known = names(crate::sqlite::MIGRATIONS);
            let known: Vec<String> = known.iter().map(|(version, name)| format!("{version:04}_{name}.sql")).collect();
            assert_eq!(files, known, "{path}");
        }
    }
}
