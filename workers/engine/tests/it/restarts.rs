//! What a program finds again after its end.

use std::sync::Arc;

use engine::{ConversationEngine, NewMessage, Page, RunTurn, TurnStatus};
use store::SqliteConversations;
use tempfile::TempDir;

use crate::fakes::{Mock, Say, Ticking, asked, config_on, engine_on};

#[tokio::test]
async fn a_conversation_goes_on_after_the_program_has_ended_in_the_middle_of_a_turn() {
    let directory = TempDir::new().expect("a directory");
    let path = directory.path().join("talks.db");
    let mock = Mock::new(vec![Say::Text("hello"), Say::Hang]);
    let store = SqliteConversations::open(&path).await.expect("the file opens");
    let engine = engine_on(&mock, Arc::new(store.clone()));
    let id = asked(&engine, "hi").await.id;
    let first = engine.run_turn(RunTurn::new(&id)).await.expect("a turn");
    mock.was_asked.notified().await;
    engine.append_messages(&id, vec![NewMessage::user("and now?")]).await.expect("added");
    tokio::select! {
        ended = engine.run_turn(RunTurn::new(&id)) => panic!("{ended:?}"),
        () = mock.was_asked.notified() => {}
    }
    store.close().await;

    let mock = Mock::new(vec![Say::Text("here I am")]);
    let store = SqliteConversations::open(&path).await.expect("the file opens again");
    let config = config_on(&mock, Arc::new(store)).clock(Ticking::from(9_000));
    let engine = ConversationEngine::new(config).expect("an engine");
    let turns = engine.list_turns(&id, Page::all()).await.expect("turns");
    let [kept, cut] = turns.as_slice() else { panic!("{turns:?}") };
    assert_eq!(kept, &first);
    assert_eq!((cut.status, cut.provider_calls.len()), (TurnStatus::Running, 1), "its call left a trace");
    assert_eq!(engine.cancel(&id, &cut.id).await, Ok(true));
    assert_eq!(engine.cancel(&id, &first.id).await, Ok(false), "it had ended");
    let next = engine.run_turn(RunTurn::new(&id)).await.expect("a turn");
    assert_eq!((next.text().as_str(), &next.input_messages), ("here I am", &cut.input_messages));
    assert_eq!(mock.last_request(), ["user: hi", "assistant: hello", "user: and now?"]);
    let statuses: Vec<TurnStatus> =
        engine.list_turns(&id, Page::all()).await.expect("turns").iter().map(|turn| turn.status).collect();
    assert_eq!(statuses, [TurnStatus::Succeeded, TurnStatus::Cancelled, TurnStatus::Succeeded]);
}
