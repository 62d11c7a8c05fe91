//! Pause of a session whose shard works on a long backlog of inputs of other sessions.

use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};
use domain::ports::Subscription;
use schemas::session::SessionStatus;
use serde_json::{Value, json};

use super::rig::{Rig, create, key, percentile_ms};

/// Echo sessions among which the backlog is spread.
const CROWD: u64 = 100;
const PAUSES_MAX: usize = 200;
/// A pause that takes longer is lost; a slow one is a figure.
const PAUSE_MAX: Duration = Duration::from_secs(120);

pub async fn under_backlog(backlog: u64) -> Result<()> {
    // One shard: the session shares its lanes with the whole backlog.
    let rig = Rig::start_with(&[("shards", "1")]).await?;
    rig.accept((0..CROWD).map(|n| create(&format!("crowd-{n}"), json!({ "moniker": "echo" })))).await?;
    rig.accept([create("target", json!({ "moniker": "count", "loop_interval_ms": 10 }))]).await?;
    rig.wait_count(SessionStatus::Running, CROWD + 1).await?;
    rig.accept((0..CROWD).map(|n| act(&format!("crowd-{n}"), "pause", json!({})))).await?;
    rig.wait_count(SessionStatus::Paused, CROWD).await?;
    let input = |n: u64| act(&format!("crowd-{}", n % CROWD), "input", json!({ "text": format!("input {n}") }));
    rig.accept((0..backlog).map(input)).await?;
    rig.accept((0..CROWD).map(|n| act(&format!("crowd-{n}"), "resume", json!({})))).await?;
    let mut watch = rig.fleet.parts.live.subscribe(&key("target")?);
    let (mut times, mut left) = (Vec::new(), backlog);
    while times.len() < PAUSES_MAX && left > 0 {
        let started = Instant::now();
        rig.accept([act("target", "pause", json!({}))]).await?;
        until(&mut watch, SessionStatus::Paused).await?;
        times.push(started.elapsed());
        rig.accept([act("target", "resume", json!({}))]).await?;
        until(&mut watch, SessionStatus::Running).await?;
        left = rig.fleet.parts.store.ledger.stats().await?.pending;
    }
    let count = times.len();
    times.sort_unstable();
    rig.report(json!({
        "metric": "pause_under_backlog_ms", "value": percentile_ms(&times, 99), "unit": "ms", "n": count,
        "p50": percentile_ms(&times, 50), "p99": percentile_ms(&times, 99), "max": percentile_ms(&times, 100),
        "backlog": backlog, "backlog_left": left,
    }))?;
    rig.stop().await;
    Ok(())
}

fn act(session: &str, verb: &str, payload: Value) -> Value {
    json!({ "type": verb, "session_id": session, "payload": payload })
}

/// Waits for a committed change to the status.
async fn until(watch: &mut Box<dyn Subscription>, status: SessionStatus) -> Result<()> {
    loop {
        match tokio::time::timeout(PAUSE_MAX, watch.next()).await.context("no change came")? {
            Some(notice) if notice.entry.as_ref().is_some_and(|entry| entry.head.status == status) => return Ok(()),
            Some(_) => {}
            None => bail!("the notices ended"),
        }
    }
}
