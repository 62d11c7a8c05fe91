//! The events of a streamed response, put together as the response.

use std::collections::{BTreeMap, BTreeSet};

use domain::chat::{ChatDelta, ChatReply, made_id};
use schemas::limits::CHAT_PARTS_MAX;
use serde_json::{Value, json};

use super::reply::{self, BETWEEN_SUMMARIES, Key};
use crate::call::CallError;
use crate::config::Vendor;
use crate::model::openai_usage::RESPONSES;
use crate::model::order::Order;
use crate::model::{Reading, ReplyStream, cut, event_json, failure, garbled, json as helper};
use crate::sse::Event;

const VENDOR: Vendor = Vendor::OpenaiResponses;

#[derive(Debug)]
pub struct Stream {
    call_id: String,
    /// Items by output index: as they were added, or as they were done.
    items: BTreeMap<u64, Value>,
    /// Indexes of the items that are done.
    done: BTreeSet<u64>,
    order: Order<Key>,
    /// The response of the terminal event.
    terminal: Value,
}

impl Stream {
    pub fn new(reading: Reading<'_>) -> Self {
        let call_id = reading.call_id.to_owned();
        let (items, done) = (BTreeMap::new(), BTreeSet::new());
        Self { call_id, items, done, order: Order::default(), terminal: Value::Null }
    }

    fn add_item(&mut self, event: &Value, deltas: &mut Vec<ChatDelta>) -> Result<(), CallError> {
        let (index, item) = (output_index(event)?, &event["item"]);
        if !item.is_object() || self.items.len() >= CHAT_PARTS_MAX || self.items.contains_key(&index) {
            return Err(garbled(VENDOR, "an item that is empty or comes twice, or too many"));
        }
        // A message has a part for each of its contents; they come one by one.
        if item["type"] != "message" {
            let part = self.order.part((index, 0));
            if item["type"] == "function_call" {
                let id = helper::text(item, "call_id").or(helper::text(item, "id"));
                let id = id.map_or_else(|| made_id(&self.call_id, index as usize), str::to_owned);
                let name = helper::text(item, "name").map(str::to_owned);
                deltas.push(ChatDelta::ToolCall { part, id: Some(id), name, arguments: String::new() });
            }
        }
        self.items.insert(index, item.clone());
        Ok(())
    }

    fn end_item(&mut self, event: &Value) -> Result<(), CallError> {
        let (index, item) = (output_index(event)?, &event["item"]);
        if !item.is_object() || !self.items.contains_key(&index) || !self.done.insert(index) {
            return Err(garbled(VENDOR, "the end of an item that is not open"));
        }
        self.items.insert(index, item.clone());
        Ok(())
    }

    fn known(&self, event: &Value) -> Result<u64, CallError> {
        let index = output_index(event)?;
        let known = self.items.contains_key(&index);
        if known { Ok(index) } else { Err(garbled(VENDOR, "a piece of an item that was not added")) }
    }

    fn text(&mut self, event: &Value, deltas: &mut Vec<ChatDelta>) -> Result<(), CallError> {
        let content = event["content_index"].as_u64().unwrap_or(0);
        let key = (self.known(event)?, content);
        if let Some(text) = helper::text(event, "delta") {
            deltas.push(ChatDelta::Text { part: self.order.part(key), text: text.to_owned() });
        }
        Ok(())
    }

    fn reasoning(&mut self, index: u64, text: Option<&str>, deltas: &mut Vec<ChatDelta>) {
        if let Some(text) = text {
            deltas.push(ChatDelta::Reasoning { part: self.order.part((index, 0)), text: text.to_owned() });
        }
    }

    fn end(&mut self, event: &Value, deltas: &mut Vec<ChatDelta>) -> Result<(), CallError> {
        if !event["response"].is_object() {
            return Err(garbled(VENDOR, "an end without the response"));
        }
        self.terminal = event["response"].clone();
        deltas.extend(RESPONSES.read(&self.terminal["usage"]).map(|usage| ChatDelta::Usage { usage }));
        Ok(())
    }
}

fn output_index(event: &Value) -> Result<u64, CallError> {
    event["output_index"].as_u64().ok_or_else(|| garbled(VENDOR, "an item without index"))
}

impl ReplyStream for Stream {
    fn event(&mut self, event: &Event, deltas: &mut Vec<ChatDelta>) -> Result<(), CallError> {
        if self.is_complete() || event.data.is_empty() {
            return Ok(());
        }
        let event = event_json(VENDOR, event)?;
        match event["type"].as_str() {
            Some("response.output_item.added") => self.add_item(&event, deltas),
            Some("response.output_item.done") => self.end_item(&event),
            Some("response.output_text.delta" | "response.refusal.delta") => self.text(&event, deltas),
            Some("response.reasoning_summary_text.delta" | "response.reasoning_text.delta") => {
                let index = self.known(&event)?;
                self.reasoning(index, helper::text(&event, "delta"), deltas);
                Ok(())
            }
            Some("response.reasoning_summary_part.added") => {
                let index = self.known(&event)?;
                let further = event["summary_index"].as_u64().is_some_and(|number| number > 0);
                self.reasoning(index, further.then_some(BETWEEN_SUMMARIES), deltas);
                Ok(())
            }
            Some("response.function_call_arguments.delta") => {
                let part = (self.known(&event)?, 0);
                if let Some(arguments) = helper::text(&event, "delta") {
                    let (part, arguments) = (self.order.part(part), arguments.to_owned());
                    deltas.push(ChatDelta::ToolCall { part, id: None, name: None, arguments });
                }
                Ok(())
            }
            Some("response.completed" | "response.incomplete") => self.end(&event, deltas),
            Some("response.failed") => Err(failure::in_stream(VENDOR, &event["response"])),
            Some("error") => Err(failure::in_stream(VENDOR, &event)),
            // Notices of progress, and of tools that the provider runs itself.
            _ => Ok(()),
        }
    }

    fn is_complete(&self) -> bool {
        !self.terminal.is_null()
    }

    fn finish(mut self: Box<Self>) -> Result<ChatReply, CallError> {
        if !self.is_complete() {
            return Err(cut(VENDOR));
        }
        // Some proxies leave the output of the last event empty; the items have come one by one.
        if self.terminal["output"].as_array().is_none_or(Vec::is_empty) {
            // Positions among the items are the indexes, if none is missing.
            let items = std::mem::take(&mut self.items);
            if self.done.iter().copied().ne(0..items.len() as u64) {
                return Err(garbled(VENDOR, "an item is missing"));
            }
            self.terminal["output"] = json!(items.into_values().collect::<Vec<Value>>());
        }
        reply::read_response(self.terminal, &self.call_id, &self.order)
    }
}
