//! The adapter on a real RabbitMQ, which `ops/services` starts for this process alone.

#[path = "rabbit/dead.rs"]
mod dead;
#[path = "rabbit/express.rs"]
mod express;
#[path = "rabbit/faults.rs"]
mod faults;
#[path = "rabbit/live.rs"]
mod live;
#[path = "rabbit/node.rs"]
mod node;
#[path = "rabbit/outside.rs"]
mod outside;
#[path = "rabbit/ownership.rs"]
mod ownership;
#[path = "rabbit/survey.rs"]
mod survey;
#[path = "rabbit/sweeps.rs"]
mod sweeps;
#[path = "rabbit/tasks.rs"]
mod tasks;
#[path = "rabbit/tls.rs"]
mod tls;
#[path = "rabbit/turns.rs"]
mod turns;

use std::sync::Arc;
use std::time::Duration;

use broker::Rabbit;
use domain::ports::{Deliveries, Delivery};
use testkit::contract::queue::{Carrier, SHARDS, soon, suite};

use node::Node;
use outside::Outside;

/// A fleet's broker on a virtual host of its own, ready.
async fn fleet(name: &str) -> (Rabbit, String) {
    let url = Node::shared().vhost(name);
    let rabbit = Rabbit::start(&url, SHARDS).expect("the URL is right");
    soon("the broker", rabbit.ready()).await.expect("ready");
    (rabbit, url)
}

async fn next(deliveries: &mut Box<dyn Deliveries>) -> Delivery {
    soon("a delivery", deliveries.next()).await.expect("the channel is open")
}

/// Asks again and again, but not for ever.
async fn until<T>(what: &str, mut ask: impl AsyncFnMut() -> Option<T>) -> T {
    soon(what, async {
        loop {
            if let Some(answer) = ask().await {
                return answer;
            }
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    })
    .await
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn contract() {
    let (rabbit, url) = fleet("contract").await;
    let stranger = Arc::new(Outside::connect(&url).await);
    suite(&Carrier { queue: rabbit.queue(), dead: rabbit.dead_letters(), stranger: Some(stranger) }).await;
}
