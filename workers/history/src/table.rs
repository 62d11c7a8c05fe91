//! Tables as data: each column is declared once, with its type and how a row fills it. The Arrow
//! schema and the encoder both come from that one list.

pub mod events;
pub mod memories;
pub mod messages;
pub mod moves;
pub mod records;
pub mod state;
pub mod steps;

use std::borrow::Cow;
use std::sync::Arc;

use arrow_array::builder::{Float64Builder, Int32Builder, Int64Builder, StringBuilder};
use arrow_array::{ArrayRef, RecordBatch};
use arrow_schema::{ArrowError, DataType, Field, Schema, SchemaRef};

/// One value of a row.
pub enum Cell<'a> {
    Text(Cow<'a, str>),
    Int(i64),
    Double(f64),
    Null,
}

impl<'a> Cell<'a> {
    pub fn text(value: &'a str) -> Self {
        Self::Text(Cow::Borrowed(value))
    }

    pub fn owned(value: String) -> Self {
        Self::Text(Cow::Owned(value))
    }

    pub fn maybe(value: Option<&'a str>) -> Self {
        value.map_or(Self::Null, Self::text)
    }

    pub fn count(value: u64) -> Self {
        Self::Int(i64::try_from(value).unwrap_or(i64::MAX))
    }
}

#[derive(Clone, Copy)]
pub enum Kind {
    /// Not null.
    Text,
    TextOrNull,
    Long,
    LongOrNull,
    Int,
    Double,
}

impl Kind {
    fn data_type(self) -> DataType {
        match self {
            Self::Text | Self::TextOrNull => DataType::Utf8,
            Self::Long | Self::LongOrNull => DataType::Int64,
            Self::Int => DataType::Int32,
            Self::Double => DataType::Float64,
        }
    }

    fn is_nullable(self) -> bool {
        matches!(self, Self::TextOrNull | Self::LongOrNull)
    }
}

/// A column of a table whose rows are made from `R`.
pub struct Column<R: 'static> {
    pub name: &'static str,
    pub kind: Kind,
    pub cell: for<'a> fn(&'a R) -> Cell<'a>,
}

/// A table: its name, its columns, which of them a decoder needs, and which have an index.
pub struct Table<R: 'static> {
    pub name: &'static str,
    pub columns: &'static [Column<R>],
    /// The rest repeats these for people and programs that read the table by themselves. What a
    /// query orders by must be among them.
    pub read: &'static [&'static str],
    pub indexed: &'static [&'static str],
    /// Columns of words with blanks between them, which have a full-text index.
    pub searched: &'static [&'static str],
}

impl<R> Table<R> {
    pub fn schema(&self) -> SchemaRef {
        let field = |column: &Column<R>| Field::new(column.name, column.kind.data_type(), column.kind.is_nullable());
        Arc::new(Schema::new(self.columns.iter().map(field).collect::<Vec<_>>()))
    }

    pub fn encode(&self, rows: &[R]) -> Result<RecordBatch, ArrowError> {
        let arrays = self.columns.iter().map(|column| column.encode(rows)).collect::<Result<Vec<_>, _>>()?;
        RecordBatch::try_new(self.schema(), arrays)
    }
}

impl<R> Column<R> {
    fn encode(&self, rows: &[R]) -> Result<ArrayRef, ArrowError> {
        let mismatch = || ArrowError::SchemaError(format!("column {} holds another type", self.name));
        let number = |cell: Cell<'_>| match cell {
            Cell::Int(value) => Ok(Some(value)),
            Cell::Null => Ok(None),
            Cell::Text(_) | Cell::Double(_) => Err(mismatch()),
        };
        Ok(match self.kind {
            Kind::Text | Kind::TextOrNull => {
                let mut array = StringBuilder::new();
                for row in rows {
                    match (self.cell)(row) {
                        Cell::Text(value) => array.append_value(value),
                        Cell::Null => array.append_null(),
                        Cell::Int(_) | Cell::Double(_) => return Err(mismatch()),
                    }
                }
                Arc::new(array.finish())
            }
            Kind::Long | Kind::LongOrNull => {
                let mut array = Int64Builder::with_capacity(rows.len());
                for row in rows {
                    array.append_option(number((self.cell)(row))?);
                }
                Arc::new(array.finish())
            }
            Kind::Int => {
                let mut array = Int32Builder::with_capacity(rows.len());
                for row in rows {
                    let value = number((self.cell)(row))?;
                    array.append_option(value.map(|v| i32::try_from(v).unwrap_or(i32::MAX)));
                }
                Arc::new(array.finish())
            }
            Kind::Double => {
                let mut array = Float64Builder::with_capacity(rows.len());
                for row in rows {
                    match (self.cell)(row) {
                        Cell::Double(value) => array.append_value(value),
                        _ => return Err(mismatch()),
                    }
                }
                Arc::new(array.finish())
            }
        })
    }
}
