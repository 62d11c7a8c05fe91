//! Whoever looks at the dead letters sees all of them, whoever else looks at them.

use std::time::{Duration, Instant};

use schemas::topology::QUEUE_DEAD;
use testkit::contract::queue::{SHARDS, Stranger, soon};

use super::{Outside, Rabbit, fleet, until};

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn processes_that_look_at_a_time_hide_nothing_from_each_other() {
    let (one, url) = fleet("two-look").await;
    let two = Rabbit::start(&url, SHARDS).unwrap();
    soon("the broker", two.ready()).await.unwrap();
    let outside = Outside::connect(&url).await;
    outside.put_many(QUEUE_DEAD, 300, |n| (format!("letter {n}").into_bytes(), Default::default())).await;
    let all = one.dead_letters().list(1_000).await.unwrap();
    assert_eq!(all.len(), 300);
    let look = async |rabbit: &Rabbit| {
        let dead = rabbit.dead_letters();
        for letter in all.iter().rev().take(5) {
            assert_eq!(dead.list(1_000).await.as_ref(), Ok(&all));
            assert_eq!(dead.get(&letter.id).await.as_ref(), Ok(&Some(letter.clone())));
            // Others come to look every few seconds.
            tokio::time::sleep(Duration::from_millis(200)).await;
        }
    };
    soon("the looks", async { tokio::join!(look(&one), look(&two)) }).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn whoever_has_the_turn_is_waited_for() {
    let (rabbit, url) = fleet("turn").await;
    let (other, dead) = (Outside::connect(&url).await, rabbit.dead_letters());
    other.put(QUEUE_DEAD, b"a letter").await;
    let letter = until("the letter", async || dead.list(1).await.unwrap().pop()).await;
    other.reserve("stepfleet.dead.turn").await;
    let begun = Instant::now();
    let failure = soon("a refusal", dead.list(10)).await.expect_err("somebody else looks");
    assert!(failure.retriable && failure.message.contains("somebody else"), "{failure}");
    assert!(begun.elapsed() > Duration::from_secs(4), "{:?}", begun.elapsed());
    let going = async {
        tokio::time::sleep(Duration::from_millis(300)).await;
        other.leave().await;
    };
    let (letters, ()) = tokio::join!(dead.list(10), going);
    assert_eq!(letters, Ok(vec![letter]));
}

/// An earlier release looks without asking whose turn it is.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_letter_that_somebody_holds_for_a_moment_is_looked_for_again() {
    let (rabbit, url) = fleet("held").await;
    let (other, dead) = (Outside::connect(&url).await, rabbit.dead_letters());
    other.put(QUEUE_DEAD, b"a letter").await;
    let letter = until("the letter", async || dead.list(1).await.unwrap().pop()).await;
    until("the hold", async || other.hold(QUEUE_DEAD).await).await;
    let going = async {
        tokio::time::sleep(Duration::from_millis(100)).await;
        other.leave().await;
    };
    let (found, ()) = tokio::join!(dead.get(&letter.id), going);
    assert_eq!(found, Ok(Some(letter)));
}
