//! Threads of their own for work that nobody waits for: however long it computes, what serves
//! sessions and requests goes on.

use std::io;

use tokio::runtime::{Builder, Runtime};

/// A runtime beside the main one. What still runs on it when it is dropped is abandoned.
#[derive(Debug)]
pub struct Background(Option<Runtime>);

impl Background {
    /// # Errors
    /// The system gives no threads.
    pub fn start(name: &'static str, threads: usize) -> io::Result<Self> {
        let runtime = Builder::new_multi_thread().worker_threads(threads).thread_name(name).enable_all().build()?;
        Ok(Self(Some(runtime)))
    }

    /// Runs something that spawns tasks, so that they run here. To be called within any runtime.
    pub fn within<T>(&self, spawn: impl FnOnce() -> T) -> T {
        let _here = self.0.as_ref().map(Runtime::enter);
        spawn()
    }
}

impl Drop for Background {
    fn drop(&mut self) {
        // Waiting for its threads is not allowed among tasks, which is where this is dropped.
        if let Some(runtime) = self.0.take() {
            runtime.shutdown_background();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(flavor = "current_thread")]
    async fn what_computes_there_holds_nothing_up_here() {
        let background = Background::start("busy", 1).expect("threads");
        let (started, has_started) = tokio::sync::oneshot::channel();
        let (end, ends) = std::sync::mpsc::sync_channel::<()>(1);
        let busy = background.within(|| {
            tokio::spawn(async move {
                let _ = started.send(std::thread::current().name().map(str::to_owned));
                // Blocks its thread.
                ends.recv()
            })
        });
        assert_eq!(has_started.await.expect("it runs").as_deref(), Some("busy"));
        tokio::time::sleep(std::time::Duration::from_millis(1)).await;
        end.send(()).expect("it still runs");
        assert!(busy.await.expect("no panic").is_ok());
    }
}
