//! From a create request over HTTP to its first committed step, on an idle fleet.

use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};
use schemas::api::AcceptedBody;
use serde_json::json;

use super::rig::{Rig, create, key, percentile_ms};

const WARM_UP: usize = 20;
const STEP_MAX: Duration = Duration::from_secs(10);

pub async fn first_step(samples: usize) -> Result<()> {
    let rig = Rig::start().await?;
    let (mut to_step, mut to_accept) = (Vec::new(), Vec::new());
    for n in 0..WARM_UP + samples {
        let id = format!("first-{n}");
        let mut watch = rig.fleet.parts.live.subscribe(&key(&id)?);
        let body = create(&id, json!({ "moniker": "count", "config": { "until": 1 } }));
        let started = Instant::now();
        let _: AcceptedBody = rig.client.post("/api/actions", &body).await?;
        let accepted = started.elapsed();
        loop {
            let notice = tokio::time::timeout(STEP_MAX, watch.next()).await.context("no step came")?;
            match notice {
                // A notice is sent after its commit: the step is durable.
                Some(notice) if notice.entry.as_ref().is_some_and(|entry| !entry.steps.is_empty()) => break,
                Some(_) => {}
                None => bail!("the notices ended"),
            }
        }
        if n >= WARM_UP {
            to_step.push(started.elapsed());
            to_accept.push(accepted);
        }
    }
    to_step.sort_unstable();
    to_accept.sort_unstable();
    rig.report(json!({
        "metric": "accept_to_first_step_ms", "value": percentile_ms(&to_step, 50), "unit": "ms", "n": samples,
        "p50": percentile_ms(&to_step, 50), "p99": percentile_ms(&to_step, 99),
        "accept_p50": percentile_ms(&to_accept, 50), "accept_p99": percentile_ms(&to_accept, 99),
    }))?;
    rig.stop().await;
    Ok(())
}
