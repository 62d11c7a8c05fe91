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
    /// `None`: it is settled, and nothing is left to accept.
    read: Result<Option<NewAction>, String>,
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
                let mut intake = Intake { gateway, deliveries: deliveries.as_mut(), refused: Vec::new(), settled: 0 };
                intake.serve().await;
                if intake.settled > 0 {
                    failures = 0;
                }
            }
            // Whoever keeps the connection tells of it.
            Err(failure) => tracing::debug!(%failure, "cannot consume the ingress queue; trying on"),
        }
        failures += 1;
        pause(failures).await;
    }
}

/// What one consumer of the queue has in hand.
struct Intake<'g> {
    gateway: &'g Gateway,
    deliveries: &'g mut dyn Deliveries,
    /// What cannot be accepted, and why, until it is among the dead letters. The broker hands out only so much of it.
    refused: Vec<(u64, String)>,
    /// Messages that are off the queue.
    settled: u64,
}

impl Intake<'_> {
    /// Serves until the channel is lost.
    async fn serve(&mut self) {
        let mut failures = 0;
        loop {
            tokio::select! {
                biased;
                first = self.deliveries.next() => {
                    let Some(first) = first else { return };
                    let batch = self.gather(first);
                    if let Err(failure) = self.take(batch).await {
                        tracing::debug!(%failure, "the channel of the ingress queue is lost");
                        return;
                    }
                }
                () = pause(failures), if !self.refused.is_empty() => {}
            }
            self.bury().await;
            failures = if self.refused.is_empty() { 0 } else { failures + 1 };
        }
    }

    /// What has come meanwhile goes along; nothing is waited for.
    fn gather(&mut self, first: Delivery) -> Vec<Delivery> {
        let mut batch = vec![first];
        while batch.len() < BATCH_MAX
            && let Some(Some(more)) = self.deliveries.next().now_or_never()
        {
            batch.push(more);
        }
        batch
    }

    /// Takes a batch, in its order. `Err`: the channel is lost, and the rest comes again.
    async fn take(&mut self, batch: Vec<Delivery>) -> Result<(), Failure> {
        let mut items: Vec<Item> = Vec::with_capacity(batch.len());
        for Delivery { tag, content } in batch {
            let read = match read(self.gateway, content) {
                Ok(action) => {
                    // Its session may be created by what came before, and must be there to be looked at.
                    if submit::needs_session(&action) && items.iter().any(creates) {
                        self.settle(std::mem::take(&mut items)).await?;
                    }
                    check(self.gateway, action).await
                }
                Err(reason) => Err(reason),
            };
            items.push(Item { tag, read });
        }
        self.settle(items).await
    }

    /// Accepts, publishes, then acknowledges; what is refused waits for its burial. `Err`: the channel is lost, and
    /// the rest comes again.
    async fn settle(&mut self, items: Vec<Item>) -> Result<(), Failure> {
        let actions: Vec<NewAction> = items.iter().filter_map(|item| item.read.clone().ok()?).collect();
        let (begun, started) = (trace::begin(), Instant::now());
        let mut verdicts = accept(self.gateway, actions).await.into_iter();
        let took = started.elapsed();
        for item in items {
            let reason = match item.read {
                Err(reason) => Some(reason),
                Ok(None) => None,
                Ok(Some(_)) => match verdicts.next() {
                    Some(Ok(Verdict::Accepted(new))) => {
                        metrics::histogram!(metric::ACCEPT_SECONDS).record(took.as_secs_f64());
                        submit::accepted_at(begun, &new.action, "");
                        submit::publish(self.gateway, new.action).await;
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
                None => {
                    self.deliveries.ack(item.tag).await?;
                    self.settled += 1;
                }
                Some(reason) => self.refused.push((item.tag, reason)),
            }
        }
        Ok(())
    }

    /// Buries what was refused, if the broker takes messages. It is held until then, and what comes after it is
    /// served: a channel that is given up for it would bring all that it has handed out again.
    async fn bury(&mut self) {
        if self.refused.is_empty() || self.gateway.queue.ping().await.is_err() {
            return;
        }
        for (tag, reason) in std::mem::take(&mut self.refused) {
            match self.deliveries.bury(tag, &reason).await {
                Ok(()) => {
                    self.settled += 1;
                    tracing::info!(%reason, "buried a message of the ingress queue");
                }
                Err(failure) => {
                    tracing::debug!(%failure, "cannot bury a message of the ingress queue yet");
                    self.refused.push((tag, reason));
                }
            }
        }
    }
}

fn creates(item: &Item) -> bool {
    matches!(&item.read, Ok(Some(action)) if action.kind == ActionType::Create)
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
async fn check(gateway: &Gateway, mut action: NewAction) -> Result<Option<NewAction>, String> {
    let mut failures = 0;
    loop {
        match submit::admit(gateway, &mut action).await {
            Ok(Some(_)) => return Ok(None),
            Ok(None) => return Ok(Some(action)),
            Err(no) if no.0.code == Code::Unavailable => {}
            Err(no) => return refused(no.0.code, reason_of(&no.0)),
        }
        failures += 1;
        pause(failures).await;
        // Asked in silence: the refusal has told of the outage.
        while is_away(gateway, &action).await {
            failures += 1;
            pause(failures).await;
        }
    }
}

/// Whether the store cannot be read at present: what it knows of this action, which is found by its key.
async fn is_away(gateway: &Gateway, action: &NewAction) -> bool {
    let found = gateway.ledger.action(&action.namespace, &action.action_id).await;
    found.is_err_and(|failure| failure.retriable)
}

fn refused<T>(code: Code, reason: String) -> Result<T, String> {
    metrics::counter!(metric::ACTIONS_REFUSED, "code" => code.as_str()).increment(1);
    Err(reason)
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
