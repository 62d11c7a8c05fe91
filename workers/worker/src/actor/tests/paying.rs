//! What steps without turns ask of models: recorded and counted as replies of turns are, and held against budgets.

use std::collections::BTreeMap;

use domain::action::MODE_NOW;
use domain::chat::{ChatCall, Part};
use domain::ports::Conversations;
use domain::spending::Spent;
use schemas::action::{ActionType, NewAction};
use schemas::definition::{Budgets, NamespaceBudget};
use schemas::event::EventKind;
use schemas::json::Json;
use schemas::limits::{EFFECT_MS_MAX, LEDGER_POLL_MS};
use schemas::session::{Cause, Head, ModelUse};
use testkit::contract::build::action;
use testkit::fake::{LocalLive, ScriptedModels, WordEmbedder};
use testkit::unreliable::{Faults, Port, Unreliable};
use tokio::time::sleep;

use super::*;
use crate::runner::RunnerDeps;
use crate::talk::{TalkDeps, Talking};

const LOOK: Duration = Duration::from_millis(10);
const LOOKS_MAX: usize = 10_000;

struct World {
    clock: SimClock,
    store: MemStore,
    models: ScriptedModels,
    effects: Arc<Talking>,
    runner: Option<Runner>,
    /// Of what its first worker reaches.
    faults: Faults,
}

impl World {
    /// A worker that finds one session `s` of a loop. Its models take so long, and are done with the job when they are
    /// told to `halt`.
    async fn start(budget: NamespaceBudget, delay: Duration) -> Self {
        Self::start_with("go on", budget, delay).await
    }

    /// Who is told to mumble is asked twice for each step.
    async fn start_with(task: &str, budget: NamespaceBudget, delay: Duration) -> Self {
        let clock = SimClock::new();
        let store = MemStore::new(1, Arc::new(clock.clone()));
        accept(&store, "s", json!({"moniker": "run_step", "task": task, "config": {"model_profile": "m"}})).await;
        let says = |call: &ChatCall| {
            let said = format!("{:?}", call.request.messages);
            if said.contains("mumble") && !said.contains("The answer was") {
                return vec![Part::text("I would rather not.")];
            }
            let done = said.contains("halt");
            vec![Part::text(json!({"next_step": "next", "state": {}, "text": "on", "done": done}).to_string())]
        };
        let models = ScriptedModels::new(Arc::new(says), delay, clock.clone());
        let all = Arc::new(store.clone());
        let talk = TalkDeps {
            conversations: all.clone(),
            sessions: all.clone(),
            definitions: all.clone(),
            models: Arc::new(models.clone()),
            memories: all,
            embedder: Arc::new(WordEmbedder::new("words")),
            live: Arc::new(LocalLive::default()),
            clock: Arc::new(clock.clone()),
            ends: Arc::default(),
            budgets: BTreeMap::from([(Namespace::default_ns(), budget)]),
        };
        let others = Library { store: store.clone(), text: String::new(), counted: Mutex::default() };
        let effects = Arc::new(Talking::new(talk, Arc::new(others)));
        let faults = Faults::none("w1");
        let ledger = Arc::new(Unreliable::new(Arc::new(store.clone()), faults.clone()));
        let deps = RunnerDeps { ledger, ..deps(&store, effects.clone(), &clock) };
        let runner = Some(Runner::start(deps, config("w1")));
        Self { clock, store, models, effects, runner, faults }
    }

    async fn post(&self, kind: ActionType, id: &str, payload: Value) {
        let new = NewAction { payload: Json::of(&payload), ..action(kind, id, Some("s"), None) };
        let verdicts = self.store.accept(vec![new]).await.expect("the ledger takes it");
        assert!(matches!(verdicts[..], [Verdict::Accepted(_)]), "{verdicts:?}");
    }

    async fn until(&self, is_so: impl Fn(&Head) -> bool) -> Head {
        for _ in 0..LOOKS_MAX {
            let head = self.store.session(&key("s")).await.expect("a read").expect("a session").head;
            if is_so(&head) {
                return head;
            }
            sleep(LOOK).await;
        }
        panic!("it never comes to that");
    }

    /// Waits until a model was asked.
    async fn until_asked(&self) {
        for _ in 0..LOOKS_MAX {
            if !self.models.asked().is_empty() {
                return;
            }
            sleep(LOOK).await;
        }
        panic!("nobody is asked");
    }

    /// Why the session is paused.
    async fn held(&self) -> (Head, String) {
        let head = self.until(|head| head.status == SessionStatus::Paused).await;
        let Cause::Paused { by, reason: Some(reason) } = &head.cause else { panic!("{head:?}") };
        assert_eq!(by, "budgets");
        let reason = reason.clone();
        (head, reason)
    }

    async fn spent(&self) -> Spent {
        self.store.spent(&Namespace::default_ns()).await.expect("a sum")
    }

    /// The records of calls among the events, each with its tokens in and out.
    fn calls(&self) -> Vec<(u64, u64)> {
        let commits = self.store.commit_log();
        let events = commits.iter().flat_map(|commit| &commit.entry.events);
        let calls = events.filter(|event| event.kind == EventKind::ProviderCall).map(|event| event.data.to_value());
        let number = |call: &Value, key: &str| call["usage"][key].as_u64().unwrap_or(0);
        calls.map(|call| (number(&call, "input_tokens"), number(&call, "output_tokens"))).collect()
    }
}

#[tokio::test(start_paused = true)]
async fn a_budget_of_the_namespace_pauses_a_loop_and_a_resume_allows_it_once_more() {
    let budget = NamespaceBudget { max_moves: Some(2), ..NamespaceBudget::default() };
    let world = World::start(budget, LOOK).await;
    let (head, reason) = world.held().await;
    assert_eq!((head.steps, world.models.asked().len()), (2, 2), "nobody is asked for more");
    assert!(reason.starts_with("The namespace has used 2 of 2 moves"), "{reason}");
    assert!(reason.ends_with("once it is resumed, it may use 2 moves besides"), "{reason}");
    assert_eq!(world.calls(), [(10, 5), (10, 5)]);
    assert_eq!(world.spent().await, Spent { tokens: 30, cost_nanos: 0, calls: 2 });
    let asked = world.models.asked().remove(0);
    assert_eq!((asked.context.agent.as_str(), asked.context.conversation_id.as_str()), ("s", "s"));
    world.post(ActionType::Resume, "r1", json!({})).await;
    let head = world.until(|head| head.steps == 4 && head.status == SessionStatus::Paused).await;
    assert_eq!(head.models.as_ref().map(|models| (models.calls, models.raised_namespace)), Some((4, 1)));
    // A yes of a person who wants something else than more of it.
    world.post(ActionType::Resume, "r2", json!({})).await;
    world.post(ActionType::Interrupt, "g1", json!({"guidance": "halt"})).await;
    world.until(|head| head.status == SessionStatus::Completed).await;
}

#[tokio::test(start_paused = true)]
async fn what_a_step_has_asked_already_counts_before_it_is_recorded() {
    let budget = NamespaceBudget { max_moves: Some(1), ..NamespaceBudget::default() };
    let world = World::start_with("mumble", budget, LOOK).await;
    let (head, reason) = world.held().await;
    assert_eq!((head.steps, world.models.asked().len(), world.calls().len()), (0, 1, 1), "{reason}");
    assert!(reason.ends_with("it may use 2 moves besides"), "the step begins anew: {reason}");
    world.post(ActionType::Resume, "r1", json!({})).await;
    let head = world.until(|head| head.steps == 1).await;
    assert_eq!((head.models.map(|models| models.calls), world.models.asked().len()), (Some(3), 3));
}

#[tokio::test(start_paused = true)]
async fn what_each_session_may_use_bounds_a_loop_by_what_it_has_used_itself() {
    let each = Budgets { max_tokens_per_session: Some(20), ..Budgets::default() };
    let world = World::start(NamespaceBudget { each, ..NamespaceBudget::default() }, LOOK).await;
    let (head, reason) = world.held().await;
    assert!(reason.starts_with("This session has used 0 of 20 tokens, and the next request alone"), "{reason}");
    assert!(head.steps == 0 && world.models.asked().is_empty(), "it does not even fit once");
    world.post(ActionType::Resume, "r1", json!({})).await;
    let head = world.until(|head| head.steps > 0 && head.status == SessionStatus::Paused).await;
    let models = head.models.expect("a use");
    assert!(models.raised_session > 0 && models.raised_namespace == 0, "{models:?}");
    assert_eq!((models.calls, models.tokens), (head.steps, 15 * head.steps));
}

#[tokio::test(start_paused = true)]
async fn a_step_that_takes_longer_than_its_session_may_ends_after_one_yes() {
    let each = Budgets { max_seconds_per_session: Some(5), ..Budgets::default() };
    let budget = NamespaceBudget { each, ..NamespaceBudget::default() };
    let world = World::start_with("mumble", budget, Duration::from_secs(30)).await;
    let (head, reason) = world.held().await;
    assert_eq!((head.steps, world.calls().len()), (0, 1), "{reason}");
    world.post(ActionType::Resume, "r1", json!({})).await;
    let head = world.until(|head| head.steps == 1 || head.models.as_deref().is_some_and(is_held_again)).await;
    assert_eq!(head.steps, 1, "it is held once more");
}

fn is_held_again(models: &ModelUse) -> bool {
    models.raised_session > 0 && models.held.is_some()
}

/// Nobody has brought it to the worker by then, and for a while nobody can.
#[tokio::test(start_paused = true)]
async fn a_resume_of_before_is_no_yes_however_late_the_ledger_tells_of_it() {
    for away in [Duration::ZERO, Duration::from_millis(700)] {
        let budget = NamespaceBudget { max_moves: Some(1), ..NamespaceBudget::default() };
        let world = World::start_with("mumble", budget, Duration::from_millis(300)).await;
        world.until_asked().await;
        world.post(ActionType::Resume, "r0", json!({})).await;
        world.faults.outage(&[Port::Ledger], away);
        let (head, reason) = world.held().await;
        sleep(Duration::from_millis(5 * LEDGER_POLL_MS)).await;
        assert_eq!((world.models.asked().len(), head.steps), (1, 0), "{reason}");
        let head = world.until(|_| true).await;
        assert_eq!((head.status, head.models.map(|models| models.raised_namespace)), (SessionStatus::Paused, Some(0)));
    }
}

#[tokio::test(start_paused = true)]
async fn a_call_that_urgent_guidance_ends_is_paid_for() {
    let world = World::start(NamespaceBudget::default(), Duration::from_secs(60)).await;
    world.until_asked().await;
    world.post(ActionType::Interrupt, "g1", json!({"guidance": "halt", "mode": MODE_NOW})).await;
    let head = world.until(|head| head.status == SessionStatus::Completed).await;
    assert_eq!((head.steps, world.models.asked().len()), (1, 2), "the step began anew");
    assert_eq!(world.calls(), [(10, 0), (10, 5)]);
    assert_eq!(world.spent().await, Spent { tokens: 25, cost_nanos: 0, calls: 2 });
}

#[tokio::test(start_paused = true)]
async fn a_call_that_the_end_of_a_session_cuts_off_is_paid_for() {
    let world = World::start(NamespaceBudget::default(), Duration::from_secs(600)).await;
    world.until_asked().await;
    world.post(ActionType::Destroy, "d1", json!({})).await;
    let head = world.until(|head| head.status == SessionStatus::Stopped).await;
    assert_eq!((head.steps, world.calls()), (0, vec![(10, 0)]));
}

#[tokio::test(start_paused = true)]
async fn a_call_that_a_hand_over_cuts_off_is_paid_for_and_its_step_begins_anew_elsewhere() {
    let mut world = World::start(NamespaceBudget::default(), Duration::from_secs(60)).await;
    world.until_asked().await;
    world.runner.take().expect("a worker").drain().await;
    assert_eq!(world.calls(), [(10, 0)]);
    assert_eq!(world.spent().await, Spent { tokens: 10, cost_nanos: 0, calls: 1 });
    let head = world.until(|_| true).await;
    assert_eq!((head.steps, head.models.map(|models| models.calls)), (0, Some(1)));
    world.runner = Some(start("w2", &world.store, world.effects.clone(), &world.clock));
    // The loop goes on with its next step meanwhile.
    world.until(|head| head.steps >= 1).await;
    assert_eq!(world.calls()[..2], [(10, 0), (10, 5)]);
}

#[tokio::test(start_paused = true)]
async fn a_call_that_takes_too_long_fails_its_step_and_is_paid_for() {
    let world = World::start(NamespaceBudget::default(), Duration::from_millis(2 * EFFECT_MS_MAX)).await;
    world.until_asked().await;
    sleep(Duration::from_millis(EFFECT_MS_MAX)).await;
    let head = world.until(|head| head.status == SessionStatus::Error).await;
    let error = head.last_error.expect("an error");
    assert!(error.contains(&format!("no answer within {EFFECT_MS_MAX} ms")), "{error}");
    assert_eq!((world.calls(), world.models.asked().len()), (vec![(10, 0)], 1));
    assert_eq!(world.spent().await, Spent { tokens: 10, cost_nanos: 0, calls: 1 });
}
