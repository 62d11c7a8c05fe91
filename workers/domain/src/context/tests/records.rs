//! Messages and turns as they are kept.

use super::*;
use crate::chat::{ChatReply, Finish, ImageSource, Usage};

fn round_trip(message: &ConversationMessage) -> ConversationMessage {
    let text = serde_json::to_string(message).expect("json");
    serde_json::from_str(&text).expect("a message")
}

/// S-149: any content comes back as it was, with name, metadata and times.
#[test]
fn s_149_messages_survive_a_round_trip() {
    let image = Part::Image { source: ImageSource::Url { url: "https://h/i.png".into() } };
    for content in [
        Content::from("plain"),
        Content::from(""),
        Content::from("[1]"),
        Content::from(vec![Part::text("see"), image]),
        Content::from(json!({"form": {"size": 3.5, "tags": [null, true]}})),
        Content::from(json!([])),
        Content::from(json!(["a", 1])),
        Content::from(json!(null)),
        Content::from(json!([{"type": "text", "text": "kept", "cache": "a field of a higher layer"}])),
        Content::from(json!([{"type": "tool_result", "call_id": "k", "content": "short form"}])),
    ] {
        let metadata = json!({"tokens": 3, "ui": {"fold": true}}).as_object().expect("an object").clone();
        let new = NewMessage { name: Some("ana".into()), metadata, ..NewMessage::new(MessageRole::Other, content) };
        let message = stored(1_893_456_000, new);
        assert_eq!(round_trip(&message), message);
    }
}

#[test]
fn content_is_read_as_what_a_model_can_be_shown() {
    let shown = |value: Value| Content::from(value).parts();
    assert_eq!(shown(json!("hi")), [Part::text("hi")]);
    assert_eq!(shown(json!({"a": 1})), [Part::text("{\"a\":1}")]);
    assert_eq!(shown(json!([{"type": "text", "text": "x", "cache": 1}])), [Part::text("x")], "a layer's own field");
    let short = json!([{"type": "tool_result", "call_id": "k", "content": "42"}]);
    assert_eq!(shown(short), [Part::tool_result("k", "42", false)]);
    assert_eq!(Content::from(vec![Part::text("a"), call("k"), Part::text("b")]).text(), "ab");
}

#[test]
fn a_message_in_json_has_the_names_of_the_tables() {
    let message = stored(0, Message::new(Role::Assistant, vec![Part::text("x"), call("k")]).into());
    let value = value_of(&message);
    assert_eq!((&value["event_type"], &value["role"]), (&json!("tool_call"), &json!("assistant")));
    assert_eq!(value["created_at"], "1970-01-01T00:00:00.000Z");
    assert!(value.get("metadata").is_none() && value.get("turn_id").is_none());
    assert_eq!(message.size(), value.to_string().len());
    let least = json!({"id": "m", "conversation_id": "c", "role": "user", "content": "x", "created_at": "2026-01-31T08:30:00Z"});
    let read: ConversationMessage = serde_json::from_value(least).expect("a message");
    assert_eq!((read.kind, read.created_at_ms), (MessageKind::Utterance, 1_769_848_200_000));
    let broken = json!({"id": "m", "conversation_id": "c", "role": "user", "content": "x", "created_at": "today"});
    assert!(serde_json::from_value::<ConversationMessage>(broken).is_err());
}

#[test]
fn replies_become_messages() {
    let reply = ChatReply {
        parts: vec![Part::text("hello")],
        finish: Finish::Stop,
        raw_finish: None,
        usage: None,
        provider: "openai".into(),
        model: "m".into(),
        message_id: Some("msg_1".into()),
        request_id: None,
        raw: json!({}),
    };
    let new = NewMessage::from(&reply);
    assert_eq!(
        (&new.content, new.kind, new.role),
        (&Content::from("hello"), MessageKind::Utterance, MessageRole::Assistant)
    );
    assert_eq!(new.provider_message_id.as_deref(), Some("msg_1"));
    let result = NewMessage::from(Message::new(Role::Tool, vec![Part::tool_result("k", "x", true)]));
    assert_eq!((result.kind, result.role), (MessageKind::ToolResult, MessageRole::Tool));
    assert_eq!(MessageRole::Other.for_model(), Role::User);
}

fn turn(status: TurnStatus) -> ConversationTurn {
    ConversationTurn {
        id: schemas::id::TurnId::parse("t").expect("an id"),
        conversation_id: ConversationId::parse("c").expect("an id"),
        agent: "ana".into(),
        input_messages: conversation("u"),
        output_messages: conversation("aca"),
        provider_calls: Vec::new(),
        status,
        trigger_type: Some("user_message".into()),
        started_at_ms: 1_000,
        finished_at_ms: None,
        error: None,
        metadata: serde_json::Map::new(),
    }
}

#[test]
fn a_turn_survives_its_json() {
    let mut one = turn(TurnStatus::Running);
    assert_eq!(serde_json::from_value::<ConversationTurn>(value_of(&one)).expect("a turn"), one);
    one.finished_at_ms = Some(2_000);
    one.error = Some(TurnError::new("provider_failed", "no"));
    let value = value_of(&one);
    assert_eq!((&value["finished_at"], &value["status"]), (&json!("1970-01-01T00:00:02.000Z"), &json!("running")));
    assert_eq!(serde_json::from_value::<ConversationTurn>(value).expect("a turn"), one);
    assert_eq!(one.text(), "a0\n\nc1\n\na2");
}

#[test]
fn the_usage_of_a_turn_is_that_of_its_calls() {
    let context = crate::chat::CallContext::default();
    let call = |usage: Option<Usage>| crate::chat::ProviderCallRecord {
        usage,
        ..crate::chat::ProviderCallRecord::open("p", &context, "x", "y", false, 0)
    };
    let usage = |input: u64, output: u64| Usage {
        input_tokens: input,
        output_tokens: output,
        total_tokens: input + output,
        breakdown: Some(json!({"x": 1})),
        ..Usage::default()
    };
    let mut one = turn(TurnStatus::Succeeded);
    assert_eq!(one.usage(), None);
    one.provider_calls = vec![call(None)];
    assert_eq!(one.usage(), None);
    one.provider_calls = vec![call(Some(usage(3, 4))), call(None), call(Some(usage(10, u64::MAX - 10)))];
    let sum = one.usage().expect("usage");
    assert_eq!((sum.input_tokens, sum.output_tokens, sum.total_tokens), (13, u64::MAX - 6, u64::MAX));
    assert_eq!(sum.breakdown, None);
}

/// K-02, S-134: what is stored, and what is seen of it.
#[test]
fn s_134_a_turn_cut_off_on_purpose_reads_cancelled() {
    use StoredTurnStatus::{Active, Completed, Failed};
    let seen = |status, phase, cancelled| turn_status(StoredTurn { status, phase, cancelled });
    assert_eq!(seen(Active, Some(TurnPhase::Queued), false), TurnStatus::Pending);
    for phase in [
        TurnPhase::Assembling,
        TurnPhase::Thinking,
        TurnPhase::WaitingTool,
        TurnPhase::WaitingAgent,
        TurnPhase::WaitingAsync,
        TurnPhase::Responding,
    ] {
        assert_eq!(seen(Active, Some(phase), false), TurnStatus::Running, "waiting is a phase of running");
    }
    assert_eq!(seen(Completed, None, false), TurnStatus::Succeeded);
    assert_eq!((seen(Failed, None, false), seen(Failed, None, true)), (TurnStatus::Failed, TurnStatus::Cancelled));
    for status in TurnStatus::ALL {
        assert_eq!(turn_status(status.stored()), status);
        assert_eq!(value_of(&status), status.as_str());
        assert_eq!(status.has_ended(), status.stored().status != Active);
    }
}
