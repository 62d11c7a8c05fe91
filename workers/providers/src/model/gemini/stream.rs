//! The chunks of a streamed generateContent, put together as one response. Every chunk is a response
//! of its own; there is no end mark but a reason why the model stopped, and then the end.

use domain::chat::{ChatDelta, ChatReply, Part};
use schemas::limits::CHAT_PARTS_MAX;
use serde_json::{Value, json};

use super::reply;
use crate::call::CallError;
use crate::config::Vendor;
use crate::model::{Reading, ReplyStream, cut, declined, event_json, failure, garbled, json as helper};
use crate::sse::Event;

const VENDOR: Vendor = Vendor::Gemini;

#[derive(Debug)]
pub struct Stream {
    call_id: String,
    /// What chunks say besides the candidate; an object.
    response: Value,
    /// What chunks say of the candidate besides its parts; an object.
    candidate: Value,
    parts: Vec<Value>,
    calls: usize,
}

impl Stream {
    pub fn new(reading: Reading<'_>) -> Self {
        let call_id = reading.call_id.to_owned();
        Self { call_id, response: json!({}), candidate: json!({}), parts: Vec::new(), calls: 0 }
    }

    fn chunk(&mut self, mut chunk: Value, deltas: &mut Vec<ChatDelta>) -> Result<(), CallError> {
        if !chunk.is_object() {
            return Err(garbled(VENDOR, "an event is no object"));
        }
        if !chunk["error"].is_null() {
            return Err(failure::in_stream(VENDOR, &chunk));
        }
        if let Some(reason) = reply::blocked(&chunk) {
            return Err(declined(VENDOR, &format!("the prompt was blocked: {reason}")));
        }
        let candidates = chunk["candidates"].take();
        // The latest figures and names count; the null left by what was taken does not.
        helper::merge(&mut self.response, &chunk);
        if let Some(candidate) = candidates.get(0).filter(|candidate| candidate.is_object()) {
            for part in candidate["content"]["parts"].as_array().into_iter().flatten() {
                self.part(part, deltas)?;
            }
            let mut rest = candidate.clone();
            if let Value::Object(rest) = &mut rest {
                rest.remove("content");
            }
            helper::merge(&mut self.candidate, &rest);
        }
        deltas.extend(reply::usage(&chunk["usageMetadata"]).map(|usage| ChatDelta::Usage { usage }));
        Ok(())
    }

    fn part(&mut self, given: &Value, deltas: &mut Vec<ChatDelta>) -> Result<(), CallError> {
        if self.parts.len() >= CHAT_PARTS_MAX {
            return Err(garbled(VENDOR, "too many parts"));
        }
        let (text, signed) = (helper::text(given, "text"), given["thoughtSignature"].is_string());
        // Nothing in it, and nothing to send back.
        if text.is_none() && given["text"].is_string() && !signed {
            return Ok(());
        }
        let at = match (self.parts.last_mut(), text) {
            // Signed parts stay as they are: the signature is of that very part.
            (Some(last), Some(text)) if !signed && goes_on(last, given) => {
                helper::append(last, "text", text);
                self.parts.len() - 1
            }
            _ => {
                self.parts.push(given.clone());
                self.parts.len() - 1
            }
        };
        match reply::part(given, &self.call_id, &mut self.calls) {
            Part::Text { text, .. } if !text.is_empty() => deltas.push(ChatDelta::Text { part: at, text }),
            Part::Reasoning(thoughts) if !thoughts.text.is_empty() => {
                deltas.push(ChatDelta::Reasoning { part: at, text: thoughts.text });
            }
            Part::ToolCall(call) => deltas.push(ChatDelta::ToolCall {
                part: at,
                arguments: call.invalid.unwrap_or_else(|| call.input.to_string()),
                id: Some(call.id),
                name: Some(call.name),
            }),
            _ => {}
        }
        Ok(())
    }
}

/// Whether a text goes on with the part before it.
fn goes_on(last: &Value, given: &Value) -> bool {
    let plain = |part: &Value| {
        let fields =
            part.as_object().map_or(0, |map| map.keys().filter(|key| *key != "text" && *key != "thought").count());
        part["text"].is_string() && fields == 0
    };
    plain(last) && plain(given) && (last["thought"] == true) == (given["thought"] == true)
}

impl ReplyStream for Stream {
    fn event(&mut self, event: &Event, deltas: &mut Vec<ChatDelta>) -> Result<(), CallError> {
        if event.data.is_empty() {
            return Ok(());
        }
        let chunk = event_json(VENDOR, event)?;
        self.chunk(chunk, deltas)
    }

    /// More may follow a reason to stop: tools of the provider give one in the middle.
    fn is_complete(&self) -> bool {
        false
    }

    fn finish(mut self: Box<Self>) -> Result<ChatReply, CallError> {
        let reason = helper::text(&self.candidate, "finishReason");
        if reason.is_none_or(|reason| reason == "FINISH_REASON_UNSPECIFIED") {
            return Err(cut(VENDOR));
        }
        self.candidate["content"] = json!({"role": "model", "parts": self.parts});
        self.response["candidates"] = json!([self.candidate]);
        reply::read_response(self.response, &self.call_id)
    }
}
