//! Actions from the queue `stepfleet.ingress`, where any AMQP client may put them. They take the way
//! of `POST /api/actions`: parsed, accepted into the ledger, published, and only then acknowledged.
//! What cannot be accepted goes to the dead letters with the reason, also when the ledger has
//! recorded the refusal: nobody waits here for an answer.
//!
//! Whoever may publish to the broker may act in every namespace: its users are the boundary.

use std::time::Duration;

use domain::action::foreign::{Ids, parse, reason_of, refusal_of};
use domain::failure::Failure;
use domain::ports::{Content, Deliveries, Delivery, Verdict};
use domain::retry;
use futures::FutureExt;
use host::trace;
use schemas::action::{ActionType, NewAction};
use schemas::problem::Code;
use schemas::telemetry::metric;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use crate::gateway::Gateway;
use crate::submit;

/// Messages accepted in one transaction.
const BATCH_MAX: usize = 256;

/// A message and what is to become of it.
struct Item {
    tag: u64,
    read: Result<NewAction, String>,
}

/// The task that takes in what comes.
pub async fn run(gateway: Gateway, stop: CancellationToken) {
    // Cut off anywhere, a message is not acknowledged and comes again.
    stop.run_until_cancelled(take_in(&gateway)).await;
}

async fn take_in(gateway: &Gateway) {
    let mut failures = 0;
    loop {
        match gateway.queue.consume_ingress().await {
            Ok(mut deliveries) => {
                failures = 0;
                serve(gateway, deliveries.as_mut()).await;
            }
            Err(failure) => {
                if failures == 0 {
                    tracing::warn!(error = %failure.message, "cannot consume the ingress queue; trying on");
                }
            }
        }
        failures += 1;
        pause(failures).await;
    }
}

/// Serves until the channel is lost.
async fn serve(gateway: &Gateway, deliveries: &mut dyn Deliveries) {
    while let Some(first) = deliveries.next().await {
        let mut batch = vec![first];
        // What has come meanwhile goes along; nothing is waited for.
        while batch.len() < BATCH_MAX
            && let Some(Some(more)) = deliveries.next().now_or_never()
        {
            batch.push(more);
        }
        if let Err(failure) = take(gateway, deliveries, batch).await {
            tracing::debug!(error = %failure.message, "the channel of the ingress queue is lost");
            return;
        }
    }
}

/// Takes a batch, in its order. `Err`: the channel is lost, and the rest comes again.
async fn take(gateway: &Gateway, deliveries: &mut dyn Deliveries, batch: Vec<Delivery>) -> Result<(), Failure> {
    let mut items: Vec<Item> = Vec::with_capacity(batch.len());
    for Delivery { tag, content } in batch {
        let read = match read(gateway, content) {
            Ok(action) => {
                // Its session may be created by what came before, and must be there to be looked at.
                if submit::needs_session(&action) && items.iter().any(creates) {
                    settle(gateway, deliveries, std::mem::take(&mut items)).await?;
                }
                check(gateway, action).await
            }
            refusal => refusal,
        };
        items.push(Item { tag, read });
    }
    settle(gateway, deliveries, items).await
}

fn creates(item: &Item) -> bool {
    item.read.as_ref().is_ok_and(|action| action.kind == ActionType::Create)
}

fn read(gateway: &Gateway, content: Content) -> Result<NewAction, String> {
    match content {
        Content::Foreign(message) => {
            let fresh =
                Ids { action_id: gateway.fresh_id(), session_id: gateway.fresh_id(), agent_id: gateway.fresh_id() };
            let parsed = parse(&message.body, message.message_id.as_deref(), fresh);
            parsed.or_else(|problem| refused(problem.code, reason_of(&problem)))
        }
        Content::Action(_) => refused(Code::InvalidRequest, "the fleet publishes nothing to this queue".into()),
    }
}

/// What the gateway looks at beyond the ledger. While the store is away, the message waits: the ledger alone
/// would take what is not for its sender to say.
async fn check(gateway: &Gateway, mut action: NewAction) -> Result<NewAction, String> {
    let mut failures = 0;
    loop {
        match submit::check(gateway, &mut action).await {
            Ok(()) => return Ok(action),
            Err(no) if no.0.code == Code::Unavailable => {}
            Err(no) => return refused(no.0.code, reason_of(&no.0)),
        }
        failures += 1;
        pause(failures).await;
        // Asked in silence: the refusal has told of the outage.
        while gateway.leases.shard_count().await.is_err() {
            failures += 1;
            pause(failures).await;
        }
    }
}

fn refused(code: Code, reason: String) -> Result<NewAction, String> {
    metrics::counter!(metric::ACTIONS_REFUSED, "code" => code.as_str()).increment(1);
    Err(reason)
}

/// Accepts, publishes, then acknowledges. `Err`: the channel is lost, and the rest comes again.
async fn settle(gateway: &Gateway, deliveries: &mut dyn Deliveries, items: Vec<Item>) -> Result<(), Failure> {
    let actions: Vec<NewAction> = items.iter().filter_map(|item| item.read.as_ref().ok().cloned()).collect();
    let (begun, started) = (trace::begin(), Instant::now());
    let mut verdicts = accept(gateway, actions).await.into_iter();
    let took = started.elapsed();
    for item in items {
        let reason = match item.read {
            Err(reason) => Some(reason),
            Ok(_) => match verdicts.next() {
                Some(Ok(Verdict::Accepted(new))) => {
                    metrics::histogram!(metric::ACCEPT_SECONDS).record(took.as_secs_f64());
                    submit::accepted_at(begun, &new.action, "");
                    submit::publish(gateway, new.action).await;
                    None
                }
                Some(Ok(Verdict::Repeated(_))) => None,
                Some(Ok(Verdict::Refused(refusal))) => {
                    metrics::counter!(metric::ACTIONS_REFUSED, "code" => refusal.code.as_str()).increment(1);
                    Some(refusal_of(refusal.code, &submit::with_remedy(refusal.code, &refusal.detail)))
                }
                Some(Err(failure)) => Some(failure.to_string()),
                None => return Err(no_verdict()),
            },
        };
        match reason {
            None => deliveries.ack(item.tag).await?,
            Some(reason) => {
                tracing::info!(%reason, "buried a message of the ingress queue");
                deliveries.bury(item.tag, &reason).await?;
            }
        }
    }
    Ok(())
}

/// Offers actions until the ledger answers: they have their ids, so a repeat acts once. One that the
/// ledger cannot take, however often it is offered, does not hold up the others.
async fn accept(gateway: &Gateway, actions: Vec<NewAction>) -> Vec<Result<Verdict, Failure>> {
    if actions.is_empty() {
        return Vec::new();
    }
    let failure = match offer(gateway, actions.clone()).await {
        Ok(verdicts) => return verdicts.into_iter().map(Ok).collect(),
        Err(failure) => failure,
    };
    if actions.len() == 1 {
        return vec![Err(failure)];
    }
    let mut verdicts = Vec::with_capacity(actions.len());
    for action in actions {
        let alone = offer(gateway, vec![action]).await;
        verdicts.push(alone.and_then(|one| one.into_iter().next().ok_or_else(no_verdict)));
    }
    verdicts
}

/// `Err`: trying on would not help.
async fn offer(gateway: &Gateway, actions: Vec<NewAction>) -> Result<Vec<Verdict>, Failure> {
    let mut failures = 0;
    loop {
        match gateway.ledger.accept(actions.clone()).await {
            Ok(verdicts) => {
                host::stall::clear();
                return Ok(verdicts);
            }
            Err(failure) if !failure.retriable => return Err(failure),
            Err(failure) => {
                host::stall::note("messages of the ingress queue", &failure);
            }
        }
        failures += 1;
        pause(failures).await;
    }
}

fn no_verdict() -> Failure {
    Failure::internal("the ledger gave no verdict")
}

async fn pause(failures: u32) {
    tokio::time::sleep(Duration::from_millis(retry::STORE.delay_ms(failures).unwrap_or(1_000))).await;
}
