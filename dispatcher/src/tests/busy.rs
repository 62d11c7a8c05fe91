//! What becomes of a message at an agent that is at work: the message says it, else its session, else its persona.

use std::sync::Arc;

use axum::http::StatusCode;
use schemas::conversation::Talk;
use schemas::session::SessionStatus;
use serde_json::{Value, json};
use testkit::unreliable::{Faults, Unreliable};

use super::turns::turn;
use super::world::World;
use crate::Deps;

const PATH: &str = "/api/conversations/c1/messages";

/// A world that counts how often it reads definitions.
async fn counting() -> (World, Faults) {
    let faults = Faults::none("gateway");
    let counted = faults.clone();
    let change = |deps: Deps| Deps { definitions: Arc::new(Unreliable::new(deps.definitions.clone(), faults)), ..deps };
    (World::with(change).await, counted)
}

/// Defines `a1`, and what it refers to.
async fn define(world: &World, agent: Value) {
    let model = json!({"id": "fast", "name": "Fast", "provider": "scripted", "model_id": "m"});
    let list = json!([
        {"kind": "library", "definition": {"id": "core", "name": "Core"}},
        {"kind": "project", "definition": {"id": "p1", "name": "Site"}},
        {"kind": "model_profile", "definition": model},
        {"kind": "persona", "definition": persona("steer")},
        {"kind": "agent", "definition": agent},
    ]);
    let reply = world.post("/api/definitions", list).await;
    assert_eq!(reply.status, StatusCode::OK, "{}", reply.text);
}

fn persona(busy: &str) -> Value {
    json!({"id": "writer", "name": "Writer", "library_id": "core", "system_prompt": "You write.",
           "model_profile_id": "fast", "busy": busy})
}

fn agent(persona: Value) -> Value {
    json!({"id": "a1", "name": "Ana", "project_ids": ["p1"], "persona_ref": persona})
}

/// `a1` in `c1`, with these settings; its session.
async fn seated(world: &World, config: Value) -> String {
    let body =
        json!({"conversation_id": "c1", "agents": [{"agent_id": "a1", "moniker": "converse", "config": config}]});
    let reply = world.post("/api/conversations", body).await;
    assert_eq!(reply.status, StatusCode::CREATED, "{}", reply.text);
    let session = reply.json()["started"][0]["session_id"].as_str().expect("a session").to_owned();
    world.commit(&session, 0, SessionStatus::Running).await;
    session
}

async fn set_to_work(world: &World, session: &str) {
    world.speak(session, Talk { turns: vec![turn("t1", session, "m0")], ..Talk::default() }).await;
}

async fn outcome(world: &World, body: Value) -> Value {
    let reply = world.post(PATH, body).await;
    assert_eq!(reply.status, StatusCode::ACCEPTED, "{}", reply.text);
    reply.json()["responders"][0]["outcome"].clone()
}

#[tokio::test(start_paused = true)]
async fn the_persona_says_it_where_nobody_else_does() {
    let (world, reads) = counting().await;
    define(&world, agent(json!({"persona_id": "writer"}))).await;
    let session = seated(&world, json!({})).await;
    let before = reads.calls();
    assert_eq!(outcome(&world, json!({"text": "one"})).await, "turn");
    assert_eq!(reads.calls(), before, "an agent without work is not looked up");
    set_to_work(&world, &session).await;
    assert_eq!(outcome(&world, json!({"text": "two"})).await, "steered");
    assert_eq!(reads.calls(), before + 2, "the agent and its persona");
    assert_eq!(outcome(&world, json!({"text": "three", "busy": "enqueue"})).await, "turn");
    assert_eq!(reads.calls(), before + 2, "the message says it");
    let reply = world.post("/api/personas", persona("reject")).await;
    assert_eq!(reply.status, StatusCode::CREATED, "{}", reply.text);
    assert_eq!(world.post(PATH, json!({"text": "four"})).await.problem(), "agent_busy", "the newest counts");
}

#[tokio::test(start_paused = true)]
async fn the_session_says_it_before_the_persona() {
    let (world, reads) = counting().await;
    define(&world, agent(json!({"persona_id": "writer"}))).await;
    let session = seated(&world, json!({"busy": "interrupt"})).await;
    set_to_work(&world, &session).await;
    let before = reads.calls();
    assert_eq!(outcome(&world, json!({"text": "one"})).await, "interrupted");
    assert_eq!(reads.calls(), before);
}

#[tokio::test(start_paused = true)]
async fn a_pinned_persona_counts_and_so_does_one_of_the_agent_alone() {
    let (world, _) = counting().await;
    define(&world, agent(json!({"persona_id": "writer", "version": 1}))).await;
    assert_eq!(world.post("/api/personas", persona("reject")).await.status, StatusCode::CREATED);
    let session = seated(&world, json!({})).await;
    set_to_work(&world, &session).await;
    assert_eq!(outcome(&world, json!({"text": "one"})).await, "steered", "as version 1 has it");
    let inline = json!({"system_prompt": "You write.", "model_profile_id": "fast", "busy": "interrupt"});
    let own = json!({"id": "a1", "name": "Ana", "project_ids": ["p1"], "persona_inline": inline});
    assert_eq!(world.post("/api/agents", own).await.status, StatusCode::OK);
    assert_eq!(outcome(&world, json!({"text": "two"})).await, "interrupted");
}

#[tokio::test(start_paused = true)]
async fn without_a_definition_a_message_is_a_turn_of_its_own() {
    let (world, _) = counting().await;
    let session = seated(&world, json!({"system_prompt": "Be brief."})).await;
    set_to_work(&world, &session).await;
    assert_eq!(outcome(&world, json!({"text": "one"})).await, "turn");
}
