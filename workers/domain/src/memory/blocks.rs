//! Core and working memory: the blocks that go into every request (SPEC A-MEM-12, A-LOOP-12).

use schemas::limits::{MEMORY_BLOCKS_BYTES_MAX, MEMORY_BLOCKS_MAX};
use schemas::memory::{Memory, MemoryTier};

/// A titled text.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Block {
    /// The memory's label, else its type.
    pub title: String,
    pub content: String,
}

#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Blocks {
    /// For the system prompt, in the order of their titles.
    pub core: Vec<Block>,
    /// For before the messages, in the order of their titles.
    pub working: Vec<Block>,
    /// Memories of these tiers for which there was no room.
    pub left_out: usize,
}

/// Chooses the blocks, each tier within its bounds. What is more significant goes first, then what
/// is newer; the order of the blocks hangs on their titles alone, so that a provider's cache of a
/// prompt is not spoilt by a change of one block's significance.
pub fn select(memories: &[Memory]) -> Blocks {
    let (core, core_left) = tier(memories, MemoryTier::Core);
    let (working, working_left) = tier(memories, MemoryTier::Working);
    Blocks { core, working, left_out: core_left + working_left }
}

fn tier(memories: &[Memory], tier: MemoryTier) -> (Vec<Block>, usize) {
    let mut wanted: Vec<&Memory> =
        memories.iter().filter(|memory| memory.tier == tier && !memory.content.trim().is_empty()).collect();
    wanted.sort_by(|a, b| {
        let by_significance = b.significance.total_cmp(&a.significance);
        by_significance.then_with(|| b.updated_at_ms.cmp(&a.updated_at_ms)).then_with(|| a.id.cmp(&b.id))
    });
    let (mut bytes, mut left_out) = (0, 0);
    let mut taken: Vec<&Memory> = Vec::new();
    for memory in wanted {
        let size = title(memory).len() + memory.content.len();
        if taken.len() < MEMORY_BLOCKS_MAX && bytes + size <= MEMORY_BLOCKS_BYTES_MAX {
            bytes += size;
            taken.push(memory);
        } else {
            left_out += 1;
        }
    }
    taken.sort_by(|a, b| title(a).cmp(title(b)).then_with(|| a.id.cmp(&b.id)));
    let block = |memory: &Memory| Block { title: title(memory).to_owned(), content: memory.content.clone() };
    (taken.into_iter().map(block).collect(), left_out)
}

fn title(memory: &Memory) -> &str {
    memory.label.as_deref().unwrap_or(&memory.kind)
}
