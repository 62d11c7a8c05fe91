//! Live notices from one process to another.

use domain::ports::{Live, Notice, Subscription};
use schemas::id::{Namespace, SessionId, SessionKey};
use testkit::contract::queue::{SHARDS, soon};

use super::{Node, Rabbit, fleet, until};

fn key(session: &str) -> SessionKey {
    SessionKey::new(Namespace::default_ns(), SessionId::parse(session).unwrap())
}

fn notice(session: &str, last_offset: u64) -> Notice {
    Notice { key: key(session), last_offset, entry: None }
}

/// Subscribes and says so only once notices come through: a new part is bound first, of which the
/// subscriber is told by the end of its subscription.
async fn listening(worker: &dyn Live, gateway: &dyn Live, session: &str) -> Box<dyn Subscription> {
    let mut heard = gateway.subscribe(&key(session));
    until("the first notice", async || {
        worker.publish(vec![notice(session, 1)]);
        match tokio::time::timeout(std::time::Duration::from_millis(100), heard.next()).await {
            Ok(Some(_)) => Some(()),
            Ok(None) => {
                heard = gateway.subscribe(&key(session));
                None
            }
            Err(_) => None,
        }
    })
    .await;
    heard
}

/// The next notice that tells of more than the given offset.
async fn beyond(heard: &mut Box<dyn Subscription>, offset: u64) -> Notice {
    soon("a notice", async {
        loop {
            let notice = heard.next().await.expect("the source is there");
            if notice.last_offset > offset {
                return notice;
            }
        }
    })
    .await
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_commit_in_one_process_is_noticed_in_another() {
    let (worker, url) = fleet("live").await;
    let gateway = Rabbit::start(&url, SHARDS).unwrap();
    let (worker, gateway) = (worker.live(), gateway.live());
    let mut one = listening(&*worker, &*gateway, "s1").await;
    let mut two = listening(&*worker, &*gateway, "s2").await;
    worker.publish(vec![notice("s1", 5), notice("nobody-watches", 9), notice("s2", 7)]);
    let heard = beyond(&mut one, 1).await;
    assert_eq!((heard.key, heard.last_offset, heard.entry.is_none()), (key("s1"), 5, true));
    assert_eq!(beyond(&mut two, 1).await.last_offset, 7);
    // A subscription that ends takes nothing away from another one.
    drop(one);
    worker.publish(vec![notice("s2", 8)]);
    assert_eq!(beyond(&mut two, 7).await.last_offset, 8);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn after_a_lost_connection_subscribers_are_told_to_read() {
    let node = Node::start();
    let url = node.url();
    let (worker, gateway) = (Rabbit::start(&url, SHARDS).unwrap(), Rabbit::start(&url, SHARDS).unwrap());
    soon("the broker", worker.ready()).await.unwrap();
    let (worker, gateway) = (worker.live(), gateway.live());
    let mut heard = listening(&*worker, &*gateway, "s1").await;
    node.ctl(&["close_all_connections", "test"]);
    soon("the end of the subscription", async { while heard.next().await.is_some() {} }).await;
    let mut heard = listening(&*worker, &*gateway, "s1").await;
    worker.publish(vec![notice("s1", 6)]);
    assert_eq!(beyond(&mut heard, 1).await.last_offset, 6);
}
