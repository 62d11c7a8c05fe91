//! The chunks of a streamed chat completion, put together as the completion.

use domain::chat::{ChatDelta, ChatReply, made_id};
use schemas::limits::CHAT_PARTS_MAX;
use serde_json::{Value, json};

use super::reply::{self, Key, content_text};
use super::tool_calls::ToolCalls;
use crate::call::CallError;
use crate::config::Vendor;
use crate::model::openai_usage::CHAT;
use crate::model::order::Order;
use crate::model::{Reading, ReplyStream, cut, event_json, failure, garbled, json as helper};
use crate::sse::Event;

const VENDOR: Vendor = Vendor::Openai;
/// The end mark.
const DONE: &str = "[DONE]";

#[derive(Debug)]
pub struct Stream {
    call_id: String,
    original: bool,
    /// What chunks say of the completion as a whole.
    head: Value,
    text: String,
    reasoning: String,
    refusal: String,
    calls: ToolCalls,
    order: Order<Key>,
    finish: Option<String>,
    usage: Value,
    done: bool,
}

impl Stream {
    pub fn new(reading: Reading<'_>) -> Self {
        Self {
            call_id: reading.call_id.to_owned(),
            original: reading.original,
            head: json!({}),
            text: String::new(),
            reasoning: String::new(),
            refusal: String::new(),
            calls: ToolCalls::default(),
            order: Order::default(),
            finish: None,
            usage: Value::Null,
            done: false,
        }
    }

    fn chunk(&mut self, chunk: &Value, deltas: &mut Vec<ChatDelta>) -> Result<(), CallError> {
        if !chunk["error"].is_null() {
            return Err(failure::in_stream(VENDOR, chunk));
        }
        for key in ["id", "created", "model", "system_fingerprint", "service_tier"] {
            if !chunk[key].is_null() {
                self.head[key] = chunk[key].clone();
            }
        }
        // Figures are totals, in a chunk of their own, with the last one, or with every one.
        let figures = [&chunk["usage"], &chunk["x_groq"]["usage"]].into_iter().find(|usage| usage.is_object());
        if let Some(usage) = figures {
            self.usage = usage.clone();
            deltas.extend(CHAT.read(usage).map(|usage| ChatDelta::Usage { usage }));
        }
        // Only one choice is asked for. A chunk of figures has none, or a null.
        let choices = chunk["choices"].as_array().map_or(&[][..], Vec::as_slice);
        let Some(choice) = choices.iter().find(|choice| choice["index"].as_u64().unwrap_or(0) == 0) else {
            return Ok(());
        };
        let delta = if choice["delta"].is_object() { &choice["delta"] } else { &choice["message"] };
        self.delta(delta, deltas)?;
        if let Some(finish) = helper::text(choice, "finish_reason") {
            self.finish = Some(finish.to_owned());
        }
        Ok(())
    }

    fn delta(&mut self, delta: &Value, deltas: &mut Vec<ChatDelta>) -> Result<(), CallError> {
        if let Some(text) = helper::text(delta, "reasoning_content").or(helper::text(delta, "reasoning")) {
            self.reasoning.push_str(text);
            deltas.push(ChatDelta::Reasoning { part: self.order.part(Key::Reasoning), text: text.to_owned() });
        }
        let text = content_text(&delta["content"]);
        if !text.is_empty() {
            self.text.push_str(&text);
            deltas.push(ChatDelta::Text { part: self.order.part(Key::Text), text });
        }
        if let Some(text) = helper::text(delta, "refusal") {
            self.refusal.push_str(text);
            deltas.push(ChatDelta::Text { part: self.order.part(Key::Refusal), text: text.to_owned() });
        }
        for piece in delta["tool_calls"].as_array().into_iter().flatten() {
            self.tool_call(piece, deltas)?;
        }
        if delta["function_call"].is_object() {
            self.tool_call(&json!({"index": 0, "function": delta["function_call"]}), deltas)?;
        }
        Ok(())
    }

    fn tool_call(&mut self, piece: &Value, deltas: &mut Vec<ChatDelta>) -> Result<(), CallError> {
        let piece = self.calls.take(piece);
        if self.calls.len() > CHAT_PARTS_MAX {
            return Err(garbled(VENDOR, "too many tool calls"));
        }
        let part = self.order.part(Key::Tool(piece.call));
        // An id that comes with the first piece, or never, is known at once.
        let id = piece.id.or_else(|| piece.new.then(|| made_id(&self.call_id, piece.call)));
        if piece.new || piece.name.is_some() || !piece.arguments.is_empty() {
            deltas.push(ChatDelta::ToolCall { part, id, name: piece.name, arguments: piece.arguments });
        }
        Ok(())
    }

    fn completion(&mut self) -> Value {
        let text = |text: &mut String| match std::mem::take(text) {
            text if text.is_empty() => Value::Null,
            text => text.into(),
        };
        let mut message = json!({"role": "assistant", "content": text(&mut self.text)});
        helper::merge(
            &mut message,
            &json!({
                "reasoning_content": text(&mut self.reasoning),
                "refusal": text(&mut self.refusal),
            }),
        );
        if self.calls.len() > 0 {
            message["tool_calls"] = self.calls.message().into();
        }
        let mut body = self.head.take();
        body["object"] = "chat.completion".into();
        body["choices"] = json!([{"index": 0, "message": message, "finish_reason": self.finish}]);
        body["usage"] = self.usage.take();
        body
    }
}

impl ReplyStream for Stream {
    fn event(&mut self, event: &Event, deltas: &mut Vec<ChatDelta>) -> Result<(), CallError> {
        if self.done || event.data.is_empty() {
            return Ok(());
        }
        if event.data.trim() == DONE {
            self.done = true;
            return Ok(());
        }
        let chunk = event_json(VENDOR, event)?;
        self.chunk(&chunk, deltas)
    }

    fn is_complete(&self) -> bool {
        self.done
    }

    fn finish(mut self: Box<Self>) -> Result<ChatReply, CallError> {
        // Some servers send no end mark: with them, the reason why the model stopped is the mark.
        let ended = self.done || !self.original;
        if !ended || self.finish.is_none() {
            return Err(cut(VENDOR));
        }
        let body = self.completion();
        reply::read_completion(body, &self.call_id, &self.order)
    }
}
