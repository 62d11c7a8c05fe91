//! Typed reads of a record batch. What is not as declared is a failure that names the place.

use std::str::FromStr;

use arrow_array::cast::AsArray;
use arrow_array::types::{Float32Type, Float64Type, Int32Type, Int64Type};
use arrow_array::{Array, RecordBatch};
use arrow_schema::DataType;
use domain::failure::Failure;
use schemas::id::{Namespace, SessionId, SessionKey};

/// A record batch of one of our tables.
pub struct Cells<'b> {
    table: &'static str,
    batch: &'b RecordBatch,
}

impl<'b> Cells<'b> {
    pub fn new(table: &'static str, batch: &'b RecordBatch) -> Self {
        Self { table, batch }
    }

    pub fn rows(&self) -> usize {
        self.batch.num_rows()
    }

    pub fn text(&self, name: &str, row: usize) -> Result<Option<&'b str>, Failure> {
        let column = self.column(name)?;
        let array = column.as_string_opt::<i32>().ok_or_else(|| self.bad(name, row, "is no text"))?;
        Ok(array.is_valid(row).then(|| array.value(row)))
    }

    pub fn long(&self, name: &str, row: usize) -> Result<Option<i64>, Failure> {
        let column = self.column(name)?;
        if column.is_null(row) {
            return Ok(None);
        }
        match column.data_type() {
            DataType::Int64 => Ok(Some(column.as_primitive::<Int64Type>().value(row))),
            DataType::Int32 => Ok(Some(i64::from(column.as_primitive::<Int32Type>().value(row)))),
            _ => Err(self.bad(name, row, "is no number")),
        }
    }

    /// A number that is never negative.
    pub fn count(&self, name: &str, row: usize) -> Result<u64, Failure> {
        let value = self.long(name, row)?.unwrap_or_default();
        u64::try_from(value).map_err(|_| self.bad(name, row, "is negative"))
    }

    pub fn double(&self, name: &str, row: usize) -> Result<f64, Failure> {
        let array = self.column(name)?.as_primitive_opt::<Float64Type>();
        array.map(|array| array.value(row)).ok_or_else(|| self.bad(name, row, "is no number"))
    }

    /// A vector, if there is one.
    pub fn vector(&self, name: &str, row: usize) -> Result<Option<Vec<f32>>, Failure> {
        let list = self.column(name)?.as_fixed_size_list_opt();
        let list = list.ok_or_else(|| self.bad(name, row, "is no vector"))?;
        if list.is_null(row) {
            return Ok(None);
        }
        let numbers = list.value(row);
        let numbers = numbers.as_primitive_opt::<Float32Type>().ok_or_else(|| self.bad(name, row, "is no vector"))?;
        Ok(Some(numbers.values().to_vec()))
    }

    pub fn id<T: FromStr<Err: std::fmt::Display>>(&self, name: &str, row: usize) -> Result<T, Failure> {
        self.maybe_id(name, row)?.ok_or_else(|| self.bad(name, row, "is null"))
    }

    pub fn maybe_id<T: FromStr<Err: std::fmt::Display>>(&self, name: &str, row: usize) -> Result<Option<T>, Failure> {
        let text = self.text(name, row)?;
        text.map(|text| text.parse().map_err(|why: T::Err| self.bad(name, row, &why.to_string()))).transpose()
    }

    /// Whose row it is; `None` for a row without a session (SPEC K-34), which no query asks for.
    pub fn key(&self, row: usize) -> Result<Option<SessionKey>, Failure> {
        let Some(session) = self.maybe_id::<SessionId>("session_id", row)? else { return Ok(None) };
        Ok(Some(SessionKey::new(self.id::<Namespace>("namespace", row)?, session)))
    }

    pub fn bad(&self, name: &str, row: usize, why: &str) -> Failure {
        Failure::internal(format!("table {}: {name} of row {row} of a page {why}", self.table))
    }

    fn column(&self, name: &str) -> Result<&'b dyn Array, Failure> {
        let found = self.batch.column_by_name(name).map(AsRef::as_ref);
        found.ok_or_else(|| Failure::internal(format!("table {} has no column {name}", self.table)))
    }
}
