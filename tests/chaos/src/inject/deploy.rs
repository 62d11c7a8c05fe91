//! What operators do: restart everything in turn, drain a worker, add one and take it away.

use std::time::{Duration, Instant};

use anyhow::{Result, bail};
use tokio::time::sleep;

use super::Hands;

/// A drained worker has handed over its shards by then.
const DRAIN_MAX: Duration = Duration::from_secs(45);

impl Hands {
    pub(super) async fn rolling_restart(&self) -> Result<String> {
        let names = [self.plan.shape.workers(), self.plan.shape.dispatchers()].concat();
        let mut slowest = Duration::ZERO;
        for name in &names {
            let member = self.fleet.member(name)?;
            let mut member = member.lock().await;
            slowest = slowest.max(member.stop().await?);
            member.start()?;
            member.await_ready().await?;
        }
        Ok(format!("the slowest end took {} ms", slowest.as_millis()))
    }

    /// A worker that comes, works for a moment, and goes.
    pub(super) async fn guest(&self, cycles: u32, kill: bool, stay: Duration) -> Result<String> {
        let member = self.fleet.member("guest")?;
        let mut member = member.lock().await;
        let mut slowest = Duration::ZERO;
        for _ in 0..cycles {
            member.start()?;
            member.await_ready().await?;
            sleep(stay).await;
            if kill {
                member.kill().await?;
            } else {
                slowest = slowest.max(member.stop().await?);
            }
            sleep(stay / 4).await;
        }
        Ok(if kill { String::new() } else { format!("the slowest end took {} ms", slowest.as_millis()) })
    }

    /// `stepfleet drain`, until the worker has no shard; then it ends and another one comes.
    pub(super) async fn drain(&self, name: &str) -> Result<String> {
        let member = self.fleet.member(name)?;
        let mut member = member.lock().await;
        let Some(worker) = member.worker() else { bail!("{name} has no id yet") };
        let started = Instant::now();
        while let Err(error) = self.fleet.stepfleet(&["drain", &worker]).await {
            if started.elapsed() > DRAIN_MAX {
                return Err(error);
            }
            sleep(Duration::from_millis(500)).await;
        }
        let handed_over = loop {
            let left = self.watch.owned_by(&worker);
            if left.is_empty() {
                break started.elapsed();
            }
            if started.elapsed() > DRAIN_MAX {
                bail!("{name} still owns shards {left:?} {DRAIN_MAX:?} after it was drained");
            }
            sleep(Duration::from_millis(200)).await;
        };
        // It may have ended by itself, in order.
        if let Some(status) = member.ended()
            && !status.success()
        {
            bail!("{name} was drained and ended with {status}");
        }
        let ended = member.stop().await?;
        member.start()?;
        member.await_ready().await?;
        Ok(format!("handed over within {} ms, ended within {} ms", handed_over.as_millis(), ended.as_millis()))
    }
}
