//! Publishes with confirms: one task, one channel, many messages on the way at a time. The channel
//! is built anew, with everything that is declared, whenever anything is wrong with it.

use std::sync::Arc;

use domain::failure::Failure;
use futures::future::BoxFuture;
use futures::stream::FuturesUnordered;
use futures::{FutureExt, StreamExt};
use lapin::message::BasicReturnMessage;
use lapin::options::{BasicPublishOptions, ConfirmSelectOptions};
use lapin::{Channel, Confirmation};
use tokio::sync::{mpsc, oneshot, watch};
use tokio::time::Instant;

use super::flights::{CONFIRM_MAX, Flights, Reply};
use super::link::{Link, Up, Weather};
use super::message::Message;
use super::troubles::Troubles;
use super::{backoff, fault, topology};

/// Messages that wait for their confirm at a time. Beyond, batches wait their turn.
const IN_FLIGHT_MAX: usize = 1_024;
const BATCH_MAX: usize = 256;
const BATCHES_MAX: usize = 64;

struct Batch {
    messages: Vec<Message>,
    reply: Reply,
}

#[derive(Clone)]
enum Gate {
    Closed(Failure),
    Open(mpsc::Sender<Batch>, watch::Receiver<Weather>),
}

/// Cheap to clone. The task ends with the last clone.
#[derive(Clone)]
pub(super) struct Publisher {
    gate: watch::Receiver<Gate>,
}

impl Publisher {
    pub fn start(link: Link, shards: u16, troubles: Troubles) -> Self {
        let (sender, gate) = watch::channel(Gate::Closed(Failure::unavailable("not connected to the broker yet")));
        tokio::spawn(keep(link, shards, troubles, sender));
        Self { gate }
    }

    /// Publishes all of them. `Ok` = the broker has confirmed each. Fails at once while the broker
    /// is away or takes no messages.
    pub async fn publish(&self, messages: Vec<Message>) -> Result<(), Failure> {
        let batches = self.check()?;
        let lost = |_| Failure::in_doubt("the channel to the broker was lost before it confirmed");
        let mut answers = Vec::new();
        let mut messages = messages.into_iter().peekable();
        while messages.peek().is_some() {
            let (reply, answer) = oneshot::channel();
            let batch = Batch { messages: messages.by_ref().take(BATCH_MAX).collect(), reply };
            batches.send(batch).await.map_err(|_| Failure::unavailable("the channel to the broker is lost"))?;
            answers.push(answer);
        }
        let mut outcome = Ok(());
        for answer in answers {
            outcome = outcome.and(answer.await.map_err(lost).and_then(|told| told));
        }
        outcome
    }

    /// Publishes a message, for as long as it takes. The broker may have it more than once in the end.
    pub async fn insist(&self, message: Message) {
        let mut failures = 0;
        while self.ping().is_err() || self.publish(vec![message.clone()]).await.is_err() {
            failures += 1;
            tokio::time::sleep(backoff::after(failures)).await;
        }
    }

    /// Whether publishing works at present.
    pub fn ping(&self) -> Result<(), Failure> {
        self.check().map(drop)
    }

    /// Returns once publishing works. Cancel safe.
    pub async fn ready(&mut self) -> Result<(), Failure> {
        let opened = self.gate.wait_for(|gate| matches!(gate, Gate::Open(..))).await;
        opened.map(drop).map_err(|_| Failure::unavailable("the process ends"))
    }

    fn check(&self) -> Result<mpsc::Sender<Batch>, Failure> {
        match &*self.gate.borrow() {
            Gate::Closed(failure) => Err(failure.clone()),
            Gate::Open(batches, weather) => match &weather.borrow().blocked {
                Some(why) => Err(blocked(why)),
                None => Ok(batches.clone()),
            },
        }
    }
}

fn blocked(why: &str) -> Failure {
    Failure::unavailable(format!("the broker takes no messages for now: {why}"))
}

async fn keep(mut link: Link, shards: u16, troubles: Troubles, gate: watch::Sender<Gate>) {
    let mut failures = 0;
    loop {
        let up = tokio::select! {
            up = link.up() => up,
            () = gate.closed() => None,
        };
        let Some(up) = up else { return };
        let failure = match Session::open(&up, shards).await {
            Ok(session) => {
                failures = 0;
                troubles.clear("publisher");
                let (sender, batches) = mpsc::channel(BATCHES_MAX);
                gate.send_replace(Gate::Open(sender, up.weather.clone()));
                session.run(&up, batches, &gate).await
            }
            Err(failure) => failure,
        };
        // A lost connection is told of by its link.
        if up.connection.status().connected() && !gate.is_closed() {
            troubles.note("publisher", &failure);
        }
        gate.send_replace(Gate::Closed(failure));
        failures += 1;
        tokio::time::sleep(backoff::after(failures)).await;
    }
}

type Confirming = BoxFuture<'static, (u64, lapin::Result<Confirmation>)>;

struct Session {
    channel: Channel,
    flights: Flights,
    confirms: FuturesUnordered<Confirming>,
    /// Why the channel must be built anew.
    broken: Option<Failure>,
}

impl Session {
    async fn open(up: &Arc<Up>, shards: u16) -> Result<Self, Failure> {
        let opened = up.connection.create_channel().await;
        let channel = opened.map_err(|error| fault::failure("cannot open a channel", &error))?;
        topology::declare_all(&channel, shards).await?;
        let confirming = channel.confirm_select(ConfirmSelectOptions::default()).await;
        confirming.map_err(|error| fault::failure("cannot have publishes confirmed", &error))?;
        Ok(Self { channel, flights: Flights::default(), confirms: FuturesUnordered::new(), broken: None })
    }

    /// Returns why the channel cannot be used any longer. Whoever still waits is told.
    async fn run(mut self, up: &Up, mut batches: mpsc::Receiver<Batch>, gate: &watch::Sender<Gate>) -> Failure {
        let mut weather = up.weather.clone();
        while self.broken.is_none() {
            let deadline = self.flights.deadline();
            let has_room = self.confirms.len() < IN_FLIGHT_MAX;
            tokio::select! {
                biased;
                changed = weather.changed() => {
                    let why = weather.borrow_and_update().blocked.clone();
                    self.look(changed.is_ok() && up.connection.status().connected(), why);
                }
                Some(done) = self.confirms.next(), if !self.confirms.is_empty() => self.settle(done),
                // While the broker is blocked, batches are refused as fast as they come.
                batch = batches.recv(), if has_room || weather.borrow().blocked.is_some() => match batch {
                    Some(batch) => {
                        let why = weather.borrow().blocked.clone();
                        self.start(batch, why);
                    }
                    None => break,
                },
                () = tokio::time::sleep_until(deadline.unwrap_or_else(Instant::now)), if deadline.is_some() => {
                    self.broken = Some(Failure::in_doubt(format!("the broker did not confirm within {CONFIRM_MAX:?}")));
                }
                () = gate.closed() => break,
            }
            if let Some(failure) = &self.broken {
                // First: whoever is told finds the gate closed.
                gate.send_replace(Gate::Closed(failure.clone()));
            }
            self.flights.report();
        }
        let failure = self.broken.unwrap_or_else(|| Failure::unavailable("the publisher has ended"));
        self.flights.fail_all(&Failure::in_doubt(failure.message.clone()));
        failure
    }

    fn look(&mut self, is_connected: bool, why: Option<String>) {
        if !(is_connected && self.channel.status().connected()) {
            self.broken = Some(Failure::unavailable("the channel to the broker is lost"));
        } else if let Some(why) = why {
            // Part of them may be on the queue already.
            self.flights.fail_all(&Failure::in_doubt(blocked(&why).message));
        }
    }

    fn start(&mut self, batch: Batch, why: Option<String>) {
        let Batch { messages, reply } = batch;
        if let Some(why) = why {
            let _ = reply.send(Err(blocked(&why)));
            return;
        }
        let first = self.flights.start(messages.len(), Instant::now(), reply);
        for (number, message) in (first..).zip(messages) {
            let mut confirming = send(self.channel.clone(), number, message);
            // The first poll hands the frames over, and so fixes their order; lapin numbers the
            // messages of a channel wrongly if several are handed over at a time.
            match (&mut confirming).now_or_never() {
                Some(done) => self.count(done),
                None => self.confirms.push(confirming),
            }
        }
    }

    fn settle(&mut self, done: (u64, lapin::Result<Confirmation>)) {
        self.count(done);
        while let Some(Some(done)) = self.confirms.next().now_or_never() {
            self.count(done);
        }
    }

    fn count(&mut self, (number, confirmation): (u64, lapin::Result<Confirmation>)) {
        match confirmation {
            Ok(Confirmation::Ack(None)) => {}
            Ok(Confirmation::Ack(Some(returned))) => self.returned(&returned),
            Ok(Confirmation::Nack(_)) => {
                self.flights.failed(number, Failure::unavailable("the queue takes no more"));
            }
            Ok(Confirmation::NotRequested) => {
                self.broken = Some(Failure::internal("the channel does not confirm"));
                self.flights.failed(number, Failure::in_doubt("it was not confirmed"));
            }
            Err(error) => {
                self.broken = Some(fault::failure("the channel to the broker is lost", &error));
                self.flights.failed(number, Failure::in_doubt(format!("the broker did not confirm: {error}")));
            }
        }
        self.flights.answered(number);
    }

    /// No queue took it: somebody deleted one. lapin hands a returned message over with the next
    /// confirm, whichever that is; the number in the message says which one it was.
    fn returned(&mut self, returned: &BasicReturnMessage) {
        let key = &returned.delivery.routing_key;
        let failure = Failure::unavailable(format!("there is no queue for {key}; declaring all queues anew"));
        let number = returned.delivery.properties.correlation_id().as_ref().and_then(|text| text.as_str().parse().ok());
        if let Some(number) = number {
            self.flights.failed(number, failure.clone());
        }
        self.broken = Some(failure);
    }
}

fn send(channel: Channel, number: u64, message: Message) -> Confirming {
    let Message { exchange, key, properties, body } = message;
    let properties = properties.with_correlation_id(number.to_string().into());
    let options = BasicPublishOptions { mandatory: true, immediate: false };
    async move {
        let confirmation = match channel.basic_publish(exchange.into(), key, options, &body, properties).await {
            Ok(confirm) => confirm.await,
            Err(error) => Err(error),
        };
        (number, confirmation)
    }
    .boxed()
}
