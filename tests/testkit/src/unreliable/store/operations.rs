//! Operations through faults.

use async_trait::async_trait;
use domain::failure::Failure;
use domain::ports::{Claim, Ended, Ending, Hold, OperationQuery, OperationRow, Operations};
use schemas::id::{Namespace, OperationId};

use crate::unreliable::{Port, Unreliable};

#[async_trait]
impl<P: Operations + ?Sized> Operations for Unreliable<P> {
    async fn claim(&self, pool: &str, claimant: &str, hold: Hold, limit: usize) -> Result<Vec<OperationRow>, Failure> {
        let claimed = self.inner.claim(pool, claimant, hold, limit);
        self.faults.call(Port::Operations, "operations.claim", claimed).await
    }

    async fn release(&self, pool: &str) -> Result<u64, Failure> {
        self.faults.call(Port::Operations, "operations.release", self.inner.release(pool)).await
    }

    async fn end(
        &self,
        namespace: &Namespace,
        id: &OperationId,
        claim: Option<Claim<'_>>,
        ended: Ended,
    ) -> Result<Ending, Failure> {
        let ending = self.inner.end(namespace, id, claim, ended);
        self.faults.call(Port::Operations, "operations.end", ending).await
    }

    async fn extend(
        &self,
        namespace: &Namespace,
        id: &OperationId,
        claimant: &str,
        hold_ms: u64,
    ) -> Result<bool, Failure> {
        let extended = self.inner.extend(namespace, id, claimant, hold_ms);
        self.faults.call(Port::Operations, "operations.extend", extended).await
    }

    async fn operation(&self, namespace: &Namespace, id: &OperationId) -> Result<Option<OperationRow>, Failure> {
        self.faults.call(Port::Operations, "operations.operation", self.inner.operation(namespace, id)).await
    }

    async fn operations(&self, query: &OperationQuery) -> Result<Vec<OperationRow>, Failure> {
        self.faults.call(Port::Operations, "operations.operations", self.inner.operations(query)).await
    }

    async fn expired_approvals(&self, limit: usize) -> Result<Vec<OperationRow>, Failure> {
        let expired = self.inner.expired_approvals(limit);
        self.faults.call(Port::Operations, "operations.expired_approvals", expired).await
    }

    async fn untaken(&self, limit: usize) -> Result<Vec<OperationRow>, Failure> {
        self.faults.call(Port::Operations, "operations.untaken", self.inner.untaken(limit)).await
    }

    async fn overdue(&self, limit: usize) -> Result<Vec<OperationRow>, Failure> {
        self.faults.call(Port::Operations, "operations.overdue", self.inner.overdue(limit)).await
    }

    async fn waiting_ms(&self, pool: &str) -> Result<Option<u64>, Failure> {
        self.faults.call(Port::Operations, "operations.waiting_ms", self.inner.waiting_ms(pool)).await
    }
}
