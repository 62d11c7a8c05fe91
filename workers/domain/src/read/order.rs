//! What a step query means: which steps match, which comes first, and a page's end as a text.

use std::cmp::Ordering;
use std::fmt;
use std::str::FromStr;

use schemas::id::SessionId;
use schemas::record::{StepRecord, StoredStep};

use crate::ports::{StepPlace, StepQuery};

impl StepPlace {
    pub fn of(stored: &StoredStep) -> Self {
        Self {
            iteration: stored.step.iteration,
            created_at_ms: stored.step.created_at_ms,
            session_id: stored.key.session_id.clone(),
        }
    }
}

/// A cursor: `<iteration>~<created_at_ms>~<session>`, safe in a URL.
impl fmt::Display for StepPlace {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}~{}~{}", self.iteration, self.created_at_ms, self.session_id)
    }
}

impl FromStr for StepPlace {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let refused = || "is no cursor of a page of steps; send a next_cursor as it was answered".to_owned();
        let mut parts = text.splitn(3, '~');
        let mut part = || parts.next().ok_or_else(refused);
        Ok(Self {
            iteration: part()?.parse().map_err(|_| refused())?,
            created_at_ms: part()?.parse().map_err(|_| refused())?,
            session_id: SessionId::parse(part()?).map_err(|_| refused())?,
        })
    }
}

impl StepQuery {
    /// Whether a step meets every given condition.
    pub fn matches(&self, stored: &StoredStep) -> bool {
        let step = &stored.step;
        self.namespace.as_ref().is_none_or(|ns| *ns == stored.key.namespace)
            && self.session.as_ref().is_none_or(|key| *key == stored.key)
            && self.agent_id.as_ref().is_none_or(|agent| *agent == stored.agent_id)
            && self.min_iteration.is_none_or(|min| step.iteration >= min)
            && self.max_iteration.is_none_or(|max| step.iteration <= max)
            && self.since_ms.is_none_or(|since| step.created_at_ms >= since)
            && self.status.is_none_or(|status| step.status == status)
            && self.after.as_ref().is_none_or(|after| self.compare_places(after, &StepPlace::of(stored)).is_lt())
    }

    /// The order of the query.
    pub fn compare(&self, a: &StoredStep, b: &StoredStep) -> Ordering {
        self.compare_places(&StepPlace::of(a), &StepPlace::of(b))
    }

    fn compare_places(&self, a: &StepPlace, b: &StepPlace) -> Ordering {
        let by_iteration = a.iteration.cmp(&b.iteration);
        let by_time = a.created_at_ms.cmp(&b.created_at_ms);
        let (first, second) = if self.by_time { (by_time, by_iteration) } else { (by_iteration, by_time) };
        let ascending = first.then(second).then_with(|| a.session_id.cmp(&b.session_id));
        if self.descending { ascending.reverse() } else { ascending }
    }
}

/// Bytes of a step's texts and JSON: what counts against `limits::PAGE_BYTES_MAX`.
pub fn step_bytes(step: &StepRecord) -> usize {
    let json = |value: &Option<schemas::json::Json>| value.as_ref().map_or(0, |v| v.as_str().len());
    let text = |value: &Option<String>| value.as_ref().map_or(0, String::len);
    step.state.as_str().len()
        + json(&step.data)
        + json(&step.guidance)
        + text(&step.text)
        + text(&step.notes)
        + text(&step.error)
}
