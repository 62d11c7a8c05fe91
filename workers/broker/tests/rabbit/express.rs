//! Actions that come by express, ahead of their messages.

use domain::ports::{Content, Deliveries, Delivery};
use lapin::BasicProperties;
use schemas::action::{Action, Lane};
use schemas::id::Shard;
use schemas::topology::{APP_ID, EXCHANGE_EVENTS, TYPE_ACTION, shard_queue};
use testkit::contract::queue::input;

use super::{Outside, Rabbit, fleet, next, until};

/// Time in which what must not come would come.
const SILENCE: std::time::Duration = std::time::Duration::from_millis(300);

/// Sends a copy, and no message, until it arrives: the consumer is bound some time after it began.
async fn by_express(outside: &Outside, deliveries: &mut Box<dyn Deliveries>, action: &Action) -> Delivery {
    let body = serde_json::to_vec(action).unwrap();
    let queue = shard_queue(action.shard, action.lane());
    let ours = BasicProperties::default().with_app_id(APP_ID.into()).with_type(TYPE_ACTION.into());
    until("a copy", async || {
        outside.put_on(EXCHANGE_EVENTS, &queue, &body, ours.clone()).await;
        tokio::time::timeout(SILENCE, deliveries.next()).await.ok().flatten()
    })
    .await
}

async fn consuming(name: &str) -> (Rabbit, Outside, Box<dyn Deliveries>) {
    let (rabbit, url) = fleet(name).await;
    let outside = Outside::connect(&url).await;
    let deliveries = rabbit.queue().consume(Shard(1), Lane::Work).await.unwrap();
    (rabbit, outside, deliveries)
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_copy_is_handed_on_and_its_message_is_not() {
    let (rabbit, outside, mut deliveries) = consuming("express").await;
    let copy = by_express(&outside, &mut deliveries, &input(1, 1)).await;
    assert_eq!(copy.content, Content::Action(input(1, 1)));
    deliveries.ack(copy.tag).await.unwrap();
    rabbit.queue().publish(&[input(1, 1), input(1, 2)]).await.unwrap();
    let second = next(&mut deliveries).await;
    assert_eq!(second.content, Content::Action(input(1, 2)));
    // What was acknowledged by its copy is acknowledged on the queue.
    let come = tokio::time::timeout(SILENCE, deliveries.next()).await;
    assert!(come.is_err(), "{come:?}");
    deliveries.ack(second.tag).await.unwrap();
    drop(deliveries);
    let mut deliveries = rabbit.queue().consume(Shard(1), Lane::Work).await.unwrap();
    rabbit.queue().publish(&[input(1, 3)]).await.unwrap();
    assert_eq!(next(&mut deliveries).await.content, Content::Action(input(1, 3)));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_copy_that_is_not_acknowledged_comes_again_by_the_queue() {
    let (rabbit, outside, mut deliveries) = consuming("express-again").await;
    by_express(&outside, &mut deliveries, &input(1, 1)).await;
    rabbit.queue().publish(&[input(1, 1)]).await.unwrap();
    let come = tokio::time::timeout(SILENCE, deliveries.next()).await;
    assert!(come.is_err(), "the copy stands for it, so not {come:?}");
    drop(deliveries);
    let mut deliveries = rabbit.queue().consume(Shard(1), Lane::Work).await.unwrap();
    assert_eq!(next(&mut deliveries).await.content, Content::Action(input(1, 1)));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_copy_is_buried_as_its_message_would_be() {
    let (rabbit, outside, mut deliveries) = consuming("express-burial").await;
    let copy = by_express(&outside, &mut deliveries, &input(1, 1)).await;
    deliveries.bury(copy.tag, "not wanted").await.unwrap();
    rabbit.queue().publish(&[input(1, 1), input(1, 2)]).await.unwrap();
    assert_eq!(next(&mut deliveries).await.content, Content::Action(input(1, 2)));
    let letters = rabbit.dead_letters().list(10).await.unwrap();
    assert_eq!(letters.iter().map(|letter| letter.reason.as_str()).collect::<Vec<_>>(), ["not wanted"]);
}
