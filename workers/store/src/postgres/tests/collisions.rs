//! Several processes on one database: what meets is put in an order, and nothing is done twice.

use domain::commit::CommitResult;
use domain::ports::{Commits, Ledger, Verdict};
use testkit::contract::build::{accepted, create, in_namespace, input, key, next_commit, worker};
use testkit::contract::{Ports, SHARDS};

use super::{fresh, open};

const ROUNDS: usize = 30;

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_action_sent_to_two_gateways_is_accepted_once() {
    let (one, url) = fresh().await;
    let two = open(&url).await;
    for n in 0..ROUNDS {
        let new = create(&format!("a{n}"), &format!("s{n}"), "agent");
        let (first, second) = tokio::join!(one.accept(vec![new.clone()]), two.accept(vec![new]));
        let verdicts = [first.expect("a verdict").remove(0), second.expect("a verdict").remove(0)];
        let fresh = verdicts.iter().filter(|verdict| matches!(verdict, Verdict::Accepted(_))).count();
        let repeats = verdicts.iter().filter(|verdict| matches!(verdict, Verdict::Repeated(_))).count();
        assert_eq!((fresh, repeats), (1, 1), "{verdicts:?}");
    }
    one.close().await;
    two.close().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_session_created_by_two_gateways_starts_once() {
    let (one, url) = fresh().await;
    let two = open(&url).await;
    for n in 0..ROUNDS {
        let new = |by: &str| create(&format!("a{n}-{by}"), &format!("s{n}"), "agent");
        let (first, second) = tokio::join!(one.accept(vec![new("one")]), two.accept(vec![new("two")]));
        let verdicts = [first.expect("a verdict").remove(0), second.expect("a verdict").remove(0)];
        let mut seqs = verdicts.each_ref().map(|verdict| accepted(verdict).session_seq);
        seqs.sort_unstable();
        assert_eq!(seqs, [0, 1], "one starts it, the other finds it running");
    }
    one.close().await;
    two.close().await;
}

/// Gateways accept for the sessions that a worker commits, each in its own order, and the worker's
/// outbox goes to the same sessions: all of it comes through, and every lane is numbered gaplessly.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn gateways_and_worker_do_not_hinder_each_other() {
    const SESSIONS: usize = 24;
    let (one, url) = fresh().await;
    let two = open(&url).await;
    let (ports, owner) = (Ports::of(one.clone()), worker("w1"));
    for n in 0..SESSIONS {
        ports.created(&format!("s{n}"), &format!("agent{n}")).await;
    }
    for shard in 0..SHARDS {
        ports.own(schemas::id::Shard(shard), &owner).await;
    }
    let gateway = async |store: &super::PostgresStore, name: &str| {
        for round in 0..ROUNDS {
            let session = |n: usize| (n * 7 + round * 5 + name.len()) % SESSIONS;
            let news = (0..SESSIONS).map(|n| input(&format!("{name}-{round}-{n}"), &format!("s{}", session(n))));
            let verdicts = store.accept(news.collect()).await.expect("verdicts");
            assert!(verdicts.iter().all(|verdict| matches!(verdict, Verdict::Accepted(_))));
            let ids: Vec<_> = verdicts
                .iter()
                .map(accepted)
                .map(|action| (action.namespace.clone(), action.action_id.clone()))
                .collect();
            store.mark_published(&ids).await.expect("marked");
        }
    };
    let running = async {
        for round in 0..ROUNDS {
            let mut commits = Vec::new();
            for n in (0..SESSIONS).rev() {
                let row = ports.row(&key(&format!("s{n}"))).await;
                let mut commit = next_commit(&row, schemas::id::Epoch(1), 1);
                if n % 3 == 0 {
                    let to = format!("s{}", (n + round) % SESSIONS);
                    commit.follow_ups = vec![input(&format!("out-{round}-{n}"), &to)];
                }
                let pending = ports.ledger.pending(&row.key, schemas::action::Lane::Work, 0, 3).await.expect("a read");
                let settled = |action: &schemas::action::Action| domain::commit::Settled::ok(action.action_id.clone());
                commit.settled = pending.actions.iter().rev().map(settled).collect();
                commits.push(commit);
            }
            let results = one.commit(&owner, commits).await.expect("committed");
            assert!(results.iter().all(|result| matches!(result, CommitResult::Done { .. })), "{results:?}");
        }
    };
    tokio::join!(gateway(&two, "g"), gateway(&one, "gateway"), running);
    let mut numbered = 0;
    for n in 0..SESSIONS {
        numbered += ports.row(&key(&format!("s{n}"))).await.work_seq as usize;
    }
    assert_eq!(numbered, SESSIONS + 2 * ROUNDS * SESSIONS + ROUNDS * SESSIONS.div_ceil(3));
    one.close().await;
    two.close().await;
}

/// Ids compare byte by byte, whatever the database's own order is.
#[tokio::test]
async fn ids_come_in_the_order_of_their_bytes() {
    let (store, _) = fresh().await;
    let ports = Ports::of(store.clone());
    let mut sessions = ["a", "B", "a-b", "a_b", "A", "a.b", "ab", "Z9", "0", "a:b"];
    for session in sessions {
        ports.created(session, session).await;
        ports.accept(in_namespace("Zeta", create(session, session, session))).await;
    }
    sessions.sort_unstable();
    let heads = ports.sessions.heads(None, 100).await.expect("heads");
    let found: Vec<&str> = heads.iter().map(|(key, _)| key.session_id.as_str()).collect();
    assert_eq!(found, [sessions, sessions].concat());
    assert!(heads.iter().is_sorted_by_key(|(key, _)| key));
    store.close().await;
}
