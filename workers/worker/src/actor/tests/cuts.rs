//! Urgent guidance, and whatever ends turns, cuts short the calls that it is about, records them first, and waits for
//! no other.

use std::collections::BTreeMap;

use domain::action::MODE_NOW;
use domain::chat::{
    ChatCall, ChatDelta, ChatFailure, ChatOutcome, ErrorCategory, ModelTarget, Part, ProviderCallRecord, Usage,
};
use domain::effect::TalkWork;
use domain::ports::{Conversations, DeltaSink, LogQuery, Models};
use schemas::action::{ActionType, NewAction};
use schemas::conversation::{LogKind, Message, SenderType, Turn, TurnStatus};
use schemas::event::EventKind;
use schemas::json::Json;
use schemas::limits::{DESTROY_GRACE_MS, LEDGER_POLL_MS};
use schemas::problem::Code;
use schemas::session::{Head, StopReason};
use testkit::contract::build::action;
use testkit::contract::words::{log_query, turn_id};
use testkit::fake::{LocalLive, ScriptedModels, WordEmbedder};
use tokio::sync::Notify;
use tokio::time::{Instant, sleep};

use super::*;
use crate::talk::{TalkDeps, Talking};

/// How long a model speaks.
const SPEECH: Duration = Duration::from_secs(60);
/// What comes without waiting for that: the worker looks once a second for what nobody has told it of.
const SOON: Duration = Duration::from_secs(5);
/// What waits for no grace of a stop that is held.
const AT_ONCE: Duration = Duration::from_secs(1);
const LOOK: Duration = Duration::from_millis(10);
const LOOKS_MAX: usize = 10_000;
/// A turn whose context never comes.
const SLOW: &str = "slow";
/// A turn whose model never answers: it lets itself be told to hurry, and does not.
const DEAF: &str = "deaf";
/// A turn whose model is deaf as well, and fails when it is told to.
const BROKEN: &str = "broken";
/// What its call is billed with.
const BILLED: u64 = 7;

/// Models that have said half of what they say as soon as they are asked.
struct Speakers {
    models: ScriptedModels,
    fails: Arc<Notify>,
}

#[async_trait]
impl Models for Speakers {
    async fn chat(&self, call: &ChatCall, sink: Option<&dyn DeltaSink>) -> ChatOutcome {
        if call.id.starts_with(BROKEN) {
            return tokio::select! {
                biased;
                said = self.models.chat(call, None) => said,
                () = self.fails.notified() => broken(call),
            };
        }
        if let Some(sink) = sink {
            sink.delta(1, 0, ChatDelta::Text { part: 0, text: format!("half of {}", call.id) });
        }
        self.models.chat(call, sink).await
    }

    fn provider(&self) -> String {
        self.models.provider()
    }

    fn cost_of_input(&self, target: &ModelTarget, tokens: u64) -> f64 {
        self.models.cost_of_input(target, tokens)
    }
}

/// A call that came to nothing, and is billed.
fn broken(call: &ChatCall) -> ChatOutcome {
    let mut record = ProviderCallRecord::open(&call.id, &call.context, "p", "m", true, 0);
    record.usage = Some(Usage { input_tokens: BILLED, total_tokens: BILLED, ..Usage::default() });
    let failure = ChatFailure {
        category: ErrorCategory::Transient,
        code: Code::ProviderFailed,
        message: "the stream broke off".to_owned(),
        provider: "p".to_owned(),
        raw: None,
        retriable: true,
        may_have_happened: true,
    };
    ChatOutcome { record, result: Err(failure) }
}

/// Effects of which some hang, and cannot be hurried.
struct Stuck(Talking);

#[async_trait]
impl Effects for Stuck {
    async fn perform(&self, call: &EffectCall) -> Outcome {
        if let Effect::Talk(talk) = &call.effect
            && matches!((talk.turn.as_str(), &talk.what), (SLOW, _) | (DEAF, TalkWork::Chat { .. }))
        {
            return std::future::pending().await;
        }
        self.0.perform(call).await
    }

    fn cut(&self, key: &str) -> bool {
        // Who is told to hurry need not do it.
        [DEAF, BROKEN].iter().any(|turn| key.contains(turn)) || self.0.cut(key)
    }

    fn provider(&self) -> String {
        self.0.provider()
    }
}

struct World {
    clock: SimClock,
    store: MemStore,
    models: ScriptedModels,
    fails: Arc<Notify>,
    effects: Arc<Stuck>,
    runner: Option<Runner>,
}

impl World {
    /// A worker that finds one session `s`, and in it a turn of each of these ids.
    async fn start(turns: &[&str]) -> Self {
        let clock = SimClock::new();
        let store = MemStore::new(1, Arc::new(clock.clone()));
        accept(&store, "s", json!({"moniker": "converse"})).await;
        for turn in turns {
            let said = json!({"text": "go on", "turn_id": turn});
            post(&store, ActionType::Input, &format!("in-{turn}"), said).await;
        }
        let says = |call: &ChatCall| vec![Part::text(format!("all of {}", call.id))];
        let models = ScriptedModels::new(Arc::new(says), SPEECH, clock.clone());
        let (all, fails) = (Arc::new(store.clone()), Arc::new(Notify::new()));
        let talk = TalkDeps {
            conversations: all.clone(),
            sessions: all.clone(),
            definitions: all.clone(),
            models: Arc::new(Speakers { models: models.clone(), fails: fails.clone() }),
            memories: all,
            embedder: Arc::new(WordEmbedder::new("words")),
            live: Arc::new(LocalLive::default()),
            clock: Arc::new(clock.clone()),
            ends: Arc::default(),
            budgets: BTreeMap::new(),
        };
        let others = Library { store: store.clone(), text: String::new(), counted: Mutex::default() };
        let effects = Arc::new(Stuck(Talking::new(talk, Arc::new(others))));
        let runner = Some(start("w1", &store, effects.clone(), &clock));
        Self { clock, store, models, fails, effects, runner }
    }

    /// The worker gives its shard back and leaves; how long that took.
    async fn leave(&mut self) -> Duration {
        let begun = Instant::now();
        self.runner.take().expect("a worker").drain().await;
        begun.elapsed()
    }

    /// Another worker comes.
    fn come(&mut self, name: &str) {
        self.runner = Some(start(name, &self.store, self.effects.clone(), &self.clock));
    }

    async fn guide(&self, id: &str, guidance: Value) {
        let payload = json!({"guidance": guidance, "mode": MODE_NOW});
        post(&self.store, ActionType::Interrupt, id, payload).await;
    }

    /// Cancels a turn; how it ended, and how long that took.
    async fn cancel(&self, turn: &str) -> (Turn, Duration) {
        let begun = Instant::now();
        self.guide(&format!("cancel-{turn}"), json!({"cancel_turn": turn})).await;
        let ended = self.ended(turn).await;
        (ended, begun.elapsed())
    }

    /// Destroys the session; how these turns ended, and how long that took.
    async fn destroy(&self, turns: &[&str]) -> (Vec<Turn>, Duration) {
        // By then everything is under way.
        sleep(SOON).await;
        let begun = Instant::now();
        post(&self.store, ActionType::Destroy, "stop", json!({})).await;
        (self.stopped(turns).await, begun.elapsed())
    }

    /// Destroys the session, and returns once the stop is held by what does not hurry alone.
    async fn hold_stop(&self) {
        // By then everything is under way.
        sleep(SOON).await;
        post(&self.store, ActionType::Destroy, "stop", json!({})).await;
        for _ in 0..LOOKS_MAX {
            if !self.said().await.is_empty() {
                assert_eq!(self.head().await.status, SessionStatus::Running, "the stop is not held");
                return;
            }
            sleep(LOOK).await;
        }
        panic!("nothing is cut short");
    }

    /// How these turns of the session ended, which is destroyed.
    async fn stopped(&self, turns: &[&str]) -> Vec<Turn> {
        let mut ended = Vec::new();
        for turn in turns {
            ended.push(self.ended(turn).await);
        }
        let head = self.head().await;
        assert_eq!((head.status, head.stop_reason), (SessionStatus::Stopped, Some(StopReason::Destroyed)));
        let commits = self.store.commit_log();
        let events = commits.iter().flat_map(|commit| &commit.entry.events);
        let statuses = events.filter(|event| event.kind == EventKind::Status).map(|event| event.data.to_value());
        assert_eq!(statuses.filter(|data| data["status"] == "stopped").count(), 1, "it ends once");
        ended
    }

    async fn head(&self) -> Head {
        self.store.session(&key("s")).await.expect("a read").expect("a session").head
    }

    async fn turn(&self, id: &str) -> Option<Turn> {
        self.store.turn(&Namespace::default_ns(), &turn_id(id)).await.expect("a read")
    }

    async fn ended(&self, id: &str) -> Turn {
        for _ in 0..LOOKS_MAX {
            if let Some(turn) = self.turn(id).await.filter(|turn| turn.status != TurnStatus::Active) {
                return turn;
            }
            sleep(LOOK).await;
        }
        panic!("{id} goes on: {:?}", self.turn(id).await);
    }

    /// Calls of models so far, in the order of their names.
    fn asked(&self) -> Vec<String> {
        let mut asked: Vec<String> = self.models.asked().into_iter().map(|call| call.id).collect();
        asked.sort();
        asked
    }

    /// Waits until models were asked so often; how long that took.
    async fn until_asked(&self, calls: usize) -> Duration {
        let begun = Instant::now();
        for _ in 0..LOOKS_MAX {
            if self.asked().len() >= calls {
                return begun.elapsed();
            }
            sleep(LOOK).await;
        }
        panic!("asked for {:?}", self.asked());
    }

    /// What the agent has said, by the names of the messages.
    async fn said(&self) -> BTreeMap<String, String> {
        let query = LogQuery { kinds: vec![LogKind::Message], ..log_query("s") };
        let rows = self.store.log(&query).await.expect("a read");
        let messages = rows.iter().map(|row| row.record.body.to::<Message>().expect("a message"));
        let by_agent = messages.filter(|message| message.sender_type == SenderType::Agent);
        by_agent.map(|said| (said.message_id.to_string(), said.text.unwrap_or_default())).collect()
    }
}

async fn post(store: &MemStore, kind: ActionType, id: &str, payload: Value) {
    let new = NewAction { payload: Json::of(&payload), ..action(kind, id, Some("s"), None) };
    let verdicts = store.accept(vec![new]).await.expect("the ledger takes it");
    assert!(matches!(verdicts[..], [Verdict::Accepted(_)]), "{verdicts:?}");
}

fn messages(all: &[(&str, &str)]) -> BTreeMap<String, String> {
    all.iter().map(|(id, text)| ((*id).to_owned(), (*text).to_owned())).collect()
}

/// SPEC W-TRN-06: turns are independent of one another.
#[tokio::test(start_paused = true)]
async fn the_end_of_one_turn_cuts_no_other() {
    let world = World::start(&["t1", "t2"]).await;
    world.until_asked(2).await;
    let (cancelled, took) = world.cancel("t1").await;
    assert!(took < SOON, "{took:?}");
    assert_eq!((cancelled.status, cancelled.cancelled, cancelled.moves), (TurnStatus::Failed, true, 1));
    assert!(cancelled.usage.input_tokens > 0, "what was asked for is paid for: {cancelled:?}");
    assert_eq!(world.said().await, messages(&[("t1.m1", "half of t1.1")]), "what was said is recorded before");
    let other = world.ended("t2").await;
    assert_eq!((other.status, other.moves), (TurnStatus::Completed, 1));
    assert_eq!(world.said().await, messages(&[("t1.m1", "half of t1.1"), ("t2.m1", "all of t2.1")]));
    assert_eq!(world.asked(), ["t1.1", "t2.1"], "nobody is asked twice");
}

#[tokio::test(start_paused = true)]
async fn what_a_model_was_asked_for_a_turn_is_paid_for_however_the_turn_is_cancelled() {
    let world = World::start(&["t1", "t2"]).await;
    world.until_asked(2).await;
    post(&world.store, ActionType::Interrupt, "cancel", json!({"guidance": {"cancel_turn": "t1"}})).await;
    let cancelled = world.ended("t1").await;
    assert_eq!((cancelled.status, cancelled.cancelled, cancelled.moves), (TurnStatus::Failed, true, 1));
    assert!(cancelled.usage.input_tokens > 0, "{cancelled:?}");
    assert_eq!(world.said().await, messages(&[("t1.m1", "half of t1.1")]));
    assert_eq!(world.turn("t2").await.map(|turn| turn.status), Some(TurnStatus::Active));
    assert_eq!(world.asked(), ["t1.1", "t2.1"]);
}

#[tokio::test(start_paused = true)]
async fn what_models_were_asked_is_paid_for_when_their_session_is_destroyed() {
    let world = World::start(&["t1", "t2", SLOW]).await;
    world.until_asked(2).await;
    let (turns, took) = world.destroy(&["t1", "t2", SLOW]).await;
    assert!(took < SOON, "a context is not waited for: {took:?}");
    assert!(turns.iter().all(|turn| turn.cancelled), "{turns:?}");
    let paid: Vec<bool> = turns.iter().map(|turn| turn.usage.input_tokens > 0).collect();
    assert_eq!(paid, [true, true, false]);
    assert_eq!(world.said().await, messages(&[("t1.m1", "half of t1.1"), ("t2.m1", "half of t2.1")]));
    assert_eq!(world.asked(), ["t1.1", "t2.1"], "nobody is asked again");
}

#[tokio::test(start_paused = true)]
async fn a_call_that_cannot_be_cut_holds_up_a_stop_for_its_grace_alone() {
    let world = World::start(&["t1", DEAF]).await;
    world.until_asked(1).await;
    let (turns, took) = world.destroy(&["t1", DEAF]).await;
    let grace = Duration::from_millis(DESTROY_GRACE_MS);
    // What waits in the ledger alone is found by the second look at the latest.
    let found = Duration::from_millis(2 * LEDGER_POLL_MS);
    assert!((grace..grace + found + SOON).contains(&took), "{took:?}");
    let paid: Vec<bool> = turns.iter().map(|turn| turn.usage.input_tokens > 0).collect();
    assert_eq!(paid, [true, false]);
}

/// Who takes over finds the stop, and calls that it would make again.
#[tokio::test(start_paused = true)]
async fn a_shard_that_is_given_back_while_a_stop_is_held_waits_for_no_grace_and_the_next_owner_asks_nobody() {
    let mut world = World::start(&["t1", DEAF]).await;
    world.until_asked(1).await;
    world.hold_stop().await;
    let took = world.leave().await;
    assert!(took < AT_ONCE, "{took:?}");
    assert_eq!(world.head().await.status, SessionStatus::Running, "it has not been ended");
    let begun = Instant::now();
    world.come("w2");
    let turns = world.stopped(&["t1", DEAF]).await;
    assert!(begun.elapsed() < SOON, "nothing is under way any more: {:?}", begun.elapsed());
    assert!(turns.iter().all(|turn| turn.status == TurnStatus::Failed && turn.cancelled), "{turns:?}");
    let paid: Vec<(u32, bool)> = turns.iter().map(|turn| (turn.moves, turn.usage.input_tokens > 0)).collect();
    assert_eq!(paid, [(1, true), (0, false)]);
    assert_eq!(world.said().await, messages(&[("t1.m1", "half of t1.1")]));
    assert_eq!(world.asked(), ["t1.1"]);
}

#[tokio::test(start_paused = true)]
async fn a_call_that_fails_while_a_stop_is_held_for_it_is_paid_for_and_the_stop_goes_on() {
    let world = World::start(&["t1", BROKEN]).await;
    world.until_asked(2).await;
    world.hold_stop().await;
    let begun = Instant::now();
    world.fails.notify_one();
    let turns = world.stopped(&["t1", BROKEN]).await;
    assert!(begun.elapsed() < AT_ONCE, "{:?}", begun.elapsed());
    let [cut, failed] = &turns[..] else { panic!("{turns:?}") };
    assert_eq!((cut.status, cut.cancelled, cut.usage.input_tokens > 0), (TurnStatus::Failed, true, true));
    let code = failed.error.as_ref().map(|error| error.code.as_str());
    assert_eq!((failed.status, failed.cancelled, code), (TurnStatus::Failed, false, Some("provider_failed")));
    assert_eq!((failed.moves, failed.usage.input_tokens), (0, BILLED));
    assert_eq!(world.said().await, messages(&[("t1.m1", "half of t1.1")]));
    assert_eq!(world.asked(), ["broken.1", "t1.1"], "nobody is asked again");
}

#[tokio::test(start_paused = true)]
async fn guidance_for_the_whole_session_cuts_all_replies() {
    let world = World::start(&["t1", "t2"]).await;
    world.until_asked(2).await;
    world.guide("hurry", json!({"note": "hurry up"})).await;
    let took = world.until_asked(4).await;
    assert!(took < SOON, "{took:?}");
    assert_eq!(world.said().await, messages(&[("t1.m1", "half of t1.1"), ("t2.m1", "half of t2.1")]));
    assert_eq!(world.asked(), ["t1.1", "t1.2", "t2.1", "t2.2"]);
    let told = world.models.asked().iter().filter(|call| format!("{:?}", call.request).contains("hurry up")).count();
    assert_eq!(told, 2, "both are told before they are asked again");
}

#[tokio::test(start_paused = true)]
async fn urgent_guidance_waits_for_no_call_that_cannot_be_cut() {
    let world = World::start(&["t1", SLOW]).await;
    world.until_asked(1).await;
    // By then the other one's context is under way, too.
    sleep(SOON).await;
    world.guide("hurry", json!({"note": "hurry up"})).await;
    let took = world.until_asked(2).await;
    assert!(took < SOON, "{took:?}");
    let (cancelled, took) = world.cancel("t1").await;
    assert!(took < SOON && cancelled.cancelled, "{took:?} {cancelled:?}");
    assert_eq!(world.turn(SLOW).await.map(|turn| turn.status), Some(TurnStatus::Active));
    let (cancelled, took) = world.cancel(SLOW).await;
    assert!(took < SOON && cancelled.cancelled, "{took:?} {cancelled:?}");
    assert_eq!(world.asked(), ["t1.1", "t1.2"]);
}
