//! Several processes on one database: what meets is put in an order, and nothing is done twice.

use std::collections::HashSet;

use domain::commit::CommitResult;
use domain::ports::{Commits, Conversations, Ledger, Post, Posted, Verdict};
use schemas::conversation::{LogKind, Talk};
use schemas::id::{Namespace, WorkerId};
use testkit::contract::build::{accepted, create, in_namespace, input, key, next_commit, worker};
use testkit::contract::words::{conversation_id, gapless, message, model_call, record};
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

/// Sessions of a worker and two gateways speak in the same conversations, and say some things again: each log has every
/// record once, numbered without a gap, and what calls have used is counted once.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_is_said_at_once_is_said_once_and_numbered() {
    const SESSIONS: usize = 12;
    const FORUMS: usize = 3;
    let (one, url) = fresh().await;
    let two = open(&url).await;
    let ports = Ports::of(one.clone());
    for n in 0..SESSIONS {
        ports.talker(&format!("s{n}"), &format!("c{}", n % FORUMS)).await;
    }
    let speaking = async |store: &super::PostgresStore, owner: &WorkerId, parity: u16| {
        let ports = Ports::of(store.clone());
        let mut committed = 0;
        for round in 0..ROUNDS {
            let mut commits = Vec::new();
            for n in 0..SESSIONS {
                let session = format!("s{n}");
                if ports.row(&key(&session)).await.shard.0 % 2 == parity {
                    let call = model_call(&format!("call-{round}-{n}"), 6, 0.0);
                    let log = vec![record(LogKind::Note, &format!("all-{}", round / 2)), call];
                    commits.push(ports.saying(owner, &session, Talk { log, ..Talk::default() }).await);
                }
            }
            committed += commits.len();
            let results = store.commit(owner, commits).await.expect("committed");
            assert!(results.iter().all(|result| matches!(result, CommitResult::Done { .. })), "{results:?}");
        }
        committed
    };
    let posting = async |store: &super::PostgresStore| {
        for round in 0..ROUNDS {
            for forum in 0..FORUMS {
                let post = Post {
                    namespace: Namespace::default_ns(),
                    conversation_id: conversation_id(&format!("c{forum}")),
                    record: message(&format!("post-{round}"), "x"),
                    actions: Vec::new(),
                };
                assert!(matches!(store.post(post).await, Ok(Posted::Done { .. })));
            }
        }
    };
    let (first, second) = (worker("w1"), worker("w2"));
    let (mine, theirs, ..) =
        tokio::join!(speaking(&one, &first, 0), speaking(&two, &second, 1), posting(&one), posting(&two));
    assert_eq!(mine + theirs, ROUNDS * SESSIONS);
    assert!(mine > 0 && theirs > 0, "{mine} and {theirs}");
    for forum in 0..FORUMS {
        let log = ports.log_of(&format!("c{forum}")).await;
        let ids: HashSet<&str> = gapless(&log).into_iter().collect();
        assert_eq!((log.len(), ids.len()), (ROUNDS / 2 + ROUNDS * (1 + SESSIONS / FORUMS), log.len()));
        assert_eq!(ports.forum(&format!("c{forum}")).await.last_offset, log.len() as u64);
    }
    let spent = ports.conversations.spent(&Namespace::default_ns()).await.expect("a sum");
    assert_eq!((spent.calls, spent.tokens), ((ROUNDS * SESSIONS) as u64, (ROUNDS * SESSIONS * 7) as u64));
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
