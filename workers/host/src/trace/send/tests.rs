//! When spans go out, on paused time, to a collector that keeps them.

use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::SystemTime;

use opentelemetry_sdk::error::{OTelSdkError, OTelSdkResult};
use tokio::time::Instant;

use super::*;
use crate::trace::Stage;
use crate::trace::span::span;

#[derive(Debug, Clone, Default)]
struct Collector {
    batches: Arc<Mutex<Vec<(Instant, usize)>>>,
    is_away: Arc<AtomicBool>,
}

impl SpanExporter for Collector {
    async fn export(&self, batch: Vec<SpanData>) -> OTelSdkResult {
        if self.is_away.load(Ordering::Relaxed) {
            return Err(OTelSdkError::InternalFailure("nobody listens".into()));
        }
        self.batches.lock().unwrap().push((Instant::now(), batch.len()));
        Ok(())
    }
}

impl Collector {
    /// Sizes of the batches so far.
    fn sizes(&self) -> Vec<usize> {
        self.batches.lock().unwrap().iter().map(|(_, size)| *size).collect()
    }

    fn last(&self) -> Instant {
        self.batches.lock().unwrap().last().expect("a batch").0
    }
}

fn start() -> (Outbox, Collector) {
    let ((outbox, waiting), collector) = (channel(), Collector::default());
    tokio::spawn(run(collector.clone(), waiting));
    (outbox, collector)
}

fn offer(outbox: &Outbox, count: usize) {
    let (namespace, action) = ("default".parse().unwrap(), "a1".parse().unwrap());
    let ids = domain::trace::trace_ids(&namespace, &action);
    for _ in 0..count {
        let at = SystemTime::UNIX_EPOCH;
        outbox.offer(span(Stage::Accept, ids, (at, at), &namespace, &action, Vec::new()));
    }
}

/// Lets everything happen that needs no time.
async fn settle() {
    tokio::time::sleep(Duration::from_millis(1)).await;
}

#[tokio::test(start_paused = true)]
async fn a_span_is_sent_within_the_bound() {
    let (outbox, collector) = start();
    offer(&outbox, 1);
    settle().await;
    assert_eq!(collector.sizes(), [1], "the first one does not wait");
    let began = Instant::now();
    offer(&outbox, 2);
    tokio::time::sleep(GATHER / 2).await;
    offer(&outbox, 3);
    assert_eq!(collector.sizes(), [1], "the next ones wait for each other");
    tokio::time::sleep(GATHER).await;
    assert_eq!(collector.sizes(), [1, 5]);
    assert!(collector.last() - began <= GATHER, "{:?}", collector.last() - began);
}

#[tokio::test(start_paused = true)]
async fn what_is_worth_a_batch_does_not_wait() {
    let (outbox, collector) = start();
    offer(&outbox, 1);
    settle().await;
    offer(&outbox, BATCH_SOON - 1);
    settle().await;
    assert_eq!(collector.sizes(), [1]);
    offer(&outbox, 1);
    settle().await;
    assert_eq!(collector.sizes(), [1, BATCH_SOON]);
    offer(&outbox, 2 * WAITING_MAX);
    tokio::time::sleep(2 * GATHER).await;
    let sizes = collector.sizes();
    assert_eq!(sizes.iter().sum::<usize>(), 1 + BATCH_SOON + WAITING_MAX, "what does not fit is dropped");
    assert!(sizes.iter().all(|size| *size <= BATCH_MAX), "{sizes:?}");
}

#[tokio::test(start_paused = true)]
async fn a_flush_at_the_end_waits_for_nothing_but_the_sending() {
    let (outbox, collector) = start();
    offer(&outbox, 1);
    settle().await;
    offer(&outbox, 7);
    let began = Instant::now();
    outbox.flush().await;
    assert_eq!((collector.sizes(), began.elapsed()), (vec![1, 7], Duration::ZERO));
    outbox.flush().await;
    assert_eq!(began.elapsed(), Duration::ZERO, "with nothing to send as well");
}

#[tokio::test(start_paused = true)]
async fn a_collector_that_is_away_costs_its_spans_and_no_more() {
    let (outbox, collector) = start();
    collector.is_away.store(true, Ordering::Relaxed);
    offer(&outbox, 3);
    outbox.flush().await;
    assert!(collector.sizes().is_empty());
    collector.is_away.store(false, Ordering::Relaxed);
    offer(&outbox, 2);
    outbox.flush().await;
    assert_eq!(collector.sizes(), [2]);
}

#[test]
fn processes_of_a_service_are_told_apart() {
    let process = Process { service: "stepfleet", instance: "w1", roles: "runner,archivist" };
    let told = resource(&process);
    let value = |name| told.get_ref(&Key::from_static_str(name)).map(ToString::to_string);
    for (name, expected) in [("service.name", "stepfleet"), (INSTANCE, "w1"), ("stepfleet.roles", "runner,archivist")] {
        assert_eq!(value(name).as_deref(), Some(expected), "{name}");
    }
}
