//! When old messages become a summary, by whom, and what is kept.

use std::sync::Arc;

use domain::chat::ErrorCategory;
use engine::{Agent, AgentDeps, AgentSettings, Compactor, ContextBudget, MessageKind, ModelCompactor, create_agent};
use schemas::definition::CompactionSettings;

use crate::agents::{Blocks, deps, history};
use crate::fakes::{Mock, Say};

fn settings() -> CompactionSettings {
    CompactionSettings {
        enabled: true,
        chunk_size: 2,
        keep_recent: 1,
        max_summary_tokens: 64,
        clip_first: 1,
        clip_last: 1,
        model_profile_id: None,
    }
}

fn compactor(mock: &Arc<Mock>, memory: &Arc<Blocks>) -> Arc<dyn Compactor> {
    Arc::new(ModelCompactor::new("ana", mock.clone(), "small-1", memory.clone(), settings()))
}

/// A window of 1,000 tokens, all of which may be used.
async fn agent(mock: &Arc<Mock>, compactor: Option<Arc<dyn Compactor>>) -> Agent {
    let budget = ContextBudget { context_budget: 1.0, model_max_tokens: 1_000 };
    let settings = AgentSettings { budget, ..AgentSettings::default() };
    create_agent(AgentDeps { compactor, settings, ..deps(mock) }, None).await.expect("an agent")
}

/// 600 tokens.
fn long(letter: &str) -> String {
    letter.repeat(2_400)
}

/// A-CMP-01, A-CMP-05, A-CMP-06.
#[tokio::test]
async fn a_full_window_is_summarised_by_the_compactor_and_its_own_model() {
    let (main, small) = (Mock::new(vec![Say::Text("noted")]), Mock::new(vec![Say::Text("They wrote a lot.")]));
    let memory = Arc::new(Blocks::default());
    let mut agent = agent(&main, Some(compactor(&small, &memory))).await;
    agent.process_message(long("a")).await.expect("an answer");
    assert_eq!(small.asked().len(), 0, "it still fits");
    agent.process_message(long("b")).await.expect("an answer");
    let request = main.last_request();
    assert!(request[0].starts_with("system: [Context Summary: 2 earlier messages]"), "{}", request[0]);
    assert!(request[0].ends_with("They wrote a lot."));
    assert_eq!(request[1..], [format!("user: {}", long("b"))]);
    let asked = small.asked();
    assert_eq!((asked.len(), asked[0].request.model.as_deref()), (1, Some("small-1")));
    assert_eq!(asked[0].request.parameters.temperature, Some(0.0));
    let archived = memory.archived.lock().expect("unpoisoned").clone();
    let label = format!("compaction-batch-{}-", agent.conversation_id());
    assert!(archived.len() == 1 && archived[0].0.starts_with(&label), "{archived:?}");
    assert!(archived[0].1.starts_with("[depth:0|start:") && archived[0].1.ends_with("|count:2]\nThey wrote a lot."));
    let stored = agent.conversation_history().await.expect("a history");
    let kinds: Vec<MessageKind> = stored.iter().map(|one| one.kind).collect();
    let (said, summary) = (MessageKind::Utterance, MessageKind::Summary);
    assert_eq!(kinds, [said, said, said, summary, said], "nothing is taken away");
    assert_eq!(stored[3].compacts_through.as_ref(), Some(&stored[1].id));
    // The next time goes on from there.
    agent.process_message(long("c")).await.expect("an answer");
    assert!(main.last_request()[0].starts_with("system: [Context Summary: 4 earlier messages]"));
    assert!(small.asked()[1].request.messages[1].plain_text().contains("so far:\nThey wrote a lot.\n"));
}

#[tokio::test]
async fn without_a_compactor_nothing_is_summarised() {
    let main = Mock::new(vec![Say::Text("noted")]);
    let mut agent = agent(&main, None).await;
    for letter in ["a", "b", "c"] {
        agent.process_message(long(letter)).await.expect("an answer");
    }
    assert_eq!((main.last_request().len(), main.asked()[0].request.tools.len()), (5, 0));
    assert_eq!(agent.compact().await, Ok(None));
}

#[tokio::test]
async fn a_compactor_that_fails_leaves_the_history_as_it_is() {
    let working = || Say::Text("short");
    for (say, fails) in [(Say::Fail(ErrorCategory::Auth, "no"), false), (Say::Text("  "), false), (working(), true)] {
        let (main, small) = (Mock::new(vec![Say::Text("noted")]), Mock::new(vec![say]));
        let memory = Arc::new(Blocks { fails, ..Blocks::default() });
        let mut agent = agent(&main, Some(compactor(&small, &memory))).await;
        agent.process_message(long("a")).await.expect("an answer");
        agent.process_message(long("b")).await.expect("it goes on");
        assert_eq!((history(&agent).await.len(), main.last_request().len()), (4, 3));
        assert!(!small.asked().is_empty(), "it was tried");
    }
}

/// A-CMP-03.
#[tokio::test]
async fn the_model_can_ask_for_a_summary() {
    let main = Mock::new(vec![Say::Text("noted"), Say::Calls(&["compact_context"]), Say::Text("done")]);
    let small = Mock::new(vec![Say::Text("short")]);
    let mut agent = agent(&main, Some(compactor(&small, &Arc::new(Blocks::default())))).await;
    agent.process_message("hi").await.expect("an answer");
    assert_eq!(main.asked()[0].request.tools[0].name, "compact_context");
    assert_eq!(agent.process_message("forget it").await.expect("an answer"), "done");
    let request = main.last_request();
    assert!(request[0].starts_with("system: [Context Summary: 2 earlier messages]"), "{request:?}");
    assert_eq!(request[1..3], ["user: forget it", "assistant: call compact_context"], "with the question and its call");
    assert!(request[3].contains("\"messages_compressed\":2") && request[3].contains("\"batches_created\":1"));
}

/// SPEC 4.8: too many batches become one of greater depth.
#[tokio::test]
async fn many_summaries_are_folded_into_one() {
    let (main, small) = (Mock::new(vec![Say::Text("noted")]), Mock::new(vec![Say::Text("short")]));
    let memory = Arc::new(Blocks::default());
    let mut agent = agent(&main, Some(compactor(&small, &memory))).await;
    for letter in ["a", "b", "c", "d", "e", "f"] {
        agent.process_message(long(letter)).await.expect("an answer");
    }
    let archived = memory.archived.lock().expect("unpoisoned").clone();
    let depths: Vec<&str> = archived.iter().map(|(_, text)| &text[..8]).collect();
    assert_eq!(depths, ["[depth:0", "[depth:0", "[depth:0", "[depth:0", "[depth:0", "[depth:1"]);
    let request = main.last_request();
    assert!(request[0].starts_with("system: [Context Summary: 10 earlier messages]"), "{}", request[0]);
    assert!(request[0].contains("[depth:1|") && request[0].contains("|count:8]"));
}

#[tokio::test]
async fn a_summary_can_be_asked_for_at_any_time() {
    let (main, small) = (Mock::new(vec![Say::Text("noted")]), Mock::new(vec![Say::Text("short")]));
    let mut agent = agent(&main, Some(compactor(&small, &Arc::new(Blocks::default())))).await;
    agent.process_message(long("a")).await.expect("an answer");
    assert_eq!(agent.compact().await, Ok(None), "the last question and its answer stay");
    agent.process_message("x").await.expect("an answer");
    let done = agent.compact().await.expect("a store").expect("something was old");
    assert_eq!((done.messages_compressed, done.batches_created, done.tokens_before), (2, 1, 602));
    assert!(done.tokens_after < 40, "{}", done.tokens_after);
    assert_eq!(agent.compact().await, Ok(None), "there is nothing more to gain");
}
