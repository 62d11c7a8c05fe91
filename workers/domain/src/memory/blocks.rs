//! Core and working memory: the blocks that go into every request (SPEC A-MEM-12, A-LOOP-12).

use schemas::id::MemoryId;
use schemas::limits::{MEMORY_BLOCKS_BYTES_MAX, MEMORY_BLOCKS_MAX, MEMORY_INLINE_BYTES_MAX, MEMORY_SHOWN_BYTES_MAX};
use schemas::memory::{Memory, MemoryTier};
use serde_json::json;

use super::kept::lacks_content;
use crate::context::MemoryBlock;
use crate::tool::Builtin;

/// Chooses the blocks, core before working, each tier within its bounds and in the order of its titles: the
/// memory's label, else its type. What is more significant goes first, then what is newer; the order
/// hangs on the titles alone, so that a provider's cache of a prompt is not spoilt by a change of one
/// block's significance. Of what overflowed and has no room, or whose content is not there, the block says how
/// it is read.
pub fn select(memories: &[Memory]) -> Vec<MemoryBlock> {
    [MemoryTier::Core, MemoryTier::Working].into_iter().flat_map(|wanted| tier(memories, wanted)).collect()
}

fn tier(memories: &[Memory], tier: MemoryTier) -> Vec<MemoryBlock> {
    let mut room = Room::default();
    let mut taken: Vec<(&Memory, String)> = Vec::new();
    for memory in by_significance(memories, tier) {
        let text = shown(memory, MEMORY_SHOWN_BYTES_MAX);
        if room.takes(memory, text.len()) {
            taken.push((memory, text));
        } else if memory.content_ref.is_some() {
            let hint = hint(memory);
            if room.takes(memory, hint.len()) {
                taken.push((memory, hint));
            }
        }
    }
    taken.sort_by(|(a, _), (b, _)| title(a).cmp(title(b)).then_with(|| a.id.cmp(&b.id)));
    taken.into_iter().map(|(memory, text)| MemoryBlock::new(tier, title(memory), text)).collect()
}

/// The memories whose content [`select`] needs and a list leaves out: no more of each tier than there is room for.
pub fn lacking(memories: &[Memory]) -> Vec<MemoryId> {
    let of_tier = |tier| {
        let mut room = Room::default();
        let is_lacking = move |memory: &&Memory| {
            let overflows = lacks_content(memory);
            // What overflowed is larger than this.
            let bytes = if overflows { MEMORY_INLINE_BYTES_MAX } else { memory.content.len() };
            room.takes(memory, bytes) && overflows
        };
        by_significance(memories, tier).into_iter().filter(is_lacking).map(|memory| memory.id.clone())
    };
    [MemoryTier::Core, MemoryTier::Working].into_iter().flat_map(of_tier).collect()
}

/// The content of a memory as a model is shown it: whole up to so many bytes. Of what overflowed and is larger,
/// the beginning, and how the rest is read.
pub fn shown(memory: &Memory, bytes: usize) -> String {
    let content = &memory.content;
    if lacks_content(memory) {
        return hint(memory);
    }
    if memory.content_ref.is_none() || content.len() <= bytes {
        return content.clone();
    }
    let beginning = &content[..content.floor_char_boundary(bytes)];
    format!("{beginning}\n[This is the beginning. {} gives all of it.]", call(memory))
}

/// A memory with no more of its content than [`select`] looks at.
pub fn cut(mut memory: Memory) -> Memory {
    // With a character more, it can be told that it is not whole.
    let end = memory.content.floor_char_boundary(MEMORY_SHOWN_BYTES_MAX + 4);
    if memory.content_ref.is_some() && end < memory.content.len() {
        memory.content = memory.content[..end].to_owned();
    }
    memory
}

fn hint(memory: &Memory) -> String {
    format!("[More than is shown here. {} gives all of it.]", call(memory))
}

/// What a model calls to read it.
fn call(memory: &Memory) -> String {
    format!("{} {}", Builtin::MemoryRead.name(), json!({ "id": memory.id }))
}

/// The memories of a tier that say something, most significant first.
fn by_significance(memories: &[Memory], tier: MemoryTier) -> Vec<&Memory> {
    let says = |memory: &&Memory| lacks_content(memory) || !memory.content.trim().is_empty();
    let mut wanted: Vec<&Memory> = memories.iter().filter(|memory| memory.tier == tier).filter(says).collect();
    wanted.sort_by(|a, b| {
        let by_significance = b.significance.total_cmp(&a.significance);
        by_significance.then_with(|| b.updated_at_ms.cmp(&a.updated_at_ms)).then_with(|| a.id.cmp(&b.id))
    });
    wanted
}

/// What is left of the bounds of a tier.
#[derive(Default)]
struct Room {
    blocks: usize,
    bytes: usize,
}

impl Room {
    fn takes(&mut self, memory: &Memory, content: usize) -> bool {
        let bytes = self.bytes + title(memory).len() + content;
        let fits = self.blocks < MEMORY_BLOCKS_MAX && bytes <= MEMORY_BLOCKS_BYTES_MAX;
        if fits {
            (self.blocks, self.bytes) = (self.blocks + 1, bytes);
        }
        fits
    }
}

fn title(memory: &Memory) -> &str {
    memory.label.as_deref().unwrap_or(&memory.kind)
}
