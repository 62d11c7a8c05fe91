//! Decisions. Light ones are made where they are asked for; a heavy one is made on a thread of its
//! own, so that no other session waits for it.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::pin::pin;

use domain::effect::Outcome;
use domain::moniker::Decision;
use domain::session::{Decider, StepStart};
use schemas::problem::Code;

use super::{Exit, Flow, Live};

/// A decision, and what it was made of, given back.
pub(super) struct Decided {
    pub start: StepStart,
    pub outcomes: Vec<Outcome>,
    pub decision: Decision,
}

impl Decided {
    /// A panicking moniker fails its step, not its shard.
    fn by(decider: &Decider, start: StepStart, outcomes: Vec<Outcome>) -> Self {
        let decision = catch_unwind(AssertUnwindSafe(|| decider.decide(&start, &outcomes)));
        let decision = decision.unwrap_or_else(|_| Decision::Fail {
            code: Code::StepFailed,
            message: "the moniker panicked; the log has the details".into(),
        });
        Self { start, outcomes, decision }
    }
}

impl Live {
    /// Asks the moniker, with the outcomes so far.
    pub(super) async fn decide(&mut self, start: StepStart, outcomes: Vec<Outcome>) -> Flow<Decided> {
        let decider = self.session.decider();
        if !decider.is_heavy(&start, &outcomes) {
            return Ok(Decided::by(&decider, start, outcomes));
        }
        let heavy = self.context.shared.heavy.clone();
        let mut deciding = pin!(async move {
            // The semaphore is never closed.
            let place = heavy.acquire_owned().await;
            tokio::task::spawn_blocking(move || {
                let decided = Decided::by(&decider, start, outcomes);
                drop(place);
                decided
            })
            .await
        });
        loop {
            tokio::select! {
                biased;
                // No thread to decide on: the process is about to end.
                decided = &mut deciding => return decided.map_err(|_| Exit::Reload),
                // The commit of what came before goes on, and tells its readers.
                answer = self.in_flight.answered() => answer?,
            }
        }
    }
}
