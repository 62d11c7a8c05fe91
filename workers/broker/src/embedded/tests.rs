//! The embedded queue under overflow and change of consumer, and news to slow listeners.

use domain::chat::ChatDelta;
use domain::ports::{ConversationKey, Live, News};
use schemas::id::{ConversationId, MessageId, Namespace, TurnId};
use schemas::limits::NEWS_KEPT_MAX;

use super::*;

fn action(n: u64) -> Action {
    crate::samples::action(3, n)
}

fn seq(delivery: Option<Delivery>) -> u64 {
    match delivery.unwrap().content {
        Content::Action(action) => action.session_seq,
        Content::Foreign(_) => panic!("nobody else publishes here"),
    }
}

#[tokio::test]
async fn delivers_in_order_and_says_what_does_not_fit() {
    let queue = EmbeddedQueue::new();
    assert!(queue.publish(&[action(1)]).await.is_err(), "nobody consumes yet");
    let mut deliveries = queue.consume(Shard(3), Lane::Work).await.unwrap();
    let many: Vec<_> = (0..DELIVERIES_MAX as u64 + 5).map(action).collect();
    assert!(queue.publish(&many).await.unwrap_err().message.contains("5 actions"));
    for n in 0..DELIVERIES_MAX as u64 {
        assert_eq!(seq(deliveries.next().await), n);
    }
}

#[tokio::test]
async fn a_new_consumer_ends_the_old_one() {
    let queue = EmbeddedQueue::new();
    let mut old = queue.consume(Shard(3), Lane::Work).await.unwrap();
    let mut new = queue.consume(Shard(3), Lane::Work).await.unwrap();
    queue.publish(&[action(1)]).await.unwrap();
    assert!(old.next().await.is_none());
    assert_eq!(seq(new.next().await), 1);
}

fn talk(conversation: &str) -> ConversationKey {
    ConversationKey {
        namespace: Namespace::default_ns(),
        conversation_id: ConversationId::parse(conversation).unwrap(),
    }
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

#[tokio::test]
async fn news_reach_all_listeners_of_their_conversation_in_order() {
    let live = EmbeddedLive::new();
    live.tell(&talk("c1"), News::Logged);
    let (mut one, mut two, mut other) = (live.listen(&talk("c1")), live.listen(&talk("c1")), live.listen(&talk("c2")));
    live.tell(&talk("c1"), piece(0));
    live.tell(&talk("c1"), piece(1));
    live.tell(&talk("c1"), News::Logged);
    live.tell(&talk("c2"), News::Logged);
    for heard in [&mut one, &mut two] {
        assert_eq!(heard.next().await, Some(piece(0)), "what was told before is not heard");
        assert_eq!(heard.next().await, Some(piece(1)));
        assert_eq!(heard.next().await, Some(News::Logged));
    }
    assert_eq!(other.next().await, Some(News::Logged));
    drop(one);
    live.tell(&talk("c1"), piece(2));
    assert_eq!(two.next().await, Some(piece(2)));
}

#[tokio::test]
async fn a_slow_listener_is_told_that_it_missed_something() {
    let live = EmbeddedLive::new();
    let mut slow = live.listen(&talk("c1"));
    for index in 0..NEWS_KEPT_MAX as u64 + 1 {
        live.tell(&talk("c1"), piece(index));
    }
    assert_eq!(slow.next().await, None);
    live.tell(&talk("c1"), News::Logged);
    assert_eq!(slow.next().await, None, "and hears nothing more: it must listen again");
    let mut again = live.listen(&talk("c1"));
    live.tell(&talk("c1"), News::Logged);
    assert_eq!(again.next().await, Some(News::Logged));
}

#[tokio::test]
async fn silenced_listeners_end() {
    let live = EmbeddedLive::new();
    let (mut one, mut two) = (live.listen(&talk("c1")), live.listen(&talk("c2")));
    live.silence(|key| *key == talk("c1"));
    assert_eq!(one.next().await, None);
    drop(one);
    live.tell(&talk("c2"), News::Logged);
    assert_eq!(two.next().await, Some(News::Logged));
}
