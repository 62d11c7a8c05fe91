//! A response of the Responses API as a reply.

use domain::chat::{ChatReply, Finish, Part, Reasoning, made_id};
use serde_json::Value;

use crate::call::{CallError, Class};
use crate::config::Vendor;
use crate::model::openai_usage::RESPONSES;
use crate::model::order::Order;
use crate::model::{Reading, declined, failure, json as helper, lacking};

const VENDOR: Vendor = Vendor::OpenaiResponses;

/// A part's place: its item, and its content within the item.
pub type Key = (u64, u64);

pub fn read(body: Value, reading: Reading<'_>) -> Result<ChatReply, CallError> {
    read_response(body, reading.call_id, &Order::default())
}

/// `order` is that in which a stream told of the parts.
pub fn read_response(body: Value, call_id: &str, order: &Order<Key>) -> Result<ChatReply, CallError> {
    if body["status"] == "failed" || !body["error"].is_null() {
        return Err(failure::in_stream(VENDOR, &body));
    }
    let Some(items) = body["output"].as_array() else { return Err(lacking(VENDOR, "output")) };
    let reason = helper::text(&body["incomplete_details"], "reason");
    let is_cut = matches!(reason, Some("max_output_tokens" | "content_filter"));
    let last_call = items.iter().rposition(|item| item["type"] == "function_call");
    let mut parts = Vec::new();
    for (number, item) in items.iter().enumerate() {
        item_parts(number as u64, item, call_id, is_cut && last_call == Some(number), &mut parts);
    }
    let parts = order.sort(parts);
    let refused = items.iter().flat_map(contents).any(|content| content["type"] == "refusal");
    let called = parts.iter().any(|part| matches!(part, Part::ToolCall(_)));
    let status = helper::text(&body, "status");
    let finish = match (status, reason) {
        (_, Some("content_filter")) => Finish::Refusal,
        (_, Some("max_output_tokens")) => Finish::Length,
        (Some("completed") | None, _) if refused => Finish::Refusal,
        (Some("completed") | None, _) if called => Finish::ToolUse,
        (Some("completed") | None, _) => Finish::Stop,
        (Some("incomplete"), _) => Finish::Other,
        (Some(other), _) => {
            let message = format!("{}: the answer is not finished (status {other})", VENDOR.as_str());
            return Err(CallError::new(Class::Unknown, message));
        }
    };
    let said = parts.iter().any(|part| !matches!(part, Part::Reasoning(_)));
    if !said && finish == Finish::Refusal {
        return Err(declined(VENDOR, "content_filter"));
    }
    Ok(ChatReply {
        parts,
        finish,
        raw_finish: reason.or(status).map(str::to_owned),
        usage: RESPONSES.read(&body["usage"]),
        provider: VENDOR.as_str().to_owned(),
        model: body["model"].as_str().unwrap_or_default().to_owned(),
        message_id: helper::text(&body, "id").map(str::to_owned),
        request_id: None,
        raw: body,
    })
}

fn contents(item: &Value) -> &[Value] {
    item["content"].as_array().map_or(&[], Vec::as_slice)
}

/// `is_cut`: there may have been more of this call.
fn item_parts(number: u64, item: &Value, call_id: &str, is_cut: bool, parts: &mut Vec<(Key, Part)>) {
    let provider = VENDOR.as_str().to_owned();
    match item["type"].as_str() {
        Some("message") => {
            for (at, content) in contents(item).iter().enumerate() {
                let text = helper::text(content, "text").or(helper::text(content, "refusal"));
                if let Some(text) = text {
                    parts.push(((number, at as u64), Part::text(text)));
                }
            }
        }
        Some("function_call") => {
            let id = helper::text(item, "call_id").or(helper::text(item, "id"));
            let id = id.map_or_else(|| made_id(call_id, number as usize), str::to_owned);
            let arguments = item["arguments"].as_str().unwrap_or_default();
            let name = item["name"].as_str().unwrap_or_default();
            let read = if is_cut && item["status"] != "completed" { helper::last_call } else { helper::tool_call };
            parts.push(((number, 0), Part::ToolCall(read(id, name, arguments))));
        }
        Some("reasoning") => {
            let thoughts = Reasoning {
                text: thoughts(item),
                signature: helper::text(item, "encrypted_content").map(str::to_owned),
                id: helper::text(item, "id").map(str::to_owned),
                provider,
            };
            parts.push(((number, 0), Part::Reasoning(thoughts)));
        }
        _ => parts.push(((number, 0), Part::Opaque { provider, value: item.clone() })),
    }
}

/// What is shown of thoughts: their summary, else they themselves.
fn thoughts(item: &Value) -> String {
    let texts = |field: &str| {
        let list = item[field].as_array().into_iter().flatten();
        list.filter_map(|piece| piece["text"].as_str()).collect::<Vec<_>>().join(BETWEEN_SUMMARIES)
    };
    let summary = texts("summary");
    if summary.is_empty() { texts("content") } else { summary }
}

/// Stands between the paragraphs of thoughts.
pub const BETWEEN_SUMMARIES: &str = "\n\n";
