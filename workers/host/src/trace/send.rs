//! Sends spans in batches. A collector that is away costs the spans and one line of the log.

use std::sync::Arc;
use std::time::Duration;

use opentelemetry::{Key, KeyValue};
use opentelemetry_otlp::WithExportConfig;
use opentelemetry_sdk::Resource;
use opentelemetry_sdk::trace::{SpanData, SpanExporter};
use tokio::sync::{Notify, mpsc, oneshot};

use super::Process;

/// What sets the processes of a service apart.
const INSTANCE: &str = "service.instance.id";
/// Spans on their way out; more are dropped, so that tracing never holds up an action.
const WAITING_MAX: usize = 8_192;
const BATCH_MAX: usize = 512;
/// So many are worth a batch before its time.
const BATCH_SOON: usize = BATCH_MAX / 2;
/// How long a span may wait for others.
const GATHER: Duration = Duration::from_secs(1);
const SEND_MAX: Duration = Duration::from_secs(10);

enum Message {
    Span(Box<SpanData>),
    /// Answered when everything before it was sent, or could not be.
    Flush(oneshot::Sender<()>),
}

/// The way out for spans.
pub(super) struct Outbox {
    messages: mpsc::Sender<Message>,
    hurry: Arc<Notify>,
}

/// The other end.
pub(super) struct Waiting {
    messages: mpsc::Receiver<Message>,
    /// Told when a batch is not to wait for more.
    hurry: Arc<Notify>,
}

pub(super) fn channel() -> (Outbox, Waiting) {
    let ((sender, receiver), hurry) = (mpsc::channel(WAITING_MAX), Arc::new(Notify::new()));
    (Outbox { messages: sender, hurry: hurry.clone() }, Waiting { messages: receiver, hurry })
}

impl Outbox {
    /// Hands over a span. It is dropped if too many wait: the collector is slower than the fleet.
    pub(super) fn offer(&self, span: SpanData) {
        let is_taken = self.messages.try_send(Message::Span(Box::new(span))).is_ok();
        if is_taken && self.messages.max_capacity() - self.messages.capacity() >= BATCH_SOON {
            self.hurry.notify_one();
        }
    }

    /// Returns once everything offered before was sent, or could not be.
    pub(super) async fn flush(&self) {
        let (done, is_done) = oneshot::channel();
        if self.messages.send(Message::Flush(done)).await.is_ok() {
            self.hurry.notify_one();
            // Dropped unanswered: there is nobody who sends any more.
            let _ = is_done.await;
        }
    }
}

pub(super) fn exporter(process: &Process<'_>) -> Result<opentelemetry_otlp::SpanExporter, String> {
    // Refused only if there is one already, which is as good.
    let _ = rustls::crypto::ring::default_provider().install_default();
    let build = opentelemetry_otlp::SpanExporter::builder().with_http().with_timeout(SEND_MAX).build();
    let mut exporter = build.map_err(|error| format!("traces cannot be sent: {error}"))?;
    exporter.set_resource(&resource(process));
    Ok(exporter)
}

/// Whose spans they are. What the environment says of that counts more.
fn resource(process: &Process<'_>) -> Resource {
    let told = Resource::builder().build();
    let mut resource = Resource::builder();
    if std::env::var_os("OTEL_SERVICE_NAME").is_none() {
        resource = resource.with_service_name(process.service);
    }
    if told.get_ref(&Key::from_static_str(INSTANCE)).is_none() {
        resource = resource.with_attribute(KeyValue::new(INSTANCE, process.instance.to_owned()));
    }
    let version = KeyValue::new("service.version", env!("CARGO_PKG_VERSION"));
    let pid = KeyValue::new("process.pid", i64::from(std::process::id()));
    let roles = KeyValue::new("stepfleet.roles", process.roles.to_owned());
    resource.with_attributes([version, pid, roles]).build()
}

/// Sends until the outbox is gone.
pub(super) async fn run(exporter: impl SpanExporter, mut waiting: Waiting) {
    let mut messages = Vec::with_capacity(BATCH_MAX);
    let mut works = true;
    while waiting.messages.recv_many(&mut messages, BATCH_MAX).await > 0 {
        let (mut spans, mut flushed) = (Vec::with_capacity(messages.len()), Vec::new());
        for message in messages.drain(..) {
            match message {
                Message::Span(span) => spans.push(*span),
                Message::Flush(done) => flushed.push(done),
            }
        }
        if !spans.is_empty() {
            let sent = exporter.export(spans).await;
            if let (Err(error), true) = (&sent, works) {
                tracing::warn!(%error, "traces do not get through; they are dropped until they do");
            }
            works = sent.is_ok();
        }
        for done in flushed.drain(..) {
            let _ = done.send(());
        }
        gather(&waiting).await;
    }
}

/// Lets a batch come together: until it is worth sending, or somebody waits for it.
async fn gather(waiting: &Waiting) {
    if waiting.messages.len() < BATCH_SOON {
        // A hurry from before that nobody heeded costs a smaller batch and nothing else.
        let _ = tokio::time::timeout(GATHER, waiting.hurry.notified()).await;
    }
}

#[cfg(test)]
mod tests;
