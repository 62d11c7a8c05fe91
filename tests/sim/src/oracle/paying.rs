//! What steps asked of models is counted as often as it is recorded.

use domain::invariant::Invariant;
use domain::spending::Spent;
use schemas::event::EventKind;

use super::Findings;
use super::story::{Item, Stories};

pub fn check(stories: &Stories, findings: &mut Findings) {
    for story in &stories.0 {
        let mut recorded = Spent::default();
        let events = story.items().into_iter().filter_map(|item| match item {
            Item::Event(event) if event.kind == EventKind::ProviderCall => Spent::of_event(event),
            _ => None,
        });
        events.for_each(|spent| recorded.add(spent));
        let counted = story.row.head.models.as_deref().map(Spent::by_steps).unwrap_or_default();
        findings.expect(Invariant::S3, recorded == counted, || {
            format!("{} has asked for {recorded:?} by its events and {counted:?} by its row", story.row.key)
        });
    }
}
