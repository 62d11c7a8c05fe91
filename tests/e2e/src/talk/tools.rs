//! Tools of all sorts: at once, in the background, after a yes, and other agents.

use serde_json::json;

use super::desk::{converse, ended, open, said, say};
use crate::harness::wait;

#[tokio::test]
async fn s52_a_tool_runs_and_its_result_reaches_the_model() {
    let fleet = open().await;
    converse(&fleet, "c52", &["ben"]).await;
    let turn = ended(&fleet, &say(&fleet, "c52", "use the tool").await).await;
    assert_eq!((&turn["status"], &turn["moves"]), (&json!("completed"), &json!(2)), "{turn}");
    assert_eq!(said(&fleet, "c52").await[1].1, "The tool said {\"found\":42}.");
    let all = fleet.get("/api/conversations/c52/messages?include=all").await;
    let kinds: Vec<&str> = all["items"].as_array().unwrap().iter().filter_map(|m| m["event_type"].as_str()).collect();
    assert!(kinds.contains(&"tool_call") && kinds.contains(&"tool_result"), "{kinds:?}");
}

#[tokio::test]
async fn s67_work_in_the_background_is_acknowledged_and_told_of_later() {
    let fleet = open().await;
    converse(&fleet, "c67", &["ben"]).await;
    let slow = say(&fleet, "c67", "do it in the background").await;
    wait("the acknowledgement", || async {
        said(&fleet, "c67").await.iter().any(|(_, text)| text == "Working on it.").then_some(())
    })
    .await;
    // Another turn is answered meanwhile.
    ended(&fleet, &say(&fleet, "c67", "hello").await).await;
    let turn = ended(&fleet, &slow).await;
    assert_eq!(turn["status"], "completed", "{turn}");
    let texts: Vec<String> = said(&fleet, "c67").await.into_iter().map(|(_, text)| text).collect();
    // Which of the two turns ends last is a matter of the machine.
    assert!(texts.iter().any(|text| text == "It is finished."), "{texts:?}");
}

#[tokio::test]
async fn a_tool_behind_an_approval_runs_after_the_yes_and_not_before() {
    let fleet = open().await;
    converse(&fleet, "cpay", &["ben"]).await;
    let turn = say(&fleet, "cpay", "please pay").await;
    let asked = wait("the question", || async {
        let page = fleet.get("/api/operations?kind=approval&state=pending").await;
        page["items"].as_array()?.first().cloned()
    })
    .await;
    let path = format!("/api/operations/{}/approve", asked["operation_id"].as_str().unwrap());
    let wrong = fleet.post(&path, &json!({"arguments_hash": "00"})).await;
    assert_eq!(wrong.status.as_u16(), 409, "{wrong:?}");
    let hash = &asked["approval"]["arguments_hash"];
    let yes = fleet.post(&path, &json!({ "arguments_hash": hash })).await;
    assert!(yes.status.is_success(), "{yes:?}");
    let turn = ended(&fleet, &turn).await;
    assert_eq!(turn["status"], "completed", "{turn}");
    assert_eq!(said(&fleet, "cpay").await[1].1, "The tool said {\"found\":42}.");
}

#[tokio::test]
async fn s79_another_agent_is_asked_and_its_answer_comes_back() {
    let fleet = open().await;
    converse(&fleet, "cdev", &["ben"]).await;
    let turn = ended(&fleet, &say(&fleet, "cdev", "delegate it").await).await;
    assert_eq!(turn["status"], "completed", "{turn}");
    let texts = said(&fleet, "cdev").await;
    assert!(texts[1].1.contains("Dev did it."), "{texts:?}");
    let listed = fleet.get("/api/conversations").await;
    assert_eq!(listed["items"].as_array().map(Vec::len), Some(1), "delegated work is in no list (K-19)");
}

#[tokio::test]
async fn a_cancelled_turn_ends_and_its_question_with_it() {
    let fleet = open().await;
    converse(&fleet, "ccan", &["ben"]).await;
    let turn = say(&fleet, "ccan", "please pay").await;
    wait("the question", || async {
        let page = fleet.get("/api/operations?kind=approval&state=pending").await;
        page["items"].as_array()?.first().cloned()
    })
    .await;
    let answer = fleet.post(&format!("/api/turns/{turn}/cancel"), &json!({})).await;
    assert!(answer.status.is_success(), "{answer:?}");
    let turn = ended(&fleet, &turn).await;
    assert_eq!((&turn["status"], &turn["cancelled"]), (&json!("failed"), &json!(true)), "{turn}");
    let open = fleet.get("/api/operations?state=pending").await;
    assert_eq!(open["items"].as_array().map(Vec::len), Some(0), "{open}");
}
