//! What nobody can use goes to the dead letters and holds nothing up.

use domain::ports::{Content, Foreign};
use lapin::BasicProperties;
use schemas::action::Lane;
use schemas::id::Shard;
use schemas::limits::ACTION_BYTES_MAX;
use schemas::topology::{APP_ID, QUEUE_DEAD, QUEUE_INGRESS, TYPE_ACTION, shard_queue};
use testkit::contract::queue::{Stranger, input};

use super::{Outside, fleet, next, until};

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn messages_without_sense_are_buried_and_what_follows_comes() {
    let (rabbit, url) = fleet("senseless").await;
    let outside = Outside::connect(&url).await;
    let queue = shard_queue(Shard(0), Lane::Work);
    let ours = BasicProperties::default().with_app_id(APP_ID.into());
    outside.put_as(&queue, b"{\"half\":", ours.clone().with_type(TYPE_ACTION.into())).await;
    outside.put_as(&queue, b"{}", ours.clone().with_type("action.v99".into())).await;
    outside.put(&queue, &vec![b'x'; ACTION_BYTES_MAX + (128 << 10)]).await;
    outside.put(QUEUE_DEAD, b"a stranger's own").await;
    rabbit.queue().publish(&[input(0, 1)]).await.unwrap();
    let mut deliveries = rabbit.queue().consume(Shard(0), Lane::Work).await.unwrap();
    assert_eq!(next(&mut deliveries).await.content, Content::Action(input(0, 1)));
    let dead = rabbit.dead_letters();
    let letters = until("four dead letters", async || {
        let letters = dead.list(10).await.unwrap();
        (letters.len() == 4).then_some(letters)
    })
    .await;
    for reason in ["is none", "action.v99", "too large", "somebody else"] {
        let letter = letters.iter().find(|letter| letter.reason.contains(reason));
        let letter = letter.unwrap_or_else(|| panic!("no letter says {reason:?}: {letters:?}"));
        assert!(letter.origin == queue || reason == "somebody else", "{letter:?}");
        assert!(reason == "somebody else" || letter.at_ms > 1_700_000_000_000, "{letter:?}");
    }
    // The stranger's letter has no origin: it may only go where strangers put things.
    let stranger = letters.iter().find(|letter| letter.origin.is_empty()).unwrap();
    assert_eq!(dead.redrive(&stranger.id).await, Ok(true));
    let mut ingress = rabbit.queue().consume_ingress().await.unwrap();
    let foreign = next(&mut ingress).await;
    let theirs = Foreign { body: b"a stranger's own".to_vec(), message_id: None };
    assert_eq!(foreign.content, Content::Foreign(theirs));
    ingress.bury(foreign.tag, "still not").await.unwrap();
    let letters = dead.list(10).await.unwrap();
    let again = letters.iter().find(|letter| letter.reason == "still not").expect("it is back");
    assert_eq!(again.origin, QUEUE_INGRESS);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn many_dead_letters_can_be_looked_at_again_and_again() {
    let (rabbit, url) = fleet("many").await;
    let outside = Outside::connect(&url).await;
    for n in 0..300 {
        outside.put(QUEUE_DEAD, format!("letter {n}").as_bytes()).await;
    }
    let dead = rabbit.dead_letters();
    let first = dead.list(1_000).await.unwrap();
    assert_eq!(first.len(), 300);
    for _ in 0..5 {
        assert_eq!(dead.list(1_000).await.unwrap(), first);
    }
    // Two that look at a time do not hide letters from each other.
    let (one, two) = tokio::join!(dead.list(1_000), dead.get(&first[299].id));
    assert_eq!((one.unwrap().len(), two.unwrap().as_ref()), (300, first.last()));
    for letter in &first[..3] {
        assert_eq!(dead.discard(&letter.id).await, Ok(true));
    }
    assert_eq!(dead.list(1_000).await.unwrap(), first[3..]);
}
