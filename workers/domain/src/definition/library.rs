//! Libraries and projects.

use schemas::definition::DefinitionKind;

use super::{Found, parts};
use crate::action::fields::Object;

pub(super) fn library(object: &Object<'_>, found: &mut Found) {
    object.refuse_unknown(&["id", "name", "description"], &mut found.problems);
    parts::labels(object, &mut found.problems);
}

pub(super) fn project(object: &Object<'_>, found: &mut Found) {
    object.refuse_unknown(&["id", "name", "description", "default_model_profile_id"], &mut found.problems);
    parts::labels(object, &mut found.problems);
    parts::refer(object, "default_model_profile_id", DefinitionKind::ModelProfile, found);
}
