//! What callers may send, and that every problem is told.

use serde_json::json;

use super::super::input::{MemoryList, MemoryRef, MemorySearch, MemoryUpdate, MemoryWrite};
use super::*;

fn fields<T: std::fmt::Debug>(result: Result<T, Vec<schemas::problem::FieldProblem>>) -> Vec<String> {
    result.expect_err("problems").into_iter().map(|problem| problem.field).collect()
}

#[test]
fn a_write_needs_a_text_and_has_defaults() {
    let write = MemoryWrite::check(&json!({"content": "Anna likes tea."})).expect("valid");
    assert_eq!((write.tier, write.kind.as_str(), write.significance), (MemoryTier::Archival, "note", 0.5));
    let new = write.into_new(id("made"));
    assert_eq!((new.id.as_str(), new.content.as_str(), new.expect_version), ("made", "Anna likes tea.", None));
    let whole = json!({"id": "m1", "label": "tea", "tier": "core", "type": "fact", "content": "x",
        "significance": 1, "metadata": {"a": [1]}});
    let write = MemoryWrite::check(&whole).expect("valid");
    assert_eq!(write.into_new(id("made")).id.as_str(), "m1");
}

#[test]
fn every_problem_of_a_write_is_told() {
    let bad = json!({"id": "a b", "label": " ", "tier": "cores", "type": 1, "content": "\0", "significance": 1.5,
        "metadata": [], "agent_id": "another"});
    let mut told = fields(MemoryWrite::check(&bad));
    told.sort();
    assert_eq!(told, ["agent_id", "content", "id", "label", "metadata", "significance", "tier", "type"]);
    let large = json!({"content": "x".repeat(MEMORY_CONTENT_BYTES_MAX + 1), "metadata": {"a": "x".repeat(10_000)}});
    assert_eq!(fields(MemoryWrite::check(&large)).len(), 2);
    assert_eq!(fields(MemoryWrite::check(&json!("text"))), [""]);
    assert_eq!(fields(MemoryWrite::check(&json!({}))), ["content"]);
    assert_eq!(fields(MemoryWrite::check(&json!({"content": "x", "metadata": {"a": {"b\0": 1}}}))), ["metadata"]);
}

#[test]
fn an_update_changes_what_it_names() {
    let before = Memory { version: 7, label: Some("tea".into()), ..memory("m1", MemoryTier::Core, "green") };
    let update = MemoryUpdate::check(&json!({"label": "tea", "significance": 0.9})).expect("valid");
    assert_eq!(update.key, MemoryKey::Label("tea".into()));
    let new = update.over(before, None);
    assert_eq!((new.content.as_str(), new.significance, new.expect_version), ("green", 0.9, Some(7)));
    assert_eq!((new.tier, new.label.as_deref()), (MemoryTier::Core, Some("tea")));
    assert_eq!(fields(MemoryUpdate::check(&json!({"id": "m1"}))), ["content"]);
    assert_eq!(fields(MemoryUpdate::check(&json!({"content": "x"}))), ["id"]);
    assert_eq!(fields(MemoryUpdate::check(&json!({"id": "m1", "label": "l", "tier": "core"}))), ["label"]);
}

#[test]
fn a_memory_is_meant_by_id_or_by_label() {
    assert_eq!(MemoryRef::check(&json!({"id": "m1"})), Ok(MemoryKey::Id(id("m1"))));
    assert_eq!(MemoryRef::check(&json!({"label": "tea time"})), Ok(MemoryKey::Label("tea time".into())));
    assert_eq!(fields(MemoryRef::check(&json!({}))), ["id"]);
    assert_eq!(fields(MemoryRef::check(&json!({"id": "m1", "label": "l"}))), ["label"]);
    assert_eq!(fields(MemoryRef::check(&json!({"namespace": "other", "id": "m1"}))), ["namespace"]);
}

#[test]
fn searches_and_lists_are_bounded() {
    let search = MemorySearch::check(&json!({"query": "tea", "tiers": ["core"], "types": ["fact"],
        "since": "2026-01-01T00:00:00Z", "weights": {"significance": 0}, "limit": 100}))
    .expect("valid");
    assert_eq!(search.weights, Weights { significance: 0.0, ..Weights::default() });
    assert_eq!((search.limit, search.filter.since_ms), (100, Some(1_767_225_600_000)));
    let mut told = fields(MemorySearch::check(&json!({"query": " ", "limit": 101, "tiers": ["x", 1],
        "types": "fact", "since": "soon", "min_relevance": -1, "weights": {"vector": 0, "text": 0, "words": 1}})));
    told.sort();
    assert_eq!(
        told,
        ["limit", "min_relevance", "query", "since", "tiers[0]", "tiers[1]", "types", "weights", "weights.words"]
    );
    let place = (1_767_225_600_000, id("m1"));
    let list = MemoryList::check(&json!({"cursor": MemoryList::cursor(&place)})).expect("valid");
    assert_eq!((list.after, list.limit), (Some(place), 50));
    assert_eq!(fields(MemoryList::check(&json!({"cursor": "x", "limit": 0}))), ["limit", "cursor"]);
}
