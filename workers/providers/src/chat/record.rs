//! The record of a call, from its start to its end.

use domain::chat::{ChatCall, ChatReply, LOST_ATTEMPTS, Prices, ProviderCallRecord, RequestOutcome};
use domain::ports::DeltaSink;
use serde_json::Value;
use tokio::time::Instant;

use super::meter::Meter;
use crate::call::CallError;
use crate::clock;

/// A call under way. Dropped before its end, it is told to who listens: what it has used is billed all the same.
pub(crate) struct Log<'a> {
    call: &'a ChatCall,
    provider: &'a str,
    model: &'a str,
    streaming: bool,
    meter: &'a Meter<'a>,
    prices: Prices,
    /// Whom an early end is told; nobody once it has ended.
    sink: Option<&'a dyn DeltaSink>,
    started_at_ms: i64,
    started: Instant,
}

impl<'a> Log<'a> {
    pub fn start(
        call: &'a ChatCall,
        (provider, model): (&'a str, &'a str),
        streaming: bool,
        meter: &'a Meter<'a>,
    ) -> Self {
        let run_id = call.context.run_id();
        tracing::debug!(call = %call.id, provider, model, streaming, run.id = %run_id, "model call starts");
        let (prices, started_at_ms) = (Prices::default(), clock::now_ms());
        Self { call, provider, model, streaming, meter, prices, sink: None, started_at_ms, started: Instant::now() }
    }

    /// With what its tokens cost, and who is told if it is dropped.
    pub fn told_to(mut self, prices: &Prices, sink: Option<&'a dyn DeltaSink>) -> Self {
        (self.prices, self.sink) = (*prices, sink);
        self
    }

    pub fn answered(mut self, reply: &ChatReply) -> ProviderCallRecord {
        self.sink = None;
        let mut record = self.open();
        record.request_id = reply.request_id.clone();
        record.usage = self.meter.usage(reply.usage.as_ref());
        for (name, value) in [
            ("finish", Some(reply.finish.as_str())),
            ("raw_finish", reply.raw_finish.as_deref()),
            ("message_id", reply.message_id.as_deref()),
            ("model", Some(reply.model.as_str())),
        ] {
            record.response_metadata.extend(value.map(|value| (name.to_owned(), Value::from(value))));
        }
        // Only an answer with this status is read as a reply; the script has none.
        let status = (self.provider != crate::config::SCRIPTED).then_some(200);
        let outcome = RequestOutcome { ok: true, status, ..blank(self.meter.attempts()) };
        self.close(record, outcome)
    }

    pub fn failed(mut self, error: &CallError, attempts: u32) -> ProviderCallRecord {
        self.sink = None;
        let mut record = self.open();
        record.request_id = error.request_id.clone();
        record.usage = self.meter.usage(None);
        record.response_metadata.insert("error".to_owned(), error.message.clone().into());
        let error_category = Some(error.class.category());
        self.close(record, RequestOutcome { status: error.status, error_category, ..blank(attempts) })
    }

    fn dropped(&self) -> ProviderCallRecord {
        let mut record = self.open();
        record.usage = self.meter.usage(None);
        record.response_metadata.insert("error".to_owned(), "cancelled".into());
        self.close(record, blank(self.meter.attempts()))
    }

    fn open(&self) -> ProviderCallRecord {
        let Self { call, provider, model, streaming, started_at_ms, .. } = self;
        ProviderCallRecord::open(&call.id, &call.context, provider, model, *streaming, *started_at_ms)
    }

    fn close(&self, mut record: ProviderCallRecord, outcome: RequestOutcome) -> ProviderCallRecord {
        let started_at_ms = self.started_at_ms;
        // Measured, so that a clock that jumps makes no call last for hours.
        let finished_at_ms = started_at_ms + i64::try_from(self.started.elapsed().as_millis()).unwrap_or(0);
        tracing::debug!(call = %record.id, ok = outcome.ok, attempts = outcome.attempts,
            took_ms = finished_at_ms - started_at_ms, "model call ends");
        record.cost = record.usage.as_ref().and_then(|usage| self.prices.cost(usage));
        record.response_metadata.extend(self.meter.lost().map(|lost| (LOST_ATTEMPTS.to_owned(), lost)));
        record.finished_at_ms = Some(finished_at_ms);
        record.outcome = Some(RequestOutcome { started_at_ms, finished_at_ms, ..outcome });
        record
    }
}

impl Drop for Log<'_> {
    fn drop(&mut self) {
        if let Some(sink) = self.sink {
            sink.dropped(self.dropped());
        }
    }
}

/// Nothing came of so many attempts.
fn blank(attempts: u32) -> RequestOutcome {
    RequestOutcome { ok: false, status: None, error_category: None, attempts, started_at_ms: 0, finished_at_ms: 0 }
}
