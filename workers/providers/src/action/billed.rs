//! Whose bill a call of a model is on.

use async_trait::async_trait;
use domain::chat::ProviderCallRecord;
use domain::ports::{ActionCall, ActionFailure, ActionRunner, Bill, Probe};
use serde_json::Value;

/// Of callers that keep none.
pub struct NoBill;

impl Bill for NoBill {
    fn add(&self, record: ProviderCallRecord) {
        drop(record);
    }
}

/// Runs what a program calls, on the bill of the program.
pub struct OnBill<'a> {
    pub runner: &'a dyn ActionRunner,
    pub bill: &'a dyn Bill,
    /// Of the program: each counts its calls, and their attempts, anew.
    pub attempt: u32,
}

impl Bill for OnBill<'_> {
    fn add(&self, mut record: ProviderCallRecord) {
        if self.attempt > 1 {
            record.id = format!("{}.run.{}", record.id, self.attempt);
        }
        self.bill.add(record);
    }
}

#[async_trait]
impl ActionRunner for OnBill<'_> {
    async fn run(&self, call: &ActionCall) -> Result<Value, ActionFailure> {
        self.runner.run_billed(call, self).await
    }

    async fn probe(&self, call: &ActionCall) -> Probe {
        self.runner.probe(call).await
    }
}
