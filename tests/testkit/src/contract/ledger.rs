//! Contract of `Ledger`.

use std::collections::BTreeSet;

use domain::commit::{CommitResult, Settled};
use domain::ports::{LedgerStats, Verdict};
use schemas::action::{Action, ActionOutcome, ActionType, Lane, NewAction};
use schemas::id::{Namespace, Shard};
use schemas::problem::Code;
use schemas::session::SessionStatus;

use super::Ports;
use super::build::*;

pub async fn suite(make: &impl AsyncFn() -> Ports) {
    create_registers_a_session(&make().await).await;
    repeats_are_recognised(&make().await).await;
    other_body_conflicts(&make().await).await;
    create_twice_is_harmless(&make().await).await;
    refusals_are_recorded(&make().await).await;
    ended_and_failed_sessions_refuse(&make().await).await;
    agent_means_its_newest_session(&make().await).await;
    a_batch_is_judged_in_order(&make().await).await;
    lanes_are_numbered_without_gaps(&make().await).await;
    numbering_survives_concurrency(&make().await).await;
    a_repeat_race_accepts_once(&make().await).await;
    pending_pages(&make().await).await;
    scan_finds_sessions_with_work(&make().await).await;
    scan_skips_what_cannot_move(&make().await).await;
    the_age_is_of_what_can_move(&make().await).await;
    what_can_move_is_found_among_many(&make().await).await;
    publication_is_noted(&make().await).await;
    processed_rows_are_forgotten(&make().await).await;
    namespaces_never_mix(&make().await).await;
}

async fn view(ports: &Ports, id: &str) -> schemas::action::ActionView {
    let namespace = Namespace::default_ns();
    ports.ledger.action(&namespace, &action_id(id)).await.expect("a read").expect("the action is in the ledger")
}

async fn create_registers_a_session(ports: &Ports) {
    let new = create("a1", "s1", "agent");
    let verdict = ports.accept(new.clone()).await;
    let action = accepted(&verdict);
    assert_eq!((action.session_seq, action.kind), (1, ActionType::Create));
    assert_eq!((&action.payload, &action.metadata, &action.actor), (&new.payload, &new.metadata, &new.actor));
    assert_eq!(action.urgency, new.urgency);
    let row = ports.row(&key("s1")).await;
    assert_eq!(row.head.status, SessionStatus::Starting);
    assert_eq!((row.head.steps, row.head.next_offset, row.head.wake_at_ms), (0, 1, None));
    assert_eq!((row.control_seq, row.work_seq, row.shard), (0, 1, action.shard));
    assert_eq!(Some(&row.spec), new.session.as_ref().map(|session| &session.spec));
    let newest = ports.sessions.latest(&Namespace::default_ns(), &agent_id("agent")).await.unwrap();
    assert_eq!(newest.map(|row| row.key), Some(key("s1")));
    let view = view(ports, "a1").await;
    assert_eq!((view.session_seq, view.processed, view.lane), (Some(1), false, Lane::Work));
    assert_eq!((view.payload, view.actor), (new.payload, new.actor));
    assert!(ports.ledger.action(&Namespace::default_ns(), &action_id("none")).await.unwrap().is_none());
    assert!(ports.ledger.accept(Vec::new()).await.unwrap().is_empty(), "no actions, no verdicts");
}

async fn repeats_are_recognised(ports: &Ports) {
    let new = create("a1", "s1", "agent");
    let first = ports.accept(new.clone()).await;
    let opened = accepted(&first).opens.as_deref();
    assert_eq!(opened, new.session.as_ref().map(|session| &session.spec), "whoever hears of it need not read it");
    match ports.accept(create("a1", "s1", "agent")).await {
        Verdict::Repeated(again) => assert_eq!(again.action, Action { opens: None, ..accepted(&first).clone() }),
        other => panic!("should be a repeat: {other:?}"),
    }
    assert_eq!(ports.row(&key("s1")).await.work_seq, 1, "a repeat takes no number");
    // A refusal is repeated as it was, even if the reason is gone by now.
    assert_eq!(refused(&ports.accept(input("a2", "s2")).await), Code::SessionNotFound);
    ports.created("s2", "agent").await;
    assert_eq!(refused(&ports.accept(input("a2", "s2")).await), Code::SessionNotFound);
}

async fn other_body_conflicts(ports: &Ports) {
    ports.accept(create("a1", "s1", "agent")).await;
    for new in [with_body(9, create("a1", "s1", "agent")), with_body(9, input("a1", "s1"))] {
        match ports.accept(new).await {
            Verdict::Refused(refusal) => {
                assert_eq!((refusal.code, refusal.recorded), (Code::ActionConflict, false));
            }
            other => panic!("should conflict: {other:?}"),
        }
    }
    assert_eq!(view(ports, "a1").await.kind, ActionType::Create, "the first one stays");
    assert_eq!(ports.row(&key("s1")).await.work_seq, 1);
}

async fn create_twice_is_harmless(ports: &Ports) {
    ports.created("s1", "agent").await;
    let again = ports.accept(create("a2", "s1", "agent")).await;
    assert_eq!(accepted(&again).session_seq, 0);
    let stored = view(ports, "a2").await;
    assert_eq!((stored.processed, stored.outcome), (true, Some(ActionOutcome::Ok)));
    assert_eq!(ports.row(&key("s1")).await.work_seq, 1, "it takes no number");
    assert_eq!(ports.ledger.pending_count(&key("s1")).await.unwrap(), 1);
    match ports.accept(create("a2", "s1", "agent")).await {
        Verdict::Repeated(repeat) => assert_eq!(repeat.action.session_seq, 0),
        other => panic!("should be a repeat: {other:?}"),
    }
    assert_eq!(refused(&ports.accept(create("a3", "s1", "other")).await), Code::SessionExists);
    assert_eq!(view(ports, "a3").await.outcome, Some(ActionOutcome::Rejected));
}

async fn refusals_are_recorded(ports: &Ports) {
    ports.created("s1", "agent").await;
    let kind = ActionType::Pause;
    let cases = [
        (action(kind, "r1", Some("none"), None), Code::SessionNotFound, None),
        (action(kind, "r2", None, Some("nobody")), Code::AgentNotFound, None),
        (action(kind, "r3", Some("s1"), Some("other")), Code::WrongAgent, Some("s1")),
    ];
    for (new, code, session) in cases {
        let id = new.action_id.to_string();
        assert_eq!(refused(&ports.accept(new).await), code, "{id}");
        let stored = view(ports, &id).await;
        assert_eq!((stored.processed, stored.outcome, stored.code), (true, Some(ActionOutcome::Rejected), Some(code)));
        assert_eq!(stored.session_id, session.map(session_id), "{id}");
        assert!(stored.error.is_some_and(|error| !error.is_empty()) && stored.processed_at.is_some());
        assert_eq!(stored.session_seq, None);
    }
    assert_eq!(ports.ledger.stats().await.unwrap().pending, 1, "only the create is left to do");
    assert_eq!(ports.row(&key("s1")).await.control_seq, 0, "a refusal takes no number");
    for shard in 0..super::SHARDS {
        let found = ports.ledger.sessions_with_pending(schemas::id::Shard(shard), 0, None, 10).await.unwrap();
        assert!(found.iter().all(|found| *found == key("s1")), "{found:?}");
    }
    let unpublished = ports.ledger.unpublished(0, 10).await.unwrap();
    assert_eq!(unpublished.len(), 1, "a refusal is not to be published");
}

async fn ended_and_failed_sessions_refuse(ports: &Ports) {
    let owner = worker("w1");
    for (session, status) in [
        ("stopped", SessionStatus::Stopped),
        ("completed", SessionStatus::Completed),
        ("failed", SessionStatus::Error),
        ("paused", SessionStatus::Paused),
        ("stopping", SessionStatus::Stopping),
    ] {
        let row = ports.created(session, session).await;
        let epoch = ports.own(row.shard, &owner).await;
        let commit = with_head(next_commit(&row, epoch, 1), |head| head.status = status);
        ports.commit_one(&owner, commit).await;
        for kind in ActionType::ALL.into_iter().filter(|kind| *kind != ActionType::Create) {
            let id = format!("{session}-{}", kind.as_str());
            let verdict = ports.accept(action(kind, &id, Some(session), None)).await;
            let allowed = match status {
                SessionStatus::Error => matches!(kind, ActionType::Resume | ActionType::Destroy),
                other => !other.is_final(),
            };
            match allowed {
                true => assert!(matches!(verdict, Verdict::Accepted(_)), "{id}: {verdict:?}"),
                false => assert_eq!(refused(&verdict), Code::SessionEnded, "{id}"),
            }
        }
        let again = ports.accept(create(&format!("{session}-again"), session, session)).await;
        match status.is_final() {
            true => assert_eq!(refused(&again), Code::SessionExists),
            false => assert_eq!(accepted(&again).session_seq, 0),
        }
    }
}

async fn agent_means_its_newest_session(ports: &Ports) {
    ports.created("z-first", "agent").await;
    let by_agent = |id: &str| action(ActionType::Pause, id, None, Some("agent"));
    assert_eq!(accepted(&ports.accept(by_agent("p1")).await).session_id, session_id("z-first"));
    // Newest means created last, not the larger id and not the later clock reading.
    ports.created("a-second", "agent").await;
    assert_eq!(accepted(&ports.accept(by_agent("p2")).await).session_id, session_id("a-second"));
    // Creating the first one again changes nothing.
    ports.accept(create("again", "z-first", "agent")).await;
    let verdict = ports.accept(by_agent("p3")).await;
    assert_eq!(accepted(&verdict).session_id, session_id("a-second"));
    assert_eq!(accepted(&verdict).agent_id, agent_id("agent"));
    assert_eq!(accepted(&verdict).session_seq, 2, "the number is the session's");
}

async fn a_batch_is_judged_in_order(ports: &Ports) {
    let batch = vec![
        input("early", "s1"),
        create("a1", "s1", "agent"),
        input("a2", "s1"),
        create("a3", "s2", "agent"),
        action(ActionType::Pause, "a4", None, Some("agent")),
        input("a2", "s1"),
        with_body(7, input("a2", "s1")),
        create("a5", "s1", "agent"),
    ];
    let verdicts = ports.ledger.accept(batch).await.expect("a batch");
    assert_eq!(refused(&verdicts[0]), Code::SessionNotFound);
    assert_eq!(accepted(&verdicts[1]).session_seq, 1);
    assert_eq!(accepted(&verdicts[2]).session_seq, 2);
    assert_eq!(accepted(&verdicts[4]).session_id, session_id("s2"), "the newest at that place of the batch");
    match (&verdicts[5], &verdicts[6]) {
        (Verdict::Repeated(again), Verdict::Refused(conflict)) => {
            assert_eq!(&again.action, accepted(&verdicts[2]));
            assert_eq!((conflict.code, conflict.recorded), (Code::ActionConflict, false));
        }
        other => panic!("a repeat and a conflict: {other:?}"),
    }
    assert_eq!(accepted(&verdicts[7]).session_seq, 0);
    assert_eq!(ports.row(&key("s1")).await.work_seq, 2);
}

async fn lanes_are_numbered_without_gaps(ports: &Ports) {
    ports.created("s1", "agent").await;
    let control = [ActionType::Pause, ActionType::Resume, ActionType::Interrupt, ActionType::Destroy];
    for (n, kind) in control.into_iter().enumerate() {
        let verdict = ports.accept(action(kind, &format!("c{n}"), Some("s1"), None)).await;
        assert_eq!(accepted(&verdict).session_seq, n as u64 + 1);
    }
    for (n, kind) in [ActionType::Input, ActionType::ToolResult].into_iter().enumerate() {
        let verdict = ports.accept(action(kind, &format!("w{n}"), Some("s1"), None)).await;
        assert_eq!(accepted(&verdict).session_seq, n as u64 + 2, "after the create");
    }
    let row = ports.row(&key("s1")).await;
    assert_eq!((row.control_seq, row.work_seq), (4, 3));
}

async fn numbering_survives_concurrency(ports: &Ports) {
    ports.created("s1", "agent").await;
    ports.created("s2", "agent").await;
    let mut calls = tokio::task::JoinSet::new();
    for n in 0..60 {
        let ledger = ports.ledger.clone();
        let session = if n % 3 == 0 { "s2" } else { "s1" };
        let batch: Vec<NewAction> = (0..1 + n % 4).map(|m| input(&format!("i{n}-{m}"), session)).collect();
        calls.spawn(async move { ledger.accept(batch).await.expect("accepted") });
    }
    let verdicts: Vec<Verdict> = calls.join_all().await.into_iter().flatten().collect();
    for session in ["s1", "s2"] {
        let of_session = verdicts.iter().map(accepted).filter(|action| action.session_id == session_id(session));
        let numbers: Vec<u64> = of_session.map(|action| action.session_seq).collect();
        let distinct: BTreeSet<u64> = numbers.iter().copied().collect();
        let expected: BTreeSet<u64> = (2..2 + numbers.len() as u64).collect();
        assert_eq!(distinct, expected, "{session}: each number once, without gaps");
        assert_eq!(ports.row(&key(session)).await.work_seq, 1 + numbers.len() as u64);
    }
}

async fn a_repeat_race_accepts_once(ports: &Ports) {
    let mut calls = tokio::task::JoinSet::new();
    for _ in 0..16 {
        let ledger = ports.ledger.clone();
        calls
            .spawn(async move { ledger.accept(vec![create("a1", "s1", "agent")]).await.expect("a verdict").remove(0) });
    }
    let verdicts = calls.join_all().await;
    let accepted = verdicts.iter().filter(|verdict| matches!(verdict, Verdict::Accepted(_))).count();
    let repeated = verdicts.iter().filter(|verdict| matches!(verdict, Verdict::Repeated(_))).count();
    assert_eq!((accepted, repeated), (1, 15));
}

async fn pending_pages(ports: &Ports) {
    let row = ports.created("s1", "agent").await;
    ports.ledger.accept((2..=9).map(|n| input(&format!("i{n}"), "s1")).collect()).await.expect("accepted");
    ports.accept(action(ActionType::Pause, "p1", Some("s1"), None)).await;
    let numbers = async |lane, after, limit| {
        let pending = ports.ledger.pending(&key("s1"), lane, after, limit).await.expect("a read");
        (pending.actions.iter().map(|action| action.session_seq).collect::<Vec<_>>(), pending.last_seq)
    };
    assert_eq!(numbers(Lane::Work, 0, 3).await, (vec![1, 2, 3], 9));
    assert_eq!(numbers(Lane::Work, 3, 100).await, ((4..=9).collect(), 9));
    assert_eq!(numbers(Lane::Work, 9, 100).await, (vec![], 9));
    assert_eq!(numbers(Lane::Work, 0, 0).await, (vec![], 9), "the counter alone");
    assert_eq!(numbers(Lane::Control, 0, 100).await, (vec![1], 1));
    let none = ports.ledger.pending(&key("none"), Lane::Work, 0, 10).await.expect("a read");
    assert_eq!((none.actions.len(), none.last_seq), (0, 0));
    assert_eq!(ports.ledger.pending_count(&key("s1")).await.unwrap(), 10);
    assert_eq!(ports.ledger.pending_count(&key("none")).await.unwrap(), 0);

    let owner = worker("w1");
    let epoch = ports.own(row.shard, &owner).await;
    let mut commit = next_commit(&ports.row(&key("s1")).await, epoch, 1);
    commit.settled = ["i3", "i5"].map(|id| Settled::ok(action_id(id))).to_vec();
    ports.commit_one(&owner, commit).await;
    assert_eq!(numbers(Lane::Work, 1, 3).await, (vec![2, 4, 6], 9), "processed ones are left out");
    let pending = ports.ledger.pending(&key("s1"), Lane::Work, 1, 1).await.expect("a read");
    let expected = input("i2", "s1");
    assert_eq!((&pending.actions[0].payload, &pending.actions[0].actor), (&expected.payload, &expected.actor));
    assert_eq!(pending.actions[0].agent_id, agent_id("agent"));
    let stats = ports.ledger.stats().await.unwrap();
    assert_eq!(stats.pending, 8);
    let shards: Vec<Shard> = (0..ports.leases.shard_count().await.unwrap()).rev().map(Shard).collect();
    let backlog = ports.ledger.backlog(&shards).await.unwrap();
    assert_eq!(backlog.iter().map(|(shard, _)| *shard).collect::<Vec<_>>(), shards);
    assert_eq!(backlog.iter().map(|(_, count)| count).sum::<u64>(), 8);
    assert!(backlog.iter().any(|(shard, count)| *shard == pending.actions[0].shard && *count > 0));
    assert!(stats.oldest_ms.is_some_and(|oldest| oldest <= pending.actions[0].accepted_at_ms));
}

async fn scan_finds_sessions_with_work(ports: &Ports) {
    let mut expected: Vec<Vec<_>> = vec![Vec::new(); usize::from(super::SHARDS)];
    for n in 0..20 {
        let session = format!("s{n}");
        let row = ports.created(&session, "agent").await;
        ports.accept(input(&format!("i{n}"), &session)).await;
        expected[usize::from(row.shard.0)].push(row.key);
    }
    for (shard, expected) in expected.iter_mut().enumerate() {
        expected.sort();
        let shard = schemas::id::Shard(shard as u16);
        let scan = async |age_ms, after: Option<schemas::id::SessionKey>, limit| {
            let after = after.map(|key| (key.namespace, key.session_id));
            ports.ledger.sessions_with_pending(shard, age_ms, after, limit).await.expect("a scan")
        };
        assert_eq!(&scan(0, None, 100).await, expected, "each once, in key order");
        assert!(scan(3_600_000, None, 100).await.is_empty(), "nothing is that old");
        assert!(scan(u64::MAX, None, 100).await.is_empty());
        let mut paged = Vec::new();
        loop {
            let page = scan(0, paged.last().cloned(), 2).await;
            if page.is_empty() {
                break;
            }
            paged.extend(page);
        }
        assert_eq!(&paged, expected);
    }
}

async fn scan_skips_what_cannot_move(ports: &Ports) {
    let owner = worker("w1");
    for status in [SessionStatus::Paused, SessionStatus::Error] {
        let session = format!("s-{}", status.as_str());
        let row = ports.created(&session, &session).await;
        // Accepted while it still ran: guidance and an input that now have to wait.
        ports.accept(action(ActionType::Interrupt, &format!("{session}-i"), Some(&session), None)).await;
        ports.accept(input(&format!("{session}-w"), &session)).await;
        let epoch = ports.own(row.shard, &owner).await;
        let scan = async || {
            let found = ports.ledger.sessions_with_pending(row.shard, 0, None, 10).await.expect("a scan");
            found.contains(&row.key)
        };
        assert!(scan().await);
        ports.commit_one(&owner, with_head(next_commit(&row, epoch, 1), |head| head.status = status)).await;
        assert!(!scan().await, "{session}: nothing there can move it");
        ports.accept(action(ActionType::Resume, &format!("{session}-r"), Some(&session), None)).await;
        assert!(scan().await, "{session}: a resume can");
    }
}

/// What rightly waits in a session that is paused or in error makes nobody late.
async fn the_age_is_of_what_can_move(ports: &Ports) {
    let owner = worker("w1");
    let stats = async || ports.ledger.stats().await.expect("a read");
    assert_eq!(stats().await, LedgerStats { pending: 0, oldest_ms: None });
    for status in [SessionStatus::Paused, SessionStatus::Error] {
        let session = format!("s-{}", status.as_str());
        let row = ports.created(&session, &session).await;
        ports.accept(action(ActionType::Interrupt, &format!("{session}-i"), Some(&session), None)).await;
        ports.accept(input(&format!("{session}-w"), &session)).await;
        let epoch = ports.own(row.shard, &owner).await;
        ports.commit_one(&owner, with_head(next_commit(&row, epoch, 1), |head| head.status = status)).await;
    }
    assert_eq!(stats().await, LedgerStats { pending: 6, oldest_ms: None }, "all of it has to wait");
    ports.pass(5).await;
    let verdict = ports.accept(action(ActionType::Resume, "r", Some("s-paused"), None)).await;
    let resume_ms = Some(accepted(&verdict).accepted_at_ms);
    assert_eq!(stats().await, LedgerStats { pending: 7, oldest_ms: resume_ms }, "a resume does not");
    ports.pass(5).await;
    ports.created("free", "free").await;
    assert_eq!(stats().await, LedgerStats { pending: 8, oldest_ms: resume_ms }, "it is older");
    // The paused one runs on.
    ports.step(&owner, &key("s-paused"), 1).await;
    let oldest = ports.ledger.pending(&key("s-paused"), Lane::Work, 0, 1).await.expect("a read").actions.remove(0);
    assert_eq!(stats().await, LedgerStats { pending: 8, oldest_ms: Some(oldest.accepted_at_ms) });
}

/// However many sessions wait rightly, and for longer.
async fn what_can_move_is_found_among_many(ports: &Ports) {
    const PAUSED: usize = 300;
    let owner = worker("w1");
    let creates = (0..PAUSED).map(|n| create(&format!("c{n}"), &format!("s{n}"), "agent")).collect();
    ports.ledger.accept(creates).await.expect("accepted");
    let mut epochs = Vec::new();
    for shard in 0..super::SHARDS {
        epochs.push(ports.own(Shard(shard), &owner).await);
    }
    let mut commits = Vec::new();
    for n in 0..PAUSED {
        let row = ports.row(&key(&format!("s{n}"))).await;
        let commit = next_commit(&row, epochs[usize::from(row.shard.0)], 1);
        commits.push(with_head(commit, |head| head.status = SessionStatus::Paused));
    }
    let results = ports.commits.commit(&owner, commits).await.expect("a batch");
    assert!(results.iter().all(|result| matches!(result, CommitResult::Done { .. })), "{results:?}");
    let pending = PAUSED as u64;
    assert_eq!(ports.ledger.stats().await.unwrap(), LedgerStats { pending, oldest_ms: None });
    ports.pass(5).await;
    let free = ports.accept(create("create-free", "free", "free")).await;
    let expected = LedgerStats { pending: pending + 1, oldest_ms: Some(accepted(&free).accepted_at_ms) };
    assert_eq!(ports.ledger.stats().await.unwrap(), expected);
}

async fn publication_is_noted(ports: &Ports) {
    ports.created("s1", "agent").await;
    ports.ledger.accept((2..=5).map(|n| input(&format!("i{n}"), "s1")).collect()).await.expect("accepted");
    let ids = async |age_ms, limit| {
        let actions = ports.ledger.unpublished(age_ms, limit).await.expect("a read");
        actions.iter().map(|action| action.action_id.to_string()).collect::<Vec<_>>()
    };
    assert_eq!(ids(0, 2).await, ["create-s1", "i2"], "oldest first");
    assert!(ids(3_600_000, 10).await.is_empty(), "nothing is that old");
    assert!(ids(u64::MAX, 10).await.is_empty());
    let namespace = Namespace::default_ns();
    let published = [(namespace.clone(), action_id("i2")), (namespace, action_id("none"))];
    ports.ledger.mark_published(&published).await.expect("marked");
    ports.ledger.mark_published(&[]).await.expect("nothing to mark");
    assert_eq!(ids(0, 10).await, ["create-s1", "i3", "i4", "i5"]);
    let first = view(ports, "i2").await.published_at;
    assert!(first.is_some() && !view(ports, "i2").await.processed);
    let owner = worker("w1");
    let row = ports.row(&key("s1")).await;
    let epoch = ports.own(row.shard, &owner).await;
    let mut commit = next_commit(&row, epoch, 1);
    commit.settled = vec![Settled::ok(action_id("i3"))];
    ports.commit_one(&owner, commit).await;
    assert_eq!(ids(0, 10).await, ["create-s1", "i4", "i5"], "what is processed needs no publication");
}

async fn processed_rows_are_forgotten(ports: &Ports) {
    ports.created("s1", "agent").await;
    for n in 0..5 {
        ports.accept(create(&format!("again{n}"), "s1", "agent")).await;
    }
    assert_eq!(ports.ledger.forget_processed(u64::MAX, 100).await.unwrap(), 0, "none is that old");
    assert_eq!(ports.ledger.forget_processed(0, 2).await.unwrap(), 2, "no more than asked for");
    assert_eq!(ports.ledger.forget_processed(0, 100).await.unwrap(), 3);
    assert_eq!(ports.ledger.forget_processed(0, 100).await.unwrap(), 0);
    assert_eq!(ports.ledger.pending_count(&key("s1")).await.unwrap(), 1, "what is left to do stays");
    assert_eq!(accepted(&ports.accept(create("again0", "s1", "agent")).await).session_seq, 0, "no repeat any more");
}

async fn namespaces_never_mix(ports: &Ports) {
    ports.accept(create("a1", "s1", "agent")).await;
    let other = namespace("other");
    for new in [input("x1", "s1"), action(ActionType::Pause, "x2", None, Some("agent"))] {
        let code = refused(&ports.accept(in_namespace("other", new)).await);
        assert!(matches!(code, Code::SessionNotFound | Code::AgentNotFound));
    }
    assert!(ports.ledger.action(&other, &action_id("a1")).await.unwrap().is_none());
    // The same ids in another namespace are other things.
    let verdict = ports.accept(in_namespace("other", with_body(3, create("a1", "s1", "agent")))).await;
    assert_eq!((accepted(&verdict).session_seq, &accepted(&verdict).namespace), (1, &other));
    ports.accept(in_namespace("other", input("i2", "s1"))).await;
    assert_eq!(ports.row(&key("s1")).await.work_seq, 1);
    assert_eq!(ports.ledger.pending_count(&key("s1")).await.unwrap(), 1);
    assert!(ports.ledger.action(&Namespace::default_ns(), &action_id("i2")).await.unwrap().is_none());
    ports.ledger.mark_published(&[(other, action_id("a1"))]).await.unwrap();
    assert_eq!(view(ports, "a1").await.published_at, None);
}
