//! What transcripts, turns and streams show of a log.

use schemas::conversation::{
    ApprovalRequest, EventType, FrameBody, LogKind, LogRecord, LogRow, MessageRole, Operation, OperationKind,
    OperationState, SenderType, TokenKind,
};
use schemas::definition::EffectClass;
use schemas::id::{AgentId, ConversationId, Epoch, MessageId, Namespace, OperationId, SessionId, TurnId};
use schemas::json::Json;
use schemas::limits::ID_BYTES_MAX;
use schemas::problem::Code;
use serde_json::{Value, json};

use super::{conversation, fields, posted};
use crate::chat::ChatDelta;
use crate::conversation::approval::{self, Answer};
use crate::conversation::kept::{self, KeptBody, KeptRecords, LogPlace};
use crate::conversation::{moves, stream, transcript, view};
use crate::converse;

fn row(offset: u64, kind: LogKind, body: Value) -> LogRow {
    LogRow {
        offset,
        record: LogRecord {
            kind,
            id: format!("r{offset}"),
            turn_id: Some(TurnId::parse("t1").unwrap()),
            agent_id: Some(AgentId::parse("a1").unwrap()),
            session_id: Some(SessionId::parse("s1").unwrap()),
            at_ms: 1_000,
            body: Json::of(&body),
        },
    }
}

fn log() -> Vec<LogRow> {
    let message = LogRow { offset: 1, record: posted(json!({"message_id": "m1", "text": "hi"})).record };
    vec![
        message,
        row(2, LogKind::Assembly, json!({"request": "secret"})),
        row(
            3,
            LogKind::Move,
            json!({"move": 1, "reasoning": "hm", "tool_calls": [{"id": "k1", "name": "look", "input": {}},
                                     {"id": "k2", "name": "look", "input": {}}], "finish": "tool_calls"}),
        ),
        row(4, LogKind::ProviderCall, json!({"model": "x"})),
        row(5, LogKind::ToolResult, json!({"move": 1, "tool_call_id": "k1", "success": true, "result": "a cat"})),
        row(
            6,
            LogKind::ToolResult,
            json!({"move": 1, "tool_call_id": "k2", "success": false,
                                           "error": {"code": "TIMEOUT", "message": "too slow"}}),
        ),
        row(
            7,
            LogKind::AsyncResult,
            json!({"operation_id": "o1", "tool": "fetch", "success": true, "result": {"n": 1}}),
        ),
        row(8, LogKind::Note, json!({"text": "be quick", "from": "user"})),
        row(9, LogKind::Move, json!({"move": 2, "tool_calls": [], "finish": "stop"})),
        row(10, LogKind::Summary, json!({"upto": 8, "text": "they talked"})),
        row(11, LogKind::Event, json!({"type": "turn.completed", "issues": {}})),
    ]
}

#[test]
fn everything_can_be_shown_as_messages() {
    let shown: Vec<_> = log().iter().filter_map(transcript::message_view).collect();
    let kinds: Vec<(u64, EventType, MessageRole, Option<&str>)> = shown
        .iter()
        .map(|view| (view.offset, view.message.event_type, view.message.role, view.message.text.as_deref()))
        .collect();
    assert_eq!(
        kinds,
        [
            (1, EventType::Utterance, MessageRole::User, Some("hi")),
            (3, EventType::ToolCall, MessageRole::Assistant, Some("hm")),
            (5, EventType::ToolResult, MessageRole::Tool, Some("a cat")),
            (6, EventType::ToolResult, MessageRole::Tool, Some("too slow")),
            (7, EventType::ToolResult, MessageRole::Tool, None),
            (8, EventType::Status, MessageRole::System, Some("be quick")),
            (10, EventType::Summary, MessageRole::System, Some("they talked")),
            (11, EventType::Status, MessageRole::Other, Some("turn.completed")),
        ]
    );
    assert_eq!((shown[1].message.sender_type, shown[5].message.sender_type), (SenderType::Agent, SenderType::System));
    assert_eq!(shown[4].message.data.as_ref().unwrap()["result"], json!({"n": 1}));
    assert_eq!(shown[1].created_at, "1970-01-01T00:00:01.000Z");
}

#[test]
fn moves_have_their_results() {
    let moves = moves::moves(log().iter());
    assert_eq!(moves.len(), 2);
    assert_eq!((moves[0].number, moves[0].tool_calls.len(), moves[0].tool_results.len()), (Some(1), 2, 2));
    assert_eq!(moves[0].tool_results[1]["tool_call_id"], "k2");
    assert_eq!((moves[1].number, moves[1].tool_results.len()), (Some(2), 0));
    assert_eq!(moves[1].finish, Some(json!("stop")));
}

#[test]
fn results_that_come_late_belong_to_the_move_that_called() {
    let mut rows = log();
    let late = |offset, more: Value| {
        let mut body = json!({"operation_id": "o2", "tool": "fetch", "success": true, "result": offset});
        body.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        row(offset, LogKind::AsyncResult, body)
    };
    rows.push(late(12, json!({"move": 1, "tool_call_id": "k1"})));
    // Of an earlier release: by the id of the call, or not at all.
    rows.push(late(13, json!({"tool_call_id": "k2"})));
    rows.push(late(14, json!({"tool_call_id": "k9"})));
    let moves = moves::moves(rows.iter());
    let results = |index: usize| -> Vec<Value> {
        moves[index].tool_results.iter().map(|result| result["result"].clone()).collect()
    };
    assert_eq!((results(0), results(1)), (vec![json!("a cat"), Value::Null, json!(12), json!(13)], vec![]));
    let mut kept = KeptRecords::default();
    let place = LogPlace { namespace: Namespace::default_ns(), conversation_id: conversation(), offset: 12 };
    kept.add(&place, &rows[11]).unwrap();
    let one = &kept.moves[0];
    assert_eq!((one.sequence, one.tool_results.as_ref().unwrap().to_value()[0]["result"].clone()), (1, json!(12)));
}

#[test]
fn moves_are_read_page_by_page_and_fewer_of_them_where_their_results_are_too_much() {
    let called = |number: u64| {
        let id = format!("k{number}");
        let calls = json!([{"id": id, "name": "fetch", "input": {}}]);
        row(number, LogKind::Move, json!({"move": number, "tool_calls": calls, "in_background": [[id, "o"]]}))
    };
    let late = |offset: u64, number: u64| {
        let (call, result) = (format!("k{number}"), "x".repeat(1_000));
        let body =
            json!({"move": number, "tool_call_id": call, "operation_id": "o", "success": true, "result": result});
        row(offset, LogKind::AsyncResult, body)
    };
    let mut moves = moves::Moves::default();
    moves.add([called(1), called(2), called(3)].iter());
    moves.add([late(4, 1), late(5, 9)].iter());
    assert_eq!((moves.shorten(2_000), moves.lack_results()), (None, true), "results of others are none of theirs");
    moves.add([late(6, 2)].iter());
    assert_eq!((moves.shorten(2_000), moves.lack_results()), (Some(2), false));
    assert_eq!(moves.shorten(0), None, "one stays");
    let views = moves.into_views();
    assert_eq!((views.len(), views[0].tool_results.len()), (1, 1));
}

#[test]
fn a_move_is_shown_with_so_many_bytes_of_results() {
    let calls: Vec<String> = (0..40).map(|n| format!("k{n}")).collect();
    let in_background: Vec<Value> = calls.iter().map(|call| json!([call, "o"])).collect();
    let mut moves = moves::Moves::default();
    moves.add([row(1, LogKind::Move, json!({"move": 1, "in_background": in_background}))].iter());
    for (offset, call) in (2..).zip(&calls) {
        let body = json!({"move": 1, "tool_call_id": call, "success": true, "result": "x".repeat(1 << 20)});
        moves.add([row(offset, LogKind::AsyncResult, body)].iter());
        assert_eq!(moves.is_last_cut(), offset > 32, "32 MiB less what is around them");
    }
    let small = json!({"move": 1, "tool_call_id": "small", "success": true, "result": null});
    moves.add([row(99, LogKind::AsyncResult, small)].iter());
    assert!(!moves.lack_results(), "nobody need look for what would be left out");
    let results = moves.into_views().remove(0).tool_results;
    assert_eq!((results.len(), &results[30]["tool_call_id"]), (31, &json!("k30")), "the first ones");
}

#[test]
fn the_archive_keeps_messages_and_moves_with_their_results() {
    let mut kept = KeptRecords::default();
    let at = |offset| LogPlace { namespace: Namespace::default_ns(), conversation_id: conversation(), offset };
    for row in log() {
        kept.add(&at(row.offset), &row).unwrap();
    }
    let ids = kept.ids();
    let offsets = |ids: &[(u64, String)]| ids.iter().map(|(offset, _)| *offset).collect::<Vec<_>>();
    assert_eq!(offsets(&ids.messages), [1, 3, 5, 6, 7, 8, 10, 11]);
    assert_eq!(offsets(&ids.moves), [3, 5, 6, 7, 9]);
    assert_eq!(offsets(&ids.records), [2, 3, 4, 5, 6, 7, 9]);
    assert_eq!(kept.records[0].record, log()[1].record);
    let moves: Vec<_> =
        kept.moves.iter().map(|one| (one.sequence, one.tool_calls.is_some(), one.tool_results.is_some())).collect();
    let late = (0, false, true);
    assert_eq!(moves, [(1, true, false), (1, false, true), (1, false, true), late, (2, false, false)]);
    assert_eq!(kept.moves[1].tool_results.as_ref().unwrap().to_value()[0]["result"], "a cat");
    let no_message = row(12, LogKind::Message, json!({"text": "of nobody"}));
    assert!(kept.add(&at(12), &no_message).is_err());
    assert_eq!(kept.ids(), ids);
}

#[test]
fn only_light_turns_that_called_tools_need_their_bodies() {
    let light = |offset, kind, turn: &str| {
        let mut row = row(offset, kind, json!(100));
        row.record.turn_id = Some(TurnId::parse(turn).unwrap());
        row
    };
    let whole = |offset, kind| row(offset, kind, json!({"text": "x"}));
    let (reply, result, late) = (LogKind::Move, LogKind::ToolResult, LogKind::AsyncResult);
    assert_eq!(kept::light_calls(&[whole(9, result), whole(8, reply)]), None, "nothing is light");
    assert_eq!(kept::light_calls(&[light(9, reply, "t2"), light(8, reply, "t1")]), None, "their messages tell of them");
    assert_eq!(kept::light_calls(&[whole(9, result), light(8, reply, "t2")]), None, "a result of another turn");
    // From the first to the last light one, whichever comes first; one result is enough.
    let mut rows =
        vec![light(9, reply, "t2"), whole(8, LogKind::Message), light(7, result, "t1"), light(6, reply, "t1")];
    assert_eq!(kept::light_calls(&rows), Some((6, 9)));
    rows.reverse();
    assert_eq!(kept::light_calls(&rows), Some((6, 9)));
    // The result may be whole still.
    assert_eq!(kept::light_calls(&[whole(9, late), light(3, reply, "t1")]), Some((3, 3)));
}

#[test]
fn light_records_are_as_long_as_they_were_and_get_their_own_bodies_back() {
    let whole = log();
    let bytes = |row: &LogRow| row.record.body.as_str().len();
    let lighten = |row: &LogRow| {
        let is_heavy = kept::HEAVY.contains(&row.record.kind);
        let body = if is_heavy { Json::of(&bytes(row)) } else { row.record.body.clone() };
        LogRow { offset: row.offset, record: LogRecord { body, ..row.record.clone() } }
    };
    let lightened: Vec<LogRow> = whole.iter().map(lighten).collect();
    assert_eq!(kept::light(&lightened), [2, 3, 4, 5, 6, 7, 9]);
    assert!(kept::light(&whole).is_empty(), "a body is an object");
    // A page ends where it would have ended.
    for limit in [0, 1, bytes(&whole[0]), bytes(&whole[0]) + bytes(&whole[1]), 300, usize::MAX] {
        let (mut one, mut other) = (whole.clone(), lightened.clone());
        kept::cut(&mut one, limit);
        kept::cut(&mut other, limit);
        assert_eq!(one.len(), other.len(), "within {limit} bytes");
        assert!(!one.is_empty() && (limit < usize::MAX || one.len() == whole.len()));
    }
    // A light one is not archived for its body.
    let mut records = KeptRecords::default();
    let place = LogPlace { namespace: Namespace::default_ns(), conversation_id: conversation(), offset: 2 };
    records.add_whole(&place, &lightened[1]);
    assert!(records.is_empty());
    let body = |row: &LogRow| {
        let record = row.record.clone();
        KeptBody { offset: row.offset, id: record.id, body: record.body }
    };
    let mut filled = lightened.clone();
    let mut bodies: Vec<KeptBody> = whole.iter().rev().map(body).collect();
    kept::fill(&mut filled, bodies.clone());
    assert_eq!(filled, whole);
    // Another one was in the same place before.
    let others = bodies.iter().map(|kept| KeptBody { id: "other".to_owned(), body: Json::null(), ..kept.clone() });
    let mut filled = lightened.clone();
    kept::fill(&mut filled, bodies.iter().cloned().chain(others).collect());
    assert_eq!(filled, whole);
    // Neither one that is not there nor that of another record.
    bodies.retain(|kept| kept.offset != 9);
    bodies.iter_mut().filter(|kept| kept.offset == 3).for_each(|kept| kept.id = "other".to_owned());
    let mut filled = lightened;
    kept::fill(&mut filled, bodies);
    assert_eq!(kept::light(&filled), [3, 9]);
}

#[test]
fn a_row_is_one_frame_at_most() {
    let frames: Vec<_> = log().iter().filter_map(|row| stream::committed(&conversation(), row)).collect();
    let told: Vec<(Option<u64>, &str)> = frames.iter().map(|frame| (frame.offset, frame.body.name())).collect();
    assert_eq!(
        told,
        [
            (Some(1), "message"),
            (Some(3), "tool_call"),
            (Some(5), "tool_result"),
            (Some(6), "tool_result"),
            (Some(7), "tool_result"),
            (Some(8), "note"),
            (Some(10), "summary"),
            (Some(11), "event"),
        ]
    );
    let json = serde_json::to_value(&frames[1]).unwrap();
    assert_eq!((&json["v"], &json["type"], &json["move"]), (&json!(1), &json!("tool_call"), &json!(1)));
    assert_eq!((&json["conversation_id"], json["calls"].as_array().unwrap().len()), (&json!("c1"), 2));
    let FrameBody::ToolResult(result) = &frames[4].body else { panic!("{:?}", frames[4]) };
    assert!(result.is_async);
    let FrameBody::Event(event) = &frames[7].body else { panic!("{:?}", frames[7]) };
    assert_eq!(event.name, "turn.completed");
}

#[test]
fn calls_are_told_with_the_id_that_their_pieces_had() {
    let message_id = |turn: &str, number: Value| {
        let mut row = row(3, LogKind::Move, json!({"move": number, "tool_calls": [{"id": "k1", "name": "look"}]}));
        row.record.turn_id = Some(TurnId::parse(turn).unwrap());
        match stream::committed(&conversation(), &row).unwrap().body {
            FrameBody::ToolCall(frame) => frame.message_id,
            other => panic!("{other:?}"),
        }
    };
    assert_eq!(message_id("t1", json!(1)), Some(MessageId::parse("t1.m1").unwrap()));
    // Of a long one the id is a hash, which nobody can read the number from.
    let long = "t".repeat(ID_BYTES_MAX);
    let (found, own) = (message_id(&long, json!(12)), converse::message_id(&TurnId::parse(&long).unwrap(), 12));
    assert!(found.as_ref() == Some(&own) && !own.as_str().contains('.'), "{found:?} {own:?}");
    assert_eq!(message_id("t1", Value::Null), None);
    assert_eq!(message_id("t1", json!(u64::MAX)), None);
}

#[test]
fn pieces_are_tokens_of_three_kinds() {
    let (turn, message) = (TurnId::parse("t1").unwrap(), MessageId::parse("m1").unwrap());
    let token = |delta| match stream::token(&turn, &message, (2, 5), delta) {
        Some(FrameBody::Token(token)) => Some(token),
        _ => None,
    };
    let text = token(ChatDelta::Text { part: 1, text: "he".into() }).unwrap();
    assert_eq!((text.kind, text.text.as_str(), text.attempt, text.index, text.part), (TokenKind::Text, "he", 2, 5, 1));
    let thought = token(ChatDelta::Reasoning { part: 0, text: "hm".into() }).unwrap();
    assert_eq!(thought.kind, TokenKind::Reasoning);
    let delta =
        ChatDelta::ToolCall { part: 2, id: Some("k1".into()), name: Some("look".into()), arguments: "{".into() };
    let call = token(delta).unwrap();
    assert_eq!((call.kind, call.text.as_str(), call.name.as_deref()), (TokenKind::ToolCall, "{", Some("look")));
    assert_eq!(token(ChatDelta::Usage { usage: Default::default() }), None);
}

#[test]
fn attempts_of_a_later_owner_are_above_all_of_the_owners_before() {
    let epochs = [0, 1, 2, 3, 1_000_000, i64::from(u32::MAX / 64)].map(Epoch);
    let numbers: Vec<u32> =
        epochs.iter().flat_map(|epoch| [1, 2, 3, 63].map(|made| stream::attempt(*epoch, made))).collect();
    assert!(numbers.windows(2).all(|pair| pair[0] < pair[1]), "{numbers:?}");
    assert_eq!((numbers[0], numbers[4]), (1, 65), "a release without epochs counts as one before the first");
    assert_eq!(stream::attempt(Epoch(i64::MAX), u32::MAX), u32::MAX);
    assert_eq!(stream::attempt(Epoch(-1), 1), 1);
}

#[test]
fn attempts_of_one_owner_only_grow_and_never_into_the_next_ones() {
    let (epoch, end) = (Epoch(2), stream::attempt(Epoch(2), 63));
    let mut numbers = vec![stream::attempt_after(epoch, None)];
    while numbers.last() != Some(&end) {
        numbers.push(stream::attempt_after(epoch, numbers.last().copied()));
    }
    assert_eq!((numbers[0], numbers.len()), (stream::attempt(epoch, 1), 63));
    assert_eq!(stream::attempt_after(epoch, Some(end)), end);
    assert_eq!(stream::attempt_after(Epoch(3), Some(numbers[4])), stream::attempt(Epoch(3), 1));
    assert_eq!(stream::attempt_after(Epoch(i64::MAX), Some(u32::MAX)), u32::MAX);
}

fn operation(kind: OperationKind) -> Operation {
    Operation {
        operation_id: OperationId::parse("o1").unwrap(),
        session_id: SessionId::parse("s1").unwrap(),
        conversation_id: ConversationId::parse("c1").unwrap(),
        turn_id: TurnId::parse("t1").unwrap(),
        tool_call_id: "k1".into(),
        tool: "rm".into(),
        kind,
        pool: String::new(),
        state: OperationState::Pending,
        request: Json::of(&json!({})),
        approval: Some(ApprovalRequest { arguments_hash: "ff".into(), expires_ms: 1_000, default_approve: false }),
        effect_class: EffectClass::Idempotent,
        attempt: 0,
        lost: 0,
        max_attempts: 1,
        backoff_ms: 0,
        timeout_ms: 1_000,
        wait_ms: None,
        is_async: false,
        created_at_ms: 0,
        due_at_ms: 0,
        claimed_by: None,
        until_ms: None,
        error: None,
    }
}

#[test]
fn nobody_is_shown_what_a_program_may_call() {
    let request = |context: Value| Json::of(&json!({"input": {"code": "toolbox"}, "context": context}));
    let shown = |request| view::operation(&Operation { request, ..operation(OperationKind::Task) }).operation.request;
    let given = request(json!({"agent_id": "a1", "toolbox": {"tools": []}}));
    assert_eq!(shown(given).to_value(), request(json!({"agent_id": "a1"})).to_value());
    let without = request(json!({"agent_id": "a1"}));
    assert_eq!(shown(without.clone()), without);
}

#[test]
fn an_answer_counts_for_what_was_asked() {
    let ns = Namespace::default_ns();
    let answer = |hash: &str, approved| Answer {
        approved,
        arguments_hash: hash.into(),
        by: "ana".into(),
        reason: None,
        answer: None,
    };
    let action = approval::result(&ns, &operation(OperationKind::Approval), &answer("ff", true)).unwrap();
    let payload = action.payload.to_value();
    assert_eq!(
        (&payload["success"], &payload["result"]["approved"], &payload["result"]["by"]),
        (&json!(true), &json!(true), &json!("ana"))
    );
    assert_eq!((&payload["operation_id"], &payload["turn_id"]), (&json!("o1"), &json!("t1")));
    let no = approval::result(&ns, &operation(OperationKind::Approval), &answer("ff", false)).unwrap();
    assert_eq!(no.action_id, action.action_id, "of two answers one counts");
    assert_ne!(no.body_hash, action.body_hash);
    let code = |kind, hash| approval::result(&ns, &operation(kind), &answer(hash, true)).unwrap_err().code;
    assert_eq!(code(OperationKind::Approval, "fe"), Code::ApprovalMismatch);
    assert_eq!(code(OperationKind::Task, "ff"), Code::NoOpenOperation);
}

/// A question of kind `human`, with these settings, about a report.
fn asked(config: Value, more: Value) -> Operation {
    let mut request = json!({"target_type": "task", "target_id": "ask", "version": 1, "action_id": "ask-ana",
        "action_version": 1, "kind": "human", "operation": "input", "config": config, "input": {"report": "Q3"}});
    request.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
    Operation { request: Json::of(&request), ..operation(OperationKind::Approval) }
}

#[test]
fn a_person_is_shown_the_question() {
    let question = |operation: &Operation| view::operation(operation).question;
    let filled =
        asked(json!({"question": "May {{report}} of {{context.tool}} go out, {{context.turn_id}}?"}), json!({}));
    assert_eq!(question(&filled).as_deref(), Some("May Q3 of rm go out, t1?"));
    let broken = asked(json!({"question": "May {{report go out?"}), json!({}));
    assert_eq!(question(&broken).as_deref(), Some("May {{report go out?"), "as it was written");
    assert_eq!(question(&asked(json!({}), json!({}))), None);
    let long = asked(json!({"question": "ü".repeat(9_000)}), json!({}));
    assert_eq!(question(&long).map(|text| text.chars().count()), Some(8_002));
    let of_budget = Json::of(&json!({"target_type": "budget", "question": "Go on?"}));
    let of_budget = Operation { request: of_budget, ..operation(OperationKind::Approval) };
    assert_eq!(question(&of_budget).as_deref(), Some("Go on?"));
    // What a model says is no question of ours.
    let own = Json::of(&json!({"input": {"question": "Sure?"}}));
    assert_eq!(question(&Operation { request: own.clone(), ..operation(OperationKind::Approval) }), None);
    assert_eq!(question(&Operation { request: own, ..operation(OperationKind::Task) }), None);
}

#[test]
fn a_person_may_answer_more_than_yes_where_that_is_asked() {
    let ns = Namespace::default_ns();
    let given = |answer: Value| Answer {
        approved: true,
        arguments_hash: "ff".into(),
        by: "ana".into(),
        reason: None,
        answer: Some(answer),
    };
    let result = |operation: &Operation, answer| approval::result(&ns, operation, &given(answer));
    let said = result(&asked(json!({}), json!({})), json!("blue")).unwrap().payload.to_value();
    assert_eq!((&said["result"]["approved"], &said["result"]["answer"]), (&json!(true), &json!("blue")));
    let refused = result(&operation(OperationKind::Approval), json!("blue")).unwrap_err();
    assert_eq!((refused.code, fields(&refused)), (Code::InvalidRequest, vec!["answer"]));
    let schema = json!({"output_schema": {"type": "object", "properties": {"colour": {"type": "string"}},
        "required": ["colour"]}, "output_mapping": {"colour": "c"}});
    let typed = asked(json!({}), schema);
    let said = result(&typed, json!({"c": "blue", "d": 1})).unwrap().payload.to_value();
    assert_eq!(said["result"]["answer"], json!({"colour": "blue"}), "mapped and checked");
    let refused = result(&typed, json!({"c": 1})).unwrap_err();
    assert_eq!(fields(&refused), ["answer"]);
    assert!(refused.errors[0].message.contains("/colour"), "{:?}", refused.errors);
}
