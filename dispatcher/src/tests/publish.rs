//! From the ledger to the queue.

use std::time::Duration;

use serde_json::json;

use super::world::World;

#[tokio::test(start_paused = true)]
async fn accepted_actions_are_published_whole_and_noted() {
    let world = World::new().await;
    world.create("s1", "a1", "echo").await;
    world.post("/api/sessions/s1/input", json!({"text": "hi"})).await;
    world.until(|| world.queue.published().len() == 2).await;
    let published = world.queue.published();
    assert_eq!(published[1].payload.to_value(), json!({"text": "hi"}));
    assert_eq!((published[0].session_seq, published[1].session_seq), (1, 2));
    world.until(|| world.store.all_actions().iter().all(|rec| rec.published_at_ms.is_some())).await;
    tokio::time::sleep(Duration::from_secs(5)).await;
    assert_eq!(world.queue.published().len(), 2, "the sweeper has nothing to do");
}

#[tokio::test(start_paused = true)]
async fn what_an_outage_held_back_is_published_later() {
    let world = World::new().await;
    world.queue.outage(Duration::from_secs(10));
    world.create("s1", "a1", "echo").await;
    for n in 0..20 {
        world.post("/api/sessions/s1/input", json!({"text": n.to_string()})).await;
    }
    tokio::time::sleep(Duration::from_secs(5)).await;
    assert!(world.queue.published().is_empty());
    tokio::time::sleep(Duration::from_secs(20)).await;
    let mut seqs: Vec<u64> = world.queue.published().iter().map(|action| action.session_seq).collect();
    seqs.sort_unstable();
    assert_eq!(seqs, (1..=21).collect::<Vec<u64>>(), "each once");
    assert!(world.store.all_actions().iter().all(|rec| rec.published_at_ms.is_some()));
}

#[tokio::test(start_paused = true)]
async fn refused_and_settled_actions_are_not_published() {
    let world = World::new().await;
    world.create("s1", "a1", "count").await;
    world.create("s1", "a1", "count").await;
    world.post("/api/sessions/none/pause", json!({})).await;
    tokio::time::sleep(Duration::from_secs(5)).await;
    assert_eq!(world.queue.published().len(), 1);
}

#[tokio::test(start_paused = true)]
async fn the_tasks_end_with_the_process() {
    let world = World::new().await;
    world.create("s1", "a1", "count").await;
    assert!(world.tasks.shut_down(Duration::from_secs(5)).await);
}
