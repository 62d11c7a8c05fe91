//! RabbitMQ under the ports [`Queue`], [`DeadLetters`] and [`Live`]. Two connections: one that
//! publishes and may be blocked by the broker, one that consumes and must not be. Both are kept up
//! by themselves; nothing here fails for good because the broker is away.

mod acks;
mod backoff;
mod consumer;
mod dead;
mod express;
mod fault;
mod flights;
mod greeting;
mod hand;
mod lane;
mod letter;
mod link;
mod live;
mod message;
mod publisher;
mod report;
mod settings;
mod survey;
mod tasks;
mod topology;
mod troubles;

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};

use async_trait::async_trait;
use domain::failure::Failure;
use domain::ports::{DeadLetter, DeadLetters, Deliveries, Live, Queue, Sweep, Swept, TaskQueue, Told};
use schemas::action::{Action, Lane};
use schemas::id::Shard;
use tokio::sync::oneshot;

use consumer::{Consumer, Source};
use dead::Graveyard;
use express::Express;
use lane::LaneTask;
use link::Link;
use live::RabbitLive;
use message::Message;
use publisher::Publisher;
use report::Report;
use settings::Settings;
pub use survey::Survey;
use tasks::RabbitTasks;
use troubles::Troubles;

/// All that a process needs of its broker.
pub struct Rabbit {
    queue: Arc<RabbitQueue>,
    live: Arc<RabbitLive>,
}

impl Rabbit {
    /// Begins to connect, in the background of the current runtime. `shards` is the number stored
    /// by `migrate`.
    ///
    /// # Errors
    /// The URL makes no sense. A broker that is away is none.
    pub fn start(url: &str, shards: u16) -> Result<Self, Failure> {
        let queue = RabbitQueue::open(Settings::parse(url, shards)?);
        let live = Arc::new(queue.live());
        Ok(Self { queue: Arc::new(queue), live })
    }

    /// Looks at a broker once, and changes nothing on it. `shards` as for [`Self::start`]; `pools` are those whose
    /// tasks travel over the broker, as [`TaskQueue`] has them.
    ///
    /// # Errors
    /// The URL makes no sense, or the broker cannot be reached; the text says why.
    pub async fn survey(url: &str, shards: u16, pools: &[String]) -> Result<Survey, Failure> {
        survey::survey(&Settings::parse(url, shards)?, pools).await
    }

    pub fn queue(&self) -> Arc<dyn Queue> {
        self.queue.clone()
    }

    pub fn dead_letters(&self) -> Arc<dyn DeadLetters> {
        self.queue.clone()
    }

    /// Where tasks for workers of others go.
    pub fn tasks(&self) -> Arc<dyn TaskQueue> {
        Arc::new(RabbitTasks::new(self.queue.publishing.clone(), self.queue.publisher.clone()))
    }

    pub fn live(&self) -> Arc<dyn Live> {
        self.live.clone()
    }

    /// Returns once the broker is there and everything is declared on it. Cancel safe.
    pub async fn ready(&self) -> Result<(), Failure> {
        self.queue.publisher.clone().ready().await
    }
}

/// The queue of a fleet. Its connections end when it and all that came from it are dropped.
struct RabbitQueue {
    publishing: Link,
    consuming: Link,
    publisher: Publisher,
    graveyard: Graveyard,
    express: Express,
    troubles: Troubles,
    /// The running consumer of each lane; dropping its sender ends it.
    lanes: Mutex<HashMap<Source, oneshot::Sender<()>>>,
}

impl RabbitQueue {
    fn open(settings: Settings) -> Self {
        let settings = Arc::new(settings);
        let report = Report::new(settings.to_string());
        let publishing = Link::open(settings.clone(), "publishes", report.clone());
        let consuming = Link::open(settings.clone(), "consumes", report);
        let troubles = Troubles::default();
        let publisher = Publisher::start(publishing.clone(), settings.shards(), troubles.clone());
        let graveyard = Graveyard::new(consuming.clone(), publisher.clone(), settings.shards());
        let express = Express::start(publishing.clone(), consuming.clone(), troubles.clone());
        Self { publishing, consuming, publisher, graveyard, express, troubles, lanes: Mutex::default() }
    }

    /// Live notices over the same connections.
    fn live(&self) -> RabbitLive {
        RabbitLive::new(self.publishing.clone(), self.consuming.clone(), self.troubles.clone())
    }

    fn start(&self, source: Source, replaced: Option<oneshot::Receiver<()>>) -> Box<dyn Deliveries> {
        let (consumer, ends) = Consumer::new(source, self.publisher.clone());
        let task = LaneTask {
            source,
            link: self.consuming.clone(),
            publisher: self.publisher.clone(),
            troubles: self.troubles.clone(),
            ends,
            line: source.is_lane().then(|| self.express.lines().open(source.queue())),
            replaced,
        };
        tokio::spawn(task.run());
        Box::new(consumer)
    }
}

#[async_trait]
impl Queue for RabbitQueue {
    async fn publish(&self, actions: &[Action]) -> Result<(), Failure> {
        let messages = actions.iter().map(Message::of).collect::<Result<Vec<_>, _>>()?;
        self.express.send(&messages);
        self.publisher.publish(messages).await
    }

    async fn consume(&self, shard: Shard, lane: Lane) -> Result<Box<dyn Deliveries>, Failure> {
        let source = Source::Lane(shard, lane);
        let (here, replaced) = oneshot::channel();
        self.lanes.lock().unwrap_or_else(PoisonError::into_inner).insert(source, here);
        Ok(self.start(source, Some(replaced)))
    }

    async fn consume_ingress(&self) -> Result<Box<dyn Deliveries>, Failure> {
        // Consumers of the ingress compete, and none replaces another.
        Ok(self.start(Source::Ingress, None))
    }

    async fn ping(&self) -> Result<(), Failure> {
        // Why there is no connection says more than that nothing can be published.
        self.publishing.now()?;
        self.publisher.ping()
    }
}

#[async_trait]
impl DeadLetters for RabbitQueue {
    async fn list(&self, limit: usize) -> Result<Vec<DeadLetter>, Failure> {
        self.graveyard.list(limit).await
    }

    async fn get(&self, id: &str) -> Result<Option<DeadLetter>, Failure> {
        self.graveyard.get(id).await
    }

    async fn redrive(&self, id: &str) -> Result<bool, Failure> {
        self.graveyard.redrive(id).await
    }

    async fn discard(&self, id: &str) -> Result<bool, Failure> {
        self.graveyard.discard(id).await
    }

    async fn sweep(&self, sweep: Sweep, told: Told) -> Result<Swept, Failure> {
        self.graveyard.sweep(sweep, told).await
    }
}
