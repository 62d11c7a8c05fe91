//! How long sessions stood still when their worker was lost, with nothing else broken.

use super::Findings;
use crate::seen::Seen;

/// From SIGKILL or SIGSTOP of a worker to the next step of each of its sessions.
pub const ALONE_MS_MAX: i64 = 10_000;

pub fn check(seen: &Seen, findings: &mut Findings) {
    for takeover in &seen.takeovers {
        for (session, gap) in takeover.sessions.iter().zip(&takeover.gaps_ms) {
            let (fault, worker) = (&takeover.fault, &takeover.worker);
            match gap {
                None => findings.add(
                    "never taken over",
                    Some(session),
                    format!("it took no step any more after {fault} of {worker}"),
                ),
                Some(gap) => {
                    findings.expect("slow take-over", Some(session), !takeover.alone || *gap <= ALONE_MS_MAX, || {
                        format!("{gap} ms from {fault} of {worker} to the next step, and nothing else was broken")
                    })
                }
            }
        }
    }
}
