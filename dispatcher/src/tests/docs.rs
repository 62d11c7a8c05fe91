//! `/openapi.json` and the pages of problems.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::LazyLock;

use axum::http::StatusCode;
use schemas::problem::Code;
use serde_json::Value;

use super::world::World;
use crate::answer::PROBLEM_JSON;
use crate::{openapi, routes};

/// The routes that clients depend on (DESIGN 8), as far as this build has them.
const FROZEN: &[&str] = &[
    "get /api/dead",
    "get /api/dead/{id}",
    "post /api/dead/{id}/redrive",
    "post /api/dead/{id}/drop",
    "post /api/dead/redrive",
    "post /api/dead/drop",
    "post /api/actions",
    "get /api/actions/{id}",
    "post /api/sessions/{id}/input",
    "post /api/sessions/{id}/interrupt",
    "post /api/sessions/{id}/pause",
    "post /api/sessions/{id}/resume",
    "post /api/sessions/{id}/destroy",
    "post /api/agents/{agent_id}/input",
    "post /api/agents/{agent_id}/interrupt",
    "post /api/agents/{agent_id}/pause",
    "post /api/agents/{agent_id}/resume",
    "post /api/agents/{agent_id}/destroy",
    "post /api/sessions/bulk",
    "get /api/sessions",
    "get /api/sessions/{id}",
    "get /api/sessions/{id}/events",
    "get /api/sessions/{id}/why",
    "get /api/agents",
    "get /api/libraries",
    "post /api/libraries",
    "get /api/libraries/{id}",
    "get /api/libraries/{id}/versions",
    "get /api/libraries/{id}/versions/{v}",
    "get /api/projects",
    "post /api/projects",
    "get /api/projects/{id}",
    "get /api/projects/{id}/versions",
    "get /api/projects/{id}/versions/{v}",
    "get /api/model-profiles",
    "post /api/model-profiles",
    "get /api/model-profiles/{id}",
    "get /api/model-profiles/{id}/versions",
    "get /api/model-profiles/{id}/versions/{v}",
    "get /api/personas",
    "post /api/personas",
    "get /api/personas/{id}",
    "get /api/personas/{id}/versions",
    "get /api/personas/{id}/versions/{v}",
    "get /api/tools",
    "post /api/tools",
    "get /api/tools/{id}",
    "get /api/tools/{id}/versions",
    "get /api/tools/{id}/versions/{v}",
    "post /api/agents",
    "get /api/agents/{agent_id}",
    "get /api/agents/{agent_id}/versions",
    "get /api/agents/{agent_id}/versions/{v}",
    "get /api/tasks",
    "post /api/tasks",
    "get /api/tasks/{id}",
    "get /api/tasks/{id}/versions",
    "get /api/tasks/{id}/versions/{v}",
    "get /api/action-defs",
    "post /api/action-defs",
    "get /api/action-defs/{id}",
    "get /api/action-defs/{id}/versions",
    "get /api/action-defs/{id}/versions/{v}",
    "get /api/prompt-specs",
    "post /api/prompt-specs",
    "get /api/prompt-specs/{id}",
    "get /api/prompt-specs/{id}/versions",
    "get /api/prompt-specs/{id}/versions/{v}",
    "post /api/definitions",
    "get /api/agents/{agent_id}/sessions",
    "get /api/agents/{agent_id}/memories",
    "get /api/agents/{agent_id}/memories/{memory_id}",
    "post /api/conversations",
    "get /api/conversations",
    "get /api/conversations/{id}",
    "patch /api/conversations/{id}",
    "post /api/conversations/{id}/participants",
    "get /api/conversations/{id}/participants",
    "delete /api/conversations/{id}/participants/{pid}",
    "post /api/conversations/{id}/messages",
    "get /api/conversations/{id}/messages",
    "get /api/conversations/{id}/turns",
    "get /api/conversations/{id}/events",
    "get /conversations/{id}",
    "get /api/turns/{id}",
    "get /api/turns/{id}/moves",
    "get /api/turns/{id}/context",
    "post /api/turns/{id}/cancel",
    "get /api/operations",
    "get /api/operations/{id}",
    "post /api/operations/{id}/approve",
    "post /api/operations/{id}/deny",
    "get /api/agent-steps",
    "post /api/tool-results",
    "post /api/pools/{id}/claim",
    "post /api/pools/{id}/release",
    "get /api/spending",
    "get /api/shards",
    "get /api/workers",
    "post /api/workers/{id}/drain",
    "get /sessions/{id}",
    "get /health",
    "get /metrics",
    "get /openapi.json",
    "get /problems/{code}",
];

async fn description() -> Value {
    World::new().await.get_as("", "/openapi.json").await.json()
}

fn operations(description: &Value) -> Vec<(String, Value)> {
    let mut operations = Vec::new();
    for (path, item) in description["paths"].as_object().unwrap() {
        for (method, operation) in item.as_object().unwrap() {
            operations.push((format!("{method} {path}"), operation.clone()));
        }
    }
    operations
}

/// The codes that the description has for each operation.
static REFUSALS: LazyLock<BTreeMap<String, BTreeSet<String>>> = LazyLock::new(|| {
    let description = serde_json::to_value(openapi::describe()).unwrap();
    operations(&description).into_iter().map(|(name, operation)| (name, refusals(&operation))).collect()
});

fn refusals(operation: &Value) -> BTreeSet<String> {
    let responses = operation["responses"].as_object().unwrap().values();
    let problems = responses.filter(|response| response["content"].get(PROBLEM_JSON).is_some());
    problems.flat_map(|problem| problem["description"].as_str().unwrap().split(", ")).map(str::to_owned).collect()
}

/// Fails unless clients are told that an operation, as in `post /api/actions`, may answer with this code.
pub fn assert_documented(operation: &str, code: &str) {
    let codes = REFUSALS.get(operation).unwrap_or_else(|| panic!("{operation} is not described"));
    assert!(codes.contains(code), "{operation} may answer {code}, and does not say so: {codes:?}");
}

#[tokio::test(start_paused = true)]
async fn it_lists_exactly_the_routes_there_are() {
    let described: BTreeSet<String> = operations(&description().await).into_iter().map(|(name, _)| name).collect();
    let served: BTreeSet<String> =
        routes::table().iter().map(|route| format!("{} {}", route.verb.as_str(), route.path)).collect();
    let frozen: BTreeSet<String> = FROZEN.iter().map(|name| (*name).to_owned()).collect();
    assert_eq!(described, served);
    assert_eq!(described, frozen);
}

#[tokio::test(start_paused = true)]
async fn every_operation_is_described_whole() {
    let mut ids = BTreeSet::new();
    for (name, operation) in operations(&description().await) {
        assert!(operation["summary"].as_str().is_some_and(|text| text.ends_with('.')), "{name} has no sentence");
        assert!(ids.insert(operation["operationId"].as_str().unwrap().to_owned()), "{name}: the id is taken");
        let placeholders = name.matches('{').count();
        let parameters = operation["parameters"].as_array().cloned().unwrap_or_default();
        let in_path = parameters.iter().filter(|parameter| parameter["in"] == "path").count();
        assert_eq!(in_path, placeholders, "{name}");
        assert!(parameters.iter().all(|p| p["in"] == "path" || p["description"].is_string()), "{name}");
        let responses = operation["responses"].as_object().unwrap();
        assert!(responses.keys().any(|status| status.starts_with(['1', '2'])), "{name}");
        let needs_token = operation.get("security").is_some();
        assert_eq!(responses.contains_key("401"), needs_token, "{name}");
        let open = ["/health", "/openapi.json", "/problems/"].iter().any(|path| name.contains(path));
        assert_eq!(needs_token, !open, "{name}");
        let takes_body = (name.starts_with("post") || name.starts_with("patch"))
            && !["/drain", "}/redrive", "}/drop", "/cancel", "/claim"].iter().any(|verb| name.ends_with(verb));
        assert_eq!(operation.get("requestBody").is_some(), takes_body, "{name}");
    }
}

/// What is refused in rare states only, and so is easily forgotten.
#[test]
fn rare_refusals_are_described() {
    for (operation, code) in [
        ("post /api/actions", "too_many_requests"),
        ("post /api/actions", "no_open_operation"),
        ("post /api/actions", "conversation_closed"),
        ("post /api/sessions/{id}/input", "too_many_requests"),
        ("post /api/agents/{agent_id}/input", "too_many_requests"),
        ("post /api/conversations/{id}/messages", "too_many_requests"),
        ("post /api/sessions/{id}/interrupt", "too_many_requests"),
        ("post /api/agents/{agent_id}/interrupt", "too_many_requests"),
        ("post /api/conversations/{id}/participants", "too_many_requests"),
        ("post /api/operations/{id}/approve", "session_ended"),
        ("post /api/operations/{id}/deny", "session_ended"),
        ("post /api/personas", "invalid_request"),
        ("get /api/dead", "invalid_request"),
    ] {
        assert_documented(operation, code);
    }
}

#[tokio::test(start_paused = true)]
async fn every_reference_leads_somewhere() {
    let description = description().await;
    let schemas = description["components"]["schemas"].as_object().unwrap();
    let mut references = BTreeSet::new();
    collect(&description, &mut references);
    assert!(references.len() > 20, "{references:?}");
    for reference in references {
        let name = reference.strip_prefix("#/components/schemas/").unwrap();
        assert!(schemas.contains_key(name), "{name} is not described");
    }
}

fn collect(value: &Value, references: &mut BTreeSet<String>) {
    match value {
        Value::Object(map) => {
            if let Some(reference) = map.get("$ref").and_then(Value::as_str) {
                references.insert(reference.to_owned());
            }
            map.values().for_each(|inner| collect(inner, references));
        }
        Value::Array(items) => items.iter().for_each(|inner| collect(inner, references)),
        _ => {}
    }
}

#[tokio::test(start_paused = true)]
async fn every_code_has_its_page() {
    let world = World::new().await;
    for code in Code::ALL {
        let reply = world.get_as("", &format!("/problems/{}", code.as_str())).await;
        assert_eq!(reply.status, StatusCode::OK, "{}", code.as_str());
        assert_eq!(reply.header("content-type"), "text/markdown; charset=utf-8");
        assert!(reply.text.starts_with(&format!("# {}\n\n{} (HTTP {}).", code.as_str(), code.title(), code.status())));
        assert!(reply.text.contains("**Cause.**") && reply.text.contains("**Remedy.**"), "{}", code.as_str());
    }
    for path in ["/problems/none", "/problems/%FF"] {
        assert_eq!(world.get_as("", path).await.problem(), "not_found");
    }
}
