//! Libraries and projects.

use schemas::definition::DefinitionKind;
use schemas::limits::NAME_BYTES_MAX;

use super::{Found, parts};
use crate::action::fields::{Object, Problems};

pub(super) fn library(object: &Object<'_>, found: &mut Found) {
    object.refuse_unknown(&["id", "name", "description"], &mut found.problems);
    parts::labels(object, &mut found.problems);
}

pub(super) fn project(object: &Object<'_>, found: &mut Found) {
    let known = ["id", "name", "description", "default_model_profile_id", "default_branch"];
    object.refuse_unknown(&known, &mut found.problems);
    parts::labels(object, &mut found.problems);
    parts::refer(object, "default_model_profile_id", DefinitionKind::ModelProfile, found);
    branch(object, &mut found.problems);
}

/// A name that git would take, so that whoever keeps the repository can.
fn branch(object: &Object<'_>, problems: &mut Problems) {
    let Some(name) = object.text("default_branch", NAME_BYTES_MAX, problems) else { return };
    let is_odd = |part: &str| part.is_empty() || part.starts_with('.') || part.ends_with(".lock");
    let is_bad = |c: char| c.is_whitespace() || "~^:?*[\\".contains(c);
    let has_odd = ["..", "@{"].iter().any(|odd| name.contains(odd)) || name.split('/').any(is_odd);
    if name.starts_with('-') || name.ends_with('.') || name == "@" || has_odd || name.contains(is_bad) {
        problems.add(object.path("default_branch"), "is no name of a branch, as in main or release/2");
    }
}
