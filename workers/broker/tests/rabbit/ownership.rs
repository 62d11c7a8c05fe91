//! Two processes and one lane.

use domain::ports::Content;
use schemas::action::Lane;
use schemas::id::Shard;
use testkit::contract::queue::{SHARDS, input, soon};

use super::{Rabbit, fleet, next};

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_next_owner_gets_what_the_last_one_held_and_only_then() {
    let (one, url) = fleet("ownership").await;
    let two = Rabbit::start(&url, SHARDS).unwrap();
    let mut old = one.queue().consume(Shard(1), Lane::Work).await.unwrap();
    one.queue().publish(&[input(1, 1), input(1, 2), input(1, 3)]).await.unwrap();
    let first = next(&mut old).await;
    old.ack(first.tag).await.unwrap();
    next(&mut old).await;
    // The second process waits: one consumer is active at a time.
    let mut new = two.queue().consume(Shard(1), Lane::Work).await.unwrap();
    soon("the second process", two.ready()).await.unwrap();
    two.queue().publish(&[input(1, 4)]).await.unwrap();
    assert_eq!(next(&mut old).await.content, Content::Action(input(1, 3)));
    assert_eq!(next(&mut old).await.content, Content::Action(input(1, 4)));
    drop(old);
    for n in 2..=4 {
        let delivery = next(&mut new).await;
        assert_eq!(delivery.content, Content::Action(input(1, n)), "what was held comes again, in order");
        new.ack(delivery.tag).await.unwrap();
    }
}
