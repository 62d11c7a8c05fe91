//! Tasks on a real broker, taken by a client that is not ours.

use lapin::options::BasicNackOptions;
use schemas::api::TaskBody;
use schemas::id::{ConversationId, OperationId, SessionId, TurnId};
use schemas::topology::task_queue;
use serde_json::json;

use super::{Outside, fleet, until};

fn task(id: &str) -> TaskBody {
    TaskBody {
        operation_id: OperationId::parse(id).expect("an id"),
        idempotency_key: format!("default:{id}"),
        tool: "weather".to_owned(),
        tool_call_id: "c1".to_owned(),
        session_id: SessionId::parse("s1").expect("an id"),
        conversation_id: ConversationId::parse("c1").expect("an id"),
        turn_id: TurnId::parse("t1").expect("an id"),
        attempt: 1,
        max_attempts: 1,
        until: String::new(),
        input: json!({"city": "Bern"}),
        settings: json!({}),
        messages: None,
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn tasks_wait_for_whoever_takes_them() {
    let (rabbit, url) = fleet("tasks").await;
    let tasks = rabbit.tasks();
    for id in ["o1", "o2"] {
        tasks.send("python", &task(id)).await.expect("the broker takes it");
    }
    let outside = Outside::connect(&url).await;
    for id in ["o1", "o2"] {
        let body = until("a task", async || outside.take(&task_queue("python")).await).await;
        let taken: TaskBody = serde_json::from_slice(&body).expect("a task");
        assert_eq!(taken, task(id));
    }
}

/// Put back, or held by a worker that is gone: it is the next one's, as it was.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_is_not_acknowledged_is_anothers() {
    let (rabbit, url) = fleet("returned").await;
    rabbit.tasks().send("python", &task("o1")).await.expect("the broker takes it");
    let queue = task_queue("python");
    let (first, second) = (Outside::connect(&url).await, Outside::connect(&url).await);
    let held = until("a task", async || first.hold(&queue).await).await;
    assert!(second.take(&queue).await.is_none(), "somebody has it");
    held.nack(BasicNackOptions { multiple: false, requeue: true }).await.expect("put back");
    let _held = until("what was put back", async || second.hold(&queue).await).await;
    second.leave().await;
    let body = until("what was left", async || first.take(&queue).await).await;
    let taken: TaskBody = serde_json::from_slice(&body).expect("a task");
    assert_eq!(taken, task("o1"));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn workers_may_wait_before_there_is_a_task() {
    let (rabbit, url) = fleet("waiting").await;
    rabbit.tasks().open("python").await.expect("the broker makes it");
    let outside = Outside::connect(&url).await;
    assert!(outside.take(&task_queue("python")).await.is_none(), "a queue with nothing in it");
}
