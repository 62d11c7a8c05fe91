//! The embedded queue under overflow and change of consumer.

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
