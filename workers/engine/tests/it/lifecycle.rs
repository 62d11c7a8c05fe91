//! Conversations: made, loaded, changed, added to.

use engine::{
    ConversationEngine, ConversationId, ConversationStore, CreateConversation, EngineConfig, EngineError, MemoryStore,
    MessageId, MessageRole, NewMessage, Page, RunTurn, StoreError,
};
use serde_json::json;
use std::sync::Arc;

use crate::fakes::{Mock, Say, asked, config, engine, engine_on};
use crate::stores::on_each_store;

fn id(text: &str) -> ConversationId {
    ConversationId::parse(text).expect("an id")
}

/// C-TST-01, C-CNV-10.
#[tokio::test]
async fn c_tst_01_conversations_are_made_loaded_and_updated() {
    on_each_store(lifecycle).await;
}

async fn lifecycle(store: Arc<dyn ConversationStore>) {
    let engine = engine_on(&Mock::new(vec![Say::Text("x")]), store);
    let bare = engine.create_conversation(CreateConversation::default()).await.expect("created");
    assert_eq!((bare.agent.as_str(), bare.created_at_ms, bare.updated_at_ms), ("ana", 1_000, 1_000));
    assert_eq!(bare.id.as_str().len(), 26, "a ULID");
    assert_eq!(engine.messages(&bare.id).await.expect("messages"), []);
    let options = CreateConversation {
        id: Some(id("mine")),
        agent: Some("bo".into()),
        subject_id: Some("tenant-1".into()),
        title: Some("Ships".into()),
        initial_messages: vec![NewMessage::system("be brief"), NewMessage::user("hi")],
        metadata: json!({"cohort": "b"}).as_object().expect("an object").clone(),
    };
    let full = engine.create_conversation(options.clone()).await.expect("created");
    assert_eq!(engine.get_conversation(&id("mine")).await, Ok(Some(full.clone())));
    let messages = engine.messages(&full.id).await.expect("messages");
    assert_eq!(messages.iter().map(|one| one.role).collect::<Vec<_>>(), [MessageRole::System, MessageRole::User]);
    assert!(messages.iter().all(|one| one.conversation_id == full.id && one.created_at_ms == full.created_at_ms));
    let again = engine.create_conversation(options).await;
    assert!(matches!(again, Err(EngineError::Store(StoreError::Exists { .. }))), "{again:?}");
    let mut changed = full.clone();
    changed.title = Some("Boats".into());
    let updated = engine.update_conversation(changed).await.expect("updated");
    assert!(updated.updated_at_ms > full.updated_at_ms && updated.created_at_ms == full.created_at_ms);
    assert_eq!(engine.get_conversation(&id("mine")).await, Ok(Some(updated)));
    assert_eq!(engine.get_conversation(&id("none")).await, Ok(None));
}

#[tokio::test]
async fn what_is_not_there_cannot_be_added_to() {
    let engine = engine(&Mock::new(vec![Say::Text("x")]));
    let none = EngineError::NoConversation(id("none"));
    assert_eq!(engine.append_messages(&id("none"), vec![NewMessage::user("x")]).await, Err(none.clone()));
    assert_eq!(engine.messages(&id("none")).await, Err(none.clone()));
    assert_eq!(engine.run_turn(RunTurn::new(&id("none"))).await, Err(none.clone()));
    assert!(none.to_string().contains("create it first"));
    let huge = NewMessage::user("x".repeat(9 << 20));
    let conversation = asked(&engine, "hi").await;
    let refused = engine.append_messages(&conversation.id, vec![NewMessage::user("y"), huge]).await;
    assert!(matches!(&refused, Err(EngineError::Invalid(told)) if told.contains("send less")), "{refused:?}");
    let metadata = json!({"note": "x".repeat(9 << 20)}).as_object().expect("an object").clone();
    let refused =
        engine.append_messages(&conversation.id, vec![NewMessage { metadata, ..NewMessage::user("y") }]).await;
    assert!(matches!(refused, Err(EngineError::Invalid(_))), "metadata counts");
    assert_eq!(engine.messages(&conversation.id).await.expect("messages").len(), 1, "nothing was added");
}

#[tokio::test]
async fn added_messages_come_behind_all_others_whatever_the_clock_says() {
    let engine = engine(&Mock::new(vec![Say::Text("answer")]));
    let conversation = asked(&engine, "first").await;
    let ahead = NewMessage { created_at_ms: Some(9_000_000), ..NewMessage::user("from a clock that is ahead") };
    let own = MessageId::parse("own").expect("an id");
    let added = NewMessage { id: Some(own.clone()), ..NewMessage::user("second") };
    engine.append_messages(&conversation.id, vec![ahead]).await.expect("added");
    let stored = engine.append_messages(&conversation.id, vec![added.clone()]).await.expect("added");
    assert_eq!((stored[0].id.as_str(), stored[0].created_at_ms), ("own", 9_000_000));
    let again = engine.append_messages(&conversation.id, vec![added]).await;
    assert!(matches!(again, Err(EngineError::Store(StoreError::Exists { what: "message", .. }))), "{again:?}");
    engine.run_turn(RunTurn::new(&conversation.id)).await.expect("a turn");
    let all = engine.messages(&conversation.id).await.expect("messages");
    let texts: Vec<String> = all.iter().map(|one| one.content.text()).collect();
    assert_eq!(texts, ["first", "from a clock that is ahead", "second", "answer"]);
}

#[tokio::test]
async fn of_a_very_long_conversation_the_newest_and_the_first_instructions_count() {
    let mock = Mock::new(vec![Say::Text("x")]);
    let engine = engine(&mock);
    let initial_messages = vec![NewMessage::system("rules"), NewMessage::user("the very first")];
    let options = CreateConversation { initial_messages, ..CreateConversation::default() };
    let conversation = engine.create_conversation(options).await.expect("created");
    let many = (0..9_999).map(|n| NewMessage::user(format!("u{n}"))).collect();
    engine.append_messages(&conversation.id, many).await.expect("added");
    let all = engine.messages(&conversation.id).await.expect("messages");
    assert_eq!(
        (all.len(), all[0].content.text(), all[1].content.text()),
        (10_001, "rules".into(), "the very first".into())
    );
    engine.append_messages(&conversation.id, vec![NewMessage::user("last")]).await.expect("added");
    let all = engine.messages(&conversation.id).await.expect("messages");
    assert_eq!((all.len(), all[0].content.text(), all[1].content.text()), (10_001, "rules".into(), "u0".into()));
    assert_eq!(engine.list_turns(&conversation.id, Page::all()).await, Ok(Vec::new()));
}

#[test]
fn a_wrong_configuration_is_refused_with_everything_that_is_wrong() {
    let told = |config: EngineConfig| match ConversationEngine::new(config) {
        Err(EngineError::Invalid(told)) => told,
        other => panic!("{:?}", other.map(|_| ())),
    };
    let bare = told(EngineConfig::new("", Arc::new(MemoryStore::new())));
    for part in ["default_agent", "no provider", "set a default model or a planner"] {
        assert!(bare.contains(part), "{bare}");
    }
    let mock = Mock::new(vec![]);
    assert!(told(config(&mock).provider(mock.clone())).contains("two adapters"));
    assert!(told(config(&mock).default_model("other", "m")).contains("\"other\""));
}
