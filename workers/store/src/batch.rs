//! Group commit: calls of many tasks are gathered into one transaction. Nothing lingers: what came
//! while the last transaction ran is the next batch.

use std::future::Future;
use std::ops::Range;
use std::sync::Arc;

use domain::failure::{Certainty, Failure};
use schemas::problem::Code;
use schemas::telemetry::metric;
use tokio::sync::{mpsc, oneshot};

/// Calls that may wait for the next batch; more make their callers wait.
const WAITING_MAX: usize = 4096;
/// Bound on the scheduler's turns that a batch is gathered for.
const TURNS_MAX: usize = 64;

/// A batch under way; the answers stand in the order of its calls.
pub(crate) type Running<A> = std::pin::Pin<Box<dyn Future<Output = Result<Vec<A>, Failure>> + Send>>;

/// A call that can share its transaction with others.
pub(crate) trait Batched: Send + Sync + 'static {
    type Answer: Send + 'static;
    /// What limits the size of a batch; starts empty.
    type Load: Default + Send;
    /// Under which name the sizes of its batches are recorded, if at all.
    const KIND: Option<&'static str> = None;

    /// Whether the call may join a batch of this load. Adds itself if so.
    fn join(&self, load: &mut Self::Load) -> bool;

    /// Whether the call goes before those that are not: it is offered a place in each batch first.
    /// That is about order among calls that wait at the same moment, and about nothing else: urgent
    /// calls share their transaction with plain ones, keep their own order, and cannot starve plain
    /// ones, because every second batch is opened by the plain call that did not fit the last one.
    /// It is asked once, before the call waits.
    fn is_urgent(&self) -> bool {
        false
    }

    /// What it adds to the size of its batch.
    fn size(&self) -> usize {
        1
    }
}

struct Waiting<C: Batched> {
    call: C,
    answer: oneshot::Sender<Result<C::Answer, Failure>>,
}

/// The way into the batches of one kind of call.
pub(crate) struct Queue<C: Batched> {
    urgent: mpsc::Sender<Waiting<C>>,
    plain: mpsc::Sender<Waiting<C>>,
}

impl<C: Batched> Queue<C> {
    /// Starts the task that runs the batches. It owns every transaction, so that a caller that
    /// goes away cannot tear one; it ends with the last queue handle.
    pub(crate) fn start<R, F>(run: R) -> Self
    where
        R: Fn(Arc<[C]>, Range<usize>) -> F + Send + Sync + 'static,
        F: Future<Output = Result<Vec<C::Answer>, Failure>> + Send + 'static,
    {
        let ((urgent, urgent_calls), (plain, plain_calls)) = (mpsc::channel(WAITING_MAX), mpsc::channel(WAITING_MAX));
        tokio::spawn(work([Line::new(urgent_calls), Line::new(plain_calls)], run));
        Self { urgent, plain }
    }

    pub(crate) async fn call(&self, call: C) -> Result<C::Answer, Failure> {
        let (answer, result) = oneshot::channel();
        let closed = || Failure::unavailable("the store is closed");
        let line = if call.is_urgent() { &self.urgent } else { &self.plain };
        line.send(Waiting { call, answer }).await.map_err(|_| closed())?;
        result.await.map_err(|_| Failure::in_doubt("the store stopped before it answered"))?
    }
}

/// Calls that wait, in order.
struct Line<C: Batched> {
    calls: mpsc::Receiver<Waiting<C>>,
    /// The first one, if it did not fit the last batch.
    held: Option<Waiting<C>>,
}

impl<C: Batched> Line<C> {
    fn new(calls: mpsc::Receiver<Waiting<C>>) -> Self {
        Self { calls, held: None }
    }

    /// The next call; `None` when there will be no more. Cancel safe.
    async fn next(&mut self) -> Option<Waiting<C>> {
        match self.held.take() {
            Some(waiting) => Some(waiting),
            None => self.calls.recv().await,
        }
    }

    fn try_next(&mut self) -> Option<Waiting<C>> {
        self.held.take().or_else(|| self.calls.try_recv().ok())
    }
}

async fn work<C, R, F>([mut urgent, mut plain]: [Line<C>; 2], run: R)
where
    C: Batched,
    R: Fn(Arc<[C]>, Range<usize>) -> F + Send + Sync + 'static,
    F: Future<Output = Result<Vec<C::Answer>, Failure>> + Send,
{
    let mut is_plain_next = false;
    loop {
        // Every second batch is opened by what did not fit the last one: urgent calls without end
        // do not keep it waiting.
        let starved = if is_plain_next { plain.held.take() } else { None };
        let first = match starved {
            Some(waiting) => waiting,
            None => tokio::select! {
                biased;
                Some(waiting) = urgent.next() => waiting,
                Some(waiting) = plain.next() => waiting,
                else => return,
            },
        };
        gathering(&urgent, &plain).await;
        is_plain_next = !is_plain_next;
        let (calls, answers) = gather(first, [&mut urgent, &mut plain]);
        if let Some(kind) = C::KIND {
            let size: usize = calls.iter().map(C::size).sum();
            metrics::histogram!(metric::COMMIT_BATCH, "kind" => kind).record(size as f64);
        }
        for (answer, result) in answers.into_iter().zip(settle(calls, &run).await) {
            // The caller may have gone; what it asked for is done all the same.
            let _ = answer.send(result);
        }
    }
}

/// Lets tasks that became ready together submit together: yields for as long as each turn brings
/// more calls. When nobody is about to call, this is one turn.
async fn gathering<C: Batched>(urgent: &Line<C>, plain: &Line<C>) {
    let count = || urgent.calls.len() + plain.calls.len();
    let mut waiting = count();
    for _ in 0..TURNS_MAX {
        tokio::task::yield_now().await;
        let now = count();
        if now == waiting {
            return;
        }
        waiting = now;
    }
}

type Answers<A> = Vec<oneshot::Sender<Result<A, Failure>>>;

/// The first call, and those behind it that fit, urgent ones before others. The first of a line
/// that does not fit is held back, so that a line keeps its order.
fn gather<C: Batched>(first: Waiting<C>, lines: [&mut Line<C>; 2]) -> (Vec<C>, Answers<C::Answer>) {
    let mut load = C::Load::default();
    // A call larger than any batch runs alone.
    first.call.join(&mut load);
    let (mut calls, mut answers) = (vec![first.call], vec![first.answer]);
    for line in lines {
        while let Some(next) = line.try_next() {
            if !next.call.join(&mut load) {
                line.held = Some(next);
                break;
            }
            calls.push(next.call);
            answers.push(next.answer);
        }
    }
    (calls, answers)
}

/// One transaction for all. If one member's data is what fails it, each gets its own transaction.
async fn settle<C, R, F>(calls: Vec<C>, run: &R) -> Vec<Result<C::Answer, Failure>>
where
    C: Batched,
    R: Fn(Arc<[C]>, Range<usize>) -> F + Send + Sync + 'static,
    F: Future<Output = Result<Vec<C::Answer>, Failure>> + Send,
{
    let count = calls.len();
    let calls: Arc<[C]> = calls.into();
    let failure = match run(calls.clone(), 0..count).await {
        Ok(answers) => return answers.into_iter().map(Ok).collect(),
        Err(failure) => failure,
    };
    let by_data = failure.code == Code::Internal && failure.certainty == Certainty::DidNotHappen;
    if count == 1 || !by_data {
        return (0..count).map(|_| Err(failure.clone())).collect();
    }
    tracing::warn!(error = %failure, calls = count, "a batch failed; its members are tried one by one");
    let mut results = Vec::with_capacity(count);
    for index in 0..count {
        let one = run(calls.clone(), index..index + 1).await;
        results.push(one.and_then(|mut answers| answers.pop().ok_or_else(|| Failure::internal("no answer"))));
    }
    results
}

#[cfg(test)]
mod tests;
