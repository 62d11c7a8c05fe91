//! The events of a streamed Anthropic message, put together as the message itself.

use std::collections::{BTreeMap, BTreeSet};

use domain::chat::{ChatDelta, ChatReply};
use schemas::limits::CHAT_PARTS_MAX;
use serde_json::{Value, json};

use super::reply;
use crate::call::CallError;
use crate::config::Vendor;
use crate::model::{Reading, ReplyStream, cut, event_json, failure, garbled, json as helper};
use crate::sse::Event;

const VENDOR: Vendor = Vendor::Anthropic;

#[derive(Debug, Default)]
pub struct Stream {
    /// The message so far, without its content; null before it starts.
    message: Value,
    /// The blocks so far; each is an object.
    content: Vec<Value>,
    /// Position among the blocks, by the provider's index.
    positions: BTreeMap<u64, usize>,
    /// Arguments so far, by position.
    arguments: BTreeMap<usize, String>,
    /// Blocks that are closed, by position.
    closed: BTreeSet<usize>,
    complete: bool,
}

impl Stream {
    pub fn new(_reading: Reading<'_>) -> Self {
        Self::default()
    }

    fn start(&mut self, event: &Value, deltas: &mut Vec<ChatDelta>) -> Result<(), CallError> {
        if !self.message.is_null() || !event["message"].is_object() {
            return Err(garbled(VENDOR, "a second or empty message_start"));
        }
        self.message = event["message"].clone();
        deltas.extend(reply::usage(&self.message["usage"]).map(|usage| ChatDelta::Usage { usage }));
        Ok(())
    }

    fn open_block(&mut self, event: &Value, deltas: &mut Vec<ChatDelta>) -> Result<(), CallError> {
        let index = event["index"].as_u64().ok_or_else(|| garbled(VENDOR, "a block without index"))?;
        if self.message.is_null() || !event["content_block"].is_object() {
            return Err(garbled(VENDOR, "a block before the message, or an empty one"));
        }
        let part = self.content.len();
        if part >= CHAT_PARTS_MAX || self.positions.insert(index, part).is_some() {
            return Err(garbled(VENDOR, "a block twice, or too many"));
        }
        let mut block = event["content_block"].clone();
        if block["input"].is_null() && block["type"] == "tool_use" {
            helper::merge(&mut block, &json!({"input": {}}));
        }
        match block["type"].as_str() {
            Some("tool_use") => deltas.push(ChatDelta::ToolCall {
                part,
                id: helper::text(&block, "id").map(str::to_owned),
                name: helper::text(&block, "name").map(str::to_owned),
                arguments: String::new(),
            }),
            Some("text") => deltas.extend(text_delta(part, helper::text(&block, "text"))),
            Some("thinking") => deltas.extend(reasoning_delta(part, helper::text(&block, "thinking"))),
            _ => {}
        }
        self.content.push(block);
        Ok(())
    }

    fn extend_block(&mut self, event: &Value, deltas: &mut Vec<ChatDelta>) -> Result<(), CallError> {
        let part = self.position(event)?;
        let (delta, block) = (&event["delta"], &mut self.content[part]);
        match delta["type"].as_str() {
            Some("text_delta") => {
                let text = helper::text(delta, "text");
                helper::append(block, "text", text.unwrap_or_default());
                deltas.extend(text_delta(part, text));
            }
            Some("input_json_delta") => {
                let piece = delta["partial_json"].as_str().unwrap_or_default();
                self.arguments.entry(part).or_default().push_str(piece);
                if !piece.is_empty() && block["type"] == "tool_use" {
                    deltas.push(ChatDelta::ToolCall { part, id: None, name: None, arguments: piece.to_owned() });
                }
            }
            Some("thinking_delta") => {
                let text = helper::text(delta, "thinking");
                helper::append(block, "thinking", text.unwrap_or_default());
                deltas.extend(reasoning_delta(part, text));
            }
            Some("signature_delta") => {
                helper::append(block, "signature", delta["signature"].as_str().unwrap_or_default());
            }
            Some("citations_delta") => {
                if !block["citations"].is_array() {
                    helper::merge(block, &json!({"citations": []}));
                }
                if let Some(citations) = block["citations"].as_array_mut() {
                    citations.push(delta["citation"].clone());
                }
            }
            // Deltas of later versions.
            _ => {}
        }
        Ok(())
    }

    /// The block that an event is about.
    fn position(&self, event: &Value) -> Result<usize, CallError> {
        let part = event["index"].as_u64().and_then(|index| self.positions.get(&index).copied());
        let part = part.ok_or_else(|| garbled(VENDOR, "a piece of a block that was not opened"))?;
        if self.closed.contains(&part) {
            return Err(garbled(VENDOR, "a piece of a block that is closed"));
        }
        Ok(part)
    }

    fn change_message(&mut self, event: &Value, deltas: &mut Vec<ChatDelta>) -> Result<(), CallError> {
        if self.message.is_null() {
            return Err(garbled(VENDOR, "an end before the message"));
        }
        helper::merge(&mut self.message, &event["delta"]);
        // Figures are totals; what a later event leaves out stays.
        if self.message["usage"].is_object() {
            helper::merge(&mut self.message["usage"], &event["usage"]);
        } else {
            self.message["usage"] = event["usage"].clone();
        }
        deltas.extend(reply::usage(&self.message["usage"]).map(|usage| ChatDelta::Usage { usage }));
        Ok(())
    }
}

fn text_delta(part: usize, text: Option<&str>) -> Option<ChatDelta> {
    text.map(|text| ChatDelta::Text { part, text: text.to_owned() })
}

fn reasoning_delta(part: usize, text: Option<&str>) -> Option<ChatDelta> {
    text.map(|text| ChatDelta::Reasoning { part, text: text.to_owned() })
}

impl ReplyStream for Stream {
    fn event(&mut self, event: &Event, deltas: &mut Vec<ChatDelta>) -> Result<(), CallError> {
        if self.complete || event.data.is_empty() {
            return Ok(());
        }
        let event = event_json(VENDOR, event)?;
        match event["type"].as_str() {
            Some("message_start") => self.start(&event, deltas),
            Some("content_block_start") => self.open_block(&event, deltas),
            Some("content_block_delta") => self.extend_block(&event, deltas),
            Some("content_block_stop") => {
                let part = self.position(&event)?;
                self.closed.insert(part);
                Ok(())
            }
            Some("message_delta") => self.change_message(&event, deltas),
            Some("message_stop") => {
                self.complete = true;
                Ok(())
            }
            Some("error") => Err(failure::in_stream(VENDOR, &event)),
            // `ping`, and events of later versions, which the documentation asks to pass over.
            _ => Ok(()),
        }
    }

    fn is_complete(&self) -> bool {
        self.complete
    }

    fn finish(mut self: Box<Self>) -> Result<ChatReply, CallError> {
        if !self.complete || self.message["stop_reason"].is_null() {
            return Err(cut(VENDOR));
        }
        let cut_call = reply::cut_call(&self.message, &self.content);
        if let Some(part) = cut_call {
            self.arguments.entry(part).or_default();
        }
        let mut invalid = BTreeMap::new();
        for (part, text) in std::mem::take(&mut self.arguments) {
            let block = &mut self.content[part];
            match serde_json::from_str::<Value>(&text) {
                Ok(input @ Value::Object(_)) => block["input"] = input,
                // The whole input came with the start of the block. Of a call that the answer was cut in it did not:
                // providers close such a block like any other.
                _ if text.trim().is_empty() && (cut_call != Some(part) || reply::has_input(block)) => {}
                _ => {
                    invalid.insert(part, text);
                }
            }
        }
        self.message["content"] = self.content.into();
        reply::read_message(self.message, &invalid)
    }
}
