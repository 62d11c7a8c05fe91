//! The surprises of the fake, pinned. It does what RabbitMQ's quorum queues were seen to do: if it were kinder, a
//! simulation would prove what does not hold.

use std::ops::RangeInclusive;

use domain::failure::Certainty;

use super::*;
use crate::contract::queue::{input, soon};

type Held = Box<dyn Deliveries>;

/// A broker with one kind of trouble.
fn troubled(change: impl FnOnce(&mut QueueFaults)) -> FaultyQueue {
    let queue = FaultyQueue::reliable();
    from_now_on(&queue, change);
    queue
}

/// For consumers to come: one that is there keeps what it began with.
fn from_now_on(queue: &FaultyQueue, change: impl FnOnce(&mut QueueFaults)) {
    change(&mut lock(&queue.faults));
}

async fn publish(queue: &FaultyQueue, numbers: RangeInclusive<u64>) {
    let actions: Vec<Action> = numbers.map(|n| input(0, n)).collect();
    queue.publish(&actions).await.expect("the broker takes them");
}

async fn consume(queue: &FaultyQueue) -> Held {
    queue.consume(Shard(0), Lane::Work).await.expect("a consumer")
}

/// The numbers of the next deliveries; they stay open. The tags of a consumer are 1, 2, 3 and so on.
async fn take(from: &mut Held, count: usize) -> Vec<u64> {
    let mut numbers = Vec::new();
    for _ in 0..count {
        let delivery = soon("a delivery", from.next()).await.expect("the channel is open");
        let Content::Action(action) = delivery.content else { panic!("nobody else publishes") };
        numbers.push(action.session_seq);
    }
    numbers
}

/// All that comes within a moment.
async fn rest(from: &mut Held) -> Vec<u64> {
    let mut numbers = Vec::new();
    let moment = Duration::from_millis(100);
    while let Ok(Some(delivery)) = tokio::time::timeout(moment, from.next()).await {
        let Content::Action(action) = delivery.content else { panic!("nobody else publishes") };
        numbers.push(action.session_seq);
    }
    numbers
}

async fn dead(queue: &FaultyQueue) -> Vec<u64> {
    let letters = queue.list(100).await.expect("a look");
    let number = |letter: &DeadLetter| {
        assert_eq!(
            (letter.reason.as_str(), letter.origin.as_str()),
            ("given back too often", "stepfleet.shard.0.work")
        );
        serde_json::from_slice::<Action>(&letter.body).expect("an action").session_seq
    };
    letters.iter().map(number).collect()
}

#[tokio::test(start_paused = true)]
async fn losses_of_consumers_with_the_same_prefetch_keep_the_order() {
    let queue = troubled(|faults| faults.prefetch = 3..4);
    publish(&queue, 1..=8).await;
    for _ in 0..4 {
        assert_eq!(take(&mut consume(&queue).await, 3).await, [1, 2, 3]);
    }
    from_now_on(&queue, |faults| faults.prefetch = 8..9);
    assert_eq!(rest(&mut consume(&queue).await).await, [1, 2, 3, 4, 5, 6, 7, 8]);
}

/// Whatever is given back stands in line in the order of giving back, and not in that of the queue.
#[tokio::test(start_paused = true)]
async fn a_prefetch_that_shrinks_puts_the_third_before_the_first() {
    let queue = troubled(|faults| faults.prefetch = 3..4);
    publish(&queue, 1..=6).await;
    assert_eq!(take(&mut consume(&queue).await, 3).await, [1, 2, 3]);
    from_now_on(&queue, |faults| faults.prefetch = 2..3);
    assert_eq!(rest(&mut consume(&queue).await).await, [1, 2], "no more than its prefetch");
    from_now_on(&queue, |faults| faults.prefetch = 8..9);
    assert_eq!(rest(&mut consume(&queue).await).await, [3, 1, 2, 4, 5, 6]);
}

#[tokio::test(start_paused = true)]
async fn what_was_acknowledged_out_of_order_stays_gone_and_the_others_keep_theirs() {
    let queue = FaultyQueue::reliable();
    publish(&queue, 1..=5).await;
    let mut first = consume(&queue).await;
    assert_eq!(take(&mut first, 3).await, [1, 2, 3]);
    first.ack(2).await.expect("the channel is open");
    drop(first);
    assert_eq!(rest(&mut consume(&queue).await).await, [1, 3, 4, 5]);
}

/// One bad message takes with it all that its consumer had been handed beside it.
#[tokio::test(start_paused = true)]
async fn the_delivery_limit_poisons_the_whole_batch() {
    let queue = troubled(|faults| (faults.prefetch, faults.delivery_limit) = (5..6, 3));
    publish(&queue, 1..=7).await;
    for returns in 0..=3 {
        assert!(dead(&queue).await.is_empty(), "after {returns} returns");
        assert_eq!(take(&mut consume(&queue).await, 5).await, [1, 2, 3, 4, 5]);
    }
    assert_eq!(dead(&queue).await, [1, 2, 3, 4, 5], "the return after the last that is allowed");
    assert_eq!(rest(&mut consume(&queue).await).await, [6, 7]);
}

/// What was on its way to a consumer counts as given back, whether anybody saw it or not.
#[tokio::test(start_paused = true)]
async fn lost_channels_count_as_returns_of_what_nobody_saw() {
    let queue = troubled(|faults| (faults.lost_channel, faults.delivery_limit) = (1.0, 2));
    publish(&queue, 1..=2).await;
    for _ in 0..3 {
        assert!(soon("the loss", consume(&queue).await.next()).await.is_none());
    }
    assert_eq!(dead(&queue).await, [1]);
    queue.heal();
    assert_eq!(rest(&mut consume(&queue).await).await, [2]);
}

/// As after `basic.cancel`, or a partition: a single active consumer is no mutex.
#[tokio::test(start_paused = true)]
async fn two_consumers_may_hold_messages_at_a_time_and_the_older_ones_come_last() {
    let queue = troubled(|faults| (faults.overlap, faults.linger_ms) = (1.0, 1_000..1_001));
    publish(&queue, 1..=6).await;
    let mut old = consume(&queue).await;
    assert_eq!(take(&mut old, 3).await, [1, 2, 3]);
    let mut new = consume(&queue).await;
    assert_eq!(take(&mut new, 3).await, [4, 5, 6], "at once");
    old.ack(1).await.expect("it may work on what it holds");
    assert!(soon("its end", old.next()).await.is_none());
    assert_eq!(rest(&mut new).await, [2, 3]);
}

#[tokio::test(start_paused = true)]
async fn a_replaced_consumer_may_stay_and_take_more_while_the_new_one_waits() {
    let queue = troubled(|faults| faults.linger_ms = 1_000..1_001);
    publish(&queue, 1..=1).await;
    let mut old = consume(&queue).await;
    assert_eq!(take(&mut old, 1).await, [1]);
    let mut new = consume(&queue).await;
    publish(&queue, 2..=2).await;
    assert_eq!(take(&mut old, 1).await, [2]);
    assert!(rest(&mut new).await.is_empty());
    assert!(soon("its end", old.next()).await.is_none());
    assert_eq!(rest(&mut new).await, [1, 2]);
}

#[tokio::test(start_paused = true)]
async fn a_message_whose_confirm_is_lost_is_there_all_the_same() {
    let queue = troubled(|faults| faults.lost_confirm = 1.0);
    for _ in 0..2 {
        let failure = queue.publish(&[input(0, 1)]).await.expect_err("the confirm is lost");
        assert_eq!(failure.certainty, Certainty::MayHaveHappened);
    }
    assert_eq!(rest(&mut consume(&queue).await).await, [1, 1], "whoever publishes again has it twice");
}

#[tokio::test(start_paused = true)]
async fn confirmed_messages_are_lost_and_doubled_and_overtaken() {
    let queue = troubled(|faults| faults.lose = 1.0);
    publish(&queue, 1..=1).await;
    from_now_on(&queue, |faults| (faults.lose, faults.repeat) = (0.0, 1.0));
    publish(&queue, 2..=2).await;
    from_now_on(&queue, |faults| (faults.repeat, faults.straggle, faults.straggle_ms) = (0.0, 1.0, 50..51));
    publish(&queue, 3..=3).await;
    from_now_on(&queue, |faults| faults.straggle = 0.0);
    publish(&queue, 4..=4).await;
    assert_eq!(rest(&mut consume(&queue).await).await, [2, 2, 4, 3]);
}

/// A refusal in the middle of a batch leaves what came before it on the queue.
#[tokio::test(start_paused = true)]
async fn a_full_lane_takes_a_part() {
    let queue = FaultyQueue::reliable();
    let most = LANE_MAX as u64;
    publish(&queue, 2..=most).await;
    let failure = queue.publish(&[input(0, 1), input(0, 9_999)]).await.expect_err("one fits");
    assert!(failure.retriable && failure.message.contains("full"), "{failure}");
    assert_eq!(queue.lane("stepfleet.shard.0.work").len(), LANE_MAX);
}

#[tokio::test(start_paused = true)]
async fn an_outage_ends_all_channels_and_keeps_what_they_held() {
    let queue = FaultyQueue::reliable();
    publish(&queue, 1..=3).await;
    let mut held = consume(&queue).await;
    assert_eq!(take(&mut held, 2).await, [1, 2]);
    queue.outage(Duration::from_secs(5));
    assert!(soon("the loss", held.next()).await.is_none());
    assert!(queue.publish(&[input(0, 4)]).await.is_err() && queue.ping().await.is_err());
    assert!(queue.consume(Shard(0), Lane::Work).await.is_err() && queue.list(1).await.is_err());
    tokio::time::sleep(Duration::from_secs(5)).await;
    publish(&queue, 4..=4).await;
    assert_eq!(rest(&mut consume(&queue).await).await, [1, 2, 3, 4]);
}

#[tokio::test(start_paused = true)]
async fn an_alarm_refuses_what_is_put_and_delivers_as_before() {
    let queue = FaultyQueue::reliable();
    publish(&queue, 1..=3).await;
    let mut held = consume(&queue).await;
    assert_eq!(take(&mut held, 2).await, [1, 2]);
    queue.alarm(Duration::from_secs(5));
    assert!(queue.publish(&[input(0, 4)]).await.is_err() && queue.ping().await.is_err());
    assert!(held.bury(1, "no use").await.is_err());
    held.ack(2).await.expect("the channel is open");
    assert_eq!(rest(&mut held).await, [3]);
    tokio::time::sleep(Duration::from_secs(5)).await;
    held.bury(1, "no use").await.expect("it is still held");
    assert_eq!(queue.list(10).await.expect("a look").len(), 1);
}
