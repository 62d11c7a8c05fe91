//! Clients that create sessions and command them at random, through a gateway that may fail at any
//! point. What they sent and were told is kept for the oracle.

mod bodies;
mod book;

use std::sync::Arc;
use std::time::Duration;

use domain::action::{ParseContext, parse};
use domain::ports::{Ledger, Queue, Verdict};
use schemas::action::{Lane, NewAction};
use schemas::id::{ActionId, AgentId, SessionId, Shard};
use schemas::topology::shard_queue;
use serde_json::Value;
use testkit::dice::Dice;
use testkit::unreliable::{Faults, Unreliable};

pub use book::{Book, Sent, Told};

use crate::world::World;
use bodies::Bodies;

pub struct Client {
    name: String,
    dice: Dice,
    faults: Faults,
    ledger: Unreliable<testkit::fake::MemStore>,
    queue: Unreliable<testkit::fake::FaultyQueue>,
    broker: testkit::fake::FaultyQueue,
    shards: u16,
    /// How often actions also go past the gateway.
    straight: f64,
    book: Book,
    bodies: Bodies,
}

impl Client {
    pub fn new(world: &World, number: usize, book: Book) -> Self {
        let name = format!("client{number}");
        let dice = world.dice.fork();
        let faults = Faults::new(&name, dice.fork(), world.plan.rates.clone(), world.trace.clone());
        Self {
            ledger: Unreliable::new(Arc::new(world.store.clone()), faults.clone()),
            queue: Unreliable::new(Arc::new(world.queue.clone()), faults.clone()),
            broker: world.queue.clone(),
            shards: world.plan.shards,
            straight: world.plan.straight,
            bodies: Bodies::new(dice.fork(), number, world.plan.sessions),
            name,
            dice,
            faults,
            book,
        }
    }

    /// A client without faults, for the last orders.
    pub fn steady(world: &World, book: Book) -> Self {
        let client = Self { straight: 0.0, ..Self::new(world, 9, book) };
        client.faults.heal();
        client
    }

    pub async fn act(&mut self, world: &World) {
        for n in 0..world.plan.actions {
            let think_ms = self.dice.range(0..world.plan.think_ms);
            tokio::time::sleep(Duration::from_millis(think_ms)).await;
            let repeat = self.dice.chance(0.12);
            match if repeat { self.book.any(&self.dice) } else { None } {
                Some(before) => self.repeat(before).await,
                None => {
                    let (namespace, body) = self.bodies.next(n);
                    self.send(namespace, &format!("{}-{n}", self.name), body).await;
                }
            }
        }
    }

    /// Sends something again: the same, or another body under the same id.
    async fn repeat(&mut self, before: Sent) {
        let mut action = before.action;
        if self.dice.chance(0.3) {
            action.body_hash[0] ^= 1;
        }
        self.offer(action).await;
    }

    /// Sends an action under this id.
    pub async fn send(&mut self, namespace: schemas::id::Namespace, id: &str, body: Value) {
        let action = new_action(namespace, id, &self.name, &body);
        if self.dice.chance(self.straight) {
            self.put_straight(&action, body);
        }
        self.offer(action).await;
    }

    /// Another program puts the same action straight on some shard's queue, and rubbish with it.
    fn put_straight(&self, action: &NewAction, mut body: Value) {
        self.book.sent(action);
        body["action_id"] = action.action_id.as_str().into();
        body["namespace"] = action.namespace.as_str().into();
        for bytes in [b"{rubbish".to_vec(), body.to_string().into_bytes()] {
            let lane = *self.dice.pick(&Lane::ALL);
            let shard = Shard(self.dice.range(0..u64::from(self.shards)) as u16);
            self.broker.put(&shard_queue(shard, lane), bytes);
        }
    }

    /// Offers an action until there is an answer, then publishes it, or forgets to.
    async fn offer(&mut self, action: NewAction) {
        self.book.sent(&action);
        loop {
            match self.ledger.accept(vec![action.clone()]).await {
                Ok(verdicts) => {
                    let Some(verdict) = verdicts.into_iter().next() else { continue };
                    self.book.told(&action, &verdict);
                    if let Verdict::Accepted(accepted) | Verdict::Repeated(accepted) = verdict {
                        self.publish(accepted.action).await;
                    }
                    return;
                }
                Err(_) => tokio::time::sleep(Duration::from_millis(50)).await,
            }
        }
    }

    async fn publish(&self, action: schemas::action::Action) {
        // A gateway may die between the acceptance and the queue.
        if self.dice.chance(0.05) {
            return;
        }
        if self.queue.publish(std::slice::from_ref(&action)).await.is_ok() {
            // A lost note is harmless: the action is published twice.
            let _ = self.ledger.mark_published(&[(action.namespace, action.action_id)]).await;
        }
    }
}

/// A body of a client's, checked as the gateway checks it.
pub fn new_action(namespace: schemas::id::Namespace, id: &str, actor: &str, body: &Value) -> NewAction {
    let context = ParseContext {
        namespace,
        actor: actor.to_owned(),
        action_id: ActionId::parse(id).expect("names of actions are ids"),
        session_id: SessionId::parse(&format!("s-{id}")).expect("names of sessions are ids"),
        agent_id: AgentId::parse(&format!("a-{id}")).expect("names of agents are ids"),
        idempotency_key: None,
    };
    parse(body, context).unwrap_or_else(|problem| panic!("the simulation sends valid bodies: {problem:?} in {body}"))
}
