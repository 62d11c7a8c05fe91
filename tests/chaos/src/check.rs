//! Judges a run by what was seen of it from outside. Nothing here talks to the fleet.

pub mod accepting;
mod actions;
mod calls;
mod control;
mod fleet;
mod inputs;
mod journal;
pub mod messages;
mod owners;
pub mod sabotage;
mod steps;
mod streams;
mod takeover;
mod talk;
#[cfg(test)]
mod tests;

use std::collections::{BTreeMap, HashMap};

use serde::Serialize;

use crate::seen::{Row, Seen, Sent, Session};

/// Something that must not be.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Finding {
    /// Which promise is broken.
    pub rule: &'static str,
    pub what: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub session: Option<String>,
}

/// Of one rule, so many are told in full.
const TOLD_MAX: usize = 25;

#[derive(Debug, Default)]
pub struct Findings {
    pub told: Vec<Finding>,
    /// All of them, by rule.
    pub counts: BTreeMap<&'static str, usize>,
}

impl Findings {
    pub fn add(&mut self, rule: &'static str, session: Option<&str>, what: String) {
        let count = self.counts.entry(rule).or_default();
        *count += 1;
        if *count <= TOLD_MAX {
            self.told.push(Finding { rule, what, session: session.map(str::to_owned) });
        }
    }

    pub fn expect(&mut self, rule: &'static str, session: Option<&str>, holds: bool, what: impl FnOnce() -> String) {
        if !holds {
            self.add(rule, session, what());
        }
    }

    pub fn is_empty(&self) -> bool {
        self.told.is_empty()
    }
}

/// One session with what was sent to it, so that no check looks through everything.
pub struct Story<'s> {
    pub session: &'s Session,
    /// In the order in which they were sent.
    pub sent: Vec<(&'s Sent, Option<&'s Row>)>,
}

impl<'s> Story<'s> {
    /// Actions of these kinds that succeeded, in the order of their lane.
    pub fn succeeded(&self, kinds: &[&str]) -> Vec<(&'s Sent, &'s Row)> {
        let of_kind = self.sent.iter().filter(|(sent, _)| kinds.contains(&sent.kind.as_str()));
        let mut found: Vec<_> = of_kind
            .filter_map(|(sent, row)| row.map(|row| (*sent, row)))
            .filter(|(_, row)| row.outcome.as_deref() == Some("ok"))
            .collect();
        found.sort_by_key(|(_, row)| row.seq);
        found
    }
}

/// Everything that is wrong with a run.
pub fn all(seen: &Seen) -> Findings {
    let mut findings = Findings::default();
    let mut stories: HashMap<&str, Story<'_>> =
        seen.sessions.iter().map(|session| (session.id.as_str(), Story { session, sent: Vec::new() })).collect();
    for sent in &seen.sent {
        if let Some(story) = stories.get_mut(sent.session.as_str()) {
            story.sent.push((sent, seen.actions.get(&sent.id)));
        }
    }
    let mut stories: Vec<Story<'_>> = stories.into_values().collect();
    stories.sort_by(|a, b| a.session.id.cmp(&b.session.id));
    actions::check(seen, &mut findings);
    for story in &stories {
        steps::check(story, &mut findings);
        control::check(story, &mut findings);
        inputs::check(story, &mut findings);
    }
    calls::check(seen, &mut findings);
    streams::check(seen, &mut findings);
    owners::check(seen, &mut findings);
    journal::check(seen, &mut findings);
    accepting::check(seen, &mut findings);
    messages::check(seen, &mut findings);
    takeover::check(seen, &mut findings);
    talk::check(seen, &mut findings);
    fleet::check(seen, &mut findings);
    findings
}
