//! Models as a script: what they say follows from the call alone, and every call that reached them is
//! kept. The record survives the workers.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use async_trait::async_trait;
use domain::chat::{
    ChatCall, ChatOutcome, ChatReply, Finish, ModelTarget, Part, ProviderCallRecord, RequestOutcome, Usage,
};
use domain::ports::{Clock, DeltaSink, Models};
use serde_json::Value;

use crate::fake::clock::SimClock;

/// What a model says to a call.
pub type Replies = Arc<dyn Fn(&ChatCall) -> Vec<Part> + Send + Sync>;

/// Looks at each call at the moment it reaches a model; `Some` = why it must not.
pub type Witness = Arc<dyn Fn(&ChatCall) -> Option<String> + Send + Sync>;

const PROVIDER: &str = "scripted";
const MODEL: &str = "scripted-1";
/// Of every call, so that one that is counted twice shows.
const INPUT_TOKENS: u64 = 10;
const OUTPUT_TOKENS: u64 = 5;

/// Cheap to clone; clones are the same models.
#[derive(Clone)]
pub struct ScriptedModels {
    replies: Replies,
    witness: Option<Witness>,
    delay: Duration,
    clock: SimClock,
    record: Arc<Mutex<Record>>,
}

#[derive(Default)]
struct Record {
    asked: Vec<ChatCall>,
    objections: Vec<String>,
}

impl ScriptedModels {
    /// Each answer takes `delay`.
    pub fn new(replies: Replies, delay: Duration, clock: SimClock) -> Self {
        Self { replies, witness: None, delay, clock, record: Arc::default() }
    }

    pub fn with_witness(self, witness: Witness) -> Self {
        Self { witness: Some(witness), ..self }
    }

    /// Every call so far, in order.
    pub fn asked(&self) -> Vec<ChatCall> {
        self.lock().asked.clone()
    }

    /// What the witness had to say.
    pub fn objections(&self) -> Vec<String> {
        self.lock().objections.clone()
    }

    fn reply(&self, call: &ChatCall) -> ChatReply {
        let parts = (self.replies)(call);
        let calls_tools = parts.iter().any(|part| part.as_tool_call().is_some());
        let usage = Usage {
            input_tokens: INPUT_TOKENS,
            output_tokens: OUTPUT_TOKENS,
            total_tokens: INPUT_TOKENS + OUTPUT_TOKENS,
            ..Usage::default()
        };
        ChatReply {
            parts,
            finish: if calls_tools { Finish::ToolUse } else { Finish::Stop },
            raw_finish: None,
            usage: Some(usage),
            provider: PROVIDER.to_owned(),
            model: MODEL.to_owned(),
            message_id: None,
            request_id: None,
            raw: Value::Null,
        }
    }

    fn lock(&self) -> MutexGuard<'_, Record> {
        self.record.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A call under way. Dropped before its end, it has read its request.
struct Pending<'a> {
    call: &'a ChatCall,
    clock: &'a SimClock,
    started_at_ms: i64,
    sink: Option<&'a dyn DeltaSink>,
}

impl Pending<'_> {
    fn record(&self, usage: Option<Usage>, ok: bool) -> ProviderCallRecord {
        let (started_at_ms, finished_at_ms) = (self.started_at_ms, self.clock.now_ms());
        let mut record =
            ProviderCallRecord::open(&self.call.id, &self.call.context, PROVIDER, MODEL, false, started_at_ms);
        record.usage = usage;
        record.outcome =
            Some(RequestOutcome { ok, status: None, error_category: None, attempts: 1, started_at_ms, finished_at_ms });
        record.finished_at_ms = Some(finished_at_ms);
        record
    }
}

impl Drop for Pending<'_> {
    fn drop(&mut self) {
        if let Some(sink) = self.sink {
            let usage = Usage { input_tokens: INPUT_TOKENS, total_tokens: INPUT_TOKENS, ..Usage::default() };
            sink.dropped(self.record(Some(usage), false));
        }
    }
}

#[async_trait]
impl Models for ScriptedModels {
    async fn chat(&self, call: &ChatCall, sink: Option<&dyn DeltaSink>) -> ChatOutcome {
        let objection = self.witness.as_ref().and_then(|witness| witness(call));
        {
            let mut record = self.lock();
            record.objections.extend(objection);
            record.asked.push(call.clone());
        }
        let mut pending = Pending { call, clock: &self.clock, started_at_ms: self.clock.now_ms(), sink };
        tokio::time::sleep(self.delay).await;
        pending.sink = None;
        let reply = self.reply(call);
        ChatOutcome { record: pending.record(reply.usage.clone(), true), result: Ok(reply) }
    }

    fn provider(&self) -> String {
        PROVIDER.to_owned()
    }

    fn cost_of_input(&self, _target: &ModelTarget, _tokens: u64) -> f64 {
        0.0
    }
}
