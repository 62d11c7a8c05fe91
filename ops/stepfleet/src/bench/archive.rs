//! The archive by itself: rows written per second, and the read of one session among many.

use std::time::Instant;

use anyhow::Result;
use domain::ports::{Archive, ArchiveBatch, StepQuery};
use rand::Rng;
use schemas::frame::StepToken;
use schemas::id::{AgentId, Shard};
use schemas::json::Json;
use schemas::limits::ARCHIVE_ROWS_MAX;
use schemas::record::{Entry, JournalRow, StepRecord, StepStatus};
use schemas::session::{Cause, Head, SessionStatus};
use serde_json::json;

use super::rig::{Rig, key, percentile_ms};

const STEPS_PER_SESSION: u64 = 100;
/// Steps in one journal row, as a busy session has them.
const STEPS_PER_ROW: u64 = 10;
const QUERIES: usize = 200;
/// Its rows must not meet those of the fleet, whose shards are numbered from 0.
const SHARD: Shard = Shard(1_000);

pub async fn rows_and_query(steps: u64) -> Result<()> {
    let rig = Rig::start().await?;
    let archive = rig.fleet.parts.archive.clone();
    let sessions = (steps / STEPS_PER_SESSION).max(1);
    let started = Instant::now();
    let mut rows = Vec::new();
    let mut waiting = 0;
    for session in 0..sessions {
        for part in 0..STEPS_PER_SESSION / STEPS_PER_ROW {
            let seq = session * (STEPS_PER_SESSION / STEPS_PER_ROW) + part + 1;
            rows.push(row(session, part, seq)?);
            waiting += STEPS_PER_ROW as usize;
        }
        if waiting >= ARCHIVE_ROWS_MAX || session + 1 == sessions {
            archive.append(&ArchiveBatch { rows: std::mem::take(&mut rows) }).await?;
            archive.maintain().await?;
            waiting = 0;
        }
    }
    let seconds = started.elapsed().as_secs_f64();
    let written = sessions * STEPS_PER_SESSION;
    rig.report(json!({
        "metric": "archive_steps_per_s", "value": (written as f64 / seconds).round(), "unit": "steps/s", "n": 1,
        "steps": written, "seconds": seconds.round(),
    }))?;
    query(&rig, archive.as_ref(), sessions).await?;
    rig.stop().await;
    Ok(())
}

async fn query(rig: &Rig, archive: &dyn Archive, sessions: u64) -> Result<()> {
    let mut times = Vec::with_capacity(QUERIES);
    for _ in 0..QUERIES {
        let session = rand::rng().random_range(0..sessions);
        let wanted = StepQuery {
            session: Some(key(&name(session))?),
            limit: STEPS_PER_SESSION as usize,
            ..StepQuery::default()
        };
        let started = Instant::now();
        let found = archive.steps(&wanted).await?;
        times.push(started.elapsed());
        anyhow::ensure!(found.len() as u64 == STEPS_PER_SESSION, "session {session} has {} steps", found.len());
    }
    times.sort_unstable();
    rig.report(json!({
        "metric": "archive_point_query_ms", "value": percentile_ms(&times, 50), "unit": "ms", "n": QUERIES,
        "p50": percentile_ms(&times, 50), "p99": percentile_ms(&times, 99),
        "steps_in_table": sessions * STEPS_PER_SESSION, "steps_read": STEPS_PER_SESSION,
    }))
}

fn name(session: u64) -> String {
    format!("archived-{session}")
}

fn row(session: u64, part: u64, seq: u64) -> Result<JournalRow> {
    let state = Json::of(&json!({ "memo": "m".repeat(475), "session": session, "part": part }));
    let first = part * STEPS_PER_ROW;
    let steps = (first..first + STEPS_PER_ROW).map(|iteration| step(iteration, &state)).collect::<Result<Vec<_>>>()?;
    let head = Head {
        status: SessionStatus::Running,
        steps: first + STEPS_PER_ROW,
        next_offset: first + STEPS_PER_ROW + 1,
        cause: Cause::Runnable,
        ..Head::starting(0)
    };
    let entry = Entry {
        agent_id: AgentId::parse("bench")?,
        moniker: "bench".into(),
        conversation_id: None,
        head,
        state,
        steps,
        events: Vec::new(),
    };
    Ok(JournalRow { shard: SHARD, seq, key: key(&name(session))?, committed_at_ms: 0, entry })
}

fn step(iteration: u64, state: &Json) -> Result<StepRecord> {
    let token = |n: u64| StepToken::parse(&format!("n/{n}")).map_err(anyhow::Error::msg);
    Ok(StepRecord {
        iteration,
        offset: iteration + 1,
        created_at_ms: iteration as i64,
        turn_id: None,
        step_token: token(iteration)?,
        next_step_token: token(iteration + 1)?,
        status: StepStatus::Ok,
        text: Some("t".repeat(200)),
        data: None,
        state: state.clone(),
        guidance: None,
        notes: None,
        latency_ms: 1,
        error: None,
    })
}
