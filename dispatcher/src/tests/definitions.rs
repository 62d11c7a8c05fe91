//! Definitions: written, read, versioned, applied as lists; agents beside their sessions.

use axum::http::StatusCode;
use serde_json::{Value, json};

use super::world::{ACT, OPERATE, OTHER, World};

fn library() -> Value {
    json!({"id": "core", "name": "Core"})
}

fn profile() -> Value {
    json!({"id": "fast", "name": "Fast", "provider": "scripted", "model_id": "m"})
}

fn persona(prompt: &str) -> Value {
    json!({"id": "writer", "name": "Writer", "library_id": "core", "system_prompt": prompt, "model_profile_id": "fast"})
}

fn agent(id: &str) -> Value {
    json!({"id": id, "name": id, "project_ids": ["p1"], "persona_ref": {"persona_id": "writer"}})
}

fn item(kind: &str, definition: Value) -> Value {
    json!({"kind": kind, "definition": definition})
}

fn tool(id: &str, name: &str) -> Value {
    let tool = json!({"id": id, "name": name, "description": "x", "library_id": "core",
                      "input_schema": {"type": "object"}, "target_type": "agent", "target_id": "ana"});
    item("tool", tool)
}

/// The persona with these tools.
fn listing(tools: Value) -> Value {
    let mut persona = persona("You write.");
    persona["tool_ids"] = tools;
    persona
}

/// All that an agent needs, in an order that no single writes could have.
fn set() -> Vec<Value> {
    vec![
        item("agent", agent("ana")),
        item("persona", persona("You write.")),
        item("project", json!({"id": "p1", "name": "Site"})),
        item("model_profile", profile()),
        item("library", library()),
    ]
}

async fn apply(world: &World, list: &[Value]) -> Value {
    let reply = world.post("/api/definitions", json!(list)).await;
    assert_eq!(reply.status, StatusCode::OK, "{}", reply.text);
    reply.json()
}

fn changes(answer: &Value) -> Vec<(&str, u64)> {
    let items = answer["items"].as_array().expect("items").iter();
    items.map(|one| (one["change"].as_str().expect("a change"), one["version"].as_u64().expect("a version"))).collect()
}

#[tokio::test(start_paused = true)]
async fn versions_come_one_after_the_other() {
    let world = World::new().await;
    apply(&world, &set()).await;
    let reply = world.post_as(OPERATE, "/api/personas", persona("You write.")).await;
    assert_eq!((reply.status, &reply.json()["change"]), (StatusCode::OK, &json!("unchanged")));
    let reply = world.post_as(OPERATE, "/api/personas", persona("You write well.")).await;
    let written = reply.json();
    assert_eq!(
        (reply.status, &written["change"], &written["version"]),
        (StatusCode::CREATED, &json!("updated"), &json!(2))
    );
    assert_eq!((&written["kind"], &written["id"]), (&json!("persona"), &json!("writer")));
    let newest = world.get("/api/personas/writer").await.json();
    assert_eq!((&newest["version"], &newest["content_hash"]), (&json!(2), &written["content_hash"]));
    assert_eq!(newest["definition"]["recent_turns_limit"], 20, "defaults are filled in");
    assert_eq!(newest["created_at"], "2030-01-01T00:00:00.000Z");
    let first = world.get("/api/personas/writer/versions/1").await.json();
    assert_eq!(first["definition"]["system_prompt"], "You write.");
    let versions = world.get("/api/personas/writer/versions?limit=1").await.json();
    assert_eq!((&versions["items"][0]["version"], &versions["next_cursor"]), (&json!(2), &json!("2")));
    let versions = world.get("/api/personas/writer/versions?cursor=2").await.json();
    assert_eq!(
        (&versions["items"][0]["content_hash"], &versions["next_cursor"]),
        (&first["content_hash"], &json!(null))
    );
    // What was read can be written, and changes nothing.
    let reply = world.post("/api/personas", newest["definition"].clone()).await;
    assert_eq!((reply.status, &reply.json()["content_hash"]), (StatusCode::OK, &newest["content_hash"]));
}

#[tokio::test(start_paused = true)]
async fn a_default_that_somebody_wrote_down_is_told_from_one_that_is_filled_in() {
    let world = World::new().await;
    let action =
        json!({"id": "lookup", "name": "Look up", "library_id": "core", "kind": "mock", "operation": "return"});
    let task = json!({"id": "find", "name": "Find", "library_id": "core",
                      "steps": [{"ref": "a", "action_def_id": "lookup"}]});
    let mut tool = json!({"id": "search", "name": "search", "description": "Search.", "library_id": "core",
                          "input_schema": {"type": "object"}, "target_type": "task", "target_id": "find"});
    let list = [("library", library()), ("action_def", action), ("task", task), ("tool", tool.clone())];
    apply(&world, &list.map(|(kind, definition)| item(kind, definition))).await;
    let written = async |definition: &Value| {
        let reply = world.post("/api/tools", definition.clone()).await;
        (reply.json()["change"].clone(), reply.json()["version"].clone())
    };
    let stored = async || world.get("/api/tools/search").await.json()["definition"].clone();
    let plain = stored().await;
    assert_eq!((plain.get("effect_class"), &plain["retry"]["timeout_ms"]), (None, &json!(60_000)));
    assert_eq!(written(&plain).await, (json!("unchanged"), json!(1)), "what was read can be written");
    tool["effect_class"] = json!("at_most_once");
    let planned = world.post("/api/definitions?dry_run=true", json!([item("tool", tool.clone())])).await.json();
    assert_eq!(planned["items"][0]["fields"], json!([{"field": "effect_class", "to": "at_most_once"}]));
    assert_eq!(written(&tool).await, (json!("updated"), json!(2)));
    let said = stored().await;
    assert_eq!((&said["effect_class"], said.get("chosen")), (&json!("at_most_once"), None));
    assert_eq!(written(&said).await, (json!("unchanged"), json!(2)));
    assert_eq!(written(&plain).await, (json!("updated"), json!(3)), "nobody says so any more");
}

#[tokio::test(start_paused = true)]
async fn other_kinds_are_updated_in_place() {
    let world = World::new().await;
    let reply = world.post("/api/model-profiles", profile()).await;
    assert_eq!((reply.status, &reply.json()["change"]), (StatusCode::CREATED, &json!("created")));
    tokio::time::advance(std::time::Duration::from_secs(1)).await;
    let mut other = profile();
    other["model_id"] = json!("n");
    let reply = world.post("/api/model-profiles", other).await;
    assert_eq!((reply.status, &reply.json()["change"]), (StatusCode::OK, &json!("updated")));
    let newest = world.get("/api/model-profiles/fast").await.json();
    assert_eq!((&newest["version"], &newest["definition"]["model_id"]), (&json!(2), &json!("n")));
    assert_eq!(newest["updated_at"], "2030-01-01T00:00:01.000Z");
    let reply = world.get("/api/model-profiles/fast/versions/1").await;
    assert_eq!((reply.status, reply.problem().as_str()), (StatusCode::NOT_FOUND, "definition_not_found"));
    assert!(reply.text.contains("updated in place"), "{}", reply.text);
    assert_eq!(world.get("/api/model-profiles/fast/versions").await.json()["items"].as_array().map(Vec::len), Some(1));
}

#[tokio::test(start_paused = true)]
async fn an_id_is_made_for_who_gives_none() {
    let world = World::new().await;
    let reply = world.post("/api/libraries", json!({"name": "Mine"})).await;
    assert_eq!(reply.status, StatusCode::CREATED, "{}", reply.text);
    let id = reply.json()["id"].as_str().expect("an id").to_owned();
    assert_eq!(id.len(), 26);
    assert_eq!(world.get(&format!("/api/libraries/{id}")).await.json()["definition"]["name"], "Mine");
    let reply = world.post("/api/definitions", json!([item("library", json!({"name": "Mine"}))])).await;
    assert_eq!(reply.refusal(), ("definition_invalid".into(), vec!["[0].definition.id".to_owned()]), "lists need one");
}

#[tokio::test(start_paused = true)]
async fn everything_wrong_with_one_is_told_at_once() {
    let world = World::new().await;
    let tool = json!({"id": "a b", "name": "execute_code", "api_key": "x", "input_schema": {"type": "strin"},
                      "target_type": "task", "target_id": "none"});
    let reply = world.post("/api/tools", tool).await;
    assert_eq!(reply.status, StatusCode::UNPROCESSABLE_ENTITY);
    let (code, mut fields) = reply.refusal();
    fields.sort();
    let expected = ["api_key", "description", "id", "input_schema.type", "library_id", "name", "target_id"];
    assert_eq!((code.as_str(), fields), ("definition_invalid", expected.map(str::to_owned).to_vec()));
    for (path, body, code) in [
        ("/api/tools", json!([]), "definition_invalid"),
        ("/api/tools", json!("x"), "definition_invalid"),
        ("/api/definitions", json!({}), "invalid_request"),
        ("/api/definitions", json!([]), "invalid_request"),
        ("/api/definitions?dry_run=maybe", json!([item("library", library())]), "invalid_request"),
        ("/api/definitions?dryrun=true", json!([item("library", library())]), "invalid_request"),
    ] {
        assert_eq!(world.post(path, body).await.problem(), code, "{path}");
    }
    let reply = world.post("/api/personas", persona("x")).await;
    assert_eq!(reply.refusal().1, ["library_id", "model_profile_id"], "what it refers to is not there");
}

#[tokio::test(start_paused = true)]
async fn what_is_not_there_is_told_with_what_is_wrong() {
    let world = World::new().await;
    apply(&world, &set()).await;
    let mut odd = persona(" ");
    odd["model_profile_id"] = json!("none");
    odd["tool_ids"] = json!(["none", 7]);
    let mut bo = agent("bo");
    bo["persona_ref"]["library_id"] = json!("core");
    let list = json!([item("persona", odd), item("agent", bo.clone()), item("agent", bo)]);
    for path in ["/api/definitions", "/api/definitions?dry_run=true"] {
        let fields = world.post(path, list.clone()).await.refusal().1;
        let expected = [
            "[0].definition.system_prompt",
            "[0].definition.tool_ids[1]",
            "[2].definition.id",
            "[0].definition.model_profile_id",
            "[0].definition.tool_ids[0]",
        ];
        assert_eq!(fields, expected, "{path}");
    }
    let key = concat!("sk", "-ant-0123456789abcdefghij");
    let mut leaking = persona("You write.");
    leaking["model_profile_id"] = json!(key);
    let reply = world.post("/api/personas", leaking).await;
    assert_eq!(reply.refusal().1, ["model_profile_id"], "told once");
    assert!(!reply.text.contains(key), "{}", reply.text);
}

#[tokio::test(start_paused = true)]
async fn two_tools_of_one_name_are_refused_where_they_are_listed() {
    let world = World::new().await;
    apply(&world, &set()).await;
    apply(&world, &[tool("t1", "find"), tool("t2", "find"), tool("t3", "look")]).await;
    let reply = world.post("/api/personas", listing(json!(["t1", "t3", "t2"]))).await;
    assert_eq!(reply.refusal(), ("definition_invalid".into(), vec!["tool_ids[2]".to_owned()]));
    assert!(reply.text.contains("the tools t1 and t2 are both named"), "{}", reply.text);
    assert_eq!(world.post("/api/personas", listing(json!(["t1", "t3"]))).await.status, StatusCode::CREATED);
    // Names as they will be, with all that is wrong besides.
    let mut odd = agent("bo");
    odd["persona_ref"] = Value::Null;
    odd["persona_inline"] = json!({"system_prompt": " ", "model_profile_id": "fast", "tool_ids": ["t3", "t4"]});
    let both = item("persona", listing(json!(["t1", "t2"])));
    let list = json!([tool("t2", "seek"), tool("t4", "look"), both, item("agent", odd)]);
    for path in ["/api/definitions", "/api/definitions?dry_run=true"] {
        let fields = world.post(path, list.clone()).await.refusal().1;
        let expected = ["[3].definition.persona_inline.system_prompt", "[3].definition.persona_inline.tool_ids[1]"];
        assert_eq!(fields, expected, "{path}");
    }
    apply(&world, &[tool("t2", "seek"), item("persona", listing(json!(["t1", "t2"])))]).await;
}

#[tokio::test(start_paused = true)]
async fn a_tool_gets_no_name_that_hides_another_one_where_both_are_listed() {
    let world = World::new().await;
    apply(&world, &set()).await;
    let inline = json!({"system_prompt": "You help.", "model_profile_id": "fast", "tool_ids": ["t1", "t3"]});
    let bo = json!({"id": "bo", "name": "bo", "project_ids": ["p1"], "persona_inline": inline});
    let tools = [tool("t1", "find"), tool("t2", "look"), tool("t3", "seek"), tool("t4", "go")];
    apply(&world, &tools).await;
    apply(&world, &[item("persona", listing(json!(["t1", "t2"]))), item("agent", bo)]).await;
    let refused = async |list: Value, told: &str| {
        for path in ["/api/definitions", "/api/definitions?dry_run=true"] {
            let reply = world.post(path, list.clone()).await;
            assert_eq!(reply.refusal(), ("definition_invalid".into(), vec!["[0].definition.name".to_owned()]));
            assert!(reply.text.contains(told), "{told}: {}", reply.text);
        }
    };
    refused(json!([tool("t2", "find")]), "persona writer has the tools t1 and t2").await;
    refused(json!([tool("t3", "find")]), "agent bo has the tools t1 and t3").await;
    let reply = world.post("/api/tools", tool("t1", "look")["definition"].clone()).await;
    assert_eq!(reply.refusal(), ("definition_invalid".into(), vec!["name".to_owned()]));
    apply(&world, &[tool("t4", "find")]).await;
    apply(&world, &[tool("t1", "look"), tool("t2", "find")]).await;
    assert_eq!(world.get("/api/tools/t2").await.json()["definition"]["name"], "find", "they have changed places");
    // Who takes one of them out in the same list may do so, but for an older version that somebody names.
    let pinned = json!({"id": "cy", "name": "cy", "project_ids": ["p1"],
                        "persona_ref": {"persona_id": "writer", "version": 2}});
    apply(&world, &[item("agent", pinned)]).await;
    let list = json!([tool("t2", "look"), item("persona", listing(json!(["t2"])))]);
    refused(list.clone(), "version 2 of persona writer has the tools t1 and t2").await;
    apply(&world, &[item("agent", agent("cy"))]).await;
    assert_eq!(world.post("/api/definitions", list).await.status, StatusCode::OK);
}

#[tokio::test(start_paused = true)]
async fn lists_are_written_whole_or_not_at_all() {
    let world = World::new().await;
    let answer = apply(&world, &set()).await;
    assert_eq!(changes(&answer), [("created", 1); 5]);
    assert_eq!(changes(&apply(&world, &set()).await), [("unchanged", 1); 5], "again changes nothing");
    let list = json!([
        item("library", json!({"id": "core", "name": "Other"})),
        item("persona", persona(" ")),
        item(
            "agent",
            json!({"id": "bo", "name": "Bo", "project_ids": ["p2"], "persona_ref": {"persona_id": "writer", "version": 9}})
        ),
        item("library", json!({"id": "core", "name": "Twice"})),
    ]);
    let reply = world.post("/api/definitions", list).await;
    assert_eq!(reply.status, StatusCode::UNPROCESSABLE_ENTITY);
    let (_, fields) = reply.refusal();
    assert_eq!(
        fields,
        ["[1].definition.system_prompt", "[3].definition.id", "[2].definition.project_ids[0]",],
        "{}",
        reply.text
    );
    assert_eq!(world.get("/api/libraries/core").await.json()["definition"]["name"], "Core", "nothing was written");
    assert_eq!(world.get("/api/agents/bo").await.problem(), "definition_not_found");
    let shapes = json!([7, {"kind": "persone", "definition": {}}, {"definition": {}}, {"kind": "tool", "spec": {}}]);
    let (code, fields) = world.post("/api/definitions", shapes).await.refusal();
    assert_eq!(code, "invalid_request");
    assert_eq!(fields, ["[0]", "[1].kind", "[2].kind", "[3].spec", "[3].definition"]);
}

#[tokio::test(start_paused = true)]
async fn a_dry_run_tells_and_writes_nothing() {
    let world = World::new().await;
    let dry = async |list: &[Value]| {
        let reply = world.post("/api/definitions?dry_run=true", json!(list)).await;
        assert_eq!(reply.status, StatusCode::OK, "{}", reply.text);
        reply.json()
    };
    let answer = dry(&set()).await;
    assert_eq!((changes(&answer), &answer["dry_run"]), (vec![("created", 1); 5], &json!(true)));
    assert_eq!(world.get("/api/libraries").await.json()["items"], json!([]));
    apply(&world, &set()).await;
    let mut other = persona("You write well.");
    other["constraints"] = json!({"max_moves_per_turn": 3});
    let answer = dry(&[item("persona", other), item("library", library())]).await;
    assert_eq!(changes(&answer), [("updated", 2), ("unchanged", 1)]);
    assert_eq!(
        answer["items"][0]["fields"],
        json!([
            {"field": "constraints.max_moves_per_turn", "from": 20, "to": 3},
            {"field": "system_prompt", "from": "You write.", "to": "You write well."},
        ])
    );
    assert_eq!(world.get("/api/personas/writer").await.json()["version"], 1);
    let reply = world.post("/api/definitions?dry_run=true", json!([item("persona", persona(" "))])).await;
    assert_eq!(reply.status, StatusCode::UNPROCESSABLE_ENTITY);
}

#[tokio::test(start_paused = true)]
async fn lists_have_pages_and_conditions() {
    let world = World::new().await;
    apply(&world, &set()).await;
    let tools: Vec<Value> = (0..5)
        .map(|n| {
            let owner = if n < 3 { ("library_id", "core") } else { ("project_id", "p1") };
            let mut tool = json!({"id": format!("t{n}"), "name": format!("tool_{n}"), "description": "x",
                                  "input_schema": {"type": "object"}, "target_type": "agent", "target_id": "ana"});
            tool[owner.0] = json!(owner.1);
            item("tool", tool)
        })
        .collect();
    apply(&world, &tools).await;
    let ids = async |query: &str| {
        let page = world.get(&format!("/api/tools?{query}")).await.json();
        let items = page["items"].as_array().expect("items").iter();
        let ids: Vec<&str> = items.map(|one| one["id"].as_str().expect("an id")).collect();
        (ids.join(" "), page["next_cursor"].as_str().unwrap_or("").to_owned())
    };
    assert_eq!(ids("").await, ("t0 t1 t2 t3 t4".into(), String::new()));
    assert_eq!(ids("limit=2").await, ("t0 t1".into(), "t1".into()));
    assert_eq!(ids("limit=3&cursor=t1").await, ("t2 t3 t4".into(), String::new()));
    assert_eq!(ids("library_id=core").await.0, "t0 t1 t2");
    assert_eq!(ids("project_id=p1&name=tool_4").await.0, "t4");
    assert_eq!(ids("name=tool").await.0, "");
    let reply = world.get("/api/tools?library=core&limit=0&cursor=a%20b").await;
    let (_, mut fields) = reply.refusal();
    fields.sort();
    assert_eq!(fields, ["cursor", "library", "limit"]);
}

#[tokio::test(start_paused = true)]
async fn unknown_ones_and_odd_ids_are_told() {
    let world = World::new().await;
    apply(&world, &set()).await;
    for path in [
        "/api/personas/none",
        "/api/personas/none/versions",
        "/api/personas/none/versions/1",
        "/api/personas/writer/versions/2",
        "/api/tools/writer",
    ] {
        let reply = world.get(path).await;
        assert_eq!((reply.status, reply.problem().as_str()), (StatusCode::NOT_FOUND, "definition_not_found"), "{path}");
    }
    for (path, field) in [
        ("/api/personas/a%20b", "id"),
        ("/api/personas/a%20b/versions/1", "id"),
        ("/api/personas/writer/versions/0", "version"),
        ("/api/personas/writer/versions/x", "version"),
        ("/api/personas/writer/versions?cursor=x", "cursor"),
    ] {
        assert_eq!(world.get(path).await.refusal(), ("invalid_request".into(), vec![field.to_owned()]), "{path}");
    }
}

#[tokio::test(start_paused = true)]
async fn namespaces_and_scopes_hold() {
    let world = World::new().await;
    apply(&world, &set()).await;
    assert_eq!(world.post_as(ACT, "/api/libraries", library()).await.problem(), "forbidden");
    assert_eq!(world.get_as(OTHER, "/api/personas").await.json()["items"], json!([]));
    assert_eq!(world.get_as(OTHER, "/api/personas/writer").await.problem(), "definition_not_found");
    assert_eq!(world.get_as(OTHER, "/api/agents").await.json()["items"], json!([]));
    let reply = world.post_as(OTHER, "/api/personas", persona("x")).await;
    assert_eq!(reply.problem(), "definition_invalid", "what it refers to is of another namespace");
    assert_eq!(world.post_as(OTHER, "/api/libraries", library()).await.json()["change"], "created");
}

#[tokio::test(start_paused = true)]
async fn agents_are_listed_with_and_without_sessions() {
    let world = World::new().await;
    apply(&world, &set()).await;
    apply(&world, &[item("agent", agent("zoe")), item("agent", agent("bo"))]).await;
    for (session, name) in [("s1", "bo"), ("s2", "carl"), ("s3", "bo")] {
        world.create(session, name, "count").await;
    }
    let whole = world.get("/api/agents").await.json();
    let told: Vec<String> = whole["items"]
        .as_array()
        .expect("items")
        .iter()
        .map(|one| format!("{} {} {}", one["agent_id"], one["sessions"], one.get("definition").is_some()))
        .collect();
    assert_eq!(told, ["\"ana\" 0 true", "\"bo\" 2 true", "\"carl\" 1 false", "\"zoe\" 0 true"]);
    assert_eq!(whole["items"][0]["latest"], json!(null));
    assert_eq!(whole["items"][1]["definition"]["definition"]["name"], "bo");
    for limit in 1..=5 {
        let (mut joined, mut cursor) = (Vec::new(), String::new());
        loop {
            let page = world.get(&format!("/api/agents?limit={limit}&cursor={cursor}")).await.json();
            let items = page["items"].as_array().expect("items");
            assert!(!items.is_empty() && items.len() <= limit);
            joined.extend(items.iter().cloned());
            match page["next_cursor"].as_str() {
                Some(next) => cursor = next.to_owned(),
                None => break,
            }
        }
        assert_eq!(json!(joined), whole["items"], "limit {limit}");
    }
    assert_eq!(world.get("/api/agents/ana/sessions").await.json()["items"], json!([]));
    assert_eq!(world.get("/api/agents/nobody/sessions").await.problem(), "agent_not_found");
    assert_eq!(world.get("/api/agents/ana").await.json()["definition"]["project_ids"], json!(["p1"]));
}
