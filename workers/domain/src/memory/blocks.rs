//! Core and working memory: the blocks that go into every request (SPEC A-MEM-12, A-LOOP-12).

use schemas::limits::{MEMORY_BLOCKS_BYTES_MAX, MEMORY_BLOCKS_MAX};
use schemas::memory::{Memory, MemoryTier};

use crate::context::MemoryBlock;

/// Chooses the blocks, core before working, each tier within its bounds and in the order of its titles: the
/// memory's label, else its type. What is more significant goes first, then what is newer; the order
/// hangs on the titles alone, so that a provider's cache of a prompt is not spoilt by a change of one
/// block's significance.
pub fn select(memories: &[Memory]) -> Vec<MemoryBlock> {
    [MemoryTier::Core, MemoryTier::Working].into_iter().flat_map(|wanted| tier(memories, wanted)).collect()
}

fn tier(memories: &[Memory], tier: MemoryTier) -> Vec<MemoryBlock> {
    let mut wanted: Vec<&Memory> =
        memories.iter().filter(|memory| memory.tier == tier && !memory.content.trim().is_empty()).collect();
    wanted.sort_by(|a, b| {
        let by_significance = b.significance.total_cmp(&a.significance);
        by_significance.then_with(|| b.updated_at_ms.cmp(&a.updated_at_ms)).then_with(|| a.id.cmp(&b.id))
    });
    let mut bytes = 0;
    let mut taken: Vec<&Memory> = Vec::new();
    for memory in wanted {
        let size = title(memory).len() + memory.content.len();
        if taken.len() < MEMORY_BLOCKS_MAX && bytes + size <= MEMORY_BLOCKS_BYTES_MAX {
            bytes += size;
            taken.push(memory);
        }
    }
    taken.sort_by(|a, b| title(a).cmp(title(b)).then_with(|| a.id.cmp(&b.id)));
    taken.into_iter().map(|memory| MemoryBlock::new(tier, title(memory), memory.content.clone())).collect()
}

fn title(memory: &Memory) -> &str {
    memory.label.as_deref().unwrap_or(&memory.kind)
}
