//! All dead letters at once: more than a list shows, and none of them lost, whatever happens on the way.

use std::collections::BTreeMap;
use std::sync::Arc;

use domain::ports::{Content, Deed, Sweep, Swept, Told};
use lapin::BasicProperties;
use lapin::types::{AMQPValue, FieldTable};
use schemas::topology::{QUEUE_DEAD, task_queue};
use testkit::contract::queue::{SHARDS, soon};
use tokio::sync::watch;

use super::{Node, Outside, Rabbit, fleet, next, until};

/// Beyond what a list shows.
const MANY: u64 = 2_500;
/// So many that there is time to interrupt it.
const LONG: u64 = 10_000;

fn letter_from(n: u64, reason: &str, origin: &str) -> (Vec<u8>, BasicProperties) {
    let mut headers = FieldTable::default();
    headers.insert("stepfleet-reason".into(), AMQPValue::LongString(reason.into()));
    headers.insert("stepfleet-origin".into(), AMQPValue::LongString(origin.into()));
    let properties = BasicProperties::default().with_message_id(format!("m-{n}").into()).with_headers(headers);
    (format!("letter {n}").into_bytes(), properties)
}

fn letter(n: u64, reason: &str) -> (Vec<u8>, BasicProperties) {
    letter_from(n, reason, "stepfleet.ingress")
}

fn all(deed: Deed) -> Sweep {
    Sweep { deed, reason: None }
}

fn nobody() -> Told {
    Arc::new(|_: Swept| {})
}

fn progress() -> (Told, watch::Receiver<Swept>) {
    let (told, news) = watch::channel(Swept::default());
    let tell = move |swept: Swept| {
        told.send_replace(swept);
    };
    (Arc::new(tell), news)
}

/// How often each message came to the ingress, once so many have come.
async fn arrivals(rabbit: &Rabbit, count: u64) -> BTreeMap<String, u64> {
    let mut came = BTreeMap::new();
    let arriving = async {
        let mut ingress = rabbit.queue().consume_ingress().await.expect("a consumer");
        while (came.len() as u64) < count {
            let Some(delivery) = ingress.next().await else {
                ingress = rabbit.queue().consume_ingress().await.expect("a consumer");
                continue;
            };
            let Content::Foreign(foreign) = delivery.content else { panic!("nobody else published") };
            *came.entry(foreign.message_id.expect("it kept its id")).or_default() += 1;
            ingress.ack(delivery.tag).await.expect("the channel is open");
        }
    };
    soon("the letters", arriving).await;
    came
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_letter_behind_all_that_a_list_shows_is_reached() {
    let (rabbit, url) = fleet("far").await;
    let (outside, dead) = (Outside::connect(&url).await, rabbit.dead_letters());
    // The same letter has the same id wherever it lies.
    let (body, properties) = letter(MANY, "the last");
    outside.put_as(QUEUE_DEAD, &body, properties.clone()).await;
    let last = until("the letter", async || dead.list(1).await.unwrap().pop()).await;
    assert_eq!(dead.discard(&last.id).await, Ok(true));
    outside.put_many(QUEUE_DEAD, MANY, |n| letter(n, "many")).await;
    outside.put_as(QUEUE_DEAD, &body, properties).await;
    let listed = dead.list(1_000).await.unwrap();
    assert!(listed.len() == 1_000 && listed.iter().all(|letter| letter.id != last.id));
    assert_eq!(dead.get(&last.id).await, Ok(Some(last.clone())));
    assert_eq!(dead.redrive(&last.id).await, Ok(true));
    assert_eq!(dead.get(&last.id).await, Ok(None));
    assert_eq!(arrivals(&rabbit, 1).await, BTreeMap::from([(format!("m-{MANY}"), 1)]));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn those_of_a_reason_are_sent_back_once_and_the_others_thrown_away() {
    let (rabbit, url) = fleet("swept").await;
    let (outside, dead) = (Outside::connect(&url).await, rabbit.dead_letters());
    let reason = |n: u64| if n.is_multiple_of(5) { "too late" } else { "too early" };
    outside.put_many(QUEUE_DEAD, MANY, |n| letter(n, reason(n))).await;
    let (told, news) = progress();
    let early = Sweep { deed: Deed::Redrive, reason: Some("early".to_owned()) };
    let swept = soon("a sweep", dead.sweep(early.clone(), told)).await.unwrap();
    assert_eq!(swept, Swept { done: 2_000, kept: 500, stuck: 0 });
    assert_eq!(*news.borrow(), swept, "it was told");
    let meant = (0..MANY).filter(|n| !n.is_multiple_of(5));
    let expected: BTreeMap<String, u64> = meant.map(|n| (format!("m-{n}"), 1)).collect();
    assert_eq!(arrivals(&rabbit, 2_000).await, expected);
    let left = dead.list(1_000).await.unwrap();
    let early_ones = left.iter().filter(|letter| letter.reason != "too late").count();
    assert_eq!((left.len(), early_ones), (500, 0));
    assert_eq!(dead.sweep(early, nobody()).await, Ok(Swept { kept: 500, ..Swept::default() }));
    assert_eq!(dead.sweep(all(Deed::Discard), nobody()).await, Ok(Swept { done: 500, ..Swept::default() }));
    assert_eq!(dead.list(10).await, Ok(Vec::new()));
    assert_eq!(dead.sweep(all(Deed::Discard), nobody()).await, Ok(Swept::default()));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_dies_again_meanwhile_is_not_sent_back_twice() {
    let (rabbit, url) = fleet("again").await;
    let dead = rabbit.dead_letters();
    Outside::connect(&url).await.put_many(QUEUE_DEAD, 600, |n| letter(n, "once")).await;
    let mut ingress = rabbit.queue().consume_ingress().await.unwrap();
    let burying = tokio::spawn(async move {
        for _ in 0..600 {
            let tag = next(&mut ingress).await.tag;
            ingress.bury(tag, "twice").await.unwrap();
        }
    });
    let swept = soon("a sweep", dead.sweep(all(Deed::Redrive), nobody())).await.unwrap();
    assert_eq!(swept, Swept { done: 600, ..Swept::default() });
    soon("the burials", burying).await.unwrap();
    let letters = dead.list(1_000).await.unwrap();
    assert!(letters.len() == 600 && letters.iter().all(|letter| letter.reason == "twice"));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn letters_whose_queue_is_gone_hold_up_no_others() {
    let (rabbit, url) = fleet("homeless").await;
    let (outside, dead) = (Outside::connect(&url).await, rabbit.dead_letters());
    let queue = task_queue("gone");
    outside.put_many(QUEUE_DEAD, 3, |n| if n == 1 { letter_from(n, "lost", &queue) } else { letter(n, "lost") }).await;
    let swept = soon("a sweep", dead.sweep(all(Deed::Redrive), nobody())).await;
    assert_eq!(swept, Ok(Swept { done: 2, kept: 0, stuck: 1 }));
    assert_eq!(arrivals(&rabbit, 2).await.len(), 2);
    let stuck = dead.list(10).await.unwrap().pop().expect("it is left");
    let failure = dead.redrive(&stuck.id).await.expect_err("it has nowhere to go");
    assert!(failure.retriable && failure.message.contains(&queue), "{failure}");
    assert_eq!(rabbit.queue().ping().await, Ok(()), "and nothing else suffers from it");
    rabbit.tasks().open("gone").await.unwrap();
    assert_eq!(dead.redrive(&stuck.id).await, Ok(true));
    assert_eq!(until("the letter", async || outside.take(&queue).await).await, b"letter 1");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_broker_that_dies_on_the_way_loses_no_letter() {
    let node = Node::start();
    let rabbit = Rabbit::start(&node.url(), SHARDS).unwrap();
    soon("the broker", rabbit.ready()).await.unwrap();
    let dead = rabbit.dead_letters();
    Outside::connect(&node.url()).await.put_many(QUEUE_DEAD, LONG, |n| letter(n, "many")).await;
    let (told, mut news) = progress();
    let sweeping = tokio::spawn({
        let dead = dead.clone();
        async move { dead.sweep(all(Deed::Redrive), told).await }
    });
    drop(soon("a beginning", news.wait_for(|swept| swept.done > 0)).await.unwrap());
    node.kill();
    let failure = soon("the end", sweeping).await.unwrap().expect_err("the broker is away");
    assert!(failure.retriable, "{failure}");
    let counted = news.borrow().done;
    assert!(0 < counted && counted < LONG, "{counted}");
    node.start_again();
    until("the rest", async || dead.sweep(all(Deed::Redrive), nobody()).await.ok()).await;
    let came = arrivals(&rabbit, LONG).await;
    let twice: u64 = came.values().map(|times| times - 1).sum();
    assert!(twice < LONG / 10, "few come again: {twice}");
    assert_eq!(dead.list(10).await, Ok(Vec::new()));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn whoever_goes_away_leaves_the_rest_where_it_is() {
    let (rabbit, url) = fleet("left").await;
    let dead = rabbit.dead_letters();
    Outside::connect(&url).await.put_many(QUEUE_DEAD, LONG, |n| letter(n, "many")).await;
    let (told, mut news) = progress();
    tokio::select! {
        swept = dead.sweep(all(Deed::Redrive), told) => panic!("that was quick: {swept:?}"),
        begun = news.wait_for(|swept| swept.done > 0) => drop(begun.unwrap()),
    }
    let left = until("its end", async || dead.sweep(all(Deed::Discard), nobody()).await.ok()).await;
    assert!(0 < left.done && left.done < LONG, "{left:?}");
    let came = arrivals(&rabbit, LONG - left.done).await;
    assert!(came.values().all(|times| *times == 1), "each is in one place");
}
