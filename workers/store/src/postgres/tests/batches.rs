//! Group commit: one bad member does not spoil its batch, nor does a caller that goes away.

use std::sync::Arc;

use domain::commit::{CommitResult, Settled};
use domain::effect::{EffectClass, EffectRow, EffectState};
use domain::ports::Verdict;
use schemas::id::Namespace;
use schemas::problem::Code;
use testkit::contract::build::{action, action_id, agent_id, create, key, next_commit, worker};
use testkit::contract::{Ports, SHARDS};

use super::{execute, fresh};

/// Makes the database refuse one session's rows, as a broken constraint would.
async fn poison(url: &str, session: &str) {
    execute(
        url,
        &format!(
            "CREATE FUNCTION refuse() RETURNS trigger LANGUAGE plpgsql AS
                 $$ BEGIN RAISE EXCEPTION 'poisoned'; END $$;
             CREATE TRIGGER poison BEFORE INSERT ON journal FOR EACH ROW
                 WHEN (new.session_id = '{session}') EXECUTE FUNCTION refuse();
             CREATE TRIGGER poison BEFORE INSERT ON actions FOR EACH ROW
                 WHEN (new.session_id = '{session}') EXECUTE FUNCTION refuse()"
        ),
    )
    .await;
}

#[tokio::test]
async fn one_bad_member_fails_alone() {
    let (store, url) = fresh().await;
    let (ports, owner) = (Ports::of(store.clone()), worker("w1"));
    let mut commits = Vec::new();
    for n in 0..6 {
        let row = ports.created(&format!("s{n}"), "agent").await;
        let epoch = ports.own(row.shard, &owner).await;
        commits.push(next_commit(&row, epoch, 1));
    }
    poison(&url, "s3").await;
    let call = |commit| {
        let (commits, owner) = (ports.commits.clone(), owner.clone());
        async move { commits.commit(&owner, vec![commit]).await }
    };
    for (n, result) in futures::future::join_all(commits.into_iter().map(call)).await.iter().enumerate() {
        match (n, result) {
            (3, Err(failure)) => assert_eq!((failure.code, failure.retriable), (Code::Internal, false)),
            (_, Ok(results)) => assert!(matches!(results[..], [CommitResult::Done { .. }]), "s{n}: {results:?}"),
            (_, Err(failure)) => panic!("s{n} fell with it: {failure}"),
        }
    }
    assert_eq!(ports.row(&key("s3")).await.head.steps, 0);
    let accept = |n: usize| {
        let ledger = ports.ledger.clone();
        async move {
            ledger
                .accept(vec![action(
                    schemas::action::ActionType::Input,
                    &format!("a{n}"),
                    Some(&format!("s{n}")),
                    None,
                )])
                .await
        }
    };
    let results = futures::future::join_all((2..5).map(accept)).await;
    assert_eq!(results.iter().map(Result::is_ok).collect::<Vec<_>>(), [true, false, true]);
    store.close().await;
}

#[tokio::test]
async fn commits_of_one_session_follow_each_other() {
    let (store, _) = fresh().await;
    let (ports, owner) = (Ports::of(store.clone()), worker("w1"));
    let mut row = ports.created("s1", "agent").await;
    let epoch = ports.own(row.shard, &owner).await;
    let mut calls = Vec::new();
    for _ in 0..20 {
        let commit = next_commit(&row, epoch, 1);
        row.head = commit.entry.head.clone();
        let (commits, owner) = (ports.commits.clone(), owner.clone());
        calls.push(async move { commits.commit(&owner, vec![commit]).await.expect("committed").remove(0) });
    }
    let results = futures::future::join_all(calls).await;
    let seqs = results.iter().map(|result| match result {
        CommitResult::Done { seq, .. } => *seq,
        other => panic!("should be done: {other:?}"),
    });
    assert!(seqs.eq(1..=20));
    store.close().await;
}

/// Over all shards, and so through all writers; larger than any batch; with a timer that moves.
#[tokio::test]
async fn a_large_call_goes_through_whole() {
    let (store, _) = fresh().await;
    let (ports, owner) = (Ports::of(store.clone()), worker("w1"));
    let actions = (0..700).map(|n| create(&format!("a{n}"), &format!("s{n}"), "agent")).collect();
    assert_eq!(ports.ledger.accept(actions).await.expect("accepted").len(), 700);
    for shard in 0..SHARDS {
        ports.own(schemas::id::Shard(shard), &owner).await;
    }
    let mut commits = Vec::new();
    for n in 0..700 {
        let row = ports.row(&key(&format!("s{n}"))).await;
        let mut commit = next_commit(&row, schemas::id::Epoch(1), 1);
        let entry = Arc::make_mut(&mut commit.entry);
        entry.steps[0].text = Some("x".repeat(20_000));
        commit.settled = vec![Settled::ok(action_id(&format!("a{n}")))];
        commit.effects = vec![EffectRow {
            key: format!("k\"{n}\0"),
            class: EffectClass::AtMostOnce,
            state: EffectState::Sent,
            what: "a call\0".to_owned(),
        }];
        commits.push(commit);
    }
    let results = ports.commits.commit(&owner, commits).await.expect("committed");
    assert!(results.iter().all(|result| matches!(result, CommitResult::Done { .. })));
    let open = ports.journal.open_effects(&key("s699")).await.unwrap();
    assert_eq!((open.len(), open[0].what.as_str()), (1, "a call\u{FFFD}"), "of free text, nothing hangs on a NUL");
    assert_eq!(ports.ledger.stats().await.unwrap().pending, 0);
    store.close().await;
}

#[tokio::test]
async fn misuse_is_refused_before_anything_is_written() {
    let (store, _) = fresh().await;
    let (ports, owner) = (Ports::of(store.clone()), worker("w1"));
    let row = ports.created("s1", "agent").await;
    let epoch = ports.own(row.shard, &owner).await;
    let twice = vec![next_commit(&row, epoch, 1), next_commit(&row, epoch, 1)];
    let failure = ports.commits.commit(&owner, twice).await.expect_err("one commit per session and call");
    assert_eq!((failure.code, failure.retriable), (Code::Internal, false));
    assert_eq!(ports.row(&row.key).await, row);
    let beyond = schemas::id::Shard(SHARDS);
    assert!(ports.leases.claim(beyond, &owner, 1_000).await.is_err(), "there is no such shard");
    assert!(ports.journal.mark_archived(beyond, 1).await.is_err(), "there is no such shard");
    store.close().await;
}

/// What the indexes hold does not change from step to step, so a row is replaced within its page.
#[tokio::test]
async fn a_running_session_stays_where_it_is_in_the_index() {
    let (store, _) = fresh().await;
    let (ports, owner) = (Ports::of(store.clone()), worker("w1"));
    let row = ports.created("s1", "agent").await;
    let commit_at = async |wake_at_ms| {
        let row = ports.row(&row.key).await;
        let epoch = ports.own(row.shard, &owner).await;
        let commit =
            testkit::contract::build::with_head(next_commit(&row, epoch, 1), |head| head.wake_at_ms = wake_at_ms);
        ports.commit_one(&owner, commit).await;
        assert_eq!(ports.row(&row.key).await.head.wake_at_ms, wake_at_ms, "the head says when");
        let due = ports.sessions.due(row.shard, i64::MAX, None, 10).await.expect("due sessions");
        due.first().map(|(at, _)| *at)
    };
    assert_eq!(commit_at(Some(1_000)).await, Some(1_000));
    assert_eq!(commit_at(Some(2_000)).await, Some(1_000), "due before and after");
    let later = 1 << 52;
    assert_eq!(commit_at(Some(later)).await, Some(later), "a timer is what it says");
    assert_eq!(commit_at(Some(3_000)).await, Some(3_000));
    assert_eq!(commit_at(None).await, None);
    store.close().await;
}

/// Sessions of one batch follow each other by a millisecond each, and so have times ahead of the
/// clock. What is created next is newer still, also when it is written without a look.
#[tokio::test]
async fn the_newest_session_of_an_agent_is_the_one_created_last() {
    let (store, _) = fresh().await;
    let ports = Ports::of(store.clone());
    for round in 0..4 {
        let ours = round * 100..(round + 1) * 100;
        let actions = ours.clone().map(|n| create(&format!("a{n}"), &format!("s{n}"), "agent")).collect();
        ports.ledger.accept(actions).await.expect("accepted");
        let newest = ports.sessions.latest(&Namespace::default_ns(), &agent_id("agent")).await.expect("an answer");
        assert_eq!(newest.expect("a session").key, key(&format!("s{}", ours.end - 1)));
    }
    store.close().await;
}

/// A create that is sent again is told so, whether it was written with or without a look.
#[tokio::test]
async fn a_repeated_create_among_new_ones_is_a_repeat() {
    let (store, _) = fresh().await;
    let ports = Ports::of(store.clone());
    for n in 0..3 {
        ports.ledger.accept(vec![create(&format!("a{n}"), &format!("s{n}"), "agent")]).await.expect("accepted");
    }
    let actions = ["a1", "a7", "a1"].map(|id| create(id, &id.replace('a', "s"), "agent"));
    let verdicts = ports.ledger.accept(actions.to_vec()).await.expect("accepted");
    let is_new: Vec<bool> = verdicts.iter().map(|verdict| matches!(verdict, Verdict::Accepted(_))).collect();
    assert_eq!(is_new, [false, true, false]);
    let first = create("a8", "s7", "agent");
    let verdicts = ports.ledger.accept(vec![first]).await.expect("accepted");
    assert!(matches!(&verdicts[..], [Verdict::Accepted(accepted)] if accepted.action.session_seq == 0), "{verdicts:?}");
    store.close().await;
}
