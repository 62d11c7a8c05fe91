//! Moving memories to the archive: the archivist's part of it.

use std::collections::BTreeMap;

use schemas::id::MemoryId;
use schemas::limits::{ARCHIVE_BYTES_MAX, MEMORIES_MOVED_MAX, MEMORY_MOVE_PAGE};
use schemas::memory::{Memory, MemoryOwner};

use crate::failure::Failure;
use crate::memory::kept::KeptMemory;
use crate::ports::{MemoryArchive, MemoryTail, Revision};

/// What one batch did.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Moved {
    pub rows: usize,
    /// More waits than fits into a batch.
    pub full: bool,
}

/// Moves one batch of what waits. It may end at any point and be begun again: what the archive has
/// already, it takes once.
///
/// # Errors
/// SQL or the archive fails; what was not recorded goes on waiting.
pub async fn move_memories(tail: &dyn MemoryTail, archive: &dyn MemoryArchive) -> Result<Moved, Failure> {
    let (mut rows, mut bytes, mut full) = (Vec::new(), 0, false);
    let mut after: Option<Revision> = None;
    loop {
        let page = tail.waiting(after.as_ref(), MEMORY_MOVE_PAGE).await?;
        let more = page.len() == MEMORY_MOVE_PAGE;
        after = page.last().map(revision);
        bytes += page.iter().map(KeptMemory::bytes).sum::<usize>();
        rows.extend(page);
        if !more {
            break;
        }
        if rows.len() >= MEMORIES_MOVED_MAX || bytes >= ARCHIVE_BYTES_MAX {
            full = true;
            break;
        }
    }
    if rows.is_empty() {
        return Ok(Moved::default());
    }
    complete(archive, &mut rows).await?;
    archive.keep(&rows).await?;
    let kept: Vec<Revision> = rows.iter().map(revision).collect();
    tail.mark_kept(&kept).await?;
    Ok(Moved { rows: rows.len(), full })
}

fn revision(row: &KeptMemory) -> Revision {
    Revision { owner: row.owner.clone(), id: row.id.clone(), revision: row.revision }
}

/// Gives rows of which only the vector changed the content that the archive has of them.
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
    match rows.iter().find(|row| row.lacks_content()) {
        None => Ok(()),
        Some(row) => Err(Failure::internal(format!(
            "the content of memory {} of {} is neither in the database nor in the archive (were they restored from \
             different times?)",
            row.id, row.owner.agent_id
        ))),
    }
}
