//! `memory.read` and `memory.delete`: which memory is meant.

use schemas::problem::FieldProblem;
use serde_json::Value;

use super::{checked, label};
use crate::action::fields::{Object, Problems};
use crate::memory::MemoryKey;

const FIELDS: &[&str] = &["id", "label"];

/// Reads what names a memory.
pub struct MemoryRef;

impl MemoryRef {
    /// # Errors
    /// Everything that is wrong with the input.
    pub fn check(input: &Value) -> Result<MemoryKey, Vec<FieldProblem>> {
        checked(input, FIELDS, Self::read)
    }

    /// Exactly one of `id` and `label`.
    pub(super) fn read(object: &Object<'_>, problems: &mut Problems) -> Option<MemoryKey> {
        let id = object.id("id", problems).map(MemoryKey::Id);
        let label = label(object, problems).map(MemoryKey::Label);
        match (object.has("id"), object.has("label")) {
            (false, false) => problems.add("id", "is missing; give the id of a memory, or its label"),
            (true, true) => problems.add("label", "id and label are both given; leave one of them out"),
            _ => {}
        }
        id.or(label)
    }
}
