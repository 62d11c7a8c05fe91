//! Tools as a script: what comes of an attempt, and a record of every attempt that reached them. The record
//! survives the workers.

use std::future::Future;
use std::pin::Pin;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use async_trait::async_trait;
use domain::ports::{ActionCall, ActionFailure, ActionRunner};
use serde_json::Value;

/// An attempt on its way. Dropping it ends it.
pub type Work = Pin<Box<dyn Future<Output = Result<Value, ActionFailure>> + Send>>;

/// What is done for an attempt.
pub type Script = Arc<dyn Fn(ActionCall) -> Work + Send + Sync>;

/// Cheap to clone; clones are the same tools.
#[derive(Clone)]
pub struct ScriptedTools {
    script: Script,
    performed: Arc<Mutex<Vec<ActionCall>>>,
}

impl ScriptedTools {
    pub fn new(script: Script) -> Self {
        Self { script, performed: Arc::default() }
    }

    /// Every attempt so far, in order.
    pub fn performed(&self) -> Vec<ActionCall> {
        self.lock().clone()
    }

    fn lock(&self) -> MutexGuard<'_, Vec<ActionCall>> {
        self.performed.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[async_trait]
impl ActionRunner for ScriptedTools {
    async fn run(&self, call: &ActionCall) -> Result<Value, ActionFailure> {
        self.lock().push(call.clone());
        (self.script)(call.clone()).await
    }
}
