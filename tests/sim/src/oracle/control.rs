//! Control takes effect and stays in effect: no step while paused, nothing after the end, and every
//! session that does not rest has a cause that is true (L1).

use domain::invariant::Invariant;
use schemas::event::EventKind;
use schemas::session::{Cause, SessionStatus};

use super::Findings;
use super::story::{Item, Stories, Story};

pub fn check(stories: &Stories, findings: &mut Findings) {
    for story in &stories.0 {
        statuses(story, findings);
        cause(story, findings);
    }
}

fn statuses(story: &Story, findings: &mut Findings) {
    let key = &story.row.key;
    let mut status = SessionStatus::Starting;
    for item in story.items() {
        let offset = item.offset();
        findings.expect(Invariant::A1, !status.is_final(), || {
            format!("{key} is {status:?} and goes on at offset {offset}")
        });
        match item {
            Item::Step(step) => {
                let may = matches!(status, SessionStatus::Running | SessionStatus::Stopping);
                findings.expect(Invariant::A1, may, || format!("{key} takes step {} while {status:?}", step.iteration));
            }
            Item::Event(event) if event.kind == EventKind::Status => {
                let text = event.data.to_value()["status"].as_str().unwrap_or_default().to_owned();
                status = SessionStatus::parse(&text).unwrap_or(status);
            }
            Item::Event(_) => {}
        }
    }
    findings.expect(Invariant::S3, status == story.row.head.status, || {
        format!("{key} is {:?} by its row and {status:?} by its events", story.row.head.status)
    });
}

fn cause(story: &Story, findings: &mut Findings) {
    let (key, head) = (&story.row.key, &story.row.head);
    let agrees = match head.status {
        SessionStatus::Stopped | SessionStatus::Completed | SessionStatus::Error => {
            head.cause == Cause::Ended && head.wake_at_ms.is_none() && head.stop_reason.is_some()
        }
        SessionStatus::Paused => matches!(head.cause, Cause::Paused { .. }) && head.wake_at_ms.is_none(),
        SessionStatus::Running => match head.cause {
            Cause::Input => true,
            Cause::Timer | Cause::Runnable | Cause::Operation => head.wake_at_ms.is_some(),
            Cause::Paused { .. } | Cause::Ended => false,
        },
        SessionStatus::Starting | SessionStatus::Stopping => head.cause == Cause::Runnable,
    };
    findings.expect(Invariant::L1, agrees, || format!("{key} has no true cause: {head:?}"));
}
