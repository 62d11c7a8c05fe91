//! What an agent remembers, as a turn in `c1` is shown it.

use domain::memory::input::MemoryWrite;
use domain::recall;
use schemas::id::MemoryId;
use schemas::limits::{MEMORY_INLINE_BYTES_MAX, MEMORY_PAGE_MAX};
use schemas::memory::{MemoryOwner, MemoryTier};
use serde_json::Value;
use testkit::dice::Dice;
use testkit::unreliable::{FaultRates, Trace};

use super::*;

fn owner() -> MemoryOwner {
    MemoryOwner { namespace: Namespace::default_ns(), agent_id: AgentId::parse("agent").expect("an id") }
}

/// The agent remembers it from now on.
async fn keep(deps: &TalkDeps, id: &str, memory: Value) {
    let (write, id) = (MemoryWrite::check(&memory).expect("sound"), MemoryId::parse(id).expect("an id"));
    recall::write(deps.memories.as_ref(), deps.embedder.as_ref(), &owner(), write, id).await.expect("written");
}

/// The same without a vector, for what is not searched for.
async fn keep_block(deps: &TalkDeps, id: &str, memory: Value) {
    let (write, id) = (MemoryWrite::check(&memory).expect("sound"), MemoryId::parse(id).expect("an id"));
    deps.memories.write(&owner(), &write.into_new(id)).await.expect("written");
}

async fn recalled(deps: &TalkDeps, text: &str) -> memory::Recalled {
    let input = json!({"message_id": "m1", "sender_type": "user", "role": "user", "text": text,
        "event_type": "utterance"});
    let input = serde_json::from_value(input).expect("a message");
    let (namespace, talk) = (Namespace::default_ns(), talk(TalkWork::Extract));
    let recalled = memory::recalled(deps, &namespace, &talk, &input).await;
    recalled.unwrap_or_else(|outcome| panic!("{outcome:?}"))
}

#[tokio::test(start_paused = true)]
async fn notes_of_a_conversation_take_no_place_from_what_is_known_from_elsewhere() {
    let place = Place::new().await;
    let trace = Trace::new();
    let faults = Faults::new("w", Dice::new(0), FaultRates::NONE, trace.clone());
    let memories = Arc::new(Unreliable::new(place.ports.memories.clone(), faults));
    let deps = TalkDeps { memories, ..place.deps(place.ports.conversations.clone()) };
    let question = "which tea does Ada like?";
    // Nothing fits better than what was asked before.
    for n in 0..20 {
        let asked = json!({"content": question, "metadata": {"conversation_id": "c1"}});
        keep(&deps, &format!("here{n}"), asked).await;
    }
    for n in 0..7 {
        let fact = format!("Ada does like green tea {n}{}", ".".repeat(MEMORY_INLINE_BYTES_MAX));
        keep(&deps, &format!("elsewhere{n}"), json!({"content": fact, "metadata": {"conversation_id": "c0"}})).await;
    }
    let found = recalled(&deps, question).await.found;
    assert_eq!(found.len(), 5, "{found:?}");
    assert!(found.iter().all(|text| text.starts_with("Ada does like green tea ")), "{found:?}");
    let lines = trace.tail(usize::MAX);
    let reads = lines.iter().filter(|line| line.ends_with(" memories.read")).count();
    assert_eq!(reads, 5, "what is large is read if it is shown");
}

#[tokio::test(start_paused = true)]
async fn a_significant_block_is_shown_however_many_have_changed_since() {
    let place = Place::new().await;
    let deps = place.deps(place.ports.conversations.clone());
    for tier in ["core", "working"] {
        let rule = json!({"tier": tier, "content": "the oldest rule", "significance": 1.0});
        keep_block(&deps, &format!("{tier}-rule"), rule).await;
        tokio::time::sleep(Duration::from_millis(1)).await;
        for n in 0..MEMORY_PAGE_MAX {
            let block = json!({"tier": tier, "content": "a later one", "significance": 0.1});
            keep_block(&deps, &format!("{tier}-{n}"), block).await;
        }
    }
    let blocks = recalled(&deps, "hello").await.blocks;
    for tier in [MemoryTier::Core, MemoryTier::Working] {
        let rules = blocks.iter().filter(|block| block.tier == tier && block.content == "the oldest rule");
        assert_eq!(rules.count(), 1, "{tier:?}");
    }
}
