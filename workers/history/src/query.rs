//! Queries: filter, then order, then offset and limit; all of it done by LanceDB.

use arrow_array::RecordBatch;
use domain::failure::Failure;
use domain::ports::{EventRow, StepQuery};
use domain::read::order::step_bytes;
use futures::TryStreamExt;
use lancedb::expr::DfExpr;
use lancedb::query::{ColumnOrdering, ExecutableQuery, QueryBase, Select};
use schemas::id::SessionKey;
use schemas::limits::PAGE_BYTES_MAX;
use schemas::record::{Snapshot, StoredStep};

use crate::archive::{Handle, Tables};
use crate::cells::Cells;
use crate::failure::of_lancedb;
use crate::predicate::{after_offset, ascending, descending, of_query, of_session, order_of};
use crate::table::{events, state, steps};

/// What to read of a table.
pub struct Page<'a> {
    pub filter: Option<DfExpr>,
    pub columns: &'a [&'a str],
    pub order: Option<Vec<ColumnOrdering>>,
    pub offset: usize,
    pub limit: Option<usize>,
}

/// Runs a query and hands its batches over as they come.
pub async fn fetch<R>(
    handle: &Handle<R>,
    page: Page<'_>,
    take: impl FnMut(&Cells<'_>) -> Result<(), Failure>,
) -> Result<(), Failure> {
    handle.look().await?;
    let mut query = handle.table.query().select(Select::columns(page.columns)).order_by(page.order);
    if let Some(filter) = page.filter {
        query = query.only_if_expr(filter);
    }
    if page.offset > 0 {
        query = query.offset(page.offset);
    }
    if let Some(limit) = page.limit {
        query = query.limit(limit);
    }
    run(handle, &query, take).await
}

/// Runs a query as it is, on the version that was looked at last.
pub async fn run<R>(
    handle: &Handle<R>,
    query: &impl ExecutableQuery,
    mut take: impl FnMut(&Cells<'_>) -> Result<(), Failure>,
) -> Result<(), Failure> {
    let failed = |error: lancedb::Error| of_lancedb(&format!("reading {}", handle.name()), &error);
    let mut batches = query.execute().await.map_err(failed)?;
    while let Some(batch) = batches.try_next().await.map_err(failed)? {
        let batch: RecordBatch = batch;
        take(&Cells::new(handle.declared.name, &batch))?;
    }
    Ok(())
}

impl Tables {
    pub async fn steps(&self, query: &StepQuery) -> Result<Vec<StoredStep>, Failure> {
        let page = Page {
            filter: of_query(query),
            columns: self.steps.declared.read,
            order: Some(order_of(query)),
            offset: query.offset,
            limit: Some(query.limit),
        };
        self.step_page(page).await
    }

    pub async fn steps_after_offset(
        &self,
        key: &SessionKey,
        after: u64,
        limit: usize,
    ) -> Result<Vec<StoredStep>, Failure> {
        let page = Page {
            filter: Some(after_offset(key, after)),
            columns: self.steps.declared.read,
            order: Some(ascending("event_offset")),
            offset: 0,
            limit: Some(limit),
        };
        self.step_page(page).await
    }

    async fn step_page(&self, page: Page<'_>) -> Result<Vec<StoredStep>, Failure> {
        if page.limit == Some(0) {
            return Ok(Vec::new());
        }
        let (mut found, mut bytes) = (Vec::new(), 0);
        fetch(&self.steps, page, |cells| {
            for step in steps::decode(cells)? {
                bytes += step_bytes(&step.step);
                if bytes > PAGE_BYTES_MAX && !found.is_empty() {
                    return Err(Failure::too_large("the page has too many bytes; ask for fewer rows"));
                }
                found.push(step);
            }
            Ok(())
        })
        .await?;
        Ok(found)
    }

    pub async fn events(&self, key: &SessionKey, after: u64, limit: usize) -> Result<Vec<EventRow>, Failure> {
        if limit == 0 {
            return Ok(Vec::new());
        }
        let page = Page {
            filter: Some(after_offset(key, after)),
            columns: self.events.declared.read,
            order: Some(ascending("event_offset")),
            offset: 0,
            limit: Some(limit),
        };
        let mut found = Vec::new();
        fetch(&self.events, page, |cells| {
            found.extend(events::decode(cells)?);
            Ok(())
        })
        .await?;
        Ok(found)
    }

    pub async fn snapshot(&self, key: &SessionKey) -> Result<Option<Snapshot>, Failure> {
        let page = Page {
            filter: Some(of_session(key)),
            columns: self.state.declared.read,
            // There is one row; were there two, the newer one would be right.
            order: Some(descending("seq")),
            offset: 0,
            limit: Some(1),
        };
        let mut found = None;
        fetch(&self.state, page, |cells| {
            found = found.take().or(state::decode(cells)?.pop());
            Ok(())
        })
        .await?;
        Ok(found)
    }
}
