//! Searches and lists: rows are read page by page, and the domain decides which of them are meant.

use async_trait::async_trait;
use domain::failure::Failure;
use domain::memory::search::{Scanned, Search, Words, hits};
use domain::memory::{MemoryFilter, MemoryHits, MemoryQuery, Traits};
use domain::ports::{MemoryListQuery, MemoryPage};
use schemas::id::MemoryId;
use schemas::limits::{MEMORIES_SCANNED_MAX, MEMORY_SCAN_PAGE};
use schemas::memory::{Memory, MemoryOwner, MemoryTier};

use super::memory;
use crate::columns::{Columns, id, name};

/// Which index leads: the one that narrows a list most.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Only<'f> {
    All,
    Tier(MemoryTier),
    Kind(&'f str),
}

/// The memories of one agent, as a database reads them.
#[async_trait]
pub(crate) trait Corpus: Sync {
    type Row: Columns + Send + Sync;

    /// When the newest memory was changed that is too many to be looked at, if there is one.
    async fn floor(&self, owner: &MemoryOwner) -> Result<Option<i64>, Failure>;

    /// What a search sees of memories that changed after `floor_ms`, ascending by id, above `after`.
    /// A memory that changes meanwhile keeps its place, and so is seen once.
    async fn scan(&self, owner: &MemoryOwner, after: &str, floor_ms: i64) -> Result<Vec<Self::Row>, Failure>;

    /// The given memories, in any order.
    async fn some(&self, owner: &MemoryOwner, ids: &[&str]) -> Result<Vec<Self::Row>, Failure>;

    /// Memories after a place in the order of their last changes, latest first, ids descending.
    async fn recent(
        &self,
        owner: &MemoryOwner,
        only: Only<'_>,
        after: (i64, &str),
        limit: usize,
    ) -> Result<Vec<Self::Row>, Failure>;
}

pub(crate) async fn search(
    corpus: &impl Corpus,
    owner: &MemoryOwner,
    query: &MemoryQuery,
) -> Result<MemoryHits, Failure> {
    let floor = corpus.floor(owner).await?;
    let mut search = Search::new(query);
    let (mut after, mut seen) = (String::new(), 0);
    loop {
        let rows = corpus.scan(owner, &after, floor.unwrap_or(i64::MIN)).await?;
        for row in &rows {
            see(&mut search, row)?;
        }
        seen += rows.len();
        match rows.last() {
            // Memories that are written meanwhile make no scan endless.
            Some(last) if rows.len() == MEMORY_SCAN_PAGE && seen < MEMORIES_SCANNED_MAX => {
                after = last.text("id")?.to_owned();
            }
            _ => break,
        }
    }
    found(corpus, owner, search, floor.is_some()).await
}

/// Reads the memories that a search is to show, once it has seen all rows.
pub(crate) async fn found(
    corpus: &impl Corpus,
    owner: &MemoryOwner,
    search: Search<'_>,
    incomplete: bool,
) -> Result<MemoryHits, Failure> {
    let ranked = search.finish();
    if ranked.is_empty() {
        return Ok(MemoryHits { hits: Vec::new(), incomplete });
    }
    let ids: Vec<&str> = ranked.iter().map(|ranked| ranked.id.as_str()).collect();
    let rows = corpus.some(owner, &ids).await?;
    let memories = rows.iter().map(|row| memory(owner, row)).collect::<Result<_, Failure>>()?;
    Ok(MemoryHits { hits: hits(ranked, memories), incomplete })
}

fn see(search: &mut Search<'_>, row: &impl Columns) -> Result<(), Failure> {
    let memory_id: MemoryId = id(row, "id")?;
    let embedding = match (row.opt_text("embedding_model")?, row.opt_bytes("embedding")?) {
        (Some(model), Some(vector)) => Some((model, vector)),
        _ => None,
    };
    let words = Words::Text { label: row.opt_text("label")?, content: row.text("content")? };
    search.see(&Scanned { id: &memory_id, traits: traits(row)?, words, embedding });
    Ok(())
}

pub(super) fn traits(row: &impl Columns) -> Result<Traits<'_>, Failure> {
    Ok(Traits {
        tier: name(row, "tier", MemoryTier::parse)?,
        kind: row.text("type")?,
        significance: row.float("significance")?,
        metadata: row.text("metadata")?,
        updated_at_ms: row.int("updated_at_ms")?,
    })
}

pub(crate) async fn list(
    corpus: &impl Corpus,
    owner: &MemoryOwner,
    query: &MemoryListQuery,
) -> Result<MemoryPage, Failure> {
    let mut page = MemoryPage { rows: Vec::new(), next: query.after.clone() };
    let mut seen = 0;
    // Most lists find what they want among the first rows.
    let mut size = query.limit.saturating_add(1).min(MEMORY_SCAN_PAGE);
    loop {
        let after = page.next.as_ref().map_or((i64::MAX, ""), |(ms, id)| (*ms, id.as_str()));
        let rows = corpus.recent(owner, narrowest(&query.filter), after, size).await?;
        for row in &rows {
            if page.rows.len() == query.limit {
                return Ok(page);
            }
            let found = memory(owner, row)?;
            if query.filter.since_ms.is_some_and(|since| found.updated_at_ms < since) {
                // Nothing later follows.
                return Ok(MemoryPage { next: None, ..page });
            }
            page.next = Some(place(&found));
            if query.filter.matches(&traits(row)?) {
                page.rows.push(found);
            }
        }
        seen += rows.len();
        if rows.len() < size {
            return Ok(MemoryPage { next: None, ..page });
        }
        if seen >= MEMORIES_SCANNED_MAX {
            return Ok(page);
        }
        size = MEMORY_SCAN_PAGE;
    }
}

fn place(memory: &Memory) -> (i64, MemoryId) {
    (memory.updated_at_ms, memory.id.clone())
}

fn narrowest(filter: &MemoryFilter) -> Only<'_> {
    match (&filter.tiers[..], &filter.kinds[..]) {
        (_, [kind]) => Only::Kind(kind),
        ([tier], _) => Only::Tier(*tier),
        _ => Only::All,
    }
}
