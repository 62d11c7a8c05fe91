//! Conversations and who takes part: create, list, show, change, join, leave.

use axum::body::Body;
use axum::http::{Method, StatusCode};
use domain::ports::{News, Sessions};
use schemas::conversation::{Talk, Turn, TurnPhase};
use schemas::session::SessionStatus;
use serde_json::{Value, json};

use super::world::{ADMIN, OTHER, READ, World, key, request};

fn ids(reply: &Value) -> Vec<&str> {
    reply["items"].as_array().unwrap().iter().map(|row| row["conversation_id"].as_str().unwrap()).collect()
}

#[tokio::test(start_paused = true)]
async fn a_conversation_has_its_agents_and_their_sessions() {
    let world = World::new().await;
    let body = json!({
        "title": "Cats", "tags": ["pets"], "subject_id": "s-9", "metadata": {"k": [1]},
        "branch_context": {"repo_id": "r1", "branch": "main"}, "users": [{"user_id": "ben"}],
        "agents": [{"agent_id": "a1", "moniker": "echo"}, {"agent_id": "a2", "moniker": "count", "config": {"until": 3},
                    "role": "observer"}],
        "messages": [{"role": "system", "text": "Be brief."}]});
    let reply = world.post("/api/conversations", body).await;
    assert_eq!(reply.status, StatusCode::CREATED, "{}", reply.text);
    let made = reply.json();
    let conversation = &made["conversation"];
    let id = conversation["conversation_id"].as_str().unwrap();
    assert!(id.parse::<ulid::Ulid>().is_ok(), "{id}");
    assert_eq!((&conversation["status"], &conversation["created_by"]), (&json!("active"), &json!(ADMIN)));
    assert_eq!((&conversation["primary_agent_id"], &conversation["title"]), (&json!("a1"), &json!("Cats")));
    assert_eq!(conversation["branch_context"]["branch"], "main");
    assert_eq!(made["participants"].as_array().unwrap().len(), 4);
    let started = made["started"].as_array().unwrap();
    assert_eq!((started.len(), &started[1]["agent_id"]), (2, &json!("a2")));
    for one in started {
        let row = world.store.session(&key(one["session_id"].as_str().unwrap())).await.unwrap().expect("a session");
        assert_eq!(row.spec.conversation_id.as_ref().unwrap().as_str(), id);
    }
    let detail = world.get(&format!("/api/conversations/{id}")).await.json();
    assert_eq!(detail["participants"].as_array().unwrap().len(), 4, "the sessions take the seats that are there");
    assert_eq!(detail["participants"].as_array().unwrap().iter().filter(|one| one["role"] == "owner").count(), 1);
    assert_eq!(detail["active_turns"], json!([]));
    let said = world.get(&format!("/api/conversations/{id}/messages")).await.json();
    assert_eq!((&said["items"][0]["role"], &said["items"][0]["text"]), (&json!("system"), &json!("Be brief.")));
    let all = world.get(&format!("/api/conversations/{id}/messages?include=all")).await.json();
    assert_eq!(all["items"][0]["text"], "conversation_started");
    assert!(matches!(world.live.told().last(), Some((told, News::Logged)) if told.conversation_id.as_str() == id));
}

#[tokio::test(start_paused = true)]
async fn a_repeat_creates_nothing_twice() {
    let world = World::new().await;
    let body = json!({"conversation_id": "c1", "agents": [{"agent_id": "a1", "moniker": "echo"}]});
    let first = world.post("/api/conversations", body.clone()).await;
    let again = world.post("/api/conversations", body).await;
    assert_eq!((first.status, again.status), (StatusCode::CREATED, StatusCode::OK));
    let (first, again) = (first.json(), again.json());
    assert_eq!((&first["created"], &again["created"]), (&json!(true), &json!(false)));
    assert_eq!(first["started"][0]["session_id"], again["started"][0]["session_id"]);
    assert_eq!(again["started"][0]["accepted"], false);
    assert_eq!(world.store.all_sessions().len(), 1);
    let other = json!({"conversation_id": "c1", "agents": [{"agent_id": "a2", "moniker": "echo"}]});
    let reply = world.post("/api/conversations", other).await;
    assert_eq!((reply.status, reply.problem().as_str()), (StatusCode::CONFLICT, "conversation_exists"));
    assert_eq!(world.store.all_sessions().len(), 1, "nobody comes in by the back door");
}

#[tokio::test(start_paused = true)]
async fn wrong_bodies_are_refused_field_by_field() {
    let world = World::new().await;
    let reply = world
        .post(
            "/api/conversations",
            json!({"agents": [{"agent_id": "a1", "moniker": "count", "config": {"x": 1}}],
                                                        "tags": "x", "messages": [{"role": "user"}]}),
        )
        .await;
    let (code, fields) = reply.refusal();
    assert_eq!(code, "invalid_request");
    for field in ["agents[0].config.x", "tags", "messages[0].text"] {
        assert!(fields.iter().any(|named| named == field), "{field}: {fields:?}");
    }
    assert!(world.store.all_sessions().is_empty());
    assert_eq!(world.get("/api/conversations").await.json()["items"], json!([]));
}

#[tokio::test(start_paused = true)]
async fn lists_are_filtered_and_paged() {
    let world = World::new().await;
    for (id, tag, subject) in [("c1", "x", "s1"), ("c2", "y", "s1"), ("c3", "x", "s2")] {
        world.clock.jump(1_000);
        world.post("/api/conversations", json!({"conversation_id": id, "tags": [tag], "subject_id": subject})).await;
    }
    world
        .post("/api/conversations", json!({"conversation_id": "hidden", "visibility": "internal", "tags": ["x"]}))
        .await;
    let list = async |query: &str| world.get(&format!("/api/conversations{query}")).await.json();
    assert_eq!(ids(&list("").await), ["c3", "c2", "c1"]);
    assert_eq!(ids(&list("?tag=x").await), ["c3", "c1"]);
    assert_eq!(ids(&list("?tag=x&subject_id=s1").await), ["c1"]);
    assert_eq!(ids(&list("?include=internal&tag=x").await).len(), 3);
    assert_eq!(ids(&list("?status=completed").await).len(), 0);
    let page = list("?limit=2").await;
    assert_eq!(ids(&page), ["c3", "c2"]);
    let rest = list(&format!("?limit=2&cursor={}", page["next_cursor"].as_str().unwrap())).await;
    assert_eq!((ids(&rest), &rest["next_cursor"]), (vec!["c1"], &json!(null)));
    let waiting = world.get("/api/conversations?status=waiting").await;
    assert_eq!(waiting.refusal(), ("invalid_request".into(), vec!["status".to_owned()]));
    for part in ["waiting is not stored", "active, completed, failed"] {
        assert!(waiting.text.contains(part), "{}", waiting.text);
    }
    for wrong in ["?cursor=x", "?limit=0", "?colour=red", "?include=all"] {
        assert_eq!(world.get(&format!("/api/conversations{wrong}")).await.problem(), "invalid_request", "{wrong}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_conversation_is_changed_and_completed_for_good() {
    let world = World::new().await;
    world.converse("c1", &["a1"]).await;
    let changed =
        world.patch("/api/conversations/c1", json!({"title": "T", "tags": ["a"], "metadata": {"n": 1}})).await;
    assert_eq!(changed.status, StatusCode::OK, "{}", changed.text);
    assert_eq!((&changed.json()["title"], &changed.json()["status"]), (&json!("T"), &json!("active")));
    for _ in 0..2 {
        let done = world.patch("/api/conversations/c1", json!({"status": "completed"})).await;
        assert_eq!((done.status, &done.json()["status"]), (StatusCode::OK, &json!("completed")), "{}", done.text);
    }
    let log = world.get("/api/conversations/c1/messages?include=all").await.json();
    let ended = log["items"].as_array().unwrap().iter().filter(|one| one["text"] == "conversation_ended").count();
    assert_eq!(ended, 1);
    for (path, body) in [
        ("/api/conversations/c1/messages", json!({"text": "hello?"})),
        ("/api/conversations/c1/participants", json!({"user_id": "ben"})),
    ] {
        let reply = world.post(path, body).await;
        assert_eq!((reply.status, reply.problem().as_str()), (StatusCode::CONFLICT, "conversation_closed"));
    }
    assert_eq!(world.patch("/api/conversations/c1", json!({"status": "active"})).await.refusal().1, ["status"]);
    assert_eq!(world.patch("/api/conversations/none", json!({"title": "T"})).await.problem(), "conversation_not_found");
}

#[tokio::test(start_paused = true)]
async fn participants_join_and_leave() {
    let world = World::new().await;
    let sessions = world.converse("c1", &["a1"]).await;
    let path = "/api/conversations/c1/participants";
    let ben = world.post(path, json!({"user_id": "ben"})).await;
    assert_eq!(ben.status, StatusCode::CREATED, "{}", ben.text);
    assert_eq!(world.post(path, json!({"user_id": "ben"})).await.status, StatusCode::OK, "he takes part already");
    let body = json!({"agent_id": "a2", "moniker": "echo", "participant_id": "p-a2"});
    let (first, again) = (world.post(path, body.clone()).await, world.post(path, body).await);
    assert_eq!((first.status, again.status), (StatusCode::CREATED, StatusCode::OK));
    assert_eq!(first.json()["started"]["session_id"], again.json()["started"]["session_id"]);
    assert_eq!(
        (&first.json()["started"]["accepted"], &again.json()["started"]["accepted"]),
        (&json!(true), &json!(false))
    );
    let all = world.get(path).await.json();
    assert_eq!(all["items"].as_array().unwrap().len(), 4, "{all}");
    let left = world.delete(&format!("{path}/p-a2")).await;
    assert_eq!(left.status, StatusCode::OK, "{}", left.text);
    assert!(left.json()["left_at"].is_string());
    assert_eq!(world.delete(&format!("{path}/p-a2")).await.json()["left_at"], left.json()["left_at"]);
    let said = world.post("/api/conversations/c1/messages", json!({"text": "hi"})).await.json();
    let answering: Vec<&Value> = said["responders"].as_array().unwrap().iter().map(|one| &one["session_id"]).collect();
    assert_eq!(answering, [&json!(sessions[0])], "who has left gets nothing");
    let all = world.get(path).await.json();
    assert_eq!(all["items"][3]["participant_id"], "p-a2", "who has left comes last");
    assert_eq!(world.delete(&format!("{path}/none")).await.problem(), "participant_not_found");
    assert_eq!(world.get("/api/conversations/none/participants").await.problem(), "conversation_not_found");
}

#[tokio::test(start_paused = true)]
async fn a_seat_that_is_gone_starts_no_session() {
    let world = World::new().await;
    world.converse("c1", &["a1"]).await;
    let path = "/api/conversations/c1/participants";
    let seat = json!({"agent_id": "a2", "moniker": "echo", "participant_id": "p-a2"});
    assert_eq!(world.post(path, seat.clone()).await.status, StatusCode::CREATED);
    assert_eq!(world.delete(&format!("{path}/p-a2")).await.status, StatusCode::OK);
    let again = world.post(path, seat).await;
    assert_eq!((again.status, &again.json()["joined"]), (StatusCode::OK, &json!(false)), "{}", again.text);
    assert!(again.json()["participant"]["left_at"].is_string() && again.json().get("started").is_none());
}

#[tokio::test(start_paused = true)]
async fn who_comes_and_goes_is_in_the_transcript_once() {
    let world = World::new().await;
    world.converse("c1", &["a1"]).await;
    let path = "/api/conversations/c1/participants";
    let agent = json!({"agent_id": "a2", "moniker": "echo", "participant_id": "p-a2", "role": "observer"});
    let mut seat = Value::Null;
    for _ in 0..2 {
        assert!(world.post(path, agent.clone()).await.status.is_success());
        seat = world.post(path, json!({"user_id": "ben"})).await.json()["participant"]["participant_id"].clone();
    }
    assert!(matches!(world.live.told().last(), Some((told, News::Logged)) if told.conversation_id.as_str() == "c1"));
    for id in ["p-a2", "p-a2", seat.as_str().unwrap(), seat.as_str().unwrap()] {
        assert_eq!(world.delete(&format!("{path}/{id}")).await.status, StatusCode::OK);
    }
    let back = world.post(path, json!({"user_id": "ben"})).await;
    assert_eq!((back.status, &back.json()["joined"]), (StatusCode::CREATED, &json!(true)), "who left may come back");
    let sessions = world.store.all_sessions().len();
    let thief = json!({"agent_id": "a3", "moniker": "echo", "participant_id": "p-a2"});
    assert_eq!(world.post(path, thief).await.refusal().1, ["participant_id"]);
    assert_eq!(world.store.all_sessions().len(), sessions, "nobody comes in by a seat of somebody else's");
    let log = world.get("/api/conversations/c1/messages?include=all").await.json();
    let of = |row: &Value| {
        let who = &row["data"]["participant"];
        let who = who["user_id"].as_str().or_else(|| who["agent_id"].as_str())?;
        Some(format!("{who} {}", row["text"].as_str()?.strip_prefix("participant_")?))
    };
    let told: Vec<String> = log["items"].as_array().unwrap().iter().filter_map(of).collect();
    assert_eq!(told, ["a2 joined", "ben joined", "a2 left", "ben left", "ben joined"]);
    let said = world.get("/api/conversations/c1/messages").await.json();
    assert_eq!(said["items"], json!([]), "nobody said it");
}

#[tokio::test(start_paused = true)]
async fn a_session_joins_where_it_belongs_only() {
    let world = World::new().await;
    let path = "/api/conversations/c1/participants";
    let sessions = world.converse("c1", &["a1"]).await;
    world.create("loose", "a1", "echo").await;
    let join = |agent: &str, session: &str| world.post(path, json!({"agent_id": agent, "session_id": session}));
    assert_eq!(join("a1", &sessions[0]).await.status, StatusCode::OK);
    assert_eq!(join("a2", &sessions[0]).await.problem(), "wrong_agent");
    assert_eq!(join("a1", "loose").await.refusal().1, ["session_id"]);
    assert_eq!(join("a1", "none").await.problem(), "session_not_found");
    world.commit(&sessions[0], 0, SessionStatus::Completed).await;
    assert_eq!(join("a1", &sessions[0]).await.problem(), "session_ended");
}

#[tokio::test(start_paused = true)]
async fn reading_needs_less_than_writing() {
    let world = World::new().await;
    world.converse("c1", &["a1"]).await;
    for (method, path) in [
        (Method::POST, "/api/conversations"),
        (Method::PATCH, "/api/conversations/c1"),
        (Method::POST, "/api/conversations/c1/participants"),
        (Method::DELETE, "/api/conversations/c1/participants/p"),
        (Method::POST, "/api/conversations/c1/messages"),
        (Method::POST, "/api/turns/t1/cancel"),
        (Method::POST, "/api/operations/o1/approve"),
    ] {
        let reply = world.send(request(method.clone(), path, READ, Body::from("{}"))).await;
        assert_eq!((reply.status, reply.problem().as_str()), (StatusCode::FORBIDDEN, "forbidden"), "{method} {path}");
    }
    for path in ["/api/conversations", "/api/conversations/c1", "/api/conversations/c1/turns", "/api/operations"] {
        assert_eq!(world.get_as(READ, path).await.status, StatusCode::OK, "{path}");
    }
}

#[tokio::test(start_paused = true)]
async fn nothing_of_it_shows_in_another_namespace() {
    let world = World::new().await;
    world.converse("c1", &["a1"]).await;
    assert_eq!(world.get_as(OTHER, "/api/conversations").await.json()["items"], json!([]));
    for path in ["", "/participants", "/messages", "/turns", "/events"] {
        let reply = world.get_as(OTHER, &format!("/api/conversations/c1{path}")).await;
        assert_eq!(reply.problem(), "conversation_not_found", "{path}");
    }
    let reply = world.post_as(OTHER, "/api/conversations/c1/messages", json!({"text": "hi"})).await;
    assert_eq!(reply.problem(), "conversation_not_found");
    let reply = world.post_as(OTHER, "/api/conversations", json!({"conversation_id": "c1"})).await;
    assert_eq!(reply.status, StatusCode::CREATED, "ids are a namespace's own");
}

#[tokio::test(start_paused = true)]
async fn an_agent_that_nobody_defined_is_refused_by_its_field_with_what_to_do() {
    let world = World::new().await;
    let seats = json!([{"agent_id": "a1", "moniker": "echo"}, {"agent_id": "adda"}]);
    let reply = world.post("/api/conversations", json!({"conversation_id": "c1", "agents": seats})).await;
    assert_eq!(reply.status, StatusCode::BAD_REQUEST, "{}", reply.text);
    let problem = reply.json();
    assert_eq!(
        (&problem["code"], &problem["errors"][0]["field"]),
        (&json!("invalid_request"), &json!("agents[1].agent_id"))
    );
    assert!(problem["errors"][0]["message"].as_str().unwrap().contains("POST /api/agents"), "{problem}");
    assert_eq!(world.get("/api/conversations/c1").await.status, StatusCode::NOT_FOUND, "nothing was made");
    let described = json!([{"agent_id": "adda", "config": {"system_prompt": "You are Adda."}}]);
    let reply = world.post("/api/conversations", json!({"conversation_id": "c1", "agents": described})).await;
    assert_eq!(reply.status, StatusCode::CREATED, "{}", reply.text);
    let reply = world.post("/api/conversations/c1/participants", json!({"agent_id": "bob"})).await;
    assert_eq!(
        (reply.status, reply.json()["errors"][0]["field"].clone()),
        (StatusCode::BAD_REQUEST, json!("agent_id"))
    );
}

#[tokio::test(start_paused = true)]
async fn a_list_tells_who_waits_now() {
    let world = World::new().await;
    let session = world.converse("c1", &["a1"]).await.remove(0);
    world.converse("c2", &["a1"]).await;
    let statuses = async || {
        let page = world.get("/api/conversations").await.json();
        let of = |row: &Value| (row["conversation_id"].to_string(), row["status"].clone());
        page["items"].as_array().unwrap().iter().map(of).collect::<std::collections::BTreeMap<_, _>>()
    };
    assert!(statuses().await.values().all(|status| status == "active"));
    let open = testkit::contract::words::turn("t1", "c1", &session, 5);
    let waiting = Turn { phase: TurnPhase::WaitingTool, ..open };
    world.speak(&session, Talk { turns: vec![waiting], ..Talk::default() }).await;
    let now = statuses().await;
    assert_eq!((&now["\"c1\""], &now["\"c2\""]), (&json!("waiting"), &json!("active")));
}

/// An agent `ann` of a project that names its branch, and of another one; and `bo` of one that names none.
async fn projects(world: &World) {
    let item = |kind: &str, definition: Value| json!({"kind": kind, "definition": definition});
    let project = |id: &str, branch: Value| item("project", json!({"id": id, "name": id, "default_branch": branch}));
    let agent = |id: &str, projects: Value| {
        let persona = json!({"system_prompt": "You help.", "model_profile_id": "m"});
        item("agent", json!({"id": id, "name": id, "project_ids": projects, "persona_inline": persona}))
    };
    let list = json!([
        item("model_profile", json!({"id": "m", "name": "M", "provider": "scripted", "model_id": "m"})),
        project("p1", json!("trunk")),
        project("p2", Value::Null),
        agent("ann", json!(["p1", "p2"])),
        agent("bo", json!(["p2"])),
    ]);
    let reply = world.post("/api/definitions", list).await;
    assert_eq!(reply.status, StatusCode::OK, "{}", reply.text);
}

#[tokio::test(start_paused = true)]
async fn a_conversation_says_where_its_agents_work() {
    let world = World::new().await;
    projects(&world).await;
    let branch = async |body: Value| {
        let reply = world.post("/api/conversations", body).await;
        assert!(reply.status.is_success(), "{}", reply.text);
        reply.json()["conversation"]["branch_context"].clone()
    };
    let echo = json!({"agent_id": "nobody", "moniker": "echo"});
    let body = json!({"conversation_id": "c1", "agents": [echo, {"agent_id": "ann"}, {"agent_id": "bo"}]});
    let noted = json!({"project_id": "p1", "branch": "wonder/conv-c1", "base": "trunk"});
    assert_eq!(branch(body.clone()).await, noted, "the first who is defined, and the first project");
    assert_eq!(branch(body).await, noted, "again is no other");
    assert_eq!(world.get("/api/conversations/c1").await.json()["conversation"]["branch_context"], noted);
    let noted = json!({"project_id": "p2", "branch": "wonder/conv-c2", "base": "main"});
    assert_eq!(branch(json!({"conversation_id": "c2", "agents": [{"agent_id": "bo"}]})).await, noted);
    let own = json!({"repo_id": "r1", "branch": "mine"});
    let body = json!({"agents": [{"agent_id": "ann"}], "branch_context": own});
    assert_eq!(branch(body).await, own, "whoever says where is heard");
    assert_eq!(branch(json!({"agents": [echo]})).await, Value::Null, "nobody there has a project");
}

#[tokio::test(start_paused = true)]
async fn the_first_who_joins_from_a_project_says_where_all_work() {
    let world = World::new().await;
    projects(&world).await;
    world.converse("c1", &["nobody"]).await;
    let join = async |body: Value| {
        let reply = world.post("/api/conversations/c1/participants", body).await;
        assert_eq!(reply.status, StatusCode::CREATED, "{}", reply.text);
        world.get("/api/conversations/c1").await.json()["conversation"]["branch_context"].clone()
    };
    assert_eq!(join(json!({"user_id": "ben"})).await, Value::Null);
    let noted = json!({"project_id": "p2", "branch": "wonder/conv-c1", "base": "main"});
    assert_eq!(join(json!({"agent_id": "bo"})).await, noted);
    assert_eq!(join(json!({"agent_id": "ann"})).await, noted, "work is there already");
}
