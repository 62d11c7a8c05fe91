//! Tasks on a broker, for workers of others that speak AMQP.

use async_trait::async_trait;
use schemas::api::TaskBody;

use crate::failure::Failure;

#[async_trait]
pub trait TaskQueue: Send + Sync {
    /// Makes the queue of a pool, if there is none, so that workers may wait before the first task comes.
    async fn open(&self, pool: &str) -> Result<(), Failure>;

    /// Puts a claimed task on the queue `stepfleet.tasks.<pool>`, which is made if there is none. `Ok`:
    /// the broker has confirmed it. It may be there twice: `operation_id` tells.
    async fn send(&self, pool: &str, task: &TaskBody) -> Result<(), Failure>;
}
