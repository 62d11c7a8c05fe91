//! One session must not hold up another, on a runtime of one thread.

mod cuts;
mod fresh;
mod leaving;
mod paying;
mod refused;
mod shardless;
mod stale;

use std::fmt::Write;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use async_trait::async_trait;
use domain::action::{ParseContext, parse};
use domain::effect::{Effect, EffectCall, Outcome};
use domain::ports::{Effects, Ledger, Sessions, Verdict};
use schemas::id::Namespace;
use schemas::session::SessionStatus;
use serde_json::{Value, json};
use testkit::contract::build::{action_id, agent_id, key, session_id, worker};
use testkit::fake::{MemStore, SimClock};

use crate::fakes::deps;
use crate::runner::{Runner, RunnerConfig};

/// Gives one large document, and notes how far the session `count` is each time it is asked.
struct Library {
    store: MemStore,
    text: String,
    counted: Mutex<Vec<u64>>,
}

#[async_trait]
impl Effects for Library {
    async fn perform(&self, call: &EffectCall) -> Outcome {
        let Effect::NextDocument { after, .. } = &call.effect else { panic!("asked for {:?}", call.effect) };
        if after.is_none() {
            // The other session is on its way before the document comes.
            while self.store.steps_of(&key("count")).unwrap_or(0) == 0 {
                tokio::time::sleep(Duration::from_millis(5)).await;
            }
        }
        self.counted.lock().unwrap().push(self.store.steps_of(&key("count")).unwrap_or(0));
        Outcome::Ok(match after {
            None => json!({"done": false, "name": "/d/large.md", "text": self.text, "bytes": self.text.len(),
                           "index": 1, "total": 1, "truncated": false}),
            Some(_) => json!({"done": true}),
        })
    }

    fn provider(&self) -> String {
        "library".into()
    }
}

/// Prose in which no two sentences are the same, so that all of them are ranked.
fn prose(sentences: usize) -> String {
    let words = ["queue", "ledger", "worker", "shard", "lease", "commit", "journal", "archive", "step", "session"];
    let mut text = String::new();
    for n in 0..sentences {
        let word = |at: usize| words[(n / at + n) % words.len()];
        let (one, two, three) = (word(1), word(3), word(7));
        let _ = write!(text, "The {one} number {n} keeps what the {two} of unit {} has told the {three}. ", n / 10);
    }
    text
}

async fn accept(store: &MemStore, session: &str, payload: Value) {
    let verdict = verdict(store, session, payload).await;
    assert!(matches!(verdict, Verdict::Accepted(_)), "{verdict:?}");
}

async fn verdict(store: &MemStore, session: &str, payload: Value) -> Verdict {
    let body = json!({"type": "create", "session_id": session, "payload": payload});
    let context = ParseContext {
        namespace: Namespace::default_ns(),
        actor: "tester".into(),
        action_id: action_id(&format!("create-{session}")),
        session_id: session_id(session),
        agent_id: agent_id(session),
        idempotency_key: None,
    };
    let mut verdicts =
        store.accept(vec![parse(&body, context).expect("a whole action")]).await.expect("the ledger takes it");
    verdicts.remove(0)
}

fn start(name: &str, store: &MemStore, effects: Arc<dyn Effects>, clock: &SimClock) -> Runner {
    Runner::start(deps(store, effects, clock), config(name))
}

fn config(name: &str) -> RunnerConfig {
    RunnerConfig::new(worker(name), "here", "0")
}

#[tokio::test(flavor = "current_thread")]
async fn a_heavy_decision_holds_up_no_other_session() {
    let clock = SimClock::new();
    let store = MemStore::new(1, Arc::new(clock.clone()));
    let library = Arc::new(Library { store: store.clone(), text: prose(6_000), counted: Mutex::default() });
    accept(&store, "count", json!({"moniker": "count", "loop_interval_ms": 1})).await;
    accept(&store, "digest", json!({"moniker": "digest", "config": {"paths": ["/d"]}})).await;
    let runner = start("w1", &store, library.clone(), &clock);
    let ended = async {
        loop {
            let row = store.session(&key("digest")).await.expect("a read").expect("a session");
            if row.head.status.is_at_rest() {
                return row.head;
            }
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
    };
    let head = tokio::time::timeout(Duration::from_secs(120), ended).await.expect("the digest ends");
    runner.kill();
    assert_eq!((head.status, head.steps, &head.last_error), (SessionStatus::Completed, 2, &None));
    let counted = library.counted.lock().unwrap().clone();
    let [before, after] = counted[..] else { panic!("asked {} times", counted.len()) };
    assert!(after >= before + 20, "while the document was ranked, the other session came from {before} to {after}");
}
