//! Texts that become vectors, by the embedder of the fleet.

use domain::failure::Failure;
use testkit::fake::WordEmbedder;

use super::*;

fn embedding(config: Value, input: Value) -> ActionCall {
    let mut call = call(ActionKind::Llm, config, input);
    call.request.operation = "embed".to_owned();
    call
}

#[tokio::test]
async fn a_text_becomes_the_vector_that_memories_would_get() {
    let embedder = Arc::new(WordEmbedder::new("words-1"));
    let actions = actions(config(false)).embedding_with(embedder.clone());
    let ask = embedding(json!({"prompt": "About {{input.topic}}"}), json!({"topic": "tea & <milk>"}));
    let made = actions.run(&ask).await.expect("a vector");
    assert_eq!(embedder.asked(), ["About tea & <milk>"]);
    let vector = embedder.vector("About tea & <milk>");
    assert_eq!(made, json!({"model": "words-1", "dimensions": vector.len(), "embedding": vector}));
}

#[tokio::test]
async fn what_cannot_be_embedded_is_told() {
    let embedder = Arc::new(WordEmbedder::new("words-1"));
    let actions = actions(config(false)).embedding_with(embedder.clone());
    for settings in [json!({}), json!({"prompt": " {{input.topic}} "})] {
        let failed = actions.run(&embedding(settings, json!({"topic": ""}))).await.unwrap_err();
        assert_eq!((failed.error.code, failed.trouble), (ToolErrorCode::InvalidInput, None));
    }
    assert!(embedder.asked().is_empty());
    embedder.fail(Some(Failure::unavailable("away")));
    let ask = embedding(json!({"prompt": "x"}), json!({}));
    assert_eq!(actions.run(&ask).await.unwrap_err().trouble, Some(Trouble::ServerError));
    embedder.fail(Some(Failure::internal("wrong")));
    assert_eq!(actions.run(&ask).await.unwrap_err().error.code, ToolErrorCode::ExecutionFailed);
}

#[tokio::test]
async fn a_process_without_an_embedder_says_so() {
    let failed = actions(config(false)).run(&embedding(json!({"prompt": "x"}), json!({}))).await.unwrap_err();
    assert_eq!((failed.error.code, failed.may_have_happened), (ToolErrorCode::NotFound, false));
}
