//! Turns under way, and how they are told to stop. Works under any executor.

use std::collections::BTreeMap;
use std::future::poll_fn;
use std::pin::pin;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Poll, Waker};

use schemas::id::TurnId;

/// Turns that run in this process.
#[derive(Debug, Default)]
pub struct Running(Mutex<BTreeMap<TurnId, Arc<Signal>>>);

impl Running {
    /// Makes a turn cancellable until what is returned is dropped.
    pub fn enter(&self, turn: &TurnId) -> Entered<'_> {
        let signal = Arc::new(Signal::default());
        self.lock().insert(turn.clone(), Arc::clone(&signal));
        Entered { running: self, turn: turn.clone(), signal }
    }

    /// Whether the turn runs here; if so, it is told to stop.
    pub fn cancel(&self, turn: &TurnId) -> bool {
        let signal = self.lock().get(turn).cloned();
        signal.inspect(|signal| signal.cancel()).is_some()
    }

    fn lock(&self) -> MutexGuard<'_, BTreeMap<TurnId, Arc<Signal>>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[derive(Debug)]
pub struct Entered<'r> {
    running: &'r Running,
    turn: TurnId,
    signal: Arc<Signal>,
}

impl Entered<'_> {
    /// The future's output; `None` once the turn is told to stop, and the future is dropped.
    pub async fn unless_cancelled<F: Future>(&self, future: F) -> Option<F::Output> {
        let mut future = pin!(future);
        poll_fn(|context| {
            if self.signal.is_cancelled(context.waker()) {
                return Poll::Ready(None);
            }
            future.as_mut().poll(context).map(Some)
        })
        .await
    }
}

impl Drop for Entered<'_> {
    fn drop(&mut self) {
        self.running.lock().remove(&self.turn);
    }
}

#[derive(Debug, Default)]
struct Signal(Mutex<State>);

#[derive(Debug, Default)]
struct State {
    cancelled: bool,
    /// Of the one task that runs the turn.
    waker: Option<Waker>,
}

impl Signal {
    fn cancel(&self) {
        let waker = {
            let mut state = self.0.lock().unwrap_or_else(PoisonError::into_inner);
            state.cancelled = true;
            state.waker.take()
        };
        if let Some(waker) = waker {
            waker.wake();
        }
    }

    /// If not, the task is woken when it is.
    fn is_cancelled(&self, waker: &Waker) -> bool {
        let mut state = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if !state.cancelled {
            state.waker = Some(waker.clone());
        }
        state.cancelled
    }
}
