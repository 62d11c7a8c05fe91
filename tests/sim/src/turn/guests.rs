//! An agent that is looped in: it joins the conversation, answers there, and sits there once, however often it is
//! asked. Whoever asked pays for it.

use domain::chat::{ChatCall, Part};
use domain::definition::NewDefinition;
use domain::ports::{ActionCall, Conversations};
use schemas::conversation::{Turn, TurnStatus};
use schemas::id::Namespace;
use serde_json::json;
use testkit::contract::build::agent_id;
use testkit::contract::words::{conversation_id, turn_query};
use testkit::crash::Run;
use testkit::fake::MemStore;
use testkit::fake::tools::Work;
use testkit::unreliable::CrashPoint;

use super::check::{check, said, shown};
use super::history::History;
use super::script::{CONVERSATION, LOOK, PLAIN, Script, TURN, agent, asks, call, tool};
use super::{Drilled, Ended, every, person, played};

static SCRIPT: Script = Script {
    agents: &["ben", "ann"],
    said: "do it together",
    definitions,
    reply,
    work,
    // Ben goes on while Ann thinks.
    at_once: 2,
    ..PLAIN
};

/// The calls by which Ben loops Ann in; the session that is made for the first, and the turn of each.
const CALLS: [&str; 2] = ["t1.1.0", "t1.3.0"];
const SESSION: &str = "t1.1.0.s";
const TURNS: [&str; 2] = ["t1.1.0.t", "t1.3.0.t"];

/// One crash at every `stride`th call, before and after it.
///
/// # Errors
/// The first crash that changes history.
pub fn drill_guest(stride: usize) -> Result<Drilled, String> {
    every(stride, play)
}

async fn play(crash: Option<CrashPoint>) -> (Run<History>, Drilled) {
    let ended = played(&SCRIPT, crash, person::nobody).await;
    let drilled = check(&ended).await;
    sits_once(&ended).await;
    answers(&ended).await;
    (ended.run().await, drilled)
}

fn definitions() -> Vec<NewDefinition> {
    let mut all = Vec::from(tool("hear", "idempotent", &json!({})));
    all.push(asks("ask_ann", "ann", &json!({"invocation_mode": "loop_in"})));
    let tools = ["ask_ann", "hear"];
    all.push(agent("ben", &json!({"system_prompt": "You lead.", "model_profile_id": "m", "tool_ids": tools})));
    all.push(agent("ann", &json!({"system_prompt": "You know how.", "model_profile_id": "m"})));
    all
}

/// Ben asks twice. The second time, Ann is there.
fn reply(asked: &ChatCall) -> Vec<Part> {
    match asked.id.as_str() {
        "t1.1" => vec![Part::text("Ann, how?"), call("ask-1", "ask_ann", "How?")],
        "t1.2" => vec![call("hear-1", "hear", CALLS[0])],
        "t1.3" => vec![Part::text("Ann, and then?"), call("ask-2", "ask_ann", "And then?")],
        "t1.4" => vec![call("hear-2", "hear", CALLS[1])],
        "t1.5" => vec![Part::text("We did it.")],
        "t1.1.0.t.1" => vec![Part::text("Like this.")],
        _ => vec![Part::text("Like that.")],
    }
}

/// Nobody waits for a guest but this, so that the order of the log does not depend on who is faster.
fn work(store: MemStore, call: ActionCall) -> Work {
    Box::pin(async move {
        let asked = call.request.input["what"].as_str().unwrap_or_default();
        while !is_told(&store, asked) {
            tokio::time::sleep(LOOK).await;
        }
        Ok(json!({ "done": call.tool }))
    })
}

/// Whether Ben's session was told what Ann has used, which is when her turn is over.
fn is_told(store: &MemStore, asked: &str) -> bool {
    let told = format!("{asked}.spent");
    store.all_actions().iter().any(|rec| rec.action_id.as_str() == told && rec.is_processed())
}

async fn sits_once(ended: &Ended) {
    let Ended { place, at, .. } = ended;
    let here = place.world.store.participants(&Namespace::default_ns(), &conversation_id(CONVERSATION)).await;
    let here = here.expect("no faults are scripted");
    let hers = here.iter().filter(|one| one.agent_id == Some(agent_id("ann")));
    let hers: Vec<_> = hers.map(|one| (one.session_id.as_ref(), one.added_by_turn_id.as_ref())).collect();
    let [(Some(session), Some(by))] = hers[..] else { panic!("{at}: {here:?}") };
    assert_eq!((session.as_str(), by.as_str()), (SESSION, TURN), "{at}");
    let joined = place.log().await.into_iter().filter(|row| row.record.body.to_value()["type"] == "participant_joined");
    assert_eq!(joined.count(), 1, "{at}: who joins is told of once");
    let sessions: Vec<String> = place.world.store.all_sessions().iter().map(|row| row.key.to_string()).collect();
    assert_eq!(sessions.len(), 2, "{at}: {sessions:?}");
}

async fn answers(ended: &Ended) {
    let Ended { place, at, .. } = ended;
    let expected = [
        "user: do it together",
        "ben: Ann, how?",
        "ben: How?",
        "ann: Like this.",
        "ben: Ann, and then?",
        "ben: And then?",
        "ann: Like that.",
        "ben: We did it.",
    ];
    assert_eq!(said(place).await, expected, "{at}");
    for turn in TURNS {
        let words = shown(place, &format!("{turn}.1"));
        assert!(words.contains("do it together") && words.contains("Ann, how?"), "{at}: {turn} was shown {words}");
    }
    let turns = place.world.store.turns(&turn_query()).await.expect("no faults are scripted");
    let hers = TURNS.map(|id| of(&turns, id));
    let is_good = |turn: &&Turn| turn.status == TurnStatus::Completed && turn.session_id.as_str() == SESSION;
    assert!(turns.len() == 3 && hers.iter().all(is_good), "{at}: {turns:?}");
    // Five replies of his, and one of each turn of hers.
    let (all, one) = (of(&turns, TURN).usage, hers[0].usage);
    let used = (all.input_tokens, all.output_tokens);
    assert_eq!(used, (7 * one.input_tokens, 7 * one.output_tokens), "{at}: {turns:?}");
}

fn of<'t>(turns: &'t [Turn], id: &str) -> &'t Turn {
    turns.iter().find(|turn| turn.turn_id.as_str() == id).expect("a turn")
}
