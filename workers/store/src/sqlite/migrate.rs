//! Schema versions, forward only, embedded in the program.

use std::borrow::Cow;

use sqlx::migrate::{Migration, MigrationType, Migrator};
use sqlx::{AssertSqlSafe, SqlSafeStr};

/// In order of their version. Released ones never change: their checksums are in the stores.
const MIGRATIONS: &[(i64, &str, &str)] = &[
    (1, "initial", include_str!("../../../../migrations/sqlite/0001_initial.sql")),
    (2, "roles", include_str!("../../../../migrations/sqlite/0002_roles.sql")),
];

pub(super) fn migrator() -> Migrator {
    let migration = |&(version, name, sql): &(i64, &'static str, &'static str)| {
        let sql = AssertSqlSafe(sql).into_sql_str();
        Migration::new(version, Cow::Borrowed(name), MigrationType::Simple, sql, false)
    };
    Migrator::with_migrations(MIGRATIONS.iter().map(migration).collect())
}

/// The newest version that this program knows.
pub(super) fn newest() -> i64 {
    MIGRATIONS.iter().map(|(version, ..)| *version).max().unwrap_or(0)
}
