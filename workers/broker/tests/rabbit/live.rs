//! Live notices and news from one process to another.

use domain::chat::ChatDelta;
use domain::ports::{ConversationKey, Listening, Live, News, Notice, Subscription};
use schemas::id::{ConversationId, MessageId, Namespace, SessionId, SessionKey, TurnId};
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

fn talk(conversation: &str) -> ConversationKey {
    let conversation_id = ConversationId::parse(conversation).unwrap();
    ConversationKey { namespace: Namespace::default_ns(), conversation_id }
}

fn piece(index: u64) -> News {
    News::Delta {
        turn_id: TurnId::parse("t1").unwrap(),
        message_id: MessageId::parse("m1").unwrap(),
        attempt: 1,
        index,
        delta: ChatDelta::Text { part: 0, text: format!("piece {index}") },
    }
}

/// Listens and says so only once news come through: until the topic is bound there are none.
async fn following(worker: &dyn Live, gateway: &dyn Live, conversation: &str) -> Box<dyn Listening> {
    let mut heard = gateway.listen(&talk(conversation));
    until("the first news", async || {
        worker.tell(&talk(conversation), News::Logged);
        match tokio::time::timeout(std::time::Duration::from_millis(100), heard.next()).await {
            Ok(Some(_)) => Some(()),
            Ok(None) => {
                heard = gateway.listen(&talk(conversation));
                None
            }
            Err(_) => None,
        }
    })
    .await;
    heard
}

/// What comes up to and with a piece, without the `Logged` that may still be under way before it.
async fn pieces(heard: &mut Box<dyn Listening>, last: u64) -> Vec<News> {
    soon("the pieces", async {
        let mut all = Vec::new();
        while all.last() != Some(&piece(last)) {
            let news = heard.next().await.expect("nothing is lost");
            if !(all.is_empty() && news == News::Logged) {
                all.push(news);
            }
        }
        all
    })
    .await
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_is_said_in_one_process_is_heard_in_another_in_order() {
    let (worker, url) = fleet("news").await;
    let gateway = Rabbit::start(&url, SHARDS).unwrap();
    let (worker, gateway) = (worker.live(), gateway.live());
    let mut one = following(&*worker, &*gateway, "c1").await;
    let mut two = following(&*worker, &*gateway, "c2").await;
    for index in 0..500 {
        worker.tell(&talk("c1"), piece(index));
    }
    worker.tell(&talk("nobody-listens"), piece(0));
    worker.tell(&talk("c2"), piece(7));
    assert_eq!(pieces(&mut one, 499).await, (0..500).map(piece).collect::<Vec<_>>());
    assert_eq!(pieces(&mut two, 7).await, [piece(7)]);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_process_that_tells_and_listens_hears_its_news_once() {
    let (both, _) = fleet("echo").await;
    let live = both.live();
    let mut heard = following(&*live, &*live, "c1").await;
    for index in 0..3 {
        live.tell(&talk("c1"), piece(index));
    }
    assert_eq!(pieces(&mut heard, 2).await, [piece(0), piece(1), piece(2)]);
    let more = tokio::time::timeout(std::time::Duration::from_millis(500), heard.next()).await;
    // That something may have been missed is no news a second time.
    assert!(!matches!(more, Ok(Some(_))), "the broker brings nothing a second time: {more:?}");
}
