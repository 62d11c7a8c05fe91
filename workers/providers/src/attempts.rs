//! Attempts with waits between them: the schedule is data from `domain::retry`, the walk along it
//! is the `backoff` crate's. Nothing else of this workspace uses that crate.

use std::future::Future;
use std::sync::{LazyLock, Mutex, PoisonError};
use std::time::{Duration, Instant};

use backoff::backoff::Backoff;
use domain::outage::Seldom;
use domain::retry::Schedule;
use schemas::limits::RETRY_AFTER_MS_MAX;

use crate::call::{CallError, Class};

/// The waits of a schedule, in order.
struct Waits {
    schedule: Schedule,
    failed: u32,
}

impl Backoff for Waits {
    fn reset(&mut self) {
        self.failed = 0;
    }

    fn next_backoff(&mut self) -> Option<Duration> {
        self.failed += 1;
        self.schedule.delay_ms(self.failed).map(Duration::from_millis)
    }
}

/// Calls until it works, fails for a reason that waiting does not mend, or the schedule ends.
/// Each attempt has the schedule's timeout. `repeat` may forbid a repeat (at-most-once effects).
///
/// # Errors
/// The last failure and the number of attempts made.
pub async fn run<T, F, A>(
    schedule: Schedule,
    repeat: impl Fn(&CallError) -> bool,
    mut attempt: F,
) -> Result<T, (CallError, u32)>
where
    F: FnMut() -> A,
    A: Future<Output = Result<T, CallError>>,
{
    let mut waits = Waits { schedule, failed: 0 };
    let limit = Duration::from_millis(schedule.timeout_ms);
    loop {
        let late = || CallError::new(Class::Timeout, format!("no answer within {} ms", schedule.timeout_ms));
        let result = tokio::time::timeout(limit, attempt()).await.unwrap_or_else(|_| Err(late()));
        let error = match result {
            Ok(value) => return Ok(value),
            Err(error) => error,
        };
        let next = match classify(error, &repeat) {
            backoff::Error::Permanent(error) => return Err((error, waits.failed + 1)),
            backoff::Error::Transient { err, retry_after } => {
                waits.next_backoff().map(|wait| (err.clone(), wait, retry_after)).ok_or(err)
            }
        };
        match next {
            Err(error) => return Err((error, waits.failed)),
            Ok((error, wait, asked)) => {
                let wait = wait.max(asked.unwrap_or_default());
                tell(&error, waits.failed, wait);
                tokio::time::sleep(wait).await;
            }
        }
    }
}

/// Calls by the thousand may fail together; a line now and then tells of them all.
static TOLD: LazyLock<(Instant, Mutex<Seldom>)> = LazyLock::new(|| (Instant::now(), Mutex::default()));

fn tell(error: &CallError, attempt: u32, wait: Duration) {
    let (class, wait_ms) = (error.class.as_str(), wait.as_millis() as u64);
    let (begun, told) = &*TOLD;
    let line = told.lock().unwrap_or_else(PoisonError::into_inner).see(begun.elapsed());
    match line {
        Some(left_out) => {
            tracing::warn!(class, attempt, wait_ms, left_out, error = %error.message, "call failed, trying again");
        }
        None => tracing::debug!(class, attempt, wait_ms, error = %error.message, "call failed, trying again"),
    }
}

fn classify(error: CallError, repeat: impl Fn(&CallError) -> bool) -> backoff::Error<CallError> {
    let asked = error.retry_after_ms;
    // A wait beyond the bound ends the attempts: a step is not held for minutes by a promise.
    if !error.is_retriable() || !repeat(&error) || asked.is_some_and(|ms| ms > RETRY_AFTER_MS_MAX) {
        return backoff::Error::permanent(error);
    }
    match asked {
        Some(ms) => backoff::Error::retry_after(error, Duration::from_millis(ms)),
        None => backoff::Error::transient(error),
    }
}

#[cfg(test)]
mod tests {
    use std::cell::Cell;

    use domain::retry::MODEL;
    use tokio::time::Instant;

    use super::*;

    async fn fail_times(times: u32, error: CallError) -> (Result<u32, (CallError, u32)>, Duration) {
        let (calls, start) = (Cell::new(0), Instant::now());
        let result = run(
            MODEL,
            |_| true,
            || {
                calls.set(calls.get() + 1);
                let (n, error) = (calls.get(), error.clone());
                async move { if n <= times { Err(error) } else { Ok(n) } }
            },
        )
        .await;
        (result, start.elapsed())
    }

    #[tokio::test(start_paused = true)]
    async fn three_attempts_with_half_a_second_and_a_second() {
        let error = CallError::new(Class::Overloaded, "busy");
        let (result, took) = fail_times(2, error.clone()).await;
        assert_eq!((result, took.as_millis()), (Ok(3), 1_500));
        let (result, took) = fail_times(9, error.clone()).await;
        assert_eq!((result, took.as_millis()), (Err((error, 3)), 1_500));
    }

    #[tokio::test(start_paused = true)]
    async fn business_is_not_tried_again() {
        for class in [Class::Auth, Class::Invalid, Class::Quota, Class::Safety, Class::Forbidden, Class::Unknown] {
            let (result, took) = fail_times(1, CallError::new(class, "no")).await;
            assert!(result.is_err_and(|(_, attempts)| attempts == 1) && took.is_zero());
        }
    }

    #[tokio::test(start_paused = true)]
    async fn what_the_other_side_says_about_trying_again_comes_first() {
        let said = |class, again| CallError { again: Some(again), ..CallError::new(class, "no") };
        let (result, _) = fail_times(1, said(Class::Overloaded, false)).await;
        assert!(result.is_err_and(|(_, attempts)| attempts == 1));
        assert_eq!(fail_times(1, said(Class::Invalid, true)).await.0, Ok(2));
    }

    #[tokio::test(start_paused = true)]
    async fn a_wish_to_wait_is_honoured_within_bounds() {
        let asking = |ms| CallError::new(Class::RateLimit, "slow down").retry_after(Some(ms));
        let (result, took) = fail_times(1, asking(7_000)).await;
        assert_eq!((result, took.as_millis()), (Ok(2), 7_000));
        let (result, took) = fail_times(1, asking(10)).await;
        assert_eq!((result, took.as_millis()), (Ok(2), 500));
        // As limits per minute ask for, all the way to their end.
        let (result, took) = fail_times(2, asking(60_000)).await;
        assert_eq!((result, took.as_millis()), (Ok(3), 120_000));
        let (result, took) = fail_times(1, asking(RETRY_AFTER_MS_MAX + 1)).await;
        assert!(result.is_err_and(|(_, attempts)| attempts == 1) && took.is_zero());
    }

    #[tokio::test(start_paused = true)]
    async fn silence_ends_at_the_timeout_and_forbidden_repeats_do_not_happen() {
        let start = Instant::now();
        let result = run(MODEL, |error| !error.sent, std::future::pending::<Result<(), CallError>>).await;
        let (error, attempts) = result.expect_err("no answer");
        assert_eq!((error.class, attempts, start.elapsed().as_millis()), (Class::Timeout, 1, 120_000));
    }
}
