//! The person who is asked before something is done.

use std::time::Duration;

use domain::conversation::approval;
use domain::ports::{Ledger, OperationQuery, Operations, Queue, Verdict};
use schemas::conversation::{OperationKind, OperationState};
use serde_json::json;
use testkit::contract::words::operation_query;

use crate::world::World;

pub const NAME: &str = "ada";
/// How often the person looks for questions.
const LOOK: Duration = Duration::from_millis(20);

/// Says yes to whatever is asked, as a gateway passes it on. People do not crash with the worker.
pub async fn say_yes(world: World) {
    let (kind, state) = (Some(OperationKind::Approval), Some(OperationState::Pending));
    let asked = OperationQuery { kind, state, ..operation_query() };
    loop {
        tokio::time::sleep(LOOK).await;
        for row in world.store.operations(&asked).await.expect("no faults are scripted") {
            let hash = row.operation.approval.as_ref().map(|asked| asked.arguments_hash.as_str());
            let body = json!({ "arguments_hash": hash });
            let answer = approval::parse(&body, true, NAME).expect("a whole answer");
            let action = approval::result(&row.namespace, &row.operation, &answer).expect("it waits for a person");
            let verdicts = world.store.accept(vec![action]).await.expect("no faults are scripted");
            for verdict in verdicts {
                let Verdict::Accepted(accepted) = verdict else { panic!("a yes is not taken: {verdict:?}") };
                world.queue.publish(&[accepted.action]).await.expect("no faults are scripted");
            }
        }
    }
}
