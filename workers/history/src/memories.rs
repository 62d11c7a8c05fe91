//! Memories in the archive: rows by key in their highest revision, and candidates of a search.
//!
//! Here the watermark is in the rows: a row gives way to a higher revision alone, so a batch that comes
//! again, from whomever and however late, changes nothing.

use std::collections::{BTreeMap, HashSet};

use async_trait::async_trait;
use domain::failure::Failure;
use domain::memory::MemoryQuery;
use domain::memory::kept::{Candidate, Candidates, KeptMemory};
use domain::memory::terms::Terms;
use domain::memory::vector::Probe;
use domain::ports::{MemoryArchive, Revision};
use lance::dataset::NewColumnTransform;
use lancedb::DistanceType;
use lancedb::expr::DfExpr;
use lancedb::index::scalar::FullTextSearchQuery;
use lancedb::query::{ExecutableQuery, Query, QueryBase, Select};
use schemas::id::MemoryId;
use schemas::memory::MemoryOwner;

use crate::append::encode;
use crate::archive::{LanceArchive, Tables};
use crate::cells::Cells;
use crate::failure::{of_lance, of_lancedb};
use crate::merge::Merging;
use crate::predicate::{of_memories, of_model, with_ids};
use crate::query::{Page, fetch, run};
use crate::table::memories::{self as table, MEMORIES, SEEN};
use crate::vectors::VectorColumns;

const MERGING: Merging = Merging { key: &table::KEY, newer: "target.revision < source.revision" };
/// Rows named in one predicate.
const ROWS_AT_A_TIME: usize = 500;

#[async_trait]
impl MemoryArchive for LanceArchive {
    async fn keep(&self, rows: &[KeptMemory]) -> Result<(), Failure> {
        if let Some(row) = rows.iter().find(|row| row.lacks_content()) {
            return Err(Failure::internal(format!("memory {} comes without its content", row.id)));
        }
        let (tables, rows) = (self.0.clone(), rows.to_vec());
        Self::to_the_end(async move { tables.keep_memories(rows).await }).await
    }

    async fn candidates(&self, owner: &MemoryOwner, query: &MemoryQuery, limit: usize) -> Result<Candidates, Failure> {
        self.0.memory_candidates(owner, query, limit).await
    }

    async fn kept(&self, owner: &MemoryOwner, ids: &[&MemoryId]) -> Result<Vec<KeptMemory>, Failure> {
        let vectors = self.0.vector_columns().await?;
        let columns: Vec<&str> = MEMORIES.read.iter().copied().chain(vectors.names()).collect();
        let mut found = Vec::new();
        for ids in ids.chunks(ROWS_AT_A_TIME) {
            fetch(&self.0.memories, these(owner, ids, &columns), |cells| {
                found.extend(table::decode(cells, |row| vectors.read(cells, row))?);
                Ok(())
            })
            .await?;
        }
        Ok(found)
    }

    async fn revisions(&self, owner: &MemoryOwner, ids: &[&MemoryId]) -> Result<Vec<Revision>, Failure> {
        let mut found = Vec::new();
        for ids in ids.chunks(ROWS_AT_A_TIME) {
            fetch(&self.0.memories, these(owner, ids, &["namespace", "agent_id", "id", "revision"]), |cells| {
                found.extend(table::revisions(cells)?);
                Ok(())
            })
            .await?;
        }
        Ok(found)
    }
}

fn these<'a>(owner: &MemoryOwner, ids: &[&MemoryId], columns: &'a [&'a str]) -> Page<'a> {
    Page { filter: Some(with_ids(owner, ids)), columns, order: None, offset: 0, limit: None }
}

impl Tables {
    async fn keep_memories(&self, rows: Vec<KeptMemory>) -> Result<(), Failure> {
        let mut writer = self.writer.lock().await;
        let written = &mut writer.memories;
        let rows = newest(rows);
        if rows.is_empty() {
            return Ok(());
        }
        // There are no marks to be had; but commits follow the version that is looked at here.
        let marks = self.memories.marks(written).await?;
        let present = self.vector_columns().await?;
        if let Some(missing) = present.missing(&rows) {
            let mut dataset = (*self.memories.dataset().await?).clone();
            let added = dataset.add_columns(NewColumnTransform::AllNulls(missing), None, None).await;
            added.map_err(|error| of_lance("adding a column of vectors", &error))?;
            self.memories.adopt(dataset);
        }
        let batch = self.vector_columns().await?.add_to(&encode(&MEMORIES, &rows)?, &rows)?;
        self.memories.merge(&MERGING, batch, &marks).await?;
        written.upkeep.commits += 1;
        written.upkeep.rows += rows.len();
        Ok(())
    }

    async fn vector_columns(&self) -> Result<VectorColumns, Failure> {
        let schema = self.memories.table.schema().await;
        schema.map(|schema| VectorColumns::of(&schema)).map_err(|error| of_lancedb(MEMORIES.name, &error))
    }

    async fn memory_candidates(
        &self,
        owner: &MemoryOwner,
        query: &MemoryQuery,
        limit: usize,
    ) -> Result<Candidates, Failure> {
        self.memories.look().await?;
        let vectors = self.vector_columns().await?;
        let looking = Looking { tables: self, vectors, filter: of_memories(owner, &query.filter), limit };
        let (near, fitting, total) = futures::try_join!(looking.near(query), looking.fitting(query), looking.count())?;
        let mut ids = HashSet::new();
        let rows = near.into_iter().chain(fitting).filter(|row| ids.insert(row.id.clone())).collect();
        Ok(Candidates { rows, total })
    }
}

/// One search, in several ways at a time.
struct Looking<'t> {
    tables: &'t Tables,
    vectors: VectorColumns,
    filter: DfExpr,
    limit: usize,
}

impl Looking<'_> {
    fn query(&self) -> Query {
        let columns: Vec<&str> = SEEN.into_iter().chain(self.vectors.names()).collect();
        self.tables.memories.table.query().select(Select::columns(&columns)).limit(self.limit)
    }

    async fn rows(&self, query: &impl ExecutableQuery) -> Result<Vec<Candidate>, Failure> {
        let mut rows = Vec::new();
        let take = |cells: &Cells<'_>| {
            rows.extend(table::candidates(cells, |row| self.vectors.read(cells, row))?);
            Ok(())
        };
        run(&self.tables.memories, query, take).await?;
        Ok(rows)
    }

    /// By vector.
    async fn near(&self, query: &MemoryQuery) -> Result<Vec<Candidate>, Failure> {
        let Some(embedding) = query.embedding.as_ref().filter(|embedding| Probe::new(embedding).is_some()) else {
            return Ok(Vec::new());
        };
        let Some(column) = self.vectors.like(embedding) else { return Ok(Vec::new()) };
        let near = self.query().nearest_to(embedding.vector.as_slice());
        let near = near.map_err(|error| of_lancedb("searching memories", &error))?.column(column.name());
        let filter = of_model(self.filter.clone(), &embedding.model);
        self.rows(&near.distance_type(DistanceType::Cosine).only_if_expr(filter)).await
    }

    /// By words.
    async fn fitting(&self, query: &MemoryQuery) -> Result<Vec<Candidate>, Failure> {
        let words = Terms::of(&query.text).joined();
        if words.is_empty() {
            return Ok(Vec::new());
        }
        let words = FullTextSearchQuery::new(words).with_column(MEMORIES.searched[0].to_owned());
        let words = words.map_err(|error| of_lance("searching memories", &error))?;
        self.rows(&self.query().full_text_search(words).only_if_expr(self.filter.clone())).await
    }

    async fn count(&self) -> Result<u64, Failure> {
        let mut all = self.tables.memories.dataset().await?.scan();
        let total = all.filter_expr(self.filter.clone()).count_rows().await;
        total.map_err(|error| of_lance("counting memories", &error))
    }
}

/// Of each row the highest revision, in the order of agents and ids: a merge takes a key once.
fn newest(rows: Vec<KeptMemory>) -> Vec<KeptMemory> {
    let mut by_key: BTreeMap<(MemoryOwner, MemoryId), KeptMemory> = BTreeMap::new();
    for row in rows {
        let key = (row.owner.clone(), row.id.clone());
        if by_key.get(&key).is_none_or(|there| there.revision < row.revision) {
            by_key.insert(key, row);
        }
    }
    by_key.into_values().collect()
}
