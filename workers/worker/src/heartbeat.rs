//! What a worker says of itself to the others, again and again, and what it hears in return.

use domain::failure::Failure;
use domain::ports::{Leases, WorkerInfo};
use schemas::id::WorkerId;

pub(crate) struct Heartbeat {
    info: WorkerInfo,
    /// It was said that the schema is newer than this program.
    is_told: bool,
}

impl Heartbeat {
    pub fn new(worker: &WorkerId, host: &str, version: &str, roles: &[String]) -> Self {
        let info = WorkerInfo {
            worker: worker.clone(),
            host: host.to_owned(),
            version: version.to_owned(),
            roles: roles.to_vec(),
            draining: false,
            heartbeat_age_ms: 0,
        };
        Self { info, is_told: false }
    }

    /// Says that this worker is there, and whether it leaves. Answers whether it is to: because it said so, or
    /// because somebody wants it to.
    pub async fn beat(&mut self, leases: &dyn Leases, leaves: bool) -> Result<bool, Failure> {
        self.info.draining = leaves;
        let heard = leases.heartbeat(&self.info).await?;
        // Migrations only add, so that the release before goes on beside the new one; but it cannot start again.
        if let Some(found) = heard.newer_schema.filter(|_| !std::mem::replace(&mut self.is_told, true)) {
            tracing::warn!(
                schema = found,
                "the database was migrated for a newer release; this worker goes on until it is replaced by one"
            );
        }
        Ok(heard.draining)
    }
}
