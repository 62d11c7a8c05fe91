//! The crash-point helper: run a scenario once to count its port calls, then once per call with a
//! crash exactly there, before and after it is performed. What the history says in the end must
//! not depend on it.

use std::fmt::Debug;

use crate::unreliable::{CrashPoint, Side};

/// What one run of a scenario leaves.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Run<H> {
    /// Port calls of the process that may crash, up to its end or crash.
    pub calls: u64,
    /// The history in the end, without times and other things that a crash may change.
    pub history: H,
}

/// Runs `scenario` with a crash at every one of its calls, or at every `stride`th. The scenario
/// must plan the crash it is given, restart the process when it has crashed, and run to the end.
///
/// # Errors
/// The first crash point whose history differs from that of the clean run.
pub fn at_every_call<H>(stride: usize, mut scenario: impl FnMut(Option<CrashPoint>) -> Run<H>) -> Result<u64, String>
where
    H: PartialEq + Debug,
{
    let clean = scenario(None);
    if clean.calls == 0 {
        return Err("the scenario makes no calls".into());
    }
    let mut tried = 0;
    for call in (1..=clean.calls).step_by(stride.max(1)) {
        for side in [Side::Before, Side::After] {
            let point = CrashPoint { call, side };
            let crashed = scenario(Some(point));
            if crashed.history != clean.history {
                return Err(format!(
                    "a crash at {point:?} of {} calls changes history\nclean:   {:?}\ncrashed: {:?}",
                    clean.calls, clean.history, crashed.history
                ));
            }
            tried += 1;
        }
    }
    Ok(tried)
}

#[cfg(test)]
mod tests;
