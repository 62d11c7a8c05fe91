//! Turns that are cut off.

use std::sync::Arc;

use engine::{ConversationEngine, EngineConfig, EngineError, MemoryStore, Page, RunTurn, TurnId, TurnStatus};

use crate::fakes::{Mock, Say, Ticking, Watcher, asked, config, engine};

fn turn_id(text: &str) -> TurnId {
    TurnId::parse(text).expect("an id")
}

/// S-134, C-TRN-10.
#[tokio::test]
async fn s_134_a_turn_that_is_cancelled_under_way_reads_cancelled() {
    let watcher = Arc::new(Watcher::default());
    let mock = Mock::new(vec![Say::Hang, Say::Text("late")]);
    let engine = ConversationEngine::new(config(&mock).hooks(watcher.clone())).expect("an engine");
    let conversation = asked(&engine, "hi").await;
    let options = RunTurn { turn_id: Some(turn_id("t")), ..RunTurn::new(&conversation.id) };
    let run = tokio::spawn({
        let engine = engine.clone();
        async move { engine.run_turn(options).await }
    });
    mock.was_asked.notified().await;
    assert_eq!(engine.cancel(&conversation.id, &turn_id("t")).await, Ok(true));
    let ended = run.await.expect("it ends").expect_err("cancelled");
    let EngineError::TurnCancelled(turn) = &ended else { panic!("{ended:?}") };
    assert_eq!((turn.status, turn.output_messages.len()), (TurnStatus::Cancelled, 0));
    let record = &turn.provider_calls[0];
    assert_eq!(record.response_metadata["error"], "cancelled");
    assert!(record.outcome.as_ref().is_some_and(|outcome| !outcome.ok) && record.finished_at_ms.is_some());
    assert_eq!(engine.get_turn(&conversation.id, &turn.id).await.expect("read").as_ref(), Some(turn.as_ref()));
    assert_eq!(watcher.log.take()[1..], ["before_turn running", "after_turn_error cancelled: the turn was cancelled"]);
    assert_eq!(engine.cancel(&conversation.id, &turn_id("t")).await, Ok(false), "it has ended");
    let next = engine.run_turn(RunTurn::new(&conversation.id)).await.expect("the conversation goes on");
    assert_eq!(next.text(), "late");
}

#[tokio::test]
async fn a_turn_whose_process_died_can_be_cancelled_by_another() {
    let mock = Mock::new(vec![Say::Hang]);
    let store = Arc::new(MemoryStore::new());
    let config = EngineConfig { store: store.clone(), ..config(&mock) };
    let first = ConversationEngine::new(config.clone()).expect("an engine");
    let conversation = asked(&first, "hi").await;
    let options = RunTurn { turn_id: Some(turn_id("t")), ..RunTurn::new(&conversation.id) };
    // Dropped in the middle, as by a crash.
    tokio::select! {
        ended = first.run_turn(options) => panic!("{ended:?}"),
        () = mock.was_asked.notified() => {}
    }
    let stuck = first.get_turn(&conversation.id, &turn_id("t")).await.expect("read").expect("a turn");
    assert_eq!((stuck.status, stuck.provider_calls.len()), (TurnStatus::Running, 1));
    let watcher = Arc::new(Watcher::default());
    let second = ConversationEngine::new(config.clock(Ticking::from(9_000)).hooks(watcher.clone())).expect("an engine");
    assert_eq!(second.cancel(&conversation.id, &turn_id("t")).await, Ok(true));
    let ended = second.get_turn(&conversation.id, &turn_id("t")).await.expect("read").expect("a turn");
    assert_eq!((ended.status, ended.finished_at_ms), (TurnStatus::Cancelled, Some(9_000)));
    assert_eq!(watcher.log.take(), ["after_turn_error cancelled: the turn was cancelled"]);
    let none = second.cancel(&conversation.id, &turn_id("none")).await;
    assert!(matches!(none, Err(EngineError::NoTurn { .. })), "{none:?}");
}

#[tokio::test]
async fn of_an_answer_and_a_cancel_from_elsewhere_the_first_counts() {
    let mock = Mock::new(vec![Say::Hang]);
    let store = Arc::new(MemoryStore::new());
    let config = EngineConfig { store: store.clone(), ..config(&mock) };
    let here = ConversationEngine::new(config.clone()).expect("an engine");
    let elsewhere = ConversationEngine::new(config).expect("an engine");
    let conversation = asked(&here, "hi").await;
    let options = RunTurn { turn_id: Some(turn_id("t")), ..RunTurn::new(&conversation.id) };
    let run = tokio::spawn({
        let here = here.clone();
        async move { here.run_turn(options).await }
    });
    mock.was_asked.notified().await;
    assert_eq!(elsewhere.cancel(&conversation.id, &turn_id("t")).await, Ok(true));
    assert_eq!(here.cancel(&conversation.id, &turn_id("t")).await, Ok(true), "told to stop, which it was not yet");
    let ended = run.await.expect("it ends").expect_err("cancelled");
    assert!(matches!(ended, EngineError::TurnCancelled(_)), "{ended:?}");
    let stored = here.list_turns(&conversation.id, Page::all()).await.expect("turns");
    assert_eq!(stored.iter().map(|turn| turn.status).collect::<Vec<_>>(), [TurnStatus::Cancelled]);
}

#[tokio::test]
async fn turn_ids_are_used_once() {
    let mock = Mock::new(vec![Say::Hang]);
    let engine = engine(&mock);
    let conversation = asked(&engine, "hi").await;
    let options = RunTurn { turn_id: Some(turn_id("t")), ..RunTurn::new(&conversation.id) };
    let run = tokio::spawn({
        let (engine, options) = (engine.clone(), options.clone());
        async move { engine.run_turn(options).await }
    });
    mock.was_asked.notified().await;
    let again = engine.run_turn(options).await.expect_err("taken");
    assert!(matches!(again, EngineError::Store(engine::StoreError::Exists { what: "turn", .. })), "{again:?}");
    assert_eq!(engine.cancel(&conversation.id, &turn_id("t")).await, Ok(true));
    let ended = run.await.expect("it ends").expect_err("cancelled");
    assert!(matches!(ended, EngineError::TurnCancelled(_)), "the first one can still be told to stop");
}
