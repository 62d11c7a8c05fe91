//! Contract of what commits and acceptance do to conversations.

use std::sync::Arc;

use domain::commit::{Commit, CommitResult};
use domain::failure::Certainty;
use domain::ports::{Hold, Post, Posted};
use schemas::conversation::{
    LogKind, LogRecord, LogRow, Operation, OperationState, ParticipantRole, Talk, Turn, TurnPhase, TurnStatus,
    Visibility,
};
use schemas::event::{EventKind, EventRecord};
use schemas::id::{Namespace, SessionKey};
use schemas::json::Json;
use schemas::limits::SPENT_OF_SHARD_MAX;
use schemas::problem::Code;
use serde_json::json;

use super::Ports;
use super::build::*;
use super::words::*;

pub async fn suite(make: &impl AsyncFn() -> Ports) {
    what_a_step_says_is_written_with_it(&make().await).await;
    what_is_not_committed_is_not_said(&make().await).await;
    a_batch_is_numbered_in_its_order(&make().await).await;
    a_record_is_written_once(&make().await).await;
    calls_of_models_add_up_once(&make().await).await;
    calls_of_steps_add_up_once(&make().await).await;
    turns_are_replaced_whole(&make().await).await;
    active_turns_are_walked_over_all_namespaces(&make().await).await;
    operations_take_the_state_that_is_given(&make().await).await;
    a_missing_conversation_is_opened(&make().await).await;
    follow_ups_come_after_what_was_said(&make().await).await;
    offsets_are_gapless_under_concurrency(&make().await).await;
    creation_registers_conversation_and_participant(&make().await).await;
    closed_conversations_take_no_sessions(&make().await).await;
    namespaces_never_mix(&make().await).await;
}

fn log(records: Vec<LogRecord>) -> Talk {
    Talk { log: records, ..Talk::default() }
}

async fn what_a_step_says_is_written_with_it(ports: &Ports) {
    let owner = worker("w1");
    ports.talker("s1", "c1").await;
    let before = ports.forum("c1").await;
    let mut of_turn = note("second");
    of_turn.turn_id = Some(turn_id("t1"));
    of_turn.session_id = Some(session_id("s1"));
    of_turn.agent_id = None;
    let mut records = vec![note("first '\"; --"), of_turn];
    records.extend(LogKind::ALL.map(|kind| record(kind, kind.as_str())));
    let turns = vec![turn("t1", "c1", "s1", 5)];
    let work = operation("o1", "s1");
    let talk = Talk { log: records.clone(), turns: turns.clone(), operations: vec![work.clone()] };
    ports.say(&owner, "s1", talk).await;
    let rows = ports.log_of("c1").await;
    gapless(&rows);
    assert!(rows.iter().map(|row| &row.record).eq(&records), "records come back as they went in: {rows:#?}");
    let after = ports.forum("c1").await;
    assert_eq!(after.last_offset, records.len() as u64);
    assert!(after.updated_at_ms >= before.updated_at_ms && after.created_at_ms == before.created_at_ms);
    let found = ports.conversations.turn(&Namespace::default_ns(), &turn_id("t1")).await.expect("a read");
    assert_eq!(found.as_ref(), turns.first());
    let row = ports.work("o1").await;
    assert!(row.operation.created_at_ms > 0, "by the store's clock");
    assert_eq!(row.operation.due_at_ms, row.operation.created_at_ms);
    let expected = Operation { created_at_ms: row.operation.created_at_ms, due_at_ms: row.operation.due_at_ms, ..work };
    assert_eq!((row.namespace, row.operation), (Namespace::default_ns(), expected));
}

async fn what_is_not_committed_is_not_said(ports: &Ports) {
    let owner = worker("w1");
    ports.talker("s1", "c1").await;
    ports.created("mute", "agent").await;
    let talk =
        Talk { log: vec![note("n1")], turns: vec![turn("t1", "c1", "s1", 1)], operations: vec![operation("o1", "s1")] };
    let good = ports.saying(&owner, "s1", talk.clone()).await;
    let mut conflict = good.clone();
    conflict.expect_offset += 1;
    let mut fenced = good.clone();
    fenced.epoch.0 += 1;
    assert!(matches!(ports.commit_result(&owner, conflict).await, CommitResult::Conflict));
    assert!(matches!(ports.commit_result(&owner, fenced).await, CommitResult::Fenced));
    // Words without a conversation are a mistake of the caller's, told before anything is written.
    let homeless = ports.saying(&owner, "mute", talk).await;
    let failure = ports.commits.commit(&owner, vec![good.clone(), homeless]).await.expect_err("no place to talk in");
    assert_eq!(failure.certainty, Certainty::DidNotHappen, "{failure:?}");
    assert!(ports.log_of("c1").await.is_empty());
    assert_eq!(ports.forum("c1").await.last_offset, 0);
    let namespace = Namespace::default_ns();
    assert!(ports.conversations.turn(&namespace, &turn_id("t1")).await.unwrap().is_none());
    assert!(ports.operations.operation(&namespace, &operation_id("o1")).await.unwrap().is_none());
    // The very same commit, twice: the second is a conflict and says nothing again.
    ports.commit_one(&owner, good.clone()).await;
    assert!(matches!(ports.commit_result(&owner, good).await, CommitResult::Conflict));
    assert_eq!(gapless(&ports.log_of("c1").await), ["n1"]);
}

async fn a_batch_is_numbered_in_its_order(ports: &Ports) {
    let owner = worker("w1");
    for session in ["s3", "s1", "s2"] {
        ports.talker(session, "c1").await;
    }
    ports.talker("other", "c2").await;
    let mut commits = Vec::new();
    for session in ["s3", "other", "s1", "s2"] {
        let records = vec![note(&format!("{session} first")), note(&format!("{session} second"))];
        commits.push(ports.saying(&owner, session, log(records)).await);
    }
    // One of the batch is refused, and takes no place in the log.
    commits[2].expect_steps += 1;
    let results = ports.commits.commit(&owner, commits).await.expect("a batch");
    assert!(matches!(results[2], CommitResult::Conflict));
    let rows = ports.log_of("c1").await;
    assert_eq!(gapless(&rows), ["s3 first", "s3 second", "s2 first", "s2 second"]);
    assert_eq!(gapless(&ports.log_of("c2").await), ["other first", "other second"]);
}

async fn a_record_is_written_once(ports: &Ports) {
    let owner = worker("w1");
    ports.talker("s1", "c1").await;
    ports.talker("s2", "c1").await;
    ports.talker("s3", "c2").await;
    let other = LogRecord { at_ms: 9, ..record(LogKind::Event, "a") };
    ports.say(&owner, "s1", log(vec![note("a"), other.clone(), note("b")])).await;
    ports.say(&owner, "s1", log(vec![note("b"), note("c")])).await;
    let first = ports.saying(&owner, "s1", log(vec![note("c"), note("d")])).await;
    let second = ports.saying(&owner, "s2", log(vec![note("d"), note("e"), other])).await;
    ports.commits.commit(&owner, vec![first, second]).await.expect("a batch");
    let rows = ports.log_of("c1").await;
    assert_eq!(gapless(&rows), ["a", "b", "c", "d", "e"]);
    assert_eq!(rows[0].record, note("a"), "the first one counts");
    assert_eq!(ports.forum("c1").await.last_offset, 5);
    // Ids are those of one conversation.
    ports.say(&owner, "s3", log(vec![note("a")])).await;
    assert_eq!(gapless(&ports.log_of("c2").await), ["a"]);
}

async fn calls_of_models_add_up_once(ports: &Ports) {
    let owner = worker("w1");
    // On several shards.
    for n in 0..8 {
        ports.talker(&format!("s{n}"), &format!("c{n}")).await;
    }
    let spent = async |name: &str| {
        let spent = ports.conversations.spent(&namespace(name)).await.expect("a read");
        (spent.tokens, spent.cost_nanos, spent.calls)
    };
    assert_eq!(spent("default").await, (0, 0, 0));
    for n in 0..8 {
        let session = format!("s{n}");
        ports
            .say(
                &owner,
                &session,
                log(vec![model_call("r1", 10, 0.25), note("n1"), model_call("r2", 20, 0.000_000_001)]),
            )
            .await;
    }
    let eight = (8 * 32, 8 * 250_000_001, 16);
    assert_eq!(spent("default").await, eight);
    ports.say(&owner, "s1", log(vec![model_call("r2", 20, 0.000_000_001)])).await;
    assert_eq!(spent("default").await, eight, "a record that is there counts once");
    let mut broken = model_call("r3", 0, 0.0);
    broken.body = schemas::json::Json::of(&serde_json::json!({"nonsense": true}));
    ports.say(&owner, "s1", log(vec![broken, model_call("r4", 1, 0.0)])).await;
    assert_eq!(spent("default").await, (eight.0 + 2, eight.1, 17));
    assert_eq!(spent("other").await, (0, 0, 0));
    // The sums of a shard end at a bound, in one commit and over several, and others are added to them.
    let huge = (0..9).map(|n| model_call(&format!("h{n}"), u64::MAX - 1, 1e300)).collect();
    ports.say(&owner, "s1", log(huge)).await;
    ports.say(&owner, "s1", log(vec![model_call("h9", 1, 1e300)])).await;
    let (_, cost_nanos, calls) = spent("default").await;
    let bounds = SPENT_OF_SHARD_MAX..=SPENT_OF_SHARD_MAX + eight.1;
    assert!(bounds.contains(&cost_nanos) && calls == 27, "{cost_nanos} in {calls} calls");
}

/// Sessions without a conversation ask models too: what they asked are events of their own.
async fn calls_of_steps_add_up_once(ports: &Ports) {
    let owner = worker("w1");
    let spent = async || {
        let spent = ports.conversations.spent(&Namespace::default_ns()).await.expect("a read");
        (spent.tokens, spent.cost_nanos, spent.calls)
    };
    for session in ["s1", "s2"] {
        ports.created(session, "agent").await;
    }
    ports.talker("t1", "c1").await;
    ports.talker("t2", "missing").await;
    let first = asking(ports.saying(&owner, "s1", Talk::default()).await, &[model_call("r1", 10, 0.25)]);
    ports.commit_one(&owner, first.clone()).await;
    assert_eq!(spent().await, (11, 250_000_000, 1));
    assert!(matches!(ports.commit_result(&owner, first).await, CommitResult::Conflict));
    assert_eq!(spent().await, (11, 250_000_000, 1), "what is committed once counts once");
    // Beside others of the batch: one that is refused, one that talks, and one that asks in both ways.
    let two = [model_call("r2", 20, 0.0), model_call("r3", 30, 0.5)];
    let second = asking(ports.saying(&owner, "s1", Talk::default()).await, &two);
    let mut refused = asking(ports.saying(&owner, "s2", Talk::default()).await, &[model_call("r4", 1_000, 9.0)]);
    refused.expect_offset += 1;
    let talks = ports.saying(&owner, "t1", log(vec![model_call("r5", 40, 0.0), note("n1")])).await;
    let both = asking(talks, &[model_call("r6", 50, 0.0)]);
    let results = ports.commits.commit(&owner, vec![second, refused, both]).await.expect("a batch");
    assert!(matches!(results[1], CommitResult::Conflict), "{results:?}");
    assert_eq!(spent().await, (11 + 21 + 31 + 41 + 51, 750_000_000, 5));
    // What it sends along, or a conversation that is missing, changes nothing.
    let mut sends = asking(ports.saying(&owner, "s2", Talk::default()).await, &[model_call("r7", 0, 0.0)]);
    sends.follow_ups.push(input("i1", "s1"));
    ports.commit_one(&owner, sends).await;
    let opens = asking(ports.saying(&owner, "t2", log(vec![note("n2")])).await, &[model_call("r8", 0, 0.0)]);
    ports.commit_one(&owner, opens).await;
    assert_eq!(spent().await, (157, 750_000_000, 7));
}

/// The commit, after whose steps models were asked.
fn asking(mut commit: Commit, calls: &[LogRecord]) -> Commit {
    let entry = Arc::make_mut(&mut commit.entry);
    for call in calls {
        let offset = entry.head.next_offset;
        entry.events.push(EventRecord { offset, at_ms: 1, kind: EventKind::ProviderCall, data: call.body.clone() });
        entry.head.next_offset += 1;
    }
    commit
}

async fn turns_are_replaced_whole(ports: &Ports) {
    let owner = worker("w1");
    ports.talker("s1", "c1").await;
    let first = turn("t1", "c1", "s1", 5);
    let last = Turn { status: TurnStatus::Completed, phase: TurnPhase::Responding, moves: 9, ..first.clone() };
    let say = async |turns: Vec<Turn>| {
        ports.say(&owner, "s1", Talk { turns, ..Talk::default() }).await;
        ports.conversations.turn(&Namespace::default_ns(), &turn_id("t1")).await.expect("a read")
    };
    assert_eq!(say(vec![first.clone()]).await, Some(first.clone()));
    let cut = Turn { metadata: None, completed_at_ms: Some(8), ..last.clone() };
    assert_eq!(say(vec![cut.clone()]).await, Some(cut));
    let open = async |of: &[&str]| {
        let of: Vec<_> = of.iter().map(|id| conversation_id(id)).collect();
        let found = ports.conversations.open_turns(&Namespace::default_ns(), &of).await.expect("a read");
        found.into_iter().map(|turn| turn.turn_id.to_string()).collect::<std::collections::BTreeSet<_>>()
    };
    let other = turn("t2", "c2", "s1", 6);
    say(vec![other, turn("t3", "c3", "s1", 7)]).await;
    assert!(open(&["none"]).await.is_empty());
    assert_eq!(open(&["c1", "c2"]).await.into_iter().collect::<Vec<_>>(), ["t2"], "what has ended is not open");
    assert_eq!(say(vec![first, last.clone()]).await, Some(last.clone()), "of two, the newer");
    ports.talker("s2", "c1").await;
    ports.say(&owner, "s2", Talk { turns: vec![turn("t1", "c1", "s2", 8)], ..Talk::default() }).await;
    let found = ports.conversations.turn(&Namespace::default_ns(), &turn_id("t1")).await.expect("a read");
    assert_eq!(found, Some(last), "it is the turn of its session, whoever else uses the id");
}

async fn active_turns_are_walked_over_all_namespaces(ports: &Ports) {
    let owner = worker("w1");
    assert!(ports.conversations.active_turns(None, 9).await.expect("a page").is_empty());
    ports.talker("s1", "c1").await;
    let at = |id, conversation, created_at_ms| turn(id, conversation, "s1", created_at_ms);
    let ended = Turn { status: TurnStatus::Failed, ..at("t0", "c1", 1) };
    let turns = vec![at("t3", "c1", 5), at("t2", "c1", 5), ended, at("t1", "c1", 7), at("t9", "c0", 9)];
    ports.say(&owner, "s1", Talk { turns: turns.clone(), ..Talk::default() }).await;
    accepted(&ports.accept(in_namespace("other", create_in("a1", "s1", "agent", "c1"))).await);
    let theirs = ports.row(&SessionKey::new(namespace("other"), session_id("s1"))).await;
    let epoch = ports.own(theirs.shard, &owner).await;
    let talk = Talk { turns: vec![turns[0].clone()], ..Talk::default() };
    ports.commit_one(&owner, Commit { talk, ..next_commit(&theirs, epoch, 1) }).await;
    let (mut seen, mut after) = (Vec::new(), None);
    loop {
        let page = ports.conversations.active_turns(after.as_ref(), 2).await.expect("a page");
        let Some((place, _)) = page.last() else { break };
        after = Some(place.clone());
        seen.extend(page.into_iter().map(|(place, turn)| {
            assert_eq!((&place.turn_id, &place.conversation_id), (&turn.turn_id, &turn.conversation_id));
            assert!(turns.contains(&turn), "it comes as it was written");
            format!("{}/{}", place.namespace, turn.turn_id)
        }));
    }
    let expected = ["default/t9", "default/t2", "default/t3", "default/t1", "other/t3"];
    assert_eq!(seen, expected, "by namespace, conversation, time and id, and nothing that has ended");
}

async fn operations_take_the_state_that_is_given(ports: &Ports) {
    let owner = worker("w1");
    ports.talker("s1", "c1").await;
    let with = |id: &str, state| Operation { state, ..operation(id, "s1") };
    ports.dispatch(&owner, "s1", vec![operation("o1", "s1"), operation("o2", "s1"), operation("o3", "s1")]).await;
    let claimed =
        ports.operations.claim("default", "executor", Hold::Attempt(0), 1).await.expect("a claim").remove(0).operation;
    let id = claimed.operation_id.to_string();
    // Dispatched again, it is not taken from who has it; cancelled, it is.
    ports.dispatch(&owner, "s1", vec![operation(&id, "s1")]).await;
    let now = ports.work(&id).await.operation;
    assert_eq!((now.state, now.claimed_by.as_deref()), (OperationState::Running, Some("executor")));
    let cancelled = Operation { error: Some(HOSTILE.to_owned()), ..with(&id, OperationState::Cancelled) };
    ports.dispatch(&owner, "s1", vec![cancelled]).await;
    let now = ports.work(&id).await.operation;
    assert_eq!((now.state, now.claimed_by, now.until_ms), (OperationState::Cancelled, None, None));
    assert!(now.error.is_some_and(|error| error.starts_with("'; DROP")));
    for state in [OperationState::Pending, OperationState::Completed] {
        ports.dispatch(&owner, "s1", vec![with(&id, state)]).await;
        assert_eq!(ports.work_state(&id).await, OperationState::Cancelled, "what has ended stays");
    }
    // Dispatched and ended in one commit.
    ports.dispatch(&owner, "s1", vec![operation("o4", "s1"), with("o4", OperationState::Failed)]).await;
    assert_eq!(ports.work_state("o4").await, OperationState::Failed);
}

async fn a_missing_conversation_is_opened(ports: &Ports) {
    let owner = worker("w1");
    ports.created("s1", "agent").await;
    let mut child = create("child", "s2", "agent");
    child.session.as_mut().expect("a session").spec.parent = Some(session_id("s1"));
    ports.accept(child).await;
    for (session, id, visibility) in [("s1", "c1", Visibility::Listed), ("s2", "c2", Visibility::Internal)] {
        let commit = in_conversation(ports.saying(&owner, session, log(vec![note("n1")])).await, Some(id));
        ports.commit_one(&owner, commit).await;
        let opened = ports.forum(id).await;
        assert_eq!((opened.visibility, opened.last_offset), (visibility, 1));
        assert_eq!(opened.primary_agent_id, Some(agent_id("agent")));
        assert_eq!(gapless(&ports.log_of(id).await), ["n1"]);
        let talkers = ports.conversations.participants(&Namespace::default_ns(), &conversation_id(id)).await.unwrap();
        assert_eq!(talkers[0].session_id, Some(session_id(session)));
    }
}

/// Delegation: the parent dispatches and creates, the child answers with its last step.
async fn follow_ups_come_after_what_was_said(ports: &Ports) {
    let owner = worker("w1");
    ports.talker("parent", "c1").await;
    let talk = Talk { log: vec![note("asked")], operations: vec![operation("o1", "parent")], ..Talk::default() };
    let mut asks = ports.saying(&owner, "parent", talk).await;
    let mut new = create_in("f1", "child", "helper", "inner");
    new.session.as_mut().expect("a session").spec.parent = Some(session_id("parent"));
    asks.follow_ups = vec![new];
    let result = ports.commit_result(&owner, asks).await;
    assert!(matches!(&result, CommitResult::Done { follow_ups, .. } if follow_ups.len() == 1), "{result:?}");
    assert_eq!(ports.forum("inner").await.visibility, Visibility::Internal);
    let mut answers = ports.saying(&owner, "child", log(vec![note("answered")])).await;
    answers.follow_ups = vec![tool_result("f2", "o1", None), tool_result("f3", "o1", None)];
    let result = ports.commit_result(&owner, answers).await;
    let CommitResult::Done { follow_ups, .. } = result else { panic!("should be done: {result:?}") };
    let sent: Vec<_> =
        follow_ups.iter().map(|action| (action.action_id.as_str(), action.session_id.as_str())).collect();
    assert_eq!(sent, [("f2", "parent")], "one result, for whoever waits");
    assert_eq!(ports.work_state("o1").await, OperationState::Completed);
    let refused = ports.ledger.action(&Namespace::default_ns(), &action_id("f3")).await.unwrap().expect("recorded");
    assert_eq!(refused.code, Some(Code::NoOpenOperation));
    // An operation may be dispatched and answered by one and the same commit.
    let talk = Talk { operations: vec![operation("o2", "parent")], ..Talk::default() };
    let mut both = ports.saying(&owner, "parent", talk).await;
    both.follow_ups = vec![tool_result("f4", "o2", None)];
    ports.commit_one(&owner, both).await;
    assert_eq!(ports.work_state("o2").await, OperationState::Completed);
    // A call that nobody can take is answered at once.
    let talk = Talk { operations: vec![operation("o3", "parent")], ..Talk::default() };
    let mut calls = ports.saying(&owner, "parent", talk).await;
    let mut lost = input("f5", "nobody");
    lost.payload = Json::of(&json!({"text": "hello", "reply_to": {"session_id": "parent", "operation_id": "o3"}}));
    calls.follow_ups = vec![lost];
    let result = ports.commit_result(&owner, calls).await;
    let CommitResult::Done { follow_ups, .. } = result else { panic!("should be done: {result:?}") };
    let told: Vec<&str> = follow_ups.iter().map(|action| action.action_id.as_str()).collect();
    assert_eq!(told, ["o3.result"], "by the action that would have brought the result");
    assert_eq!(ports.work_state("o3").await, OperationState::Failed);
}

async fn offsets_are_gapless_under_concurrency(ports: &Ports) {
    const TALKERS: usize = 6;
    const ROUNDS: usize = 12;
    let owner = worker("w1");
    let mut tasks = tokio::task::JoinSet::new();
    for n in 0..TALKERS {
        ports.talker(&format!("s{n}"), "c1").await;
    }
    for n in 0..TALKERS {
        let (committing, owner) = (ports.clone(), owner.clone());
        tasks.spawn(async move {
            for round in 0..ROUNDS {
                let records = vec![note(&format!("{n}-{round}")), note(&format!("round {round}"))];
                committing.say(&owner, &format!("s{n}"), log(records)).await;
            }
        });
        let posting = ports.clone();
        tasks.spawn(async move {
            for round in 0..ROUNDS {
                let post = Post {
                    namespace: Namespace::default_ns(),
                    conversation_id: conversation_id("c1"),
                    record: message(&format!("post {n}-{round}"), "hello"),
                    actions: vec![input(&format!("i{n}-{round}"), &format!("s{n}"))],
                };
                let posted = posting.conversations.post(post).await.expect("posted");
                assert!(matches!(posted, Posted::Done { .. }), "{posted:?}");
            }
        });
    }
    tasks.join_all().await;
    let rows = ports.log_of("c1").await;
    // Of what all say in a round, one record is written.
    assert_eq!(gapless(&rows).len(), 2 * TALKERS * ROUNDS + ROUNDS);
    assert_eq!(ports.forum("c1").await.last_offset, rows.len() as u64);
    for n in 0..TALKERS {
        let at = |id: String| rows.iter().position(|row: &LogRow| row.record.id == id).expect("it was said");
        let order: Vec<usize> = (0..ROUNDS).map(|round| at(format!("{n}-{round}"))).collect();
        assert!(order.is_sorted(), "what one says keeps its order");
        assert_eq!(ports.row(&key(&format!("s{n}"))).await.work_seq, 1 + ROUNDS as u64);
    }
}

async fn creation_registers_conversation_and_participant(ports: &Ports) {
    let namespace = Namespace::default_ns();
    let new = create_in("a1", "s1", "agent", "c1");
    accepted(&ports.accept(new.clone()).await);
    let opened = ports.forum("c1").await;
    assert_eq!((&opened.created_by, opened.visibility), (&new.actor, Visibility::Listed));
    assert_eq!((opened.primary_agent_id, opened.last_offset), (Some(agent_id("agent")), 0));
    let talkers = async || ports.conversations.participants(&namespace, &conversation_id("c1")).await.expect("a read");
    let first = talkers().await;
    assert_eq!(first.len(), 1);
    assert_eq!((first[0].role, &first[0].session_id), (ParticipantRole::Responder, &Some(session_id("s1"))));
    assert_eq!((&first[0].agent_id, first[0].left_at_ms), (&Some(agent_id("agent")), None));
    // A repeat, and another create of the session, change nothing; another session joins.
    ports.accept(new).await;
    ports.accept(create_in("a2", "s1", "agent", "c1")).await;
    assert_eq!(talkers().await, first);
    let batch = vec![create_in("a3", "s2", "agent", "c1"), create_in("a4", "s3", "other", "c1")];
    ports.ledger.accept(batch).await.expect("accepted");
    let mut sessions: Vec<_> = talkers().await.into_iter().filter_map(|one| one.session_id).collect();
    sessions.sort();
    assert_eq!(sessions, ["s1", "s2", "s3"].map(session_id));
    assert_eq!(ports.forum("c1").await.created_by, opened.created_by, "the conversation stays as it was");
    // Two of a batch open one conversation together, and one without any is left alone.
    let batch = vec![create_in("a5", "s4", "x", "c2"), create_in("a6", "s5", "y", "c2"), create("a7", "s6", "z")];
    ports.ledger.accept(batch).await.expect("accepted");
    assert_eq!(ports.forum("c2").await.primary_agent_id, Some(agent_id("x")));
    let second = ports.conversations.participants(&namespace, &conversation_id("c2")).await.expect("a read");
    assert_eq!(second.len(), 2);
    assert_eq!(ports.conversations.list(&conversation_query()).await.expect("a list").len(), 2);
}

async fn closed_conversations_take_no_sessions(ports: &Ports) {
    use domain::ports::ConversationChange;
    use schemas::conversation::ConversationStatus::{Active, Completed, Failed};
    let namespace = Namespace::default_ns();
    ports.talker("s1", "c1").await;
    let set = async |status| {
        let change = ConversationChange { status: Some(status), ..ConversationChange::default() };
        ports.conversations.change(&namespace, &conversation_id("c1"), &change).await.expect("changed")
    };
    for (status, id) in [(Completed, "a1"), (Failed, "a2")] {
        set(status).await;
        let refusal = ports.accept(create_in(id, "s2", "agent", "c1")).await;
        assert_eq!(refused(&refusal), Code::ConversationClosed);
        assert!(ports.sessions.session(&key("s2")).await.unwrap().is_none());
        let sessions = ports.conversations.participants(&namespace, &conversation_id("c1")).await.unwrap();
        assert_eq!(sessions.len(), 1, "who is refused takes no part");
        // The session that is there goes on to its end.
        accepted(&ports.accept(input(&format!("i-{id}"), "s1")).await);
    }
    set(Active).await;
    accepted(&ports.accept(create_in("a3", "s2", "agent", "c1")).await);
}

async fn namespaces_never_mix(ports: &Ports) {
    let owner = worker("w1");
    ports.talker("s1", "c1").await;
    let other = namespace("other");
    accepted(&ports.accept(in_namespace("other", create_in("create-s1", "s1", "agent", "c1"))).await);
    let talk =
        Talk { log: vec![note("n1")], turns: vec![turn("t1", "c1", "s1", 1)], operations: vec![operation("o1", "s1")] };
    ports.say(&owner, "s1", talk).await;
    assert_eq!(ports.log_of("c1").await.len(), 1);
    let elsewhere = domain::ports::LogQuery { namespace: other.clone(), ..log_query("c1") };
    assert!(ports.conversations.log(&elsewhere).await.unwrap().is_empty());
    let row = ports.conversations.conversation(&other, &conversation_id("c1")).await.unwrap().expect("its own row");
    assert_eq!(row.last_offset, 0);
    assert!(ports.conversations.turn(&other, &turn_id("t1")).await.unwrap().is_none());
    assert!(ports.operations.operation(&other, &operation_id("o1")).await.unwrap().is_none());
    let turns = domain::ports::TurnQuery { namespace: other.clone(), ..turn_query() };
    assert!(ports.conversations.turns(&turns).await.unwrap().is_empty());
    // Its namesake there has no such operation, so its result is nobody's business here.
    let result = ports.accept(in_namespace("other", tool_result("r1", "o1", None))).await;
    assert_eq!(refused(&result), Code::NoOpenOperation);
    assert_eq!(ports.work_state("o1").await, OperationState::Pending);
}
