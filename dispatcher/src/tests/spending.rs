//! What a namespace has used of models, and what it may use.

use schemas::conversation::{LogKind, Talk};
use schemas::definition::{Budgets, NamespaceBudget};
use schemas::id::Namespace;
use serde_json::json;

use super::turns::{record, turn};
use super::world::{OTHER, READ, World};
use crate::{Config, Deps};

#[tokio::test(start_paused = true)]
async fn sums_and_bounds_are_those_of_the_caller() {
    let each = Budgets { max_depth: Some(3), ..Budgets::default() };
    let budget = NamespaceBudget { max_tokens: Some(1_000), max_cost: Some(2.5), max_moves: None, each };
    let world = World::with(|deps| {
        let budgets = [(Namespace::default_ns(), budget)].into_iter().collect();
        Deps { config: Config { budgets, ..deps.config.clone() }, ..deps }
    })
    .await;
    let read = async |token: &str| world.get_as(token, "/api/spending").await.json();
    let none = read(READ).await;
    assert_eq!((&none["tokens"], &none["cost"], &none["moves"]), (&json!(0), &json!(0.0), &json!(0)));
    let session = world.converse("c1", &["a1"]).await.remove(0);
    let call = |id: &str| {
        let body = json!({"id": id, "conversation_id": "c1", "turn_id": "t1", "provider": "p", "model": "m",
            "operation": "chat", "started_at_ms": 0, "cost": 0.25,
            "usage": {"input_tokens": 10, "output_tokens": 5, "total_tokens": 15}});
        record(LogKind::ProviderCall, &format!("{id}.call"), "t1", &session, &body)
    };
    let log = vec![call("r1"), call("r2")];
    world.speak(&session, Talk { turns: vec![turn("t1", &session, "m1")], log, operations: Vec::new() }).await;
    assert_eq!(
        read(READ).await,
        json!({"namespace": "default", "tokens": 30, "cost": 0.5, "moves": 2,
            "budget": {"max_tokens": 1_000, "max_cost": 2.5, "each": {"max_depth": 3}}})
    );
    // Another namespace has used nothing, and nobody bounds it.
    assert_eq!(read(OTHER).await, json!({"namespace": "other", "tokens": 0, "cost": 0.0, "moves": 0, "budget": null}));
}
