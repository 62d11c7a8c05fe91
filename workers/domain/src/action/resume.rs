//! `resume {reason?}`: ends a pause, or takes up a session in `error` at its failed step (SPEC K-45).

use super::fields::{Object, Problems};
use super::reason;

pub(super) fn check(payload: &Object<'_>, problems: &mut Problems) {
    reason::check(payload, problems);
}
