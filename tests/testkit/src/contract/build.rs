//! Values for the suites: actions, and commits that continue a session's head.

use std::sync::Arc;

use domain::commit::{Commit, CommitResult};
use domain::ports::{Accepted, Verdict};
use schemas::action::{Action, ActionType, NewAction, Urgency};
use schemas::event::{EventKind, EventRecord};
use schemas::frame::StepToken;
use schemas::id::{ActionId, AgentId, Epoch, Namespace, SessionId, SessionKey, Shard, WorkerId};
use schemas::json::Json;
use schemas::problem::Code;
use schemas::record::{Entry, StepRecord, StepStatus};
use schemas::session::{Cause, NewSession, SessionRow, SessionSpec, SessionStatus};
use serde_json::json;

use super::Ports;

pub fn namespace(text: &str) -> Namespace {
    Namespace::parse(text).expect("a namespace")
}

pub fn session_id(text: &str) -> SessionId {
    SessionId::parse(text).expect("a session id")
}

pub fn agent_id(text: &str) -> AgentId {
    AgentId::parse(text).expect("an agent id")
}

pub fn action_id(text: &str) -> ActionId {
    ActionId::parse(text).expect("an action id")
}

pub fn worker(text: &str) -> WorkerId {
    WorkerId::parse(text).expect("a worker id")
}

/// A session of the default namespace.
pub fn key(session: &str) -> SessionKey {
    SessionKey::new(Namespace::default_ns(), session_id(session))
}

/// Any action of the default namespace. The body's hash stands for its id: see [`with_body`].
pub fn action(kind: ActionType, id: &str, session: Option<&str>, agent: Option<&str>) -> NewAction {
    let mut body_hash = [0; 32];
    for (place, byte) in body_hash.iter_mut().zip(id.bytes()) {
        *place = byte;
    }
    NewAction {
        namespace: Namespace::default_ns(),
        action_id: action_id(id),
        kind,
        session_id: session.map(session_id),
        agent_id: agent.map(agent_id),
        urgency: Urgency::High,
        actor: "Zoë \"the tester\"".to_owned(),
        payload: Json::of(&json!({"text": "line\nπ\u{0}'\"", "id": id})),
        metadata: Json::of(&json!({"n": 1.50})),
        body_hash,
        session: None,
        seat: None,
    }
}

pub fn create(id: &str, session: &str, agent: &str) -> NewAction {
    let spec = SessionSpec {
        moniker: "count".to_owned(),
        task: Some("count \"up\"".to_owned()),
        config: Json::of(&json!({"until": 10})),
        stop_on_done: true,
        max_steps: Some(100),
        max_runtime_ms: None,
        loop_interval_ms: 5,
        conversation_id: None,
        parent: None,
    };
    let new = NewSession {
        session_id: session_id(session),
        agent_id: agent_id(agent),
        spec,
        state: Json::of(&json!({})),
        added_by_turn_id: None,
    };
    NewAction { session: Some(new), ..action(ActionType::Create, id, Some(session), Some(agent)) }
}

pub fn input(id: &str, session: &str) -> NewAction {
    action(ActionType::Input, id, Some(session), None)
}

pub fn in_namespace(text: &str, new: NewAction) -> NewAction {
    NewAction { namespace: namespace(text), ..new }
}

/// The same id with another body.
pub fn with_body(mark: u8, new: NewAction) -> NewAction {
    NewAction { body_hash: [mark; 32], ..new }
}

/// The action of a verdict that must be an acceptance.
pub fn accepted(verdict: &Verdict) -> &Action {
    match verdict {
        Verdict::Accepted(Accepted { action }) => action,
        other => panic!("should be accepted, not {other:?}"),
    }
}

/// Code of a verdict that must be a recorded refusal.
pub fn refused(verdict: &Verdict) -> Code {
    match verdict {
        Verdict::Refused(refusal) => {
            assert!(refusal.recorded, "the refusal should be recorded: {refusal:?}");
            assert!(!refusal.detail.is_empty(), "a refusal says why");
            refusal.code
        }
        other => panic!("should be refused, not {other:?}"),
    }
}

impl Ports {
    /// Accepts one action.
    pub async fn accept(&self, new: NewAction) -> Verdict {
        self.ledger.accept(vec![new]).await.expect("the ledger takes actions").remove(0)
    }

    pub async fn created(&self, session: &str, agent: &str) -> SessionRow {
        let verdict = self.accept(create(&format!("create-{session}"), session, agent)).await;
        accepted(&verdict);
        self.row(&key(session)).await
    }

    pub async fn row(&self, key: &SessionKey) -> SessionRow {
        self.sessions.session(key).await.expect("sessions can be read").expect("the session exists")
    }

    /// The epoch of a shard that `worker` owns, claimed if it does not yet.
    pub async fn own(&self, shard: Shard, owner: &WorkerId) -> Epoch {
        if let Some(lease) = self.leases.claim(shard, owner, 3_600_000).await.expect("shards can be claimed") {
            return lease.epoch;
        }
        let shards = self.leases.shards().await.expect("shards can be read");
        let info = &shards[usize::from(shard.0)];
        assert_eq!(info.owner.as_ref(), Some(owner), "somebody else owns shard {shard}");
        info.epoch
    }

    /// Commits one value that must be done; returns its `seq`.
    pub async fn commit_one(&self, owner: &WorkerId, commit: Commit) -> u64 {
        match self.commit_result(owner, commit).await {
            CommitResult::Done { seq, .. } => seq,
            other => panic!("should be done, not {other:?}"),
        }
    }

    pub async fn commit_result(&self, owner: &WorkerId, commit: Commit) -> CommitResult {
        self.commits.commit(owner, vec![commit]).await.expect("commits are taken").remove(0)
    }

    /// Commits `steps` steps after the session's present head, claiming its shard if need be.
    pub async fn step(&self, owner: &WorkerId, key: &SessionKey, steps: u64) -> u64 {
        let row = self.row(key).await;
        let epoch = self.own(row.shard, owner).await;
        self.commit_one(owner, next_commit(&row, epoch, steps)).await
    }
}

/// A commit of `steps` steps after the head of `row`, and of one event if there are none.
pub fn next_commit(row: &SessionRow, epoch: Epoch, steps: u64) -> Commit {
    let mut head = row.head.clone();
    let mut records = Vec::new();
    for _ in 0..steps {
        let next = StepToken::parse(&format!("at/{}", head.steps + 1)).expect("a token");
        records.push(StepRecord {
            iteration: head.steps,
            offset: head.next_offset,
            created_at_ms: 1_700_000_000_000,
            turn_id: None,
            step_token: head.next_step_token.clone(),
            next_step_token: next.clone(),
            status: StepStatus::Ok,
            text: Some(format!("step \"{}\" \u{0} π", head.steps)),
            data: Some(Json::of(&json!({"n": head.steps}))),
            state: Json::of(&json!({"n": head.steps})),
            guidance: None,
            notes: None,
            latency_ms: 1,
            error: None,
        });
        head.step_token = Some(std::mem::replace(&mut head.next_step_token, next));
        head.steps += 1;
        head.next_offset += 1;
    }
    let mut events = Vec::new();
    if steps == 0 {
        let data = Json::of(&json!({"status": "running"}));
        events.push(EventRecord { offset: head.next_offset, at_ms: 1, kind: EventKind::Status, data });
        head.next_offset += 1;
    }
    head.status = SessionStatus::Running;
    head.cause = Cause::Runnable;
    head.epoch = epoch;
    let entry = Entry {
        agent_id: row.agent_id.clone(),
        moniker: row.spec.moniker.clone(),
        conversation_id: row.spec.conversation_id.clone(),
        // What the last step left behind.
        state: Json::of(&json!({"n": head.steps.saturating_sub(1)})),
        head,
        steps: records,
        events,
    };
    Commit {
        key: row.key.clone(),
        shard: row.shard,
        epoch,
        expect_steps: row.head.steps,
        expect_offset: row.head.next_offset,
        entry: Arc::new(entry),
        settled: Vec::new(),
        follow_ups: Vec::new(),
        effects: Vec::new(),
        talk: Default::default(),
    }
}

/// The same commit with another head.
pub fn with_head(mut commit: Commit, change: impl FnOnce(&mut schemas::session::Head)) -> Commit {
    change(&mut Arc::make_mut(&mut commit.entry).head);
    commit
}
