//! Rows as SQLite stores them.

use domain::failure::Failure;
use sqlx::sqlite::SqliteRow;
use sqlx::{Decode, Row, Sqlite, Type};

use super::failure::failure;
use crate::columns::Columns;
pub(super) use crate::columns::{
    action_columns, action_row, count, id, journal_row, json, key, name, opt_id, session_columns, session_row, shard,
};

/// The value of a column.
pub(super) fn get<'r, T>(row: &'r SqliteRow, column: &str) -> Result<T, Failure>
where
    T: Decode<'r, Sqlite> + Type<Sqlite>,
{
    row.try_get(column).map_err(failure)
}

impl Columns for SqliteRow {
    fn opt_text(&self, column: &str) -> Result<Option<&str>, Failure> {
        get(self, column)
    }

    fn opt_int(&self, column: &str) -> Result<Option<i64>, Failure> {
        get(self, column)
    }

    fn float(&self, column: &str) -> Result<f64, Failure> {
        get(self, column)
    }

    fn opt_bytes(&self, column: &str) -> Result<Option<&[u8]>, Failure> {
        get(self, column)
    }

    fn opt_shard(&self, column: &str) -> Result<Option<i64>, Failure> {
        get(self, column)
    }
}
