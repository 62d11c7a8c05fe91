//! Contract of agents that are brought into a conversation: whoever brings one in, and when, it sits there once.

use domain::commit::{Commit, CommitResult};
use domain::ports::Verdict;
use schemas::action::{Action, ActionOutcome, ActionType, NewAction};
use schemas::conversation::Talk;
use schemas::problem::Code;
use schemas::session::SessionStatus;

use super::super::Ports;
use super::super::build::*;
use super::super::words::*;
use super::{a_moment, create, ns};

const GUEST: &str = "guest";

pub(super) async fn suite(make: &impl AsyncFn() -> Ports) {
    for order in [["a", "b"], ["b", "a"]] {
        the_first_one_makes_its_session(&make().await, order).await;
        one_batch_makes_one_session(&make().await, order).await;
    }
    two_of_one_batch_are_decided_in_their_order(&make().await).await;
    who_was_seated_by_others_is_asked_there(&make().await).await;
    who_cannot_be_asked_gets_another_session(&make().await).await;
    seats_are_those_of_the_agent_in_the_conversation(&make().await).await;
    many_at_once_bring_in_one(&make().await).await;
}

/// What `by` does to bring the guest in: a session that takes input, and what it is asked.
fn brings(by: &str) -> Vec<NewAction> {
    let session = format!("{by}.s");
    let mut made = create_in(&format!("{by}.create"), &session, GUEST, "c1");
    made.session.as_mut().expect("a session").spec.moniker = "echo".to_owned();
    [made, input(&format!("{by}.input"), &session)].into_iter().map(for_guest).collect()
}

fn for_guest(new: NewAction) -> NewAction {
    NewAction { agent_id: Some(agent_id(GUEST)), seat: Some(conversation_id("c1")), ..new }
}

/// Sessions of a conversation of which each may bring the guest in.
async fn hosts(ports: &Ports, names: &[&str]) {
    for name in names {
        ports.talker(name, "c1").await;
    }
}

/// The commit by which a host brings the guest in.
async fn bringing(ports: &Ports, host: &str) -> Commit {
    let mut commit = ports.saying(&worker("w1"), host, Talk::default()).await;
    commit.follow_ups = brings(host);
    commit
}

/// Which actions went on their way, where, and as which of the lane.
fn sent(result: &CommitResult) -> Vec<(String, String, u64)> {
    let CommitResult::Done { follow_ups, .. } = result else { panic!("should be done: {result:?}") };
    // What ended on acceptance need not be in the list.
    follow_ups.iter().filter(|action| action.session_seq > 0).map(placed).collect()
}

fn placed(action: &Action) -> (String, String, u64) {
    (action.action_id.to_string(), action.session_id.to_string(), action.session_seq)
}

fn at(action: String, session: &str, seq: u64) -> (String, String, u64) {
    (action, session.to_owned(), seq)
}

/// The sessions of the guest that sit there now.
async fn seated(ports: &Ports) -> Vec<String> {
    let all = ports.conversations.participants(&ns(), &conversation_id("c1")).await.expect("a read");
    let here = all.into_iter().filter(|one| one.left_at_ms.is_none() && one.agent_id == Some(agent_id(GUEST)));
    here.filter_map(|one| Some(one.session_id?.to_string())).collect()
}

async fn is_there(ports: &Ports, session: &str) -> bool {
    ports.sessions.session(&key(session)).await.expect("a read").is_some()
}

async fn the_first_one_makes_its_session(ports: &Ports, [first, second]: [&str; 2]) {
    let owner = worker("w1");
    hosts(ports, &["a", "b"]).await;
    let home = format!("{first}.s");
    let result = ports.commit_result(&owner, bringing(ports, first).await).await;
    let made = [at(format!("{first}.create"), &home, 1), at(format!("{first}.input"), &home, 2)];
    assert_eq!(sent(&result), made);
    let result = ports.commit_result(&owner, bringing(ports, second).await).await;
    assert_eq!(sent(&result), [at(format!("{second}.input"), &home, 3)], "it is asked where it is");
    assert_eq!(seated(ports).await, std::slice::from_ref(&home));
    let other = format!("{second}.s");
    assert!(!is_there(ports, &other).await);
    let id = action_id(&format!("{second}.create"));
    let row = ports.ledger.action(&ns(), &id).await.expect("a read").expect("it is recorded");
    assert_eq!((row.outcome, row.session_id), (Some(ActionOutcome::Ok), Some(session_id(&home))));
    // All of it comes again, and changes nothing.
    for new in brings(second) {
        let Verdict::Repeated(again) = ports.accept(new).await else { panic!("it came before") };
        assert_eq!(again.action.session_id, session_id(&home));
    }
    assert_eq!(ports.row(&key(&home)).await.work_seq, 3);
    // What is for the session that was not made goes to the seat as well, if it says so.
    let cut = action(ActionType::Interrupt, "cut", Some(&other), None);
    assert_eq!(placed(accepted(&ports.accept(for_guest(cut)).await)), at("cut".to_owned(), &home, 1));
    let pause = action(ActionType::Pause, "pause", Some(&other), None);
    assert_eq!(refused(&ports.accept(pause).await), Code::SessionNotFound);
}

async fn one_batch_makes_one_session(ports: &Ports, [first, second]: [&str; 2]) {
    hosts(ports, &["a", "b"]).await;
    let commits = vec![bringing(ports, first).await, bringing(ports, second).await];
    let results = ports.commits.commit(&worker("w1"), commits).await.expect("a batch");
    let home = format!("{first}.s");
    let made = [at(format!("{first}.create"), &home, 1), at(format!("{first}.input"), &home, 2)];
    assert_eq!(sent(&results[0]), made);
    assert_eq!(sent(&results[1]), [at(format!("{second}.input"), &home, 3)]);
    assert_eq!(seated(ports).await, [home]);
}

async fn two_of_one_batch_are_decided_in_their_order(ports: &Ports) {
    let (mut both, more) = (brings("a"), brings("b"));
    both.splice(1..1, more);
    let verdicts = ports.ledger.accept(both).await.expect("accepted");
    let found: Vec<_> = verdicts.iter().map(|verdict| placed(accepted(verdict))).collect();
    let expected = [("a.create", 1), ("b.create", 0), ("b.input", 2), ("a.input", 3)];
    assert_eq!(found, expected.map(|(action, seq)| at(action.to_owned(), "a.s", seq)));
    assert_eq!(seated(ports).await, ["a.s"], "in a conversation that the batch has opened");
}

/// A person adds the guest while it is being brought in.
async fn who_was_seated_by_others_is_asked_there(ports: &Ports) {
    create(ports, &conversation("c1")).await;
    let seat = agent("p1", GUEST, "mine");
    ports.conversations.join(&ns(), &conversation_id("c1"), &seat).await.expect("a write").expect("it is there");
    let mut made = create_in("add", "mine", GUEST, "c1");
    made.session.as_mut().expect("a session").spec.moniker = "echo".to_owned();
    accepted(&ports.accept(made).await);
    for (nth, new) in brings("a").into_iter().enumerate() {
        let expected = [at("a.create".to_owned(), "mine", 0), at("a.input".to_owned(), "mine", 2)];
        assert_eq!(placed(accepted(&ports.accept(new).await)), expected[nth]);
    }
    assert_eq!(seated(ports).await, ["mine"]);
    // Whoever asks for another session of it gets one.
    a_moment().await;
    let mut another = create_in("again", "other", GUEST, "c1");
    another.session.as_mut().expect("a session").spec.moniker = "echo".to_owned();
    accepted(&ports.accept(another).await);
    assert_eq!(seated(ports).await.len(), 2);
    let asked = ports.accept(brings("b").remove(0)).await;
    assert_eq!(accepted(&asked).session_id, session_id("mine"), "of several, who joined first");
}

async fn who_cannot_be_asked_gets_another_session(ports: &Ports) {
    let owner = worker("w1");
    create(ports, &conversation("c1")).await;
    // A seat whose session has not begun, and one whose session takes no input.
    let empty = agent("p1", GUEST, "not-yet");
    ports.conversations.join(&ns(), &conversation_id("c1"), &empty).await.expect("a write").expect("it is there");
    accepted(&ports.accept(create_in("mute", "mute", GUEST, "c1")).await);
    for (by, ends_as) in
        [("a", None), ("b", Some(SessionStatus::Stopped)), ("c", Some(SessionStatus::Error)), ("d", None)]
    {
        let home = format!("{by}.s");
        for (new, seq) in brings(by).into_iter().zip(1..) {
            let action = new.action_id.to_string();
            assert_eq!(placed(accepted(&ports.accept(new).await)), at(action, &home, seq));
        }
        match ends_as {
            Some(status) => {
                let ends = ports.saying(&owner, &home, Talk::default()).await;
                ports.commit_one(&owner, with_head(ends, |head| head.status = status)).await;
            }
            None => {
                let left = ports.conversations.leave(&ns(), &conversation_id("c1"), &participant_id(&home)).await;
                assert!(left.expect("a write").is_some_and(|one| one.left_at_ms.is_some()));
            }
        }
    }
    // Nobody is there, and no session is made for this.
    let lost = ports.accept(for_guest(input("lost", "nobody"))).await;
    assert_eq!(refused(&lost), Code::SessionNotFound);
    let late = ports.accept(for_guest(input("late", "b.s"))).await;
    assert_eq!(refused(&late), Code::SessionEnded, "a session that is named and there is the one that is meant");
}

async fn seats_are_those_of_the_agent_in_the_conversation(ports: &Ports) {
    let elsewhere = |new: NewAction| NewAction { seat: Some(conversation_id("c2")), ..new };
    for new in brings("a") {
        accepted(&ports.accept(new).await);
    }
    let [made, asked] = brings("b").try_into().expect("two actions");
    let mut made = elsewhere(made);
    made.session.as_mut().expect("a session").spec.conversation_id = Some(conversation_id("c2"));
    assert_eq!(accepted(&ports.accept(made).await).session_id, session_id("b.s"));
    assert_eq!(accepted(&ports.accept(elsewhere(asked)).await).session_id, session_id("b.s"));
    // Other agents there, and namesakes in other namespaces, are others.
    let mut other = for_guest(create_in("c.create", "c.s", "other", "c1"));
    other.agent_id = Some(agent_id("other"));
    assert_eq!(accepted(&ports.accept(other).await).session_id, session_id("c.s"));
    for new in brings("d") {
        let verdict = ports.accept(in_namespace("other", new)).await;
        assert_eq!(accepted(&verdict).session_id, session_id("d.s"));
    }
    let nameless = NewAction { agent_id: None, ..for_guest(input("e.input", "e.s")) };
    assert_eq!(refused(&ports.accept(nameless).await), Code::SessionNotFound);
    assert_eq!(seated(ports).await, ["a.s"]);
}

async fn many_at_once_bring_in_one(ports: &Ports) {
    const MANY: usize = 8;
    let hosting: Vec<String> = (0..MANY).map(|n| format!("h{n}")).collect();
    hosts(ports, &hosting.iter().map(String::as_str).collect::<Vec<_>>()).await;
    let mut tasks = tokio::task::JoinSet::new();
    for (n, host) in hosting.into_iter().enumerate() {
        let committing = ports.clone();
        tasks.spawn(async move {
            let commit = bringing(&committing, &host).await;
            committing.commit_one(&worker("w1"), commit).await;
        });
        let accepting = ports.clone();
        tasks.spawn(async move {
            let verdicts = accepting.ledger.accept(brings(&format!("g{n}"))).await.expect("accepted");
            assert!(verdicts.iter().all(|verdict| matches!(verdict, Verdict::Accepted(_))), "{verdicts:?}");
        });
    }
    tasks.join_all().await;
    let [home] = seated(ports).await.try_into().expect("one seat");
    let row = ports.row(&key(&home)).await;
    assert_eq!(row.work_seq, 1 + 2 * MANY as u64, "it is created once, and asked by all");
}
