//! Tasks for workers of others: `stepfleet.tasks.<pool>`. Any client may consume them and put the
//! `tool_result` on the ingress queue.

use std::collections::HashSet;
use std::sync::{Mutex, PoisonError};

use async_trait::async_trait;
use domain::failure::Failure;
use domain::ports::TaskQueue;
use schemas::api::TaskBody;
use schemas::topology::{TYPE_TASK, task_queue};

use super::link::Link;
use super::message::{Message, ours};
use super::publisher::Publisher;
use super::{fault, topology};

pub(super) struct RabbitTasks {
    publishing: Link,
    publisher: Publisher,
    /// Pools whose queue was declared by this process: it outlives connections.
    declared: Mutex<HashSet<String>>,
}

impl RabbitTasks {
    pub fn new(publishing: Link, publisher: Publisher) -> Self {
        Self { publishing, publisher, declared: Mutex::default() }
    }

    async fn declare(&self, queue: &str) -> Result<(), Failure> {
        if self.declared.lock().unwrap_or_else(PoisonError::into_inner).contains(queue) {
            return Ok(());
        }
        // A connection that takes no messages leaves a call without an answer for as long as that lasts.
        self.publisher.ping()?;
        let channel = self.publishing.now()?.connection.create_channel().await;
        let channel = channel.map_err(|error| fault::failure("cannot open a channel", &error))?;
        topology::tasks(&channel, queue).await?;
        // The queue is there; that the channel goes too is of no matter.
        let _ = channel.close(200, "OK".into()).await;
        self.declared.lock().unwrap_or_else(PoisonError::into_inner).insert(queue.to_owned());
        Ok(())
    }
}

#[async_trait]
impl TaskQueue for RabbitTasks {
    async fn open(&self, pool: &str) -> Result<(), Failure> {
        self.declare(&task_queue(pool)).await
    }

    async fn send(&self, pool: &str, task: &TaskBody) -> Result<(), Failure> {
        let queue = task_queue(pool);
        self.declare(&queue).await?;
        let body = serde_json::to_vec(task)
            .map_err(|error| Failure::internal(format!("task {} cannot be written: {error}", task.operation_id)))?;
        let properties = ours(TYPE_TASK).with_message_id(task.operation_id.as_str().into());
        let sent = self.publisher.publish(vec![Message::to_queue(queue.as_str().into(), properties, body)]).await;
        if sent.is_err() {
            // Somebody may have deleted it.
            self.declared.lock().unwrap_or_else(PoisonError::into_inner).remove(&queue);
        }
        sent
    }
}
