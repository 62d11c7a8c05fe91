//! A look at a broker tells what is wrong with it, and leaves it as it is.

use std::time::{Duration, Instant};

use broker::Survey;
use schemas::action::Lane;
use schemas::id::Shard;
use schemas::topology::{QUEUE_DEAD, shard_queue, task_queue};
use testkit::contract::queue::{SHARDS, Stranger, soon};

use super::{Node, Outside, Rabbit, fleet, until};

/// Two exchanges, the ingress, the dead letters, two lanes for each shard.
const ALL: usize = 4 + 2 * SHARDS as usize;

async fn look(url: &str) -> Survey {
    look_with(url, &[]).await
}

/// With pools whose tasks travel over the broker.
async fn look_with(url: &str, pools: &[&str]) -> Survey {
    let pools: Vec<String> = pools.iter().map(|pool| (*pool).to_owned()).collect();
    soon("the survey", Rabbit::survey(url, SHARDS, &pools)).await.expect("the broker is there")
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_broker_in_order_is_told_with_its_version() {
    let (_rabbit, url) = fleet("surveyed").await;
    let found = look(&url).await;
    assert!(found.server.as_ref().is_some_and(|server| server.starts_with("RabbitMQ ")), "{found:?}");
    let well = Survey { server: found.server.clone(), dead: Some(0), ..Survey::default() };
    assert_eq!(found, well);
    Outside::connect(&url).await.put(QUEUE_DEAD, b"a letter").await;
    until("the letter", async || (look(&url).await.dead == Some(1)).then_some(())).await;
    assert_eq!(look(&url).await.dead, Some(1), "it is counted, and not taken");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_is_missing_is_named_and_not_made() {
    let url = Node::shared().vhost("blank");
    for _ in 0..2 {
        let found = look(&url).await;
        assert_eq!(found.missing.len(), ALL, "{found:?}");
        assert!(found.wrong.is_empty() && found.dead.is_none(), "{found:?}");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_has_other_arguments_is_named_with_the_remedy() {
    let url = Node::shared().vhost("otherwise");
    let outside = Outside::connect(&url).await;
    let lane = shard_queue(Shard(1), Lane::Work);
    outside.occupy(QUEUE_DEAD).await;
    outside.occupy(&lane).await;
    let found = look(&url).await;
    assert_eq!(found.missing.len(), ALL - 2, "{found:?}");
    assert_eq!(found.wrong.len(), 2, "{found:?}");
    for (name, told) in [QUEUE_DEAD, lane.as_str()].into_iter().zip(&found.wrong) {
        assert!(told.contains(name) && told.contains("delete it"), "{told}");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn queues_of_tasks_are_looked_at_for_the_pools_that_are_named() {
    let (rabbit, url) = fleet("pools").await;
    rabbit.tasks().open("python").await.expect("the broker is there");
    let outside = Outside::connect(&url).await;
    outside.occupy(&task_queue("other:rust")).await;
    let found = look_with(&url, &["python", "other:rust", "absent"]).await;
    assert_eq!(found.missing, [task_queue("absent")], "{found:?}");
    let [wrong] = &found.wrong[..] else { panic!("{found:?}") };
    assert!(wrong.contains("stepfleet.tasks.other:rust") && wrong.contains("delete it"), "{wrong}");
    let found = look(&url).await;
    assert!(found.missing.is_empty() && found.wrong.is_empty(), "nobody asked for them: {found:?}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_broker_that_is_down_is_told_at_once() {
    let listener = std::net::TcpListener::bind("127.0.0.1:0").expect("a port");
    let port = listener.local_addr().expect("an address").port();
    drop(listener);
    let began = Instant::now();
    let url = format!("amqp://me:s3cret@127.0.0.1:{port}/");
    let failure = Rabbit::survey(&url, SHARDS, &[]).await.expect_err("it is down");
    assert!(failure.retriable && failure.message.contains(&format!("127.0.0.1:{port}")), "{failure}");
    assert!(!failure.message.contains("s3cret"), "{failure}");
    assert!(began.elapsed() < Duration::from_secs(5), "{:?}", began.elapsed());
}
