//! Conversations: what a move costs besides its model, how soon a piece of a reply is passed on, and
//! a thousand replies at once.

mod model;
mod reader;

use std::time::{Duration, Instant};

use anyhow::{Context, Result, ensure};
use futures::future::try_join_all;
use serde_json::{Value, json};

use super::rig::{Rig, percentile_ms};
use crate::client::Client;
use model::Model;
use reader::Reader;

/// Turns that are not timed, and turns of each kind that are.
const WARM_UP: usize = 20;
const TURNS: usize = 200;
/// Between an answer and what is said next: the work that follows an answer is done by then.
const PAUSE: Duration = Duration::from_millis(30);
/// A reply that is watched alone: its pieces, and the time between two of them.
const PIECES: usize = 40;
const GAP: Duration = Duration::from_millis(25);
/// Of many at once.
const GAP_AMONG_MANY: Duration = Duration::from_millis(500);
const SAY: &str = "Which tea do I like?";
const LOOK: &str = "Look up which tea I like.";

/// Its replies take no time, so all the time of a turn is ours.
fn script() -> Value {
    json!({"rules": [
        {"when": {"contains": LOOK, "last": "user"},
         "reply": {"tool_calls": [{"name": "memory_search", "arguments": {"query": "tea"}}]}}],
     "otherwise": {"text": "Green tea."}})
}

/// From the request that says something to the end of its turn, as a client that listens sees it.
pub async fn overhead() -> Result<()> {
    let script_file = std::env::temp_dir().join(format!("stepfleet-bench-{}.json", ulid::Ulid::generate()));
    std::fs::write(&script_file, script().to_string()).context("the script")?;
    let rig = Rig::start_with(&[("script", &script_file.display().to_string())]).await?;
    open(&rig.client, "overhead", &json!({})).await?;
    let mut reader = Reader::open(&rig.client, "overhead").await?;
    for (kind, text, moves) in [("one move", SAY, 1), ("a call of a tool between two moves", LOOK, 2)] {
        let mut times = Vec::with_capacity(TURNS);
        for n in 0..WARM_UP + TURNS {
            tokio::time::sleep(PAUSE).await;
            let started = Instant::now();
            say(&rig.client, "overhead", text).await?;
            reader.turn().await?;
            if n >= WARM_UP {
                times.push(started.elapsed() / moves);
            }
        }
        times.sort_unstable();
        rig.report(json!({
            "metric": "overhead_per_move_ms", "turn": kind, "unit": "ms", "n": TURNS,
            "value": percentile_ms(&times, 50), "p50": percentile_ms(&times, 50), "p99": percentile_ms(&times, 99),
        }))?;
    }
    rig.stop().await;
    drop(std::fs::remove_file(script_file));
    Ok(())
}

/// From the moment a model's server has sent a piece until a client has it: alone, and among many.
pub async fn streams(many: usize) -> Result<()> {
    let model = Model::start().await?;
    let rig = Rig::start_as(&[], Some(model.settings())).await?;
    measure(&rig, &model, 1, GAP).await?;
    measure(&rig, &model, many, GAP_AMONG_MANY).await?;
    rig.stop().await;
    Ok(())
}

async fn measure(rig: &Rig, model: &Model, streams: usize, gap: Duration) -> Result<()> {
    model.pace(PIECES, gap);
    let ids: Vec<String> = (0..streams).map(|n| format!("streams-{streams}-{n}")).collect();
    // In portions: opening them is not what is measured.
    let mut readers = Vec::with_capacity(streams);
    for portion in ids.chunks(50) {
        let opened = portion.iter().map(|id| async {
            open(&rig.client, id, &json!({"model_profile": "bench"})).await?;
            Reader::open(&rig.client, id).await
        });
        readers.extend(try_join_all(opened).await?);
    }
    let started = Instant::now();
    let heard = readers.iter_mut().zip(&ids).map(|(reader, id)| async {
        say(&rig.client, id, SAY).await?;
        reader.turn().await
    });
    let heard = try_join_all(heard).await?;
    let took = started.elapsed();
    let (mut first, mut all) = (Vec::new(), Vec::new());
    for one in &heard {
        let (told, stamps) = (one.pieces.concat(), one.message.split_whitespace().count());
        ensure!(stamps == PIECES, "a message of {stamps} pieces in place of {PIECES}");
        ensure!(one.lags > 0 || told == one.message, "pieces that are not the message: {told:?}");
        let delays = one.delays(model)?;
        first.extend(delays.first().copied());
        all.extend(delays);
    }
    first.sort_unstable();
    all.sort_unstable();
    let told = all.len();
    rig.report(json!({
        "metric": "piece_forwarded_ms", "streams": streams, "unit": "ms", "value": percentile_ms(&first, 50),
        "first_p50": percentile_ms(&first, 50), "first_p99": percentile_ms(&first, 99),
        "p50": percentile_ms(&all, 50), "p99": percentile_ms(&all, 99),
        "pieces": told, "pieces_lost": streams * PIECES - told, "messages": heard.len(), "seconds": took.as_secs_f64(),
    }))
}

/// A conversation with one agent.
async fn open(client: &Client, id: &str, config: &Value) -> Result<()> {
    let payload = json!({"moniker": "converse", "conversation_id": id, "config": config});
    let body = json!({"type": "create", "session_id": id, "agent_id": id, "payload": payload});
    let _: Value = client.post("/api/actions", &body).await?;
    Ok(())
}

async fn say(client: &Client, id: &str, text: &str) -> Result<()> {
    let _: Value = client.post(&format!("/api/conversations/{id}/messages"), &json!({"text": text})).await?;
    Ok(())
}
