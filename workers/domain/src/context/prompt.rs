//! The system prompt: who the agent is, how it behaves, what it always knows (SPEC A-LOOP-12).

use super::memory::{MemoryBlock, MemoryTier};

/// The prompt, the instructions, and every core block under its title, with blank lines between
/// them. Blocks of other tiers are left out.
pub fn build_system_prompt(system_prompt: &str, instructions: Option<&str>, blocks: &[MemoryBlock]) -> String {
    let texts = [system_prompt, instructions.unwrap_or_default()].map(|text| text.trim().to_owned());
    let core = blocks.iter().filter(|block| block.tier == MemoryTier::Core).map(MemoryBlock::titled);
    let all: Vec<String> = texts.into_iter().filter(|text| !text.is_empty()).chain(core).collect();
    all.join("\n\n")
}
