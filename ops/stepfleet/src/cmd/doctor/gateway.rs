//! What the gateway says that is named by `--url` or `STEPFLEET_URL`: of a fleet elsewhere, all there is to see.

use std::time::Duration;

use anyhow::{Result, anyhow};
use schemas::api::HealthBody;

use super::report::{Check, Report};
use crate::client::Client;

/// A gateway that does not answer by then counts as down.
const ANSWER_MAX: Duration = Duration::from_secs(10);

/// Asks the gateway how its fleet is. `alone`: nothing else is looked at, so what it says decides.
pub async fn look(url: &str, alone: bool, report: &mut Report) {
    let asked = tokio::time::timeout(ANSWER_MAX, health(url)).await;
    let told = asked.unwrap_or_else(|_| Err(anyhow!("{url} does not answer within {} s", ANSWER_MAX.as_secs())));
    report.note("gateway", told.map(|health| verdict(url, &health, alone)));
}

/// Anybody may ask for it.
async fn health(url: &str) -> Result<HealthBody> {
    Client::new(url.trim_end_matches('/'), "")?.get("/health", &[]).await
}

fn verdict(url: &str, health: &HealthBody, alone: bool) -> Check {
    let HealthBody { status, version, shards_owned, shards, .. } = health;
    let mut detail = format!("{url}: {status}, version {version}, {shards_owned} of {shards} shards owned");
    for part in health.components.iter().filter(|part| !part.ok) {
        detail.push_str(&format!("; {}: {}", part.name, part.detail));
    }
    match (status == "ok", alone) {
        (true, _) => Check::new("gateway", true, detail),
        // What is behind it is looked at, too, and says what is wrong.
        (false, false) => Check::warning("gateway", detail),
        (false, true) => Check::new("gateway", false, detail),
    }
}

#[cfg(test)]
mod tests {
    use schemas::api::ComponentHealth;

    use super::*;

    #[test]
    fn a_degraded_fleet_is_unwell_where_nothing_else_is_seen() {
        let mut health = HealthBody {
            status: "ok".into(),
            version: "1.2.3".into(),
            mode: "fleet".into(),
            provider: "scripted".into(),
            components: vec![ComponentHealth { name: "queue".into(), ok: true, detail: "takes actions".into() }],
            live_sessions: 0,
            pending_actions: 0,
            queue_lag_ms: 0,
            journal_lag_rows: 0,
            shards_owned: 8,
            shards: 8,
        };
        let told = verdict("http://far", &health, true);
        assert!(told.well && !told.warning && told.detail.contains("version 1.2.3"), "{told:?}");
        health.status = "degraded".into();
        health.components[0].ok = false;
        for (alone, well) in [(true, false), (false, true)] {
            let told = verdict("http://far", &health, alone);
            assert_eq!((told.well, told.warning), (well, well), "{told:?}");
            assert!(told.detail.contains("queue: takes actions"), "{told:?}");
        }
    }
}
