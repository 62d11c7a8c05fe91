//! The first step of a paused session after a restart of the fleet: short history and long.

use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};
use schemas::session::SessionStatus;
use serde_json::json;

use super::rig::{LOOK, Rig, create, key, percentile_ms};

const SESSIONS: usize = 10;
const STEP_MAX: Duration = Duration::from_secs(30);

pub async fn after_restart(lengths: &[u64]) -> Result<()> {
    let mut rig = Rig::start().await?;
    for length in lengths {
        // Only one of them is as long as asked; the others tell cold caches from long history.
        let ids: Vec<String> = (0..SESSIONS).map(|n| format!("resume-{length}-{n}")).collect();
        for (n, id) in ids.iter().enumerate() {
            grow(&rig, id, if n == 0 { *length } else { (*length).min(1_000) }).await?;
        }
        rig = rig.restart().await?;
        let mut times = Vec::new();
        for id in &ids {
            times.push(resume(&rig, id).await?);
        }
        let first = times[0];
        times.sort_unstable();
        rig.report(json!({
            "metric": "resume_after_restart_ms", "value": percentile_ms(&[first], 50), "unit": "ms", "n": SESSIONS,
            "steps": length, "p50_of_ten": percentile_ms(&times, 50), "max_of_ten": percentile_ms(&times, 100),
        }))?;
    }
    rig.stop().await;
    Ok(())
}

/// Lets a session make at least so many steps, then pauses it.
async fn grow(rig: &Rig, id: &str, steps: u64) -> Result<()> {
    let payload =
        json!({ "moniker": "bench", "config": { "steps": steps * 1_000, "state_bytes": 500, "text_bytes": 16 } });
    rig.accept([create(id, payload)]).await?;
    let key = key(id)?;
    let mut asked = false;
    loop {
        let row = rig.fleet.parts.store.sessions.session(&key).await?.context("the session is gone")?;
        if row.head.status == SessionStatus::Paused {
            return Ok(());
        }
        if !asked && row.head.steps >= steps {
            rig.accept([json!({ "type": "pause", "session_id": id })]).await?;
            asked = true;
        }
        tokio::time::sleep(LOOK).await;
    }
}

/// From the acceptance of the resume to the next committed step.
async fn resume(rig: &Rig, id: &str) -> Result<Duration> {
    let mut watch = rig.fleet.parts.live.subscribe(&key(id)?);
    let started = Instant::now();
    rig.accept([json!({ "type": "resume", "session_id": id })]).await?;
    loop {
        match tokio::time::timeout(STEP_MAX, watch.next()).await.context("no step came")? {
            Some(notice) if notice.entry.as_ref().is_some_and(|entry| !entry.steps.is_empty()) => break,
            Some(_) => {}
            None => bail!("the notices ended"),
        }
    }
    let time = started.elapsed();
    rig.accept([json!({ "type": "destroy", "session_id": id })]).await?;
    Ok(time)
}
