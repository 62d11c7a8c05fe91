//! Sends spans in batches. A collector that is away costs the spans and one line of the log.

use std::time::Duration;

use opentelemetry::KeyValue;
use opentelemetry_otlp::{SpanExporter, WithExportConfig};
use opentelemetry_sdk::Resource;
use opentelemetry_sdk::trace::{SpanData, SpanExporter as _};
use tokio::sync::{mpsc, oneshot};

const BATCH_MAX: usize = 512;
const GATHER: Duration = Duration::from_secs(1);
const SEND_MAX: Duration = Duration::from_secs(10);

pub(super) enum Message {
    Span(Box<SpanData>),
    /// Answered when everything before it was sent, or could not be.
    Flush(oneshot::Sender<()>),
}

pub(super) fn exporter(service: &'static str) -> Result<SpanExporter, String> {
    // Refused only if there is one already, which is as good.
    let _ = rustls::crypto::ring::default_provider().install_default();
    let build = SpanExporter::builder().with_http().with_timeout(SEND_MAX).build();
    let mut exporter = build.map_err(|error| format!("traces cannot be sent: {error}"))?;
    let mut resource = Resource::builder();
    if std::env::var_os("OTEL_SERVICE_NAME").is_none() {
        resource = resource.with_service_name(service);
    }
    let version = KeyValue::new("service.version", env!("CARGO_PKG_VERSION"));
    let process = KeyValue::new("process.pid", i64::from(std::process::id()));
    exporter.set_resource(&resource.with_attributes([version, process]).build());
    Ok(exporter)
}

pub(super) async fn run(exporter: SpanExporter, mut waiting: mpsc::Receiver<Message>) {
    let mut messages = Vec::with_capacity(BATCH_MAX);
    let mut works = true;
    while waiting.recv_many(&mut messages, BATCH_MAX).await > 0 {
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
        if waiting.len() < BATCH_MAX {
            gather(&waiting).await;
        }
    }
}

/// Lets a batch come together.
async fn gather(waiting: &mpsc::Receiver<Message>) {
    const LOOK: Duration = Duration::from_millis(100);
    for _ in 0..GATHER.as_millis() / LOOK.as_millis() {
        tokio::time::sleep(LOOK).await;
        if waiting.len() >= BATCH_MAX / 2 {
            return;
        }
    }
}
