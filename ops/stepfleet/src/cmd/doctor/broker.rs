//! The broker: reachable, and its queues as this program declares them.

use std::time::Duration;

use broker::Rabbit;
use domain::failure::Failure;
use host::secret::Secret;

use super::report::Report;
use crate::fleet::Store;

/// A broker that takes longer counts as away.
const PATIENCE: Duration = Duration::from_secs(15);
/// Dead letters that are counted at most.
const DEAD_MAX: usize = 1_000;

pub async fn look(url: &Secret, store: &Store, report: &mut Report) {
    match ready(url, store).await {
        Ok(rabbit) => {
            report.add("broker", true, "takes connections; its queues are as declared");
            dead(&rabbit, report).await;
        }
        Err(error) => report.add("broker", false, error.to_string()),
    }
}

async fn ready(url: &Secret, store: &Store) -> Result<Rabbit, Failure> {
    let rabbit = Rabbit::start(url.expose(), store.leases.shard_count().await?)?;
    match tokio::time::timeout(PATIENCE, rabbit.ready()).await {
        Ok(ready) => ready.map(|()| rabbit),
        Err(_) => Err(Failure::unavailable(format!("not ready within {} s", PATIENCE.as_secs()))),
    }
}

async fn dead(rabbit: &Rabbit, report: &mut Report) {
    match rabbit.dead_letters().list(DEAD_MAX).await {
        Ok(letters) if letters.is_empty() => report.add("dead letters", true, "none"),
        Ok(letters) => {
            let count = letters.len();
            let more = if count == DEAD_MAX { " or more" } else { "" };
            report.add("dead letters", false, format!("{count}{more}; `stepfleet dead list` shows them"));
        }
        Err(error) => report.add("dead letters", false, error.to_string()),
    }
}
