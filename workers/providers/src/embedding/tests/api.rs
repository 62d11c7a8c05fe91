//! The API adapter against a server that says what it is told to say.

use std::collections::BTreeMap;

use domain::ports::Embedder;
use serde_json::{Value, json};

use super::super::openai::{ApiEmbedder, tokens};
use crate::config::{Account, EmbedderChoice, EmbeddingConfig, EmbeddingSettings, ProvidersConfig, Secret, Vendor};
use crate::fake_server::{FakeServer, Say};
use crate::net::Net;

const KEY: &str = "sk-very-secret";

fn of(url: &str, dimensions: Option<u32>) -> ApiEmbedder {
    with(url, dimensions, Secret::new(KEY), ProvidersConfig::default())
}

/// `key` is the section's own.
fn with(url: &str, dimensions: Option<u32>, key: Option<Secret>, config: ProvidersConfig) -> ApiEmbedder {
    let settings = EmbeddingSettings {
        provider: Some("openai".into()),
        model: Some("small".into()),
        base_url: Some(format!("{url}/v1")),
        dimensions,
        ..EmbeddingSettings::default()
    };
    let embedding = EmbeddingConfig { settings, key, problems: Vec::new() };
    let config = ProvidersConfig { embedding, ..config };
    match config.choose_embedder().expect("valid") {
        EmbedderChoice::Api { endpoint, dimensions } => {
            ApiEmbedder::new(Net::new(true).expect("clients"), *endpoint, dimensions)
        }
        EmbedderChoice::Static => panic!("the API was asked for"),
    }
}

fn answer(vectors: &[(usize, &[f32])]) -> Say {
    let data: Vec<Value> =
        vectors.iter().map(|(index, vector)| json!({ "index": index, "embedding": vector })).collect();
    Say::Answer(200, "content-type: application/json\r\n", json!({ "data": data }).to_string())
}

#[tokio::test]
async fn vectors_come_in_the_order_of_the_texts() {
    let server = FakeServer::start(vec![answer(&[(1, &[0.0, 1.0]), (0, &[1.0, 0.0])])]).await;
    let embedder = of(&server.url, Some(2));
    assert_eq!(embedder.model(), format!("openai/small:2@{}/v1", server.url));
    let vectors = embedder.embed(&["one", " ", "two"]).await.expect("vectors");
    assert_eq!(vectors, [vec![1.0, 0.0], vec![], vec![0.0, 1.0]], "blank texts are not sent");
    let requests = server.requests();
    assert_eq!(requests.len(), 1);
    assert!(requests[0].head.starts_with("post /v1/embeddings "), "{}", requests[0].head);
    assert!(requests[0].head.contains(&format!("authorization: bearer {KEY}")));
    let body: Value = serde_json::from_str(&requests[0].body).expect("JSON");
    assert_eq!(body, json!({"model": "small", "input": ["one", "two"], "encoding_format": "float", "dimensions": 2}));
    assert_eq!(embedder.embed(&[]).await.expect("none"), Vec::<Vec<f32>>::new());
    assert_eq!(server.requests().len(), 1, "nothing to ask");
}

#[test]
fn tokens_are_those_that_are_told_or_else_an_estimate() {
    let told = |usage: Value| tokens(&json!({"data": [], "usage": usage}), &["four", "and five"]);
    assert_eq!(told(json!({"prompt_tokens": 7, "total_tokens": 9})), (7, "told"));
    assert_eq!(told(json!({"total_tokens": 9})), (9, "told"));
    assert_eq!(told(Value::Null), (3, "estimated"));
    assert_eq!(told(json!({"prompt_tokens": -1})), (3, "estimated"));
    assert_eq!(tokens(&json!([]), &["x"]), (1, "estimated"));
}

#[tokio::test]
async fn a_busy_server_is_asked_again_and_a_refusal_is_not() {
    let busy = Say::Answer(503, "retry-after-ms: 1\r\n", String::new());
    let server = FakeServer::start(vec![busy, answer(&[(0, &[1.0])])]).await;
    assert_eq!(of(&server.url, None).embed(&["x"]).await.expect("vectors"), [vec![1.0]]);
    let refusal =
        format!(r#"{{"error":{{"message":"Incorrect API key provided: {KEY}","type":"invalid_request_error"}}}}"#);
    let server = FakeServer::start(vec![Say::Answer(401, "", refusal)]).await;
    let failure = of(&server.url, None).embed(&["x"]).await.expect_err("refused");
    assert!(!failure.retriable && !failure.message.contains(KEY), "{failure}");
    assert_eq!(server.requests().len(), 1);
}

#[tokio::test]
async fn another_server_gets_no_key_of_the_account_and_one_that_wants_a_key_names_the_setting() {
    let refusal = Say::Answer(401, "", r#"{"error":{"message":"Unauthorized"}}"#.to_owned());
    let server = FakeServer::start(vec![refusal]).await;
    let account = Account { key: Secret::new(KEY), base_url: None };
    let config =
        ProvidersConfig { accounts: BTreeMap::from([(Vendor::Openai, account)]), ..ProvidersConfig::default() };
    let failure = with(&server.url, None, None, config).embed(&["x"]).await.expect_err("refused");
    let requests = server.requests();
    assert_eq!(requests.len(), 1);
    assert!(!requests[0].head.contains("authorization") && !requests[0].head.contains(KEY), "{}", requests[0].head);
    for part in ["no key was sent; set api_key_env or api_key_file beside base_url", "Unauthorized"] {
        assert!(failure.message.contains(part), "{failure}");
    }
}

#[tokio::test]
async fn what_is_no_vector_is_refused() {
    let text = |body: &str| Say::Answer(200, "content-type: application/json\r\n", body.to_owned());
    for (say, part) in [
        (text("{}"), "no list \"data\""),
        (answer(&[]), "missing"),
        (answer(&[(7, &[1.0])]), "a vector 7"),
        (text(r#"{"data":[{"embedding":"AACAPw=="}]}"#), "no list of numbers"),
        (text(r#"{"data":[{"embedding":[1,"2"]}]}"#), "is no number"),
        (text(r#"{"data":[{"embedding":[]}]}"#), "missing"),
        (text("not JSON"), "not JSON"),
    ] {
        let server = FakeServer::start(vec![say]).await;
        let failure = of(&server.url, None).embed(&["x"]).await.expect_err("refused");
        assert!(failure.message.contains(part), "{failure} should mention {part}");
    }
}

#[tokio::test]
async fn a_server_that_changes_its_model_is_noticed() {
    let server = FakeServer::start(vec![answer(&[(0, &[1.0, 0.0])]), answer(&[(0, &[1.0, 0.0, 0.0])])]).await;
    let embedder = of(&server.url, None);
    embedder.embed(&["x"]).await.expect("vectors");
    let failure = embedder.embed(&["x"]).await.expect_err("another size");
    assert!(failure.message.contains("had 2 before"), "{failure}");
}

#[tokio::test]
async fn long_texts_are_cut_and_many_texts_are_several_requests() {
    let all: Vec<(usize, &[f32])> = (0..128).map(|index| (index, &[1.0f32][..])).collect();
    let server = FakeServer::start(vec![answer(&all), answer(&all[..2])]).await;
    let texts = vec!["ü"; 130];
    assert_eq!(of(&server.url, None).embed(&texts).await.expect("vectors").len(), 130);
    assert_eq!(server.requests().len(), 2);
    let server = FakeServer::start(vec![answer(&all[..25]), answer(&all[..5])]).await;
    let long = "ü".repeat(100_000);
    assert_eq!(of(&server.url, None).embed(&[long.as_str(); 30]).await.expect("vectors").len(), 30);
    let body: Value = serde_json::from_str(&server.requests()[0].body).expect("JSON");
    assert_eq!(body["input"].as_array().map(Vec::len), Some(25), "200,000 characters");
    assert_eq!(body["input"][0].as_str().map(|text| text.chars().count()), Some(8_000));
}
