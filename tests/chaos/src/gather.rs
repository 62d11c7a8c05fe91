//! Reads everything that a run left behind: rows of the ledger, and whole histories.

pub mod asked;
pub mod ran;
mod talks;

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context, Result, bail};
use futures::{StreamExt, TryStreamExt, stream};
use serde_json::Value;

use crate::finish;
use crate::load::World;
use crate::seen::{Idle, Item, Row, Seen, Session, Step};
use crate::sse::Parser;

/// Requests in flight.
const AT_ONCE: usize = 8;
const PATIENCE: Duration = Duration::from_secs(60);
const STREAM_MAX: Duration = Duration::from_secs(120);

/// # Errors
/// Something that must be readable is not.
pub async fn all(world: &Arc<World>, mut idle: BTreeMap<String, Idle>, seen: &mut Seen) -> Result<()> {
    seen.sent = world.sent.lock().map(|sent| sent.clone()).unwrap_or_default();
    seen.posts = world.api.posts();
    seen.verdicts = world.verdicts.lock().map(|verdicts| verdicts.clone()).unwrap_or_default();
    seen.streams = world.streams.lock().map(|streams| streams.clone()).unwrap_or_default();
    let ids: Vec<String> = seen.sent.iter().map(|sent| sent.id.clone()).collect();
    seen.actions = stream::iter(ids)
        .map(|id| async move {
            let answer = world.api.get(&format!("/api/actions/{id}"), PATIENCE).await?;
            Ok::<_, anyhow::Error>((answer.status == 200).then(|| (id, row(&answer.body))))
        })
        .buffer_unordered(AT_ONCE)
        .try_filter_map(async |found| Ok(found))
        .try_collect()
        .await?;
    let views = finish::list(world, "").await?;
    let sessions: Vec<Session> =
        stream::iter(views).map(|view| session(world, view)).buffer_unordered(AT_ONCE).try_collect().await?;
    seen.sessions = sessions;
    seen.sessions.sort_by(|a, b| a.id.cmp(&b.id));
    for session in &mut seen.sessions {
        session.idle = idle.remove(&session.id);
    }
    takeovers(seen);
    talks::all(world, seen).await
}

fn row(view: &Value) -> Row {
    let text = |name: &str| view[name].as_str().map(str::to_owned);
    Row {
        kind: text("type").unwrap_or_default(),
        lane: text("lane").unwrap_or_default(),
        seq: view["session_seq"].as_u64(),
        processed: view["processed"] == true,
        outcome: text("outcome"),
        code: text("code"),
    }
}

async fn session(world: &World, view: Value) -> Result<Session> {
    let text = |name: &str| view[name].as_str().unwrap_or_default().to_owned();
    let id = text("session_id");
    let mut session = Session {
        moniker: text("moniker"),
        status: text("status"),
        shard: view["shard"].as_u64().unwrap_or(0),
        last_offset: view["last_offset"].as_u64().unwrap_or(0),
        ..Session::default()
    };
    // Journal and archive are one; a gateway that restarts in between is asked again.
    for attempt in 0..5 {
        match items(world, &id, session.last_offset).await {
            Ok(items) => {
                session.items = items;
                break;
            }
            Err(error) if attempt == 4 => return Err(error).with_context(|| format!("the stream of {id}")),
            Err(_) => tokio::time::sleep(Duration::from_millis(500)).await,
        }
    }
    session.listed = listed(world, &id).await.with_context(|| format!("the steps of {id}"))?;
    session.id = id;
    Ok(session)
}

/// The stream from its beginning to its end, or to the last event there is.
async fn items(world: &World, id: &str, last_offset: u64) -> Result<Vec<Item>> {
    let request =
        world.api.request(reqwest::Method::GET, format!("{}/api/sessions/{id}/events?after=0", world.api.any()));
    let response = tokio::time::timeout(PATIENCE, request.send()).await??;
    if response.status().as_u16() != 200 {
        bail!("{}: {}", response.status(), response.text().await?);
    }
    let (mut bytes, mut parser, mut items) = (response.bytes_stream(), Parser::default(), Vec::new());
    loop {
        // A session that has not ended has no end; that it should have ended is another finding.
        let has_all = items.last().is_some_and(|item: &Item| item.offset >= last_offset);
        let patience = if has_all { Duration::from_millis(500) } else { STREAM_MAX };
        let chunk = match tokio::time::timeout(patience, bytes.next()).await {
            Ok(chunk) => chunk.context("it broke off")??,
            Err(_) if has_all => return Ok(items),
            Err(_) => bail!("nothing came for {patience:?}"),
        };
        for event in parser.feed(&chunk) {
            let item = item(&serde_json::from_str(&event.data)?)?;
            let last = item.kind == "end";
            items.push(item);
            if last {
                return Ok(items);
            }
        }
    }
}

fn item(event: &Value) -> Result<Item> {
    let text = |value: &Value| value.as_str().map(str::to_owned);
    let at = chrono::DateTime::parse_from_rfc3339(event["at"].as_str().context("a time")?)?;
    let step = &event["step"];
    let guidance = &step["guidance"];
    let step = step.is_object().then(|| Step {
        id: text(&step["id"]).unwrap_or_default(),
        iteration: step["iteration"].as_u64().unwrap_or(u64::MAX),
        token: text(&step["step_token"]).unwrap_or_default(),
        next: text(&step["next_step_token"]).unwrap_or_default(),
        status: text(&step["status"]).unwrap_or_default(),
        text: text(&step["text"]),
        guidance: text(&guidance["mark"]),
        set: guidance["set"].as_i64(),
        error: text(&step["error"]),
    });
    Ok(Item {
        offset: event["offset"].as_u64().context("an offset")?,
        kind: text(&event["type"]).context("a type")?,
        at_ms: at.timestamp_millis(),
        step,
        status: text(&event["data"]["status"]),
        action: text(&event["data"]["action_id"]),
    })
}

async fn listed(world: &World, id: &str) -> Result<Vec<(u64, String)>> {
    let (mut found, mut cursor) = (Vec::new(), String::new());
    loop {
        let path = format!("/api/agent-steps?session_id={id}&limit=1000{cursor}");
        let page = world.api.must_get(&path, PATIENCE).await?;
        for step in page["items"].as_array().into_iter().flatten() {
            found.push((
                step["iteration"].as_u64().unwrap_or(u64::MAX),
                step["id"].as_str().unwrap_or_default().to_owned(),
            ));
        }
        match page["next_cursor"].as_str() {
            Some(next) => cursor = format!("&cursor={next}"),
            None => return Ok(found),
        }
    }
}

/// Steps that were under way arrive within this time after a fault.
const UNDER_WAY_MS: i64 = 150;

/// From each loss of a worker to the next step of its sessions, as live followers heard of it.
fn takeovers(seen: &mut Seen) {
    for takeover in &mut seen.takeovers {
        for (session, gap) in takeover.sessions.iter().zip(&mut takeover.gaps_ms) {
            let Some(stream) = seen.streams.iter().find(|stream| stream.session == *session) else { continue };
            let next =
                stream.items.iter().find(|heard| heard.kind == "step" && heard.at_ms > takeover.at_ms + UNDER_WAY_MS);
            *gap = next.map(|heard| heard.at_ms - takeover.at_ms);
        }
    }
}
