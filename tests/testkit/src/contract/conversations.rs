//! Contract of `Conversations`.

mod guests;
mod seats;

use std::time::Duration;

use domain::ports::{ConversationChange, ConversationQuery, Inserted, LogQuery, Post, Posted, TurnQuery, Verdict};
use schemas::action::ActionType;
use schemas::conversation::{
    Conversation, ConversationStatus, LogKind, LogRecord, Participant, Talk, Turn, TurnStatus, Visibility,
};
use schemas::id::Namespace;
use schemas::json::Json;
use schemas::problem::Code;
use serde_json::json;

use super::Ports;
use super::build::*;
use super::words::*;

pub async fn suite(make: &impl AsyncFn() -> Ports) {
    a_conversation_comes_back_as_it_went_in(&make().await).await;
    an_id_that_is_there_is_left_alone(&make().await).await;
    lists_are_filtered(&make().await).await;
    lists_are_paged_newest_first(&make().await).await;
    changes_replace_what_is_given(&make().await).await;
    participants_come_and_go(&make().await).await;
    seats::suite(make).await;
    guests::suite(make).await;
    posts_append_and_accept(&make().await).await;
    a_post_is_written_once(&make().await).await;
    closed_and_missing_ones_take_no_posts(&make().await).await;
    concurrent_posts_are_gapless(&make().await).await;
    logs_are_read_both_ways(&make().await).await;
    pages_of_logs_are_bounded_in_bytes(&make().await).await;
    turns_are_listed(&make().await).await;
    sessions_are_at_work(&make().await).await;
    nothing_crosses_a_namespace(&make().await).await;
}

fn ns() -> Namespace {
    Namespace::default_ns()
}

async fn create(ports: &Ports, new: &Conversation) -> Conversation {
    match ports.conversations.create(&ns(), new, &[], &[]).await.expect("created") {
        Inserted::New(row) => row,
        Inserted::Existing(row) => panic!("it is there: {row:?}"),
    }
}

/// The clock moves on.
async fn a_moment() {
    tokio::time::sleep(Duration::from_millis(4)).await;
}

async fn a_conversation_comes_back_as_it_went_in(ports: &Ports) {
    let new = conversation("c1");
    let people = [user("p1", "ana"), agent("p2", "agent", "s1"), user("p3", "ana")];
    let words = [message("m1", "be kind"), message("m2", HOSTILE), message("m1", "twice")];
    let Inserted::New(row) = ports.conversations.create(&ns(), &new, &people, &words).await.expect("created") else {
        panic!("it is new")
    };
    assert!(row.created_at_ms > 77 && row.updated_at_ms == row.created_at_ms, "times are the store's");
    let expected =
        Conversation { last_offset: 2, created_at_ms: row.created_at_ms, updated_at_ms: row.updated_at_ms, ..new };
    assert_eq!(row, expected);
    assert_eq!(ports.forum("c1").await, expected);
    let log = ports.log_of("c1").await;
    assert_eq!(gapless(&log), ["m1", "m2"]);
    assert_eq!(log[1].record, words[1]);
    let found = ports.conversations.participants(&ns(), &conversation_id("c1")).await.expect("a read");
    let joined = |one: &Participant| Participant { joined_at_ms: row.created_at_ms, ..one.clone() };
    assert_eq!(found, [joined(&people[0]), joined(&people[1])], "nobody takes part twice");
    assert!(ports.conversations.conversation(&ns(), &conversation_id("none")).await.unwrap().is_none());
    assert!(ports.conversations.participants(&ns(), &conversation_id("none")).await.unwrap().is_empty());
    let waiting = Conversation { status: ConversationStatus::Waiting, ..conversation("c2") };
    assert_eq!(create(ports, &waiting).await.status, ConversationStatus::Active, "waiting is never stored");
}

async fn an_id_that_is_there_is_left_alone(ports: &Ports) {
    let first = create(ports, &conversation("c1")).await;
    let other = Conversation { title: None, ..conversation("c1") };
    let again = ports.conversations.create(&ns(), &other, &[user("p1", "ana")], &[message("m1", "x")]).await;
    assert_eq!(again.expect("a write"), Inserted::Existing(first.clone()));
    assert_eq!(ports.forum("c1").await, first);
    assert!(ports.log_of("c1").await.is_empty());
    assert!(ports.conversations.participants(&ns(), &conversation_id("c1")).await.unwrap().is_empty());
}

async fn ids(ports: &Ports, query: &ConversationQuery) -> Vec<String> {
    let rows = ports.conversations.list(query).await.expect("a list");
    rows.into_iter().map(|row| row.conversation_id.to_string()).collect()
}

async fn lists_are_filtered(ports: &Ports) {
    let hidden = Conversation { visibility: Visibility::Internal, ..conversation("hidden") };
    let mine = Conversation { created_by: "me \"too\"".to_owned(), tags: Vec::new(), ..conversation("mine") };
    let bare = Conversation { subject_id: None, ..conversation("bare") };
    for new in [conversation("plain"), hidden, mine, bare] {
        a_moment().await;
        create(ports, &new).await;
    }
    for (id, session) in [("mine", "s1"), ("hidden", "s2"), ("mine", "s3")] {
        let who = agent(&format!("{id}-{session}"), "agent", session);
        ports.conversations.join(&ns(), &conversation_id(id), &who).await.expect("joined");
    }
    let gone = user("left", "ana");
    ports.conversations.join(&ns(), &conversation_id("bare"), &gone).await.expect("joined");
    ports.conversations.leave(&ns(), &conversation_id("bare"), &gone.participant_id).await.expect("left");
    let done = ConversationChange { status: Some(ConversationStatus::Completed), ..ConversationChange::default() };
    ports.conversations.change(&ns(), &conversation_id("plain"), &done).await.expect("changed");

    let all = ConversationQuery { include_internal: true, ..conversation_query() };
    assert_eq!(ids(ports, &all).await, ["bare", "mine", "hidden", "plain"]);
    assert_eq!(ids(ports, &conversation_query()).await, ["bare", "mine", "plain"]);
    let status = |status| ConversationQuery { status: Some(status), ..conversation_query() };
    assert_eq!(ids(ports, &status(ConversationStatus::Completed)).await, ["plain"]);
    assert_eq!(ids(ports, &status(ConversationStatus::Active)).await, ["bare", "mine"]);
    let by = |by: &str| ConversationQuery { created_by: Some(by.to_owned()), ..conversation_query() };
    assert_eq!(ids(ports, &by("me \"too\"")).await, ["mine"]);
    assert_eq!(ids(ports, &by(HOSTILE)).await, ["bare", "plain"]);
    let subject = ConversationQuery { subject_id: Some("subject of mine".to_owned()), ..conversation_query() };
    assert_eq!(ids(ports, &subject).await, ["mine"]);
    let tag = |tag: &str| ConversationQuery { tag: Some(tag.to_owned()), ..all.clone() };
    assert_eq!(ids(ports, &tag("all")).await, ["bare", "hidden", "plain"]);
    assert_eq!(ids(ports, &tag("tag \"plain\"")).await, ["plain"]);
    assert!(ids(ports, &tag("' OR 1=1 --")).await.is_empty());
    let agent = |include_internal| ConversationQuery {
        agent_id: Some(agent_id("agent")),
        include_internal,
        ..conversation_query()
    };
    assert_eq!(ids(ports, &agent(true)).await, ["mine", "hidden"], "once, however many sessions it has there");
    assert_eq!(ids(ports, &agent(false)).await, ["mine"]);
    let person = ConversationQuery { user_id: Some(user_id("ana")), ..conversation_query() };
    assert_eq!(ids(ports, &person).await, ["bare"], "who took part is found");
    let both = ConversationQuery { tag: Some("all".to_owned()), ..agent(true) };
    assert_eq!(ids(ports, &both).await, ["hidden"], "all conditions hold");
}

async fn lists_are_paged_newest_first(ports: &Ports) {
    for n in 0..5 {
        let new = Conversation { subject_id: Some("one".to_owned()), ..conversation(&format!("c{n}")) };
        let who = [user("p1", "ana"), agent("p2", "agent", "s1"), agent("p3", "agent", "s2")];
        ports.conversations.create(&ns(), &new, &who, &[]).await.expect("created");
        if n % 2 == 0 {
            a_moment().await;
        }
    }
    let leads = [
        conversation_query(),
        ConversationQuery { include_internal: true, ..conversation_query() },
        ConversationQuery { subject_id: Some("one".to_owned()), ..conversation_query() },
        ConversationQuery { tag: Some("all".to_owned()), ..conversation_query() },
        ConversationQuery { agent_id: Some(agent_id("agent")), ..conversation_query() },
        ConversationQuery { user_id: Some(user_id("ana")), ..conversation_query() },
    ];
    for lead in leads {
        let mut seen: Vec<Conversation> = Vec::new();
        loop {
            let after = seen.last().map(|row| (row.created_at_ms, row.conversation_id.clone()));
            let query = ConversationQuery { after, limit: 2, ..lead.clone() };
            let page = ports.conversations.list(&query).await.expect("a page");
            if page.is_empty() {
                break;
            }
            seen.extend(page);
        }
        assert_eq!(seen.len(), 5, "{lead:?}");
        let place = |row: &Conversation| (row.created_at_ms, row.conversation_id.clone());
        assert!(seen.windows(2).all(|pair| place(&pair[0]) > place(&pair[1])), "newest first: {lead:?}");
    }
}

async fn changes_replace_what_is_given(ports: &Ports) {
    let first = create(ports, &conversation("c1")).await;
    a_moment().await;
    let change =
        async |change| ports.conversations.change(&ns(), &conversation_id("c1"), &change).await.expect("a write");
    let same = change(ConversationChange::default()).await.expect("it is there");
    assert_eq!(same, Conversation { updated_at_ms: same.updated_at_ms, ..first.clone() });
    let new = ConversationChange {
        title: Some("b".to_owned()),
        status: Some(ConversationStatus::Completed),
        tags: Some(vec!["x '".to_owned(), "x '".to_owned()]),
        metadata: Some(Json::of(&json!({"n": 1}))),
        branch_context: Some(Json::of(&json!({"repo_id": "q"}))),
        first_branch_context: Some(Json::of(&json!({"repo_id": "late"}))),
    };
    let changed = change(new.clone()).await.expect("it is there");
    let expected = Conversation {
        title: new.title,
        status: ConversationStatus::Completed,
        tags: new.tags.expect("given"),
        metadata: new.metadata.expect("given"),
        branch_context: new.branch_context,
        updated_at_ms: changed.updated_at_ms,
        ..first.clone()
    };
    assert_eq!(changed, expected);
    assert!(changed.updated_at_ms > first.updated_at_ms);
    assert_eq!(ports.forum("c1").await, expected);
    let tag = |tag: &str| ConversationQuery { tag: Some(tag.to_owned()), ..conversation_query() };
    assert_eq!(ids(ports, &tag("x '")).await, ["c1"]);
    assert!(ids(ports, &tag("all")).await.is_empty(), "the tags from before are gone");
    let none = ports.conversations.change(&ns(), &conversation_id("none"), &ConversationChange::default()).await;
    assert!(none.expect("a write").is_none());
}

async fn participants_come_and_go(ports: &Ports) {
    create(ports, &conversation("c1")).await;
    let id = conversation_id("c1");
    let join = async |who: &Participant| {
        ports.conversations.join(&ns(), &id, who).await.expect("a write").expect("it is there")
    };
    let list = async || {
        let found = ports.conversations.participants(&ns(), &id).await.expect("a read");
        found.into_iter().map(|one| one.participant_id.to_string()).collect::<Vec<_>>()
    };
    let ana = user("p9", "ana");
    let Inserted::New(joined) = join(&ana).await else { panic!("she is new") };
    assert_eq!(joined, Participant { joined_at_ms: joined.joined_at_ms, ..ana.clone() });
    assert!(joined.joined_at_ms > 0, "by the store's clock");
    a_moment().await;
    let Inserted::New(speaker) = join(&agent("p5", "agent", "s1")).await else { panic!("it is new") };
    assert_eq!(join(&user("p1", "ana")).await, Inserted::Existing(joined.clone()), "she takes part already");
    assert_eq!(join(&agent("p1", "agent", "s1")).await, Inserted::Existing(speaker));
    a_moment().await;
    assert!(matches!(join(&agent("p4", "agent", "s2")).await, Inserted::New(_)), "with another session");
    assert_eq!(list().await, ["p9", "p5", "p4"], "in the order they joined");
    let leave = async |who: &str| ports.conversations.leave(&ns(), &id, &participant_id(who)).await.expect("a write");
    let left = leave("p9").await.expect("she was there");
    assert!(left.left_at_ms.is_some());
    a_moment().await;
    assert_eq!(leave("p9").await, Some(left), "the first time counts");
    assert!(leave("none").await.is_none());
    assert_eq!(list().await, ["p5", "p4", "p9"], "who left comes last");
    assert!(matches!(join(&user("p2", "ana")).await, Inserted::New(_)), "who left may come back");
    assert!(matches!(join(&user("p9", "bo")).await, Inserted::Existing(_)), "the id is hers");
    assert_eq!(list().await, ["p5", "p4", "p2", "p9"]);
    let nowhere = ports.conversations.join(&ns(), &conversation_id("none"), &ana).await;
    assert!(nowhere.expect("a write").is_none());
}

fn post(record: LogRecord, actions: Vec<schemas::action::NewAction>) -> Post {
    Post { namespace: ns(), conversation_id: conversation_id("c1"), record, actions }
}

async fn done(ports: &Ports, new: Post) -> (u64, Vec<Verdict>) {
    match ports.conversations.post(new).await.expect("a write") {
        Posted::Done { offset, verdicts } => (offset, verdicts),
        other => panic!("should be done: {other:?}"),
    }
}

async fn posts_append_and_accept(ports: &Ports) {
    ports.talker("s1", "c1").await;
    ports.talker("s2", "c1").await;
    let before = ports.forum("c1").await;
    a_moment().await;
    let actions = vec![input("i1", "s1"), input("i2", "s2"), input("i3", "none"), create_in("a1", "s3", "x", "c1")];
    let (offset, verdicts) = done(ports, post(message("m1", HOSTILE), actions)).await;
    assert_eq!(offset, 1);
    assert_eq!((accepted(&verdicts[0]).session_seq, accepted(&verdicts[1]).session_seq), (2, 2));
    assert_eq!(refused(&verdicts[2]), Code::SessionNotFound, "each on its own verdict");
    assert_eq!(accepted(&verdicts[3]).session_id, session_id("s3"));
    assert_eq!(ports.conversations.participants(&ns(), &conversation_id("c1")).await.unwrap().len(), 3);
    let log = ports.log_of("c1").await;
    assert_eq!((gapless(&log).len(), &log[0].record), (2, &message("m1", HOSTILE)));
    assert_eq!(log[1].record.session_id, Some(session_id("s3")), "who joined after it");
    let after = ports.forum("c1").await;
    assert_eq!(after, Conversation { last_offset: 2, updated_at_ms: after.updated_at_ms, ..before.clone() });
    assert!(after.updated_at_ms > before.updated_at_ms);
    assert_eq!(done(ports, post(note("n1"), Vec::new())).await.0, 3, "a message may cause nothing");
}

async fn a_post_is_written_once(ports: &Ports) {
    ports.talker("s1", "c1").await;
    let first = post(message("m1", "hello"), vec![input("i1", "s1")]);
    let (offset, verdicts) = done(ports, first.clone()).await;
    done(ports, post(message("m2", "more"), Vec::new())).await;
    let (again, repeats) = done(ports, first.clone()).await;
    assert_eq!(again, offset);
    match &repeats[0] {
        Verdict::Repeated(repeat) => assert_eq!(&repeat.action, accepted(&verdicts[0])),
        other => panic!("should be a repeat: {other:?}"),
    }
    // A repeat reaches nobody whom the message did not reach.
    let wider = Post { actions: vec![input("i9", "s1"), input("i1", "s1")], ..first.clone() };
    let (again, told) = done(ports, wider).await;
    assert_eq!(again, offset);
    assert!(matches!(&told[0], Verdict::Refused(refusal) if refusal.code == Code::MessageConflict), "{told:?}");
    assert!(matches!(told[1], Verdict::Repeated(_)), "{told:?}");
    assert!(ports.ledger.action(&ns(), &action_id("i9")).await.unwrap().is_none(), "nothing was written");
    let other = post(message("m1", "something else"), vec![input("i2", "s1")]);
    let kind = post(LogRecord { kind: LogKind::Event, ..message("m1", "hello") }, vec![input("i2", "s1")]);
    for changed in [other, kind] {
        assert!(matches!(ports.conversations.post(changed).await.expect("a write"), Posted::Conflict));
    }
    assert!(ports.ledger.action(&ns(), &action_id("i2")).await.unwrap().is_none(), "nothing was written");
    assert_eq!(gapless(&ports.log_of("c1").await), ["m1", "m2"]);
    // Of two at a time, one writes.
    let race = post(message("m3", "at once"), vec![input("i3", "s1")]);
    let (one, two) = tokio::join!(done(ports, race.clone()), done(ports, race));
    assert_eq!((one.0, two.0), (3, 3));
    let fresh = [&one.1[0], &two.1[0]].into_iter().filter(|verdict| matches!(verdict, Verdict::Accepted(_))).count();
    assert_eq!(fresh, 1);
}

async fn closed_and_missing_ones_take_no_posts(ports: &Ports) {
    ports.talker("s1", "c1").await;
    let said = post(message("m1", "hello"), vec![input("i1", "s1")]);
    done(ports, said.clone()).await;
    for status in [ConversationStatus::Completed, ConversationStatus::Failed] {
        let change = ConversationChange { status: Some(status), ..ConversationChange::default() };
        ports.conversations.change(&ns(), &conversation_id("c1"), &change).await.expect("changed");
        let late = post(message("m2", "too late"), vec![input("i2", "s1")]);
        assert!(matches!(ports.conversations.post(late).await.expect("a write"), Posted::Closed));
        assert_eq!(done(ports, said.clone()).await.0, 1, "what was said before it closed was said");
    }
    let nowhere =
        Post { conversation_id: conversation_id("none"), ..post(message("m2", "x"), vec![input("i2", "s1")]) };
    assert!(matches!(ports.conversations.post(nowhere).await.expect("a write"), Posted::NotFound));
    assert!(ports.ledger.action(&ns(), &action_id("i2")).await.unwrap().is_none(), "nothing was written");
    assert_eq!(ports.forum("c1").await.last_offset, 1);
}

async fn concurrent_posts_are_gapless(ports: &Ports) {
    for session in ["s1", "s2", "s3"] {
        ports.talker(session, "c1").await;
    }
    let mut tasks = tokio::task::JoinSet::new();
    for n in 0..40 {
        let ports = ports.clone();
        tasks.spawn(async move {
            // In opposite orders, which must not hinder each other.
            let mut actions: Vec<_> = ["s1", "s2", "s3"].map(|s| input(&format!("i{n}-{s}"), s)).into();
            if n % 2 == 0 {
                actions.reverse();
            }
            done(&ports, post(message(&format!("m{n}"), "x"), actions)).await.0
        });
    }
    let mut offsets = tasks.join_all().await;
    offsets.sort_unstable();
    assert_eq!(offsets, (1..=40).collect::<Vec<u64>>());
    assert_eq!(gapless(&ports.log_of("c1").await).len(), 40);
}

async fn logs_are_read_both_ways(ports: &Ports) {
    let owner = worker("w1");
    ports.talker("s1", "c1").await;
    let mut records = Vec::new();
    for n in 0..10_i64 {
        let kind = if n % 2 == 0 { LogKind::Message } else { LogKind::Move };
        let turn = (n % 3 == 0).then(|| turn_id("t1"));
        records.push(LogRecord { turn_id: turn, at_ms: 100 + n, ..record(kind, &format!("r{n}")) });
    }
    ports.say(&owner, "s1", Talk { log: records, ..Talk::default() }).await;
    let read = async |query: LogQuery| {
        let rows = ports.conversations.log(&query).await.expect("a page");
        rows.into_iter().map(|row| row.offset).collect::<Vec<_>>()
    };
    let all = log_query("c1");
    assert_eq!(read(all.clone()).await, (1..=10).collect::<Vec<u64>>());
    assert_eq!(read(LogQuery { descending: true, ..all.clone() }).await, (1..=10).rev().collect::<Vec<u64>>());
    let middle = LogQuery { after: 3, before: Some(8), ..all.clone() };
    assert_eq!(read(middle.clone()).await, [4, 5, 6, 7]);
    assert_eq!(read(LogQuery { limit: 2, ..middle.clone() }).await, [4, 5]);
    assert_eq!(read(LogQuery { descending: true, limit: 2, ..middle.clone() }).await, [7, 6]);
    let messages = LogQuery { kinds: vec![LogKind::Message], ..all.clone() };
    assert_eq!(read(messages.clone()).await, [1, 3, 5, 7, 9]);
    assert_eq!(read(LogQuery { descending: true, limit: 2, after: 4, ..messages }).await, [9, 7]);
    assert!(read(LogQuery { kinds: vec![LogKind::Note, LogKind::Summary], ..all.clone() }).await.is_empty());
    let of_turn = LogQuery { turn_id: Some(turn_id("t1")), ..all.clone() };
    assert_eq!(read(of_turn.clone()).await, [1, 4, 7, 10]);
    assert_eq!(read(LogQuery { descending: true, before: Some(10), limit: 2, ..of_turn.clone() }).await, [7, 4]);
    assert_eq!(read(LogQuery { kinds: vec![LogKind::Message], ..of_turn }).await, [1, 7]);
    assert_eq!(read(LogQuery { since_ms: Some(107), ..all.clone() }).await, [8, 9, 10]);
    assert!(read(LogQuery { after: u64::MAX, ..all.clone() }).await.is_empty());
    let record = async |of: &str, id: &str| {
        ports.conversations.record(&ns(), &conversation_id(of), id).await.expect("a read").map(|row| row.offset)
    };
    assert_eq!(
        (record("c1", "r3").await, record("c1", "none").await, record("none", "r3").await),
        (Some(4), None, None)
    );
    assert!(read(log_query("none")).await.is_empty());
}

async fn pages_of_logs_are_bounded_in_bytes(ports: &Ports) {
    let owner = worker("w1");
    ports.talker("s1", "c1").await;
    // Bodies of 102 bytes: a text of 100 in its quotes.
    let body = Json::of(&"x".repeat(100));
    let turn = Some(turn_id("t1"));
    let records = (0..6).map(|n| LogRecord { body: body.clone(), turn_id: turn.clone(), ..note(&format!("n{n}")) });
    ports.say(&owner, "s1", Talk { log: records.collect(), ..Talk::default() }).await;
    let of_turn = LogQuery { turn_id: turn, ..log_query("c1") };
    for query in [log_query("c1"), of_turn] {
        for (bytes, found) in [(0, 1), (101, 1), (102, 1), (203, 1), (204, 2), (611, 5), (612, 6), (usize::MAX, 6)] {
            for descending in [false, true] {
                let page = LogQuery { bytes, descending, ..query.clone() };
                let rows = ports.conversations.log(&page).await.expect("a page");
                assert_eq!(rows.len(), found, "{bytes} bytes");
                assert_eq!(rows[0].offset, if descending { 6 } else { 1 });
            }
        }
    }
}

async fn sessions_are_at_work(ports: &Ports) {
    let owner = worker("w1");
    for (session, conversation) in [("s1", "c1"), ("s2", "c2"), ("s3", "c3")] {
        ports.talker(session, conversation).await;
    }
    let is_at_work = async |session: &str, besides: &str| {
        ports.conversations.is_at_work(&key(session), &action_id(besides)).await.expect("an answer")
    };
    assert!(!is_at_work("s1", "i1").await && !is_at_work("none", "i1").await);
    ports.accept(action(ActionType::Interrupt, "g1", Some("s1"), None)).await;
    assert!(!is_at_work("s1", "i1").await, "guidance is no input");
    ports.accept(input("i1", "s1")).await;
    assert!(!is_at_work("s1", "i1").await, "the one that is asked for does not count");
    assert!(is_at_work("s1", "i2").await && !is_at_work("s2", "i2").await);
    let completed = Turn { status: TurnStatus::Completed, ..turn("t0", "c2", "s2", 1) };
    ports.say(&owner, "s2", Talk { turns: vec![completed.clone()], ..Talk::default() }).await;
    assert!(!is_at_work("s2", "i2").await, "a turn that is over");
    ports.say(&owner, "s2", Talk { turns: vec![turn("t1", "c2", "s2", 2)], ..Talk::default() }).await;
    assert!(is_at_work("s2", "i2").await && !is_at_work("s3", "i2").await);
}

async fn turns_are_listed(ports: &Ports) {
    let owner = worker("w1");
    ports.talker("s1", "c1").await;
    ports.talker("s2", "c2").await;
    let ended = |one: Turn| Turn { status: TurnStatus::Completed, ..one };
    let turns = vec![
        turn("t3", "c1", "s1", 10),
        ended(turn("t1", "c1", "s1", 20)),
        turn("t2", "c1", "s2", 20),
        turn("t0", "c2", "s2", 30),
    ];
    ports.say(&owner, "s1", Talk { turns, ..Talk::default() }).await;
    let list = async |query: TurnQuery| {
        let found = ports.conversations.turns(&query).await.expect("a list");
        found.into_iter().map(|turn| turn.turn_id.to_string()).collect::<Vec<_>>()
    };
    let all = turn_query();
    assert_eq!(list(all.clone()).await, ["t3", "t1", "t2", "t0"]);
    assert_eq!(list(TurnQuery { descending: true, ..all.clone() }).await, ["t0", "t2", "t1", "t3"]);
    let of = TurnQuery { conversation_id: Some(conversation_id("c1")), ..all.clone() };
    assert_eq!(list(of.clone()).await, ["t3", "t1", "t2"]);
    let active = TurnQuery { status: Some(TurnStatus::Active), ..of.clone() };
    assert_eq!(list(active.clone()).await, ["t3", "t2"]);
    assert_eq!(list(TurnQuery { descending: true, limit: 1, ..active }).await, ["t2"]);
    assert_eq!(list(TurnQuery { status: Some(TurnStatus::Completed), ..of.clone() }).await, ["t1"]);
    let session = TurnQuery { session_id: Some(session_id("s2")), ..all.clone() };
    assert_eq!(list(session.clone()).await, ["t2", "t0"]);
    assert_eq!(list(TurnQuery { conversation_id: Some(conversation_id("c2")), ..session }).await, ["t0"]);
    for descending in [false, true] {
        for lead in [all.clone(), of.clone()] {
            let whole = list(TurnQuery { descending, ..lead.clone() }).await;
            let (mut seen, mut after) = (Vec::new(), None);
            loop {
                let query = TurnQuery { after: after.clone(), limit: 1, descending, ..lead.clone() };
                let Some(one) = ports.conversations.turns(&query).await.expect("a page").pop() else { break };
                after = Some((one.created_at_ms, one.turn_id.clone()));
                seen.push(one.turn_id.to_string());
            }
            assert_eq!(seen, whole);
        }
    }
}

async fn nothing_crosses_a_namespace(ports: &Ports) {
    let other = namespace("other");
    let words = [message("m1", "here")];
    ports.conversations.create(&ns(), &conversation("c1"), &[user("p1", "ana")], &words).await.expect("created");
    assert!(ports.conversations.conversation(&other, &conversation_id("c1")).await.unwrap().is_none());
    let elsewhere = ConversationQuery { namespace: other.clone(), include_internal: true, ..conversation_query() };
    assert!(ids(ports, &elsewhere).await.is_empty());
    let change = ConversationChange { title: Some("mine".to_owned()), ..ConversationChange::default() };
    assert!(ports.conversations.change(&other, &conversation_id("c1"), &change).await.unwrap().is_none());
    assert!(ports.conversations.join(&other, &conversation_id("c1"), &user("p2", "bo")).await.unwrap().is_none());
    assert!(ports.conversations.leave(&other, &conversation_id("c1"), &participant_id("p1")).await.unwrap().is_none());
    let there = Post { namespace: other.clone(), ..post(message("m2", "x"), Vec::new()) };
    assert!(matches!(ports.conversations.post(there).await.unwrap(), Posted::NotFound));
    let theirs = Conversation { tags: vec!["theirs".to_owned()], ..conversation("c1") };
    let made = ports.conversations.create(&other, &theirs, &[user("p1", "bo")], &[]).await.expect("created");
    assert!(matches!(made, Inserted::New(_)), "the id is free there");
    for lead in [
        ConversationQuery { tag: Some("theirs".to_owned()), ..conversation_query() },
        ConversationQuery { user_id: Some(user_id("bo")), ..conversation_query() },
    ] {
        assert!(ids(ports, &lead).await.is_empty());
    }
    assert_eq!(gapless(&ports.log_of("c1").await), ["m1"]);
}
