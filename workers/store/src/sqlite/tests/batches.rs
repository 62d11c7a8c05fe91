//! Group commit: one bad member does not spoil its batch, nor does a caller that goes away.

use std::sync::Arc;

use domain::commit::{CommitResult, Settled};
use domain::effect::{EffectClass, EffectRow, EffectState};
use schemas::problem::Code;
use testkit::contract::Ports;
use testkit::contract::build::{action_id, create, key, next_commit, worker};

use super::fresh;

/// Makes the database refuse one session's rows, as a broken constraint would.
async fn poison(store: &super::SqliteStore, session: &str) {
    let mut tx = store.0.writer.begin().await.expect("the writer");
    for (name, table) in [("poison_journal", "journal"), ("poison_actions", "actions")] {
        let trigger = format!(
            "CREATE TRIGGER {name} BEFORE INSERT ON {table} WHEN new.session_id = '{session}'
             BEGIN SELECT raise(ABORT, 'poisoned'); END"
        );
        sqlx::raw_sql(sqlx::AssertSqlSafe(trigger)).execute(tx.connection()).await.expect("a trigger");
    }
    tx.finish(Ok(())).await.expect("finished");
}

/// Holds the writer until all calls wait, so that they become one batch.
async fn together<T: Send + 'static>(
    store: &super::SqliteStore,
    calls: Vec<impl Future<Output = T> + Send + 'static>,
) -> Vec<T> {
    let tx = store.0.writer.begin().await.expect("the writer");
    let waiting: Vec<_> = calls.into_iter().map(tokio::spawn).collect();
    // On one thread, this lets each call run up to where it waits.
    for _ in 0..100 {
        tokio::task::yield_now().await;
    }
    tx.finish(Ok(())).await.expect("finished");
    let mut results = Vec::new();
    for call in waiting {
        results.push(call.await.expect("no panic"));
    }
    results
}

#[tokio::test]
async fn one_bad_commit_fails_alone() {
    let (store, _, _directory) = fresh().await;
    let (ports, owner) = (Ports::of(store.clone()), worker("w1"));
    let mut commits = Vec::new();
    for n in 0..6 {
        let row = ports.created(&format!("s{n}"), "agent").await;
        let epoch = ports.own(row.shard, &owner).await;
        commits.push(next_commit(&row, epoch, 1));
    }
    poison(&store, "s3").await;
    let call = |commit| {
        let (commits, owner) = (ports.commits.clone(), owner.clone());
        async move { commits.commit(&owner, vec![commit]).await }
    };
    let results = together(&store, commits.into_iter().map(call).collect()).await;
    for (n, result) in results.iter().enumerate() {
        match (n, result) {
            (3, Err(failure)) => assert_eq!((failure.code, failure.retriable), (Code::Internal, false)),
            (_, Ok(results)) => assert!(matches!(results[..], [CommitResult::Done { .. }]), "s{n}: {results:?}"),
            (_, Err(failure)) => panic!("s{n} fell with it: {failure}"),
        }
    }
    assert_eq!(ports.row(&key("s3")).await.head.steps, 0);
}

#[tokio::test]
async fn one_bad_acceptance_fails_alone() {
    let (store, _, _directory) = fresh().await;
    poison(&store, "s1").await;
    let ports = Ports::of(store.clone());
    let call = |n: usize| {
        let ledger = ports.ledger.clone();
        async move { ledger.accept(vec![create(&format!("a{n}"), &format!("s{n}"), "agent")]).await }
    };
    let results = together(&store, (0..4).map(call).collect()).await;
    assert_eq!(results.iter().map(Result::is_ok).collect::<Vec<_>>(), [true, false, true, true]);
    assert!(ports.sessions.session(&key("s1")).await.unwrap().is_none());
}

#[tokio::test]
async fn commits_of_one_session_follow_each_other() {
    let (store, _, _directory) = fresh().await;
    let (ports, owner) = (Ports::of(store.clone()), worker("w1"));
    let mut row = ports.created("s1", "agent").await;
    let epoch = ports.own(row.shard, &owner).await;
    let mut calls = Vec::new();
    for _ in 0..5 {
        let commit = next_commit(&row, epoch, 1);
        row.head = commit.entry.head.clone();
        let (commits, owner) = (ports.commits.clone(), owner.clone());
        calls.push(async move { commits.commit(&owner, vec![commit]).await.expect("committed").remove(0) });
    }
    let results = together(&store, calls).await;
    let seqs = results.iter().map(|result| match result {
        CommitResult::Done { seq, .. } => *seq,
        other => panic!("should be done: {other:?}"),
    });
    assert_eq!(seqs.collect::<Vec<_>>(), [1, 2, 3, 4, 5]);
}

#[tokio::test]
async fn what_was_asked_for_is_done_though_the_caller_left() {
    let (store, _, _directory) = fresh().await;
    let (ports, owner) = (Ports::of(store.clone()), worker("w1"));
    let row = ports.created("s1", "agent").await;
    let epoch = ports.own(row.shard, &owner).await;
    let first = next_commit(&row, epoch, 1);
    let mut after = row.clone();
    after.head = first.entry.head.clone();
    let tx = store.0.writer.begin().await.expect("the writer");
    let (commits, by) = (ports.commits.clone(), owner.clone());
    let leaving = tokio::spawn(async move { commits.commit(&by, vec![first]).await });
    for _ in 0..100 {
        tokio::task::yield_now().await;
    }
    leaving.abort();
    tx.finish(Ok(())).await.expect("finished");
    assert_eq!(ports.commit_one(&owner, next_commit(&after, epoch, 1)).await, 2);
}

#[tokio::test]
async fn a_transaction_that_is_dropped_leaves_no_trace() {
    let (store, _, _directory) = fresh().await;
    let ports = Ports::of(store.clone());
    let mut tx = store.0.writer.begin().await.expect("the writer");
    sqlx::query("UPDATE shards SET seq = 99").execute(tx.connection()).await.expect("a statement");
    drop(tx);
    ports.created("s1", "agent").await;
    assert!(ports.journal.lag().await.unwrap().iter().all(|lag| lag.seq == 0));
}

#[tokio::test]
async fn a_large_call_goes_through_whole() {
    let (store, _, _directory) = fresh().await;
    let (ports, owner) = (Ports::of(store.clone()), worker("w1"));
    let actions = (0..700).map(|n| create(&format!("a{n}"), &format!("s{n}"), "agent")).collect();
    let verdicts = ports.ledger.accept(actions).await.expect("accepted");
    assert_eq!(verdicts.len(), 700);
    let mut commits = Vec::new();
    for n in 0..700 {
        let row = ports.row(&key(&format!("s{n}"))).await;
        let epoch = ports.own(row.shard, &owner).await;
        let mut commit = next_commit(&row, epoch, 1);
        let entry = Arc::make_mut(&mut commit.entry);
        entry.steps[0].text = Some("x".repeat(20_000));
        commit.effects = vec![EffectRow {
            key: format!("k\"{n}"),
            class: EffectClass::AtMostOnce,
            state: EffectState::Sent,
            what: "a call".to_owned(),
        }];
        commits.push(commit);
    }
    let results = ports.commits.commit(&owner, commits).await.expect("committed");
    assert!(results.iter().all(|result| matches!(result, CommitResult::Done { .. })));
    let open = ports.journal.open_effects(&key("s699")).await.unwrap();
    assert_eq!(open.len(), 1);
    assert_eq!(open[0].key, "k\"699");
}

#[tokio::test]
async fn misuse_is_refused_before_anything_is_written() {
    let (store, _, _directory) = fresh().await;
    let (ports, owner) = (Ports::of(store.clone()), worker("w1"));
    let row = ports.created("s1", "agent").await;
    let epoch = ports.own(row.shard, &owner).await;
    let twice = vec![next_commit(&row, epoch, 1), next_commit(&row, epoch, 1)];
    let failure = ports.commits.commit(&owner, twice).await.expect_err("one commit per session and call");
    assert_eq!((failure.code, failure.retriable), (Code::Internal, false));
    assert_eq!(ports.row(&row.key).await, row);
    let beyond = schemas::id::Shard(testkit::contract::SHARDS);
    assert!(ports.leases.claim(beyond, &owner, 1_000).await.is_err(), "there is no such shard");
    assert!(ports.journal.mark_archived(beyond, 1).await.is_err(), "there is no such shard");
}

#[tokio::test]
async fn what_is_settled_stays_settled() {
    let (store, _, _directory) = fresh().await;
    let (ports, owner) = (Ports::of(store.clone()), worker("w1"));
    let row = ports.created("s1", "agent").await;
    ports.created("s2", "agent").await;
    let epoch = ports.own(row.shard, &owner).await;
    for state in [EffectState::Sent, EffectState::Settled, EffectState::Sent] {
        let mut commit = next_commit(&ports.row(&row.key).await, epoch, 1);
        let what = "a call".to_owned();
        commit.effects = vec![EffectRow { key: "k1".to_owned(), class: EffectClass::AtMostOnce, state, what }];
        commit.settled = vec![Settled::ok(action_id("create-s2"))];
        ports.commit_one(&owner, commit).await;
    }
    assert!(ports.journal.open_effects(&row.key).await.unwrap().is_empty(), "it is never open again (E2)");
    assert_eq!(ports.ledger.pending_count(&key("s2")).await.unwrap(), 1, "another session's action is not ours");
}
