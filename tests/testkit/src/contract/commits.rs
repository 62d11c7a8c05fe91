//! Contract of `Commits`.

use std::sync::Arc;

use domain::commit::{Commit, CommitResult, Settled};
use domain::effect::{EffectClass, EffectRow, EffectState};
use schemas::action::{Action, ActionOutcome, ActionType, Lane};
use schemas::id::{Epoch, Namespace, Shard};
use schemas::problem::Code;
use schemas::session::{Cause, SessionRow, SessionStatus};

use super::Ports;
use super::build::*;

pub async fn suite(make: &impl AsyncFn() -> Ports) {
    a_commit_does_all_of_it(&make().await).await;
    the_fence_holds(&make().await).await;
    the_fence_is_per_shard(&make().await).await;
    the_guard_notices_a_repeat(&make().await).await;
    conflicts_leave_no_gap(&make().await).await;
    a_head_that_is_there_takes_no_place(&make().await).await;
    repeats_among_others_leave_no_gap(&make().await).await;
    settlement_is_once(&make().await).await;
    follow_ups_are_accepted_with_it(&make().await).await;
    follow_ups_fall_with_it(&make().await).await;
    effects_move_on(&make().await).await;
    concurrent_commits_stay_gapless(&make().await).await;
    namespaces_never_mix(&make().await).await;
}

async fn journal_of(ports: &Ports, shard: Shard) -> Vec<schemas::record::JournalRow> {
    ports.journal.above(shard, 0, 10_000, usize::MAX).await.expect("the journal can be read")
}

fn is_fenced(result: &CommitResult) -> bool {
    matches!(result, CommitResult::Fenced)
}

async fn a_commit_does_all_of_it(ports: &Ports) {
    let owner = worker("w1");
    let row = ports.created("s1", "agent").await;
    let epoch = ports.own(row.shard, &owner).await;
    let mut commit = next_commit(&row, epoch, 3);
    commit.settled = vec![Settled::ok(action_id("create-s1"))];
    assert_eq!(ports.commit_one(&owner, commit.clone()).await, 1, "the first place of the shard");
    assert_eq!(ports.row(&row.key).await.head, commit.entry.head);
    let journal = journal_of(ports, row.shard).await;
    assert_eq!(journal.len(), 1);
    assert_eq!((journal[0].shard, journal[0].seq, &journal[0].key), (row.shard, 1, &row.key));
    assert_eq!(journal[0].entry, *commit.entry, "the entry comes back as it went in");
    let settled = ports.ledger.action(&Namespace::default_ns(), &action_id("create-s1")).await.unwrap().expect("a row");
    assert_eq!((settled.processed, settled.outcome), (true, Some(ActionOutcome::Ok)));
    assert_eq!(ports.step(&owner, &row.key, 64).await, 2, "then the second");
    assert_eq!(ports.row(&row.key).await.head.steps, 67);
    assert!(ports.commits.commit(&owner, Vec::new()).await.expect("nothing to do").is_empty());
}

async fn the_fence_holds(ports: &Ports) {
    let (owner, other) = (worker("w1"), worker("w2"));
    let row = ports.created("s1", "agent").await;
    let commit = next_commit(&row, Epoch(0), 1);
    assert!(is_fenced(&ports.commit_result(&owner, commit).await), "nobody holds the shard");
    let epoch = ports.own(row.shard, &owner).await;
    for (who, epoch) in [(&owner, Epoch(epoch.0 + 1)), (&owner, Epoch(epoch.0 - 1)), (&other, epoch)] {
        let mut commit = next_commit(&row, epoch, 1);
        commit.settled = vec![Settled::ok(action_id("create-s1"))];
        commit.follow_ups = vec![create("f1", "child", "agent")];
        assert!(is_fenced(&ports.commit_result(who, commit).await), "{who} at {epoch}");
    }
    // The zombie: its shard went to another worker.
    let lease = domain::ports::Lease { shard: row.shard, epoch };
    ports.leases.release(&owner, &lease).await.expect("released");
    let taken = ports.own(row.shard, &other).await;
    assert!(taken > epoch);
    assert!(is_fenced(&ports.commit_result(&owner, next_commit(&row, epoch, 1)).await));
    assert!(is_fenced(&ports.commit_result(&owner, next_commit(&row, taken, 1)).await), "epoch alone is not enough");
    assert_eq!(ports.row(&row.key).await.head, row.head, "a fenced commit writes nothing");
    assert!(journal_of(ports, row.shard).await.is_empty());
    assert!(ports.sessions.session(&key("child")).await.unwrap().is_none());
    assert_eq!(ports.ledger.pending_count(&row.key).await.unwrap(), 1);
    assert_eq!(ports.commit_one(&other, next_commit(&row, taken, 1)).await, 1, "fenced ones take no place");
}

async fn the_fence_is_per_shard(ports: &Ports) {
    let (owner, other) = (worker("w1"), worker("w2"));
    let mut commits = Vec::new();
    for n in 0..12 {
        let row = ports.created(&format!("s{n}"), "agent").await;
        let holder = if row.shard.0 % 2 == 0 { &owner } else { &other };
        let epoch = ports.own(row.shard, holder).await;
        commits.push(next_commit(&row, epoch, 1));
    }
    let results = ports.commits.commit(&owner, commits.clone()).await.expect("a batch");
    assert_eq!(results.len(), commits.len());
    for (commit, result) in commits.iter().zip(&results) {
        match commit.shard.0 % 2 {
            0 => assert!(matches!(result, CommitResult::Done { .. }), "{}: {result:?}", commit.key),
            _ => assert!(is_fenced(result), "{}: {result:?}", commit.key),
        }
    }
    for shard in 0..super::SHARDS {
        let journal = journal_of(ports, Shard(shard)).await;
        let expected = commits.iter().filter(|commit| commit.shard == Shard(shard) && shard % 2 == 0).count();
        assert_eq!(journal.iter().map(|row| row.seq).collect::<Vec<_>>(), (1..=expected as u64).collect::<Vec<_>>());
        let in_order = commits.iter().filter(|commit| commit.shard == Shard(shard) && shard % 2 == 0);
        assert!(journal.iter().map(|row| &row.key).eq(in_order.map(|commit| &commit.key)), "in the order of the call");
    }
}

async fn the_guard_notices_a_repeat(ports: &Ports) {
    let owner = worker("w1");
    let row = ports.created("s1", "agent").await;
    let epoch = ports.own(row.shard, &owner).await;
    let mut commit = next_commit(&row, epoch, 2);
    commit.follow_ups = vec![create("f1", "child", "agent")];
    ports.commit_one(&owner, commit.clone()).await;
    let mut wrong_steps = next_commit(&ports.row(&row.key).await, epoch, 1);
    wrong_steps.expect_steps += 1;
    let mut wrong_offset = next_commit(&ports.row(&row.key).await, epoch, 1);
    wrong_offset.expect_offset += 1;
    let mut no_session = next_commit(&row, epoch, 1);
    no_session.key = key("none");
    for repeat in [commit.clone(), wrong_steps, wrong_offset, no_session] {
        let result = ports.commit_result(&owner, repeat).await;
        assert!(matches!(result, CommitResult::Conflict), "{result:?}");
    }
    assert_eq!(ports.row(&row.key).await.head, commit.entry.head);
    assert_eq!(journal_of(ports, row.shard).await.len(), 1);
    assert_eq!(ports.step(&owner, &row.key, 1).await, 2, "conflicts take no place");
}

async fn conflicts_leave_no_gap(ports: &Ports) {
    let owner = worker("w1");
    let mut commits = Vec::new();
    for n in 0..24 {
        let row = ports.created(&format!("s{n}"), "agent").await;
        let epoch = ports.own(row.shard, &owner).await;
        let mut commit = next_commit(&row, epoch, 1);
        commit.expect_steps += u64::from(n % 3 == 0);
        commits.push(commit);
    }
    let results = ports.commits.commit(&owner, commits.clone()).await.expect("a batch");
    for (n, result) in results.iter().enumerate() {
        assert_eq!(matches!(result, CommitResult::Conflict), n % 3 == 0, "{n}: {result:?}");
    }
    for lag in ports.journal.lag().await.expect("a read") {
        let journal = journal_of(ports, lag.shard).await;
        let seqs: Vec<u64> = journal.iter().map(|row| row.seq).collect();
        assert_eq!(seqs, (1..=lag.seq).collect::<Vec<_>>(), "shard {}", lag.shard);
        for row in &journal {
            let place = commits.iter().position(|commit| commit.key == row.key).expect("one of ours");
            assert!(matches!(&results[place], CommitResult::Done { seq, .. } if *seq == row.seq));
        }
    }
}

/// A commit without steps and events: the session waits from now on.
fn waits_for_input(row: &SessionRow, epoch: Epoch) -> Commit {
    let mut commit = next_commit(row, epoch, 0);
    let entry = Arc::make_mut(&mut commit.entry);
    entry.events.clear();
    entry.head.next_offset = row.head.next_offset;
    entry.head.cause = Cause::Input;
    entry.head.wake_at_ms = None;
    entry.head.updated_at_ms += 1;
    commit
}

async fn a_head_that_is_there_takes_no_place(ports: &Ports) {
    let owner = worker("w1");
    let row = ports.created("s1", "agent").await;
    ports.accept(input("i1", "s1")).await;
    ports.step(&owner, &row.key, 2).await;
    let epoch = ports.own(row.shard, &owner).await;
    let mut commit = waits_for_input(&ports.row(&row.key).await, epoch);
    commit.settled = vec![Settled::ok(action_id("create-s1"))];
    commit.effects = vec![effect("k1", EffectState::Sent)];
    commit.follow_ups = vec![create("f1", "child", "child-agent")];
    assert_eq!(ports.commit_one(&owner, commit.clone()).await, 2);
    let after = (journal_of(ports, row.shard).await, ports.row(&row.key).await);
    assert_eq!(after.0.len(), 2);
    // Its answer was lost: it comes again, and again.
    for _ in 0..2 {
        assert_eq!(ports.commit_one(&owner, commit.clone()).await, 2, "the place of the shard's last row");
        assert_eq!((journal_of(ports, row.shard).await, ports.row(&row.key).await), after);
    }
    assert_eq!(ports.journal.open_effects(&row.key).await.expect("a read"), [effect("k1", EffectState::Sent)]);
    assert_eq!(ports.ledger.pending_count(&key("child")).await.unwrap(), 1, "the child is there once");
    // One that leaves the head alone and has something else to say is heard.
    let mut more = commit.clone();
    more.settled = vec![Settled::ok(action_id("i1"))];
    more.effects = vec![effect("k1", EffectState::Settled)];
    more.follow_ups = Vec::new();
    ports.commit_one(&owner, more).await;
    assert!(ports.journal.open_effects(&row.key).await.expect("a read").is_empty());
    assert_eq!(ports.ledger.pending_count(&row.key).await.unwrap(), 0);
    assert_eq!(journal_of(ports, row.shard).await, after.0);
    // The fence comes first, whatever the head.
    let mut zombie = commit;
    zombie.epoch = Epoch(epoch.0 - 1);
    assert!(is_fenced(&ports.commit_result(&owner, zombie).await));
    assert_eq!(ports.step(&owner, &row.key, 1).await, 3, "nothing was left out");
}

async fn repeats_among_others_leave_no_gap(ports: &Ports) {
    let owner = worker("w1");
    let mut commits = Vec::new();
    for n in 0..24 {
        let row = ports.created(&format!("s{n}"), "agent").await;
        ports.step(&owner, &row.key, 1).await;
        let (row, epoch) = (ports.row(&row.key).await, ports.own(row.shard, &owner).await);
        let mut commit = waits_for_input(&row, epoch);
        match n % 3 {
            0 => {
                ports.commit_one(&owner, commit.clone()).await;
            }
            1 => commit.expect_steps += 1,
            _ => commit = next_commit(&row, epoch, 1),
        }
        commits.push(commit);
    }
    let before: u64 = ports.journal.lag().await.expect("a read").iter().map(|lag| lag.seq).sum();
    let results = ports.commits.commit(&owner, commits.clone()).await.expect("a batch");
    let mut total = 0;
    for lag in ports.journal.lag().await.expect("a read") {
        let journal = journal_of(ports, lag.shard).await;
        assert_eq!(journal.iter().map(|row| row.seq).collect::<Vec<_>>(), (1..=lag.seq).collect::<Vec<_>>());
        total += lag.seq;
        for (commit, result) in commits.iter().zip(&results).filter(|(commit, _)| commit.shard == lag.shard) {
            let CommitResult::Done { seq, .. } = result else { continue };
            let row = &journal[usize::try_from(*seq).expect("a place") - 1];
            assert!(commit.entry.steps.is_empty() || row.entry == *commit.entry, "a step is at its place");
        }
    }
    assert_eq!(total, before + 8, "only steps take places");
    let is_as_meant = |(n, result): (usize, &CommitResult)| match n % 3 {
        1 => matches!(result, CommitResult::Conflict),
        _ => matches!(result, CommitResult::Done { .. }),
    };
    assert!(results.iter().enumerate().all(is_as_meant), "{results:?}");
}

async fn settlement_is_once(ports: &Ports) {
    let owner = worker("w1");
    let row = ports.created("s1", "agent").await;
    ports.accept(input("i1", "s1")).await;
    let epoch = ports.own(row.shard, &owner).await;
    let mut commit = next_commit(&row, epoch, 1);
    commit.settled = vec![
        Settled::rejected(action_id("i1"), Code::InputNotTaken, "no \"input\" \u{0} here"),
        Settled::ok(action_id("none")),
    ];
    ports.commit_one(&owner, commit).await;
    let view = async |id| {
        let namespace = Namespace::default_ns();
        ports.ledger.action(&namespace, &action_id(id)).await.unwrap().expect("the action is in the ledger")
    };
    let first = view("i1").await;
    assert_eq!((first.outcome, first.code), (Some(ActionOutcome::Rejected), Some(Code::InputNotTaken)));
    // A database that has no NUL in its texts keeps the replacement character in its place.
    let error = first.error.as_deref().map(|text| text.replace('\u{0}', "\u{fffd}"));
    assert_eq!(error.as_deref(), Some("no \"input\" \u{fffd} here"));
    let mut again = next_commit(&ports.row(&row.key).await, epoch, 1);
    again.settled = vec![Settled::ok(action_id("i1"))];
    ports.commit_one(&owner, again).await;
    let second = view("i1").await;
    assert_eq!((second.outcome, second.processed_at), (first.outcome, first.processed_at), "an outcome stays");
}

async fn follow_ups_are_accepted_with_it(ports: &Ports) {
    let owner = worker("w1");
    let row = ports.created("parent", "agent").await;
    ports.created("sibling", "agent").await;
    let epoch = ports.own(row.shard, &owner).await;
    let mut commit = next_commit(&row, epoch, 1);
    commit.follow_ups = vec![
        create("f1", "child", "child-agent"),
        input("f2", "child"),
        input("f3", "nobody"),
        action(ActionType::Pause, "f4", Some("sibling"), None),
        create("f5", "sibling", "agent"),
    ];
    let result = ports.commit_result(&owner, commit).await;
    let CommitResult::Done { follow_ups, .. } = result else { panic!("should be done: {result:?}") };
    // What ended on acceptance, because its session was there already, need not be in the list.
    let under_way = follow_ups.iter().filter(|action| action.session_seq > 0);
    let sent: Vec<_> = under_way.map(|action| (action.action_id.as_str(), action.session_seq)).collect();
    assert_eq!(sent, [("f1", 1), ("f2", 2), ("f4", 1)], "what is under way, in order");
    assert_eq!(ports.row(&key("child")).await.head.status, SessionStatus::Starting);
    let pending = ports.ledger.pending(&key("child"), Lane::Work, 0, 10).await.unwrap();
    let as_kept: Vec<_> = follow_ups[..2].iter().map(|sent| Action { opens: None, ..sent.clone() }).collect();
    assert_eq!(pending.actions, as_kept, "the ledger has them as the queue will");
    let refused = ports.ledger.action(&Namespace::default_ns(), &action_id("f3")).await.unwrap().expect("recorded");
    assert_eq!(refused.code, Some(Code::SessionNotFound));
    // A session that ends by a commit refuses what that commit sends to it.
    let mut last = with_head(next_commit(&ports.row(&row.key).await, epoch, 1), |head| {
        head.status = SessionStatus::Completed;
    });
    last.follow_ups = vec![input("f6", "parent")];
    let result = ports.commit_result(&owner, last).await;
    assert!(matches!(&result, CommitResult::Done { follow_ups, .. } if follow_ups.is_empty()), "{result:?}");
    let refused = ports.ledger.action(&Namespace::default_ns(), &action_id("f6")).await.unwrap().expect("recorded");
    assert_eq!(refused.code, Some(Code::SessionEnded));
}

async fn follow_ups_fall_with_it(ports: &Ports) {
    let owner = worker("w1");
    let row = ports.created("s1", "agent").await;
    let epoch = ports.own(row.shard, &owner).await;
    let mut conflict = next_commit(&row, epoch, 1);
    conflict.expect_offset += 1;
    conflict.follow_ups = vec![create("f1", "child", "child-agent")];
    conflict.settled = vec![Settled::ok(action_id("create-s1"))];
    conflict.effects = vec![effect("k1", EffectState::Sent)];
    assert!(matches!(ports.commit_result(&owner, conflict).await, CommitResult::Conflict));
    assert!(ports.sessions.session(&key("child")).await.unwrap().is_none());
    assert!(ports.ledger.action(&Namespace::default_ns(), &action_id("f1")).await.unwrap().is_none());
    assert_eq!(ports.ledger.pending_count(&row.key).await.unwrap(), 1);
    assert!(ports.journal.open_effects(&row.key).await.unwrap().is_empty());
}

fn effect(key: &str, state: EffectState) -> EffectRow {
    EffectRow { key: key.to_owned(), class: EffectClass::AtMostOnce, state, what: "POST \"there\"".to_owned() }
}

async fn effects_move_on(ports: &Ports) {
    let owner = worker("w1");
    let row = ports.created("s1", "agent").await;
    let epoch = ports.own(row.shard, &owner).await;
    let write = async |effects: Vec<EffectRow>| {
        let mut commit = next_commit(&ports.row(&row.key).await, epoch, 1);
        commit.effects = effects;
        ports.commit_one(&owner, commit).await;
        ports.journal.open_effects(&row.key).await.expect("a read")
    };
    let (one, two) = (effect("k1", EffectState::Sent), effect("k2", EffectState::Sent));
    assert_eq!(write(vec![one.clone(), two.clone()]).await, [one, two.clone()]);
    assert_eq!(write(vec![effect("k1", EffectState::Settled)]).await, [two]);
    assert!(write(vec![effect("k2", EffectState::Settled)]).await.is_empty());
    assert!(ports.journal.open_effects(&key("other")).await.unwrap().is_empty());
}

async fn concurrent_commits_stay_gapless(ports: &Ports) {
    let owner = worker("w1");
    let mut tasks = tokio::task::JoinSet::new();
    for n in 0..24 {
        let row = ports.created(&format!("s{n}"), "agent").await;
        let epoch = ports.own(row.shard, &owner).await;
        let (ports, owner) = (ports.clone(), owner.clone());
        tasks.spawn(async move {
            let mut row = row;
            for _ in 0..10 {
                let commit = next_commit(&row, epoch, 2);
                row.head = commit.entry.head.clone();
                ports.commit_one(&owner, commit).await;
            }
        });
    }
    tasks.join_all().await;
    let mut total = 0;
    for lag in ports.journal.lag().await.expect("a read") {
        let journal = journal_of(ports, lag.shard).await;
        assert_eq!(journal.iter().map(|row| row.seq).collect::<Vec<_>>(), (1..=lag.seq).collect::<Vec<_>>());
        total += journal.len();
    }
    assert_eq!(total, 240);
    for n in 0..24 {
        let entries = ports.journal.entries(&key(&format!("s{n}")), 0, 100).await.expect("a read");
        let iterations: Vec<u64> = entries.iter().flat_map(|row| &row.entry.steps).map(|step| step.iteration).collect();
        assert_eq!(iterations, (0..20).collect::<Vec<_>>(), "s{n}");
    }
}

async fn namespaces_never_mix(ports: &Ports) {
    let owner = worker("w1");
    let row = ports.created("s1", "agent").await;
    let verdict = ports.accept(in_namespace("other", create("create-s1", "s1", "agent"))).await;
    let other = accepted(&verdict).key();
    let epoch = ports.own(row.shard, &owner).await;
    let mut commit = next_commit(&row, epoch, 1);
    commit.settled = vec![Settled::ok(action_id("create-s1"))];
    commit.effects = vec![effect("k1", EffectState::Sent)];
    ports.commit_one(&owner, commit).await;
    assert_eq!(ports.row(&other).await.head.steps, 0);
    assert_eq!(ports.ledger.pending_count(&other).await.unwrap(), 1);
    assert!(ports.journal.open_effects(&other).await.unwrap().is_empty());
    assert!(ports.journal.latest(&other).await.unwrap().is_none());
}
