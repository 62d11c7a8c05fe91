//! `input {text?, …}`: something for the session to work on; which fields is its moniker's matter.

use super::fields::{Object, Problems};

pub(super) fn check(payload: &Object<'_>, problems: &mut Problems) {
    if payload.is_empty() {
        problems.add("payload", "input needs a payload with at least one field, such as {\"text\": \"hello\"}");
    }
}
