//! System prompts and working memory.

use super::*;

fn blocks() -> Vec<MemoryBlock> {
    vec![
        MemoryBlock::new(MemoryTier::Core, "persona", "I am Ana.\n"),
        MemoryBlock::new(MemoryTier::Working, "task", "Count ships."),
        MemoryBlock::new(MemoryTier::Archival, "old", "A secret of the archive."),
        MemoryBlock::new(MemoryTier::Core, "human", ""),
        MemoryBlock::new(MemoryTier::Working, "found", "Three."),
    ]
}

#[test]
fn core_blocks_are_always_in_the_system_prompt_under_their_titles() {
    let prompt = build_system_prompt("You are a clerk.", Some("Be brief."), &blocks());
    assert_eq!(prompt, "You are a clerk.\n\nBe brief.\n\n## persona\nI am Ana.\n\n## human\n(empty)");
    assert_eq!(build_system_prompt("", None, &blocks()), "## persona\nI am Ana.\n\n## human\n(empty)");
    assert_eq!(build_system_prompt(" x ", Some("  "), &[]), "x");
    assert_eq!(build_system_prompt("", None, &[]), "");
}

#[test]
fn working_blocks_are_one_message_before_the_history() {
    let history = [Message::text(Role::User, "hi"), Message::text(Role::Assistant, "hello")];
    let messages = build_messages(&blocks(), &history);
    assert_eq!(messages[0], Message::text(Role::User, "[Working memory]\n\n## task\nCount ships.\n\n## found\nThree."));
    assert_eq!(messages[1..], history);
    assert_eq!(build_messages(&blocks()[..1], &history), history, "without any there is no message");
}

#[test]
fn instructions_that_begin_a_history_stay_in_front() {
    let history = [Message::text(Role::System, "rules"), Message::text(Role::User, "hi")];
    let messages = build_messages(&blocks(), &history);
    assert_eq!((&messages[0], &messages[2]), (&history[0], &history[1]));
    assert_eq!(messages[1].role, Role::User);
    assert_eq!(build_messages(&blocks(), &[]).len(), 1);
}
