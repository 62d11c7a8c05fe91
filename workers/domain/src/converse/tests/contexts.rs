//! What a turn begins with: what was said, what stands for the rest, and what else goes on.

use schemas::conversation::{LogKind, LogRecord, LogRow};
use schemas::id::{AgentId, MessageId, TurnId};
use schemas::json::Json;
use serde_json::{Value, json};

use super::bench::Bench;
use crate::chat::{ModelTarget, Parameters, Role};
use crate::context::{MemoryBlock, MemoryTier};
use crate::converse::{Assembly, Gathered, SHOWN, Shown, Summariser, Summary, TurnSnapshot, assemble};

pub fn row(offset: u64, kind: LogKind, agent: Option<&str>, body: Value) -> LogRow {
    let record = LogRecord {
        kind,
        id: format!("m{offset}"),
        turn_id: None,
        agent_id: agent.map(|agent| AgentId::parse(agent).unwrap()),
        session_id: None,
        at_ms: 1_000 * offset as i64,
        body: Json::of(&body),
    };
    LogRow { offset, record }
}

pub fn said(offset: u64, agent: Option<&str>) -> LogRow {
    let (who, role) = if agent.is_some() { ("agent", "assistant") } else { ("user", "user") };
    let body = json!({"message_id": format!("m{offset}"), "sender_type": who, "role": role, "agent_id": agent,
        "text": format!("said {offset}"), "event_type": "utterance"});
    row(offset, LogKind::Message, agent, body)
}

pub fn summary(offset: u64, agent: &str, upto: u64, scope: &str) -> LogRow {
    let text = format!("[Context Summary: {upto}]");
    row(offset, LogKind::Summary, Some(agent), json!({"upto": upto, "text": text, "batches": [], "scope": scope}))
}

/// The turn `now` of `ada`, that answers the message at `input`.
pub fn gathered(history: Vec<LogRow>, input: u64) -> Gathered {
    let persona = json!({"system_prompt": "You help.", "model_profile_id": "m", "context_budget": 0.5});
    Gathered {
        turn: TurnId::parse("now").unwrap(),
        agent: AgentId::parse("ada").unwrap(),
        agent_name: "Ada".to_owned(),
        project_ids: Vec::new(),
        persona: serde_json::from_value(persona).unwrap(),
        target: ModelTarget::Default,
        parameters: Parameters::default(),
        model_max_tokens: 1_000,
        summariser: None,
        tools: Vec::new(),
        history,
        input: said(input, None).record.body.to().unwrap(),
        replied: None,
        is_delegate: false,
        in_work: Vec::new(),
        active: Vec::new(),
        recent: Vec::new(),
        blocks: Vec::new(),
        found: Vec::new(),
        pending: Vec::new(),
        notes: Vec::new(),
    }
}

fn texts(assembly: &Assembly) -> Vec<String> {
    assembly.request.messages.iter().map(|message| message.plain_text()).collect()
}

#[test]
fn s_50_a_turn_is_told_what_was_said_before_and_has_snapshots_of_the_turns() {
    let mut given = gathered(vec![said(1, None), said(2, Some("ada")), said(3, Some("ben")), said(4, None)], 4);
    let snapshot =
        |id: &str| TurnSnapshot { turn_id: TurnId::parse(id).unwrap(), status: "completed".into(), moves: 1 };
    given.recent = vec![snapshot("t1"), snapshot("t2")];
    let assembly = assemble(&given);
    assert_eq!(assembly.recent_turns, given.recent);
    assert_eq!(texts(&assembly), ["You help.", "said 1", "said 2", "[ben]: said 3", "said 4"]);
    let roles: Vec<Role> = assembly.request.messages.iter().map(|message| message.role).collect();
    assert_eq!(roles, [Role::System, Role::User, Role::Assistant, Role::User, Role::User]);
    let context = assembly.limits.context.expect("an agent that says nothing of it is compacted");
    assert_eq!((context.tokens, context.window, context.compaction.keep_recent), (500, 1_000, 5));
}

#[test]
fn an_agent_whose_compaction_is_off_has_no_limits_of_its_context() {
    let mut given = gathered(vec![said(1, None)], 1);
    given.persona.compaction = Some(serde_json::from_value(json!({"enabled": false})).unwrap());
    assert_eq!(assemble(&given).limits.context, None);
}

#[test]
fn summaries_may_be_another_models_and_fit_both_windows() {
    let own = assemble(&gathered(vec![said(1, None)], 1));
    let told = serde_json::to_value(&own).unwrap();
    assert!(told.get("summariser").is_none() && told["limits"]["context"].get("summary_window").is_none(), "{told}");
    // Records of before that know nothing of it are read, too.
    assert_eq!(serde_json::from_value::<Assembly>(told).unwrap(), own);
    for (window, smaller) in [(600, 600), (5_000, 1_000)] {
        let target = ModelTarget::Named("cheap".into());
        let given = Gathered { summariser: Some(Summariser { target: target.clone(), window }), ..gathered(vec![], 1) };
        let assembly = assemble(&given);
        assert_eq!((&assembly.target, assembly.summariser.as_ref()), (&ModelTarget::Default, Some(&target)));
        let context = assembly.limits.context.expect("it is compacted");
        assert_eq!((context.window, context.summary_window), (1_000, Some(smaller)));
    }
}

#[test]
fn the_agents_own_summary_stands_for_what_is_older() {
    let history = vec![
        said(1, None),
        summary(2, "ada", 1, "conversation"),
        said(3, None),
        said(4, Some("ada")),
        summary(5, "ada", 3, "conversation"),
        summary(6, "ben", 4, "conversation"),
        summary(7, "ada", 9, "turn"),
        said(8, None),
    ];
    let mut given = gathered(history, 8);
    given.found = vec!["tea".to_owned()];
    given.blocks = vec![
        MemoryBlock::new(MemoryTier::Core, "who", "Likes cats."),
        MemoryBlock::new(MemoryTier::Working, "task", "Count ships."),
    ];
    let assembly = assemble(&given);
    let texts = texts(&assembly);
    assert_eq!(texts[1], "[Context Summary: 3]");
    assert!(texts[0].contains("Likes cats.") && texts[2].contains("Count ships.") && texts[3].contains("tea"));
    assert_eq!(texts[4..], ["said 4", "said 8"], "nobody else's summary, and no turn's");
    assert_eq!(assembly.summary.as_ref().map(|known| (known.id.as_str(), known.upto)), Some(("m5", 3)));
    let placed: Vec<(u64, &str)> = assembly.history.iter().map(|one| (one.offset, texts[one.at].as_str())).collect();
    assert_eq!(placed, [(4, "said 4")]);
}

#[test]
fn a_newer_summary_takes_the_place_of_the_older_one_and_of_its_messages() {
    let history =
        vec![said(1, None), summary(2, "ada", 1, "conversation"), said(3, None), said(4, None), said(5, None)];
    let mut given = gathered(history, 5);
    given.blocks = vec![MemoryBlock::new(MemoryTier::Working, "task", "Count ships.")];
    let assembly = assemble(&given);
    let newest: Summary =
        serde_json::from_value(json!({"upto": 3, "text": "[Context Summary: new]", "batches": []})).unwrap();
    let request = Shown::of(&assembly, Some(&newest), &[]).request(false);
    let texts: Vec<String> = request.messages.iter().map(|message| message.plain_text()).collect();
    assert_eq!((texts.len(), texts[1].as_str()), (5, "[Context Summary: new]"));
    assert!(texts[2].contains("Count ships."));
    assert_eq!(texts[3..], ["said 4", "said 5"]);
}

/// What another turn is at work on is part of no summary, and stays for those after it.
#[test]
fn no_summary_reaches_beyond_a_message_that_is_being_answered() {
    let history: Vec<LogRow> = (1..=8).map(|n| said(n, None)).collect();
    let offsets = |given: &Gathered| -> Vec<u64> { assemble(given).history.iter().map(|one| one.offset).collect() };
    let mut given = gathered(history, 6);
    assert_eq!(offsets(&given), [1, 2, 3, 4, 5], "its own, when it was queued");
    given.in_work = vec![MessageId::parse("m3").unwrap()];
    assert_eq!(offsets(&given), [1, 2]);
    let assembly = assemble(&given);
    assert_eq!(texts(&assembly)[1..], ["said 1", "said 2", "said 4", "said 5", "said 7", "said 8", "said 6"]);
    for one in &assembly.history {
        assert_eq!(texts(&assembly)[one.at], format!("said {}", one.offset));
    }
}

#[test]
fn a_model_is_shown_records_of_some_kinds_and_what_is_in_others_changes_nothing() {
    let mut talk = Bench::new(json!({})).with_tool("look", json!({}));
    talk.say("find");
    talk.assemble();
    talk.reply("", &[("c1", "look", json!({}))]);
    let assembly: Assembly = talk.records(LogKind::Assembly)[0].body.to().unwrap();
    let request = |rows: &[LogRow]| Shown::of(&assembly, None, rows).request(false);
    // It reads as a record of any kind.
    let body = json!({"move": 2, "parts": [{"type": "text", "text": "x"}], "finish": "stop", "tool_call_id": "c1",
        "success": true, "result": "x", "operation_id": "o", "tool": "look", "text": "x", "scope": "turn", "upto": 1,
        "batches": []});
    for kind in LogKind::ALL {
        let rows = [talk.log.clone(), vec![row(99, kind, None, body.clone())]].concat();
        assert_eq!(request(&rows) != request(&talk.log), SHOWN.contains(&kind), "{kind:?}");
    }
}
