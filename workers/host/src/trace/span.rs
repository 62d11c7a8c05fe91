//! One stage in the life of an action as a span.

use std::borrow::Cow;
use std::time::SystemTime;

use domain::trace::{TraceIds, span_id};
use opentelemetry::trace::{SpanContext, SpanId, SpanKind, Status, TraceFlags, TraceId, TraceState};
use opentelemetry::{InstrumentationScope, KeyValue};
use opentelemetry_sdk::trace::{SpanData, SpanEvents, SpanLinks};
use schemas::id::{ActionId, Namespace};

/// In the order in which an action comes through them.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Stage {
    /// Until its row is committed: at the gateway, or by a worker, of what the fleet itself enqueues and of what others
    /// put on the queues of shards. The root of the trace.
    Accept,
    /// To the broker, until it has confirmed.
    Publish,
    /// From the queue to its session.
    Deliver,
    /// The commit that settles it.
    Apply,
}

impl Stage {
    fn name(self) -> &'static str {
        match self {
            Self::Accept => "accept action",
            Self::Publish => "publish action",
            Self::Deliver => "deliver action",
            Self::Apply => "apply action",
        }
    }

    fn kind(self) -> SpanKind {
        match self {
            Self::Accept => SpanKind::Server,
            Self::Publish => SpanKind::Producer,
            Self::Deliver => SpanKind::Consumer,
            Self::Apply => SpanKind::Internal,
        }
    }
}

pub(super) fn span(
    stage: Stage,
    ids: TraceIds,
    (begun, ended): (SystemTime, SystemTime),
    namespace: &Namespace,
    action: &ActionId,
    more: Vec<(&'static str, String)>,
) -> SpanData {
    let is_root = stage == Stage::Accept;
    let id = if is_root { ids.root } else { own_id(stage, action, begun) };
    let parent = if is_root { SpanId::INVALID } else { SpanId::from(ids.root) };
    let mut attributes = vec![
        KeyValue::new("stepfleet.namespace", namespace.to_string()),
        KeyValue::new("stepfleet.action_id", action.to_string()),
    ];
    attributes.extend(more.into_iter().map(|(name, value)| KeyValue::new(name, value)));
    SpanData {
        span_context: context(ids.trace, id),
        parent_span_id: parent,
        parent_span_is_remote: !is_root,
        span_kind: stage.kind(),
        name: Cow::Borrowed(stage.name()),
        start_time: begun,
        end_time: ended,
        attributes,
        dropped_attributes_count: 0,
        events: SpanEvents::default(),
        links: SpanLinks::default(),
        status: Status::Unset,
        instrumentation_scope: InstrumentationScope::builder("stepfleet").build(),
    }
}

fn context(trace: u128, span: u64) -> SpanContext {
    SpanContext::new(TraceId::from(trace), SpanId::from(span), TraceFlags::SAMPLED, false, TraceState::default())
}

/// A stage may happen twice to an action: redelivered, published again by the sweeper.
fn own_id(stage: Stage, action: &ActionId, begun: SystemTime) -> u64 {
    let since = begun.duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
    let place = (since.as_nanos() as u64) ^ u64::from(std::process::id()).rotate_left(32);
    span_id(&format!("{}/{action}", stage.name()), place)
}
