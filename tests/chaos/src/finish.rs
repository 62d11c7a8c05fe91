//! The end of a run: everything is healed, the fleet becomes idle, what is left is destroyed.

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use anyhow::Result;
use serde_json::{Value, json};
use tokio::time::sleep;

use crate::diary::Diary;
use crate::fleet::Fleet;
use crate::load::World;
use crate::seen::{self, Idle};
use crate::watch::{GAUGES, scrape};

const POLL: Duration = Duration::from_millis(500);
/// From the last fault to an idle fleet, and from a destroy to its end.
const IDLE_MAX: Duration = Duration::from_secs(150);
/// Until the archive has everything.
const ARCHIVE_MAX: Duration = Duration::from_secs(120);
const PATIENCE: Duration = Duration::from_secs(60);
/// Sessions that are asked why.
const WHY_MAX: usize = 300;

/// How the fleet stood when nothing was left to do, then without any session that goes on.
pub async fn settle(world: &World, diary: &Diary) -> Result<(seen::Fleet, BTreeMap<String, Idle>)> {
    let mut fleet = seen::Fleet::default();
    bulk(world, "resume", &["paused"]).await?;
    bulk(world, "destroy", &["error"]).await?;
    let started = Instant::now();
    loop {
        let health = world.api.must_get("/health", PATIENCE).await?;
        fleet.pending = health["pending_actions"].as_u64().unwrap_or(u64::MAX);
        fleet.idle = fleet.pending == 0;
        if fleet.idle || started.elapsed() > IDLE_MAX {
            break;
        }
        // Whatever was resumed may fail in the meantime, and a pause may be applied only now.
        bulk(world, "destroy", &["error"]).await?;
        bulk(world, "resume", &["paused"]).await?;
        sleep(POLL).await;
    }
    diary.tell(
        "idle",
        &json!({ "idle": fleet.idle, "pending": fleet.pending, "ms": started.elapsed().as_millis() as u64 }),
    );
    let idle = standing(world).await?;
    bulk(world, "destroy", &["starting", "running", "paused", "error"]).await?;
    let started = Instant::now();
    loop {
        let left = list(world, "&status=starting,running,paused,stopping,error").await?;
        if left.is_empty() {
            break;
        }
        if started.elapsed() > IDLE_MAX {
            diary.complain(format!("{} sessions have not ended {IDLE_MAX:?} after they were destroyed", left.len()));
            break;
        }
        sleep(POLL).await;
    }
    Ok((fleet, idle))
}

async fn bulk(world: &World, verb: &str, statuses: &[&str]) -> Result<()> {
    let body = json!({ "action": verb, "filter": { "status": statuses } });
    let answer = world.api.post_until("/api/sessions/bulk", &body, PATIENCE).await?;
    anyhow::ensure!(answer.status == 200, "bulk {verb}: {} {}", answer.status, answer.body);
    Ok(())
}

/// All sessions that a query finds.
pub async fn list(world: &World, query: &str) -> Result<Vec<Value>> {
    let (mut found, mut cursor) = (Vec::new(), String::new());
    loop {
        let page = world.api.must_get(&format!("/api/sessions?limit=1000{query}{cursor}"), PATIENCE).await?;
        found.extend(page["items"].as_array().cloned().unwrap_or_default());
        match page["next_cursor"].as_str() {
            Some(next) => cursor = format!("&cursor={next}"),
            None => return Ok(found),
        }
    }
}

/// Status and cause of every session, and for those that go on what `why` says.
async fn standing(world: &World) -> Result<BTreeMap<String, Idle>> {
    let mut idle = BTreeMap::new();
    let mut asked = 0;
    for view in list(world, "").await? {
        let text = |name: &str| view[name].as_str().unwrap_or_default().to_owned();
        let (id, status) = (text("session_id"), text("status"));
        let due = chrono::DateTime::parse_from_rfc3339(&text("wake_at")).ok();
        let overdue_ms = due.map_or(0, |due| crate::diary::now_ms() - due.timestamp_millis());
        let mut summary = String::new();
        if status == "running" && asked < WHY_MAX {
            asked += 1;
            let why = world.api.must_get(&format!("/api/sessions/{id}/why"), PATIENCE).await?;
            summary = why["summary"].as_str().unwrap_or_default().to_owned();
            if summary.is_empty() {
                world.diary.complain(format!("why has nothing to say of {id}: {why}"));
            }
        }
        let cause = view["cause"]["kind"].as_str().unwrap_or_default().to_owned();
        idle.insert(id, Idle { status, cause, summary, overdue_ms });
    }
    Ok(idle)
}

/// What the fleet says of itself when all is over, and what its history proves.
pub async fn judge(world: &World, fleet: &Fleet, told: &mut seen::Fleet) -> Result<()> {
    let started = Instant::now();
    loop {
        let health = world.api.must_get("/health", PATIENCE).await?;
        told.health = health["status"].as_str().unwrap_or_default().to_owned();
        let lag = health["journal_lag_rows"].as_u64().unwrap_or(u64::MAX);
        let well = told.health == "ok" && lag == 0;
        if well || started.elapsed() > ARCHIVE_MAX {
            if !well {
                world.diary.complain(format!("after {ARCHIVE_MAX:?} the fleet is not at rest: {health}"));
            }
            break;
        }
        sleep(POLL).await;
    }
    // The auditor needs a round to see that all is well.
    let started = Instant::now();
    loop {
        told.gauges = scrape(fleet, &world.api, &GAUGES).await;
        if told.gauges.values().all(|value| *value == 0.0) || started.elapsed() > IDLE_MAX / 5 {
            break;
        }
        sleep(POLL).await;
    }
    if told.gauges.is_empty() {
        world.diary.complain(format!("no process exports {GAUGES:?}"));
    }
    let workers = world.api.must_get("/api/workers", PATIENCE).await?;
    told.workers = strings(&workers, "worker_id");
    let shards = world.api.must_get("/api/shards", PATIENCE).await?;
    let shard = |view: &Value| {
        let owner = view["owner"].as_str().map(str::to_owned);
        (view["shard"].as_u64().unwrap_or(0), owner, view["lease_ms_left"].as_i64().unwrap_or(0))
    };
    told.shards = shards.as_array().into_iter().flatten().map(shard).collect();
    dead_letters(world, told).await?;
    told.doctor = doctor(fleet, &world.diary).await;
    Ok(())
}

/// Every piece of garbage must be there; one of them is sent again, and one is thrown away.
async fn dead_letters(world: &World, told: &mut seen::Fleet) -> Result<()> {
    told.garbage = world.garbage.lock().map(|garbage| garbage.clone()).unwrap_or_default();
    let started = Instant::now();
    let letters = loop {
        let letters = world.api.must_get("/api/dead?limit=1000", PATIENCE).await?;
        let bodies = strings(&letters, "body");
        let found = |marker: &&String| bodies.iter().any(|body| body.contains(marker.as_str()));
        told.dead = told.garbage.iter().filter(found).cloned().collect();
        if told.dead.len() == told.garbage.len() || started.elapsed() > Duration::from_secs(20) {
            break letters;
        }
        sleep(POLL).await;
    };
    for letter in letters.as_array().into_iter().flatten() {
        if letter["reason"].as_str().is_none_or(str::is_empty) {
            world.diary.complain(format!("a dead letter has no reason: {letter}"));
        }
    }
    for (id, verb) in strings(&letters, "id").iter().zip(["redrive", "drop"]) {
        let answer = world.api.post_until(&format!("/api/dead/{id}/{verb}"), &json!({}), PATIENCE).await?;
        if answer.status != 200 {
            world.diary.complain(format!("{verb} of a dead letter was answered with {}", answer.body));
        }
    }
    Ok(())
}

fn strings(list: &Value, field: &str) -> Vec<String> {
    list.as_array().into_iter().flatten().filter_map(|view| view[field].as_str().map(str::to_owned)).collect()
}

async fn doctor(fleet: &Fleet, diary: &Diary) -> Option<seen::Doctor> {
    let out = match fleet.stepfleet(&["doctor", "--verify-history", "--json"]).await {
        Ok(out) => out,
        Err(error) => {
            diary.complain(format!("{error:#}"));
            return None;
        }
    };
    let report: Value = serde_json::from_str(&out).ok()?;
    let history = &report["history"];
    // The run itself makes dead letters.
    let unwell = |check: &&Value| check["well"] == false && check["name"] != "dead letters";
    let text = |value: &Value| value.as_str().map_or_else(|| value.to_string(), str::to_owned);
    let told = |check: &Value| format!("{}: {}", text(&check["name"]), text(&check["detail"]));
    let checks = || report["checks"].as_array().into_iter().flatten();
    Some(seen::Doctor {
        sessions: history["sessions"].as_u64()?,
        steps: history["steps"].as_u64()?,
        broken: history["broken"].as_u64()?,
        findings: history["findings"].as_array().into_iter().flatten().map(Value::to_string).collect(),
        said: checks().map(told).collect(),
        unwell: checks().filter(unwell).map(told).collect(),
    })
}
