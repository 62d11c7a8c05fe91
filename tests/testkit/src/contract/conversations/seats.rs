//! Contract of what the log says of those who come and go.

use domain::ports::{ConversationChange, Inserted};
use schemas::conversation::{ConversationStatus, LogKind, LogRow, Participant};
use schemas::id::TurnId;
use serde_json::{Value, json};

use super::super::Ports;
use super::super::build::*;
use super::super::words::*;
use super::{create, done, ns, post};

pub(super) async fn suite(make: &impl AsyncFn() -> Ports) {
    joining_and_leaving_are_in_the_log_once(&make().await).await;
    sessions_that_are_created_join_once(&make().await).await;
    who_was_removed_before_the_session_began_stays_away(&make().await).await;
    nothing_is_said_of_founders_or_when_it_is_over(&make().await).await;
    many_at_once_join_and_leave_once(&make().await).await;
}

async fn join(ports: &Ports, who: &Participant) -> Inserted<Participant> {
    ports.conversations.join(&ns(), &conversation_id("c1"), who).await.expect("a write").expect("it is there")
}

async fn leave(ports: &Ports, who: &str) -> Participant {
    let left = ports.conversations.leave(&ns(), &conversation_id("c1"), &participant_id(who)).await;
    left.expect("a write").expect("they were there")
}

/// A conversation in which something was said.
async fn begun(ports: &Ports) {
    create(ports, &conversation("c1")).await;
    done(ports, post(message("m1", "hello"), Vec::new())).await;
}

fn told(rows: &[LogRow]) -> Vec<(String, String)> {
    gapless(rows);
    let events = rows.iter().filter(|row| row.record.kind == LogKind::Event);
    let said = |body: Value| {
        let text = |value: &Value| value.as_str().expect("a text").to_owned();
        (text(&body["type"]), text(&body["participant"]["participant_id"]))
    };
    events.map(|row| said(row.record.body.to_value())).collect()
}

fn of(expected: &[(&str, &str)]) -> Vec<(String, String)> {
    expected.iter().map(|(what, who)| (format!("participant_{what}"), (*who).to_owned())).collect()
}

async fn joining_and_leaving_are_in_the_log_once(ports: &Ports) {
    begun(ports).await;
    let speaker = agent("p2", "agent", "s1");
    let Inserted::New(joined) = join(ports, &user("p1", "ana")).await else { panic!("she is new") };
    for _ in 0..2 {
        join(ports, &user("p1", "ana")).await;
        join(ports, &user("p9", "ana")).await;
        join(ports, &speaker).await;
    }
    let left = leave(ports, "p2").await;
    assert_eq!(leave(ports, "p2").await, left);
    join(ports, &speaker).await;
    let back = agent("p3", "agent", "s1");
    assert!(matches!(join(ports, &back).await, Inserted::New(_)), "who left may come back");
    let rows = ports.log_of("c1").await;
    assert_eq!(told(&rows), of(&[("joined", "p1"), ("joined", "p2"), ("left", "p2"), ("joined", "p3")]));
    assert_eq!((rows[1].record.at_ms, Some(rows[3].record.at_ms)), (joined.joined_at_ms, left.left_at_ms));
    let participant = json!({"participant_id": "p2", "type": "agent", "agent_id": "agent", "session_id": "s1",
                             "role": "responder"});
    assert_eq!(rows[3].record.body.to_value(), json!({"type": "participant_left", "participant": participant}));
    assert_eq!(rows[3].record.session_id, Some(session_id("s1")));
    assert_eq!(ports.forum("c1").await.last_offset, 5);
}

async fn sessions_that_are_created_join_once(ports: &Ports) {
    begun(ports).await;
    let seated = agent("p1", "agent", "s1");
    join(ports, &seated).await;
    let seat = create_in("a1", "s1", "agent", "c1");
    let mut brought = create_in("a2", "s2", "helper", "c1");
    let by = TurnId::parse("t1").expect("an id");
    brought.session.as_mut().expect("a session").added_by_turn_id = Some(by.clone());
    for _ in 0..2 {
        ports.accept(seat.clone()).await;
        ports.accept(brought.clone()).await;
    }
    let expected = of(&[("joined", "p1"), ("joined", "s2")]);
    assert_eq!(told(&ports.log_of("c1").await), expected, "who has a seat already does not join again");
    let found = ports.conversations.participants(&ns(), &conversation_id("c1")).await.expect("a read");
    assert_eq!(found.len(), 2);
    assert_eq!(found[1].added_by_turn_id, Some(by));
    // As the outbox of a step, after what the step says.
    let owner = worker("w1");
    let mut calls = ports
        .saying(&owner, "s1", schemas::conversation::Talk { log: vec![note("asked")], ..Default::default() })
        .await;
    calls.follow_ups = vec![create_in("a3", "s3", "other", "c1")];
    ports.commit_one(&owner, calls).await;
    let rows = ports.log_of("c1").await;
    assert_eq!((rows[3].record.id.as_str(), told(&rows).len()), ("asked", 3));
    assert_eq!(rows[4].record.session_id, Some(session_id("s3")));
}

async fn who_was_removed_before_the_session_began_stays_away(ports: &Ports) {
    begun(ports).await;
    join(ports, &agent("p1", "agent", "s1")).await;
    leave(ports, "p1").await;
    for _ in 0..2 {
        ports.accept(create_in("a1", "s1", "agent", "c1")).await;
    }
    assert_eq!(ports.row(&key("s1")).await.agent_id, agent_id("agent"), "it is there all the same");
    assert_eq!(told(&ports.log_of("c1").await), of(&[("joined", "p1"), ("left", "p1")]));
    let seats = ports.conversations.participants(&ns(), &conversation_id("c1")).await.expect("a read");
    assert_eq!(seats.len(), 1, "{seats:?}");
    assert!(matches!(join(ports, &agent("p2", "agent", "s1")).await, Inserted::New(_)), "whoever asks brings it back");
}

async fn nothing_is_said_of_founders_or_when_it_is_over(ports: &Ports) {
    let here = [user("p1", "ana")];
    ports.conversations.create(&ns(), &conversation("c1"), &here, &[note("n1")]).await.expect("created");
    assert_eq!(gapless(&ports.log_of("c1").await), ["n1"]);
    let over = ConversationChange { status: Some(ConversationStatus::Completed), ..ConversationChange::default() };
    ports.conversations.change(&ns(), &conversation_id("c1"), &over).await.expect("changed");
    assert!(leave(ports, "p1").await.left_at_ms.is_some(), "the row tells of it");
    assert_eq!(gapless(&ports.log_of("c1").await), ["n1"]);
    let none = ports.conversations.leave(&ns(), &conversation_id("none"), &participant_id("p1")).await;
    assert!(none.expect("a write").is_none());
}

async fn many_at_once_join_and_leave_once(ports: &Ports) {
    begun(ports).await;
    let mut tasks = tokio::task::JoinSet::new();
    for n in 0..24 {
        let ports = ports.clone();
        tasks.spawn(async move {
            join(&ports, &user(&format!("p{}", n % 3), &format!("user{}", n % 3))).await;
            leave(&ports, &format!("p{}", n % 3)).await;
            done(&ports, post(message(&format!("m-{n}"), "x"), Vec::new())).await;
        });
    }
    tasks.join_all().await;
    let rows = ports.log_of("c1").await;
    let mut told = told(&rows);
    told.sort();
    let (mut expected, went) = (of(&[("joined", "p0"), ("joined", "p1"), ("joined", "p2")]), ["p0", "p1", "p2"]);
    expected.extend(went.into_iter().flat_map(|who| of(&[("left", who)])));
    assert_eq!(told, expected);
    assert_eq!(rows.len(), 1 + 6 + 24);
}
