//! Group commit: calls of many tasks are gathered into one transaction. Nothing lingers: what came
//! while the last transaction ran is the next batch.

use std::future::Future;
use std::ops::Range;
use std::sync::Arc;

use domain::failure::{Certainty, Failure};
use schemas::problem::Code;
use tokio::sync::{mpsc, oneshot};

/// Calls that may wait for the next batch; more make their callers wait.
const WAITING_MAX: usize = 4096;
/// Bound on the scheduler's turns that a batch is gathered for.
const TURNS_MAX: usize = 64;

/// A call that can share its transaction with others.
pub(super) trait Batched: Send + Sync + 'static {
    type Answer: Send + 'static;
    /// What limits the size of a batch; starts empty.
    type Load: Default + Send;

    /// Whether the call may join a batch of this load. Adds itself if so.
    fn join(&self, load: &mut Self::Load) -> bool;
}

struct Waiting<C: Batched> {
    call: C,
    answer: oneshot::Sender<Result<C::Answer, Failure>>,
}

/// The way into the batches of one kind of call.
pub(super) struct Queue<C: Batched>(mpsc::Sender<Waiting<C>>);

impl<C: Batched> Queue<C> {
    /// Starts the task that runs the batches. It owns every transaction, so that a caller that
    /// goes away cannot tear one; it ends with the last queue handle.
    pub(super) fn start<R, F>(run: R) -> Self
    where
        R: Fn(Arc<[C]>, Range<usize>) -> F + Send + Sync + 'static,
        F: Future<Output = Result<Vec<C::Answer>, Failure>> + Send + 'static,
    {
        let (sender, receiver) = mpsc::channel(WAITING_MAX);
        tokio::spawn(work(receiver, run));
        Self(sender)
    }

    pub(super) async fn call(&self, call: C) -> Result<C::Answer, Failure> {
        let (answer, result) = oneshot::channel();
        let closed = || Failure::unavailable("the store is closed");
        self.0.send(Waiting { call, answer }).await.map_err(|_| closed())?;
        result.await.map_err(|_| Failure::in_doubt("the store stopped before it answered"))?
    }
}

async fn work<C, R, F>(mut receiver: mpsc::Receiver<Waiting<C>>, run: R)
where
    C: Batched,
    R: Fn(Arc<[C]>, Range<usize>) -> F + Send + Sync + 'static,
    F: Future<Output = Result<Vec<C::Answer>, Failure>> + Send,
{
    let mut held = None;
    loop {
        let first = match held.take() {
            Some(waiting) => waiting,
            None => match receiver.recv().await {
                Some(waiting) => waiting,
                None => return,
            },
        };
        gathering(&receiver).await;
        let (calls, answers) = gather(first, &mut receiver, &mut held);
        for (answer, result) in answers.into_iter().zip(settle(calls, &run).await) {
            // The caller may have gone; what it asked for is done all the same.
            let _ = answer.send(result);
        }
    }
}

/// Lets tasks that became ready together submit together: yields for as long as each turn brings
/// more calls. When nobody is about to call, this is one turn.
async fn gathering<C: Batched>(receiver: &mpsc::Receiver<Waiting<C>>) {
    let mut waiting = receiver.len();
    for _ in 0..TURNS_MAX {
        tokio::task::yield_now().await;
        let now = receiver.len();
        if now == waiting {
            return;
        }
        waiting = now;
    }
}

type Answers<A> = Vec<oneshot::Sender<Result<A, Failure>>>;

/// The first call, and those behind it that fit; the first one that does not is held back, so
/// that calls keep their order.
fn gather<C: Batched>(
    first: Waiting<C>,
    receiver: &mut mpsc::Receiver<Waiting<C>>,
    held: &mut Option<Waiting<C>>,
) -> (Vec<C>, Answers<C::Answer>) {
    let mut load = C::Load::default();
    // A call larger than any batch runs alone.
    first.call.join(&mut load);
    let (mut calls, mut answers) = (vec![first.call], vec![first.answer]);
    while let Ok(next) = receiver.try_recv() {
        if !next.call.join(&mut load) {
            *held = Some(next);
            break;
        }
        calls.push(next.call);
        answers.push(next.answer);
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
