//! Reads conversations whole: where their logs end, their transcripts, their turns, and the
//! conversations that delegates had on their own.

use std::collections::BTreeMap;

use anyhow::Result;
use futures::{StreamExt, TryStreamExt, stream};
use serde_json::Value;

use super::{AT_ONCE, PATIENCE};
use crate::load::World;
use crate::seen::talk::{Move, Operation, Said, Talk, ToolEnd, Turn};
use crate::seen::{Seen, Stream};

/// # Errors
/// Something that must be readable is not.
pub async fn all(world: &World, seen: &mut Seen) -> Result<()> {
    let noted: Vec<Talk> = world.talks.lock().map(|talks| talks.values().cloned().collect()).unwrap_or_default();
    let streams = world.talk_streams.lock().map(|streams| streams.clone()).unwrap_or_default();
    seen.talks = many(world, noted).await?;
    let mut streams: BTreeMap<String, Stream> =
        streams.into_iter().map(|stream| (stream.session.clone(), stream)).collect();
    for talk in &mut seen.talks {
        talk.stream = streams.remove(&talk.id);
    }
    let operations = seen.talks.iter().flat_map(|talk| &talk.turns).flat_map(|turn| &turn.operations);
    let children: Vec<(String, String)> =
        operations.filter_map(|operation| Some((operation.id.clone(), operation.child.clone()?))).collect();
    let mut delegated = Vec::new();
    for (caller, child) in children {
        // One that was never created has said nothing.
        let answer = world.api.get(&format!("/api/sessions/{child}"), PATIENCE).await?;
        if let Some(id) = answer.body["spec"]["conversation_id"].as_str() {
            delegated.push(Talk { id: id.to_owned(), delegated: true, called_by: Some(caller), ..Talk::default() });
        }
    }
    seen.talks.extend(many(world, delegated).await?);
    seen.talks.sort_by(|a, b| a.id.cmp(&b.id));
    Ok(())
}

async fn many(world: &World, talks: Vec<Talk>) -> Result<Vec<Talk>> {
    stream::iter(talks).map(|talk| one(world, talk)).buffer_unordered(AT_ONCE).try_collect().await
}

async fn one(world: &World, mut talk: Talk) -> Result<Talk> {
    let path = format!("/api/conversations/{}", talk.id);
    let row = world.api.must_get(&path, PATIENCE).await?;
    talk.last_offset = row["conversation"]["last_offset"].as_u64().unwrap_or(0);
    talk.said = pages(world, &format!("{path}/messages?include=all")).await?.iter().map(said).collect();
    for view in pages(world, &format!("{path}/turns?order=asc")).await? {
        let detail = world.api.must_get(&format!("/api/turns/{}", text(&view["turn_id"])), PATIENCE).await?;
        talk.turns.push(turn(&detail));
    }
    Ok(talk)
}

/// All items of a list.
async fn pages(world: &World, path: &str) -> Result<Vec<Value>> {
    let (mut found, mut cursor) = (Vec::new(), String::new());
    loop {
        let page = world.api.must_get(&format!("{path}&limit=1000{cursor}"), PATIENCE).await?;
        found.extend(page["items"].as_array().cloned().unwrap_or_default());
        match page["next_cursor"].as_str() {
            Some(next) => cursor = format!("&cursor={next}"),
            None => return Ok(found),
        }
    }
}

fn text(value: &Value) -> String {
    value.as_str().unwrap_or_default().to_owned()
}

fn list(value: &Value) -> &[Value] {
    value.as_array().map(Vec::as_slice).unwrap_or_default()
}

/// Tokens in and out.
fn tokens(usage: &Value) -> (u64, u64) {
    (usage["input_tokens"].as_u64().unwrap_or(0), usage["output_tokens"].as_u64().unwrap_or(0))
}

fn said(view: &Value) -> Said {
    Said {
        offset: view["offset"].as_u64().unwrap_or(0),
        id: text(&view["message_id"]),
        turn: text(&view["turn_id"]),
        sender: text(&view["sender_type"]),
        role: text(&view["role"]),
        event: text(&view["event_type"]),
        text: text(&view["text"]),
        operation: view["data"]["operation_id"].as_str().map(str::to_owned),
    }
}

fn turn(detail: &Value) -> Turn {
    let view = &detail["turn"];
    let error = &view["error"];
    Turn {
        id: text(&view["turn_id"]),
        status: text(&view["status"]),
        cancelled: view["cancelled"] == true,
        error: error.is_object().then(|| format!("{}: {}", text(&error["code"]), text(&error["message"]))),
        counted: view["moves"].as_u64().unwrap_or(0),
        usage: tokens(&view["usage"]),
        exhausted: view["issues"]["moves_exhausted"] == true,
        assembled: view["context_assembly_run_id"].is_string(),
        spent: list(&detail["provider_calls"])
            .iter()
            .map(|call| call["usage"].is_object().then(|| tokens(&call["usage"])))
            .collect(),
        replies: list(&detail["provider_calls"])
            .iter()
            .filter(|call| call["usage"].is_object() && call["outcome"]["ok"] == true)
            .count(),
        moves: list(&detail["moves"]).iter().map(of_move).collect(),
        operations: list(&detail["operations"]).iter().map(operation).collect(),
    }
}

fn of_move(view: &Value) -> Move {
    let background = list(&view["record"]["in_background"]).iter().map(|pair| (text(&pair[0]), text(&pair[1])));
    Move {
        offset: view["offset"].as_u64().unwrap_or(0),
        number: view["move"].as_u64().unwrap_or(0),
        spoke: view["reasoning"].is_string(),
        cut: view["record"]["cut"] == true,
        calls: list(&view["tool_calls"]).iter().map(|call| text(&call["id"])).collect(),
        background: background.collect(),
        results: list(&view["tool_results"]).iter().map(tool_end).collect(),
    }
}

fn tool_end(result: &Value) -> ToolEnd {
    ToolEnd {
        call: text(&result["tool_call_id"]),
        key: result["result"]["body"]["done"].as_str().map(str::to_owned),
        usage: tokens(&result["result"]["usage"]),
    }
}

fn operation(view: &Value) -> Operation {
    Operation {
        id: text(&view["operation_id"]),
        state: text(&view["state"]),
        is_async: view["is_async"] == true,
        is_question: view["kind"] == "approval",
        child: (view["kind"] == "agent").then(|| text(&view["request"]["session_id"])),
    }
}
