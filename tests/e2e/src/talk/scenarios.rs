//! Scenarios of the requirements that need several turns, agents or projects, by their ids.

use serde_json::{Value, json};

use super::desk::{self, asked, converse, ended, open_on, said, say};

fn script(rules: &Value) -> Value {
    json!({"rules": rules, "otherwise": {"text": "I heard {{prompt}}."}})
}

fn item(kind: &str, definition: Value) -> Value {
    json!({"kind": kind, "definition": definition})
}

fn model() -> Value {
    item("model_profile", json!({"id": "m", "name": "M", "provider": "scripted", "model_id": "scripted"}))
}

fn agent(id: &str, instructions: &str) -> Value {
    let persona = json!({"system_prompt": instructions, "model_profile_id": "m"});
    item("agent", json!({"id": id, "name": id, "project_ids": ["p1"], "persona_inline": persona}))
}

fn call(tool: &str, more: &Value) -> Value {
    let mut definition = json!({"id": tool, "name": tool, "description": tool, "library_id": "team",
        "input_schema": {"type": "object"}, "target_type": "agent", "effect_class": "pure"});
    definition.as_object_mut().expect("an object").extend(more.as_object().expect("an object").clone());
    item("tool", definition)
}

#[tokio::test]
async fn s50_three_messages_are_three_turns_and_each_knows_those_before() {
    let (fleet, record) = open_on(
        script(&json!([])),
        &[item("project", json!({"id": "p1", "name": "P1"})), model(), agent("ben", "You help.")],
    )
    .await;
    converse(&fleet, "c50", &["ben"]).await;
    let mut turns = Vec::new();
    for text in ["my name is Ada", "I like tea", "who am I"] {
        turns.push(ended(&fleet, &say(&fleet, "c50", text).await).await);
    }
    for turn in &turns {
        assert_eq!((&turn["status"], &turn["moves"]), (&json!("completed"), &json!(1)), "{turn}");
    }
    assert_eq!(said(&fleet, "c50").await.len(), 6);
    // The third request holds what the first two said.
    let id = turns[2]["turn_id"].as_str().expect("an id");
    let context = fleet.get(&format!("/api/turns/{id}/context")).await;
    let told = context["context"]["request"].to_string();
    for text in ["my name is Ada", "I heard my name is Ada.", "I like tea", "I heard I like tea."] {
        assert!(told.contains(text), "{text}: {told}");
    }
    assert_eq!(asked(&record).len(), 3, "a model is asked once a turn");
    let before = context["context"]["recent_turns"].as_array().expect("turns");
    let known: Vec<&Value> = before.iter().map(|turn| &turn["turn_id"]).collect();
    assert_eq!(known, [&turns[0]["turn_id"], &turns[1]["turn_id"]], "{context}");
}

#[tokio::test]
async fn s82_a_manager_delegates_joins_and_sums_up() {
    let rules = json!([
        {"when": {"system": "You develop"}, "reply": {"text": "The code is written."}},
        {"when": {"system": "You review"}, "reply": {"text": "The review is good."}},
        {"when": {"system": "You draw plans"}, "reply": {"text": "I am the architect."}},
        {"when": {"last": "tool", "result": "*code is written*"}, "reply": {"tool_calls": [
            {"name": "architect", "arguments": {"question": "does it fit?"}}]}},
        {"when": {"last": "tool", "result": "*joined*"}, "reply": {"tool_calls": [
            {"name": "reviewer", "arguments": {"task": "review it"}}]}},
        {"when": {"last": "tool", "result": "*review is good*"}, "reply": {"text": "Built, fitted and reviewed."}},
        {"when": {"contains": "build it"}, "reply": {"tool_calls": [
            {"name": "developer", "arguments": {"task": "write it"}}]}}
    ]);
    let persona = json!({"id": "boss", "name": "Boss", "library_id": "team", "system_prompt": "You manage.",
        "model_profile_id": "m", "tool_ids": ["developer", "architect", "reviewer"]});
    let definitions = [
        item("library", json!({"id": "team", "name": "Team"})),
        item("project", json!({"id": "p1", "name": "P1"})),
        model(),
        call("developer", &json!({"target_id": "dev"})),
        call("architect", &json!({"target_id": "arch", "invocation_mode": "loop_in"})),
        call("reviewer", &json!({"target_id": "rev"})),
        item("persona", persona),
        item(
            "agent",
            json!({"id": "boss", "name": "Boss", "project_ids": ["p1"],
                "persona_ref": {"persona_id": "boss", "library_id": "team"}}),
        ),
        agent("dev", "You develop."),
        agent("arch", "You draw plans."),
        agent("rev", "You review."),
    ];
    let (fleet, record) = open_on(script(&rules), &definitions).await;
    converse(&fleet, "c82", &["boss"]).await;
    let turn = ended(&fleet, &say(&fleet, "c82", "build it").await).await;
    assert_eq!((&turn["status"], &turn["moves"]), (&json!("completed"), &json!(4)), "{turn}");
    crate::harness::wait("the architect to speak", || async {
        said(&fleet, "c82").await.iter().any(|(_, text)| text == "I am the architect.").then_some(())
    })
    .await;
    let texts: Vec<String> = said(&fleet, "c82").await.into_iter().map(|(_, text)| text).collect();
    assert!(texts.iter().any(|text| text == "Built, fitted and reviewed."), "{texts:?}");
    // Delegates work in conversations of their own; who is looped in is among the participants.
    assert!(!texts.iter().any(|text| text.contains("code is written") || text == "The review is good."), "{texts:?}");
    let who = fleet.get("/api/conversations/c82/participants").await.to_string();
    assert!(who.contains("\"arch\"") && !who.contains("\"dev\"") && !who.contains("\"rev\""), "{who}");
    let log = fleet.get("/api/conversations/c82/messages?include=all&limit=1000").await;
    let came = log["items"].as_array().expect("rows").iter().filter(|row| row["text"] == "participant_joined");
    let came: Vec<&Value> = came.map(|row| &row["data"]["participant"]).collect();
    assert_eq!(came.len(), 1, "{came:?}");
    assert_eq!((&came[0]["agent_id"], &came[0]["added_by_turn_id"]), (&json!("arch"), &turn["turn_id"]));
    // Each agent was asked once for its part: a clean context for the delegates, the history for the architect.
    let all = asked(&record);
    // Instructions and task are two messages; the architect is shown what the user said, too.
    for (system, messages) in [("You develop", 2), ("You review", 2), ("You draw plans", 3)] {
        let theirs = all.iter().filter(|one| one["system"].as_str().unwrap_or_default().contains(system));
        let told: Vec<u64> = theirs.filter_map(|one| one["messages"].as_u64()).collect();
        assert_eq!(told, [messages], "{system}");
    }
}

#[tokio::test]
async fn s126_one_persona_and_its_tools_serve_agents_of_two_projects() {
    let fleet = desk::open().await;
    let second = [
        item("project", json!({"id": "p2", "name": "P2"})),
        item(
            "agent",
            json!({"id": "bea", "name": "Bea", "project_ids": ["p2"],
                "persona_ref": {"persona_id": "helper", "library_id": "desk"}}),
        ),
    ];
    let answer = fleet.post("/api/definitions", &json!(second)).await;
    assert!(answer.status.is_success(), "{answer:?}");
    for (conversation, agent) in [("c126-1", "ben"), ("c126-2", "bea")] {
        converse(&fleet, conversation, &[agent]).await;
        let turn = ended(&fleet, &say(&fleet, conversation, "use the tool").await).await;
        assert_eq!((&turn["status"], &turn["moves"]), (&json!("completed"), &json!(2)), "{turn}");
        assert_eq!(said(&fleet, conversation).await[1].1, "The tool said {\"found\":42}.");
    }
}
