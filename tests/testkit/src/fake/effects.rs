//! The world as a script: answers effects after a delay, fails some of them, and keeps a record of
//! every call that ever reached it. The record survives the workers.

mod answers;

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use async_trait::async_trait;
use domain::effect::{EffectCall, Outcome};
use domain::ports::{Clock, Effects};

use crate::dice::Dice;
use crate::fake::clock::SimClock;

pub use answers::{EffectFaults, seeded};

/// One call, as the world saw it.
#[derive(Debug, Clone)]
pub struct Performed {
    pub call: EffectCall,
    pub at_ms: i64,
    /// Whether the caller stayed to hear the answer.
    pub answered: bool,
}

/// An answer and how long it takes.
#[derive(Debug, Clone)]
pub struct Scripted {
    pub delay: Duration,
    pub outcome: Outcome,
}

/// What to answer to a call; `earlier` = calls before with the same key.
pub type Script = Arc<dyn Fn(&EffectCall, usize) -> Scripted + Send + Sync>;

/// Looks at each call at the moment it reaches the world; `Some` = why it must not happen.
pub type Witness = Arc<dyn Fn(&EffectCall) -> Option<String> + Send + Sync>;

/// Cheap to clone; clones are the same world.
#[derive(Clone)]
pub struct ScriptedEffects {
    script: Script,
    witness: Option<Witness>,
    clock: SimClock,
    record: Arc<Mutex<Record>>,
}

#[derive(Default)]
struct Record {
    performed: Vec<Performed>,
    objections: Vec<String>,
}

impl ScriptedEffects {
    pub fn new(script: Script, clock: SimClock) -> Self {
        Self { script, witness: None, clock, record: Arc::default() }
    }

    /// Answers that depend on the key alone, with seeded delays and failures.
    pub fn seeded(dice: Dice, faults: EffectFaults, clock: SimClock) -> Self {
        Self::new(seeded(dice, faults), clock)
    }

    pub fn with_witness(self, witness: Witness) -> Self {
        Self { witness: Some(witness), ..self }
    }

    /// Every call so far, in order.
    pub fn performed(&self) -> Vec<Performed> {
        self.lock().performed.clone()
    }

    /// What the witness had to say.
    pub fn objections(&self) -> Vec<String> {
        self.lock().objections.clone()
    }

    fn lock(&self) -> MutexGuard<'_, Record> {
        self.record.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[async_trait]
impl Effects for ScriptedEffects {
    async fn perform(&self, call: &EffectCall) -> Outcome {
        let objection = self.witness.as_ref().and_then(|witness| witness(call));
        let (scripted, index) = {
            let mut record = self.lock();
            let earlier = record.performed.iter().filter(|one| one.call.key == call.key).count();
            record.objections.extend(objection);
            let at_ms = self.clock.now_ms();
            record.performed.push(Performed { call: call.clone(), at_ms, answered: false });
            ((self.script)(call, earlier), record.performed.len() - 1)
        };
        tokio::time::sleep(scripted.delay).await;
        self.lock().performed[index].answered = true;
        scripted.outcome
    }

    fn provider(&self) -> String {
        "scripted".into()
    }
}
