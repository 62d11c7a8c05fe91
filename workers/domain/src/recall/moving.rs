//! Moving memories to the archive: the archivist's part of it.
//!
//! A row that cannot be moved stops no others: it is left out and told, and goes on waiting.

use std::collections::BTreeMap;

use schemas::id::MemoryId;
use schemas::limits::{ARCHIVE_BYTES_MAX, MEMORIES_MOVED_MAX, MEMORY_MOVE_PAGE};
use schemas::memory::{Memory, MemoryOwner};

use crate::failure::Failure;
use crate::memory::kept::KeptMemory;
use crate::ports::{MemoryArchive, MemoryTail, Revision};

/// Rows that one batch tells of by name.
const FINDINGS_MAX: usize = 10;

/// What one batch did.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Moved {
    pub rows: usize,
    /// More waits than fits into a batch.
    pub full: bool,
    /// Rows that could not be moved.
    pub left_out: usize,
    /// Which those are, and why; the first few of them.
    pub findings: Vec<String>,
    /// The last row that a full batch looked at.
    pub end: Option<Revision>,
}

/// Moves one batch of what waits, from the beginning. It may end at any point and be begun again: what
/// the archive has already, it takes once.
///
/// # Errors
/// SQL or the archive fails; what was not recorded goes on waiting.
pub async fn move_memories(tail: &dyn MemoryTail, archive: &dyn MemoryArchive) -> Result<Moved, Failure> {
    Moved::default().go_on(tail, archive).await
}

impl Moved {
    /// Moves the next batch: behind a full one, else from the beginning. However many rows are left out,
    /// what waits behind them has its turn.
    ///
    /// # Errors
    /// As [`move_memories`].
    pub async fn go_on(&self, tail: &dyn MemoryTail, archive: &dyn MemoryArchive) -> Result<Self, Failure> {
        let mut moved = Self::default();
        let mut rows = moved.collect(tail, self.end.clone()).await?;
        complete(archive, &mut rows).await?;
        let (rows, lacking): (Vec<_>, Vec<_>) = rows.into_iter().partition(|row| !row.lacks_content());
        for row in &lacking {
            moved.leave_out(
                &revision(row),
                "its content is neither in the database nor in the archive (were they restored from different times?)",
            );
        }
        if rows.is_empty() {
            return Ok(moved);
        }
        archive.keep(&rows).await?;
        let kept: Vec<Revision> = rows.iter().map(revision).collect();
        tail.mark_kept(&kept).await?;
        moved.rows = rows.len();
        Ok(moved)
    }

    /// Reads a batch. Rows that are left out count as much as others: no batch reads without end.
    async fn collect(
        &mut self,
        tail: &dyn MemoryTail,
        mut after: Option<Revision>,
    ) -> Result<Vec<KeptMemory>, Failure> {
        let (mut rows, mut seen, mut bytes) = (Vec::new(), 0, 0);
        loop {
            let page = tail.waiting_rows(after.as_ref(), MEMORY_MOVE_PAGE).await?;
            let more = page.len() == MEMORY_MOVE_PAGE;
            seen += page.len();
            for row in page {
                match row {
                    Ok(row) => {
                        after = Some(revision(&row));
                        bytes += row.bytes();
                        rows.push(row);
                    }
                    Err((at, failure)) => {
                        self.leave_out(&at, &format!("it cannot be read: {failure}"));
                        after = Some(at);
                    }
                }
            }
            if !more {
                return Ok(rows);
            }
            if seen >= MEMORIES_MOVED_MAX || bytes >= ARCHIVE_BYTES_MAX {
                self.full = true;
                self.end = after;
                return Ok(rows);
            }
        }
    }

    fn leave_out(&mut self, at: &Revision, why: &str) {
        self.left_out += 1;
        if self.findings.len() < FINDINGS_MAX {
            let MemoryOwner { namespace, agent_id } = &at.owner;
            self.findings.push(format!("memory {} of {namespace}/{agent_id}: {why}", at.id));
        }
    }
}

fn revision(row: &KeptMemory) -> Revision {
    Revision { owner: row.owner.clone(), id: row.id.clone(), revision: row.revision }
}

/// Gives rows of which only the vector changed the content that the archive has of them, if it does.
async fn complete(archive: &dyn MemoryArchive, rows: &mut [KeptMemory]) -> Result<(), Failure> {
    let mut lacking: BTreeMap<MemoryOwner, Vec<MemoryId>> = BTreeMap::new();
    for row in rows.iter().filter(|row| row.lacks_content()) {
        lacking.entry(row.owner.clone()).or_default().push(row.id.clone());
    }
    for (owner, ids) in &lacking {
        let ids: Vec<&MemoryId> = ids.iter().collect();
        for kept in archive.kept(owner, &ids).await?.into_iter().filter_map(|kept| kept.memory) {
            let mut mine = rows.iter_mut().filter(|row| row.owner == *owner).filter_map(|row| row.memory.as_mut());
            let same = |memory: &&mut Memory| memory.id == kept.id && memory.version == kept.version;
            if let Some(memory) = mine.find(same) {
                memory.content.clone_from(&kept.content);
            }
        }
    }
    Ok(())
}
