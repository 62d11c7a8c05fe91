//! Questions to people: one is answered with a no, and two with nothing, so that their defaults count, a yes and a
//! no. What nobody allowed is not done, and the model is told why.

use domain::chat::{ChatCall, Part};
use domain::definition::NewDefinition;
use domain::ports::{OperationQuery, Operations};
use domain::tool::{APPROVER, result_id};
use schemas::action::ActionOutcome;
use schemas::conversation::{Operation, OperationKind, OperationState};
use serde_json::json;
use testkit::contract::words::operation_query;
use testkit::crash::Run;
use testkit::unreliable::CrashPoint;

use super::check::{check, said, shown};
use super::history::History;
use super::place::Place;
use super::script::{PLAIN, Script, agent, tool, tool_call};
use super::{Drilled, Ended, every, person, played};

static SCRIPT: Script =
    Script { said: "do what may be done", definitions, reply, once: &["ship"], refused: 2, ..PLAIN };

/// One crash at every `stride`th call, before and after it.
///
/// # Errors
/// The first crash that changes history.
pub fn drill_verdicts(stride: usize) -> Result<Drilled, String> {
    every(stride, play)
}

async fn play(crash: Option<CrashPoint>) -> (Run<History>, Drilled) {
    let ended = played(&SCRIPT, crash, says_no).await;
    let drilled = check(&ended).await;
    answered(&ended).await;
    done(&ended).await;
    (ended.run().await, drilled)
}

/// Ada does not want to pay. To the rest she says nothing.
async fn says_no(place: Place) {
    person::answers(place.world, |tool| (tool == "pay").then_some(false)).await;
}

fn definitions() -> Vec<NewDefinition> {
    let mut all = Vec::new();
    for (name, class, asked) in [
        ("pay", "at_most_once", json!({"expires_s": 3_600})),
        ("ship", "at_most_once", json!({"expires_s": 1, "default": "approve"})),
        ("burn", "idempotent", json!({"expires_s": 1, "default": "deny"})),
    ] {
        all.extend(tool(name, class, &json!({ "requires_approval": asked })));
    }
    let tools = ["pay", "ship", "burn"];
    all.push(agent("ben", &json!({"system_prompt": "You act.", "model_profile_id": "m", "tool_ids": tools})));
    all
}

fn reply(call: &ChatCall) -> Vec<Part> {
    match call.id.as_str() {
        "t1.1" => vec![tool_call("pay")],
        "t1.2" => vec![tool_call("ship")],
        "t1.3" => vec![tool_call("burn")],
        _ => vec![Part::text("It is shipped, and nothing else is done.")],
    }
}

/// Each question has one answer, by whom it should have it, and no default comes before its time.
async fn answered(ended: &Ended) {
    let Ended { place, at, .. } = ended;
    let query = OperationQuery { kind: Some(OperationKind::Approval), ..operation_query() };
    let rows = place.world.store.operations(&query).await.expect("no faults are scripted");
    let answers: Vec<_> = rows.iter().map(|row| answer(ended, &row.operation)).collect();
    let expected = [("pay", person::NAME), ("ship", APPROVER), ("burn", APPROVER)];
    let expected = expected.map(|(tool, by)| (tool.to_owned(), by.to_owned()));
    assert_eq!(answers, expected, "{at}");
}

/// What was asked about, and who has answered.
fn answer(ended: &Ended, asked: &Operation) -> (String, String) {
    let Ended { place, at, .. } = ended;
    let id = result_id(&asked.operation_id);
    let found = place.world.store.all_actions().into_iter().find(|rec| rec.action_id == id);
    let rec = found.unwrap_or_else(|| panic!("{at}: {} has no answer", asked.tool));
    let told = format!("{at}: {} is {:?}: {rec:?}", asked.tool, asked.state);
    assert_eq!((asked.state, rec.outcome), (OperationState::Completed, Some(ActionOutcome::Ok)), "{told}");
    let by = rec.asked.actor;
    let after_ms = rec.accepted_at_ms - asked.created_at_ms;
    let may_wait_ms = asked.approval.as_ref().map_or(0, |approval| approval.expires_ms as i64);
    assert!(by != APPROVER || after_ms >= may_wait_ms, "{told}");
    (asked.tool.clone(), by)
}

async fn done(ended: &Ended) {
    let Ended { place, at, .. } = ended;
    let tools: Vec<String> = place.tools.performed().into_iter().map(|call| call.tool).collect();
    assert!(tools.iter().all(|tool| tool == "ship"), "{at}: {tools:?}");
    for (id, reason) in [("t1.2", person::REASON), ("t1.4", "nobody answered in time")] {
        let words = shown(place, id);
        assert!(words.contains(&format!("this was not allowed: {reason}")), "{at}: {id} was shown {words}");
    }
    let expected = ["user: do what may be done", "ben: It is shipped, and nothing else is done."];
    assert_eq!(said(place).await, expected, "{at}");
}
