//! Waiting for services that are not up yet: any process may start first.

use std::time::Duration;

use anyhow::{Error, Result, bail};
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

const FIRST_WAIT: Duration = Duration::from_millis(250);
const LONGEST_WAIT: Duration = Duration::from_secs(5);
/// Between two messages about the same service.
const SAY_EVERY: Duration = Duration::from_secs(30);

/// Tries until it works, or until the process is told to stop. What waiting cannot mend fails at once.
///
/// # Errors
/// What cannot be mended, or that the process was stopped while it waited.
pub async fn when_ready<T>(
    what: &str,
    stop: &CancellationToken,
    may_pass: impl Fn(&Error) -> bool,
    mut attempt: impl AsyncFnMut() -> Result<T>,
) -> Result<T> {
    let mut wait = FIRST_WAIT;
    let mut said: Option<Instant> = None;
    loop {
        let error = match attempt().await {
            Ok(value) => {
                if said.is_some() {
                    tracing::info!(service = what, "ready");
                }
                return Ok(value);
            }
            Err(error) if may_pass(&error) => error,
            Err(error) => return Err(error),
        };
        if said.is_none_or(|at| at.elapsed() >= SAY_EVERY) {
            tracing::warn!(service = what, error = %format!("{error:#}"), "not ready yet; will go on trying");
            said = Some(Instant::now());
        }
        if stop.run_until_cancelled(tokio::time::sleep(wait)).await.is_none() {
            bail!("stopped while waiting for {what}: {error:#}");
        }
        wait = (wait * 2).min(LONGEST_WAIT);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn what_may_pass_is_waited_for_and_the_rest_is_not() {
        let stop = CancellationToken::new();
        let mut attempts = 0;
        let ready = when_ready(
            "it",
            &stop,
            |error| error.to_string() == "later",
            async || {
                attempts += 1;
                if attempts < 4 { bail!("later") } else { Ok(attempts) }
            },
        );
        assert_eq!(ready.await.unwrap(), 4);
        let never =
            when_ready("it", &stop, |error| error.to_string() == "later", async || -> Result<()> { bail!("never") });
        assert_eq!(never.await.unwrap_err().to_string(), "never");
        stop.cancel();
        let stopped = when_ready("it", &stop, |_| true, async || -> Result<()> { bail!("later") }).await;
        assert!(stopped.unwrap_err().to_string().starts_with("stopped while waiting for it"));
    }
}
