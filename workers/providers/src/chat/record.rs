//! The record of a call, from its start to its end.

use domain::chat::{ChatCall, ChatReply, Prices, ProviderCallRecord, RequestOutcome};
use serde_json::Value;
use tokio::time::Instant;

use crate::call::CallError;
use crate::clock;

/// A call under way.
pub(crate) struct Log {
    record: ProviderCallRecord,
    started: Instant,
}

impl Log {
    pub fn start(call: &ChatCall, provider: &str, model: &str, streaming: bool) -> Self {
        let record = ProviderCallRecord::open(&call.id, &call.context, provider, model, streaming, clock::now_ms());
        let run_id = call.context.run_id();
        tracing::debug!(call = %call.id, provider, model, streaming, run.id = %run_id, "model call starts");
        Self { record, started: Instant::now() }
    }

    pub fn provider(&self) -> &str {
        &self.record.provider
    }

    pub fn answered(mut self, reply: &ChatReply, prices: &Prices, attempts: u32) -> ProviderCallRecord {
        self.record.request_id = reply.request_id.clone();
        self.record.usage = reply.usage.clone();
        self.record.cost = reply.usage.as_ref().and_then(|usage| prices.cost(usage));
        for (name, value) in [
            ("finish", Some(reply.finish.as_str())),
            ("raw_finish", reply.raw_finish.as_deref()),
            ("message_id", reply.message_id.as_deref()),
            ("model", Some(reply.model.as_str())),
        ] {
            self.record.response_metadata.extend(value.map(|value| (name.to_owned(), Value::from(value))));
        }
        // Only an answer with this status is read as a reply; the script has none.
        let status = (self.record.provider != crate::config::SCRIPTED).then_some(200);
        self.close(RequestOutcome {
            ok: true,
            status,
            error_category: None,
            attempts,
            started_at_ms: 0,
            finished_at_ms: 0,
        })
    }

    pub fn failed(mut self, error: &CallError, attempts: u32) -> ProviderCallRecord {
        self.record.request_id = error.request_id.clone();
        self.record.response_metadata.insert("error".to_owned(), error.message.clone().into());
        self.close(RequestOutcome {
            ok: false,
            status: error.status,
            error_category: Some(error.class.category()),
            attempts,
            started_at_ms: 0,
            finished_at_ms: 0,
        })
    }

    fn close(mut self, outcome: RequestOutcome) -> ProviderCallRecord {
        let started_at_ms = self.record.started_at_ms;
        // Measured, so that a clock that jumps makes no call last for hours.
        let finished_at_ms = started_at_ms + i64::try_from(self.started.elapsed().as_millis()).unwrap_or(0);
        tracing::debug!(call = %self.record.id, ok = outcome.ok, attempts = outcome.attempts,
            took_ms = finished_at_ms - started_at_ms, "model call ends");
        self.record.finished_at_ms = Some(finished_at_ms);
        self.record.outcome = Some(RequestOutcome { started_at_ms, finished_at_ms, ..outcome });
        self.record
    }
}
