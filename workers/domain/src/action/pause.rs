//! `pause {reason?}`: no step starts until a resume; a running step is never cut (SPEC Q-LIF-03).

use super::fields::{Object, Problems};
use super::reason;

pub(super) fn check(payload: &Object<'_>, problems: &mut Problems) {
    reason::check(payload, problems);
}
