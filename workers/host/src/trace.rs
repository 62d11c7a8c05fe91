//! Traces of actions, in the protocol of OpenTelemetry (OTLP over HTTP): acceptance, publication,
//! delivery, application. Off unless `OTEL_EXPORTER_OTLP_ENDPOINT` (or `…_TRACES_ENDPOINT`) says where
//! to; `OTEL_TRACES_SAMPLER=traceidratio` with `OTEL_TRACES_SAMPLER_ARG` keeps a part of them, the
//! same part in every process, since the ids are derived (`domain::trace`).

mod send;
mod span;

use std::sync::OnceLock;
use std::time::{Duration, SystemTime};

use schemas::id::{ActionId, Namespace};
use send::Outbox;
pub use span::Stage;

/// A process that ends does not wait longer for its spans.
const FLUSH_MAX: Duration = Duration::from_secs(3);
const ENDPOINTS: [&str; 2] = ["OTEL_EXPORTER_OTLP_TRACES_ENDPOINT", "OTEL_EXPORTER_OTLP_ENDPOINT"];

/// Whose traces they are.
#[derive(Debug, Clone, Copy)]
pub struct Process<'a> {
    /// The same for all processes of a fleet.
    pub service: &'static str,
    /// Of this process alone.
    pub instance: &'a str,
    /// What it does, as in `runner,archivist`.
    pub roles: &'a str,
}

struct Traces {
    outbox: Outbox,
    /// Of all traces, how many are kept: 0 to 1.
    ratio: f64,
}

static TRACES: OnceLock<Traces> = OnceLock::new();

/// Begins to send traces, if the environment says where to. Must run within a runtime; a second call
/// changes nothing.
///
/// # Errors
/// What is wrong with the settings of OpenTelemetry.
pub fn start(process: &Process<'_>) -> Result<(), String> {
    if !ENDPOINTS.iter().any(|name| std::env::var_os(name).is_some_and(|value| !value.is_empty())) {
        return Ok(());
    }
    let ratio = ratio(&|name| std::env::var(name).ok())?;
    let exporter = send::exporter(process)?;
    let (outbox, waiting) = send::channel();
    if TRACES.set(Traces { outbox, ratio }).is_ok() {
        tokio::spawn(send::run(exporter, waiting));
        tracing::info!("traces are sent");
    }
    Ok(())
}

/// The moment at which a stage begins; `None` when nobody traces.
pub fn begin() -> Option<SystemTime> {
    TRACES.get().map(|_| now())
}

/// Collectors put spans of all machines beside each other by the time of day.
#[allow(clippy::disallowed_methods, reason = "the clock of traces")]
fn now() -> SystemTime {
    SystemTime::now()
}

/// Notes a stage that began at `begun` and ends now. `more` names what is worth knowing beside the
/// action; it is not asked for when nobody traces.
pub fn end<const N: usize>(
    begun: Option<SystemTime>,
    stage: Stage,
    namespace: &Namespace,
    action: &ActionId,
    more: impl FnOnce() -> [(&'static str, String); N],
) {
    let (Some(begun), Some(traces)) = (begun, TRACES.get()) else { return };
    let ids = domain::trace::trace_ids(namespace, action);
    if is_kept(ids.trace, traces.ratio) {
        traces.outbox.offer(span::span(stage, ids, (begun, now()), namespace, action, more().into()));
    }
}

/// Sends what still waits, for a moment at most.
pub async fn flush() {
    let Some(traces) = TRACES.get() else { return };
    let _ = tokio::time::timeout(FLUSH_MAX, traces.outbox.flush()).await;
}

fn is_kept(trace: u128, ratio: f64) -> bool {
    // As the specification of `traceidratio` has it: by the last 63 bits.
    let place = (trace as u64) >> 1;
    // All of them: the largest place rounds up to the bound.
    ratio >= 1.0 || (place as f64) < ratio * (1_u64 << 63) as f64
}

fn ratio(env: &dyn Fn(&str) -> Option<String>) -> Result<f64, String> {
    let sampler = env("OTEL_TRACES_SAMPLER").unwrap_or_default();
    let argument = env("OTEL_TRACES_SAMPLER_ARG").unwrap_or_default();
    match sampler.trim_start_matches("parentbased_") {
        "" | "always_on" => Ok(1.0),
        "always_off" => Ok(0.0),
        "traceidratio" if argument.is_empty() => Ok(1.0),
        "traceidratio" => match argument.parse() {
            Ok(ratio) if (0.0..=1.0).contains(&ratio) => Ok(ratio),
            _ => Err(format!("OTEL_TRACES_SAMPLER_ARG is {argument:?}; give a number from 0 to 1")),
        },
        _ => Err(format!(
            "OTEL_TRACES_SAMPLER is {sampler:?}; there are always_on, always_off, traceidratio, also with parentbased_"
        )),
    }
}

#[cfg(test)]
mod tests;
