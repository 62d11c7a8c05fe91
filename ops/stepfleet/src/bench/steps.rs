//! Durable steps per second: of one session alone, and of many at once.

use std::time::Instant;

use anyhow::Result;
use schemas::session::SessionStatus;
use serde_json::{Value, json};

use super::rig::{Rig, create};

const LONE_STEPS: u64 = 5_000;
/// The job of the comparison: 50 steps with about 500 B of state and 200 B of text.
const STEPS: u64 = 50;
const STATE_BYTES: u64 = 500;
const TEXT_BYTES: u64 = 200;
/// Each figure is the median of so many runs.
const RUNS: usize = 3;

/// One session, as fast as it goes.
pub async fn lone() -> Result<()> {
    let rig = Rig::start().await?;
    let payload = json!({ "moniker": "bench", "config": { "steps": LONE_STEPS, "state_bytes": 0, "text_bytes": 16 } });
    measure(&rig, "lone_session_steps_per_s", 1, LONE_STEPS, payload).await?;
    rig.stop().await;
    Ok(())
}

/// Many sessions, from the acceptance of the first to the end of the last.
pub async fn many(sessions: u64) -> Result<()> {
    let rig = Rig::start().await?;
    let payload = json!({ "moniker": "bench", "config": { "steps": STEPS, "state_bytes": STATE_BYTES, "text_bytes": TEXT_BYTES } });
    measure(&rig, "durable_steps_per_s", sessions, STEPS, payload).await?;
    rig.stop().await;
    Ok(())
}

async fn measure(rig: &Rig, metric: &str, sessions: u64, steps: u64, payload: Value) -> Result<()> {
    let mut rates = Vec::with_capacity(RUNS);
    for run in 0..RUNS as u64 {
        let bodies = (0..sessions).map(|n| create(&format!("bench-{run}-{n}"), payload.clone()));
        let started = Instant::now();
        rig.accept(bodies).await?;
        rig.wait_count(SessionStatus::Completed, (run + 1) * sessions).await?;
        rates.push((sessions * steps) as f64 / started.elapsed().as_secs_f64());
    }
    rates.sort_by(f64::total_cmp);
    rig.report(json!({
        "metric": metric, "value": rates[RUNS / 2].round(), "unit": "steps/s", "n": RUNS,
        "min": rates[0].round(), "max": rates[RUNS - 1].round(),
        "sessions": sessions, "steps_each": steps,
    }))
}
