//! Named tasks with one owner: every spawned loop ends before the process does, and a panic in
//! one is never silent.

use std::future::Future;
use std::time::Duration;

use tokio::task::JoinError;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

/// The long-running tasks of a process.
#[derive(Debug, Clone, Default)]
pub struct Tasks {
    stop: CancellationToken,
    failed: CancellationToken,
    tracker: TaskTracker,
}

impl Tasks {
    pub fn new() -> Self {
        Self::default()
    }

    /// Cancelled when the tasks shall end.
    pub fn stop(&self) -> CancellationToken {
        self.stop.clone()
    }

    /// Cancelled once a task has panicked: the process is no longer whole and should stop.
    pub fn failed(&self) -> CancellationToken {
        self.failed.clone()
    }

    /// Runs a task that ends by itself soon after `stop` is cancelled.
    pub fn spawn<F>(&self, name: &'static str, task: impl FnOnce(CancellationToken) -> F)
    where
        F: Future<Output = ()> + Send + 'static,
    {
        let running = tokio::spawn(task(self.stop.clone()));
        let failed = self.failed.clone();
        self.tracker.spawn(async move {
            match running.await {
                Ok(()) => tracing::debug!(task = name, "task ended"),
                Err(error) => {
                    tracing::error!(task = name, panic = %panic_text(error), "task panicked");
                    failed.cancel();
                }
            }
        });
    }

    /// Asks all tasks to end and waits for them. Returns whether they did within `grace`.
    pub async fn shut_down(&self, grace: Duration) -> bool {
        self.stop.cancel();
        self.tracker.close();
        tokio::time::timeout(grace, self.tracker.wait()).await.is_ok()
    }
}

/// What a task said when it panicked.
pub fn panic_text(error: JoinError) -> String {
    if error.is_cancelled() {
        return "cancelled".into();
    }
    let payload = error.into_panic();
    let text = payload.downcast_ref::<&str>().map(|text| (*text).to_owned());
    text.or_else(|| payload.downcast_ref::<String>().cloned()).unwrap_or_else(|| "no message".into())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn a_panic_is_noticed_and_named() {
        let tasks = Tasks::new();
        tasks.spawn("bad", |_| async { panic!("boom {}", 1) });
        tasks.failed().cancelled().await;
        assert!(tasks.shut_down(Duration::from_secs(5)).await);
    }

    #[tokio::test(start_paused = true)]
    async fn a_task_that_ignores_the_stop_is_reported() {
        let tasks = Tasks::new();
        tasks.spawn("deaf", |_| std::future::pending());
        assert!(!tasks.shut_down(Duration::from_secs(5)).await);
    }

    #[tokio::test]
    async fn a_task_that_heeds_the_stop_is_waited_for() {
        let tasks = Tasks::new();
        tasks.spawn("good", |stop| async move { stop.cancelled().await });
        assert!(tasks.shut_down(Duration::from_secs(5)).await);
    }
}
