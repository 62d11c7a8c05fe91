//! Memory with many idle sessions against an empty fleet.

use std::time::Duration;

use anyhow::{Context, Result};
use host::probe;
use schemas::session::SessionStatus;
use serde_json::json;

use super::rig::{Rig, create};

/// Sessions leave memory some seconds after their last step.
const SETTLE: Duration = Duration::from_secs(20);

pub async fn idle_sessions(sessions: u64) -> Result<()> {
    let rig = Rig::start().await?;
    // Both figures are taken after the same work: the first use of a code path keeps its memory.
    fill(&rig, 0, 100).await?;
    let empty = resident()?;
    fill(&rig, 100, sessions).await?;
    let full = resident()?;
    let mib = |bytes: u64| (bytes as f64 / f64::from(1 << 20)).round();
    rig.report(json!({
        "metric": "idle_sessions_rss_mib", "value": mib(full.saturating_sub(empty)), "unit": "MiB", "n": 1,
        "sessions": sessions, "empty_mib": mib(empty), "full_mib": mib(full),
    }))?;
    rig.stop().await;
    Ok(())
}

/// Creates sessions that then wait for input, and waits until they are out of the way.
async fn fill(rig: &Rig, from: u64, to: u64) -> Result<()> {
    rig.accept((from..to).map(|n| create(&format!("idle-{n}"), json!({ "moniker": "echo" })))).await?;
    rig.wait_count(SessionStatus::Running, to).await?;
    tokio::time::sleep(SETTLE).await;
    Ok(())
}

fn resident() -> Result<u64> {
    probe::resident_bytes(std::process::id()).context("no /proc here")
}
