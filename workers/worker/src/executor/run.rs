//! One claimed operation, from its claim to its end.

use std::panic::AssertUnwindSafe;
use std::sync::{Arc, PoisonError};
use std::time::Duration;

use domain::chat::ToolErrorCode;
use domain::ports::{ActionCall, ActionFailure, OperationRow};
use domain::tool::ActionRequest;
use domain::tool::attempt::{self, Next, Start};
use futures::FutureExt;
use schemas::conversation::Operation;
use schemas::id::{Namespace, OperationId};
use schemas::telemetry::metric;
use tokio::time::Instant;

use super::{Shared, record};
use crate::till::Till;

/// Asking a target whether something happened must not take long.
const PROBE: Duration = Duration::from_secs(15);

pub async fn run(shared: Arc<Shared>, row: OperationRow) {
    let Some(_running) = Running::new(&shared, &row) else { return };
    let begun = Instant::now();
    let operation = &row.operation;
    tracing::debug!(operation = %operation.operation_id, tool = operation.tool, attempt = operation.attempt, "begins");
    let till = Till::default();
    let next = tokio::select! {
        biased;
        next = decided(&shared, &row, &till) => next,
        lost = lost(&shared, &row) => lost,
        () = shared.hurry.cancelled() => attempt::stopped(operation),
    };
    // What was broken off has put its calls into the till by now.
    let calls = till.empty();
    let Some(next) = next else { return record::spent(&shared, &row, &calls).await };
    let outcome = match &next {
        Next::End(Ok(_)) => "ok",
        Next::End(Err(_)) => "failed",
        Next::Again { .. } | Next::Probe(_) => "again",
    };
    metrics::histogram!(metric::OPERATION_SECONDS, "outcome" => outcome).record(begun.elapsed().as_secs_f64());
    record::record(&shared, &row, next, &calls).await;
}

/// One that runs in this process, for as long as this lives.
struct Running<'s> {
    shared: &'s Shared,
    place: (Namespace, OperationId),
}

impl<'s> Running<'s> {
    /// `None`: it runs here already.
    fn new(shared: &'s Shared, row: &OperationRow) -> Option<Self> {
        let place = (row.namespace.clone(), row.operation.operation_id.clone());
        let mut running = shared.running.lock().unwrap_or_else(PoisonError::into_inner);
        running.insert(place.clone()).then_some(Self { shared, place })
    }
}

impl Drop for Running<'_> {
    fn drop(&mut self) {
        self.shared.running.lock().unwrap_or_else(PoisonError::into_inner).remove(&self.place);
    }
}

/// What is to be written down, if anything.
async fn decided(shared: &Shared, row: &OperationRow, till: &Till) -> Option<Next> {
    let operation = &row.operation;
    let request: ActionRequest = match operation.request.to() {
        Ok(request) => request,
        Err(error) => return Some(Next::End(Err(attempt::unreadable(operation, &error)))),
    };
    let call = ActionCall::new(&row.namespace, operation, request);
    let next = match attempt::start(operation) {
        Start::End(error) => Next::End(Err(error)),
        Start::Probe => match probed(shared, operation, &call, None).await {
            // It did not happen: this claim may as well make the attempt.
            Next::Again { .. } => attempted(shared, operation, &call, till).await,
            settled => settled,
        },
        Start::Run => attempted(shared, operation, &call, till).await,
    };
    Some(next)
}

async fn attempted(shared: &Shared, operation: &Operation, call: &ActionCall, till: &Till) -> Next {
    let limit = Duration::from_millis(operation.timeout_ms.max(1));
    let attempt = AssertUnwindSafe(shared.deps.runner.run_billed(call, till)).catch_unwind();
    let outcome = match tokio::time::timeout(limit, attempt).await {
        Ok(Ok(outcome)) => outcome,
        Ok(Err(_)) => Err(panicked(operation)),
        Err(_) => Err(attempt::late(operation)),
    };
    match attempt::next(operation, &call.request, outcome) {
        Next::Probe(failure) => probed(shared, operation, call, Some(failure)).await,
        next => next,
    }
}

async fn probed(shared: &Shared, operation: &Operation, call: &ActionCall, failure: Option<ActionFailure>) -> Next {
    let probe = tokio::time::timeout(PROBE, shared.deps.runner.probe(call)).await;
    let probe = probe.unwrap_or(domain::ports::Probe::Unknown);
    attempt::probed(operation, &call.request, probe, failure)
}

fn panicked(operation: &Operation) -> ActionFailure {
    let message = format!("{} broke down within the fleet; its log has more", operation.tool);
    ActionFailure::business(ToolErrorCode::InternalError, message)
}

/// Extends the claim for as long as the work takes, which its timeout bounds; ends when the claim is
/// somebody else's. Then this attempt is broken off, and what became of it is theirs to find out.
async fn lost(shared: &Shared, row: &OperationRow) -> Option<Next> {
    let operation = &row.operation;
    let claim_ms = shared.config.claim_ms;
    let period = Duration::from_millis(claim_ms / 3);
    loop {
        tokio::time::sleep(period).await;
        let (id, worker) = (&operation.operation_id, shared.config.worker.as_str());
        match shared.deps.operations.extend(&row.namespace, id, worker, claim_ms).await {
            Ok(true) => {}
            Ok(false) => {
                // As many as ran here, if this process was stopped; the next attempt is told that this one was lost.
                tracing::debug!(operation = %id, "the claim was lost; the attempt is broken off");
                return None;
            }
            Err(failure) => host::stall::note("claims that are to be extended", &failure),
        }
    }
}
