//! When hooks are called, and what they can stop.

use std::sync::Arc;

use domain::chat::ErrorCategory;
use engine::{ConversationEngine, ConversationStore, CreateConversation, EngineError, RunTurn, TurnStatus};

use crate::fakes::{Mock, Say, Watcher, asked, config, config_on};
use crate::stores::on_each_store;

/// C-TST-04.
#[tokio::test]
async fn c_tst_04_every_hook_is_called_at_its_moment() {
    on_each_store(hooks).await;
}

async fn hooks(store: Arc<dyn ConversationStore>) {
    let watcher = Arc::new(Watcher::default());
    let mock = Mock::new(vec![Say::Text("hello"), Say::Fail(ErrorCategory::Auth, "no key")]);
    let engine = ConversationEngine::new(config_on(&mock, store).hooks(watcher.clone())).expect("an engine");
    engine
        .create_conversation(CreateConversation { agent: Some("bo".into()), ..Default::default() })
        .await
        .expect("created");
    let conversation = asked(&engine, "hi").await;
    assert_eq!(watcher.log.take(), ["on_conversation_created bo", "on_conversation_created ana"]);
    engine.run_turn(RunTurn::new(&conversation.id)).await.expect("a turn");
    assert_eq!(watcher.log.take(), ["before_turn running", "after_turn_success succeeded"]);
    engine.run_turn(RunTurn::new(&conversation.id)).await.expect_err("no key");
    assert_eq!(watcher.log.take(), ["before_turn running", "after_turn_error failed: no key"]);
}

#[tokio::test]
async fn a_hook_can_refuse_a_turn_before_anybody_is_asked() {
    let watcher = Arc::new(Watcher::default());
    *watcher.refuses.lock().expect("unpoisoned") = Some("not today");
    let mock = Mock::new(vec![Say::Text("hello")]);
    let engine = ConversationEngine::new(config(&mock).hooks(watcher.clone())).expect("an engine");
    let conversation = asked(&engine, "hi").await;
    let refused = engine.run_turn(RunTurn::new(&conversation.id)).await.expect_err("refused");
    let EngineError::TurnFailed(turn) = &refused else { panic!("{refused:?}") };
    assert_eq!((turn.status, turn.provider_calls.len(), mock.asked().len()), (TurnStatus::Failed, 0, 0));
    assert_eq!(turn.error.as_ref().and_then(|error| error.code.as_deref()), Some("refused"));
    assert_eq!(watcher.log.take()[1..], ["before_turn running", "after_turn_error failed: not today"]);
}
