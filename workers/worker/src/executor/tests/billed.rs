//! Attempts that ask models: what they use reaches the session once each, whatever becomes of them.

use domain::chat::ProviderCallRecord;
use domain::ports::Bill;

use super::*;

/// Tools that ask a model with each attempt, first thing.
struct Asking(Tools);

#[async_trait]
impl ActionRunner for Asking {
    async fn run(&self, call: &ActionCall) -> Result<Value, ActionFailure> {
        self.0.run(call).await
    }

    async fn run_billed(&self, call: &ActionCall, bill: &dyn Bill) -> Result<Value, ActionFailure> {
        let id = format!("{}.llm.{}", call.operation_id, call.attempt);
        let record = json!({"id": id, "conversation_id": "c1", "turn_id": "t1", "provider": "p", "model": "m",
            "operation": "chat", "started_at_ms": 0});
        bill.add(serde_json::from_value::<ProviderCallRecord>(record).expect("a record"));
        self.0.run(call).await
    }
}

impl Place {
    fn asking(&self) -> Executor {
        let runner = Arc::new(Asking(self.tools.clone()));
        let deps = ExecutorDeps { runner, ..self.deps(self.ports.operations.clone()) };
        Executor::start(deps, config("e1"), Nudge::default())
    }

    /// Calls that a lane of the session tells of: results, or guidance.
    async fn billed(&self, lane: Lane) -> Vec<String> {
        let pending = self.ports.ledger.pending(&key("s1"), lane, 0, 1_000).await.expect("a read");
        let calls = pending.actions.iter().flat_map(|action| {
            let payload = action.payload.to_value();
            let spent = &payload["guidance"]["spent"];
            let told = if spent.is_null() { &payload } else { spent };
            told["provider_calls"].as_array().cloned().unwrap_or_default()
        });
        calls.filter_map(|call| call["id"].as_str().map(str::to_owned)).collect()
    }
}

#[tokio::test(start_paused = true)]
async fn the_last_attempt_is_told_with_its_result_and_the_others_ahead_of_it() {
    let silent = Say { after_ms: 100_000, outcome: Ok(json!(1)) };
    let business = Say { after_ms: 0, outcome: Err(ActionFailure::business(ToolErrorCode::NotFound, "none")) };
    for (say, class, ahead, with_result) in [
        (vec![ok()], EffectClass::AtMostOnce, vec![], "o1.llm.1"),
        (vec![business], EffectClass::AtMostOnce, vec![], "o1.llm.1"),
        (vec![trouble(false), ok()], EffectClass::AtMostOnce, vec!["o1.llm.1"], "o1.llm.2"),
        (vec![silent], EffectClass::Idempotent, vec!["o1.llm.1", "o1.llm.2"], "o1.llm.3"),
    ] {
        let place = Place::new(Tools::that_say(say)).await;
        place.dispatch(vec![task("o1", class)]).await;
        let executor = place.asking();
        place.until_ended("o1").await;
        executor.drain().await;
        assert_eq!(
            (place.billed(Lane::Control).await, place.billed(Lane::Work).await),
            (strings(&ahead), strings(&[with_result]))
        );
        let heard = place.queue.0.lock().expect("unpoisoned").len();
        assert_eq!(heard, ahead.len() + 1, "the owner is told of each");
    }
}

fn strings(texts: &[&str]) -> Vec<String> {
    texts.iter().map(|text| (*text).to_owned()).collect()
}

#[tokio::test(start_paused = true)]
async fn a_result_that_nobody_waits_for_leaves_what_it_cost() {
    let place = Place::new(Tools::that_say(vec![Say { after_ms: 900, ..ok() }])).await;
    place.dispatch(vec![task("o1", EffectClass::Pure)]).await;
    let executor = place.asking();
    while place.tools.performed("o1") == 0 {
        sleep(Duration::from_millis(1)).await;
    }
    place.dispatch(vec![Operation { state: OperationState::Cancelled, ..task("o1", EffectClass::Pure) }]).await;
    executor.drain().await;
    assert_eq!(place.billed(Lane::Work).await, strings(&[]));
    assert_eq!(place.billed(Lane::Control).await, strings(&["o1.llm.1"]));
}

#[tokio::test(start_paused = true)]
async fn an_attempt_that_has_to_stop_is_paid_for_and_so_is_the_one_after_it() {
    let place = Place::new(Tools::that_say(vec![Say { after_ms: 900, ..ok() }, ok()])).await;
    place.dispatch(vec![task("o1", EffectClass::Pure)]).await;
    let deps =
        ExecutorDeps { runner: Arc::new(Asking(place.tools.clone())), ..place.deps(place.ports.operations.clone()) };
    let hasty = Executor::start(deps, ExecutorConfig { drain_grace_ms: 10, ..config("e0") }, Nudge::default());
    while place.tools.performed("o1") == 0 {
        sleep(Duration::from_millis(1)).await;
    }
    hasty.drain().await;
    let next = place.asking();
    place.until_ended("o1").await;
    next.drain().await;
    assert_eq!(place.billed(Lane::Control).await, strings(&["o1.llm.1"]));
    assert_eq!(place.billed(Lane::Work).await, strings(&["o1.llm.2"]));
}
