//! The helper finds a process that is not crash-safe, and passes one that is.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use domain::failure::Failure;

use super::{Run, at_every_call};
use crate::unreliable::{CrashPoint, Faults, Port};

/// Adds 1 and then notes that it did. Without the check before, a crash between repeats it.
async fn count_once(done: &AtomicU64, sum: &AtomicU64, faults: &Faults, careful: bool) -> Result<(), Failure> {
    let add = async {
        let before = sum.load(Ordering::SeqCst);
        if !careful || before == 0 {
            sum.store(before + 1, Ordering::SeqCst);
        }
        Ok(())
    };
    faults.call(Port::Ledger, "add", add).await?;
    let mark = async {
        done.store(1, Ordering::SeqCst);
        Ok(())
    };
    faults.call(Port::Ledger, "mark", mark).await
}

fn scenario(crash: Option<CrashPoint>, careful: bool) -> Run<u64> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_time().start_paused(true).build();
    runtime.expect("a runtime").block_on(run(crash, careful))
}

async fn run(crash: Option<CrashPoint>, careful: bool) -> Run<u64> {
    let (done, sum) = (Arc::new(AtomicU64::new(0)), AtomicU64::new(0));
    let first = Faults::none("first");
    if let Some(point) = crash {
        first.crash_at(point);
    }
    tokio::select! {
        biased;
        () = first.crashed() => {}
        result = count_once(&done, &sum, &first, careful) => result.expect("no faults are scripted"),
    }
    if done.load(Ordering::SeqCst) == 0 {
        let second = Faults::none("second");
        count_once(&done, &sum, &second, careful).await.expect("no faults are scripted");
    }
    Run { calls: first.calls(), history: sum.load(Ordering::SeqCst) }
}

#[test]
fn a_safe_process_passes() {
    assert_eq!(at_every_call(1, |crash| scenario(crash, true)), Ok(4));
}

#[test]
fn an_unsafe_process_is_found() {
    let found = at_every_call(1, |crash| scenario(crash, false));
    assert!(found.is_err_and(|why| why.contains("changes history")));
}
