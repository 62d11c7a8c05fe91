//! `memory.list`.

use schemas::id::MemoryId;
use schemas::limits::{MEMORY_PAGE_DEFAULT, MEMORY_PAGE_MAX};
use schemas::problem::FieldProblem;
use serde_json::Value;

use super::{FILTERS, checked, filter};
use crate::action::fields::{Object, Problems};
use crate::memory::MemoryFilter;

const FIELDS: &[&str] = &["limit", "cursor"];

/// A list without problems.
#[derive(Debug, Clone, PartialEq)]
pub struct MemoryList {
    pub filter: MemoryFilter,
    /// The place of the last memory of the page before: when it was changed, and its id.
    pub after: Option<(i64, MemoryId)>,
    pub limit: usize,
}

impl MemoryList {
    /// # Errors
    /// Everything that is wrong with the input.
    pub fn check(input: &Value) -> Result<Self, Vec<FieldProblem>> {
        let known = [FIELDS, &FILTERS].concat();
        checked(input, &known, |object, problems| {
            let limit = object.whole("limit", 1, MEMORY_PAGE_MAX as u64, problems);
            Some(Self {
                filter: filter(object, problems),
                after: after(object, problems),
                limit: limit.map_or(MEMORY_PAGE_DEFAULT, |limit| limit as usize),
            })
        })
    }

    /// What the next page is asked for with.
    pub fn cursor(place: &(i64, MemoryId)) -> String {
        format!("{}/{}", place.0, place.1)
    }
}

fn after(object: &Object<'_>, problems: &mut Problems) -> Option<(i64, MemoryId)> {
    let text = object.string("cursor", problems)?;
    let place = text.split_once('/').and_then(|(ms, id)| Some((ms.parse().ok()?, MemoryId::parse(id).ok()?)));
    if place.is_none() {
        problems.add(object.path("cursor"), "is no cursor; send the one that came with the page before");
    }
    place
}
