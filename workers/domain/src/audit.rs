//! Whether a session has a cause to stand where it stands (DESIGN 1, idea 5; invariant L1). Pure:
//! the auditor brings what it read, and heals what this calls healable.

mod turn;

use schemas::session::{Cause, Head, SessionStatus};

pub use turn::{Child, TurnFinding, WorkFinding, child_of, is_forgotten, is_suspect, judge_turn, judge_work};

/// A session is late once it should have run for this long: longer than a take-over and a scan, and
/// than most calls of a step.
pub const OVERDUE_MS: i64 = 60_000;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Finding {
    /// It rests, runs, or waits for something that will come.
    Fine,
    /// It was to run that long ago: its step takes long, its shard has no owner, or it is stuck.
    Overdue { by_ms: i64 },
    /// Nothing will ever move it.
    WithoutCause { is_healable: bool },
    /// That depends on whether actions are pending for it: judge again with [`judge_idle`].
    Depends,
}

/// Judges by the head alone.
pub fn judge(head: &Head, now_ms: i64) -> Finding {
    if head.status.is_at_rest() {
        return Finding::Fine;
    }
    match (head.wake_at_ms, head.status, &head.cause) {
        (Some(at), ..) => late(now_ms.saturating_sub(at)),
        (None, SessionStatus::Paused, Cause::Paused { .. }) | (None, SessionStatus::Running, Cause::Input) => {
            Finding::Fine
        }
        (None, ..) => Finding::Depends,
    }
}

/// Judges a session without a timer that does not wait for a person: pending actions move it, and open
/// operations, each of which is judged by the turn that waits for it ([`judge_work`]).
pub fn judge_idle(head: &Head, is_moved: bool) -> Finding {
    if is_moved {
        return Finding::Fine;
    }
    // Woken, these go on by themselves. One whose create action is gone has nothing to start with.
    let is_healable = matches!(head.status, SessionStatus::Running | SessionStatus::Stopping);
    Finding::WithoutCause { is_healable }
}

fn late(by_ms: i64) -> Finding {
    if by_ms > OVERDUE_MS { Finding::Overdue { by_ms } } else { Finding::Fine }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn head(status: SessionStatus, cause: Cause, wake_at_ms: Option<i64>) -> Head {
        Head { status, cause, wake_at_ms, ..Head::starting(0) }
    }

    fn paused() -> Cause {
        Cause::Paused { by: "ana".into(), reason: None }
    }

    #[test]
    fn whoever_rests_or_waits_for_somebody_is_fine() {
        for (status, cause) in [
            (SessionStatus::Completed, Cause::Ended),
            (SessionStatus::Error, Cause::Ended),
            (SessionStatus::Paused, paused()),
            (SessionStatus::Running, Cause::Input),
        ] {
            assert_eq!(judge(&head(status, cause, None), i64::MAX), Finding::Fine);
        }
    }

    #[test]
    fn a_timer_is_a_cause_until_it_is_long_past() {
        for cause in [Cause::Runnable, Cause::Timer, Cause::Input, Cause::Operation] {
            let head = head(SessionStatus::Running, cause, Some(1_000));
            assert_eq!(judge(&head, i64::MIN), Finding::Fine);
            assert_eq!(judge(&head, 1_000 + OVERDUE_MS), Finding::Fine);
            assert_eq!(judge(&head, 1_001 + OVERDUE_MS), Finding::Overdue { by_ms: OVERDUE_MS + 1 });
        }
    }

    #[test]
    fn without_timer_and_person_only_an_action_can_move_it() {
        for (status, cause, is_healable) in [
            (SessionStatus::Running, Cause::Runnable, true),
            (SessionStatus::Running, Cause::Timer, true),
            (SessionStatus::Running, Cause::Operation, true),
            (SessionStatus::Stopping, Cause::Runnable, true),
            (SessionStatus::Starting, Cause::Runnable, false),
            (SessionStatus::Paused, Cause::Runnable, false),
        ] {
            let head = head(status, cause, None);
            assert_eq!(judge(&head, 0), Finding::Depends);
            assert_eq!(judge_idle(&head, true), Finding::Fine);
            assert_eq!(judge_idle(&head, false), Finding::WithoutCause { is_healable });
        }
    }
}
