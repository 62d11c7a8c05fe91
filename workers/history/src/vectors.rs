//! Vectors of memories: a column for each model and number of dimensions, so that no search can compare
//! vectors of two models. A row has a vector in at most one of them.
//!
//! They have no index: a search is of one agent, to whose rows the index on `agent_id` leads, and among
//! some ten thousand rows looking at each is exact and takes milliseconds.

use std::collections::HashMap;
use std::sync::Arc;

use arrow_array::builder::{FixedSizeListBuilder, Float32Builder};
use arrow_array::{ArrayRef, RecordBatch};
use arrow_schema::{DataType, Field, FieldRef, Schema};
use domain::action::hash;
use domain::failure::Failure;
use domain::memory::Embedding;
use domain::memory::kept::KeptMemory;
use schemas::limits::EMBEDDING_COLUMNS_MAX;

use crate::cells::Cells;

const PREFIX: &str = "vector_";
/// In the metadata of a field.
const MODEL: &str = "stepfleet.model";

/// The column of one model and number of dimensions.
#[derive(Debug, Clone)]
pub struct VectorColumn {
    field: FieldRef,
    item: FieldRef,
    model: String,
    dimensions: i32,
}

impl VectorColumn {
    /// `None`: a vector without numbers has no column, and is like nothing.
    fn of(embedding: &Embedding) -> Option<Self> {
        let dimensions = i32::try_from(embedding.vector.len()).ok().filter(|dimensions| *dimensions > 0)?;
        let digest = hash::sha256(&format!("{dimensions} {}", embedding.model));
        let tag: String = digest[..8].iter().map(|byte| format!("{byte:02x}")).collect();
        let item: FieldRef = Arc::new(Field::new("item", DataType::Float32, true));
        let list = DataType::FixedSizeList(item.clone(), dimensions);
        let metadata = HashMap::from([(MODEL.to_owned(), embedding.model.clone())]);
        let field = Field::new(format!("{PREFIX}{tag}"), list, true).with_metadata(metadata);
        Some(Self { field: Arc::new(field), item, model: embedding.model.clone(), dimensions })
    }

    fn parse(field: &FieldRef) -> Option<Self> {
        let (model, DataType::FixedSizeList(item, dimensions)) = (field.metadata().get(MODEL)?, field.data_type())
        else {
            return None;
        };
        Some(Self { field: field.clone(), item: item.clone(), model: model.clone(), dimensions: *dimensions })
    }

    pub fn name(&self) -> &str {
        self.field.name()
    }

    fn holds(&self, embedding: &Embedding) -> bool {
        self.model == embedding.model && usize::try_from(self.dimensions) == Ok(embedding.vector.len())
    }

    fn encode(&self, rows: &[KeptMemory]) -> ArrayRef {
        let numbers = Float32Builder::new();
        let mut array = FixedSizeListBuilder::with_capacity(numbers, self.dimensions, rows.len());
        array = array.with_field(self.item.clone());
        for row in rows {
            match row.embedding.as_ref().filter(|embedding| self.holds(embedding)) {
                Some(embedding) => array.values().append_slice(&embedding.vector),
                None => (0..self.dimensions).for_each(|_| array.values().append_null()),
            }
            array.append(row.embedding.as_ref().is_some_and(|embedding| self.holds(embedding)));
        }
        Arc::new(array.finish())
    }
}

/// The vector columns of a table.
#[derive(Debug, Clone, Default)]
pub struct VectorColumns(Vec<VectorColumn>);

impl VectorColumns {
    pub fn of(schema: &Schema) -> Self {
        Self(schema.fields().iter().filter_map(VectorColumn::parse).collect())
    }

    /// The column whose vectors may be compared with this one.
    pub fn like(&self, embedding: &Embedding) -> Option<&VectorColumn> {
        self.0.iter().find(|column| column.holds(embedding))
    }

    pub fn names(&self) -> impl Iterator<Item = &str> {
        self.0.iter().map(VectorColumn::name)
    }

    /// The columns that these rows need and the table does not have. Past the bound, vectors are left
    /// out: their memories are found by words.
    pub fn missing(&self, rows: &[KeptMemory]) -> Option<Arc<Schema>> {
        let mut missing: Vec<VectorColumn> = Vec::new();
        for embedding in rows.iter().filter_map(|row| row.embedding.as_ref()) {
            if self.like(embedding).is_none() && !missing.iter().any(|column| column.holds(embedding)) {
                missing.extend(VectorColumn::of(embedding));
            }
        }
        let room = EMBEDDING_COLUMNS_MAX.saturating_sub(self.0.len());
        if missing.len() > room {
            tracing::warn!(models = missing.len(), room, "too many embedding models; some vectors are left out");
            missing.truncate(room);
        }
        let fields: Vec<FieldRef> = missing.into_iter().map(|column| column.field).collect();
        (!fields.is_empty()).then(|| Arc::new(Schema::new(fields)))
    }

    /// The rows with their vectors.
    pub fn add_to(&self, batch: &RecordBatch, rows: &[KeptMemory]) -> Result<RecordBatch, Failure> {
        let mut fields: Vec<FieldRef> = batch.schema().fields().iter().cloned().collect();
        let mut arrays = batch.columns().to_vec();
        for column in &self.0 {
            fields.push(column.field.clone());
            arrays.push(column.encode(rows));
        }
        let batch = RecordBatch::try_new(Arc::new(Schema::new(fields)), arrays);
        batch.map_err(|error| Failure::internal(format!("encoding vectors: {error}")))
    }

    /// The vector of a row, of whatever model.
    pub fn read(&self, cells: &Cells<'_>, row: usize) -> Result<Option<Embedding>, Failure> {
        for column in &self.0 {
            if let Some(vector) = cells.vector(column.name(), row)? {
                return Ok(Some(Embedding { model: column.model.clone(), vector }));
            }
        }
        Ok(None)
    }
}
