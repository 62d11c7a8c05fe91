//! A gateway on fakes, and hands to play the worker and the clients.

use std::sync::Arc;

use axum::Router;
use axum::body::Body;
use axum::http::{HeaderMap, Method, Request, StatusCode, header};
use domain::commit::{Commit, CommitResult, Settled};
use domain::ports::{Archive, ArchiveBatch, Commits, Journal, Lease, Leases, Ledger, Live, Notice, Sessions};
use domain::ports::{ConversationKey, News};
use domain::ports::{Scope, TokenRow, Tokens};
use host::tasks::Tasks;
use schemas::action::{Action, Lane};
use schemas::conversation::Talk;
use schemas::event::{EventKind, EventRecord};
use schemas::frame::StepToken;
use schemas::id::{Namespace, SessionId, SessionKey, Shard, WorkerId};
use schemas::json::Json;
use schemas::record::{Entry, StepRecord, StepStatus};
use schemas::session::{Cause, Head, SessionStatus, StopReason};
use serde_json::{Value, json};
use sha2::{Digest, Sha256};
use testkit::dice::Dice;
use testkit::fake::effects::EffectFaults;
use testkit::fake::{
    FaultyQueue, LocalLive, MemArchive, MemDeadLetters, MemStore, ScriptedEffects, SimClock, WordEmbedder,
};
use tower::ServiceExt;

use crate::{Config, Deps, app};

pub const SHARDS: u16 = 4;
/// One token per scope in `default`, named after it, and one of another namespace.
pub const READ: &str = "token-read";
pub const ACT: &str = "token-act";
pub const OPERATE: &str = "token-operate";
pub const ADMIN: &str = "token-admin";
pub const OTHER: &str = "token-other";

pub struct World {
    pub store: MemStore,
    pub archive: MemArchive,
    pub queue: FaultyQueue,
    pub dead: MemDeadLetters,
    pub live: LocalLive,
    pub clock: SimClock,
    pub tasks: Tasks,
    pub app: Router,
}

/// An answer, read to its end.
#[derive(Debug)]
pub struct Reply {
    pub status: StatusCode,
    pub headers: HeaderMap,
    pub text: String,
}

impl Reply {
    pub fn json(&self) -> Value {
        serde_json::from_str(&self.text).unwrap_or_else(|error| panic!("{error}: {}", self.text))
    }

    pub fn header(&self, name: &str) -> &str {
        self.headers.get(name).map_or("", |value| value.to_str().unwrap())
    }

    /// Checks that it is a problem document, whole and true, and returns its code.
    pub fn problem(&self) -> String {
        let body = self.json();
        assert_eq!(self.header("content-type"), "application/problem+json", "{}", self.text);
        let code = body["code"].as_str().expect("a code").to_owned();
        assert_eq!(body["type"], format!("/problems/{code}"));
        assert_eq!(body["status"], self.status.as_u16());
        assert!(body["title"].is_string() && !body["detail"].as_str().unwrap_or("").is_empty(), "{}", self.text);
        code
    }

    /// The code and the fields of a refusal.
    pub fn refusal(&self) -> (String, Vec<String>) {
        let errors = self.json()["errors"].as_array().cloned().unwrap_or_default();
        let fields = errors.iter().map(|error| error["field"].as_str().unwrap_or("?").to_owned());
        (self.problem(), fields.collect())
    }
}

impl World {
    pub async fn new() -> Self {
        Self::with(|deps| deps).await
    }

    /// A world with some of its ports replaced.
    pub async fn with(change: impl FnOnce(Deps) -> Deps) -> Self {
        let clock = SimClock::new();
        let store = MemStore::new(SHARDS, Arc::new(clock.clone()));
        for (token, namespace, scope) in [
            (READ, "default", Scope::Read),
            (ACT, "default", Scope::Act),
            (OPERATE, "default", Scope::Operate),
            (ADMIN, "default", Scope::Admin),
            (OTHER, "other", Scope::Admin),
        ] {
            let namespace = Namespace::parse(namespace).unwrap();
            store.put(&token_row(token, namespace, vec![scope])).await.unwrap();
        }
        let dead = MemDeadLetters::default();
        let (archive, queue, live) = (MemArchive::default(), FaultyQueue::reliable(), LocalLive::default());
        let deps = Deps {
            ledger: Arc::new(store.clone()),
            sessions: Arc::new(store.clone()),
            journal: Arc::new(store.clone()),
            archive: Arc::new(archive.clone()),
            leases: Arc::new(store.clone()),
            tokens: Arc::new(store.clone()),
            definitions: Arc::new(store.clone()),
            conversations: Arc::new(store.clone()),
            operations: Arc::new(store.clone()),
            memories: Arc::new(store.clone()),
            embedder: Arc::new(WordEmbedder::new("words")),
            queue: Arc::new(queue.clone()),
            dead: Arc::new(dead.clone()),
            live: Arc::new(live.clone()),
            clock: Arc::new(clock.clone()),
            effects: Arc::new(ScriptedEffects::seeded(Dice::new(1), EffectFaults::NONE, clock.clone())),
            metrics: Arc::new(|| "stepfleet_steps_total 7\n".to_owned()),
            config: Config::default(),
        };
        let tasks = Tasks::new();
        let app = app(change(deps), &tasks);
        Self { store, archive, queue, dead, live, clock, tasks, app }
    }

    pub async fn send(&self, request: Request<Body>) -> Reply {
        let response = self.app.clone().oneshot(request).await.unwrap();
        let (parts, body) = response.into_parts();
        let bytes = axum::body::to_bytes(body, usize::MAX).await.unwrap();
        let text = String::from_utf8(bytes.to_vec()).unwrap();
        Reply { status: parts.status, headers: parts.headers, text }
    }

    pub async fn get(&self, path: &str) -> Reply {
        self.send(request(Method::GET, path, READ, Body::empty())).await
    }

    pub async fn get_as(&self, token: &str, path: &str) -> Reply {
        self.send(request(Method::GET, path, token, Body::empty())).await
    }

    pub async fn post(&self, path: &str, body: Value) -> Reply {
        self.post_as(ADMIN, path, body).await
    }

    pub async fn post_as(&self, token: &str, path: &str, body: Value) -> Reply {
        self.send(request(Method::POST, path, token, Body::from(body.to_string()))).await
    }

    pub async fn patch(&self, path: &str, body: Value) -> Reply {
        self.send(request(Method::PATCH, path, ADMIN, Body::from(body.to_string()))).await
    }

    pub async fn delete(&self, path: &str) -> Reply {
        self.send(request(Method::DELETE, path, ADMIN, Body::empty())).await
    }

    /// Creates a conversation with agents that take turns, alive, and returns their sessions.
    pub async fn converse(&self, conversation: &str, agents: &[&str]) -> Vec<String> {
        let seat = |id: &&str| json!({"agent_id": id, "moniker": "converse", "task": "answers"});
        let seats: Vec<Value> = agents.iter().map(seat).collect();
        let body = json!({"conversation_id": conversation, "agents": seats});
        let reply = self.post("/api/conversations", body).await;
        assert_eq!(reply.status, StatusCode::CREATED, "{}", reply.text);
        let started = reply.json()["started"].as_array().cloned().unwrap();
        let sessions = started.iter().map(|one| one["session_id"].as_str().unwrap().to_owned()).collect::<Vec<_>>();
        for session in &sessions {
            self.commit(session, 0, SessionStatus::Running).await;
        }
        sessions
    }

    /// Creates a session and returns nothing but success.
    pub async fn create(&self, session: &str, agent: &str, moniker: &str) {
        let body = json!({"type": "create", "session_id": session, "agent_id": agent, "payload": {"moniker": moniker}});
        let reply = self.post("/api/actions", body).await;
        assert_eq!(reply.status, StatusCode::ACCEPTED, "{}", reply.text);
    }

    /// Waits until something holds; with a paused clock that is a matter of turns, not of time.
    pub async fn until(&self, mut holds: impl FnMut() -> bool) {
        for _ in 0..10_000 {
            if holds() {
                return;
            }
            tokio::time::sleep(std::time::Duration::from_millis(1)).await;
        }
        panic!("it never held");
    }

    /// Plays the worker: applies the create action, adds steps, takes on a status; then tells.
    pub async fn commit(&self, session: &str, steps: u64, status: SessionStatus) {
        let notice = self.commit_silently(session, steps, status).await;
        self.live.publish(vec![notice]);
    }

    /// Plays the worker of an agent that talks: one step that causes all this; then tells.
    pub async fn speak(&self, session: &str, talk: Talk) {
        self.speak_silently(session, talk).await;
        let row = self.store.session(&key(session)).await.unwrap().expect("the session exists");
        let conversation_id = row.spec.conversation_id.expect("it is bound to a conversation");
        self.live.tell(&ConversationKey { namespace: Namespace::default_ns(), conversation_id }, News::Logged);
    }

    /// The same, with the news lost.
    pub async fn speak_silently(&self, session: &str, talk: Talk) {
        self.commit_with(session, 1, SessionStatus::Running, talk).await;
    }

    /// The same as [`World::commit`], with the notice lost.
    pub async fn commit_silently(&self, session: &str, steps: u64, status: SessionStatus) -> Notice {
        self.commit_with(session, steps, status, Talk::default()).await
    }

    async fn commit_with(&self, session: &str, steps: u64, status: SessionStatus, talk: Talk) -> Notice {
        let key = key(session);
        let row = self.store.session(&key).await.unwrap().expect("the session exists");
        let (owner, lease) = self.lease(row.shard).await;
        let mut entry = Entry {
            agent_id: row.agent_id.clone(),
            moniker: row.spec.moniker.clone(),
            conversation_id: row.spec.conversation_id.clone(),
            head: Head { updated_at_ms: self.now(), epoch: lease.epoch, ..row.head.clone() },
            state: Json::of(&json!({"n": row.head.steps + steps})),
            steps: Vec::new(),
            events: Vec::new(),
        };
        self.fill(&mut entry, steps, status);
        let work = self.store.pending(&key, Lane::Work, 0, 100).await.unwrap().actions;
        let entry = Arc::new(entry);
        let commit = Commit {
            key: key.clone(),
            shard: row.shard,
            epoch: lease.epoch,
            expect_steps: row.head.steps,
            expect_offset: row.head.next_offset,
            entry: entry.clone(),
            settled: work.into_iter().map(|action| Settled::ok(action.action_id)).collect(),
            follow_ups: Vec::new(),
            effects: Vec::new(),
            talk,
        };
        let results = self.store.commit(&owner, vec![commit]).await.unwrap();
        assert!(matches!(results[0], CommitResult::Done { .. }), "{results:?}");
        Notice::of(key, entry)
    }

    fn fill(&self, entry: &mut Entry, steps: u64, status: SessionStatus) {
        let at_ms = self.now();
        if entry.head.status == SessionStatus::Starting {
            event(entry, at_ms, EventKind::Created, json!({"moniker": entry.moniker}));
            entry.head.started_at_ms = Some(at_ms);
        }
        for _ in 0..steps {
            let iteration = entry.head.steps;
            let token = |n: u64| StepToken::parse(&format!("n/{n}")).unwrap();
            entry.steps.push(StepRecord {
                iteration,
                offset: entry.head.next_offset,
                created_at_ms: at_ms,
                turn_id: None,
                step_token: token(iteration),
                next_step_token: token(iteration + 1),
                status: if iteration % 5 == 4 { StepStatus::Info } else { StepStatus::Ok },
                text: Some(format!("step {iteration}")),
                data: None,
                state: Json::parse(format!("{{\"n\":\r\n{}}}", iteration + 1)).unwrap(),
                guidance: None,
                notes: None,
                latency_ms: 3,
                error: None,
            });
            entry.head.steps += 1;
            entry.head.next_offset += 1;
            entry.head.step_token = Some(token(iteration));
            entry.head.next_step_token = token(iteration + 1);
        }
        if entry.head.status != status {
            entry.head.status = status;
            entry.head.cause = if status.is_at_rest() { Cause::Ended } else { Cause::Runnable };
            entry.head.stop_reason = status.is_final().then_some(StopReason::Done);
            entry.head.wake_at_ms = (status == SessionStatus::Running).then_some(at_ms);
            event(entry, at_ms, EventKind::Status, json!({"status": status}));
        }
    }

    async fn lease(&self, shard: Shard) -> (WorkerId, Lease) {
        let owner = WorkerId::parse("w1").unwrap();
        if let Some(lease) = self.store.claim(shard, &owner, 3_600_000).await.unwrap() {
            return (owner, lease);
        }
        let info = self.store.shards().await.unwrap().into_iter().find(|info| info.shard == shard).unwrap();
        (owner, Lease { shard, epoch: info.epoch })
    }

    /// Moves everything from the journal to the archive.
    pub async fn archive_all(&self) {
        for shard in (0..SHARDS).map(Shard) {
            let rows = self.store.above(shard, 0, usize::MAX, usize::MAX).await.unwrap();
            let Some(last) = rows.last().map(|row| row.seq) else { continue };
            self.archive.append(&ArchiveBatch { rows }).await.unwrap();
            self.store.mark_archived(shard, last).await.unwrap();
        }
        self.store.trim(0, i64::MAX, usize::MAX).await.unwrap();
        assert!(self.store.journal_rows().is_empty());
    }

    /// Accepted actions that nobody has processed, control lane first, each session's in order.
    pub fn open(&self) -> Vec<Action> {
        let open = self.store.all_actions().into_iter().filter(|one| one.processed_at_ms.is_none());
        let mut open: Vec<Action> = open.filter_map(|one| one.action).collect();
        open.sort_by_key(|action| (action.lane(), action.session_seq));
        open
    }

    pub fn now(&self) -> i64 {
        domain::ports::Clock::now_ms(&self.clock)
    }
}

fn event(entry: &mut Entry, at_ms: i64, kind: EventKind, data: Value) {
    entry.events.push(EventRecord { offset: entry.head.next_offset, at_ms, kind, data: Json::of(&data) });
    entry.head.next_offset += 1;
}

pub fn token_row(token: &str, namespace: Namespace, scopes: Vec<Scope>) -> TokenRow {
    TokenRow { hash: Sha256::digest(token).into(), namespace, name: token.to_owned(), scopes }
}

pub fn key(session: &str) -> SessionKey {
    SessionKey::new(Namespace::default_ns(), SessionId::parse(session).unwrap())
}

/// An empty token means no header at all.
pub fn request(method: Method, path: &str, token: &str, body: Body) -> Request<Body> {
    let mut builder = Request::builder().method(method).uri(path);
    if !token.is_empty() {
        builder = builder.header(header::AUTHORIZATION, format!("Bearer {token}"));
    }
    builder.body(body).unwrap()
}
