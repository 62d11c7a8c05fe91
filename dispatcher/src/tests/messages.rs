//! Messages: who answers, what becomes of them at a busy agent, repeats, and the transcript.

use axum::http::StatusCode;
use domain::ports::News;
use schemas::action::{Action, ActionType};
use schemas::conversation::Talk;
use schemas::session::SessionStatus;
use serde_json::{Value, json};

use super::turns::{said, turn};
use super::world::{ADMIN, World};

const PATH: &str = "/api/conversations/c1/messages";

/// Who got it, and how.
fn led_to(reply: &Value) -> Vec<(&str, &str)> {
    let all = reply["responders"].as_array().unwrap_or_else(|| panic!("{reply}"));
    all.iter().map(|one| (one["agent_id"].as_str().unwrap(), one["outcome"].as_str().unwrap())).collect()
}

#[tokio::test(start_paused = true)]
async fn a_message_starts_a_turn_of_each_responder() {
    let world = World::new().await;
    let sessions = world.converse("c1", &["a1", "a2"]).await;
    let body = json!({"text": "hello", "user_id": "ana", "message_id": "m1"});
    let reply = world.post(PATH, body).await;
    assert_eq!(reply.status, StatusCode::ACCEPTED, "{}", reply.text);
    let answer = reply.json();
    assert_eq!(led_to(&answer), [("a1", "turn"), ("a2", "turn")]);
    assert_ne!(answer["responders"][0]["turn_id"], answer["responders"][1]["turn_id"]);
    let inputs = world.open();
    assert_eq!(inputs.len(), 2);
    for (session, one) in sessions.iter().zip(answer["responders"].as_array().unwrap()) {
        let action = inputs.iter().find(|action| action.session_id.as_str() == *session).expect("an input");
        let payload = action.payload.to_value();
        assert_eq!((action.kind, &payload["message_id"]), (ActionType::Input, &json!("m1")));
        assert_eq!((&payload["text"], &payload["user_id"]), (&json!("hello"), &json!("ana")));
        assert_eq!((&payload["turn_id"], &json!(action.action_id)), (&one["turn_id"], &one["action_id"]));
    }
    let transcript = world.get(PATH).await.json();
    assert_eq!(transcript["items"].as_array().unwrap().len(), 1, "one message, however many answer");
    assert_eq!(
        (&transcript["items"][0]["offset"], &transcript["items"][0]["sender_type"]),
        (&answer["offset"], &json!("user"))
    );
    assert!(matches!(world.live.told().last(), Some((_, News::Logged))));
    world.until(|| world.queue.published().len() >= 2).await;
}

#[tokio::test(start_paused = true)]
async fn a_repeat_changes_nothing_and_another_message_is_refused() {
    let world = World::new().await;
    let sessions = world.converse("c1", &["a1"]).await;
    let body = json!({"text": "hello", "message_id": "m1", "busy": "reject"});
    let first = world.post(PATH, body.clone()).await.json();
    // By now the agent is at work, on this very message.
    let id = first["responders"][0]["turn_id"].as_str().unwrap();
    let active = Talk { turns: vec![turn(id, &sessions[0], "m1")], ..Talk::default() };
    world.speak(&sessions[0], active).await;
    let again = world.post(PATH, body).await;
    assert_eq!(again.status, StatusCode::ACCEPTED, "{}", again.text);
    let again = again.json();
    assert_eq!((&again["offset"], &again["responders"][0]["turn_id"]), (&first["offset"], &json!(id)));
    assert_eq!(
        (&first["responders"][0]["accepted"], &again["responders"][0]["accepted"]),
        (&json!(true), &json!(false))
    );
    for other in
        [json!({"text": "hullo", "message_id": "m1"}), json!({"text": "hello", "message_id": "m1", "to": ["a1"]})]
    {
        let reply = world.post(PATH, other).await;
        assert_eq!((reply.status, reply.problem().as_str()), (StatusCode::CONFLICT, "message_conflict"));
    }
    assert_eq!(world.get(PATH).await.json()["items"].as_array().unwrap().len(), 1);
    world.patch("/api/conversations/c1", json!({"status": "completed"})).await;
    let late = json!({"text": "hello", "message_id": "m1", "busy": "reject"});
    let late = world.post(PATH, late).await;
    assert_eq!(
        (late.status, &late.json()["offset"]),
        (StatusCode::ACCEPTED, &first["offset"]),
        "also when it is closed by now"
    );
}

#[tokio::test(start_paused = true)]
async fn a_repeat_reaches_nobody_anew_and_is_taken_when_all_have_left() {
    let world = World::new().await;
    world.converse("c1", &["a1"]).await;
    let body = json!({"text": "hello", "message_id": "m1"});
    let named = json!({"text": "and you", "message_id": "m2", "to": ["a1"]});
    let first = world.post(PATH, body.clone()).await.json();
    let second = world.post(PATH, named.clone()).await.json();
    let late = json!({"agent_id": "a2", "moniker": "echo", "participant_id": "p-a2"});
    let joined = world.post("/api/conversations/c1/participants", late).await;
    assert!(joined.status.is_success(), "{}", joined.text);
    let open = world.open().len();
    let again = world.post(PATH, body).await;
    assert_eq!(again.status, StatusCode::ACCEPTED, "{}", again.text);
    let again = again.json();
    assert_eq!((&again["offset"], led_to(&again)), (&first["offset"], vec![("a1", "turn"), ("a2", "refused")]));
    assert_eq!(again["responders"][1]["code"], "message_conflict");
    let seat = first["responders"][0]["participant_id"].as_str().unwrap();
    let left = world.delete(&format!("/api/conversations/c1/participants/{seat}")).await;
    assert!(left.status.is_success(), "{}", left.text);
    let again = world.post(PATH, named).await;
    assert_eq!(again.status, StatusCode::ACCEPTED, "{}", again.text);
    assert_eq!((&again.json()["offset"], led_to(&again.json()).len()), (&second["offset"], 0));
    assert_eq!(world.open().len(), open, "nothing was accepted anew");
    let other = json!({"text": "not you", "message_id": "m3", "to": ["a1"]});
    assert_eq!(world.post(PATH, other).await.refusal().1, ["to[0]"]);
}

#[tokio::test(start_paused = true)]
async fn a_busy_agent_gets_what_the_message_says() {
    let world = World::new().await;
    let sessions = world.converse("c1", &["a1"]).await;
    world.speak(&sessions[0], Talk { turns: vec![turn("t1", &sessions[0], "m0")], ..Talk::default() }).await;
    let post = async |busy: &str| world.post(PATH, json!({"text": busy, "busy": busy})).await;
    let rejected = post("reject").await;
    assert_eq!((rejected.status, rejected.problem().as_str()), (StatusCode::CONFLICT, "agent_busy"));
    assert_eq!(world.get(PATH).await.json()["items"], json!([]), "nothing was written");
    assert_eq!(led_to(&post("enqueue").await.json()), [("a1", "turn")]);
    let steered = post("steer").await.json();
    assert_eq!(led_to(&steered), [("a1", "steered")]);
    assert_eq!(steered["responders"][0].get("turn_id"), None);
    assert_eq!(led_to(&post("interrupt").await.json()), [("a1", "interrupted")]);
    let open = world.open();
    let payloads: Vec<Value> = open
        .iter()
        .filter(|action| action.kind == ActionType::Interrupt)
        .map(|action| action.payload.to_value())
        .collect();
    assert_eq!(payloads.len(), 2);
    assert_eq!((&payloads[0]["guidance"]["note"], payloads[0].get("mode")), (&json!("steer"), None));
    assert_eq!((&payloads[1]["guidance"]["note"], &payloads[1]["mode"]), (&json!("interrupt"), &json!("now")));
}

#[tokio::test(start_paused = true)]
async fn what_only_the_fleet_says_is_refused_from_clients() {
    let world = World::new().await;
    world.create("s1", "a1", "converse").await;
    world.commit("s1", 0, SessionStatus::Running).await;
    let path = "/api/sessions/s1/interrupt";
    let as_turn = json!({"note": "x", "message_id": "m1", "as_turn": {"turn_id": "t1", "user_id": "ben", "at_ms": 0}});
    let spent = json!({"spent": {"operation_id": "o1", "usage": {"cost": 5.0}}});
    for guidance in [as_turn, spent] {
        let refused = world.post(path, json!({ "guidance": guidance })).await;
        assert_eq!((refused.status.as_u16(), refused.problem().as_str()), (400, "invalid_request"), "{}", refused.text);
    }
    for field in ["caller", "reply_to", "spent_to"] {
        let refused = world.post("/api/sessions/s1/input", json!({"text": "x", field: {"session_id": "s2"}})).await;
        assert_eq!((refused.status.as_u16(), refused.problem().as_str()), (400, "invalid_request"), "{}", refused.text);
    }
    for actor in ["session:s1", "approval-default"] {
        let resumed = world.post("/api/sessions/s1/resume", json!({ "actor": actor })).await;
        assert_eq!(resumed.refusal().1, ["actor"], "{}", resumed.text);
    }
    assert!(world.open().is_empty(), "nothing was written");
    let taken = world.post(path, json!({"guidance": {"note": "x", "message_id": "m1"}})).await;
    assert_eq!(taken.status, StatusCode::ACCEPTED, "{}", taken.text);
}

/// Whether a field is the fleet's own is known once its session is.
#[tokio::test(start_paused = true)]
async fn what_only_the_fleet_says_is_refused_before_the_session_is_there() {
    let world = World::new().await;
    world.create("e1", "a1", "echo").await;
    let called = |target: Value| {
        let payload = json!({"text": "x", "caller": {"type": "user", "user_id": "ben"}});
        json!({"type": "input", "session_id": target["session_id"], "agent_id": target["agent_id"], "payload": payload})
    };
    let guided = json!({"type": "interrupt", "session_id": "s1", "payload": {"guidance": {"spent": {}}}});
    for (body, code) in [
        (called(json!({"session_id": "s1"})), "session_not_found"),
        (called(json!({"agent_id": "a2"})), "agent_not_found"),
        (guided, "session_not_found"),
    ] {
        let refused = world.post("/api/actions", body).await;
        assert_eq!((refused.status.as_u16(), refused.problem().as_str()), (404, code), "{}", refused.text);
    }
    assert_eq!(world.store.all_actions().len(), 1, "nothing was written");
    let taken = world.post("/api/actions", called(json!({"agent_id": "a1"}))).await;
    assert_eq!(taken.json()["session_id"], "e1", "{}", taken.text);
}

#[tokio::test(start_paused = true)]
async fn an_input_that_waits_makes_an_agent_busy_too() {
    let world = World::new().await;
    world.converse("c1", &["a1"]).await;
    assert_eq!(led_to(&world.post(PATH, json!({"text": "one", "busy": "reject"})).await.json()), [("a1", "turn")]);
    assert_eq!(world.post(PATH, json!({"text": "two", "busy": "reject"})).await.problem(), "agent_busy");
    assert_eq!(led_to(&world.post(PATH, json!({"text": "three", "busy": "steer"})).await.json()), [("a1", "steered")]);
}

#[tokio::test(start_paused = true)]
async fn a_message_says_who_should_answer() {
    let world = World::new().await;
    let sessions = world.converse("c1", &["a1", "a2"]).await;
    let talk = Talk { log: vec![said("answer-1", "t1", "a2", &sessions[1], "meow")], ..Talk::default() };
    world.speak(&sessions[1], talk).await;
    let post = async |body: Value| world.post(PATH, body).await;
    assert_eq!(led_to(&post(json!({"text": "x", "to": ["a1"]})).await.json()), [("a1", "turn")]);
    let reply = post(json!({"text": "why?", "reply_to_message_id": "answer-1", "message_id": "m2"})).await;
    assert_eq!(led_to(&reply.json()), [("a2", "turn")]);
    let input = world.open().into_iter().find(|a| a.payload.to_value()["message_id"] == "m2").unwrap();
    assert_eq!(input.payload.to_value()["reply_to_message_id"], "answer-1");
    // A reply to a user is for everybody.
    assert_eq!(led_to(&post(json!({"text": "x", "reply_to_message_id": "m2"})).await.json()).len(), 2);
    assert_eq!(post(json!({"text": "x", "to": ["a9"]})).await.refusal().1, ["to[0]"]);
    assert_eq!(post(json!({"text": "x", "reply_to_message_id": "m99"})).await.refusal().1, ["reply_to_message_id"]);
}

#[tokio::test(start_paused = true)]
async fn nobody_answers_for_a_session_that_has_ended() {
    let world = World::new().await;
    let sessions = world.converse("c1", &["a1", "a2"]).await;
    world.commit(&sessions[0], 0, SessionStatus::Completed).await;
    let answer = world.post(PATH, json!({"text": "x"})).await.json();
    assert_eq!(led_to(&answer), [("a1", "refused"), ("a2", "turn")]);
    assert_eq!(answer["responders"][0]["code"], "session_ended");
    let named = world.post(PATH, json!({"text": "x", "to": ["a1"]})).await;
    assert_eq!((named.status, named.problem().as_str()), (StatusCode::CONFLICT, "session_ended"));
    world.commit(&sessions[1], 0, SessionStatus::Error).await;
    assert_eq!(world.post(PATH, json!({"text": "x"})).await.problem(), "session_ended");
    assert_eq!(world.get(PATH).await.json()["items"].as_array().unwrap().len(), 1);
}

#[tokio::test(start_paused = true)]
async fn an_agent_without_input_gets_guidance_and_nobody_is_fine_too() {
    let world = World::new().await;
    let body = json!({"conversation_id": "c1", "agents": [{"agent_id": "a1", "moniker": "count"}]});
    world.post("/api/conversations", body).await;
    assert_eq!(led_to(&world.post(PATH, json!({"text": "x"})).await.json()), [("a1", "steered")]);
    world.post("/api/conversations", json!({"conversation_id": "c2"})).await;
    let answer = world.post("/api/conversations/c2/messages", json!({"text": "hello?"})).await;
    assert_eq!((answer.status, led_to(&answer.json()).len()), (StatusCode::ACCEPTED, 0));
}

#[tokio::test(start_paused = true)]
async fn an_agent_without_turns_gets_the_message_and_no_turn_is_promised() {
    let world = World::new().await;
    let agents =
        json!([{"agent_id": "a1", "moniker": "echo"}, {"agent_id": "a2", "moniker": "converse", "task": "answers"}]);
    let made = world.post("/api/conversations", json!({"conversation_id": "c1", "agents": agents})).await;
    assert_eq!(made.status, StatusCode::CREATED, "{}", made.text);
    let body = json!({"text": "hello", "message_id": "m1"});
    let first = world.post(PATH, body.clone()).await.json();
    assert_eq!(led_to(&first), [("a1", "delivered"), ("a2", "turn")]);
    assert_eq!(first["responders"][0].get("turn_id"), None, "{first}");
    let is_its = |action: &Action| json!(action.action_id) == first["responders"][0]["action_id"];
    let input = world.open().into_iter().find(is_its).expect("an input");
    assert_eq!((input.kind, input.payload.to_value().get("turn_id")), (ActionType::Input, None));
    let again = world.post(PATH, body).await.json();
    assert_eq!(led_to(&again), led_to(&first), "a repeat is told the same");
    assert_eq!(again["responders"][0]["accepted"], false);
}

#[tokio::test(start_paused = true)]
async fn structured_content_name_and_metadata_survive() {
    let world = World::new().await;
    world.converse("c1", &["a1"]).await;
    let content = json!([{"type": "text", "text": "look"}, {"type": "image", "source": {"type": "url", "url": "https://x/y.png"}}]);
    let body = json!({"content": content, "name": "Ana", "metadata": {"k": {"v": 1}}, "data": [1]});
    assert_eq!(world.post(PATH, body).await.status, StatusCode::ACCEPTED);
    let said = world.get(PATH).await.json()["items"][0].clone();
    assert_eq!((&said["content"], &said["text"]), (&content, &json!("look")));
    assert_eq!(
        (&said["name"], &said["metadata"], &said["data"]),
        (&json!("Ana"), &json!({"k": {"v": 1}}), &json!([1]))
    );
    assert_eq!(said["user_id"], ADMIN);
    let input = world.open().pop().unwrap().payload.to_value();
    assert_eq!((&input["content"], &input["text"]), (&content, &json!("look")), "the agent gets it whole");
}

#[tokio::test(start_paused = true)]
async fn wrong_messages_are_refused() {
    let world = World::new().await;
    world.converse("c1", &["a1"]).await;
    assert_eq!(world.post(PATH, json!({"txt": "x"})).await.refusal().1, ["txt", "text"]);
    assert_eq!(
        world.post("/api/conversations/none/messages", json!({"text": "x"})).await.problem(),
        "conversation_not_found"
    );
    let large = json!({"text": "x".repeat(schemas::limits::ACTION_BYTES_MAX)});
    assert_eq!(world.post(PATH, large).await.problem(), "too_large");
    assert!(world.open().is_empty());
}

fn texts(page: &Value) -> Vec<String> {
    page["items"].as_array().unwrap().iter().map(|one| one["text"].as_str().unwrap_or("-").to_owned()).collect()
}

#[tokio::test(start_paused = true)]
async fn s102_the_transcript_is_paged_in_both_directions() {
    let world = World::new().await;
    world.post("/api/conversations", json!({"conversation_id": "c1"})).await;
    let mut times = Vec::new();
    for n in 1..=5 {
        world.clock.jump(10_000);
        times.push(domain::time::rfc3339(world.now()));
        world.post(PATH, json!({"text": format!("m{n}")})).await;
    }
    let list = async |query: &str| world.get(&format!("{PATH}{query}")).await.json();
    assert_eq!(texts(&list("").await), ["m1", "m2", "m3", "m4", "m5"]);
    assert_eq!(texts(&list(&format!("?since={}", times[3])).await), ["m4", "m5"]);
    for (order, expected) in [("asc", ["m1", "m2", "m3", "m4", "m5"]), ("desc", ["m5", "m4", "m3", "m2", "m1"])] {
        let (mut all, mut cursor) = (Vec::new(), String::new());
        loop {
            let page = list(&format!("?limit=2&order={order}{cursor}")).await;
            all.extend(texts(&page));
            match page["next_cursor"].as_str() {
                Some(next) => cursor = format!("&cursor={next}"),
                None => break,
            }
        }
        assert_eq!(all, expected, "{order}");
    }
    let third = list("").await["items"][2]["offset"].as_u64().unwrap();
    assert_eq!(texts(&list(&format!("?before={third}")).await), ["m1", "m2"]);
    assert_eq!(texts(&list(&format!("?before={third}&order=desc&limit=1")).await), ["m2"]);
    for wrong in ["?order=up", "?include=none", "?since=yesterday", "?cursor=x", "?before=-1"] {
        assert_eq!(world.get(&format!("{PATH}{wrong}")).await.problem(), "invalid_request", "{wrong}");
    }
}
