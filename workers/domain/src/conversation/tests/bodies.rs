//! Bodies: everything that is wrong is named, and a repeat means the same.

use schemas::action::ActionType;
use schemas::conversation::{Busy, LogKind, MessageRole, ParticipantKind, ParticipantRole, SenderType, Visibility};
use schemas::id::{ConversationId, Namespace, ParticipantId, UserId};
use schemas::limits::APPROVAL_ANSWER_BYTES_MAX;
use schemas::problem::{Code, Problem};
use serde_json::{Value, json};

use super::{conversation, fields, post_context, posted};
use crate::conversation::create::{self, CreateContext, NewConversation};
use crate::conversation::join::{self, Join, JoinContext};
use crate::conversation::post::{self, PostContext};
use crate::conversation::{CONVERSE, approval, branch, change};

#[test]
fn a_message_is_made_into_its_record() {
    let post = posted(json!({"message_id": "m1", "text": "hello\nthere", "user_id": "ana", "to": ["a1", "a1"],
                             "reply_to_message_id": "m0", "busy": "steer", "data": {"n": 1}, "name": "Ana",
                             "metadata": {"k": "v"}}));
    let message = &post.message;
    assert_eq!((message.message_id.as_str(), message.text.as_deref()), ("m1", Some("hello\nthere")));
    assert_eq!((message.sender_type, message.role), (SenderType::User, MessageRole::User));
    assert_eq!(message.user_id.as_ref().map(UserId::as_str), Some("ana"));
    assert_eq!((post.to.as_slice(), post.busy), (["a1".to_owned()].as_slice(), Some(Busy::Steer)));
    assert_eq!((post.record.kind, post.record.id.as_str(), post.record.at_ms), (LogKind::Message, "m1", 7));
    let body = post.record.body.to_value();
    assert_eq!(
        (&body["metadata"], &body["data"], &body["name"]),
        (&json!({"k": "v"}), &json!({"n": 1}), &json!("Ana"))
    );
    let read: schemas::conversation::Message = post.record.body.to().unwrap();
    assert_eq!(&read, message, "what a transcript reads is what was said");
}

#[test]
fn what_a_message_leaves_out_comes_from_the_context() {
    let post = posted(json!({"text": "hello"}));
    assert_eq!((post.message.message_id.as_str(), post.actor.as_str()), ("fresh", "token"));
    assert_eq!(post.message.user_id.as_ref().map(UserId::as_str), Some("token"));
    let keyed = PostContext { idempotency_key: Some("key".into()), ..post_context() };
    assert_eq!(post::parse(&json!({"text": "hello"}), keyed).unwrap().message.message_id.as_str(), "key");
}

#[test]
fn a_repeat_is_told_from_another_message() {
    let hash = |body: Value, now_ms: i64| {
        let post = post::parse(&body, PostContext { now_ms, ..post_context() }).unwrap();
        (post.body_hash, post.record.body.as_str().to_owned())
    };
    let one = json!({"message_id": "m1", "text": "hello", "to": ["a1"]});
    assert_eq!(hash(one.clone(), 1), hash(json!({"to": ["a1"], "text": "hello", "message_id": "m1"}), 2));
    for other in [
        json!({"message_id": "m1", "text": "hello!", "to": ["a1"]}),
        json!({"message_id": "m1", "text": "hello"}),
        json!({"message_id": "m1", "text": "hello", "to": ["a1"], "busy": "steer"}),
    ] {
        assert_ne!(hash(one.clone(), 1), hash(other, 1));
    }
}

#[test]
fn parts_are_texts_and_images() {
    let content = json!([{"type": "text", "text": "look: "},
                         {"type": "image", "source": {"type": "url", "url": "https://example.org/a.png"}},
                         {"type": "text", "text": "nice"}]);
    let post = posted(json!({"content": content}));
    assert_eq!((post.message.text.as_deref(), post.message.content), (Some("look: nice"), Some(content)));
    let image = json!([{"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": "AA=="}}]);
    assert_eq!(posted(json!({"content": image})).message.text, None);
    let wrong = json!({"content": [{"type": "text"}, {"type": "tool_result", "call_id": "x", "content": "y"}, "z"]});
    let problem = post::parse(&wrong, post_context()).unwrap_err();
    assert_eq!(fields(&problem), ["content[0]", "content[1]", "content[2]"]);
}

#[test]
fn every_wrong_field_of_a_message_is_named() {
    let refused = |body: Value| post::parse(&body, post_context()).unwrap_err();
    assert_eq!(fields(&refused(json!([]))), ["body"]);
    assert_eq!(fields(&refused(json!({}))), ["text"]);
    assert_eq!(fields(&refused(json!({"text": " \n"}))), ["text"]);
    let all = json!({"text": 1, "message_id": "a b", "to": "a1", "busy": "later", "user_id": "", "metadata": [],
                     "reply_to_message_id": "ü", "txt": "x"});
    let problem = refused(all);
    let mut named = fields(&problem);
    named.sort_unstable();
    assert_eq!(named, ["busy", "message_id", "metadata", "reply_to_message_id", "text", "to", "txt", "user_id"]);
    assert!(problem.detail.contains("did you mean \"text\""), "{}", problem.detail);
    assert_eq!(fields(&refused(json!({"text": "a", "content": [{"type": "text", "text": "b"}]}))), ["content"]);
    let keyed = PostContext { idempotency_key: Some("k".into()), ..post_context() };
    let both = post::parse(&json!({"text": "a", "message_id": "m"}), keyed).unwrap_err();
    assert_eq!(fields(&both), ["message_id"]);
}

fn create_context() -> CreateContext {
    CreateContext {
        namespace: Namespace::default_ns(),
        actor: "token".into(),
        user_id: UserId::parse("token").unwrap(),
        conversation_id: ConversationId::parse("fresh").unwrap(),
        idempotency_key: None,
        now_ms: 7,
    }
}

fn created(body: Value) -> Result<NewConversation, Box<Problem>> {
    create::parse(&body, &create_context())
}

#[test]
fn a_conversation_may_be_empty() {
    let new = created(json!({})).unwrap();
    assert_eq!(new.conversation.conversation_id.as_str(), "fresh");
    assert_eq!((new.conversation.created_by.as_str(), new.conversation.visibility), ("token", Visibility::Listed));
    assert_eq!(new.conversation.metadata.as_str(), "{}");
    assert_eq!(new.participants.len(), 1);
    assert_eq!((new.participants[0].kind, new.participants[0].role), (ParticipantKind::User, ParticipantRole::Owner));
    assert_eq!(new.records.len(), 1);
    assert_eq!(new.records[0].body.to_value()["type"], "conversation_started");
}

#[test]
fn agents_get_seats_and_sessions() {
    let body = json!({"conversation_id": "c9", "agents": [
        {"agent_id": "a1", "moniker": "echo"},
        {"agent_id": "a2", "moniker": "count", "config": {"until": 3}, "role": "observer"},
        {"agent_id": "a1", "moniker": "echo"}],
        "users": [{"user_id": "ben"}, {"user_id": "ben"}], "title": "T", "tags": ["x"], "subject_id": "s",
        "branch_context": {"repo_id": "r", "branch": "b"}, "metadata": {"k": 1}});
    let new = created(body.clone()).unwrap();
    assert_eq!(new.conversation.primary_agent_id.as_ref().unwrap().as_str(), "a1");
    assert_eq!(new.participants.len(), 5, "owner, ben, and three agents: {:?}", new.participants);
    assert_eq!(new.agents.len(), 3);
    for seat in &new.agents {
        let (session, create) = (seat.create.session.as_ref().unwrap(), &seat.create);
        assert_eq!(create.kind, ActionType::Create);
        assert_eq!(session.spec.conversation_id.as_ref().unwrap().as_str(), "c9");
        assert_eq!(Some(&session.session_id), seat.participant.session_id.as_ref());
        assert!(new.participants.contains(&seat.participant));
        assert_eq!(seat.started(true).unwrap().action_id, create.action_id);
    }
    let sessions: std::collections::BTreeSet<_> = new.agents.iter().map(|seat| &seat.participant.session_id).collect();
    assert_eq!(sessions.len(), 3, "the same agent twice is two sessions");
    assert_eq!(new.agents[1].participant.role, ParticipantRole::Observer);
    assert_eq!(new.agents[1].create.session.as_ref().unwrap().spec.config.to_value(), json!({"until": 3}));
    let again = created(body).unwrap();
    for (one, two) in new.agents.iter().zip(&again.agents) {
        assert_eq!((&one.create.action_id, one.create.body_hash), (&two.create.action_id, two.create.body_hash));
    }
}

#[test]
fn the_usual_moniker_is_the_one_that_talks() {
    // Whether this build has it or not: it is what is asked for.
    match created(json!({"agents": [{"agent_id": "a1"}]})) {
        Ok(new) => assert_eq!(new.agents[0].create.session.as_ref().unwrap().spec.moniker, CONVERSE),
        Err(problem) => assert!(problem.detail.contains(CONVERSE), "{}", problem.detail),
    }
}

#[test]
fn first_messages_keep_their_form() {
    let new = created(json!({"messages": [
        {"role": "system", "text": "Be brief.", "name": "rules", "metadata": {"v": 2}},
        {"role": "user", "content": [{"type": "text", "text": "hi"}], "user_id": "ben"}]}));
    let records = new.unwrap().records;
    let said: Vec<schemas::conversation::Message> =
        records[1..].iter().map(|record| record.body.to().unwrap()).collect();
    assert_eq!((said[0].sender_type, said[0].role), (SenderType::System, MessageRole::System));
    assert_eq!((said[0].name.as_deref(), &said[0].metadata), (Some("rules"), &Some(json!({"v": 2}))));
    assert_eq!((said[1].role, said[1].text.as_deref()), (MessageRole::User, Some("hi")));
    assert_eq!(said[1].content, Some(json!([{"type": "text", "text": "hi"}])));
    assert_ne!(records[1].id, records[2].id);
}

#[test]
fn every_wrong_field_of_a_conversation_is_named() {
    let problem = created(json!({
        "title": "", "tags": ["", 1], "metadata": 1, "visibility": "secret", "colour": "red",
        "agents": [{"agent_id": "a1", "moniker": "count", "config": {"untill": 3}}, {"role": "boss"}, 7],
        "users": [{}], "messages": [{"text": "x"}, {"role": "assistant", "text": "x"}, {"role": "user"}]}))
    .unwrap_err();
    for field in [
        "title",
        "tags[0]",
        "tags[1]",
        "metadata",
        "visibility",
        "colour",
        "agents[0].config.untill",
        "agents[1].agent_id",
        "agents[2]",
        "users[0].user_id",
        "messages[0].role",
        "messages[1].role",
        "messages[2].text",
    ] {
        assert!(fields(&problem).contains(&field), "{field} is not in {:?}", fields(&problem));
    }
    let stranger = created(json!({"agents": [{"agent_id": "a1", "moniker": "echo"}], "primary_agent_id": "a9"}));
    assert_eq!(fields(&stranger.unwrap_err()), ["primary_agent_id"]);
    let problem = created(json!({"agents": [{"agent_id": "a1", "moniker": "talk"}]})).unwrap_err();
    assert_eq!((problem.code, fields(&problem)), (Code::UnknownMoniker, vec!["agents[0].moniker"]));
}

fn joined(body: Value) -> Result<Join, Box<Problem>> {
    let ctx = JoinContext {
        namespace: Namespace::default_ns(),
        conversation_id: conversation(),
        actor: "token".into(),
        participant_id: ParticipantId::parse("fresh").unwrap(),
        idempotency_key: None,
    };
    join::parse(&body, ctx)
}

#[test]
fn users_agents_and_sessions_may_join() {
    let Join::User(user) = joined(json!({"user_id": "ben", "role": "owner"})).unwrap() else { panic!("a user") };
    assert_eq!((user.kind, user.role, user.agent_id.as_ref()), (ParticipantKind::User, ParticipantRole::Owner, None));
    assert_eq!(user.participant_id.as_str(), "fresh", "who has left can come back");
    let body = json!({"agent_id": "a1", "moniker": "echo", "participant_id": "p1"});
    let (Join::Agent(one), Join::Agent(two)) = (joined(body.clone()).unwrap(), joined(body).unwrap()) else {
        panic!("an agent");
    };
    assert_eq!(one.create.action_id, two.create.action_id, "a repeat with the same seat is the same session");
    assert_eq!(one.create.session.as_ref().unwrap().spec.conversation_id, Some(conversation()));
    let body = json!({"agent_id": "a1", "session_id": "s1", "role": "observer"});
    let Join::Session { participant, session_id, .. } = joined(body).unwrap() else { panic!("a session") };
    assert_eq!((participant.participant_id.as_str(), session_id.as_str()), ("fresh", "s1"));
    assert_eq!(participant.role, ParticipantRole::Observer);
}

#[test]
fn a_seat_is_the_same_for_the_same_one_only() {
    let join = joined(json!({"agent_id": "a1", "moniker": "echo", "participant_id": "p1"})).unwrap();
    let known = join.participant().clone();
    assert!(join.check_same(&known).is_ok(), "a repeat");
    let other = joined(json!({"user_id": "ben", "participant_id": "p1"})).unwrap();
    assert_eq!(fields(&other.check_same(&known).unwrap_err()), ["participant_id"]);
}

#[test]
fn what_makes_no_sense_does_not_join() {
    for (body, wrong) in [
        (json!({}), "agent_id"),
        (json!({"user_id": "u", "agent_id": "a", "moniker": "echo"}), "agent_id"),
        (json!({"user_id": "u", "config": {}}), "config"),
        (json!({"agent_id": "a", "session_id": "s", "config": {}}), "config"),
        (json!({"agent_id": "a b"}), "agent_id"),
        (json!({"agent_id": "a", "moniker": "echo", "role": "boss"}), "role"),
    ] {
        let problem = joined(body.clone()).unwrap_err();
        assert!(fields(&problem).contains(&wrong), "{body}: {:?}", fields(&problem));
    }
}

#[test]
fn a_conversation_has_a_branch_of_its_own_in_a_project() {
    let id = ConversationId::parse("c1").unwrap();
    let of = |project: Value| branch::context(&id, &serde_json::from_value(project).unwrap()).to_value();
    let plain = of(json!({"id": "p1", "name": "Site"}));
    assert_eq!(plain, json!({"project_id": "p1", "branch": "wonder/conv-c1", "base": "main"}));
    assert_eq!(of(json!({"id": "p1", "name": "Site", "default_branch": "trunk"}))["base"], "trunk");
}

#[test]
fn a_conversation_is_completed_and_never_opened_again() {
    let change = change::parse(&json!({"status": "completed", "title": "T", "tags": []})).unwrap();
    assert!(change.complete);
    assert_eq!((change.title.as_deref(), change.tags, change.metadata), (Some("T"), Some(Vec::new()), None));
    for (body, wrong) in [
        (json!({}), "body"),
        (json!({"status": "active"}), "status"),
        (json!({"title": null}), "title"),
        (json!({"colour": "red"}), "colour"),
        (json!({"metadata": "x"}), "metadata"),
    ] {
        assert_eq!(fields(&change::parse(&body).unwrap_err()), [wrong], "{body}");
    }
}

#[test]
fn an_approval_repeats_the_arguments() {
    let answer = approval::parse(&json!({"arguments_hash": "ff", "reason": "looks good"}), true, "token").unwrap();
    assert_eq!((answer.approved, answer.by.as_str(), answer.reason.as_deref()), (true, "token", Some("looks good")));
    assert_eq!(answer.answer, None);
    for (body, wrong) in [(json!({}), "arguments_hash"), (json!({"arguments_hash": 1}), "arguments_hash")] {
        assert_eq!(fields(&approval::parse(&body, true, "token").unwrap_err()), [wrong], "{body}");
    }
}

#[test]
fn an_answer_goes_with_a_yes_and_is_bounded() {
    let with = |answer: &Value| json!({"arguments_hash": "ff", "answer": answer});
    let parsed = |answer: Value, approved| approval::parse(&with(&answer), approved, "token");
    for answer in [json!("blue"), json!(0), json!(false), json!({"a": [1]})] {
        assert_eq!(parsed(answer.clone(), true).unwrap().answer, Some(answer));
    }
    assert_eq!(parsed(Value::Null, false).unwrap().answer, None);
    let long = "x".repeat(APPROVAL_ANSWER_BYTES_MAX);
    for (answer, approved) in [(json!("blue"), false), (json!(" "), true), (json!(long), true)] {
        assert_eq!(fields(&parsed(answer, approved).unwrap_err()), ["answer"]);
    }
}
