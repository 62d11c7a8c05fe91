//! Memories of the calling agent, and of nobody else.

use testkit::fake::embedder::WordEmbedder;

use super::*;

fn remembering() -> (Actions, Arc<WordEmbedder>) {
    let (store, embedder) = (store(), Arc::new(WordEmbedder::new("words")));
    let memory = MemoryActions::new(store, embedder.clone());
    (actions(config(false)).with(ActionKind::Memory, Arc::new(memory)), embedder)
}

fn asked(operation: &str, input: Value) -> ActionCall {
    let mut asked = call(ActionKind::Memory, json!({}), input);
    asked.request.operation = operation.to_owned();
    asked
}

#[tokio::test]
async fn what_is_written_is_found_read_listed_and_forgotten() {
    let (actions, _) = remembering();
    let write =
        asked("write", json!({"content": "Ana likes short answers", "type": "preference", "significance": 0.8}));
    let written = actions.run(&write).await.unwrap();
    assert_eq!((&written["id"], &written["change"]), (&json!("t1.1.0"), &json!("created")));
    let again = actions.run(&write).await.unwrap();
    assert_eq!((&again["id"], &again["change"]), (&json!("t1.1.0"), &json!("unchanged")), "a repeat is the same write");
    let found = actions.run(&asked("search", json!({"query": "short answers", "limit": 3}))).await.unwrap();
    assert_eq!(found["memories"][0]["content"], "Ana likes short answers");
    assert!(found["memories"][0]["relevance"].as_f64().unwrap() > 0.0);
    let read = actions.run(&asked("read", json!({"id": "t1.1.0"}))).await.unwrap();
    assert_eq!((&read["type"], &read["significance"]), (&json!("preference"), &json!(0.8)));
    let listed = actions.run(&asked("list", json!({}))).await.unwrap();
    assert_eq!(listed["memories"].as_array().unwrap().len(), 1);
    let delete = asked("delete", json!({"id": "t1.1.0"}));
    assert_eq!(actions.run(&delete).await.unwrap(), json!({"deleted": true}));
    assert_eq!(actions.run(&delete).await.unwrap(), json!({"deleted": false}));
    let gone = actions.run(&asked("read", json!({"id": "t1.1.0"}))).await.unwrap_err();
    assert_eq!(gone.error.code, ToolErrorCode::NotFound);
}

#[tokio::test]
async fn memories_are_those_of_the_agent_that_calls() {
    let (actions, _) = remembering();
    actions.run(&asked("write", json!({"content": "a secret of Ana"}))).await.unwrap();
    let mut other = asked("list", json!({}));
    other.request.context.agent_id = Some(AgentId::parse("bo").expect("an id"));
    assert_eq!(actions.run(&other).await.unwrap(), json!({"memories": []}));
    let mut nobody = asked("list", json!({}));
    nobody.request.context.agent_id = None;
    assert_eq!(actions.run(&nobody).await.unwrap_err().error.code, ToolErrorCode::InvalidInput);
}

#[tokio::test]
async fn what_is_wrong_is_told_and_an_embedder_that_fails_stops_nobody() {
    let (actions, embedder) = remembering();
    let wrong = actions.run(&asked("write", json!({"significance": 2, "agent_id": "bo"}))).await.unwrap_err();
    for field in ["content", "significance", "agent_id"] {
        assert!(wrong.error.message.contains(field), "{}", wrong.error.message);
    }
    embedder.fail(Some(domain::failure::Failure::unavailable("no model")));
    let written = actions.run(&asked("write", json!({"content": "kept all the same"}))).await.unwrap();
    assert_eq!(written["change"], "created");
}

/// What models are told of the built-in tools is what their runner takes.
#[tokio::test]
async fn the_schemas_of_the_built_in_tools_are_those_of_the_runner() {
    use domain::tool::{Builtin, schema};
    let (actions, _) = remembering();
    for (tool, operation, input) in [
        (
            Builtin::MemoryWrite,
            "write",
            json!({"content": "x", "type": "fact", "significance": 1, "label": "l",
            "metadata": {"a": 1}, "tier": "working"}),
        ),
        (Builtin::MemorySearch, "search", json!({"query": "x", "types": ["fact"], "limit": 5})),
        (Builtin::MemoryList, "list", json!({"types": ["fact"], "limit": 5})),
        (Builtin::MemoryRead, "read", json!({"label": "l"})),
        (Builtin::MemoryDelete, "delete", json!({"label": "l"})),
    ] {
        let errors = schema::check(&tool.resolved().tool.input_schema, &input);
        assert!(errors.is_empty(), "{operation}: {errors:?}");
        let result = actions.run(&asked(operation, input)).await;
        assert!(result.is_ok(), "{operation}: {result:?}");
    }
}
