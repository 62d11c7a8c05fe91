//! Rows as PostgreSQL stores them.

use std::borrow::Cow;

use domain::failure::Failure;
use sqlx::postgres::PgRow;
use sqlx::{Decode, Postgres, Row, Type};

use super::failure::failure;
use crate::columns::Columns;
pub(super) use crate::columns::{
    action_columns, action_row, count, id, journal_row, json, key, name, opt_id, session_columns, session_row, shard,
};

/// The database's clock, at the moment this is evaluated.
macro_rules! now {
    () => {
        "floor(extract(epoch FROM clock_timestamp()) * 1000)::int8"
    };
}
pub(super) use now;

/// The database's clock, as one value for the whole statement, so that an index can be searched with it.
macro_rules! moment {
    () => {
        "floor(extract(epoch FROM statement_timestamp()) * 1000)::int8"
    };
}
pub(super) use moment;

/// What is not younger than the parameter (milliseconds; 0: all) lies before this time. It is one
/// value for the whole statement, so that an index can be searched with it.
macro_rules! bound {
    ($age:literal) => {
        concat!(
            "CASE WHEN ",
            $age,
            "::int8 = 0 THEN 9223372036854775807 ELSE floor(extract(epoch FROM statement_timestamp()) * 1000)::int8 - ",
            $age,
            "::int8 + 1 END"
        )
    };
}
pub(super) use bound;

/// An age as a parameter of [`bound!`].
pub(super) fn age(age_ms: u64) -> i64 {
    i64::try_from(age_ms).unwrap_or(i64::MAX)
}

/// PostgreSQL's texts hold no NUL. Of free text, nothing hangs on one.
pub(super) fn clean(text: &str) -> Cow<'_, str> {
    if text.contains('\0') { Cow::Owned(text.replace('\0', "\u{FFFD}")) } else { Cow::Borrowed(text) }
}

/// The value of a column.
pub(super) fn get<'r, T>(row: &'r PgRow, column: &str) -> Result<T, Failure>
where
    T: Decode<'r, Postgres> + Type<Postgres>,
{
    row.try_get(column).map_err(failure)
}

impl Columns for PgRow {
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
        Ok(get::<Option<i32>>(self, column)?.map(i64::from))
    }
}
