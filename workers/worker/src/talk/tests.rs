//! Calls of a conversation against faithful fakes.

mod ahead;
mod cuts;
mod memories;
mod models;
mod summaries;

use std::sync::atomic::{AtomicU64, Ordering};

use domain::chat::{ChatCall, ChatRequest, ModelTarget, NativeRequest, Part};
use domain::converse::{Assembly, Checks, Limits, Seat, Settings};
use domain::effect::{AtHand, TalkCall};
use domain::tool::ResolvedTool;
use schemas::conversation::{LogKind, LogRecord, Talk};
use schemas::definition::{AgentConstraints, Budgets};
use schemas::id::{AgentId, ConversationId, Epoch, SessionId, TurnId};
use schemas::json::Json;
use serde_json::json;
use testkit::contract::Ports;
use testkit::contract::build::worker;
use testkit::contract::words::{create_in, record, turn_id};
use testkit::fake::{LocalLive, MemStore, ScriptedModels, SimClock, WordEmbedder};
use testkit::unreliable::{Faults, Port, Unreliable};
use tokio::time::Instant;

use super::hooks::{Hooks, TurnPlace};
use super::*;

/// A store with the session `s1` in the conversation `c1`, and models that answer nothing.
pub(super) struct Place {
    pub store: MemStore,
    pub ports: Ports,
    models: ScriptedModels,
    clock: SimClock,
}

impl Place {
    pub async fn new() -> Self {
        let clock = SimClock::new();
        let store = MemStore::new(4, Arc::new(clock.clone()));
        let ports = Ports::of(store.clone());
        ports.talker("s1", "c1").await;
        let silent = Arc::new(|_: &ChatCall| Vec::<Part>::new());
        let models = ScriptedModels::new(silent, Duration::from_millis(10), clock.clone());
        Self { store, ports, models, clock }
    }

    pub async fn say(&self, log: Vec<LogRecord>) {
        self.ports.say(&worker("w1"), "s1", Talk { log, ..Talk::default() }).await;
    }

    pub fn deps(&self, conversations: Arc<dyn Conversations>) -> TalkDeps {
        let all = Arc::new(self.store.clone());
        TalkDeps {
            conversations,
            sessions: all.clone(),
            definitions: all.clone(),
            models: Arc::new(self.models.clone()),
            memories: all,
            embedder: Arc::new(WordEmbedder::new("words")),
            live: Arc::new(LocalLive::default()),
            clock: Arc::new(self.clock.clone()),
            ends: Arc::default(),
            budgets: BTreeMap::new(),
        }
    }
}

/// What the turn `t1` asks for.
pub(super) fn talk(what: TalkWork) -> TalkCall {
    TalkCall {
        conversation: ConversationId::parse("c1").expect("an id"),
        agent: AgentId::parse("agent").expect("an id"),
        turn: TurnId::parse("t1").expect("an id"),
        parent: None,
        at_hand: None,
        what,
    }
}

/// The first reply of a turn.
fn first_reply<'a>(checks: &'a Checks, numbers: &'a stream::Numbers) -> chat::Asked<'a> {
    chat::Asked {
        number: 1,
        assembly: None,
        without_tools: false,
        summary: None,
        may_compact: false,
        checks,
        epoch: Epoch(1),
        numbers,
    }
}

pub(super) fn assembly() -> Assembly {
    Assembly {
        agent_name: "Ada".to_owned(),
        target: ModelTarget::Default,
        summariser: None,
        request: ChatRequest::ask("be brief", "hello"),
        tools: Vec::new(),
        constraints: AgentConstraints::default(),
        project_ids: Vec::new(),
        limits: Limits { max_rounds: 20, budgets: Budgets::default(), context: None, per_call: false },
        recent_turns: Vec::new(),
        summary: None,
        summary_at: 1,
        history: Vec::new(),
    }
}

#[tokio::test(start_paused = true)]
async fn a_call_that_is_cut_before_it_begins_asks_and_costs_nothing() {
    for is_early in [true, false] {
        let place = Place::new().await;
        let body = Json::of(&assembly());
        place.say(vec![LogRecord { turn_id: Some(turn_id("t1")), body, ..record(LogKind::Assembly, "a1") }]).await;
        let deps = place.deps(place.ports.conversations.clone());
        let (session, checks, cut) = (SessionId::parse("s1").expect("an id"), Checks::default(), Notify::new());
        let numbers = stream::Numbers::default();
        let asked = first_reply(&checks, &numbers);
        if is_early {
            cut.notify_one();
        }
        let (namespace, talk) = (Namespace::default_ns(), talk(TalkWork::Extract));
        let later = async {
            tokio::time::sleep(Duration::from_millis(5)).await;
            cut.notify_one();
        };
        let (outcome, ()) = tokio::join!(chat::chat(&deps, (&namespace, &session), &talk, asked, &cut), later);
        let reply = outcome.reply().expect("a reply");
        assert_eq!(reply.cut.as_deref(), Some(""));
        assert_eq!((reply.record.is_none(), place.models.asked().is_empty()), (is_early, is_early));
    }
}

#[tokio::test(start_paused = true)]
async fn a_reply_brings_what_its_tools_are_held_against() {
    let place = Place::new().await;
    let body = Json::of(&assembly());
    place.say(vec![LogRecord { turn_id: Some(turn_id("t1")), body, ..record(LogKind::Assembly, "a1") }]).await;
    let budget = NamespaceBudget { max_moves: Some(9), ..NamespaceBudget::default() };
    let budgets = BTreeMap::from([(Namespace::default_ns(), budget.clone())]);
    let deps = TalkDeps { budgets, ..place.deps(place.ports.conversations.clone()) };
    let (session, checks, cut) = (SessionId::parse("s1").expect("an id"), Checks::default(), Notify::new());
    let numbers = stream::Numbers::default();
    let (namespace, talk) = (Namespace::default_ns(), talk(TalkWork::Extract));
    let asked = first_reply(&checks, &numbers);
    let outcome = chat::chat(&deps, (&namespace, &session), &talk, asked, &cut).await;
    let found = &outcome.reply().expect("a reply").found;
    assert_eq!(found.namespace, Some((budget, Default::default())), "nothing was spent before it");
    assert_eq!(found.at_ms, place.clock.now_ms(), "as the model has answered");
}

/// A tool by which the agent `arch` is looped in.
fn loop_in() -> ResolvedTool {
    let tool = json!({"id": "arch", "name": "arch", "description": "d", "library_id": "l",
        "input_schema": {"type": "object"}, "target_type": "agent", "target_id": "arch", "invocation_mode": "loop_in"});
    let target = json!({"type": "agent", "agent_id": "arch", "version": 1});
    serde_json::from_value(json!({"tool": tool, "version": 1, "target": target})).expect("a resolved tool")
}

#[tokio::test(start_paused = true)]
async fn who_may_be_looped_in_is_known_where_they_can_be_asked() {
    let place = Place::new().await;
    let mut converses = create_in("create-s3", "s3", "arch", "c1");
    converses.session.as_mut().expect("a session").spec.moniker = "converse".to_owned();
    // The other one only counts.
    for create in [create_in("create-s2", "s2", "arch", "c1"), converses] {
        place.ports.accept(create).await;
    }
    let body = Json::of(&Assembly { tools: vec![loop_in()], ..assembly() });
    place.say(vec![LogRecord { turn_id: Some(turn_id("t1")), body, ..record(LogKind::Assembly, "a1") }]).await;
    let deps = place.deps(place.ports.conversations.clone());
    let (session, checks, cut) = (SessionId::parse("s1").expect("an id"), Checks::default(), Notify::new());
    let numbers = stream::Numbers::default();
    let asked = first_reply(&checks, &numbers);
    let (namespace, talk) = (Namespace::default_ns(), talk(TalkWork::Extract));
    let outcome = chat::chat(&deps, (&namespace, &session), &talk, asked, &cut).await;
    let seats = outcome.reply().expect("a reply").seats.clone();
    let (agent_id, session_id) = (AgentId::parse("arch").expect("an id"), SessionId::parse("s3").expect("an id"));
    assert_eq!(seats, [Seat { agent_id, session_id }]);
}

#[tokio::test(start_paused = true)]
async fn a_call_says_which_turn_it_goes_on_from() {
    let place = Place::new().await;
    let body = Json::of(&assembly());
    place.say(vec![LogRecord { turn_id: Some(turn_id("t1")), body, ..record(LogKind::Assembly, "a1") }]).await;
    let deps = place.deps(place.ports.conversations.clone());
    let (session, checks, cut) = (SessionId::parse("s1").expect("an id"), Checks::default(), Notify::new());
    let numbers = stream::Numbers::default();
    let (namespace, asked) = (Namespace::default_ns(), first_reply(&checks, &numbers));
    let talk = TalkCall { parent: Some(turn_id("t0")), ..talk(TalkWork::Extract) };
    chat::chat(&deps, (&namespace, &session), &talk, asked, &cut).await;
    let parent = place.models.asked()[0].context.parent_run_id();
    assert_eq!(parent.as_deref(), Some("c1:t0"), "also where its model is shown none");
}

/// Nothing can be added to it: what its calls came to would never be told.
#[tokio::test(start_paused = true)]
async fn a_context_in_a_providers_own_shape_is_sent_once_and_without_tools() {
    let note = LogRecord { turn_id: Some(turn_id("t1")), ..record(LogKind::Note, "n1") };
    for (tools, notes, is_sent) in
        [(vec![], vec![], true), (vec![loop_in()], vec![], false), (vec![], vec![note], false)]
    {
        let place = Place::new().await;
        let native = NativeRequest { provider: "openai".to_owned(), body: json!({"messages": []}) };
        let request = ChatRequest { native: Some(native), ..ChatRequest::default() };
        let body = Json::of(&Assembly { request, tools, ..assembly() });
        place.say(vec![LogRecord { turn_id: Some(turn_id("t1")), body, ..record(LogKind::Assembly, "a1") }]).await;
        place.say(notes).await;
        let deps = place.deps(place.ports.conversations.clone());
        let (session, checks, cut) = (SessionId::parse("s1").expect("an id"), Checks::default(), Notify::new());
        let numbers = stream::Numbers::default();
        let (namespace, talk) = (Namespace::default_ns(), talk(TalkWork::Extract));
        let asked = first_reply(&checks, &numbers);
        let outcome = chat::chat(&deps, (&namespace, &session), &talk, asked, &cut).await;
        let reply = outcome.reply().expect("a reply");
        assert_eq!((place.models.asked().len() == 1, reply.failure.is_none()), (is_sent, is_sent), "{reply:?}");
        assert!(reply.failure.iter().all(|failure| failure.code == Code::InvalidRequest), "{reply:?}");
    }
}

/// A hook that fails twice and then says nothing.
#[derive(Default)]
struct Broken(AtomicU64);

#[async_trait]
impl Hooks for Broken {
    async fn assemble(&self, _: TurnPlace<'_>, _: assemble::Start) -> Result<Assembly, Outcome> {
        Ok(assembly())
    }

    async fn extract(&self, _: TurnPlace<'_>) -> Result<u32, Failure> {
        if self.0.fetch_add(1, Ordering::Relaxed) == 2 {
            tokio::time::sleep(Duration::from_secs(60)).await;
        }
        Err(Failure::internal("no room"))
    }
}

#[tokio::test(start_paused = true)]
async fn memories_are_extracted_in_three_attempts_of_thirty_seconds() {
    let place = Place::new().await;
    let deps = place.deps(place.ports.conversations.clone());
    let (namespace, talk) = (Namespace::default_ns(), talk(TalkWork::Extract));
    let turn = TurnPlace { deps: &deps, namespace: &namespace, talk: &talk };
    let (hooks, begun) = (Broken::default(), Instant::now());
    let outcome = attempts::extract(&hooks, turn).await;
    let Outcome::Failed(failure) = outcome else { panic!("{outcome:?}") };
    assert_eq!((failure.message.as_str(), hooks.0.load(Ordering::Relaxed)), ("it took longer than 30 s", 3));
    assert_eq!(begun.elapsed().as_millis(), 30_300, "after 100 and 200 ms");
}

/// A hook whose contexts never come.
#[derive(Default)]
struct Hanging(AtomicU64);

#[async_trait]
impl Hooks for Hanging {
    async fn assemble(&self, _: TurnPlace<'_>, _: assemble::Start) -> Result<Assembly, Outcome> {
        self.0.fetch_add(1, Ordering::Relaxed);
        std::future::pending().await
    }

    async fn extract(&self, _: TurnPlace<'_>) -> Result<u32, Failure> {
        Ok(0)
    }
}

#[tokio::test(start_paused = true)]
async fn a_context_has_three_attempts_of_thirty_seconds_and_an_outage_of_the_store_takes_none() {
    let place = Place::new().await;
    let faults = Faults::none("w");
    let conversations = Arc::new(Unreliable::new(place.ports.conversations.clone(), faults.clone()));
    let deps = place.deps(conversations);
    let (namespace, talk) = (Namespace::default_ns(), talk(TalkWork::Extract));
    let turn = TurnPlace { deps: &deps, namespace: &namespace, talk: &talk };
    let resolved = persona::resolve(&deps, &namespace, &talk.agent, &Settings::default()).await;
    let said = json!({"message_id": "m1", "sender_type": "user", "role": "user", "event_type": "utterance"});
    let start = assemble::Start {
        resolved: resolved.unwrap_or_else(|outcome| panic!("{outcome:?}")),
        notes: Vec::new(),
        summary: None,
        input: serde_json::from_value(said).expect("a message"),
        recalled: memory::Recalled::default(),
        is_delegate: false,
        lately: None,
        pending: Vec::new(),
    };
    faults.outage(&[Port::Conversations], Duration::from_secs(70));
    let (hooks, begun) = (Hanging::default(), Instant::now());
    let outcome = attempts::assemble(&hooks, turn, start).await;
    let Err(Outcome::Failed(failure)) = outcome else { panic!("{outcome:?}") };
    assert!(failure.message.contains("in 3 attempts: it took longer than 30 s"), "{failure:?}");
    assert_eq!(hooks.0.load(Ordering::Relaxed), 2 + 3, "two end while the store is away");
    assert_eq!(begun.elapsed().as_millis(), 150_300);
}

/// An embedder that does not answer.
struct Away;

#[async_trait]
impl Embedder for Away {
    fn model(&self) -> &str {
        "away"
    }

    async fn embed(&self, _: &[&str]) -> Result<Vec<Vec<f32>>, Failure> {
        std::future::pending().await
    }
}

#[tokio::test(start_paused = true)]
async fn a_search_of_memories_that_does_not_end_leaves_them_out() {
    let place = Place::new().await;
    let deps = TalkDeps { embedder: Arc::new(Away), ..place.deps(place.ports.conversations.clone()) };
    let (namespace, talk) = (Namespace::default_ns(), talk(TalkWork::Extract));
    let input = json!({"message_id": "m1", "sender_type": "user", "role": "user", "text": "what do you know of doors?",
        "event_type": "utterance"});
    let begun = Instant::now();
    let input = serde_json::from_value(input).expect("a message");
    let recalled = memory::recalled(&deps, &namespace, &talk, &input).await;
    assert_eq!(recalled.unwrap_or_else(|outcome| panic!("{outcome:?}")), memory::Recalled::default());
    assert_eq!(begun.elapsed().as_secs(), 20, "twice ten");
}

#[tokio::test(start_paused = true)]
async fn what_is_at_hand_of_a_turn_is_not_read() {
    let place = Place::new().await;
    let faults = Faults::none("w");
    let deps = place.deps(Arc::new(Unreliable::new(place.ports.conversations.clone(), faults.clone())));
    faults.outage(&[Port::Conversations], Duration::from_secs(70));
    let (namespace, mut talk) = (Namespace::default_ns(), talk(TalkWork::Extract));
    talk.at_hand = Some(AtHand { context: Arc::new(assembly()), is_all: true });
    let (context, log) = chat::context(&deps, &namespace, &talk, None).await.expect("a context");
    assert_eq!((context.agent_name.as_str(), log.len()), ("Ada", 0));
    talk.at_hand = Some(AtHand { context, is_all: false });
    let begun = Instant::now();
    chat::context(&deps, &namespace, &talk, None).await.expect("a context");
    assert!(begun.elapsed().as_secs() >= 69, "the log is read");
}
