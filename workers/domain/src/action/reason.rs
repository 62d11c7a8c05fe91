//! The payload of the verbs that only may say why.

use schemas::limits::ERROR_CHARS_MAX;

use super::fields::{Object, Problems};

pub(super) const FIELDS: &[&str] = &["reason"];

pub(super) fn check(payload: &Object<'_>, problems: &mut Problems) {
    payload.refuse_unknown(FIELDS, problems);
    payload.text("reason", ERROR_CHARS_MAX, problems);
}
